"""Interval counter: in every cycle it matches `model.sampling`, applied to each operation of the cycle in turn."""

import operator
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache, reduce
from typing import Any

from spurtle.arch import PMSICR_EL1
from spurtle.config import CONFIGS, SPUConfig
from spurtle.gateware.interval import IntervalCounter
from spurtle_sim.model import sampling

from ..engine.cover import reach_all
from ..engine.induction import Invariant, always, inductive, resets
from ..engine.paths import merge
from ..engine.proof import Proof, ProvedBlock, Verdict
from ..engine.reference import Reference, follows
from ..engine.terms import (
    BitVector,
    Boolean,
    all_of,
    any_of,
    boolean,
    constant,
    extract,
    if_else,
    implies,
    not_,
    slt,
    uge,
    ule,
    ult,
    zero_extend,
)
from ..engine.transition import Transition, Wires, transition

__all__ = ["configured", "cover", "invariant", "proofs", "prove", "prove_delay", "prove_spaced_draws"]

WIDTHS = (1, 2, 4, 8)

_COUNTED = "numbering.lanes"
"""Wire with the lanes of the operations that are counted in this cycle."""

_COUNT = PMSICR_EL1.fields["COUNT"]
_ECOUNT = PMSICR_EL1.fields["ECOUNT"]


def configured(width: int, *, ernd: bool) -> SPUConfig:
    """Return a configuration with `width` lanes, with or without FEAT_SPE_ERnd.

    The interval counter depends on nothing else in a configuration.
    """
    return replace(CONFIGS["minimal"], name=f"lanes_{width}{'_ernd' * ernd}", ops_per_cycle=width, ernd=ernd)


def cycle(config: SPUConfig) -> Reference:
    """Return the reference of one cycle: PMSICR_EL1, as software reads it, and the selected operations.

    If the reference used a second random number in a cycle, or selected more operations than there are ports, its
    result would be a value that no wire can have, and the proof would fail.
    """
    width = config.ops_per_cycle
    writable = config.writable(PMSICR_EL1)
    # Number of a selection for which there is no port.
    no_lane = width + 1

    def operation(number: int, population: int, interval: int, rnd: int, random: int, *tally: int) -> tuple[int, ...]:
        if number > population:
            return tally
        count, ecount, first, second, draws = tally
        count, ecount, selected, drawn = sampling.advance(
            count, ecount, interval=interval, rnd=rnd, random=random, ernd=config.ernd
        )
        if selected:
            if first == 0:
                first = number
            elif second == 0 and config.selections_per_cycle == 2:
                second = number
            else:
                first = no_lane
        if drawn:
            draws = 1 if draws == 0 else 2
        return count, ecount, first, second, draws

    bits = no_lane.bit_length()
    tally = (_COUNT.width, _ECOUNT.width, bits, bits, 2)
    step = merge(operation, [bits, bits, 24, 1, 8, *tally], tally)

    def counts(
        write: int, wdata: int, pmsicr: int, interval: int, rnd: int, random: int, lanes: int, population: int
    ) -> Mapping[str, int]:
        state: Any = (pmsicr & _COUNT.mask, pmsicr >> _ECOUNT.lsb, 0, 0, 0)
        for number in range(1, width + 1):
            state = step(number, population, interval, rnd, random, *state)
        count, ecount, first, second, draws = state
        selected = [_lane(first, lanes, width), _lane(second, lanes, width)][: config.selections_per_cycle]
        pmsicr = ecount << _ECOUNT.lsb | count
        if write:
            pmsicr, draws, selected = wdata & writable, 0, [0] * config.selections_per_cycle
        return {"draw": draws, "pmsicr": pmsicr, **{f"selected__{index}": one for index, one in enumerate(selected)}}

    return counts


def _lane(number: int, lanes: int, width: int) -> int:
    """Return the lane of the operation with this number, one-hot.

    Operations are numbered from 1. The result is 0 for number 0, and bit `width`, which is no lane, for `width + 1`.
    """
    lane = (number == width + 1) << width
    operations = 0
    for index in range(width):
        occupied = lanes >> index & 1
        operations = operations + occupied
        lane = lane + (occupied * (number == operations) << index)
    return lane


def invariant(config: SPUConfig) -> Invariant:
    """Return the invariant on the parts of COUNT, the flags of the upper part, the lanes and their numbers.

    A borrow is pending only just after `low` wrapped, and only if the upper part is above 0. The flags that the upper
    part is zero are computed in steps of one cycle, in each of which `low` decreases by at most the number of lanes.
    A flag is never set while the upper part is nonzero, and all are set before `low` is near zero, where they are used.
    """
    width = config.ops_per_cycle
    near = 1 << width.bit_length()

    def holds(wires: Wires) -> Boolean:
        low, high = wires["low"], wires["high"]
        borrow, halves_zero = wires["borrow"] == 1, wires["halves_zero"] == 3
        high_zero, close = wires["high_zero"] == 1, wires["close"] == 1
        zero = all_of(high == 0, not_(borrow))
        terms = [
            implies(borrow, all_of(uge(low, 256 - width), high != 0)),
            implies(borrow, wires["predecessor"] == high - 1) if width == 1 else boolean(True),
            implies(any_of(halves_zero, high_zero, close), zero),
            implies(close, ult(low, 2 * near)),
            implies(all_of(zero, not_(halves_zero)), uge(low, 256 - 2 * width)),
            implies(all_of(zero, not_(high_zero)), uge(low, 256 - 3 * width)),
            implies(all_of(zero, not_(close)), uge(low, near)),
        ]
        if config.ernd:
            # Upper bound: the largest value of ECOUNT, less one.
            terms.append(slt(wires["ecount_minus_1"], 255))
        if width > 1:
            terms.append(_numbers(wires, "numbering.lanes", "numbering.before__{}", range(width)))
            terms.append(_total(wires, "numbering.lanes", "numbering.count", range(width)))
            # Values prepared in the previous cycle. They are used only if there are operations.
            ready = [
                wires["settled_interval"] != 0,
                ule(_number(wires, "restart", -1), 0 if config.ernd else 255),
                *([ule(_number(wires, "reload", 1), 255)] if config.ernd else []),
            ]
            terms.append(any_of(wires["numbering.count"] == 0, all_of(*ready)))
        if width > 4:
            for name, group in (("lower", range(4)), ("upper", range(4, width))):
                terms.append(_total(wires, "numbering.lanes_in_groups", f"numbering.{name}", group))
                terms.append(_numbers(wires, "numbering.lanes_in_groups", "numbering.before_{}_in_group", group))
        return all_of(*terms)

    return holds


def _numbers(wires: Wires, lanes: str, numbers: str, group: range) -> Boolean:
    """Return whether the number of each lane is the number of operations in the lower lanes of its group."""
    return all_of(*(_total(wires, lanes, numbers.format(lane), range(group.start, lane)) for lane in group))


def _total(wires: Wires, lanes: str, number: str, group: range) -> Boolean:
    """Return whether the number is the number of operations in these lanes."""
    width = wires[number].width
    ones = [zero_extend(width - 1, extract(lane, lane, wires[lanes])) for lane in group]
    return wires[number] == reduce(operator.add, ones, constant(0, width))


def _number(wires: Wires, name: str, bias: int) -> BitVector:
    """Return the random number from which a register was computed: its value plus the operations and `bias`."""
    difference, count = wires[name], wires["numbering.count"]
    return difference + zero_extend(difference.width - count.width, count) + bias


def prove(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that each cycle matches the reference, under the invariant. `system` is an `IntervalCounter` of `config`.

    The invariant and the reset have separate proofs.
    """
    counting = 1 if config.count_delay else 0
    selections = [f"selected__{index}" for index in range(config.selections_per_cycle)]
    latency = {"draw": 0, "pmsicr": 1} | dict.fromkeys(selections, config.answer_latency - config.count_delay)
    settled = ("write", "wdata", "pmsicr", "lanes", "population")

    def running(wires: Wires) -> Boolean:
        return all_of(invariant(config)(wires), wires["rst"] == 0)

    return follows(
        system,
        cycle(config),
        # With a delay, `rst` may be asserted in the cycle before the counting cycle.
        assuming=invariant(config) if counting else running,
        latency={name: counting + cycles for name, cycles in latency.items()},
        argument_latency=dict.fromkeys(settled, counting),
        assuming_between=running,
        wire_names={"lanes": _COUNTED},
        split={"pmsicr": "population"},
    )


def prove_delay(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that the operations counted in a cycle are those that passed `count_delay` cycles before, if enabled."""

    def delayed(*cycles: Wires) -> Boolean:
        *before, counting = cycles
        running = (wires["rst"] == 0 for wires in before)
        passed, none = cycles[0], constant(0, config.ops_per_cycle)
        expected = if_else(passed["enabled"] == 1, passed["operations"], none)
        return implies(all_of(*running), counting[_COUNTED] == expected)

    return always(system, delayed, cycles=config.count_delay + 1)


def prove_spaced_draws(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that random numbers are not used in successive cycles.

    In the cycle after its use, the random number that is prepared for the counter is still the used one.
    """

    def spaced(now: Wires, then: Wires) -> Boolean:
        used = all_of(invariant(config)(now), now["draw"] == 1, now["rst"] == 0)
        return implies(used, then["draw"] == 0)

    return always(system, spaced)


@cache
def _system(config: SPUConfig) -> Transition:
    return transition(IntervalCounter(config))


def _selects(wires: Wires) -> Boolean:
    return wires["selected__0"] != 0


def _covers(config: SPUConfig) -> Iterator[tuple[str, Invariant, Invariant]]:
    """Yield name, goal and assumption for each cycle."""
    yield "selected, RND = 0", _selects, lambda wires: wires["rnd"] == 0
    if config.ernd:
        # Software writes only zero to ECOUNT, so the random number determines the selection.
        def drawn(wires: Wires) -> Boolean:
            return all_of(wires["rnd"] == 1, extract(_ECOUNT.lsb + 7, _ECOUNT.lsb, wires["wdata"]) == 0)

        yield "selected, ERnd, random 0", _selects, lambda wires: all_of(drawn(wires), wires["random"] == 0)
        yield "selected, ERnd, ECOUNT", _selects, lambda wires: all_of(drawn(wires), wires["random"] == 3)
    else:
        yield "selected, RND = 1", _selects, lambda wires: wires["rnd"] == 1
        yield (
            "COUNT reloaded with a random number",
            lambda wires: wires["pmsicr"] == 0x5A5,
            lambda wires: all_of(wires["rnd"] == 1, wires["interval"] == 5, wires["wdata"] == 0),
        )
    if config.selections_per_cycle == 2:
        yield "two selected in one cycle", lambda wires: wires["selected__1"] != 0, lambda wires: wires["rnd"] == 1
    yield (
        "operations pass while a borrow makes the upper part zero",
        lambda wires: all_of(wires["borrow"] == 1, wires["high"] == 1, wires["population"] != 0),
        lambda wires: boolean(True),
    )
    for index in range(config.selections_per_cycle):
        for lane in range(index, config.ops_per_cycle):
            yield (
                f"selection {index} in lane {lane}",
                lambda wires, index=index, lane=lane: wires[f"selected__{index}"] == 1 << lane,
                lambda wires: boolean(True),
            )


def cover(config: SPUConfig, system: Transition) -> Verdict:
    """Reach every goal."""
    return reach_all(system, _covers(config), cycles=10)


def proofs() -> Iterator[Proof]:
    """Yield the proofs, for each number of lanes, with and without FEAT_SPE_ERnd. Later proofs use earlier ones."""
    for width in WIDTHS:
        for ernd in (False, True):
            config = configured(width, ernd=ernd)

            proof = ProvedBlock("interval", config, _system).proof
            yield proof(
                "the parts of COUNT, the lanes and their numbers are consistent",
                "induction",
                lambda config, system: inductive(system, invariant(config)),
            )
            yield proof("one cycle of reset restores the initial state", "induction", lambda _, system: resets(system))
            yield proof(
                "the counted operations are those that passed count_delay cycles before", "induction", prove_delay
            )
            yield proof("random numbers are not used in successive cycles", "induction", prove_spaced_draws)
            yield proof("PMSICR_EL1, draw and selected match the reference", "reference", prove)
            yield proof("cover: each mode, each lane, two selections in a cycle", "bounded search", cover)
