"""Whether profiling is enabled, and what may be collected. The Profiling Buffer is owned by Non-secure EL1."""

# Ref: DDI0487 M.a, D17.4, D17.5.5, D17.6.3.1 and D17.6.9.

from dataclasses import dataclass

from spurtle.arch import FM, PMBLIMITR_EL1, PMSCR_EL1

from .registers import PMBLIMITR_E, PMBSR_S, Registers

__all__ = [
    "PEState",
    "branch_profiled",
    "buffer_enabled",
    "collect_contextidr_el1",
    "collect_physical_address",
    "collect_timestamp",
    "discard_mode",
    "profiling_enabled",
]

# Plain masks, because `profiling_enabled` is asked once for each operation of a program.
_E0SPE = PMSCR_EL1.fields["E0SPE"].mask
_E1SPE = PMSCR_EL1.fields["E1SPE"].mask
_CX = PMSCR_EL1.fields["CX"].mask
_PA = PMSCR_EL1.fields["PA"].mask
_TS = PMSCR_EL1.fields["TS"].mask


@dataclass(frozen=True, kw_only=True, slots=True)
class PEState:
    """State of the PE, as it is for the operation at the sampling point: the members of `spurtle.pe.PEState`.

    It is in Realm state where both `ns` and `nse` are 1.
    """

    el: int = 0
    ns: int = 1
    nse: int = 0
    debug: int = 0
    aarch32: int = 0
    contextidr_el1: int = 0
    physical_count: int = 0


def buffer_enabled(registers: Registers) -> bool:
    """The Profiling Buffer is enabled and profiling is not stopped."""
    return registers.PMBLIMITR_EL1 & PMBLIMITR_E != 0 and registers.PMBSR_EL1 & PMBSR_S == 0


def discard_mode(registers: Registers) -> bool:
    """Records are discarded after filtering (D17.5.5). The reserved values of FM behave as 0b00; without
    FEAT_SPEv1p2 it is always that.
    """
    return PMBLIMITR_EL1.unpack(registers.PMBLIMITR_EL1).FM == FM.DISCARD


def profiling_enabled(registers: Registers, pe: PEState) -> bool:
    """Operations at this Exception level, in this state, are members of the sample population."""
    return pe.debug == 0 and branch_profiled(registers, pe.el, pe.ns, pe.nse, pe.aarch32)


def branch_profiled(registers: Registers, el: int, ns: int, nse: int, aarch32: int) -> bool:
    """A branch executed at this Exception level, in this state, was executed while profiling was enabled (D17.6.3.1).
    No branch is executed in Debug state.
    """
    if not buffer_enabled(registers):
        return False
    # Realm state is not Non-secure state, which owns the buffer.
    if ns == 0 or nse == 1 or aarch32 == 1:
        return False
    if el == 0:
        return registers.PMSCR_EL1 & _E0SPE != 0
    if el == 1:
        return registers.PMSCR_EL1 & _E1SPE != 0
    return False


def collect_contextidr_el1(registers: Registers, pe: PEState) -> bool:
    """CONTEXTIDR_EL1 may be collected: at EL0 and EL1 alone."""
    return registers.PMSCR_EL1 & _CX != 0 and (pe.el == 0 or pe.el == 1)


def collect_timestamp(registers: Registers) -> bool:
    """The timestamp may be collected. Without EL2 both offsets are zero, so that PMSCR_EL1.PCT changes nothing."""
    return registers.PMSCR_EL1 & _TS != 0


def collect_physical_address(registers: Registers) -> bool:
    """The physical address of a data access may be collected."""
    return registers.PMSCR_EL1 & _PA != 0
