"""The proof of the latencies finds each counter that counts something else."""

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


class Wrong(FaultMixin, Slot):
    """Does `_count` besides, in each cycle in which its operation is in flight and has not ended."""

    def add_fault(self, m):
        with m.If(self.in_flight & ~self.finish & ~self.vanish & ~self.completed):
            self._count(m)


class Wraps(Wrong):
    """The total latency is zero after all ones."""

    def _count(self, m):
        m.d.sync += self.total.eq(Mux(self.total == LARGEST, 0, self.total + 1))


class SaturatesEarly(Wrong):
    """The total latency stops one cycle below all ones."""

    def _count(self, m):
        with m.If(self.total == LARGEST - 1):
            m.d.sync += self.total.eq(self.total)


class TotalEndsAtIssue(Wrong):
    """The cycle in which the operation is issued is not of its total latency."""

    def _count(self, m):
        with m.If(self.issued):
            m.d.sync += self.total.eq(self.total)


class IssueEndsAtCompletion(Wrong):
    """The issue latency goes on counting when the operation is issued."""

    def _count(self, m):
        m.d.sync += self.issue.eq(self.total)


class TranslatesAlways(Wrong):
    """The translation latency counts cycles without a translation."""

    def _count(self, m):
        m.d.sync += self.translation.eq(self.translation + 1)


class TicksAlways(Wrong):
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


class NeverFull(FaultMixin, Slot):
    """No total latency is all ones."""

    def add_fault(self, m):
        with m.If(self.total == LARGEST - 1):
            m.d.sync += self.total.eq(0)
        with m.If(self.total == LARGEST):
            m.d.sync += self.total.eq(0)


@pytest.mark.full
def test_a_latency_that_never_saturates_is_not_covered() -> None:
    verdict = latencies.cover_counts(CONFIG, transition(NeverFull(CONFIG)))
    assert verdict.result is Result.FAIL
    assert verdict.evidence.startswith("total: ")


class Neighbour(FaultMixin, InFlight):
    """The first slot hears that the second was issued."""

    def add_fault(self, m):
        m.d.comb += m.submodules.slot_0.issued.eq(self.in_flight.issued[1])


@pytest.mark.full
def test_a_slot_that_receives_reports_of_another_operation_fails() -> None:
    config = CONFIGS["arm_model"]
    WrongCircuit(Neighbour, config, inflight.prove_reports).check()
