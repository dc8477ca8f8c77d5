"""The proofs of the interval counter fail for wrong circuits and wrong references."""

from collections.abc import Callable
from typing import Any

import pytest

from formal.engine.induction import inductive, resets
from formal.engine.proof import Result, Verdict
from formal.engine.transition import Transition, transition
from formal.sampling import forward, interval
from spurtle.gateware.interval import IntervalCounter
from spurtle_sim.model import sampling
from tests.support.proofs import FaultMixin, check_faults
from tests.support.tiers import tiers

LANES = interval.configured(2, ernd=True)
"""Configuration with several lanes, their numbering, both counters, and two selections in a cycle."""


def test_a_wrong_reference_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    right = sampling.advance

    def wrong(count: int, ecount: int, **settings: Any) -> tuple[int, int, bool, bool]:
        *state, selected, _ = right(count, ecount, **settings)
        return (*state, selected, count == 2)

    monkeypatch.setattr(sampling, "advance", wrong)
    evidence = interval.prove(LANES, transition(IntervalCounter(LANES))).evidence
    assert "expected  draw = 0x" in evidence
    assert "got       draw = 0x" in evidence


@pytest.mark.parametrize("count", tiers(full=[4], long=[16]))
def test_seeded_faults_of_the_interval_counter_fail(count: int) -> None:
    proofs: list[Callable[[Transition], Verdict]] = [
        lambda system: inductive(system, interval.invariant(LANES)),
        lambda system: interval.prove_delay(LANES, system),
        lambda system: interval.prove(LANES, system),
        resets,
    ]
    check_faults(lambda: IntervalCounter(LANES), proofs, count=count, assuming=interval.invariant(LANES))


class DrawsOnWrite(FaultMixin, IntervalCounter):
    """A write to PMSICR_EL1 uses a random number, so that numbers can be used in successive cycles."""

    def add_fault(self, m):
        with m.If(self.write):
            m.d.comb += self.draw.eq(1)


def test_random_numbers_in_successive_cycles_fail() -> None:
    assert interval.prove_spaced_draws(LANES, transition(IntervalCounter(LANES))).result is Result.PASS
    assert interval.prove_spaced_draws(LANES, transition(DrawsOnWrite(LANES))).result is Result.FAIL


class ForgetsAnOperation(FaultMixin, IntervalCounter):
    """Operations of some cycles are counted, and not reported in `population`."""

    def add_fault(self, m):
        with m.If(self.pmsicr.COUNT[:8] == 0x80):
            m.d.comb += self.population.eq(0)


class DrawsEarly(FaultMixin, IntervalCounter):
    """A random number is used before the interval ends."""

    def add_fault(self, m):
        with m.If((self.pmsicr.COUNT == 300) & ~self.write):
            m.d.comb += self.draw.eq(1)


@pytest.mark.full
def test_steps_of_many_operations() -> None:
    """Each proof about them fails for one of two faults, which occur only long after operations were counted."""
    found = {}
    for circuit in IntervalCounter, ForgetsAnOperation, DrawsEarly:
        system = forward.watched(LANES, transition(circuit(LANES)))
        verdicts = inductive(system, forward.invariant(LANES)), forward.prove_quiet(LANES, system)
        found[circuit] = [verdict.result for verdict in verdicts]
    assert found[IntervalCounter] == [Result.PASS, Result.PASS]
    assert found[ForgetsAnOperation][0] is Result.FAIL
    assert found[DrawsEarly] == [Result.PASS, Result.FAIL]
