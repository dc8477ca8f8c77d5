"""Steps of many operations: operations that neither end an interval nor are selected only decrement the counters.

Fast-forward of the compiled SPU relies on it: it subtracts a number of operations from PMSICR_EL1 in one step.
"""

from collections.abc import Iterator
from functools import cache, partial

from spurtle.arch import PMSICR_EL1
from spurtle.config import SPUConfig
from spurtle.gateware.interval import IntervalCounter

from ..engine.cover import reach_all
from ..engine.induction import Invariant, always, inductive
from ..engine.proof import Proof, ProvedBlock, Verdict
from ..engine.terms import (
    BitVector,
    Boolean,
    all_of,
    any_of,
    as_bits,
    boolean,
    extract,
    if_else,
    implies,
    not_,
    uge,
    ult,
    zero_extend,
)
from ..engine.transition import Transition, Wires, transition, with_history
from . import interval

__all__ = ["cover", "invariant", "proofs", "prove_quiet", "watched"]

_BITS = PMSICR_EL1.fields["COUNT"].width + 1
"""Width of a number of operations: COUNT and the operations of a cycle."""


def _part(pmsicr: BitVector, name: str) -> BitVector:
    """Return COUNT or ECOUNT, with `_BITS` bits."""
    field = PMSICR_EL1.fields[name]
    return zero_extend(_BITS - field.width, extract(field.lsb + field.width - 1, field.lsb, pmsicr))


def _random(config: SPUConfig, wires: Wires) -> BitVector:
    """Return RND, as it applies to the operations that are counted in this cycle."""
    return wires["settled_rnd" if config.count_delay else "rnd"]


def _decrements(config: SPUConfig, start: BitVector, random: BitVector) -> Boolean:
    """Return whether operations decrement ECOUNT."""
    return all_of(boolean(config.ernd), random == 1, _part(start, "ECOUNT") != 0)


def _within(config: SPUConfig, start: BitVector, random: BitVector, passed: BitVector) -> Boolean:
    """Return whether, from the value `start` of PMSICR_EL1, `passed` operations make neither counter zero."""
    by_ecount = _decrements(config, start, random)
    return all_of(ult(passed, _part(start, "COUNT")), any_of(not_(by_ecount), ult(passed, _part(start, "ECOUNT"))))


def _following(config: SPUConfig, wires: Wires) -> Wires:
    population = wires["population"]
    counted = zero_extend(_BITS - population.width, population)
    # Without a write, `wdata` has no effect. Its lowest bit selects the cycles from which operations are counted.
    begins = any_of(wires["quiet"] == 0, extract(0, 0, wires["wdata"]) == 1)
    start = if_else(begins, wires["pmsicr"], wires["start"])
    passed = if_else(begins, counted, wires["passed"] + counted)
    random = if_else(begins, _random(config, wires), wires["random_at_start"])
    quiet = all_of(
        wires["write"] == 0,
        wires["rst"] == 0,
        random == _random(config, wires),
        _within(config, start, random, passed),
    )
    return {"start": start, "passed": passed, "random_at_start": random, "quiet": as_bits(quiet)}


def watched(config: SPUConfig, system: Transition) -> Transition:
    """Return `system`, an `IntervalCounter` of `config`, with history registers.

    quiet : `passed` operations, of which none has made a counter zero, were counted since a cycle that an input selects
    start, random_at_start : PMSICR_EL1 and RND in that cycle, before its operations
    """
    widths = {"start": 64, "passed": _BITS, "random_at_start": 1, "quiet": 1}
    return with_history(system, widths, partial(_following, config), {"quiet": 0})


def invariant(config: SPUConfig) -> Invariant:
    """Return the invariant: after any number of such operations, the counters are decremented by that number."""

    def holds(wires: Wires) -> Boolean:
        start, passed, pmsicr = wires["start"], wires["passed"], wires["pmsicr"]
        random = wires["random_at_start"]
        ecount = _part(start, "ECOUNT")
        after = if_else(_decrements(config, start, random), ecount - passed, ecount)
        counted = all_of(
            _within(config, start, random, passed),
            _part(pmsicr, "COUNT") == _part(start, "COUNT") - passed,
            _part(pmsicr, "ECOUNT") == after,
        )
        return all_of(interval.invariant(config)(wires), implies(wires["quiet"] == 1, counted))

    return holds


def prove_quiet(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that none of these operations is selected or uses a random number. `system` is that of `watched`."""
    latency = config.answer_latency - config.count_delay

    def relation(*cycles: Wires) -> Boolean:
        now, then, last = cycles[0], cycles[1], cycles[latency]
        selected = (last[f"selected__{index}"] == 0 for index in range(config.selections_per_cycle))
        return implies(then["quiet"] == 1, all_of(now["draw"] == 0, *selected))

    return always(system, relation, cycles=latency + 1, assuming=invariant(config))


def _covers(config: SPUConfig) -> Iterator[tuple[str, Invariant, Invariant]]:
    """Yield name, goal and assumption for each cycle."""

    def unselected(wires: Wires) -> Boolean:
        return any_of(wires["write"] == 1, extract(0, 0, wires["wdata"]) == 0)

    def several(wires: Wires) -> Boolean:
        return all_of(wires["quiet"] == 1, uge(wires["passed"], 3 * config.ops_per_cycle))

    yield "several cycles with all lanes", several, unselected
    yield "a borrow", lambda wires: all_of(several(wires), wires["high"] == 4, wires["borrow"] == 1), unselected
    if config.ernd:
        yield (
            "both counters",
            lambda wires: all_of(several(wires), _decrements(config, wires["start"], wires["random_at_start"])),
            unselected,
        )


def cover(config: SPUConfig, system: Transition) -> Verdict:
    """Reach every goal."""
    return reach_all(system, _covers(config), cycles=10)


@cache
def _system(config: SPUConfig) -> Transition:
    return watched(config, transition(IntervalCounter(config)))


def proofs() -> Iterator[Proof]:
    """Yield the proofs, for each number of lanes, with and without FEAT_SPE_ERnd."""
    for width in interval.WIDTHS:
        for ernd in (False, True):
            proof = ProvedBlock("interval", interval.configured(width, ernd=ernd), _system).proof
            yield proof(
                "any number of operations before one is selected only decrement COUNT and ECOUNT by that number",
                "induction",
                lambda config, system: inductive(system, invariant(config)),
            )
            yield proof("none of them is selected or uses a random number", "induction", prove_quiet)
            yield proof("cover: such operations in several cycles", "bounded search", cover)
