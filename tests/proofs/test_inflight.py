"""The proofs of the slots find what is wrong."""

from dataclasses import replace
from functools import partial

import pytest
from amaranth.hdl import Signal
from amaranth.lib.fifo import SyncFIFO

from configurations import FEATURES
from formal.engine.induction import inductive, resets
from formal.engine.proof import Result
from formal.engine.transition import transition
from formal.inflight import inflight, latencies
from formal.sampling import interval
from formal.spu import spu
from spurtle.gateware import inflight as inflight_rtl
from spurtle.gateware.slots import Allocation
from tests.support.proofs import FaultMixin, WrongCircuit, check_faults
from tests.support.tiers import tiers

SEVERAL = replace(interval.configured(2, ernd=True), name="several", slots=3)


@pytest.mark.parametrize("count", tiers(fast=[2], full=[11]))
def test_seeded_faults_of_the_allocation_fail(count: int) -> None:
    check_faults(
        lambda: Allocation(SEVERAL),
        [partial(inflight.prove_allocation, SEVERAL)],
        count=count,
        assuming=inflight.selections(SEVERAL),
    )


class Follows(FaultMixin, inflight_rtl.Slot):
    """Goes on following the PE's state."""

    def add_fault(self, m):
        m.d.sync += self.start.eq(self.incoming)


class Early(FaultMixin, inflight_rtl.Slot):
    """Keeps the PE's state of the cycle before."""

    def add_fault(self, m):
        with m.If(self.allocate):
            m.d.sync += self.start.eq(self.start)


class Forgets(FaultMixin, inflight_rtl.Slot):
    """Is not told that the buffer did not run before it was given its operation."""

    def add_fault(self, m):
        with m.If(self.allocate):
            m.d.sync += self.drop.eq(~self.running)


class CountsOn(FaultMixin, inflight_rtl.Slot):
    """Counts waits for translations of an operation that has completed."""

    def add_fault(self, m):
        with m.If(self.in_flight & self.translating):
            m.d.sync += self.translation.eq(self.translation + 1)


class Hoards(FaultMixin, SyncFIFO):
    """Does not count what is taken out."""

    def add_fault(self, m):
        m.d.sync += self.level.eq(self.level + (self.w_en & self.w_rdy))


@pytest.mark.full
def test_a_slot_whose_start_state_changes_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inflight_rtl, "Slot", Follows)
    WrongCircuit(inflight_rtl.InFlight, SEVERAL, inflight.prove_slots).check()


def test_a_counter_that_does_not_stop_at_completion_fails() -> None:
    WrongCircuit(CountsOn, SEVERAL, latencies.prove_latencies).check()


@pytest.mark.full
def test_a_queue_that_keeps_removed_entries_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inflight_rtl, "SyncFIFO", Hoards)
    system = transition(inflight_rtl.InFlight(SEVERAL))
    assert "a cycle violates it" in inductive(system, inflight.queue(SEVERAL)).evidence
    assert "a cycle violates it" in inflight.prove_order(SEVERAL, system).evidence


@pytest.mark.parametrize("wrong", tiers(fast=[Early], full=[Forgets]))
def test_a_slot_that_captures_a_wrong_start_state_fails(
    wrong: type[inflight_rtl.Slot], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inflight_rtl, "Slot", wrong)
    WrongCircuit(inflight_rtl.InFlight, SEVERAL, inflight.prove_captures).check()


class Late(inflight_rtl.InFlight):
    """Takes the offset of the cycle after off the system counter."""

    def _subtract_offset(self, m, start):
        shifted = Signal.like(start)
        m.d.comb += [shifted.eq(start), shifted.timestamp.eq(start.timestamp - self.offset)]
        return shifted


class Stays(inflight_rtl.InFlight):
    """Takes no offset off."""

    def _subtract_offset(self, m, start):
        return start


@pytest.mark.parametrize("wrong", tiers(fast=[Late], full=[Stays]))
def test_a_missing_or_late_offset_fails(wrong: type[inflight_rtl.InFlight]) -> None:
    config = FEATURES["minimal_el2"]
    assert inflight.prove_captures(config, transition(inflight_rtl.InFlight(config))).result is Result.PASS
    WrongCircuit(wrong, config, inflight.prove_captures).check()


@pytest.mark.full
def test_a_start_state_of_another_cycle_fails() -> None:
    # Eight lanes are answered a cycle later than two.
    later = replace(SEVERAL, ops_per_cycle=8)
    assert "a cycle violates it" in inflight.prove_captures(later, transition(inflight_rtl.InFlight(SEVERAL))).evidence


def test_memories_are_not_reset() -> None:
    system = transition(inflight_rtl.InFlight(SEVERAL))
    words = [name.removeprefix("inflight.") for name in spu.memories(SEVERAL)]
    assert resets(system, retained=words).result is Result.PASS
    for forgotten in (words[0], words[-1]):
        assert "is not reset" in resets(system, retained=[word for word in words if word != forgotten]).evidence
