"""The interval counter: every cycle is a step of `reference.sampling`, for ever."""

from collections.abc import Iterator, Mapping
from functools import cache

import z3

from spurtle.interval import IntervalCounter
from spurtle_sim.reference import sampling

from ..induction import Wires, follows, inductive, reach
from ..proof import Proof, Verdict
from ..transition import Transition, transition

__all__ = ["invariant", "proofs", "prove"]


def cycle(rst: int, write: int, wdata: int, operation: int, interval: int, count: int) -> Mapping[str, int]:
    """What one cycle does to PMSICR_EL1.COUNT as software reads it, and whether its operation is selected."""
    if rst:
        return {"count": 0, "selected": 0}
    if write:
        return {"count": wdata, "selected": 0}
    if operation:
        advanced, selected = sampling.advance(count, interval)
        return {"count": advanced, "selected": selected}
    return {"count": count, "selected": 0}


def invariant(wires: Wires) -> z3.BoolRef:
    """Between `low`, `high` and what is remembered of them.

    `high_zero` speaks of the upper part. It may hold back for the cycle after a borrow has made that zero, when `low`
    is still far from one. A borrow is owed only just after `low` wrapped, to an upper part above 0.
    """
    low, high = wires["low"], wires["high"]
    high_zero, borrow = wires["high_zero"] == 1, wires["borrow"] == 1
    return z3.And(
        z3.Implies(high_zero, high == 0),
        z3.Implies(z3.And(high == 0, z3.Not(high_zero)), z3.UGE(low, 0xFE)),
        z3.Implies(borrow, z3.And(low == 0xFF, high != 0)),
    )


COVERS = {
    "an operation is selected": lambda wires: wires["selected"] == 1,
    "an operation reloads COUNT": lambda wires: z3.And(
        wires["operation"] == 1, wires["count"] == 0, wires["interval"] == 5
    ),
    "an operation passes while a borrow is owed": lambda wires: z3.And(wires["borrow"] == 1, wires["operation"] == 1),
    "a borrow makes the upper part zero": lambda wires: z3.And(wires["borrow"] == 1, wires["high"] == 1),
}


@cache
def _system() -> Transition:
    return transition(IntervalCounter())


def prove(system: Transition) -> Verdict:
    """`system` is an `IntervalCounter`. The invariant has to be proved as well."""
    return follows(system, cycle, assuming=invariant)


def proofs() -> Iterator[Proof]:
    """In the order in which they lean on each other."""
    block, config = "interval", "-"
    yield Proof("the two parts of COUNT agree", block, config, "induction", lambda: inductive(_system(), invariant))
    yield Proof(
        "COUNT and selected follow the reference", block, config, "reference",
        lambda: prove(_system()),
    )  # fmt: skip
    for name, goal in COVERS.items():
        yield Proof(
            f"cover: {name}", block, config, "bounded search", lambda goal=goal: reach(_system(), goal, cycles=8)
        )
