"""The proofs of the Profiling Buffer find what is wrong."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import z3
from amaranth.hdl import Mux, Signal

from formal.buffer import filling
from formal.engine.features import FEATURES
from formal.engine.induction import Wires, always, inductive
from formal.engine.proof import Result, Verdict
from formal.engine.transition import Transition, transition
from spurtle import arch
from spurtle.arch import PMSVer
from spurtle.config import CONFIGS, SPUConfig
from spurtle.gateware.buffer import ProfilingBuffer
from spurtle.interface.memory import WriteFaultKind
from tests.proofs.test_serializer import check_faults
from tests.support.tiers import tiers

MINIMAL = CONFIGS["minimal"]
PACKED = FEATURES["minimal_packed"]
MODEL = CONFIGS["arm_model"]
RME = FEATURES["minimal_rme"]
SHORT = replace(CONFIGS["hisilicon_mobile"], name="short", version=PMSVer.SPE_V1P3, fne=True)
"""Records of several sizes, each of whole words. External aborts are not reported."""

Prove = Callable[[SPUConfig, Transition], Verdict]


def watched(config: SPUConfig, component: ProfilingBuffer) -> Transition:
    return filling.watched(config, transition(component))


class Knows(ProfilingBuffer):
    """Takes what is worked out for known in every cycle in which nothing is written."""

    def _fits(self, m, align, idle):
        return super()._fits(m, align, Mux(idle, 1, 1))


class Last(ProfilingBuffer):
    """There is room for one more record than there is."""

    def _fits(self, m, align, idle):
        fits, known = super()._fits(m, align, idle)
        return fits | (self.pmbptr[12:] == self.pmblimitr.LIMIT), known


class Above(ProfilingBuffer):
    """Writes a word further up."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += self.write.beat.p.address[12].eq(1)
        return m


class Strobes(ProfilingBuffer):
    """Writes the first byte of every word."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += self.write.beat.p.strobe.eq(m.submodules.aligner.o.p.strobe | 1)
        return m


class Begins(ProfilingBuffer):
    """Does not care whether it is stopped."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += self.writing.eq(self.pmblimitr.E)
        return m


class Loses(ProfilingBuffer):
    """Does not move the pointer if the status is written."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        with m.If(self.pmbsr_write):
            m.d.sync += self.pmbptr.eq(self.pmbptr)
        return m


class Eager(ProfilingBuffer):
    """Is not busy until the status says that the buffer is full."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        with m.If(self.full):
            m.d.comb += self.busy.eq(0)
        return m


class Hangs(ProfilingBuffer):
    """Is busy once there has been a fault."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        hangs = Signal()
        with m.If(self.write.done & (self.write.fault.kind != WriteFaultKind.NONE)):
            m.d.sync += hangs.eq(1)
        with m.If(hangs):
            m.d.comb += self.busy.eq(1)
        return m


class Full(ProfilingBuffer):
    """Is never full where it may be."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += self.full.eq(0)
        return m


class Overwrites(ProfilingBuffer):
    """A collision is lost where software writes."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        with m.If(self.pmbsr_write):
            m.d.sync += self.pmbsr.COLL.eq(self.wdata[arch.PMBSR_EL1.fields["COLL"].lsb])
        return m


class Forgets(ProfilingBuffer):
    """An abort does not say that data may be lost."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        with m.If(self.write.abort & ~self.pmbsr_write):
            m.d.sync += self.pmbsr.DL.eq(self.pmbsr.DL)
        return m


class Renames(ProfilingBuffer):
    """A Granule Protection Check fault is one of stage 2."""

    def _fault_class(self, m, fault):
        ec, data_abort = super()._fault_class(m, fault)
        return Mux(fault.kind == WriteFaultKind.GRANULE_PROTECTION, arch.EC.STAGE_2, ec), data_abort


WRONG: list[tuple[type[ProfilingBuffer], SPUConfig, Prove, str]] = [
    (Knows, PACKED, filling.prove_relation, "a cycle breaks it"),
    (Last, MINIMAL, filling.prove_relation, "a cycle breaks it"),
    (Above, MINIMAL, filling.prove_beats, "a cycle breaks it"),
    (Strobes, PACKED, filling.prove_beats, "a cycle breaks it"),
    (Begins, MINIMAL, filling.prove_silence, "a cycle breaks it"),
    (Loses, MINIMAL, filling.prove_fate, "a cycle breaks it"),
    (Eager, MINIMAL, filling.prove_drains, "a cycle breaks it"),
    (Hangs, MINIMAL, filling.prove_drains, "a cycle breaks it"),
    (Full, MINIMAL, filling.prove_full, "expected  full = 0x1"),
    (Loses, MODEL, filling.prove_pointer, "of the reference"),
    (Overwrites, RME, filling.prove_status, "of the reference"),
    (Forgets, RME, filling.prove_status, "of the reference"),
    (Renames, RME, filling.prove_status, "of the reference"),
]


@pytest.mark.parametrize(
    ("wrong", "config", "prove", "evidence"),
    tiers(fast=WRONG[:10:3], full=WRONG),
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_a_wrong_buffer_is_found(wrong: type[ProfilingBuffer], config: SPUConfig, prove: Prove, evidence: str) -> None:
    verdict = prove(config, watched(config, wrong(config)))
    assert verdict.result is Result.FAIL
    assert evidence in verdict.evidence


@pytest.mark.parametrize("config", [FEATURES["minimal_mops"], SHORT], ids=lambda config: config.name)
@pytest.mark.parametrize("count", tiers(full=[2], long=[10]))
def test_faults_of_the_buffer_are_found(config: SPUConfig, count: int) -> None:
    """By one of the proofs at least: seeded faults, each of which makes a difference. Every beat is a word: what is
    wrong in an aligner is for its own proofs.
    """

    def runs(wires: Wires) -> z3.BoolRef:
        # What a step on the way to something is after a reset, before that is known, makes no difference.
        return z3.And(filling.relation(config)(wires), wires["rst"] == 0)

    proofs = [
        filling.prove_relation, filling.prove_pointer, filling.prove_full, filling.prove_beats, filling.prove_fate,
        filling.prove_silence, filling.prove_drains, filling.prove_status,
    ]  # fmt: skip
    check_faults(
        lambda: ProfilingBuffer(config),
        lambda system: filling.watched(config, system),
        runs,
        [lambda system, prove=prove: prove(config, system) for prove in proofs],
        count,
    )


def test_the_relation_needs_what_others_promise() -> None:
    """No record is too long, and PMBLIMITR_EL1 stands."""
    system = watched(MINIMAL, ProfilingBuffer(MINIMAL))
    relation = filling.relation(MINIMAL)
    assert inductive(system, relation).result is Result.FAIL
    assert inductive(system, relation, contract=filling.limit_stands).result is Result.FAIL
    assert always(system, lambda wires: relation(wires), cycles=1).result is Result.FAIL
