"""The slots: none is given away twice, none changes another, and what an operation was stands until it is taken."""

import operator
from collections.abc import Callable, Iterator
from functools import cache, reduce
from itertools import pairwise

import z3

from spurtle.config import CONFIGS, SPUConfig
from spurtle.gateware.inflight import InFlight
from spurtle.gateware.sample import StartLayout
from spurtle.gateware.slots import Allocation, Slot, SlotState

from ..engine.features import distinct
from ..engine.induction import Invariant, Wires, always, inductive, reach
from ..engine.proof import Proof, Verdict
from ..engine.streams import steady
from ..engine.transition import Transition, transition
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


def _bit(wire: z3.BitVecRef, place: int) -> z3.BoolRef:
    return z3.Extract(place, place, wire) == 1


def _ones(wire: z3.BitVecRef) -> z3.BitVecRef:
    """How many bits are set, in eight bits."""
    return reduce(operator.add, (z3.ZeroExt(7, z3.Extract(k, k, wire)) for k in range(wire.size())))


# Allocation.


def selections(config: SPUConfig) -> Invariant:
    """One lane or none each; the second only beside the first, and in a later lane: as the interval counter answers."""

    def holds(wires: Wires) -> z3.BoolRef:
        selected = [wires[f"selected__{index}"] for index in range(config.selections_per_cycle)]
        alone = [one & (one - 1) == 0 for one in selected]
        later = [z3.And(a != 0, z3.UGT(b, a)) for a, b in pairwise(selected)]
        return z3.And(*alone, *(z3.Or(b == 0, order) for b, order in zip(selected[1:], later, strict=True)))

    return holds


def prove_allocation(config: SPUConfig, system: Transition) -> Verdict:
    """`system` is an `Allocation`."""

    def allocated(wires: Wires) -> z3.BoolRef:
        selected = [wires[f"selected__{index}"] for index in range(config.selections_per_cycle)]
        free, take, sampled = wires["free"], wires["take"], wires["sampled"]
        wanted = reduce(operator.add, (z3.If(one != 0, z3.BitVecVal(1, 8), z3.BitVecVal(0, 8)) for one in selected))
        given = z3.If(z3.ULT(wanted, _ones(free)), wanted, _ones(free))
        # The first comes first.
        met = [
            z3.If(z3.UGT(_ones(free), index), one, z3.BitVecVal(0, one.size())) for index, one in enumerate(selected)
        ]
        terms = [
            take & ~free == 0,
            _ones(take) == given,
            sampled == reduce(operator.or_, met),
            z3.ZeroExt(8 - wires["collisions"].size(), wires["collisions"]) == wanted - given,
        ]
        if config.slots > 1:
            # Whom the core is told a slot, and nobody else, has it.
            told = z3.BitVecVal(0, config.slots)
            for lane in range(config.ops_per_cycle):
                slot = wires[f"slot__{lane}"]
                here = z3.BitVecVal(1, config.slots) << z3.ZeroExt(config.slots - slot.size(), slot)
                terms.append(z3.Implies(_bit(sampled, lane), told & here == 0))
                told = told | z3.If(_bit(sampled, lane), here, z3.BitVecVal(0, config.slots))
            terms.append(told == take)
        return z3.And(*terms)

    return always(system, allocated, cycles=1, assuming=selections(config))


# Slots.


def _state(wires: Wires, slot: int) -> z3.BitVecRef:
    return wires[f"slot_{slot}.slot_state"]


def _used(wires: Wires, slot: int) -> z3.BoolRef:
    return z3.Or(_state(wires, slot) == SlotState.IN_FLIGHT, _state(wires, slot) == SlotState.FINISHED)


def _told(config: SPUConfig, wires: Wires, slot: int) -> z3.BitVecRef:
    """What is kept of the operation in this slot."""
    return wires["told"] if config.slots == 1 else wires[f"operations[{slot}]"]


def _finish(config: SPUConfig, wires: Wires) -> z3.BitVecRef:
    """What is told of an operation in the cycle of its finish."""
    operation = wires["finish__operation"]
    return z3.Concat(wires["previous"], operation) if config.pbt else operation


def _sample(config: SPUConfig, wires: Wires, slot: int) -> z3.BitVecRef:
    """The sample that is in this slot."""
    latencies = (wires[f"slot_{slot}.{name}"] for name in reversed(config.latencies))
    return z3.Concat(*latencies, _told(config, wires, slot), wires[f"slot_{slot}.start"])


def prove_slots(config: SPUConfig, system: Transition) -> Verdict:
    """`system` is an `InFlight`. The queue has to be proved as well."""

    def moves(now: Wires, then: Wires, slot: int) -> z3.BoolRef:
        state, after = _state(now, slot), _state(then, slot)
        mine = now["finish__valid"] == 1
        if config.slots > 1:
            mine = z3.And(mine, now["finish__slot"] == slot)
        vanished = now["finish__vanished"] == 1
        taken = _bit(now["allocation.take"], slot)
        start = then[f"slot_{slot}.start"] == now[f"slot_{slot}.start"]
        unwanted = z3.Or(now[f"slot_{slot}.unwanted"] == 1, now["running"] == 0)
        ended = z3.And(state == SlotState.IN_FLIGHT, after == SlotState.FINISHED)
        rests = z3.And(state == SlotState.FINISHED, after == SlotState.FINISHED)
        left = z3.And(state == SlotState.FINISHED, after == SlotState.FREE)
        return z3.And(
            # Whoever is given the slot finds it free, and only its own finish moves it on.
            z3.Implies(taken, state == SlotState.FREE),
            z3.Implies(
                state == SlotState.FREE,
                after == z3.If(taken, z3.BitVecVal(SlotState.IN_FLIGHT, 2), z3.BitVecVal(SlotState.FREE, 2)),
            ),
            z3.Implies(z3.And(state == SlotState.IN_FLIGHT, z3.Not(mine)), after == SlotState.IN_FLIGHT),
            z3.Implies(z3.And(state == SlotState.IN_FLIGHT, mine, vanished), after == SlotState.FREE),
            z3.Implies(z3.And(state == SlotState.IN_FLIGHT, mine, z3.Not(vanished)), after == SlotState.FINISHED),
            z3.Implies(state == SlotState.FINISHED, z3.Or(after == SlotState.FINISHED, after == SlotState.FREE)),
            # While it is used what it started with stands still, and it is remembered that the buffer did not run.
            z3.Implies(z3.And(_used(now, slot), _used(then, slot)), start),
            z3.Implies(z3.And(_used(now, slot), _used(then, slot)), (then[f"slot_{slot}.unwanted"] == 1) == unwanted),
            # Its operation is the one that finished: the word of a finished slot was written by its finish.
            z3.Implies(ended, _told(config, then, slot) == _finish(config, now)),
            z3.Implies(rests, _sample(config, then, slot) == _sample(config, now, slot)),
            # It is left when its sample goes on, and not before.
            z3.Implies(left, offered(now, then, slot, unwanted)),
        )

    def offered(now: Wires, then: Wires, slot: int, unwanted: z3.BoolRef) -> z3.BoolRef:
        if config.slots == 1:
            return z3.And(
                now["sample__valid"] == 1,
                now["sample__ready"] == 1,
                now["sample__payload"] == _sample(config, now, slot),
                now["unwanted"] == now[f"slot_{slot}.unwanted"],
            )
        return z3.And(
            z3.Or(now["sample__valid"] == 0, now["sample__ready"] == 1),
            then["sample__valid"] == 1,
            then["sample__payload"] == _sample(config, now, slot),
            (then["unwanted"] == 1) == unwanted,
        )

    def moved(now: Wires, then: Wires) -> z3.BoolRef:
        return z3.Implies(now["rst"] == 0, z3.And(*(moves(now, then, slot) for slot in range(config.slots))))

    return always(system, moved, assuming=queue(config))


def prove_captures(config: SPUConfig, system: Transition) -> Verdict:
    """What a slot starts with is the PE's state when its operation passed, `answer_latency` cycles before it is taken.

    Nothing passes while the buffer does not run: `SPU` does not count it.
    """

    def captured(*cycles: Wires) -> z3.BoolRef:
        passed, *_, taking, taken = cycles
        assumed = z3.And(*(wires["rst"] == 0 for wires in cycles[:-1]), passed["running"] == 1)
        stopped = z3.Or(*(wires["running"] == 0 for wires in cycles[:-1]))
        state = {
            "el": passed["pe__el"],
            "ns": passed["pe__ns"],
            **({"nse": passed["pe__nse"]} if config.rme else {}),
            "contextidr_el1": passed["pe__contextidr_el1"],
            "contextidr_el2": passed["pe__contextidr_el2"] if config.el2 else z3.BitVecVal(0, 32),
            "timestamp": passed["pe__physical_count"] - (passed["offset"] if config.el2 else 0),
            "collect": passed["collect"],
        }
        start = z3.Concat(*(state[name] for name, _ in reversed(list(StartLayout(config)))))
        return z3.And(
            *(
                z3.Implies(
                    z3.And(assumed, _bit(taking["allocation.take"], slot)),
                    z3.And(taken[f"slot_{slot}.start"] == start, (taken[f"slot_{slot}.unwanted"] == 1) == stopped),
                )
                for slot in range(config.slots)
            )
        )

    return always(system, captured, cycles=config.answer_latency + 2)


def prove_reports(config: SPUConfig, system: Transition) -> Verdict:
    """Each slot is told what the core reports of it, and of no other. `system` is an `InFlight`."""

    def reported(wires: Wires) -> z3.BoolRef:
        terms = []
        for slot in range(config.slots):
            own = wires["finish__valid"] == 1
            if config.slots > 1:
                own = z3.And(own, wires["finish__slot"] == slot)
            vanished = wires["finish__vanished"] == 1
            told = {name: _bit(wires[f"in_flight__{name}"], slot) for name in ("issued", "completed", "translating")}
            told |= {"finish": z3.And(own, z3.Not(vanished)), "vanish": z3.And(own, vanished)}
            if config.altclk:
                told["alternate_tick"] = wires["in_flight__alternate_tick"] == 1
            terms += [(wires[f"slot_{slot}.{name}"] == 1) == report for name, report in told.items()]
        return z3.And(*terms)

    return always(system, reported, cycles=1)


# The order in which samples are offered.


def _entry(config: SPUConfig, wires: Wires, place: int) -> z3.BitVecRef:
    """The slot that is so far from the head of the queue."""
    words = [wires[f"order.storage[{word}]"] for word in range(config.slots)]
    head = wires["order.r_port__addr"]
    here = z3.URem(z3.ZeroExt(4, head) + place, config.slots)
    return reduce(lambda found, k: z3.If(here == k, words[k], found), range(config.slots), words[0])


def queue(config: SPUConfig) -> Invariant:
    """The queue holds the finished slots, each of them once."""

    def holds(wires: Wires) -> z3.BoolRef:
        if config.slots == 1:
            return z3.BoolVal(True)
        level = z3.ZeroExt(8 - wires["order.level"].size(), wires["order.level"])
        head, tail = (z3.ZeroExt(4, wires[f"order.{port}__addr"]) for port in ("r_port", "w_port"))
        length = z3.Extract(head.size() - 1, 0, level)
        terms = [z3.ULE(level, config.slots), tail == z3.URem(head + length, config.slots)]
        terms += [z3.ULT(address, config.slots) for address in (head, tail)]
        for slot in range(config.slots):
            found = (z3.And(z3.UGT(level, k), _entry(config, wires, k) == slot) for k in range(config.slots))
            times = reduce(operator.add, (z3.If(here, z3.BitVecVal(1, 8), z3.BitVecVal(0, 8)) for here in found))
            terms.append(
                times == z3.If(_state(wires, slot) == SlotState.FINISHED, z3.BitVecVal(1, 8), z3.BitVecVal(0, 8))
            )
        return z3.And(*terms)

    return holds


def prove_order(config: SPUConfig, system: Transition) -> Verdict:
    """The first to finish is the first to leave."""

    def kept(now: Wires, then: Wires) -> z3.BoolRef:
        level, after = now["order.level"], then["order.level"]
        left = [
            z3.And(_state(now, k) == SlotState.FINISHED, _state(then, k) == SlotState.FREE) for k in range(config.slots)
        ]
        moved = z3.Or(*left)
        ended = z3.Or(
            *(
                z3.And(_state(now, k) == SlotState.IN_FLIGHT, _state(then, k) == SlotState.FINISHED)
                for k in range(config.slots)
            )
        )
        one = {True: z3.BitVecVal(1, level.size()), False: z3.BitVecVal(0, level.size())}
        rest = level - z3.If(moved, one[True], one[False])
        terms = [after == rest + z3.If(ended, one[True], one[False])]
        terms += [z3.Implies(left[k], _entry(config, now, 0) == k) for k in range(config.slots)]
        for place in range(config.slots):
            entry = _entry(config, then, place)
            before = z3.If(moved, _entry(config, now, place + 1), _entry(config, now, place))
            terms.append(z3.Implies(z3.UGT(rest, place), entry == before))
            terms.append(z3.Implies(z3.And(ended, rest == place), entry == now["finish__slot"]))
        return z3.Implies(now["rst"] == 0, z3.And(*terms))

    return always(system, kept, assuming=queue(config))


def prove_stream(config: SPUConfig, system: Transition) -> Verdict:
    """A sample that is offered stands until it is taken."""
    return always(system, lambda now, then: steady("sample", now, then))


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
            lambda wires: z3.And(*(_state(wires, k) == SlotState.IN_FLIGHT for k in range(config.slots))),
        )
        yield "two finished operations wait", lambda wires: wires["order.level"] == 2
    if config.selections_per_cycle > 1:
        yield "two slots in one cycle", lambda wires: _ones(wires["allocation.take"]) == 2
        yield (
            "the first of two gets the last slot",
            lambda wires: z3.And(wires["collisions"] == 1, wires["allocation.take"] != 0),
        )


_CHANGING = "ops_per_cycle slots ernd counter_bits el2 rme pbt altclk"
"""What of a configuration changes the slots, but for the width of what the core tells of an operation."""


def proofs() -> Iterator[Proof]:
    """For each configuration whose slots are not another's."""
    for config in distinct(CONFIGS.values(), _CHANGING):

        def proof(
            name: str, method: str, prove: Callable[[SPUConfig, Transition], Verdict], config: SPUConfig = config
        ) -> Proof:
            return Proof(name, "inflight", config.name, method, lambda: prove(config, _system(config)))

        yield Proof(
            "each selected operation gets a free slot of its own, or collides", "inflight", config.name, "any cycle",
            lambda config=config: prove_allocation(config, transition(Allocation(config))),
        )  # fmt: skip
        if config.slots > 1:
            yield proof(
                "the queue holds each finished slot once",
                "induction",
                lambda config, system: inductive(system, queue(config)),
            )
            yield proof("who finished first leaves first", "induction", prove_order)
        for name, method, prove in (
            ("no latency is above the total latency", "induction", prove_latencies),
            ("each latency is what the core reports", "induction", prove_counts),
            ("cover: each latency counts and saturates", "bounded search", cover_counts),
        ):
            yield Proof(
                name, "inflight", config.name, method,
                lambda config=config, prove=prove: prove(config, _slot(config)),
            )  # fmt: skip
        yield proof("each slot follows the reports of its own operation", "any cycle", prove_reports)
        yield proof("a slot is nobody else's, and its sample stands still", "induction", prove_slots)
        yield proof("what a slot starts with is as the operation passed", "induction", prove_captures)
        yield proof("a sample stands until it is taken", "induction", prove_stream)
        for name, goal in _covers(config):
            yield proof(
                f"cover: {name}",
                "bounded search",
                lambda config, system, goal=goal: reach(system, goal, cycles=8, given=selections(config)),
            )
