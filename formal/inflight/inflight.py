"""The slots: none is given away twice, none changes another, and what an operation was stands until it is taken."""

import operator
from collections.abc import Iterator
from functools import cache, reduce
from itertools import pairwise

from configurations import distinct
from spurtle.config import CONFIGS, SPUConfig
from spurtle.gateware.inflight import InFlight
from spurtle.gateware.sample import StartLayout
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
    remainder,
    ugt,
    ule,
    ult,
    zero_extend,
)
from ..engine.transition import Transition, Wires, transition
from .latencies import cover_counts, prove_counts, prove_latencies

__all__ = [
    "proofs",
    "prove_allocation",
    "prove_captures",
    "prove_order",
    "prove_reports",
    "prove_slots",
    "prove_stream",
    "queue",
    "selections",
]


def _bit(wire: BitVector, place: int) -> Boolean:
    return extract(place, place, wire) == 1


def _ones(wire: BitVector) -> BitVector:
    """How many bits are set, in eight bits."""
    return reduce(operator.add, (zero_extend(7, extract(k, k, wire)) for k in range(wire.width)))


# Allocation.


def selections(config: SPUConfig) -> Invariant:
    """One lane or none each; the second only beside the first, and in a later lane: as the interval counter answers."""

    def holds(wires: Wires) -> Boolean:
        selected = [wires[f"selected__{index}"] for index in range(config.selections_per_cycle)]
        alone = [one & (one - 1) == 0 for one in selected]
        later = [all_of(a != 0, ugt(b, a)) for a, b in pairwise(selected)]
        return all_of(*alone, *(any_of(b == 0, order) for b, order in zip(selected[1:], later, strict=True)))

    return holds


def prove_allocation(config: SPUConfig, system: Transition) -> Verdict:
    """`system` is an `Allocation`."""

    def allocated(wires: Wires) -> Boolean:
        selected = [wires[f"selected__{index}"] for index in range(config.selections_per_cycle)]
        free, take, sampled = wires["free"], wires["allocate"], wires["sampled"]
        wanted = reduce(operator.add, (as_bits(one != 0, 8) for one in selected))
        given = if_else(ult(wanted, _ones(free)), wanted, _ones(free))
        # The first comes first.
        met = [if_else(ugt(_ones(free), index), one, constant(0, one.width)) for index, one in enumerate(selected)]
        terms = [
            take & ~free == 0,
            _ones(take) == given,
            sampled == reduce(operator.or_, met),
            zero_extend(8 - wires["collisions"].width, wires["collisions"]) == wanted - given,
        ]
        if config.slots > 1:
            # Whom the core is told a slot, and nobody else, has it.
            told = constant(0, config.slots)
            for lane in range(config.ops_per_cycle):
                slot = wires[f"slot__{lane}"]
                here = constant(1, config.slots) << zero_extend(config.slots - slot.width, slot)
                terms.append(implies(_bit(sampled, lane), told & here == 0))
                told = told | if_else(_bit(sampled, lane), here, constant(0, config.slots))
            terms.append(told == take)
        return all_of(*terms)

    return always(system, allocated, cycles=1, assuming=selections(config))


# Slots.


def _state(wires: Wires, slot: int) -> BitVector:
    return wires[f"slot_{slot}.slot_state"]


def _used(wires: Wires, slot: int) -> Boolean:
    return any_of(_state(wires, slot) == SlotState.IN_FLIGHT, _state(wires, slot) == SlotState.FINISHED)


def _told(config: SPUConfig, wires: Wires, slot: int) -> BitVector:
    """What is kept of the operation in this slot."""
    return wires["known_at_finish"] if config.slots == 1 else wires[f"operations[{slot}]"]


def _finish(config: SPUConfig, wires: Wires) -> BitVector:
    """What is told of an operation in the cycle of its finish."""
    operation = wires["finish__operation"]
    return concat(wires["previous"], operation) if config.pbt else operation


def _sample(config: SPUConfig, wires: Wires, slot: int) -> BitVector:
    """The sample that is in this slot."""
    latencies = (wires[f"slot_{slot}.{name}"] for name in reversed(config.latencies))
    return concat(*latencies, _told(config, wires, slot), wires[f"slot_{slot}.start"])


def prove_slots(config: SPUConfig, system: Transition) -> Verdict:
    """`system` is an `InFlight`. The queue has to be proved as well."""

    def moves(now: Wires, then: Wires, slot: int) -> Boolean:
        state, after = _state(now, slot), _state(then, slot)
        mine = now["finish__valid"] == 1
        if config.slots > 1:
            mine = all_of(mine, now["finish__slot"] == slot)
        vanished = now["finish__vanished"] == 1
        taken = _bit(now["allocation.allocate"], slot)
        start = then[f"slot_{slot}.start"] == now[f"slot_{slot}.start"]
        unwanted = any_of(now[f"slot_{slot}.drop"] == 1, now["running"] == 0)
        ended = all_of(state == SlotState.IN_FLIGHT, after == SlotState.FINISHED)
        rests = all_of(state == SlotState.FINISHED, after == SlotState.FINISHED)
        left = all_of(state == SlotState.FINISHED, after == SlotState.FREE)
        return all_of(
            # Whoever is given the slot finds it free, and only its own finish moves it on.
            implies(taken, state == SlotState.FREE),
            implies(
                state == SlotState.FREE,
                after == if_else(taken, constant(SlotState.IN_FLIGHT, 2), constant(SlotState.FREE, 2)),
            ),
            implies(all_of(state == SlotState.IN_FLIGHT, not_(mine)), after == SlotState.IN_FLIGHT),
            implies(all_of(state == SlotState.IN_FLIGHT, mine, vanished), after == SlotState.FREE),
            implies(all_of(state == SlotState.IN_FLIGHT, mine, not_(vanished)), after == SlotState.FINISHED),
            implies(state == SlotState.FINISHED, any_of(after == SlotState.FINISHED, after == SlotState.FREE)),
            # While it is used what it started with stands still, and it is remembered that the buffer did not run.
            implies(all_of(_used(now, slot), _used(then, slot)), start),
            implies(all_of(_used(now, slot), _used(then, slot)), (then[f"slot_{slot}.drop"] == 1) == unwanted),
            # Its operation is the one that finished: the word of a finished slot was written by its finish.
            implies(ended, _told(config, then, slot) == _finish(config, now)),
            implies(rests, _sample(config, then, slot) == _sample(config, now, slot)),
            # It is left when its sample goes on, and not before.
            implies(left, offered(now, then, slot, unwanted)),
        )

    def offered(now: Wires, then: Wires, slot: int, unwanted: Boolean) -> Boolean:
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
            (then["drop"] == 1) == unwanted,
        )

    def moved(now: Wires, then: Wires) -> Boolean:
        return implies(now["rst"] == 0, all_of(*(moves(now, then, slot) for slot in range(config.slots))))

    return always(system, moved, assuming=queue(config))


def prove_captures(config: SPUConfig, system: Transition) -> Verdict:
    """What a slot starts with is the PE's state when its operation passed, `answer_latency` cycles before it is taken.

    Nothing passes while the buffer does not run: `SPU` does not count it.
    """

    def captured(*cycles: Wires) -> Boolean:
        passed, *_, taking, taken = cycles
        assumed = all_of(*(wires["rst"] == 0 for wires in cycles[:-1]), passed["running"] == 1)
        stopped = any_of(*(wires["running"] == 0 for wires in cycles[:-1]))
        state = {
            "el": passed["pe__el"],
            "ns": passed["pe__ns"],
            **({"nse": passed["pe__nse"]} if config.rme else {}),
            "contextidr_el1": passed["pe__contextidr_el1"],
            "contextidr_el2": passed["pe__contextidr_el2"] if config.el2 else constant(0, 32),
            "timestamp": passed["pe__physical_count"] - (passed["offset"] if config.el2 else 0),
            "collect": passed["collect"],
        }
        start = concat(*(state[name] for name, _ in reversed(list(StartLayout(config)))))
        return all_of(
            *(
                implies(
                    all_of(assumed, _bit(taking["allocation.allocate"], slot)),
                    all_of(taken[f"slot_{slot}.start"] == start, (taken[f"slot_{slot}.drop"] == 1) == stopped),
                )
                for slot in range(config.slots)
            )
        )

    return always(system, captured, cycles=config.answer_latency + 2)


def prove_reports(config: SPUConfig, system: Transition) -> Verdict:
    """Each slot is told what the core reports of it, and of no other. `system` is an `InFlight`."""

    def reported(wires: Wires) -> Boolean:
        terms = []
        for slot in range(config.slots):
            own = wires["finish__valid"] == 1
            if config.slots > 1:
                own = all_of(own, wires["finish__slot"] == slot)
            vanished = wires["finish__vanished"] == 1
            told = {name: _bit(wires[f"in_flight__{name}"], slot) for name in ("issued", "completed", "translating")}
            told |= {"finish": all_of(own, not_(vanished)), "vanish": all_of(own, vanished)}
            if config.altclk:
                told["alternate_tick"] = wires["in_flight__alternate_tick"] == 1
            terms += [(wires[f"slot_{slot}.{name}"] == 1) == report for name, report in told.items()]
        return all_of(*terms)

    return always(system, reported, cycles=1)


# The order in which samples are offered.


def _entry(config: SPUConfig, wires: Wires, place: int) -> BitVector:
    """The slot that is so far from the head of the queue."""
    words = [wires[f"order.storage[{word}]"] for word in range(config.slots)]
    head = wires["order.r_port__addr"]
    here = remainder(zero_extend(4, head) + place, config.slots)
    return reduce(lambda found, k: if_else(here == k, words[k], found), range(config.slots), words[0])


def queue(config: SPUConfig) -> Invariant:
    """The queue holds the finished slots, each of them once."""

    def holds(wires: Wires) -> Boolean:
        if config.slots == 1:
            return boolean(True)
        level = zero_extend(8 - wires["order.level"].width, wires["order.level"])
        head, tail = (zero_extend(4, wires[f"order.{port}__addr"]) for port in ("r_port", "w_port"))
        length = extract(head.width - 1, 0, level)
        terms = [ule(level, config.slots), tail == remainder(head + length, config.slots)]
        terms += [ult(address, config.slots) for address in (head, tail)]
        for slot in range(config.slots):
            found = (all_of(ugt(level, k), _entry(config, wires, k) == slot) for k in range(config.slots))
            times = reduce(operator.add, (as_bits(here, 8) for here in found))
            terms.append(times == as_bits(_state(wires, slot) == SlotState.FINISHED, 8))
        return all_of(*terms)

    return holds


def prove_order(config: SPUConfig, system: Transition) -> Verdict:
    """The first to finish is the first to leave."""

    def kept(now: Wires, then: Wires) -> Boolean:
        level, after = now["order.level"], then["order.level"]
        left = [
            all_of(_state(now, k) == SlotState.FINISHED, _state(then, k) == SlotState.FREE) for k in range(config.slots)
        ]
        moved = any_of(*left)
        ended = any_of(
            *(
                all_of(_state(now, k) == SlotState.IN_FLIGHT, _state(then, k) == SlotState.FINISHED)
                for k in range(config.slots)
            )
        )
        one = {True: constant(1, level.width), False: constant(0, level.width)}
        rest = level - if_else(moved, one[True], one[False])
        terms = [after == rest + if_else(ended, one[True], one[False])]
        terms += [implies(left[k], _entry(config, now, 0) == k) for k in range(config.slots)]
        for place in range(config.slots):
            entry = _entry(config, then, place)
            before = if_else(moved, _entry(config, now, place + 1), _entry(config, now, place))
            terms.append(implies(ugt(rest, place), entry == before))
            terms.append(implies(all_of(ended, rest == place), entry == now["finish__slot"]))
        return implies(now["rst"] == 0, all_of(*terms))

    return always(system, kept, assuming=queue(config))


def prove_stream(config: SPUConfig, system: Transition) -> Verdict:
    """A sample that is offered stands until it is taken."""
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
        yield "two finished operations wait", lambda wires: wires["order.level"] == 2
    if config.selections_per_cycle > 1:
        yield "two slots are granted in one cycle", lambda wires: _ones(wires["allocation.allocate"]) == 2
        yield (
            "the first of two operations is granted the last slot",
            lambda wires: all_of(wires["collisions"] == 1, wires["allocation.allocate"] != 0),
        )


_CHANGING = "ops_per_cycle slots ernd counter_bits el2 rme pbt altclk"
"""What of a configuration changes the slots, but for the width of what the core tells of an operation."""


def proofs() -> Iterator[Proof]:
    """For each configuration whose slots are not another's."""
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
        yield proof("a slot in use is not granted again, and its sample is stable", "induction", prove_slots)
        yield proof("a slot captures the state in which its operation passed", "induction", prove_captures)
        yield proof("an offered sample is stable until it is accepted", "induction", prove_stream)
        for name, goal in _covers(config):
            yield proof(
                f"cover: {name}",
                "bounded search",
                lambda config, system, goal=goal: reach(system, goal, cycles=8, assuming=selections(config)),
            )
