"""The proofs of the shells' ports find what is wrong."""

import pytest

from configurations import FEATURES
from formal.engine.induction import inductive
from formal.engine.proof import Result
from formal.engine.transition import transition
from formal.shell.apb4 import APB, watched_completer
from formal.shell.axi4 import AXI, prove_steady, watched_writer
from spurtle.shell import axi4
from spurtle.shell.apb4 import APB4Completer
from spurtle.shell.axi4 import AXI4Writer
from tests.support.proofs import FaultMixin
from tests.support.tiers import tiers

PACKED = FEATURES["minimal_packed"]


class Impatient(AXI4Writer):
    """Takes back an address that is refused."""

    def _send(self, m, *arguments):
        super()._send(m, *arguments)
        with m.If(self.axi.awvalid):
            m.d.sync += self.axi.awvalid.eq(0)


class Restless(AXI4Writer):
    """A word that is refused becomes another."""

    def _send(self, m, going, left, begins, sending, port, loaded):
        super()._send(m, going, left, begins, sending, port, loaded)
        m.d.comb += port.en.eq(1)


class Hasty(AXI4Writer):
    """The first word of a burst is its last."""

    def _send(self, m, *arguments):
        super()._send(m, *arguments)
        with m.If(~self.axi.wvalid):
            m.d.sync += self.axi.wlast.eq(1)


class Forgetful(FaultMixin, AXI4Writer):
    """PSB CSYNC does not wait for it."""

    def add_fault(self, m):
        m.d.comb += self.busy.eq(0)


class Greedy(AXI4Writer):
    """Has more bursts open than it says."""

    def __init__(self, config, *, outstanding):
        super().__init__(config, outstanding=outstanding + 1)


class Early(FaultMixin, AXI4Writer):
    """A record is done when its last beat has come."""

    def add_fault(self, m):
        m.d.comb += self.write.done.eq(self.write.beat.valid & self.write.beat.p.last)


@pytest.mark.parametrize(
    ("wrong", "outstanding"),
    tiers(
        fast=[(Impatient, 1), (Greedy, 3)],
        full=[(Restless, 1), (Hasty, 1), (Hasty, 3), (Forgetful, 3), (Early, 1), (Early, 3)],
    ),
)
def test_wrong_writers_fail(wrong: type[AXI4Writer], outstanding: int) -> None:
    axi, system = AXI(PACKED, outstanding), watched_writer(transition(wrong(PACKED, outstanding=outstanding)))
    verdicts = [prove(system) for prove in (prove_steady, axi.prove_relation, axi.prove_words)]
    assert Result.FAIL in [verdict.result for verdict in verdicts]


def test_a_burst_across_a_page_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(axi4, "_BOUNDARY_BYTES", 8192)
    assert AXI(PACKED, 1).prove_burst(watched_writer(transition(AXI4Writer(PACKED)))).result is Result.FAIL


class Twice(FaultMixin, APB4Completer):
    """Accesses a register as long as a transfer is there."""

    def add_fault(self, m):
        m.d.comb += self.sysreg.valid.eq(self.apb.psel & self.apb.penable)


class Eager(FaultMixin, APB4Completer):
    """Is ready in the setup phase."""

    def add_fault(self, m):
        m.d.comb += self.apb.pready.eq(self.apb.psel & ~self.apb.penable)


class Silent(FaultMixin, APB4Completer):
    """No access fails."""

    def add_fault(self, m):
        m.d.comb += self.apb.pslverr.eq(0)


class Half(FaultMixin, APB4Completer):
    """Writes what is not strobed as well."""

    def add_fault(self, m):
        m.d.comb += self.sysreg.write.eq(self.apb.pwrite)


@pytest.mark.parametrize("wrong", [Twice, Eager, Silent, Half])
def test_wrong_completers_fail(wrong: type[APB4Completer]) -> None:
    system = watched_completer(transition(wrong()))
    verdicts = [APB.prove_relation(system), APB.prove_transfers(system)]
    assert Result.FAIL in [verdict.result for verdict in verdicts]


@pytest.mark.parametrize("outstanding", [1, 3])
def test_the_relation_needs_the_bus_contract(outstanding: int) -> None:
    """An answer before its burst."""
    system = watched_writer(transition(AXI4Writer(PACKED, outstanding=outstanding)))
    assert inductive(system, AXI(PACKED, outstanding).relation).result is Result.FAIL
