"""Completion: the record of a sample is requested, or the sample is dropped for a reason."""

from collections.abc import Iterator
from functools import cache

from configurations import distinct
from spurtle.config import CONFIGS, SPUConfig
from spurtle.gateware.completion import Completion, CompletionState

from ..engine.cover import reach
from ..engine.induction import always, inductive
from ..engine.proof import Proof, ProvedBlock, Verdict
from ..engine.streams import stable, stalled
from ..engine.terms import Boolean, all_of, any_of, constant, if_else, implies, not_, ule
from ..engine.transition import Transition, Wires, transition

__all__ = ["proofs", "prove", "prove_waiting", "waiting"]


def waiting(wires: Wires) -> Boolean:
    """Return whether a sample is offered in each state in which a verdict or a record is pending.

    These are the states of `CompletionState` after FILTER.
    """
    state = wires["completion_state"]
    return all_of(ule(state, CompletionState.RECORD), implies(state != CompletionState.FILTER, wires["i__valid"] == 1))


def prove_waiting(system: Transition) -> Verdict:
    """Prove `waiting`, if the input keeps the stream contract. `system` is a `Completion`."""
    return inductive(system, waiting, contract=lambda now, then: stable("i", now, then))


def _decided(first: Wires, second: Wires, third: Wires) -> Boolean:
    """Return whether the third of three cycles is correct, given the two before."""
    no_reset = all_of(first["rst"] == 0, second["rst"] == 0)
    streams = all_of(stable("i", first, second), stable("i", second, third))
    # The filter's verdict on a cycle is used in the next cycle.
    recorded = all_of(first["rejected"] == 0, second["drop"] == 0, second["discard"] == 0)
    decided = all_of(stalled("i", first), stalled("i", second), second["o__valid"] == 0)
    begins = all_of(third["o__valid"] == 1, second["o__valid"] == 0)
    accepts = third["i__ready"] == 1
    sends = all_of(third["o__valid"] == 1, third["o__ready"] == 1)
    return implies(
        all_of(no_reset, streams),
        all_of(
            # A record is requested only for a sample that passed, is not to be dropped, and was stalled for two cycles.
            implies(begins, all_of(recorded, stalled("i", first), stalled("i", second))),
            # The record is requested for the sample at `i`, which was stalled in the cycle before.
            implies(
                third["o__valid"] == 1,
                all_of(stalled("i", second), third["o__payload"] == third["i__payload"], third["i__valid"] == 1),
            ),
            implies(stalled("o", second), third["o__valid"] == 1),
            # A sample is accepted when its record is sent, or in the cycle after the verdict that it has none, and at
            # no other time.
            implies(accepts, any_of(sends, all_of(third["o__valid"] == 0, decided, not_(recorded)))),
            implies(sends, accepts),
            # A sample waits only for its record.
            implies(all_of(stalled("i", first), stalled("i", second)), any_of(accepts, third["o__valid"] == 1)),
            # Each sample is reported once, in the cycle after it arrived, whether or not a record is requested, with
            # the events of the cycle in which it arrived.
            (third["fed"] == 1) == all_of(second["i__valid"] == 1, not_(stalled("i", first))),
            (third["filtrated"] == 1) == all_of(third["fed"] == 1, second["rejected"] == 0),
            third["fed_as"] == if_else(third["fed"] == 1, second["feed"], constant(0, second["feed"].width)),
        ),
    )


def prove(system: Transition) -> Verdict:
    """Prove which samples get a record, and the events. `system` is a `Completion`."""
    return always(system, _decided, cycles=3, assuming=waiting)


def _passes_without_record(wires: Wires) -> Boolean:
    """Return whether a sample that passed the filter is accepted without a record, while `drop` is 0."""
    state, passed = wires["completion_state"], wires["rejections"] == 0
    return all_of(state == CompletionState.DROP, wires["i__ready"] == 1, passed, wires["drop"] == 0)


@cache
def _system(config: SPUConfig) -> Transition:
    return transition(Completion(config))


def proofs() -> Iterator[Proof]:
    """Yield the proofs, for each configuration with different filters or events.

    The width of a sample makes no difference.
    """
    for config in distinct(CONFIGS.values(), "filters feed_events"):
        proof = ProvedBlock("completion", config, _system).proof
        yield proof(
            "a sample is offered while a verdict or a record is pending",
            "induction",
            lambda _, system: prove_waiting(system),
        )
        yield proof(
            "a record is requested exactly for samples that pass the filter and are not dropped",
            "three cycles",
            lambda _, system: prove(system),
        )
        yield proof(
            "cover: a record is requested and stalled",
            "bounded search",
            lambda _, system: reach(system, lambda wires: stalled("o", wires), cycles=5),
        )
        yield proof(
            "cover: a sample passes in Discard mode",
            "bounded search",
            lambda _, system: reach(system, _passes_without_record, cycles=5),
        )
