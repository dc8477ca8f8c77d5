"""Completion: a sample's record is made, or there is a reason, and its sample waits for either."""

from collections.abc import Iterator
from functools import cache

from configurations import distinct
from spurtle.config import CONFIGS, SPUConfig
from spurtle.gateware.completion import Completion

from ..engine.cover import reach
from ..engine.induction import always, inductive
from ..engine.proof import Proof, ProvedBlock, Verdict
from ..engine.streams import stable, stalled
from ..engine.terms import Boolean, all_of, any_of, implies, not_, ule
from ..engine.transition import Transition, Wires, transition

__all__ = ["proofs", "prove", "prove_waiting", "waiting"]


def waiting(wires: Wires) -> Boolean:
    """Where there is a verdict to come or a record to make, a sample is offered. The states are numbered as written."""
    return all_of(ule(wires["completion_state"], 2), implies(wires["completion_state"] != 0, wires["i__valid"] == 1))


def prove_waiting(system: Transition) -> Verdict:
    """`system` is a `Completion` that is fed with a stream."""
    return inductive(system, waiting, contract=lambda now, then: stable("i", now, then))


def _decided(first: Wires, second: Wires, third: Wires) -> Boolean:
    """Every third cycle, and what led to it in the two before."""
    no_reset = all_of(first["rst"] == 0, second["rst"] == 0)
    streams = all_of(stable("i", first, second), stable("i", second, third))
    # The verdict of one cycle counts in the next, and only if the buffer takes the record: in discard mode it does not.
    wanted = all_of(first["rejected"] == 0, second["drop"] == 0, second["writing"] == 1)
    passed = all_of(second["rejected"] == 0, third["drop"] == 0, third["writing"] == 1)
    begins = all_of(third["o__valid"] == 1, second["o__valid"] == 0)
    takes = third["i__ready"] == 1
    leaves = all_of(third["o__valid"] == 1, third["o__ready"] == 1)
    return implies(
        all_of(no_reset, streams),
        all_of(
            # Its record is asked for: it passed the filter and was wanted, and stood there in both cycles before.
            implies(begins, all_of(wanted, stalled("i", first), stalled("i", second))),
            # And it is still the sample at `i`, which stood there a cycle before.
            implies(
                third["o__valid"] == 1,
                all_of(stalled("i", second), third["o__payload"] == third["i__payload"], third["i__valid"] == 1),
            ),
            implies(stalled("o", second), third["o__valid"] == 1),
            # It is taken when its record leaves, or dropped by the same verdict, and at no other time.
            implies(takes, any_of(leaves, all_of(third["o__valid"] == 0, stalled("i", second), not_(passed)))),
            implies(leaves, takes),
            # It does not wait for anything but its record.
            implies(all_of(stalled("i", first), stalled("i", second)), any_of(takes, third["o__valid"] == 1)),
            # Each sample is told of once, when it comes, whether or not there is to be a record.
            (third["filtrated"] == 1) == all_of(second["fed"] == 1, second["rejected"] == 0),
            (third["fed"] == 1) == all_of(third["i__valid"] == 1, not_(stalled("i", second))),
        ),
    )


def prove(system: Transition) -> Verdict:
    """`system` is a `Completion`."""
    return always(system, _decided, cycles=3, assuming=waiting)


def _passes_by(wires: Wires) -> Boolean:
    """The sample passes the filter, its record is not unwanted, and is not made all the same."""
    taken = all_of(wires["i__valid"] == 1, wires["i__ready"] == 1, wires["o__valid"] == 0)
    return all_of(taken, wires["filtrated"] == 1, wires["drop"] == 0)


@cache
def _system(config: SPUConfig) -> Transition:
    return transition(Completion(config))


def proofs() -> Iterator[Proof]:
    """For each configuration that has other filters. What a sample is passes unchanged."""
    for config in distinct(CONFIGS.values(), "filters"):
        proof = ProvedBlock("completion", config, _system).proof
        yield proof(
            "a sample is offered while a verdict or a record is pending",
            "induction",
            lambda _, system: prove_waiting(system),
        )
        yield proof(
            "a record is requested exactly for the wanted samples that pass the filter",
            "three cycles",
            lambda _, system: prove(system),
        )
        yield proof(
            "cover: a record is requested and stalled",
            "bounded search",
            lambda _, system: reach(system, lambda wires: stalled("o", wires), cycles=5),
        )
        yield proof(
            "cover: a sample passes while the buffer writes no records",
            "bounded search",
            lambda _, system: reach(system, _passes_by, cycles=5),
        )
