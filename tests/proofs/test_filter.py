"""The proofs of the filter fail for wrong circuits and wrong references."""

from dataclasses import replace
from functools import partial

import pytest

from configurations import FEATURES
from formal.engine.proof import Result
from formal.engine.transition import Transition, transition
from formal.record import filter as filter_
from formal.record import filter_verdict, record
from formal.record.filter_verdict import FilterVerdict
from spurtle.arch import PMSVer
from spurtle.config import CONFIGS, UnpredictableFilter
from spurtle.gateware.filter import Filter
from spurtle.gateware.record import RecordBuilder
from spurtle_sim.model import filtering
from tests.support.proofs import FaultMixin, WrongCircuit, check_faults
from tests.support.tiers import tiers

EVERY = replace(FEATURES["minimal_fds"], name="every", version=PMSVer.SPE_V1P4, eft=True, fpf=True)
"""Configuration with every filter, and few events and facts."""


@pytest.fixture(scope="module")
def circuit() -> Transition:
    return transition(FilterVerdict(EVERY))


def test_a_wrong_reference_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    config = CONFIGS["minimal"]
    monkeypatch.setattr(
        filtering, "type_flags", lambda config, facts: facts.store << 2 | facts.load << 1 | facts.branch
    )
    system = transition(FilterVerdict(config))
    verdict = filter_.prove(config, system)
    assert verdict.result is Result.FAIL
    assert "expected  collect = 0x" in verdict.evidence
    assert "expected  feed_br = 0x" in filter_.prove_feed(config, system).evidence


@pytest.mark.parametrize("name", ["by_type", "by_event", "by_inverted_event", "by_latency", "by_data_source"])
def test_a_missing_filter_in_the_reference_fails(
    name: str, monkeypatch: pytest.MonkeyPatch, circuit: Transition
) -> None:
    monkeypatch.setattr(filtering, name, lambda config, registers, sample: 1)
    assert filter_.prove(EVERY, circuit).result is Result.FAIL


@pytest.mark.parametrize("count", tiers(full=[2], long=[10]))
def test_seeded_faults_of_the_filter_fail(count: int) -> None:
    check_faults(
        lambda: FilterVerdict(EVERY),
        [partial(filter_.prove_feed, EVERY), partial(filter_.prove, EVERY)],
        count=count,
        assuming=filter_.registers(EVERY),
    )


class AcceptsType(FaultMixin, Filter):
    """A sample of an operation type selected by FT is never rejected."""

    def add_fault(self, m):
        with m.If(self.pmsfcr.FT & self.feed.op):
            m.d.comb += self.rejected.eq(0)


class RejectsNothing(FaultMixin, Filter):
    """No sample is rejected."""

    def add_fault(self, m):
        m.d.comb += self.rejected.eq(0)


def test_a_filter_that_accepts_more_with_another_enabled_fails(
    monkeypatch: pytest.MonkeyPatch, circuit: Transition
) -> None:
    assert filter_.prove_monotone(EVERY, circuit).result is Result.PASS
    monkeypatch.setattr(filter_verdict, "Filter", AcceptsType)
    WrongCircuit(FilterVerdict, EVERY, filter_.prove_monotone).check()


def test_a_filter_that_rejects_nothing_is_not_covered(monkeypatch: pytest.MonkeyPatch, circuit: Transition) -> None:
    assert filter_.cover(EVERY, circuit).result is Result.PASS
    monkeypatch.setattr(filter_verdict, "Filter", RejectsNothing)
    assert "FT alone rejects" in filter_.cover(EVERY, transition(FilterVerdict(EVERY))).evidence


def test_only_filters_without_effect_disable_each_other(circuit: Transition) -> None:
    assert filter_.cover_exception(EVERY, circuit).result is Result.PASS
    discards = replace(EVERY, unpredictable_filter=UnpredictableFilter.DISCARD)
    system = transition(FilterVerdict(discards))
    assert filter_.prove_monotone(discards, system).result is Result.PASS
    assert filter_.cover_exception(discards, system).result is Result.FAIL
    # Without the exception, the proof fails for the circuit whose filters have no effect.
    assert filter_.prove_monotone(discards, circuit).result is Result.FAIL


class ReadsUnimplementedFact(FaultMixin, Filter):
    """The filter reads a fact of an unimplemented feature."""

    def add_fault(self, m):
        with m.If(self.sample.operation.facts.memory_copy):
            m.d.comb += self.feed.st.eq(1)


@pytest.mark.full
def test_facts_of_unimplemented_features_that_have_an_effect_fail(
    monkeypatch: pytest.MonkeyPatch, circuit: Transition
) -> None:
    assert filter_.prove_ignored(EVERY, circuit).result is Result.PASS
    monkeypatch.setattr(filter_verdict, "Filter", ReadsUnimplementedFact)
    WrongCircuit(FilterVerdict, EVERY, filter_.prove_ignored).check()

    # The circuit has the Guarded control stack, the configuration of the proof has not.
    config, without = FEATURES["minimal_gcs"], replace(FEATURES["minimal_gcs"], name="without", gcs=False)
    assert record.prove_ignored(config, transition(RecordBuilder(config))).result is Result.PASS
    assert "a cycle violates it" in record.prove_ignored(without, transition(RecordBuilder(config))).evidence
