"""The proofs of the ports of the shells fail for wrong circuits."""

from dataclasses import replace

import pytest
from amaranth.hdl import Signal, Value
from amaranth.lib import wiring
from amaranth.utils import exact_log2

from configurations import FEATURES
from formal.engine.induction import inductive
from formal.engine.proof import Result
from formal.engine.transition import transition
from formal.shell.apb4 import APB, watched_completer
from formal.shell.axi4 import AXI, prove_stable
from formal.shell.history import watched_writer
from formal.shell.responses import Responses, watched_responses
from spurtle.config import SPUConfig
from spurtle.shell import axi4, bursts
from spurtle.shell.apb4 import APB4Completer
from spurtle.shell.axi4 import AXI4Writer
from spurtle.shell.bursts import BurstCollector
from spurtle.shell.responses import BurstResponses
from spurtle.shell.words import WordQueue
from tests.support.proofs import FaultMixin
from tests.support.tiers import tiers

ONE = FEATURES["minimal_packed"]
FOUR = replace(ONE, name="minimal_packed_four", outstanding=4)


class WithdrawsAddress(FaultMixin, AXI4Writer):
    """A stalled address is withdrawn."""

    def add_fault(self, m):
        stalled = Signal()
        m.d.sync += stalled.eq(self.axi.awvalid & ~self.axi.awready)
        m.d.comb += self.axi.awvalid.eq(m.submodules.addresses.o.valid & ~stalled)


class UnstableStrobes(FaultMixin, AXI4Writer):
    """A stalled word loses its strobes if an error response arrives."""

    def add_fault(self, m):
        with m.If(m.submodules.responses.failed):
            m.d.comb += self.axi.wstrb.eq(0)


class ReleasesTooMuch(FaultMixin, AXI4Writer):
    """Words are sent before their burst is complete."""

    def add_fault(self, m):
        m.d.comb += m.submodules.words.release.eq(1)


class NeverFull(FaultMixin, AXI4Writer):
    """The last word of a record is stored although the FIFO is full."""

    def add_fault(self, m):
        burst = m.submodules.collector.burst
        with m.If(self.write.beat.p.last & (~burst.valid | burst.ready)):
            m.d.comb += self.write.beat.ready.eq(1)


class NeverMasked(FaultMixin, AXI4Writer):
    """Words keep their strobes after an error response."""

    def add_fault(self, m):
        m.d.comb += m.submodules.words.mask.eq(0)


class BeginsAfterError(FaultMixin, AXI4Writer):
    """A burst begins after an error response."""

    def add_fault(self, m):
        m.d.comb += m.submodules.collector.drop.eq(0)


class ExcessBurst(FaultMixin, AXI4Writer):
    """A burst begins although the maximum number of bursts is open."""

    def add_fault(self, m):
        collector, addresses = m.submodules.collector, m.submodules.addresses
        m.d.comb += collector.burst.ready.eq(addresses.i.ready)


class EarlyLast(FaultMixin, WordQueue):
    """WLAST is asserted with every word."""

    def add_fault(self, m):
        m.d.comb += self.o.p.last.eq(1)


class LosesState(FaultMixin, BurstCollector):
    """A record has the Security state of its last beat."""

    def add_fault(self, m):
        with m.If(self.transfer & self.beat.last):
            m.d.sync += self.burst.p.ns.eq(self.ns)


class WrongAddress(FaultMixin, BurstCollector):
    """The address of a burst is that of its last word."""

    def add_fault(self, m):
        with m.If(self.transfer):
            m.d.sync += self.burst.p.address.eq(self.beat.address >> exact_log2(self.config.bus_bytes))


class AnswersEachBurst(FaultMixin, BurstResponses):
    """A record is answered with the response to each of its bursts."""

    def add_fault(self, m):
        with m.If(self.valid & ~self.error & ~self.failed):
            m.d.comb += self.done.eq(1)


class AnswersTwice(FaultMixin, BurstResponses):
    """`done` is asserted in every cycle in which records are discarded."""

    def add_fault(self, m):
        with m.If(self.discard):
            m.d.comb += self.done.eq(1)


class ReportsEarly(FaultMixin, BurstResponses):
    """A fault is reported in the cycle after the error response."""

    def add_fault(self, m):
        with m.If(self.failed):
            m.d.comb += self.done.eq(1)


class WrongWord(FaultMixin, BurstResponses):
    """A fault is reported on an odd word."""

    def add_fault(self, m):
        m.d.comb += Value.cast(self.fault.word)[0].eq(1)


class AnswersFailure(FaultMixin, BurstResponses):
    """A record whose burst failed is answered without a fault."""

    def add_fault(self, m):
        with m.If(self.fails):
            m.d.comb += self.done.eq(1)


WRONG_WRITERS = {
    WithdrawsAddress: "prove_stable",
    UnstableStrobes: "prove_stable",
    ReleasesTooMuch: "prove_relation",
    NeverFull: "prove_bursts",
    NeverMasked: "prove_rules",
    BeginsAfterError: "prove_rules",
    ExcessBurst: "prove_bursts",
    EarlyLast: "prove_words",
    LosesState: "prove_relation",
    WrongAddress: "prove_relation",
    AnswersEachBurst: "prove_relation",
    AnswersTwice: "prove_rules",
    ReportsEarly: "prove_rules",
}
"""Each wrong circuit with a proof that must fail."""


@pytest.mark.parametrize(
    "wrong", tiers(fast=[NeverMasked, AnswersTwice], full=[*WRONG_WRITERS][::3], long=WRONG_WRITERS)
)
def test_wrong_writers_fail(wrong: type[wiring.Component], monkeypatch: pytest.MonkeyPatch) -> None:
    right = wrong.__mro__[2]
    if right is not AXI4Writer:
        monkeypatch.setattr(axi4, right.__name__, wrong)
    axi = AXI(FOUR)
    system = watched_writer(FOUR, transition((wrong if right is AXI4Writer else AXI4Writer)(FOUR)))
    prove = prove_stable if WRONG_WRITERS[wrong] == "prove_stable" else getattr(axi, WRONG_WRITERS[wrong])
    assert prove(system).result is Result.FAIL


@pytest.mark.parametrize("wrong", [AnswersEachBurst, ReportsEarly, WrongWord, AnswersFailure])
def test_wrong_responses_fail(wrong: type[BurstResponses]) -> None:
    responses, system = Responses(FOUR), watched_responses(transition(wrong(FOUR)))
    verdicts = [responses.prove_order(system), responses.prove_answers(system)]
    assert Result.FAIL in [verdict.result for verdict in verdicts]


def test_a_burst_across_a_page_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bursts, "_BOUNDARY_BYTES", 8192)
    system = watched_writer(ONE, transition(AXI4Writer(ONE)))
    assert AXI(ONE).prove_relation(system).result is Result.FAIL


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


@pytest.mark.parametrize("config", [ONE, FOUR], ids=["one", "four"])
def test_the_bursts_need_the_bus_contract(config: SPUConfig) -> None:
    """The contract: a response follows its burst."""
    system = watched_writer(config, transition(AXI4Writer(config)))
    assert inductive(system, AXI(config).bursts).result is Result.FAIL
