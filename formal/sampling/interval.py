"""The interval counter: every cycle is a step of `model.sampling` for each of its operations, for ever."""

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
    implies,
    not_,
    slt,
    uge,
    ule,
    ult,
    zero_extend,
)
from ..engine.transition import Transition, Wires, transition

__all__ = ["configured", "cover", "invariant", "proofs", "prove", "prove_delay", "prove_fresh"]

WIDTHS = (1, 2, 4, 8)

_COUNT = PMSICR_EL1.fields["COUNT"]
_ECOUNT = PMSICR_EL1.fields["ECOUNT"]


def configured(width: int, *, ernd: bool) -> SPUConfig:
    """So many lanes, with FEAT_SPE_ERnd or without. Nothing else of a configuration matters to the interval counter."""
    return replace(CONFIGS["minimal"], name=f"lanes_{width}{'_ernd' * ernd}", ops_per_cycle=width, ernd=ernd)


def cycle(config: SPUConfig) -> Reference:
    """What one cycle does to PMSICR_EL1, as software reads it, and which of the operations counted in it are selected.

    A second random number in a cycle, or a selection more than there are ports for, is a result that no wire can show.
    """
    width = config.ops_per_cycle
    writable = config.writable(PMSICR_EL1)
    nowhere = width + 1

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
                first = nowhere
        if drawn:
            draws = 1 if draws == 0 else 2
        return count, ecount, first, second, draws

    bits = nowhere.bit_length()
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
    """Lane of the operation with this number, counted from 1, as one bit; none for 0, one too high if it is nowhere."""
    lane = (number == width + 1) << width
    so_far = 0
    for place in range(width):
        here = lanes >> place & 1
        so_far = so_far + here
        lane = lane + (here * (number == so_far) << place)
    return lane


def invariant(config: SPUConfig) -> Invariant:
    """Between the parts of COUNT and what is remembered of them, and between lanes and numbers.

    A borrow is owed only just after `low` wrapped, to an upper part above 0. What is known of the upper part follows
    it in steps, in each of which `low` comes down by at most one for each lane; it is never wrong about a zero, and
    complete long before `low` is where it matters.
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
            implies(any_of(halves_zero, high_zero, close), zero),
            implies(close, ult(low, 2 * near)),
            implies(all_of(zero, not_(halves_zero)), uge(low, 256 - 2 * width)),
            implies(all_of(zero, not_(high_zero)), uge(low, 256 - 3 * width)),
            implies(all_of(zero, not_(close)), uge(low, near)),
        ]
        if config.ernd:
            # One less than ECOUNT can be.
            terms.append(slt(wires["spare"], 255))
        if width > 1:
            terms.append(_numbers(wires, "numbering.lanes", "numbering.before__{}", range(width)))
            terms.append(_total(wires, "numbering.lanes", "numbering.count", range(width)))
            # What was made ready in the cycle before, if there are operations for it.
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
    """The number of each lane counts the lanes of its group below it."""
    return all_of(*(_total(wires, lanes, numbers.format(lane), range(group.start, lane)) for lane in group))


def _total(wires: Wires, lanes: str, number: str, group: range) -> Boolean:
    """The number counts the operations in these lanes."""
    width = wires[number].width
    ones = [zero_extend(width - 1, extract(lane, lane, wires[lanes])) for lane in group]
    return wires[number] == reduce(operator.add, ones, constant(0, width))


def _number(wires: Wires, name: str, bias: int) -> BitVector:
    """The number that the register holds less the operations and `bias`."""
    less, count = wires[name], wires["numbering.count"]
    return less + zero_extend(less.width - count.width, count) + bias


def prove(config: SPUConfig, system: Transition) -> Verdict:
    """`system` is an `IntervalCounter` of `config`. The invariant and the reset have to be proved as well."""
    counting = 1 if config.count_delay else 0
    selections = [f"selected__{index}" for index in range(config.selections_per_cycle)]
    latency = {"draw": 0, "pmsicr": 1} | dict.fromkeys(selections, config.answer_latency - config.count_delay)
    settled = ("write", "wdata", "pmsicr", "lanes", "population")

    def running(wires: Wires) -> Boolean:
        return all_of(invariant(config)(wires), wires["rst"] == 0)

    return follows(
        system,
        cycle(config),
        # The cycle before that of counting may be one of reset.
        assuming=invariant(config) if counting else running,
        latency={name: counting + cycles for name, cycles in latency.items()},
        argument_latency=dict.fromkeys(settled, counting),
        assuming_between=running,
        wire_names={"lanes": _counted(config)},
        split={"pmsicr": "population"},
    )


def _counted(config: SPUConfig) -> str:
    """Lanes of the operations that are counted in this cycle."""
    return "numbering.lanes" if config.count_delay else "operations"


def prove_delay(config: SPUConfig, system: Transition) -> Verdict:
    """What is counted in a cycle are the operations that passed `count_delay` cycles before."""

    def delayed(*cycles: Wires) -> Boolean:
        *before, counting = cycles
        running = (wires["rst"] == 0 for wires in before)
        return implies(all_of(*running), counting[_counted(config)] == cycles[0]["operations"])

    return always(system, delayed, cycles=config.count_delay + 1)


def prove_fresh(config: SPUConfig, system: Transition) -> Verdict:
    """No random number is used in the cycle after another was, when it is not known yet that this one is gone."""

    def fresh(now: Wires, then: Wires) -> Boolean:
        used = all_of(invariant(config)(now), now["draw"] == 1, now["rst"] == 0)
        return implies(used, then["draw"] == 0)

    return always(system, fresh)


@cache
def _system(config: SPUConfig) -> Transition:
    return transition(IntervalCounter(config))


def _selects(wires: Wires) -> Boolean:
    return wires["selected__0"] != 0


def _covers(config: SPUConfig) -> Iterator[tuple[str, Invariant, Invariant]]:
    """What has to be reached, and by what way: name, goal, what holds in each cycle."""
    yield "selected, RND = 0", _selects, lambda wires: wires["rnd"] == 0
    if config.ernd:
        # Software's own ECOUNT left out, it is the random number that selects.
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
    """Every goal; the depth is that of the farthest."""
    return reach_all(system, _covers(config), cycles=10)


def proofs() -> Iterator[Proof]:
    """For each width, without FEAT_SPE_ERnd and with it, in the order in which they lean on each other."""
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
            yield proof("random numbers are not used in successive cycles", "induction", prove_fresh)
            yield proof("PMSICR_EL1, draw and selected match the reference", "reference", prove)
            yield proof("cover: each mode, each lane, two selections in a cycle", "bounded search", cover)
