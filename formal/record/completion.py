"""Completion: a sample's record is made, or there is a reason, and its sample waits for either."""

from collections.abc import Iterator
from functools import cache

import z3

from spurtle.config import CONFIGS, SPUConfig
from spurtle.gateware.completion import Completion, CompletionState

from ..engine.features import distinct
from ..engine.induction import Wires, always, inductive, reach
from ..engine.proof import Proof, Verdict
from ..engine.streams import refused, steady
from ..engine.transition import Transition, transition

__all__ = ["proofs", "prove", "prove_waiting", "waiting"]


def waiting(wires: Wires) -> z3.BoolRef:
    """Where there is a verdict to come or a record to make, a sample is offered."""
    return z3.And(
        z3.ULE(wires["completion_state"], CompletionState.RECORD),
        z3.Implies(wires["completion_state"] != CompletionState.FILTER, wires["i__valid"] == 1),
    )


def prove_waiting(system: Transition) -> Verdict:
    """`system` is a `Completion` that is fed with a stream."""
    return inductive(system, waiting, contract=lambda now, then: steady("i", now, then))


def _decided(first: Wires, second: Wires, third: Wires) -> z3.BoolRef:
    """Every third cycle, and what led to it in the two before."""
    no_reset = z3.And(first["rst"] == 0, second["rst"] == 0)
    streams = z3.And(steady("i", first, second), steady("i", second, third))
    # The verdict of one cycle counts in the next, and only if the buffer takes the record: in discard mode it does not.
    wanted = z3.And(first["rejected"] == 0, second["unwanted"] == 0, second["writing"] == 1)
    passed = z3.And(second["rejected"] == 0, third["unwanted"] == 0, third["writing"] == 1)
    begins = z3.And(third["o__valid"] == 1, second["o__valid"] == 0)
    takes = third["i__ready"] == 1
    leaves = z3.And(third["o__valid"] == 1, third["o__ready"] == 1)
    return z3.Implies(
        z3.And(no_reset, streams),
        z3.And(
            # Its record is asked for: it passed the filter and was wanted, and stood there in both cycles before.
            z3.Implies(begins, z3.And(wanted, refused("i", first), refused("i", second))),
            # And it is still the sample at `i`, which stood there a cycle before.
            z3.Implies(
                third["o__valid"] == 1,
                z3.And(refused("i", second), third["o__payload"] == third["i__payload"], third["i__valid"] == 1),
            ),
            z3.Implies(refused("o", second), third["o__valid"] == 1),
            # It is taken when its record leaves, or dropped by the same verdict, and at no other time.
            z3.Implies(takes, z3.Or(leaves, z3.And(third["o__valid"] == 0, refused("i", second), z3.Not(passed)))),
            z3.Implies(leaves, takes),
            # It does not wait for anything but its record.
            z3.Implies(z3.And(refused("i", first), refused("i", second)), z3.Or(takes, third["o__valid"] == 1)),
            # Each sample is told of once, when it comes, whether or not there is to be a record.
            (third["filtrated"] == 1) == z3.And(second["fed"] == 1, second["rejected"] == 0),
            (third["fed"] == 1) == z3.And(third["i__valid"] == 1, z3.Not(refused("i", second))),
        ),
    )


def prove(system: Transition) -> Verdict:
    """`system` is a `Completion`."""
    return always(system, _decided, cycles=3, assuming=waiting)


def _passes_by(wires: Wires) -> z3.BoolRef:
    """The sample passes the filter, its record is not unwanted, and is not made all the same."""
    taken = z3.And(wires["i__valid"] == 1, wires["i__ready"] == 1, wires["o__valid"] == 0)
    return z3.And(taken, wires["filtrated"] == 1, wires["unwanted"] == 0)


@cache
def _system(config: SPUConfig) -> Transition:
    return transition(Completion(config))


def proofs() -> Iterator[Proof]:
    """For each configuration that has other filters. What a sample is passes unchanged."""
    for config in distinct(CONFIGS.values(), "filters"):

        def proof(name, method, prove, config=config):
            return Proof(name, "completion", config.name, method, lambda: prove(_system(config)))

        yield proof("a sample is there while something is to be done with it", "induction", prove_waiting)
        yield proof("a record for each sample that passes and is wanted, and for no other", "three cycles", prove)
        yield proof(
            "cover: a record is asked for, and waits",
            "bounded search",
            lambda system: reach(system, lambda wires: refused("o", wires), cycles=5),
        )
        yield proof(
            "cover: a sample passes, and the buffer writes none",
            "bounded search",
            lambda system: reach(system, _passes_by, cycles=5),
        )
