"""Accesses to System registers by APB4."""

# Ref: IHI0024 (APB4).

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..gateware.fsm import FSMState
from ..interface.signature import StructuralSignature
from ..interface.sysreg import AccessOutcome, SystemRegisterSignature

__all__ = ["APB4", "APB4Completer", "CompleterState"]


class APB4(StructuralSignature):
    """APB4, seen from the requester. Names and meanings are APB's.

    There is no PPROT: `PEStateSignature` says who accesses.

    Members
    -------
    paddr : Out(17)
        Of a register's low half eight times its encoding, as in the SVD: op1 in bits [16:14], CRn in [13:10], CRm in
        [9:6], op2 in [5:3]. Of its high half four more. Bits [1:0] are not looked at.
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
    RESPONSE = 2


class APB4Completer(wiring.Component):
    """MRS and MSR by APB4. A register has 64 bits and a transfer 32, so that it takes two, the low half first.

    A read of the low half reads the register, and keeps the high half of that moment for the read of a high half, which
    accesses nothing. A write of a low half is kept for the write of a high half, which writes the register. What is not
    strobed keeps its value: then, and only then, the register is read before. Transfers that access nothing take one
    cycle in the access phase, others three, or five.

    PSLVERR says that the register has not been accessed: UNDEFINED, or trapped. Reset: nothing is kept.

    Members
    -------
    apb : In(APB4)
    sysreg : Out(SystemRegisterSignature)
    """

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

        merging = Signal()
        with m.FSM(name="completer"):
            with m.State(CompleterState.IDLE):
                with m.If(apb.psel & apb.penable & (upper == apb.pwrite)):
                    m.d.comb += [sysreg.valid.eq(1), sysreg.write.eq(apb.pwrite & strobe.all())]
                    m.d.sync += merging.eq(apb.pwrite & ~strobe.all())
                    m.next = CompleterState.ACCESS
                with m.Elif(apb.psel & apb.penable):
                    m.d.comb += apb.pready.eq(1)
                    with m.If(apb.pwrite):
                        m.d.sync += [low.eq(apb.pwdata), low_strobe.eq(apb.pstrb)]

            with m.State(CompleterState.ACCESS):
                m.next = CompleterState.RESPONSE

            with m.State(CompleterState.RESPONSE):
                accessed = sysreg.outcome == AccessOutcome.VALUE
                with m.If(merging & accessed):
                    m.d.comb += [sysreg.valid.eq(1), sysreg.write.eq(1)]
                    m.d.sync += merging.eq(0)
                    m.next = CompleterState.ACCESS
                with m.Else():
                    m.d.comb += [apb.pready.eq(1), apb.pslverr.eq(~accessed)]
                    with m.If(apb.pwrite):
                        m.d.sync += low_strobe.eq(0)
                    with m.Else():
                        m.d.sync += high.eq(sysreg.rdata[32:])
                    m.next = CompleterState.IDLE

        return m
