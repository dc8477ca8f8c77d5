"""The proof of System register accesses fails for wrong circuits and wrong references."""

from dataclasses import replace
from functools import partial

import pytest
from amaranth.hdl import C, Cat, Signal

from configurations import FEATURES
from formal.engine.proof import Result
from formal.engine.terms import boolean
from formal.engine.transition import transition
from formal.registers import registers as proofs
from formal.registers.registers import WITHOUT_EL3
from spurtle import arch
from spurtle.config import CONFIGS, SPUConfig
from spurtle.gateware import register_access
from spurtle.gateware.register_access import RegisterAccess
from spurtle.gateware.registers import RegisterFile
from spurtle_sim.model import registers
from spurtle_sim.model.registers import Outcome
from tests.support.proofs import FaultMixin, check_faults
from tests.support.tiers import tiers

EL2_ALONE = FEATURES["minimal_el2"]
EL3_ALONE = FEATURES["minimal_el3"]
BOTH = CONFIGS["neoverse_n1"]
SEL2 = FEATURES["minimal_sel2"]
RME = FEATURES["minimal_rme"]
FNE = replace(EL3_ALONE, name="minimal_el3_fne", fne=True)
FGT2 = replace(WITHOUT_EL3, name="neoverse_n1_el3_fgt2", el3=True)
FGT_FNE = replace(BOTH, name="neoverse_n1_fne", fgt=True, fne=True)


@pytest.mark.parametrize("count", tiers(full=[2], long=[20]))
def test_seeded_faults_fail(count: int) -> None:
    check_faults(
        lambda: RegisterAccess(BOTH), [partial(proofs.prove, BOTH)], count=count, assuming=lambda _: boolean(True)
    )


class PMSCREL2AtEL1(RegisterAccess):
    """PMSCR_EL2 is accessible at EL1."""

    def _undefined(self, register, host):
        return (self.pe.el == 0) if register is arch.PMSCR_EL2 else super()._undefined(register, host)


class WritableID(RegisterAccess):
    """A write to a read-only register is not UNDEFINED."""

    def _names(self, register):
        return super()._names(replace(register, read_only=False))


class EL12WithoutHost(RegisterAccess):
    """PMSCR_EL12 is accessible for any value of HCR_EL2.E2H."""

    def _undefined(self, register, host):
        return super()._undefined(register, C(1))


class NoRedirection(RegisterAccess):
    """PMSCR_EL1 accesses PMSCR_EL1 for a host as well."""

    def _select_target(self, m, target, register, redirected):
        super()._select_target(m, target, register, C(0))


class RedirectsAtEL3(RegisterAccess):
    """The redirection of PMSCR_EL1 for a host applies at EL3 too."""

    def _select_target(self, m, target, register, redirected):
        host = Signal()
        m.d.sync += host.eq(self.pe.el[1] & self.pe.hcr_el2_e2h)
        super()._select_target(m, target, register, host)


class EL12IsEL2(RegisterAccess):
    """PMSCR_EL12 accesses PMSCR_EL2."""

    def _select_target(self, m, target, register, redirected):
        super()._select_target(m, target, register, redirected)
        if register is arch.PMSCR_EL12:
            m.d.comb += [target.pmscr.eq(0), target.pmscr_el2.eq(1)]


class TwoTargets(RegisterAccess):
    """A write to PMSIRR_EL1 also writes PMSICR_EL1."""

    def _select_target(self, m, target, register, redirected):
        super()._select_target(m, target, register, redirected)
        if register is arch.PMSIRR_EL1:
            m.d.comb += target.pmsicr.eq(1)


class TrapsIfOwned(RegisterAccess):
    """The buffer's registers trap if EL2 owns the buffer, instead of depending on bit 0 of MDCR_EL2.E2PB."""

    def _trapped_to_el2(self, register):
        if register.trap is arch.Trap.E2PB:
            return self.pe.mdcr_el2_e2pb == 0
        return super()._trapped_to_el2(register)


class TrapsPMBIDR(RegisterAccess):
    """PMBIDR_EL1 traps with the sampling registers."""

    def _trapped_to_el2(self, register):
        return super()._trapped_to_el2(register) | ((register is arch.PMBIDR_EL1) & self.pe.mdcr_el2_tpms)


class EL3First(RegisterAccess):
    """Traps to EL3 have priority over traps to EL2."""

    def _trapped_to_el2(self, register):
        return super()._trapped_to_el2(register) & ~self._trapped_to_el3(register)


class UntrappedPMBIDR(RegisterAccess):
    """PMBIDR_EL1 has no fine-grained trap."""

    def _fine_grained(self, trap):
        return C(0) if trap.bit == 63 else super()._fine_grained(trap)


class ReadTrapsForWrites(RegisterAccess):
    """The traps of reads apply to writes."""

    def _fine_grained(self, trap):
        write, self.write = self.write, C(0)
        trapped = super()._fine_grained(trap)
        self.write = write
        return trapped


class FGTEnTreatedAsZero(RegisterAccess):
    """Without SCR_EL3.FGTEn the fields are treated as zero."""

    def _fine_grained(self, trap):
        return super()._fine_grained(trap) | (~self.pe.scr_el3_fgten & trap.inverted)


class FGTEn2Disables(RegisterAccess):
    """Without SCR_EL3.FGTEn2 the traps of FEAT_FGT2 are disabled."""

    def _fine_grained(self, trap):
        trapped = super()._fine_grained(trap)
        return trapped & self.pe.scr_el3_fgten2 if trap.second else trapped


class NoInvertedTraps(RegisterAccess):
    """A field that is one traps, also if its name begins with n."""

    def _fine_grained(self, trap):
        trapped = super()._fine_grained(trap)
        return ~trapped if trap.inverted else trapped


class NSPBBit0Ignored(RegisterAccess):
    """Bit 0 of MDCR_EL3.NSPB is ignored."""

    def _trapped_to_el3(self, register):
        if register.owned:
            return self.pe.mdcr_el3_nspb[1] != self.pe.ns
        return super()._trapped_to_el3(register)


class ReservedNSPBTraps(RegisterAccess):
    """With a reserved value of MDCR_EL3.NSPB the buffer has no owner."""

    def _trapped_to_el3(self, register):
        no_owner = self.pe.mdcr_el3_nspbe & ~self.pe.mdcr_el3_nspb[1]
        return super()._trapped_to_el3(register) | (register.owned & no_owner)


class RealmTreatedAsNonSecure(RegisterAccess):
    """Realm state is treated as Non-secure state."""

    def _trapped_to_el3(self, register):
        wrong = ~self.pe.mdcr_el3_nspb[0] | (self.pe.mdcr_el3_nspb[1] != self.pe.ns)
        return wrong if register.owned else super()._trapped_to_el3(register)


class PMBIDRTrapsToEL3(RegisterAccess):
    """PMBIDR_EL1 traps to EL3 as PMBPTR_EL1 does."""

    def _trapped_to_el3(self, register):
        return super()._trapped_to_el3(arch.PMBPTR_EL1 if register is arch.PMBIDR_EL1 else register)


class PMSNEVFRNotTrapped(RegisterAccess):
    """PMSNEVFR_EL1 traps to EL3 as PMSEVFR_EL1 does, without a separate enable bit."""

    def _trapped_to_el3(self, register):
        return super()._trapped_to_el3(arch.PMSEVFR_EL1 if register is arch.PMSNEVFR_EL1 else register)


WRONG = [
    (PMSCREL2AtEL1, BOTH),
    (WritableID, CONFIGS["minimal"]),
    (EL12WithoutHost, EL2_ALONE),
    (NoRedirection, EL2_ALONE),
    (RedirectsAtEL3, BOTH),
    (EL12IsEL2, EL2_ALONE),
    (TwoTargets, CONFIGS["minimal"]),
    (TrapsIfOwned, EL2_ALONE),
    (TrapsPMBIDR, EL2_ALONE),
    (EL3First, BOTH),
    (UntrappedPMBIDR, WITHOUT_EL3),
    (ReadTrapsForWrites, WITHOUT_EL3),
    (FGTEnTreatedAsZero, FGT_FNE),
    (FGTEn2Disables, FGT2),
    (NoInvertedTraps, WITHOUT_EL3),
    (NSPBBit0Ignored, EL3_ALONE),
    (ReservedNSPBTraps, RME),
    (RealmTreatedAsNonSecure, RME),
    (PMBIDRTrapsToEL3, EL3_ALONE),
    (PMSNEVFRNotTrapped, FNE),
]


@pytest.mark.parametrize(
    ("wrong", "config"), tiers(full=WRONG[::3], long=WRONG), ids=lambda case: getattr(case, "__name__", "")
)
def test_wrong_register_accesses_fail(wrong: type[RegisterAccess], config: SPUConfig) -> None:
    assert proofs.prove(config, transition(wrong(config))).result is Result.FAIL


def test_an_el2_that_is_never_disabled_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spurtle.gateware.register_access.el2_enabled", lambda *_: C(1))
    assert proofs.prove(SEL2, transition(RegisterAccess(SEL2))).result is Result.FAIL


@pytest.mark.parametrize("outcome", Outcome)
def test_a_wrong_reference_fails(outcome: Outcome, monkeypatch: pytest.MonkeyPatch) -> None:
    accessed = arch.PMSCR_EL1 if outcome is Outcome.VALUE else None
    monkeypatch.setattr(registers, "access", lambda *_: (outcome, accessed))
    assert proofs.prove(BOTH, transition(RegisterAccess(BOTH))).result is Result.FAIL


@pytest.mark.full
def test_one_group_of_all_registers_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(register_access, "access_groups", lambda config: [[*config.accessors]])
    assert proofs.prove(BOTH, transition(RegisterAccess(BOTH))).result is Result.FAIL


class EarlyData(FaultMixin, RegisterFile):
    """An access writes the data of the access after it."""

    def add_fault(self, m):
        m.d.sync += self.wdata.eq(self.port.wdata)


class LateOutcome(FaultMixin, RegisterFile):
    """The outcome is one cycle later than the read data."""

    def add_fault(self, m):
        outcome = Signal.like(self.port.outcome)
        m.d.sync += [outcome.eq(m.submodules.access.outcome), self.port.outcome.eq(outcome)]


class MixesCycles(FaultMixin, RegisterFile):
    """A read of PMBPTR_EL1 returns its halves in two cycles."""

    def add_fault(self, m):
        before = Signal(64)
        m.d.sync += before.eq(self.pmbptr)
        with m.If(m.submodules.access.reads.pmbptr):
            m.d.sync += self.port.rdata.eq(Cat(self.pmbptr[:32], before[32:]))


class ReturnsWrittenData(FaultMixin, RegisterFile):
    """`rdata` is not zero after a write."""

    def add_fault(self, m):
        with m.If(m.submodules.access.writes.pmscr):
            m.d.sync += self.port.rdata.eq(self.wdata)


class ClearsOnRead(FaultMixin, RegisterFile):
    """A read of PMSFCR_EL1 clears it."""

    def add_fault(self, m):
        with m.If(m.submodules.access.reads.pmsfcr):
            m.d.sync += self.pmsfcr.eq(0)


class IgnoresPMBSRWrites(FaultMixin, RegisterFile):
    """A write of PMBSR_EL1 is not reported."""

    def add_fault(self, m):
        m.d.comb += self.pmbsr_write.eq(0)


class LateOwner(FaultMixin, RegisterFile):
    """PMBIDR_EL1.P depends on the owner in the cycle after the access."""

    def add_fault(self, m):
        owned = Signal()
        m.d.sync += owned.eq(~self.programmable)
        with m.If(m.submodules.access.reads.pmbidr):
            m.d.sync += self.port.rdata.eq(self.config.pmbidr | owned << arch.PMBIDR_EL1.fields["P"].lsb)


class WritesRES0(RegisterFile):
    """A write sets unimplemented bits of PMSFCR_EL1."""

    def _write(self, m, register, written):
        super()._write(m, register, written)
        if register is arch.PMSFCR_EL1:
            with m.If(written):
                m.d.sync += self.pmsfcr.eq(self.wdata)


class ReadsPCTAsWritten(RegisterFile):
    """PMSCR_EL1.PCT is readable without EL2."""

    def _value(self, register, owned):
        return self.pmscr.as_value() if register is arch.PMSCR_EL1 else super()._value(register, owned)


class ChecksAsEL0(FaultMixin, RegisterFile):
    """An access from EL1 is checked as one from EL0."""

    def add_fault(self, m):
        m.d.comb += m.submodules.access.pe.el.eq(self.pe.el & 2)


WRONG_FILES = [
    (MixesCycles, BOTH),
    (EarlyData, BOTH),
    (LateOutcome, BOTH),
    (ReturnsWrittenData, BOTH),
    (ClearsOnRead, BOTH),
    (IgnoresPMBSRWrites, BOTH),
    (LateOwner, BOTH),
    (WritesRES0, BOTH),
    (ReadsPCTAsWritten, EL3_ALONE),
    (ChecksAsEL0, BOTH),
]


@pytest.mark.parametrize(
    ("wrong", "config"),
    tiers(fast=WRONG_FILES[:1], full=WRONG_FILES[1::2], long=WRONG_FILES),
    ids=lambda case: getattr(case, "__name__", ""),
)
def test_wrong_register_files_fail(wrong: type[RegisterFile], config: SPUConfig) -> None:
    assert proofs.prove_performed(config, transition(wrong(config))).result is Result.FAIL


@pytest.mark.full
def test_a_register_that_cannot_be_read_is_not_covered() -> None:
    class UnreadPMSIRR(RegisterFile):
        """PMSIRR_EL1 reads as zero."""

        def _value(self, register, owned):
            return C(0, 64) if register is arch.PMSIRR_EL1 else super()._value(register, owned)

    assert proofs.cover_performed(BOTH, transition(RegisterFile(BOTH))).result is Result.PASS
    assert "PMSIRR_EL1" in proofs.cover_performed(BOTH, transition(UnreadPMSIRR(BOTH))).evidence


@pytest.mark.full
def test_an_unreachable_outcome_is_not_covered() -> None:
    class UntrappedPMSCR(RegisterAccess):
        """EL3 traps no access to PMSCR_EL1, nor to the other registers of its group."""

        def _trapped_to_el3(self, register):
            return C(0) if register is arch.PMSCR_EL1 else super()._trapped_to_el3(register)

    assert proofs.cover(BOTH, transition(RegisterAccess(BOTH))).result is Result.PASS
    assert "PMSCR_EL1: TRAP_EL3" in proofs.cover(BOTH, transition(UntrappedPMSCR(BOTH))).evidence
