"""The proofs of the slots fail for wrong circuits."""

from dataclasses import replace
from functools import partial

import pytest
from amaranth.hdl import C, Mux, Signal
from amaranth.lib.wiring import Component

from configurations import FEATURES
from formal.engine.induction import inductive, resets
from formal.engine.proof import Result
from formal.engine.transition import transition
from formal.inflight import captures, inflight, latencies
from formal.sampling import interval
from formal.spu import spu
from spurtle.gateware import inflight as inflight_rtl
from spurtle.gateware.finish_order import FinishOrder
from spurtle.gateware.slots import Allocation
from tests.support.proofs import FaultMixin, WrongCircuit, check_faults
from tests.support.tiers import tiers

SEVERAL = replace(interval.configured(2, ernd=True), name="several", slots=3)


@pytest.mark.parametrize("count", tiers(fast=[2], full=[6]))
def test_seeded_faults_of_the_allocation_fail(count: int) -> None:
    check_faults(
        lambda: Allocation(SEVERAL),
        [partial(inflight.prove_allocation, SEVERAL)],
        count=count,
        assuming=inflight.selections(SEVERAL),
    )


class FollowsPE(FaultMixin, inflight_rtl.StartStates):
    """The start state follows the PE after the slot is granted."""

    def add_fault(self, m):
        words = m.submodules.words
        m.d.comb += [words.write_ports[0].en.eq(1), words.write_ports[0].addr.eq(words.read_ports[0].addr)]


class SharesWords(FaultMixin, inflight_rtl.StartStates):
    """The start state is written to the word with the number of the lowest free slot, which another slot can have."""

    def add_fault(self, m):
        for slot in reversed(range(SEVERAL.slots)):
            with m.If(self.free[slot]):
                m.d.comb += m.submodules.words.write_ports[0].addr.eq(slot)


class CapturesEarlier(FaultMixin, inflight_rtl.StartStates):
    """The slot captures the PE's state of the cycle before."""

    def add_fault(self, m):
        earlier = Signal.like(self.incoming)
        m.d.sync += earlier.eq(self.incoming)
        m.d.comb += m.submodules.words.write_ports[0].data.eq(earlier)


class ForgetsStops(FaultMixin, inflight_rtl.Slot):
    """`drop` is not set if the buffer did not run before the slot was granted."""

    def add_fault(self, m):
        with m.If(self.allocate):
            m.d.sync += self.drop.eq(~self.running)


class ReadsOther(FaultMixin, inflight_rtl.InFlight):
    """A sample has the start state of another slot."""

    def add_fault(self, m):
        m.d.comb += m.submodules.start_states.slot.eq(~m.submodules.order.first)


class CountsAfterCompletion(FaultMixin, inflight_rtl.Slot):
    """The translation latency counts after the operation has completed."""

    def add_fault(self, m):
        with m.If(self.in_flight & self.translating):
            m.d.sync += self.translation.eq(self.translation + 1)


class KeepsEntries(FaultMixin, FinishOrder):
    """The entries of the queue are not removed."""

    def add_fault(self, m):
        m.d.sync += self.present.eq(self.present | self.push)


@pytest.mark.parametrize("wrong", tiers(full=[FollowsPE, SharesWords]))
def test_a_slot_whose_start_state_changes_fails(
    wrong: type[inflight_rtl.StartStates], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inflight_rtl, "StartStates", wrong)
    system = transition(inflight_rtl.InFlight(SEVERAL))
    assert "a cycle violates it" in captures.prove_captures(SEVERAL, system).evidence


@pytest.mark.full
def test_a_sample_with_the_start_state_of_another_slot_fails() -> None:
    WrongCircuit(ReadsOther, SEVERAL, inflight.prove_slots).check()


def test_a_counter_that_does_not_stop_at_completion_fails() -> None:
    WrongCircuit(CountsAfterCompletion, SEVERAL, latencies.prove_latencies).check()


@pytest.mark.full
def test_a_queue_that_keeps_removed_entries_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inflight_rtl, "FinishOrder", KeepsEntries)
    system = transition(inflight_rtl.InFlight(SEVERAL))
    assert "a cycle violates it" in inductive(system, inflight.queue(SEVERAL)).evidence
    assert "a cycle violates it" in inflight.prove_order(SEVERAL, system).evidence


@pytest.mark.parametrize("wrong", tiers(fast=[CapturesEarlier], full=[ForgetsStops]))
def test_a_slot_that_captures_a_wrong_state_fails(wrong: type[Component], monkeypatch: pytest.MonkeyPatch) -> None:
    part = "Slot" if issubclass(wrong, inflight_rtl.Slot) else "StartStates"
    monkeypatch.setattr(inflight_rtl, part, wrong)
    WrongCircuit(inflight_rtl.InFlight, SEVERAL, captures.prove_captures).check()


class SubtractsLater(inflight_rtl.InFlight):
    """The offset of the next cycle is subtracted from the system counter."""

    def _subtract_offset(self, m, start):
        shifted = Signal.like(start)
        m.d.comb += [shifted.eq(start), shifted.timestamp.eq(start.timestamp - self.offset)]
        return shifted


class SubtractsHalfLater(inflight_rtl.InFlight):
    """Subtraction with the high half of the offset of the next cycle."""

    def _subtract_offset(self, m, start):
        shifted = super()._subtract_offset(m, start)
        later = Signal.like(shifted, name="later")
        m.d.comb += [later.eq(shifted), later.timestamp[32:].eq(start.timestamp[32:] - self.offset[32:])]
        return later


class SubtractsWithoutBorrow(inflight_rtl.InFlight):
    """Subtraction of each half of the offset without a borrow between them."""

    def _subtract_offset(self, m, start):
        shifted = super()._subtract_offset(m, start)
        high, offset = Signal(32), Mux(self.subtract_offset, self.offset[32:], 0)
        m.d.sync += high.eq(self.pe.physical_count[32:] - offset)
        halves = Signal.like(shifted, name="halves")
        m.d.comb += [halves.eq(shifted), halves.timestamp[32:].eq(high)]
        return halves


class SubtractsAlways(inflight_rtl.InFlight):
    """The offset is subtracted also if `subtract_offset` is zero."""

    def elaborate(self, platform):
        self.subtract_offset = C(1)
        return super().elaborate(platform)


class SubtractsNothing(inflight_rtl.InFlight):
    """No offset is subtracted from the system counter."""

    def _subtract_offset(self, m, start):
        return start


SUBTRACTIONS = [SubtractsHalfLater, SubtractsWithoutBorrow, SubtractsAlways, SubtractsNothing]


@pytest.mark.parametrize("wrong", tiers(fast=[SubtractsLater], full=SUBTRACTIONS))
def test_a_missing_or_late_offset_fails(wrong: type[inflight_rtl.InFlight]) -> None:
    config = FEATURES["minimal_el2"]
    assert captures.prove_captures(config, transition(inflight_rtl.InFlight(config))).result is Result.PASS
    WrongCircuit(wrong, config, captures.prove_captures).check()


def test_memories_are_not_reset() -> None:
    system = transition(inflight_rtl.InFlight(SEVERAL))
    words = [name.removeprefix("inflight.") for name in spu.memories(SEVERAL)]
    assert resets(system, retained=words).result is Result.PASS
    for forgotten in (words[0], words[-1]):
        assert "is not reset" in resets(system, retained=[word for word in words if word != forgotten]).evidence
