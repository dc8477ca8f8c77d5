"""Whether profiling is enabled, and what may be collected."""

# Ref: DDI0487 M.a, D13.5, D17.4, D17.5.5, D17.6.3.1, D17.6.4.2 and D17.6.9. This also runs over z3 values: nothing but
# `if`, comparisons, `-`, bit operations and shifts by constants.

from spurtle.arch import FM, PCT, PMBLIMITR_EL1, PMSCR_EL1, PMSCR_EL2
from spurtle.config import SPUConfig

from .pe import Owner, PEState, el2_enabled, owner, owns
from .registers import PMBLIMITR_E, PMBSR_S, Registers

__all__ = [
    "Owner",
    "PEState",
    "branch_profiled",
    "buffer_enabled",
    "collect_contextidr_el1",
    "collect_contextidr_el2",
    "collect_nv2_va",
    "collect_physical_address",
    "counters_frozen",
    "discard_mode",
    "el2_enabled",
    "owner",
    "profiling_enabled",
    "timestamp",
]

# Plain masks, because `profiling_enabled` is asked once for each operation of a program. CX, PA, TS and PCT are in the
# same places of both registers.
_E0SPE = PMSCR_EL1.fields["E0SPE"].mask
_E1SPE = PMSCR_EL1.fields["E1SPE"].mask
_E0HSPE = PMSCR_EL2.fields["E0HSPE"].mask
_E2SPE = PMSCR_EL2.fields["E2SPE"].mask
_CX = PMSCR_EL1.fields["CX"].mask
_PA = PMSCR_EL1.fields["PA"].mask
_TS = PMSCR_EL1.fields["TS"].mask
_PCT_LSB = PMSCR_EL1.fields["PCT"].lsb

_PMFZ = PMBLIMITR_EL1.fields["PMFZ"].mask
_FM = PMBLIMITR_EL1.fields["FM"]

_ALL = (1 << 64) - 1


def buffer_enabled(registers: Registers) -> bool:
    """The Profiling Buffer is enabled and profiling is not stopped."""
    return registers.PMBLIMITR_EL1 & PMBLIMITR_E != 0 and registers.PMBSR_EL1 & PMBSR_S == 0


def discard_mode(registers: Registers) -> bool:
    """Records are discarded after filtering (D17.5.5). The reserved values of FM behave as 0b00; without
    FEAT_SPEv1p2 it is always that.
    """
    return _FM.of(registers.PMBLIMITR_EL1) == FM.DISCARD


def counters_frozen(registers: Registers) -> bool:
    """Return whether the event counters of the PMU are frozen by PMBLIMITR_EL1.PMFZ: the Profiling Buffer is enabled
    and profiling is stopped (D13.5 R_HSGZX).
    """
    limit = registers.PMBLIMITR_EL1
    return limit & _PMFZ != 0 and limit & PMBLIMITR_E != 0 and registers.PMBSR_EL1 & PMBSR_S != 0


def profiling_enabled(config: SPUConfig, registers: Registers, pe: PEState) -> bool:
    """Operations at this Exception level, in this state, are members of the sample population."""
    return pe.debug == 0 and branch_profiled(config, registers, pe, el=pe.el, ns=pe.ns, nse=pe.nse, aarch32=pe.aarch32)


def branch_profiled(
    config: SPUConfig, registers: Registers, pe: PEState, *, el: int, ns: int, nse: int, aarch32: int
) -> bool:
    """A branch executed at this Exception level, in this state, was executed while profiling was enabled (D17.6.3.1).
    No branch is executed in Debug state. The fields of System registers are those in `pe`.
    """
    if not buffer_enabled(registers) or aarch32 == 1:
        return False
    who = owner(config, pe)
    # Above EL1 or EL2, which own the buffer, and so at EL3, nothing is profiled.
    if not owns(config, who, ns, nse) or el > who.el:
        return False
    host = _in_host(config, pe, ns)
    if host and who.el == 1:
        return False
    if el == 2:
        return registers.PMSCR_EL2 & _E2SPE != 0
    if el == 1:
        return registers.PMSCR_EL1 & _E1SPE != 0
    if host:
        return registers.PMSCR_EL2 & _E0HSPE != 0
    return registers.PMSCR_EL1 & _E0SPE != 0


def _in_host(config: SPUConfig, pe: PEState, ns: int) -> bool:
    """The Effective value of HCR_EL2.TGE is 1: EL0 is of EL2, and there is no EL1."""
    return el2_enabled(config, pe, ns) and pe.hcr_el2_tge == 1


def collect_contextidr_el1(config: SPUConfig, registers: Registers, pe: PEState) -> bool:
    """CONTEXTIDR_EL1 may be collected."""
    if pe.el > 1 or _in_host(config, pe, pe.ns):
        return False
    return registers.PMSCR_EL1 & _CX != 0


def collect_contextidr_el2(config: SPUConfig, registers: Registers, pe: PEState) -> bool:
    """CONTEXTIDR_EL2 may be collected, and records have a field for it, as they must with EL2."""
    return el2_enabled(config, pe, pe.ns) and registers.PMSCR_EL2 & _CX != 0


def collect_physical_address(config: SPUConfig, registers: Registers, pe: PEState) -> bool:
    """The physical address of a data access may be collected."""
    who = owner(config, pe)
    # Otherwise the Effective value of PMSCR_EL2.PA is 1.
    if el2_enabled(config, pe, who.ns) and registers.PMSCR_EL2 & _PA == 0:
        return False
    return who.el == 2 or registers.PMSCR_EL1 & _PA != 0


def collect_nv2_va(config: SPUConfig, registers: Registers, pe: PEState) -> bool:
    """The virtual address of a System register that FEAT_NV2 keeps in memory may be collected: profiling is enabled at
    EL2 (D17.6.4.2).
    """
    return config.nv2 and branch_profiled(config, registers, pe, el=2, ns=pe.ns, nse=pe.nse, aarch32=pe.aarch32)


def timestamp(config: SPUConfig, registers: Registers, pe: PEState) -> int | None:
    """The time that is collected, if it may be: none while the system counter is disabled."""
    enabling = registers.PMSCR_EL2 if owner(config, pe).el == 2 else registers.PMSCR_EL1
    if enabling & _TS == 0 or pe.count_enabled == 0:
        return None
    kind = _time(config, registers, pe)
    if kind == PCT.PHYSICAL:
        return pe.physical_count
    offset = _virtual_offset(config, pe) if kind == PCT.VIRTUAL else _physical_offset(config, pe)
    return pe.physical_count - offset & _ALL


def _time(config: SPUConfig, registers: Registers, pe: PEState) -> PCT:
    """Table D17-3. What reserved values ask for is virtual time, the least that can be shown."""
    el1 = _asked(registers.PMSCR_EL1)
    if not el2_enabled(config, pe, pe.ns):
        return el1
    el2 = _asked(registers.PMSCR_EL2)
    if owner(config, pe).el == 2 or el2 == PCT.VIRTUAL:
        return el2
    # EL1 may ask for virtual time; its physical time is no other than EL2 lets it have.
    return el1 if el2 == PCT.PHYSICAL or el1 == PCT.VIRTUAL else el2


def _asked(pmscr: int) -> PCT:
    """PCT. Its bit 1 is zero without FEAT_ECV."""
    pct = pmscr >> _PCT_LSB & 0b11
    if pct == PCT.PHYSICAL:
        return PCT.PHYSICAL
    if pct == PCT.OFFSET_PHYSICAL:
        return PCT.OFFSET_PHYSICAL
    return PCT.VIRTUAL


def _virtual_offset(config: SPUConfig, pe: PEState) -> int:
    """CNTVOFF_EL2, where a host's CNTVCT_EL0 does not count without it."""
    if not config.el2:
        return 0
    if el2_enabled(config, pe, pe.ns) and pe.hcr_el2_e2h == 1 and (pe.el == 2 or (pe.el == 0 and pe.hcr_el2_tge == 1)):
        return 0
    return pe.cntvoff_el2


def _physical_offset(config: SPUConfig, pe: PEState) -> int:
    """CNTPOFF_EL2, where there is one and it is enabled."""
    if not config.ecv_poff or pe.cnthctl_el2_ecv == 0:
        return 0
    if config.el3 and pe.scr_el3_ecven == 0:
        return 0
    return pe.cntpoff_el2
