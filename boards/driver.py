"""The demonstration's driver: programs the SPU as an operating system does, and serves its interrupt for ever."""

# Ref: DDI0487 M.a, D17.7; the order of accesses is that of the Linux driver.

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from spurtle import arch
from spurtle.config import SPUConfig
from spurtle.pe import Drain, SystemRegisterPort

__all__ = ["Driver"]

_LIMIT = 0xFFFF_0000_1000_1000


class Driver(wiring.Component):
    """Writes the registers after reset, lets the program run at EL0, and stops it on PMBIRQ: it drains the SPU, sets
    PMBPTR_EL1 back and clears PMBSR_EL1. The records have left the FPGA already, so that it reads nothing.

    Reset: the start-up sequence begins; the program does not run.

    Parameters
    ----------
    config : SPUConfig
    interval : int
        PMSIRR_EL1.INTERVAL.
    buffer_records : int
        Records that fit between PMBPTR_EL1 and LIMIT.

    Members
    -------
    sysreg : Out(SystemRegisterPort)
    drain : Out(Drain)
    pmbirq : In(1)
    run : Out(1)
        The PE executes the program at EL0. Otherwise it executes this driver, at EL1.
    idle : In(1)
        Nothing of the program is in flight.
    """

    def __init__(self, config: SPUConfig, *, interval: int, buffer_records: int):
        pointer = _LIMIT - buffer_records * config.max_record_bytes
        self._serve = (
            (arch.PMBPTR_EL1, pointer),
            # Last: this lets profiling go on.
            (arch.PMBSR_EL1, 0),
        )
        self._start = (
            (arch.PMBPTR_EL1, pointer),
            (arch.PMBLIMITR_EL1, _LIMIT | arch.PMBLIMITR_EL1.pack(E=1)),
            (arch.PMSIRR_EL1, arch.PMSIRR_EL1.pack(INTERVAL=interval)),
            (arch.PMSICR_EL1, 0),
            (arch.PMSCR_EL1, arch.PMSCR_EL1.pack(E0SPE=1, CX=1, PA=1, TS=1)),
        )
        super().__init__(
            {
                "sysreg": Out(SystemRegisterPort()),
                "drain": Out(Drain()),
                "pmbirq": In(1),
                "run": Out(1),
                "idle": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()

        accesses = (*self._start, *self._serve)
        last = (len(self._start) - 1, len(accesses) - 1)
        access = Signal(range(len(accesses)))

        with m.FSM(name="driver"):
            with m.State("WRITE"):
                m.d.comb += [self.sysreg.valid.eq(1), self.sysreg.write.eq(1)]
                with m.Switch(access):
                    for number, (register, value) in enumerate(accesses):
                        with m.Case(number):
                            m.d.comb += [
                                self.sysreg.op1.eq(register.op1),
                                self.sysreg.crn.eq(register.crn),
                                self.sysreg.crm.eq(register.crm),
                                self.sysreg.op2.eq(register.op2),
                                self.sysreg.wdata.eq(value),
                            ]
                            m.d.sync += access.eq(len(self._start) if number in last else number + 1)
                            if number in last:
                                m.next = "SYNCHRONIZE"

            with m.State("SYNCHRONIZE"):
                # The last write takes effect with the next cycle.
                m.next = "RUN"

            with m.State("RUN"):
                m.d.comb += self.run.eq(1)
                with m.If(self.pmbirq):
                    m.next = "STOP"

            with m.State("STOP"):
                with m.If(self.idle):
                    m.next = "DRAIN"

            with m.State("DRAIN"):
                m.d.comb += self.drain.request.eq(1)
                with m.If(self.drain.done):
                    m.next = "WRITE"

        return m
