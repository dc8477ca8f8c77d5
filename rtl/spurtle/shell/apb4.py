"""System register accesses by APB4.

Ref: IHI0024 (APB4).
"""

from typing import ClassVar

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..gateware.fsm import FSMState
from ..interface.signature import StructuralSignature
from ..interface.sysreg import ACCESS_LATENCY, AccessOutcome, SystemRegisterSignature

__all__ = ["APB4", "APB4Completer", "CompleterState"]


class APB4(StructuralSignature):
    """APB4, seen from the requester. Signals have the names and meanings of IHI0024.

    There is no PPROT: `PEStateSignature` carries the state in which the register is accessed.

    Members
    -------
    paddr : Out(17)
        Byte address of one half of a register. The low half is at eight times the encoding of the register, as in the
        SVD file: op1 in bits [16:14], CRn in [13:10], CRm in [9:6], op2 in [5:3]. The high half follows four bytes
        later. Bits [1:0] are ignored.
    """

    def __init__(self):
        super().__init__(
            {
                "paddr": Out(17),
                "psel": Out(1),
                "penable": Out(1),
                "pwrite": Out(1),
                "pwdata": Out(32),
                "pstrb": Out(4),
                "pready": In(1),
                "prdata": In(32),
                "pslverr": In(1),
            }
        )


class CompleterState(FSMState):
    """States of `APB4Completer`."""

    IDLE = 0
    ACCESS = 1


class APB4Completer(wiring.Component):
    """MRS and MSR by APB4.

    A register has 64 bits and a transfer has 32, so an access takes two transfers, the low half first. A read of the
    low half reads the register and stores its high half. A read of the high half returns the stored value and accesses
    nothing. A write of the low half is stored. A write of the high half writes the register. Bytes whose strobe is zero
    keep their value; only for such a write is the register read first.

    Timing: a transfer that accesses nothing takes one cycle in the access phase, an access `ACCESS_LATENCY` + 1
    cycles, and a write that reads the register first 2 * `ACCESS_LATENCY` + 1. PSLVERR reports that the register was
    not accessed, because the access is UNDEFINED or trapped. Reset: no half is stored.

    Members
    -------
    apb : In(APB4)
    sysreg : Out(SystemRegisterSignature)
    """

    proof_signals: ClassVar[tuple[str, ...]] = ("completer_state", "low_strobe", "merging", "waiting")
    """Names of internal signals that proofs in `formal/` read."""

    def __init__(self):
        super().__init__({"apb": In(APB4()), "sysreg": Out(SystemRegisterSignature())})

    def elaborate(self, platform):
        m = Module()

        apb, sysreg = self.apb, self.sysreg
        upper = apb.paddr[2]
        high = Signal(32)
        low = Signal(32)
        low_strobe = Signal(4)
        strobe = Cat(low_strobe, apb.pstrb)
        written = Cat(low, apb.pwdata)
        m.d.comb += [
            Cat(sysreg.op2, sysreg.crm, sysreg.crn, sysreg.op1).eq(apb.paddr[3:]),
            *(
                sysreg.wdata.word_select(byte, 8).eq(
                    Mux(strobe[byte], written.word_select(byte, 8), sysreg.rdata.word_select(byte, 8))
                )
                for byte in range(8)
            ),
            apb.prdata.eq(Mux(upper, high, sysreg.rdata)),
        ]

        merging = Signal()  # the access reads the register first, to keep its bytes without a strobe
        waiting = Signal(ACCESS_LATENCY)  # one-hot: cycles since the access
        m.d.sync += waiting.eq(Cat(sysreg.valid, waiting))
        answered = waiting[-1]
        with m.FSM(name="completer"):
            with m.State(CompleterState.IDLE):
                # A read of the low half and a write of the high half access the register.
                with m.If(apb.psel & apb.penable & (upper == apb.pwrite)):
                    m.d.comb += [sysreg.valid.eq(1), sysreg.write.eq(apb.pwrite & strobe.all())]
                    m.d.sync += merging.eq(apb.pwrite & ~strobe.all())
                    m.next = CompleterState.ACCESS
                with m.Elif(apb.psel & apb.penable):
                    m.d.comb += apb.pready.eq(1)
                    with m.If(apb.pwrite):
                        m.d.sync += [low.eq(apb.pwdata), low_strobe.eq(apb.pstrb)]

            with m.State(CompleterState.ACCESS):
                accessed = sysreg.outcome == AccessOutcome.VALUE
                with m.If(answered & merging & accessed):
                    m.d.comb += [sysreg.valid.eq(1), sysreg.write.eq(1)]
                    m.d.sync += merging.eq(0)
                with m.Elif(answered):
                    m.d.comb += [apb.pready.eq(1), apb.pslverr.eq(~accessed)]
                    with m.If(apb.pwrite):
                        # Another write of the high half must not write the low half again.
                        m.d.sync += low_strobe.eq(0)
                    with m.Else():
                        m.d.sync += high.eq(sysreg.rdata[32:])
                    m.next = CompleterState.IDLE

        return m
