"""State of the PE, and the owner of the Profiling Buffer.

Ref: DDI0487 M.a, D17.4 and D24.7 (PMBIDR_EL1.P).
"""

from dataclasses import dataclass

from spurtle.arch import REGISTERS
from spurtle.config import SPUConfig

__all__ = ["Owner", "PEState", "el2_enabled", "owner", "owns", "programmable"]


def _no_traps(*, second: bool) -> int:
    """Return the value of HDFG{R,W}TR_EL2, or of HDFG{R,W}TR2_EL2 if `second` is true, that traps no access."""
    traps = [register.fine_grained for register in REGISTERS if register.fine_grained]
    return sum(1 << trap.bit for trap in traps if trap.second == second and trap.inverted)


@dataclass(frozen=True, kw_only=True, slots=True)
class PEState:
    """State of the PE for the operation at the sampling point.

    The members are those of `interface.pe_state.PEStateSignature`, except that the fine-grained trap registers are
    complete registers. Members of an unimplemented feature are ignored.

    The PE is in Realm state if both `ns` and `nse` are 1. By default Non-secure EL1 owns the buffer, and none of its
    accesses to System registers is trapped.
    """

    el: int = 0
    ns: int = 1
    nse: int = 0
    debug: int = 0
    aarch32: int = 0
    contextidr_el1: int = 0
    contextidr_el2: int = 0
    mdcr_el2_e2pb: int = 0b11
    mdcr_el2_tpms: int = 0
    hcr_el2_e2h: int = 0
    hcr_el2_tge: int = 0
    cntvoff_el2: int = 0
    cnthctl_el2_ecv: int = 0
    cntpoff_el2: int = 0
    mdcr_el3_nspb: int = 0b11
    mdcr_el3_nspbe: int = 0
    scr_el3_eel2: int = 0
    scr_el3_ecven: int = 0
    mdcr_el3_enpmsn: int = 1
    mdcr_el3_enpms3: int = 1
    hdfgrtr_el2: int = _no_traps(second=False)
    hdfgwtr_el2: int = _no_traps(second=False)
    scr_el3_fgten: int = 1
    hdfgrtr2_el2: int = _no_traps(second=True)
    hdfgwtr2_el2: int = _no_traps(second=True)
    scr_el3_fgten2: int = 1
    physical_count: int = 0
    count_enabled: int = 1


@dataclass(frozen=True, slots=True)
class Owner:
    """Security state and Exception level, 1 or 2, that own the Profiling Buffer."""

    ns: int
    nse: int
    el: int


def owner(config: SPUConfig, pe: PEState) -> Owner:
    """Return the owner of the Profiling Buffer.

    Without EL3 there is only one Security state. Secure state owns the buffer if MDCR_EL3.{NSPBE, NSPB} has a reserved
    value.
    """
    ns, nse = pe.ns, 0
    if config.el3:
        ns = pe.mdcr_el3_nspb >> 1
        if config.rme and ns == 1:
            nse = pe.mdcr_el3_nspbe
    if el2_enabled(config, pe, ns) and pe.mdcr_el2_e2pb == 0:
        return Owner(ns, nse, 2)
    return Owner(ns, nse, 1)


def el2_enabled(config: SPUConfig, pe: PEState, ns: int) -> bool:
    """Return whether EL2 is enabled in a Security state: Secure if `ns` is 0, otherwise Non-secure or Realm.

    Without EL3 there is only one Security state.
    """
    if not config.el2:
        return False
    if ns == 1 or not config.el3:
        return True
    return config.sel2 and pe.scr_el3_eel2 == 1


def programmable(config: SPUConfig, pe: PEState) -> bool:
    """Return whether software in this state of the PE can program the Profiling Buffer: PMBIDR_EL1.P is zero."""
    if pe.el == 3:
        return True
    buffer_owner = owner(config, pe)
    return owns(config, buffer_owner, pe.ns, pe.nse) and pe.el >= buffer_owner.el


def owns(config: SPUConfig, buffer_owner: Owner, ns: int, nse: int) -> bool:
    """Return whether a Security state owns the Profiling Buffer. Without EL3 the only Security state does."""
    if not config.el3:
        return True
    if config.rme and nse != buffer_owner.nse:
        return False
    return ns == buffer_owner.ns
