"""Accesses to the System registers of the SPU."""

from amaranth.lib import enum
from amaranth.lib.wiring import In, Out

from ..arch import REGISTER_BITS
from .signature import StructuralSignature

__all__ = ["ACCESS_LATENCY", "AccessOutcome", "SystemRegisterSignature"]


ACCESS_LATENCY = 3
"""Cycles from an access to its result. In that cycle a write has taken effect."""


class AccessOutcome(enum.Enum, shape=2):
    """Outcome of a System register access."""

    VALUE = 0
    UNDEFINED = 1
    TRAP_EL2 = 2
    TRAP_EL3 = 3


class SystemRegisterSignature(StructuralSignature):
    """MRS and MSR of the SPU's registers (op0 = 3), seen from the core.

    `rdata` and `outcome` are valid `ACCESS_LATENCY` = 3 cycles after `valid`. A write has taken effect in that cycle.
    There can be an access in every cycle. Accesses are performed in order: a read returns what earlier ones wrote. A
    read samples all bits of the register in the cycle before `rdata` is valid, also if the SPU itself changes the
    register, for example PMBPTR_EL1. PMSCR_EL1 and PMSCR_EL2 take effect for operations one cycle later
    (`PEStateSignature`).

    The PE itself handles accesses that FEAT_NV traps or transforms into memory accesses, traps to EL3 in Debug state
    with EDSCR.SDD, which are UNDEFINED, and HCR_EL2.TIDCP.

    Members
    -------
    valid : Out(1)
        Access, in the state that `PEStateSignature` carries in this cycle.
    write : Out(1)
        MSR if one, MRS if zero.
    op1, crn, crm, op2 : Out(3), Out(4), Out(4), Out(3)
        Encoding of the register.
    wdata : Out(64)
    rdata : In(64)
        Zero unless `outcome` is VALUE.
    outcome : In(AccessOutcome)
    """

    def __init__(self):
        super().__init__(
            {
                "valid": Out(1),
                "write": Out(1),
                "op1": Out(3),
                "crn": Out(4),
                "crm": Out(4),
                "op2": Out(3),
                "wdata": Out(REGISTER_BITS),
                "rdata": In(REGISTER_BITS),
                "outcome": In(AccessOutcome),
            }
        )
