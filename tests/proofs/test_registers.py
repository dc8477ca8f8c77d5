"""The proof of what a System register access comes to finds what is wrong."""

from dataclasses import replace
from functools import partial

import pytest
from amaranth.hdl import C

from configurations import FEATURES
from formal.engine.proof import Result
from formal.engine.terms import boolean
from formal.engine.transition import transition
from formal.registers import registers as proofs
from formal.registers.registers import WITHOUT_EL3
from spurtle import arch
from spurtle.config import CONFIGS, SPUConfig
from spurtle.gateware.registers import RegisterAccess
from spurtle_sim.model import registers
from spurtle_sim.model.registers import Outcome
from tests.support.proofs import check_faults
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


class Trusting(RegisterAccess):
    """Lets EL1 have EL2's register."""

    def _undefined(self, register, host):
        return (self.pe.el == 0) if register is arch.PMSCR_EL2 else super()._undefined(register, host)


class Writable(RegisterAccess):
    """Takes writes to an ID register."""

    def _undefined(self, register, host):
        return super()._undefined(register, host) & ~((self.pe.el != 0) & self.write)


class NoHost(RegisterAccess):
    """Knows PMSCR_EL12 whatever HCR_EL2.E2H is."""

    def _undefined(self, register, host):
        return super()._undefined(register, C(1))


class Unaware(RegisterAccess):
    """PMSCR_EL1 is EL1's for a host as well."""

    def _mean(self, m, register, host):
        super()._mean(m, register, C(0))


class AtEL3(RegisterAccess):
    """A host's name for its register is EL3's name for it, too."""

    def _mean(self, m, register, host):
        super()._mean(m, register, host)
        if register is arch.PMSCR_EL1:
            redirected = self.pe.el[1] & host
            m.d.comb += [self.target.pmscr.eq(~redirected), self.target.pmscr_el2.eq(redirected)]


class Another(RegisterAccess):
    """PMSCR_EL12 is EL2's register."""

    def _mean(self, m, register, host):
        super()._mean(m, register, host)
        if register is arch.PMSCR_EL12:
            m.d.comb += [self.target.pmscr.eq(0), self.target.pmscr_el2.eq(1)]


class TwoTargets(RegisterAccess):
    """Writes PMSICR_EL1 along with PMSIRR_EL1."""

    def _mean(self, m, register, host):
        super()._mean(m, register, host)
        if register is arch.PMSIRR_EL1:
            m.d.comb += self.target.pmsicr.eq(1)


class Owned(RegisterAccess):
    """The buffer's registers trap if EL2 owns it, and not as bit 0 of MDCR_EL2.E2PB says."""

    def _trapped_to_el2(self, register):
        if register.trap is arch.Trap.E2PB:
            return self.pe.mdcr_el2_e2pb == 0
        return super()._trapped_to_el2(register)


class Identified(RegisterAccess):
    """PMBIDR_EL1 traps with the registers of sampling."""

    def _trapped_to_el2(self, register):
        return super()._trapped_to_el2(register) | ((register is arch.PMBIDR_EL1) & self.pe.mdcr_el2_tpms)


class EL3First(RegisterAccess):
    """EL3 takes what EL2 would."""

    def _trapped_to_el2(self, register):
        return super()._trapped_to_el2(register) & ~self._trapped_to_el3(register)


class Untrapped(RegisterAccess):
    """Has no fine-grained trap of PMBIDR_EL1."""

    def _fine_grained(self, trap):
        return C(0) if trap.bit == 63 else super()._fine_grained(trap)


class Reading(RegisterAccess):
    """What traps reads traps writes."""

    def _fine_grained(self, trap):
        write, self.write = self.write, C(0)
        trapped = super()._fine_grained(trap)
        self.write = write
        return trapped


class Zero(RegisterAccess):
    """Without SCR_EL3.FGTEn all fields are as if they were zero."""

    def _fine_grained(self, trap):
        return super()._fine_grained(trap) | (~self.pe.scr_el3_fgten & trap.inverted)


class Gone(RegisterAccess):
    """Without SCR_EL3.FGTEn2 there are no traps of FEAT_FGT2."""

    def _fine_grained(self, trap):
        trapped = super()._fine_grained(trap)
        return trapped & self.pe.scr_el3_fgten2 if trap.second else trapped


class Upright(RegisterAccess):
    """Traps if the field is one, whatever its name begins with."""

    def _fine_grained(self, trap):
        trapped = super()._fine_grained(trap)
        return ~trapped if trap.inverted else trapped


class Lenient(RegisterAccess):
    """Bit 0 of MDCR_EL3.NSPB has no say."""

    def _trapped_to_el3(self, register):
        if register.owned:
            return self.pe.mdcr_el3_nspb[1] != self.pe.ns
        return super()._trapped_to_el3(register)


class Reserved(RegisterAccess):
    """Nobody's is the buffer in a reserved setting of MDCR_EL3.NSPB."""

    def _trapped_to_el3(self, register):
        nobody = self.pe.mdcr_el3_nspbe & ~self.pe.mdcr_el3_nspb[1]
        return super()._trapped_to_el3(register) | (register.owned & nobody)


class Alike(RegisterAccess):
    """Takes Realm state for Non-secure state."""

    def _trapped_to_el3(self, register):
        wrong = ~self.pe.mdcr_el3_nspb[0] | (self.pe.mdcr_el3_nspb[1] != self.pe.ns)
        return wrong if register.owned else super()._trapped_to_el3(register)


class Closed(RegisterAccess):
    """Not even PMBIDR_EL1 is there for all."""

    def _trapped_to_el3(self, register):
        return super()._trapped_to_el3(arch.PMBPTR_EL1 if register is arch.PMBIDR_EL1 else register)


class Open(RegisterAccess):
    """EL3 enables PMSNEVFR_EL1 always."""

    def _trapped_to_el3(self, register):
        return super()._trapped_to_el3(arch.PMSEVFR_EL1 if register is arch.PMSNEVFR_EL1 else register)


WRONG = [
    (Trusting, BOTH),
    (Writable, CONFIGS["minimal"]),
    (NoHost, EL2_ALONE),
    (Unaware, EL2_ALONE),
    (AtEL3, BOTH),
    (Another, EL2_ALONE),
    (TwoTargets, CONFIGS["minimal"]),
    (Owned, EL2_ALONE),
    (Identified, EL2_ALONE),
    (EL3First, BOTH),
    (Untrapped, WITHOUT_EL3),
    (Reading, WITHOUT_EL3),
    (Zero, FGT_FNE),
    (Gone, FGT2),
    (Upright, WITHOUT_EL3),
    (Lenient, EL3_ALONE),
    (Reserved, RME),
    (Alike, RME),
    (Closed, EL3_ALONE),
    (Open, FNE),
]


@pytest.mark.parametrize(
    ("wrong", "config"), tiers(fast=WRONG[:1], full=WRONG), ids=lambda case: getattr(case, "__name__", "")
)
def test_wrong_register_accesses_fail(wrong: type[RegisterAccess], config: SPUConfig) -> None:
    assert proofs.prove(config, transition(wrong(config))).result is Result.FAIL


def test_an_el2_that_is_never_disabled_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spurtle.gateware.registers.el2_enabled", lambda *_: C(1))
    assert proofs.prove(SEL2, transition(RegisterAccess(SEL2))).result is Result.FAIL


@pytest.mark.parametrize("outcome", Outcome)
def test_a_wrong_reference_fails(outcome: Outcome, monkeypatch: pytest.MonkeyPatch) -> None:
    accessed = arch.PMSCR_EL1 if outcome is Outcome.VALUE else None
    monkeypatch.setattr(registers, "access", lambda *_: (outcome, accessed))
    assert proofs.prove(BOTH, transition(RegisterAccess(BOTH))).result is Result.FAIL


def test_an_unreachable_outcome_is_not_covered() -> None:
    class Free(RegisterAccess):
        """EL3 traps no access to PMSLATFR_EL1."""

        def _trapped_to_el3(self, register):
            return C(0) if register is arch.PMSLATFR_EL1 else super()._trapped_to_el3(register)

    assert proofs.cover(BOTH, transition(RegisterAccess(BOTH))).result is Result.PASS
    assert "PMSLATFR_EL1: TRAP_EL3" in proofs.cover(BOTH, transition(Free(BOTH))).evidence
