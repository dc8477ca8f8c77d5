"""Accesses to the System registers of the SPU."""

from amaranth.lib import enum
from amaranth.lib.wiring import In, Out

from .signature import StructuralSignature

__all__ = ["AccessOutcome", "SystemRegisterSignature"]


class AccessOutcome(enum.Enum, shape=2):
    """What a System register access came to."""

    VALUE = 0
    UNDEFINED = 1
    TRAP_EL2 = 2
    TRAP_EL3 = 3


class SystemRegisterSignature(StructuralSignature):
    """MRS and MSR of the SPU's registers (op0 = 3), seen from the core.

    `rdata` and `outcome` answer two cycles after `valid`. A write has taken effect in that cycle. There can be an
    access in every cycle.

    What is the PE's alone is not done here: accesses that FEAT_NV makes traps, or accesses to memory; in Debug state
    with EDSCR.SDD a trap to EL3, which is UNDEFINED then; HCR_EL2.TIDCP.

    Members
    -------
    valid : Out(1)
        An access, in the state that `PEStateSignature` says in this cycle.
    write : Out(1)
        MSR, not MRS.
    op1, crn, crm, op2 : Out(3), Out(4), Out(4), Out(3)
        Encoding of the register.
    wdata : Out(64)
    rdata : In(64)
        Zero when the outcome is not a value.
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
                "wdata": Out(64),
                "rdata": In(64),
                "outcome": In(AccessOutcome),
            }
        )
