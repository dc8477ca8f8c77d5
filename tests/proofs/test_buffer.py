"""The proofs of the Profiling Buffer find what is wrong."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
from amaranth.hdl import Mux, Signal

from configurations import FEATURES
from formal.buffer import history
from formal.buffer.pointer_and_status import prove_full, prove_pointer, prove_status
from formal.buffer.records import prove_beats, prove_drains, prove_fate, prove_silence
from formal.buffer.relation import limit_stands, prove_relation, relation
from formal.engine.induction import always, inductive
from formal.engine.proof import Result, Verdict
from formal.engine.terms import Boolean, all_of
from formal.engine.transition import Transition, Wires, transition
from spurtle import arch
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
SHORT = replace(CONFIGS["hisilicon_mobile"], name="short", version=PMSVer.SPE_V1P3, fne=True)
"""Records of several sizes, each of whole words. External aborts are not reported."""

Prove = Callable[[SPUConfig, Transition], Verdict]


class Knows(ProfilingBuffer):
    """Takes what is worked out for known in every cycle in which nothing is written."""

    def _fits(self, m, align, idle):
        return super()._fits(m, align, Mux(idle, 1, 1))


class Last(ProfilingBuffer):
    """There is room for one more record than there is."""

    def _fits(self, m, align, idle):
        fits, known = super()._fits(m, align, idle)
        return fits | (self.pmbptr[12:] == self.pmblimitr.LIMIT), known


class Above(FaultMixin, ProfilingBuffer):
    """Writes a word further up."""

    def add_fault(self, m):
        m.d.comb += self.write.beat.p.address[12].eq(1)


class Strobes(FaultMixin, ProfilingBuffer):
    """Writes the first byte of every word."""

    def add_fault(self, m):
        m.d.comb += self.write.beat.p.strobe.eq(m.submodules.aligner.o.p.strobe | 1)


class Begins(FaultMixin, ProfilingBuffer):
    """Does not care whether it is stopped."""

    def add_fault(self, m):
        m.d.comb += self.writing.eq(self.pmblimitr.E)


class Loses(FaultMixin, ProfilingBuffer):
    """Does not move the pointer if the status is written."""

    def add_fault(self, m):
        with m.If(self.pmbsr_write):
            m.d.sync += self.pmbptr.eq(self.pmbptr)


class Eager(FaultMixin, ProfilingBuffer):
    """Is not busy until the status says that the buffer is full."""

    def add_fault(self, m):
        with m.If(self.full):
            m.d.comb += self.busy.eq(0)


class Hangs(FaultMixin, ProfilingBuffer):
    """Is busy once there has been a fault."""

    def add_fault(self, m):
        hangs = Signal()
        with m.If(self.write.done & (self.write.fault.kind != WriteFaultKind.NONE)):
            m.d.sync += hangs.eq(1)
        with m.If(hangs):
            m.d.comb += self.busy.eq(1)


class Full(FaultMixin, ProfilingBuffer):
    """Is never full where it may be."""

    def add_fault(self, m):
        m.d.comb += self.full.eq(0)


class Overwrites(FaultMixin, ProfilingBuffer):
    """A collision is lost where software writes."""

    def add_fault(self, m):
        with m.If(self.pmbsr_write):
            m.d.sync += self.pmbsr.COLL.eq(self.wdata[arch.PMBSR_EL1.fields["COLL"].lsb])


class Forgets(FaultMixin, ProfilingBuffer):
    """An abort does not say that data may be lost."""

    def add_fault(self, m):
        with m.If(self.write.abort & ~self.pmbsr_write):
            m.d.sync += self.pmbsr.DL.eq(self.pmbsr.DL)


class Renames(ProfilingBuffer):
    """A Granule Protection Check fault is one of stage 2."""

    def _fault_class(self, m, fault):
        ec, data_abort = super()._fault_class(m, fault)
        return Mux(fault.kind == WriteFaultKind.GRANULE_PROTECTION, arch.EC.STAGE_2, ec), data_abort


def wrong(component: type[ProfilingBuffer], config: SPUConfig, prove: Prove, evidence: str) -> WrongCircuit:
    return WrongCircuit(component, config, prove, evidence, history.watched)


WRONG = [
    wrong(Knows, PACKED, prove_relation, "a cycle violates it"),
    wrong(Last, MINIMAL, prove_relation, "a cycle violates it"),
    wrong(Above, MINIMAL, prove_beats, "a cycle violates it"),
    wrong(Strobes, PACKED, prove_beats, "a cycle violates it"),
    wrong(Begins, MINIMAL, prove_silence, "a cycle violates it"),
    wrong(Loses, MINIMAL, prove_fate, "a cycle violates it"),
    wrong(Eager, MINIMAL, prove_drains, "a cycle violates it"),
    wrong(Hangs, MINIMAL, prove_drains, "a cycle violates it"),
    wrong(Full, MINIMAL, prove_full, "expected  full = 0x1"),
    wrong(Loses, MODEL, prove_pointer, "of the reference"),
    wrong(Overwrites, RME, prove_status, "of the reference"),
    wrong(Forgets, RME, prove_status, "of the reference"),
    wrong(Renames, RME, prove_status, "of the reference"),
]


@pytest.mark.parametrize("circuit", tiers(fast=WRONG[:10:3], full=WRONG), ids=str)
def test_a_wrong_buffer_fails(circuit: WrongCircuit) -> None:
    circuit.check()


@pytest.mark.parametrize("config", [FEATURES["minimal_mops"], SHORT], ids=lambda config: config.name)
@pytest.mark.parametrize("count", tiers(full=[2], long=[10]))
def test_seeded_faults_of_the_buffer_fail(config: SPUConfig, count: int) -> None:
    """By one of the proofs at least: seeded faults, each of which makes a difference. Every beat is a word: what is
    wrong in an aligner is for its own proofs.
    """

    def runs(wires: Wires) -> Boolean:
        # What a step on the way to something is after a reset, before that is known, makes no difference.
        return all_of(relation(config)(wires), wires["rst"] == 0)

    proofs = [
        prove_relation, prove_pointer, prove_full, prove_beats, prove_fate, prove_silence, prove_drains, prove_status,
    ]  # fmt: skip
    check_faults(
        lambda: ProfilingBuffer(config),
        [partial(prove, config) for prove in proofs],
        count=count,
        assuming=runs,
        watched=lambda system: history.watched(config, system),
    )


def test_the_relation_needs_the_input_contract() -> None:
    """No record is too long, and PMBLIMITR_EL1 stands."""
    system = history.watched(MINIMAL, transition(ProfilingBuffer(MINIMAL)))
    holds = relation(MINIMAL)
    assert inductive(system, holds).result is Result.FAIL
    assert inductive(system, holds, contract=limit_stands).result is Result.FAIL
    assert always(system, lambda wires: holds(wires), cycles=1).result is Result.FAIL
