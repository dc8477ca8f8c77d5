"""The proofs of the Profiling Buffer fail for wrong circuits."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
from amaranth.hdl import Signal

from configurations import FEATURES, OUTSTANDING
from formal.buffer import history
from formal.buffer.pointer_and_status import prove_full, prove_pointer, prove_status
from formal.buffer.records import prove_acceptance, prove_beats, prove_busy, prove_follows, prove_outcome
from formal.buffer.relation import limit_is_stable, prove_relation, relation
from formal.engine.induction import always, inductive
from formal.engine.proof import Result, Verdict
from formal.engine.terms import Boolean, all_of
from formal.engine.transition import Transition, Wires, transition
from spurtle.arch import PMSVer
from spurtle.config import CONFIGS, SPUConfig
from spurtle.gateware.buffer import ProfilingBuffer
from spurtle.interface.memory import WriteFaultKind
from tests.support.proofs import FaultMixin, WrongCircuit, check_faults
from tests.support.tiers import tiers

MINIMAL = CONFIGS["minimal"]
PACKED = FEATURES["minimal_packed"]
MODEL = CONFIGS["arm_model"]
RME = FEATURES["minimal_rme"]
SEVERAL = OUTSTANDING["outstanding_words"]
SHORT = replace(CONFIGS["hisilicon_mobile"], name="short", version=PMSVer.SPE_V1P3, fne=True)
"""Records of several sizes, each of complete words. External aborts are not reported."""

Prove = Callable[[SPUConfig, Transition], Verdict]


class FitsAtLimit(FaultMixin, ProfilingBuffer):
    """A record fits at the limit."""

    def add_fault(self, m):
        m.d.comb += m.submodules.issue.limit.eq(self.pmblimitr.LIMIT + 1)


class WritesAbove(FaultMixin, ProfilingBuffer):
    """Words are written at higher addresses."""

    def add_fault(self, m):
        m.d.comb += self.write.beat.p.address[12].eq(1)


class WritesFirstByte(FaultMixin, ProfilingBuffer):
    """The first byte of every word is written."""

    def add_fault(self, m):
        m.d.comb += self.write.beat.p.strobe.eq(m.submodules.issue.beat.p.strobe | 1)


class WritesWhileStopped(FaultMixin, ProfilingBuffer):
    """Records begin while the buffer is stopped."""

    def add_fault(self, m):
        with m.If(self.pmbsr.S):
            m.d.comb += m.submodules.issue.open.eq(1)


class LosesEnds(FaultMixin, ProfilingBuffer):
    """The end of a record does not enter the FIFO if memory answers another record in that cycle."""

    def add_fault(self, m):
        with m.If(self.write.done):
            m.d.comb += m.submodules.records.ends.eq(0)


class AnswersTwice(FaultMixin, ProfilingBuffer):
    """A record is not counted if it begins while memory answers another one."""

    def add_fault(self, m):
        with m.If(self.write.done):
            m.d.comb += m.submodules.records.begin.eq(0)


class BeginsEarly(FaultMixin, ProfilingBuffer):
    """A record begins while memory answers another one, even if records are abandoned or too many are outstanding."""

    def add_fault(self, m):
        with m.If(self.write.done):
            m.d.comb += m.submodules.issue.open.eq(1)


class NeverDiscards(FaultMixin, ProfilingBuffer):
    """Memory writes later records after a fault."""

    def add_fault(self, m):
        m.d.comb += self.write.discard.eq(0)


class WaitsForMemory(FaultMixin, ProfilingBuffer):
    """A record begins only when no word waits for its transfer."""

    def add_fault(self, m):
        with m.If(self.write.beat.valid):
            m.d.comb += m.submodules.issue.open.eq(0)


class LosesPointer(FaultMixin, ProfilingBuffer):
    """The pointer is not advanced if software writes the status."""

    def add_fault(self, m):
        with m.If(self.pmbsr_write):
            m.d.comb += m.submodules.write_pointer.advance.eq(0)


class BusyEndsEarly(FaultMixin, ProfilingBuffer):
    """`busy` is deasserted before the status reports that the buffer is full."""

    def add_fault(self, m):
        with m.If(self.full):
            m.d.comb += self.busy.eq(0)


class BusyAfterFault(FaultMixin, ProfilingBuffer):
    """`busy` stays asserted after a fault."""

    def add_fault(self, m):
        hangs = Signal()
        with m.If(self.write.done & (self.write.fault.kind != WriteFaultKind.NONE)):
            m.d.sync += hangs.eq(1)
        with m.If(hangs):
            m.d.comb += self.busy.eq(1)


class NeverFull(FaultMixin, ProfilingBuffer):
    """The buffer is never full while a record waits that will be dropped."""

    def add_fault(self, m):
        with m.If(self.drop):
            m.d.comb += self.full.eq(0)


class LosesCollision(FaultMixin, ProfilingBuffer):
    """A collision is lost in the cycle of a write by software."""

    def add_fault(self, m):
        with m.If(self.pmbsr_write):
            m.d.comb += m.submodules.buffer_status.collision.eq(0)


class LosesAbort(FaultMixin, ProfilingBuffer):
    """An External abort is lost in the cycle of a write by software."""

    def add_fault(self, m):
        with m.If(self.pmbsr_write):
            m.d.comb += m.submodules.buffer_status.abort.eq(0)


class GPFIsStage2(FaultMixin, ProfilingBuffer):
    """A Granule Protection Check fault is reported as a stage 2 fault."""

    def add_fault(self, m):
        with m.If(self.write.fault.kind == WriteFaultKind.GRANULE_PROTECTION):
            m.d.comb += m.submodules.buffer_status.fault.kind.eq(WriteFaultKind.STAGE_2)


def wrong(component: type[ProfilingBuffer], config: SPUConfig, prove: Prove, evidence: str) -> WrongCircuit:
    return WrongCircuit(component, config, prove, evidence, history.watched)


WRONG = [
    wrong(FitsAtLimit, PACKED, prove_relation, "a cycle violates it"),
    wrong(LosesEnds, SEVERAL, prove_relation, "a cycle violates it"),
    wrong(AnswersTwice, SEVERAL, prove_relation, "a cycle violates it"),
    wrong(BeginsEarly, SEVERAL, prove_acceptance, "a cycle violates it"),
    wrong(NeverDiscards, SEVERAL, prove_outcome, "a cycle violates it"),
    wrong(WaitsForMemory, SEVERAL, prove_follows, "a cycle violates it"),
    wrong(WritesAbove, MINIMAL, prove_beats, "a cycle violates it"),
    wrong(WritesFirstByte, PACKED, prove_beats, "a cycle violates it"),
    wrong(WritesWhileStopped, MINIMAL, prove_acceptance, "a cycle violates it"),
    wrong(LosesPointer, MINIMAL, prove_outcome, "a cycle violates it"),
    wrong(BusyEndsEarly, MINIMAL, prove_busy, "a cycle violates it"),
    wrong(BusyAfterFault, MINIMAL, prove_busy, "a cycle violates it"),
    wrong(NeverFull, MINIMAL, prove_full, "expected  full = 0x1"),
    wrong(LosesPointer, MODEL, prove_pointer, "of the reference"),
    wrong(LosesCollision, RME, prove_status, "of the reference"),
    wrong(LosesAbort, RME, prove_status, "of the reference"),
    wrong(GPFIsStage2, RME, prove_relation, "a cycle violates it"),
]


@pytest.mark.parametrize("circuit", tiers(fast=WRONG[:10:3], full=WRONG[1::2], long=WRONG), ids=str)
def test_a_wrong_buffer_fails(circuit: WrongCircuit) -> None:
    circuit.check()


@pytest.mark.parametrize(
    ("config", "count"),
    tiers(long=[(FEATURES["minimal_mops"], 10), (SHORT, 10), (SEVERAL, 10)]),
    ids=lambda value: getattr(value, "name", value),
)
def test_seeded_faults_of_the_buffer_fail(config: SPUConfig, count: int) -> None:
    """Every beat of these configurations is a word. Faults of an aligner are left to its own proofs."""

    def runs(wires: Wires) -> Boolean:
        # Intermediate results of the full check have no effect after a reset, until they are marked as known.
        return all_of(relation(config)(wires), wires["rst"] == 0)

    proofs = [
        prove_relation, prove_pointer, prove_full, prove_beats, prove_outcome, prove_acceptance, prove_follows,
        prove_busy, prove_status,
    ]  # fmt: skip
    check_faults(
        lambda: ProfilingBuffer(config),
        [partial(prove, config) for prove in proofs],
        count=count,
        assuming=runs,
        watched=lambda system: history.watched(config, system),
    )


def test_the_relation_needs_the_input_contract() -> None:
    """The contract: no record is too long, and PMBLIMITR_EL1 changes only when software writes it."""
    system = history.watched(MINIMAL, transition(ProfilingBuffer(MINIMAL)))
    holds = relation(MINIMAL)
    assert inductive(system, holds).result is Result.FAIL
    assert inductive(system, holds, contract=limit_is_stable).result is Result.FAIL
    assert always(system, lambda wires: holds(wires), cycles=1).result is Result.FAIL
