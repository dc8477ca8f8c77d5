"""Cover checks find reachable states and no others."""

from formal.engine.cover import reach, satisfiable
from formal.engine.proof import Result, Verdict
from formal.engine.terms import all_of
from formal.engine.transition import Transition


def test_reach_finds_the_shortest_trace(subject: Transition) -> None:
    assert reach(subject, lambda wires: wires["value"] == 13, cycles=5) == Verdict(Result.PASS, 1)
    assert reach(subject, lambda wires: all_of(wires["value"] == 0, wires["zero"] == 0), cycles=5).result is Result.FAIL


def test_satisfiable_distinguishes_possible_and_impossible_relations(subject: Transition) -> None:
    assert satisfiable(subject, lambda now, then: all_of(now["value"] == 5, then["value"] == 4)).result is Result.PASS
    rising = satisfiable(subject, lambda now, then: all_of(now["load"] == 0, now["value"] == 5, then["value"] == 6))
    assert rising.result is Result.FAIL
