"""The proofs of the latencies fail for counters that count other cycles."""

import pytest
from amaranth.hdl import Mux

from formal.engine.proof import Result
from formal.engine.transition import transition
from formal.inflight import inflight, latencies
from spurtle.config import CONFIGS
from spurtle.gateware.inflight import InFlight
from spurtle.gateware.slots import Slot
from tests.support.proofs import FaultMixin, WrongCircuit
from tests.support.tiers import tiers

CONFIG = CONFIGS["v1p4"]
LARGEST = (1 << CONFIG.counter_bits) - 1


class CounterFault(FaultMixin, Slot):
    """Base of wrong slots: `_count` acts in each cycle in which the operation is in flight and has not completed."""

    def add_fault(self, m):
        with m.If(self.in_flight & ~self.finish & ~self.vanish & ~self.completed):
            self._count(m)


class Wraps(CounterFault):
    """The total latency wraps to zero after all ones."""

    def _count(self, m):
        m.d.sync += self.total.eq(Mux(self.total == LARGEST, 0, self.total + 1))


class SaturatesEarly(CounterFault):
    """The total latency stops one cycle below all ones."""

    def _count(self, m):
        with m.If(self.total == LARGEST - 1):
            m.d.sync += self.total.eq(self.total)


class TotalEndsAtIssue(CounterFault):
    """The total latency does not count the cycle in which the operation is issued."""

    def _count(self, m):
        with m.If(self.issued):
            m.d.sync += self.total.eq(self.total)


class IssueEndsAtCompletion(CounterFault):
    """The issue latency does not stop when the operation is issued."""

    def _count(self, m):
        m.d.sync += self.issue.eq(self.total)


class TranslatesAlways(CounterFault):
    """The translation latency counts cycles without a translation."""

    def _count(self, m):
        m.d.sync += self.translation.eq(self.translation + 1)


class TicksAlways(CounterFault):
    """The alternate clock issue latency counts cycles of the clock."""

    def _count(self, m):
        m.d.sync += self.alternate_issue.eq(self.alternate_issue + ~self.issued)


@pytest.mark.parametrize(
    "wrong",
    tiers(
        fast=[Wraps, IssueEndsAtCompletion],
        full=[SaturatesEarly, TotalEndsAtIssue, TranslatesAlways, TicksAlways],
    ),
)
def test_a_latency_that_counts_other_cycles_fails(wrong: type[Slot]) -> None:
    WrongCircuit(wrong, CONFIG, latencies.prove_counts).check()


class NeverSaturates(FaultMixin, Slot):
    """The total latency never reaches all ones."""

    def add_fault(self, m):
        with m.If(self.total == LARGEST - 1):
            m.d.sync += self.total.eq(0)
        with m.If(self.total == LARGEST):
            m.d.sync += self.total.eq(0)


@pytest.mark.full
def test_a_latency_that_never_saturates_is_not_covered() -> None:
    verdict = latencies.cover_counts(CONFIG, transition(NeverSaturates(CONFIG)))
    assert verdict.result is Result.FAIL
    assert verdict.evidence.startswith("total: ")


class WrongSlotReport(FaultMixin, InFlight):
    """The first slot receives the issue report of the second."""

    def add_fault(self, m):
        m.d.comb += m.submodules.slot_0.issued.eq(self.in_flight.issued[1])


@pytest.mark.full
def test_a_slot_that_receives_reports_of_another_operation_fails() -> None:
    config = CONFIGS["arm_model"]
    WrongCircuit(WrongSlotReport, config, inflight.prove_reports).check()
