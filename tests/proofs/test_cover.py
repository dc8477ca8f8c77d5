"""Searches find what happens, and nothing else."""

from formal.engine.cover import happens, reach
from formal.engine.proof import Result, Verdict
from formal.engine.terms import all_of
from formal.engine.transition import Transition


def test_a_cover_is_reached_as_early_as_it_can_be(subject: Transition) -> None:
    assert reach(subject, lambda wires: wires["value"] == 13, cycles=5) == Verdict(Result.PASS, 1)
    assert reach(subject, lambda wires: all_of(wires["value"] == 0, wires["zero"] == 0), cycles=5).result is Result.FAIL


def test_what_happens_is_told_from_what_does_not(subject: Transition) -> None:
    assert happens(subject, lambda now, then: all_of(now["value"] == 5, then["value"] == 4)).result is Result.PASS
    risen = happens(subject, lambda now, then: all_of(now["load"] == 0, now["value"] == 5, then["value"] == 6))
    assert risen.result is Result.FAIL
