"""Slots: none is granted twice, none affects another, and a sample is stable from its finish until it is accepted."""

import operator
from collections.abc import Iterator
from functools import cache, reduce
from itertools import pairwise

from configurations import distinct
from spurtle.config import CONFIGS, SPUConfig
from spurtle.gateware.inflight import InFlight
from spurtle.gateware.slots import Allocation, Slot, SlotState

from ..engine.cover import reach
from ..engine.induction import Invariant, always, inductive
from ..engine.proof import Proof, ProvedBlock, Verdict
from ..engine.streams import stable
from ..engine.terms import (
    BitVector,
    Boolean,
    all_of,
    any_of,
    as_bits,
    boolean,
    concat,
    constant,
    extract,
    if_else,
    implies,
    not_,
    ugt,
    ult,
    zero_extend,
)
from ..engine.transition import Transition, Wires, transition
from .captures import prove_captures
from .latencies import cover_counts, prove_counts, prove_latencies
from .start_states import kept, start, words_are_kept

__all__ = [
    "proofs",
    "prove_allocation",
    "prove_order",
    "prove_reports",
    "prove_slots",
    "prove_stream",
    "queue",
    "selections",
]


def _bit(wire: BitVector, index: int) -> Boolean:
    return extract(index, index, wire) == 1


def _ones(wire: BitVector) -> BitVector:
    """Return the number of bits that are set, in eight bits."""
    return reduce(operator.add, (zero_extend(7, extract(k, k, wire)) for k in range(wire.width)))


# Allocation.


def selections(config: SPUConfig) -> Invariant:
    """Return the contract of the selections of the interval counter.

    Each selection has one lane or none. The second one has a lane only if the first one has a lower one.
    """

    def holds(wires: Wires) -> Boolean:
        selected = [wires[f"selected__{index}"] for index in range(config.selections_per_cycle)]
        alone = [one & (one - 1) == 0 for one in selected]
        later = [all_of(a != 0, ugt(b, a)) for a, b in pairwise(selected)]
        return all_of(*alone, *(any_of(b == 0, order) for b, order in zip(selected[1:], later, strict=True)))

    return holds


def prove_allocation(config: SPUConfig, system: Transition) -> Verdict:
    """Prove which selected operations are granted slots, and which. `system` is an `Allocation`."""

    def allocated(wires: Wires) -> Boolean:
        selected = [wires[f"selected__{index}"] for index in range(config.selections_per_cycle)]
        free, allocate, sampled = wires["free"], wires["allocate"], wires["sampled"]
        requests = reduce(operator.add, (as_bits(one != 0, 8) for one in selected))
        grants = if_else(ult(requests, _ones(free)), requests, _ones(free))
        # Slots are granted in program order.
        granted = [if_else(ugt(_ones(free), index), one, constant(0, one.width)) for index, one in enumerate(selected)]
        terms = [
            allocate & ~free == 0,
            _ones(allocate) == grants,
            sampled == reduce(operator.or_, granted),
            zero_extend(8 - wires["collisions"].width, wires["collisions"]) == requests - grants,
        ]
        if config.slots > 1:
            # The slots that are reported to the core are distinct, and are exactly the granted ones.
            reported = constant(0, config.slots)
            for lane in range(config.ops_per_cycle):
                slot = wires[f"slot__{lane}"]
                one_hot = constant(1, config.slots) << zero_extend(config.slots - slot.width, slot)
                terms.append(implies(_bit(sampled, lane), reported & one_hot == 0))
                reported = reported | if_else(_bit(sampled, lane), one_hot, constant(0, config.slots))
            terms.append(reported == allocate)
        return all_of(*terms)

    return always(system, allocated, cycles=1, assuming=selections(config))


# Slots.


def _state(wires: Wires, slot: int) -> BitVector:
    return wires[f"slot_{slot}.slot_state"]


def _used(wires: Wires, slot: int) -> Boolean:
    return any_of(_state(wires, slot) == SlotState.IN_FLIGHT, _state(wires, slot) == SlotState.FINISHED)


def _known_at_finish(config: SPUConfig, wires: Wires, slot: int) -> BitVector:
    """Return the stored operation of this slot, which arrived with its finish."""
    return wires["known_at_finish"] if config.slots == 1 else wires[f"operations[{slot}]"]


def _finish(config: SPUConfig, wires: Wires) -> BitVector:
    """Return the operation that arrives with `finish`, with the previous branch target."""
    operation = wires["finish__operation"]
    return concat(wires["previous"], operation) if config.pbt else operation


def _report(config: SPUConfig, wires: Wires, slot: int) -> BitVector:
    """Return the sample in this slot, without its start state."""
    latencies = (wires[f"slot_{slot}.{name}"] for name in reversed(config.latencies))
    return concat(*latencies, _known_at_finish(config, wires, slot))


def _sample(config: SPUConfig, wires: Wires, slot: int) -> BitVector:
    """Return the sample in this slot."""
    return concat(_report(config, wires, slot), start(config, wires, slot))


def prove_slots(config: SPUConfig, system: Transition) -> Verdict:
    """Prove the life cycle of each slot, under the invariant `queue`. `system` is an `InFlight`."""

    def life_cycle(now: Wires, then: Wires, slot: int) -> Boolean:
        state, after = _state(now, slot), _state(then, slot)
        finishes = now["finish__valid"] == 1
        if config.slots > 1:
            finishes = all_of(finishes, now["finish__slot"] == slot)
        vanished = now["finish__vanished"] == 1
        granted = _bit(now["allocation.allocate"], slot)
        drop = any_of(now[f"slot_{slot}.drop"] == 1, now["running"] == 0)
        finished = all_of(state == SlotState.IN_FLIGHT, after == SlotState.FINISHED)
        waits = all_of(state == SlotState.FINISHED, after == SlotState.FINISHED)
        freed = all_of(state == SlotState.FINISHED, after == SlotState.FREE)
        return all_of(
            # A slot is granted only while it is free, and its operation ends only by its own finish.
            implies(granted, state == SlotState.FREE),
            implies(
                state == SlotState.FREE,
                after == if_else(granted, constant(SlotState.IN_FLIGHT, 2), constant(SlotState.FREE, 2)),
            ),
            implies(all_of(state == SlotState.IN_FLIGHT, not_(finishes)), after == SlotState.IN_FLIGHT),
            implies(all_of(state == SlotState.IN_FLIGHT, finishes, vanished), after == SlotState.FREE),
            implies(all_of(state == SlotState.IN_FLIGHT, finishes, not_(vanished)), after == SlotState.FINISHED),
            implies(state == SlotState.FINISHED, any_of(after == SlotState.FINISHED, after == SlotState.FREE)),
            # While the slot is in use, its start state is stable, and `drop` is set once the buffer does not run.
            implies(all_of(_used(now, slot), _used(then, slot)), kept(config, now, then, slot)),
            implies(all_of(_used(now, slot), _used(then, slot)), (then[f"slot_{slot}.drop"] == 1) == drop),
            # The operation of a finished slot is the one that finished: its memory word was written by the finish.
            implies(finished, _known_at_finish(config, then, slot) == _finish(config, now)),
            implies(waits, _report(config, then, slot) == _report(config, now, slot)),
            # The slot is freed when its sample is sent, and not before.
            implies(freed, sent(now, then, slot, drop)),
        )

    def sent(now: Wires, then: Wires, slot: int, drop: Boolean) -> Boolean:
        if config.slots == 1:
            return all_of(
                now["sample__valid"] == 1,
                now["sample__ready"] == 1,
                now["sample__payload"] == _sample(config, now, slot),
                now["drop"] == now[f"slot_{slot}.drop"],
            )
        return all_of(
            any_of(now["sample__valid"] == 0, now["sample__ready"] == 1),
            then["sample__valid"] == 1,
            then["sample__payload"] == _sample(config, now, slot),
            (then["drop"] == 1) == drop,
        )

    def all_follow(now: Wires, then: Wires) -> Boolean:
        return implies(now["rst"] == 0, all_of(*(life_cycle(now, then, slot) for slot in range(config.slots))))

    return always(system, all_follow, assuming=queue(config))


def prove_reports(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that each slot receives the reports of the core about it, and no others. `system` is an `InFlight`."""

    def reported(wires: Wires) -> Boolean:
        terms = []
        for slot in range(config.slots):
            finishes = wires["finish__valid"] == 1
            if config.slots > 1:
                finishes = all_of(finishes, wires["finish__slot"] == slot)
            vanished = wires["finish__vanished"] == 1
            reports = {name: _bit(wires[f"in_flight__{name}"], slot) for name in ("issued", "completed", "translating")}
            reports |= {"finish": all_of(finishes, not_(vanished)), "vanish": all_of(finishes, vanished)}
            if config.altclk:
                reports["alternate_tick"] = wires["in_flight__alternate_tick"] == 1
            terms += [(wires[f"slot_{slot}.{name}"] == 1) == report for name, report in reports.items()]
        return all_of(*terms)

    return always(system, reported, cycles=1)


# Order in which samples are offered.


def _entry(wires: Wires, position: int) -> BitVector:
    """Return the slot at this position of the queue, counted from its head."""
    return wires[f"order.entry_{position}"]


def _level(wires: Wires) -> BitVector:
    """Return the number of entries of the queue."""
    return _ones(wires["order.present"])


def queue(config: SPUConfig) -> Invariant:
    """Return the invariant of the queue: it holds the finished slots, each of them once.

    It includes `words_are_kept`.
    """

    def holds(wires: Wires) -> Boolean:
        if config.slots == 1:
            return boolean(True)
        present = wires["order.present"]
        # The entries that are present are the first ones.
        terms = [present & (present + 1) == 0]
        for slot in range(config.slots):
            found = (all_of(_bit(present, k), _entry(wires, k) == slot) for k in range(config.slots))
            entries = reduce(operator.add, (as_bits(match, 8) for match in found))
            terms.append(entries == as_bits(_state(wires, slot) == SlotState.FINISHED, 8))
        return all_of(*terms, words_are_kept(config)(wires))

    return holds


def prove_order(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that samples are offered in the order in which their operations finished. `system` is an `InFlight`."""

    def ordered(now: Wires, then: Wires) -> Boolean:
        level, after = _level(now), _level(then)
        freed = [
            all_of(_state(now, k) == SlotState.FINISHED, _state(then, k) == SlotState.FREE) for k in range(config.slots)
        ]
        removed = any_of(*freed)
        added = any_of(
            *(
                all_of(_state(now, k) == SlotState.IN_FLIGHT, _state(then, k) == SlotState.FINISHED)
                for k in range(config.slots)
            )
        )
        one = {True: constant(1, level.width), False: constant(0, level.width)}
        remaining = level - if_else(removed, one[True], one[False])
        terms = [after == remaining + if_else(added, one[True], one[False])]
        terms += [implies(freed[k], _entry(now, 0) == k) for k in range(config.slots)]
        for position in range(config.slots):
            entry = _entry(then, position)
            later = _entry(now, min(position + 1, config.slots - 1))
            terms.append(implies(ugt(remaining, position), entry == if_else(removed, later, _entry(now, position))))
            terms.append(implies(all_of(added, remaining == position), entry == now["finish__slot"]))
        return implies(now["rst"] == 0, all_of(*terms))

    return always(system, ordered, assuming=queue(config))


def prove_stream(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that an offered sample is stable until it is accepted. `system` is an `InFlight`."""
    return always(system, lambda now, then: stable("sample", now, then))


@cache
def _system(config: SPUConfig) -> Transition:
    return transition(InFlight(config))


@cache
def _slot(config: SPUConfig) -> Transition:
    return transition(Slot(config))


def _covers(config: SPUConfig) -> Iterator[tuple[str, Invariant]]:
    yield "a sample is offered", lambda wires: wires["sample__valid"] == 1
    yield "a collision", lambda wires: wires["collisions"] != 0
    if config.slots > 1:
        yield (
            "all slots are in use",
            lambda wires: all_of(*(_state(wires, k) == SlotState.IN_FLIGHT for k in range(config.slots))),
        )
        yield "two finished operations wait", lambda wires: _level(wires) == 2
    if config.selections_per_cycle > 1:
        yield "two slots are granted in one cycle", lambda wires: _ones(wires["allocation.allocate"]) == 2
        yield (
            "the first of two operations is granted the last slot",
            lambda wires: all_of(wires["collisions"] == 1, wires["allocation.allocate"] != 0),
        )


_CHANGING = "ops_per_cycle slots ernd counter_bits el2 rme pbt altclk"
"""Members of a configuration that change the slots, except for the width of the operation."""


def proofs() -> Iterator[Proof]:
    """Yield the proofs, for each configuration with different slots."""
    for config in distinct(CONFIGS.values(), _CHANGING):
        proof = ProvedBlock("inflight", config, _system).proof
        allocation = ProvedBlock("inflight", config, lambda config: transition(Allocation(config)))
        yield allocation.proof(
            "each selected operation is granted a free slot or collides", "any cycle", prove_allocation
        )
        if config.slots > 1:
            yield proof(
                "the queue holds each finished slot once",
                "induction",
                lambda config, system: inductive(system, queue(config)),
            )
            yield proof("samples are offered in the order in which operations finish", "induction", prove_order)
        slot = ProvedBlock("inflight", config, _slot)
        yield slot.proof("no latency exceeds the total latency", "induction", prove_latencies)
        yield slot.proof("each latency is the number of cycles that the core reports", "induction", prove_counts)
        yield slot.proof("cover: each latency counts and saturates", "bounded search", cover_counts)
        yield proof("each slot receives the reports of its own operation alone", "any cycle", prove_reports)
        slow = config.slots > 2
        yield proof("a slot in use is not granted again, and its sample is stable", "induction", prove_slots, slow=slow)
        yield proof("a slot captures the state in which its operation passed", "induction", prove_captures, slow=slow)
        yield proof("an offered sample is stable until it is accepted", "induction", prove_stream)
        for name, goal in _covers(config):
            yield proof(
                f"cover: {name}",
                "bounded search",
                lambda config, system, goal=goal: reach(system, goal, cycles=8, assuming=selections(config)),
            )
