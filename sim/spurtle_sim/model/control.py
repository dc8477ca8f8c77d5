"""Conditions under which profiling is enabled, and permissions to collect contexts, addresses and timestamps.

All functions also run on z3 values. They therefore use only `if`, comparisons, `-`, bit operations and shifts by
constants.

Ref: DDI0487 M.a, D13.5, D17.4, D17.5.5, D17.6.3.1, D17.6.4.2 and D17.6.9.
"""

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

# Masks are computed once, because `profiling_enabled` is called for each operation of a program. CX, PA, TS and PCT
# have the same bit positions in PMSCR_EL1 and PMSCR_EL2.
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
    """Return whether the Profiling Buffer is enabled and profiling is not stopped."""
    return registers.PMBLIMITR_EL1 & PMBLIMITR_E != 0 and registers.PMBSR_EL1 & PMBSR_S == 0


def discard_mode(registers: Registers) -> bool:
    """Return whether records are discarded after filtering (D17.5.5).

    Reserved values of PMBLIMITR_EL1.FM behave as 0b00. Without FEAT_SPEv1p2 FM is always 0b00.
    """
    return _FM.of(registers.PMBLIMITR_EL1) == FM.DISCARD


def counters_frozen(registers: Registers) -> bool:
    """Return whether PMBLIMITR_EL1.PMFZ freezes the PMU event counters.

    The counters are frozen if PMFZ is 1, the Profiling Buffer is enabled and profiling is stopped (D13.5, R_HSGZX).
    """
    limit = registers.PMBLIMITR_EL1
    return limit & _PMFZ != 0 and limit & PMBLIMITR_E != 0 and registers.PMBSR_EL1 & PMBSR_S != 0


def profiling_enabled(config: SPUConfig, registers: Registers, pe: PEState) -> bool:
    """Return whether operations in this state of the PE are members of the sample population."""
    return pe.debug == 0 and branch_profiled(config, registers, pe, el=pe.el, ns=pe.ns, nse=pe.nse, aarch32=pe.aarch32)


def branch_profiled(
    config: SPUConfig, registers: Registers, pe: PEState, *, el: int, ns: int, nse: int, aarch32: int
) -> bool:
    """Return whether profiling is enabled where a branch was executed (D17.6.3.1).

    `el`, `ns`, `nse` and `aarch32` describe where the branch was executed. The fields of System registers are those in
    `pe`. The PE executes no branch in Debug state.
    """
    if not buffer_enabled(registers) or aarch32 == 1:
        return False
    buffer_owner = owner(config, pe)
    # Profiling is disabled at Exception levels above the owner, which is EL1 or EL2, and so always at EL3.
    if not owns(config, buffer_owner, ns, nse) or el > buffer_owner.el:
        return False
    host = _in_host(config, pe, ns)
    if host and buffer_owner.el == 1:
        return False
    if el == 2:
        return registers.PMSCR_EL2 & _E2SPE != 0
    if el == 1:
        return registers.PMSCR_EL1 & _E1SPE != 0
    if host:
        return registers.PMSCR_EL2 & _E0HSPE != 0
    return registers.PMSCR_EL1 & _E0SPE != 0


def _in_host(config: SPUConfig, pe: PEState, ns: int) -> bool:
    """Return whether the Effective value of HCR_EL2.TGE is 1: EL0 belongs to EL2, and EL1 is not used."""
    return el2_enabled(config, pe, ns) and pe.hcr_el2_tge == 1


def collect_contextidr_el1(config: SPUConfig, registers: Registers, pe: PEState) -> bool:
    """Return whether CONTEXTIDR_EL1 may be collected."""
    if pe.el > 1 or _in_host(config, pe, pe.ns):
        return False
    return registers.PMSCR_EL1 & _CX != 0


def collect_contextidr_el2(config: SPUConfig, registers: Registers, pe: PEState) -> bool:
    """Return whether CONTEXTIDR_EL2 may be collected. Every record layout of a PE with EL2 has a field for it."""
    return el2_enabled(config, pe, pe.ns) and registers.PMSCR_EL2 & _CX != 0


def collect_physical_address(config: SPUConfig, registers: Registers, pe: PEState) -> bool:
    """Return whether the physical address of a data access may be collected."""
    buffer_owner = owner(config, pe)
    # If EL2 is disabled in the owning Security state, the Effective value of PMSCR_EL2.PA is 1.
    if el2_enabled(config, pe, buffer_owner.ns) and registers.PMSCR_EL2 & _PA == 0:
        return False
    return buffer_owner.el == 2 or registers.PMSCR_EL1 & _PA != 0


def collect_nv2_va(config: SPUConfig, registers: Registers, pe: PEState) -> bool:
    """Return whether the virtual address of a System register that FEAT_NV2 keeps in memory may be collected.

    It may be collected if profiling is enabled at EL2 (D17.6.4.2).
    """
    return config.nv2 and branch_profiled(config, registers, pe, el=2, ns=pe.ns, nse=pe.nse, aarch32=pe.aarch32)


def timestamp(config: SPUConfig, registers: Registers, pe: PEState) -> int | None:
    """Return the timestamp to collect, or None if it must not be collected or the system counter is disabled."""
    pmscr = registers.PMSCR_EL2 if owner(config, pe).el == 2 else registers.PMSCR_EL1
    if pmscr & _TS == 0 or pe.count_enabled == 0:
        return None
    pct = _timestamp_source(config, registers, pe)
    if pct == PCT.PHYSICAL:
        return pe.physical_count
    offset = _virtual_offset(config, pe) if pct == PCT.VIRTUAL else _physical_offset(config, pe)
    return pe.physical_count - offset & _ALL


def _timestamp_source(config: SPUConfig, registers: Registers, pe: PEState) -> PCT:
    """Return the kind of time to collect (Table D17-3).

    A reserved value of PCT selects virtual time, which reveals the least.
    """
    el1 = _pct(registers.PMSCR_EL1)
    if not el2_enabled(config, pe, pe.ns):
        return el1
    el2 = _pct(registers.PMSCR_EL2)
    if owner(config, pe).el == 2 or el2 == PCT.VIRTUAL:
        return el2
    # EL1 owns the buffer and can select virtual time. If it selects physical time, the physical offset is subtracted
    # unless both registers select physical time without the offset.
    return el1 if el2 == PCT.PHYSICAL or el1 == PCT.VIRTUAL else el2


def _pct(pmscr: int) -> PCT:
    """Return PMSCR_EL1.PCT or PMSCR_EL2.PCT. Bit 1 is zero without FEAT_ECV."""
    pct = pmscr >> _PCT_LSB & 0b11
    if pct == PCT.PHYSICAL:
        return PCT.PHYSICAL
    if pct == PCT.OFFSET_PHYSICAL:
        return PCT.OFFSET_PHYSICAL
    return PCT.VIRTUAL


def _virtual_offset(config: SPUConfig, pe: PEState) -> int:
    """Return CNTVOFF_EL2, or zero without EL2 and in a host, where CNTVCT_EL0 is not offset."""
    if not config.el2:
        return 0
    if el2_enabled(config, pe, pe.ns) and pe.hcr_el2_e2h == 1 and (pe.el == 2 or (pe.el == 0 and pe.hcr_el2_tge == 1)):
        return 0
    return pe.cntvoff_el2


def _physical_offset(config: SPUConfig, pe: PEState) -> int:
    """Return CNTPOFF_EL2, or zero if it is not implemented or not enabled."""
    if not config.ecv_poff or pe.cnthctl_el2_ecv == 0:
        return 0
    if config.el3 and pe.scr_el3_ecven == 0:
        return 0
    return pe.cntpoff_el2
