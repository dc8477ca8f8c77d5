"""The proofs of the ports of the shells fail for wrong circuits."""

import pytest

from configurations import FEATURES
from formal.engine.induction import inductive
from formal.engine.proof import Result
from formal.engine.transition import transition
from formal.shell.apb4 import APB, watched_completer
from formal.shell.axi4 import AXI, prove_stable, watched_writer
from spurtle.shell import axi4
from spurtle.shell.apb4 import APB4Completer
from spurtle.shell.axi4 import AXI4Writer
from tests.support.proofs import FaultMixin
from tests.support.tiers import tiers

PACKED = FEATURES["minimal_packed"]


class WithdrawsAddress(AXI4Writer):
    """A stalled address is withdrawn."""

    def _send(self, m, *arguments):
        super()._send(m, *arguments)
        with m.If(self.axi.awvalid):
            m.d.sync += self.axi.awvalid.eq(0)


class ChangesWord(AXI4Writer):
    """A stalled word changes."""

    def _send(self, m, outgoing, remaining, begin, sending, port, loaded):
        super()._send(m, outgoing, remaining, begin, sending, port, loaded)
        m.d.comb += port.en.eq(1)


class EarlyLast(AXI4Writer):
    """WLAST is asserted with the first word of a burst."""

    def _send(self, m, *arguments):
        super()._send(m, *arguments)
        with m.If(~self.axi.wvalid):
            m.d.sync += self.axi.wlast.eq(1)


class NeverBusy(FaultMixin, AXI4Writer):
    """`busy` is never asserted, so that PSB CSYNC does not wait."""

    def add_fault(self, m):
        m.d.comb += self.busy.eq(0)


class ExcessBurst(AXI4Writer):
    """One burst more than `outstanding` is open."""

    def __init__(self, config, *, outstanding):
        super().__init__(config, outstanding=outstanding + 1)


class EarlyDone(FaultMixin, AXI4Writer):
    """`write.done` is asserted with the last beat of a record."""

    def add_fault(self, m):
        m.d.comb += self.write.done.eq(self.write.beat.valid & self.write.beat.p.last)


@pytest.mark.parametrize(
    ("wrong", "outstanding"),
    tiers(
        fast=[(WithdrawsAddress, 1), (ExcessBurst, 3)],
        full=[(ChangesWord, 1), (EarlyLast, 1), (EarlyLast, 3), (NeverBusy, 3), (EarlyDone, 1), (EarlyDone, 3)],
    ),
)
def test_wrong_writers_fail(wrong: type[AXI4Writer], outstanding: int) -> None:
    axi, system = AXI(PACKED, outstanding), watched_writer(transition(wrong(PACKED, outstanding=outstanding)))
    verdicts = [prove(system) for prove in (prove_stable, axi.prove_relation, axi.prove_words)]
    assert Result.FAIL in [verdict.result for verdict in verdicts]


def test_a_burst_across_a_page_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(axi4, "_BOUNDARY_BYTES", 8192)
    assert AXI(PACKED, 1).prove_burst(watched_writer(transition(AXI4Writer(PACKED)))).result is Result.FAIL


class RepeatsAccess(FaultMixin, APB4Completer):
    """A register is accessed in every cycle of the access phase."""

    def add_fault(self, m):
        m.d.comb += self.sysreg.valid.eq(self.apb.psel & self.apb.penable)


class EarlyReady(FaultMixin, APB4Completer):
    """PREADY is asserted in the setup phase."""

    def add_fault(self, m):
        m.d.comb += self.apb.pready.eq(self.apb.psel & ~self.apb.penable)


class NoSlaveError(FaultMixin, APB4Completer):
    """PSLVERR is never asserted."""

    def add_fault(self, m):
        m.d.comb += self.apb.pslverr.eq(0)


class IgnoresStrobes(FaultMixin, APB4Completer):
    """A write does not preserve bytes that are not strobed."""

    def add_fault(self, m):
        m.d.comb += self.sysreg.write.eq(self.apb.pwrite)


@pytest.mark.parametrize("wrong", [RepeatsAccess, EarlyReady, NoSlaveError, IgnoresStrobes])
def test_wrong_completers_fail(wrong: type[APB4Completer]) -> None:
    system = watched_completer(transition(wrong()))
    verdicts = [APB.prove_relation(system), APB.prove_transfers(system)]
    assert Result.FAIL in [verdict.result for verdict in verdicts]


@pytest.mark.parametrize("latency", [2, 4])
def test_a_result_taken_in_another_cycle_fails(latency: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spurtle.shell.apb4.ACCESS_LATENCY", latency)
    assert APB.prove_answer(watched_completer(transition(APB4Completer()))).result is Result.FAIL


@pytest.mark.parametrize("outstanding", [1, 3])
def test_the_relation_needs_the_bus_contract(outstanding: int) -> None:
    """The contract: a response follows its burst."""
    system = watched_writer(transition(AXI4Writer(PACKED, outstanding=outstanding)))
    assert inductive(system, AXI(PACKED, outstanding).relation).result is Result.FAIL
