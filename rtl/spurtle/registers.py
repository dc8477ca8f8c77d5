"""The System registers behind one port (D24.7)."""

# Ref: DDI0487 M.a, D24.7; encodings and fields in arch.py, implemented bits in config.py.

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from . import arch
from .config import SPUConfig
from .pe import Outcome, PEState, SystemRegisterPort

__all__ = ["Registers"]

_STORED = (
    arch.PMSCR_EL1,
    arch.PMSCR_EL2,
    arch.PMSNEVFR_EL1,
    arch.PMSIRR_EL1,
    arch.PMSFCR_EL1,
    arch.PMSEVFR_EL1,
    arch.PMSLATFR_EL1,
    arch.PMBLIMITR_EL1,
    arch.PMSDSFR_EL1,
)
_OWNED_ELSEWHERE = (arch.PMSICR_EL1, arch.PMBPTR_EL1, arch.PMBSR_EL1, arch.IMP_PMSRNDR_EL1)


def _port(register: arch.Register) -> str:
    return register.name.lower().removesuffix("_el1").removeprefix("imp_")


class Registers(wiring.Component):
    """Decodes accesses, keeps the registers that only software writes, and reads the others where they live.

    An access that names no register, comes from EL0, or writes a read-only register is UNDEFINED and changes nothing.
    So is one to a register of EL2 that comes from EL1.

    Latency: the answer and the effect of a write come one cycle after the access. Reset: every register is zero.

    Members
    -------
    port : In(SystemRegisterPort)
    pe : In(PEState)
    programmable : In(1)
        See `control.Control`. Only with EL2 or EL3.
    pmscr, pmscr_el2, pmsnevfr, pmsirr, pmsfcr, pmsevfr, pmslatfr, pmblimitr, pmsdsfr : Out
        The stored registers that this configuration has, in their layouts.
    pmblimitr_write : Out(1)
        Software writes PMBLIMITR_EL1 in this cycle.
    pmsicr, pmbptr, pmbsr, pmsrndr : In(64)
        Registers that the SPU itself changes.
    pmsicr_write, pmbptr_write, pmbsr_write, pmsrndr_write : Out(1)
        Software writes them in this cycle, with the data of the port.
    """

    def __init__(self, config: SPUConfig):
        self._config = config
        super().__init__(
            {
                "port": In(SystemRegisterPort()),
                "pe": In(PEState(config)),
                **({"programmable": In(1)} if config.several_owners else {}),
                **{_port(register): Out(register.layout()) for register in _STORED if register in config.registers},
                "pmblimitr_write": Out(1),
                **{_port(register): In(64) for register in _OWNED_ELSEWHERE},
                **{f"{_port(register)}_write": Out(1) for register in _OWNED_ELSEWHERE},
            }
        )

    def elaborate(self, platform):
        m = Module()

        outcome = Signal(Outcome, init=Outcome.UNDEFINED)
        m.d.sync += self.port.outcome.eq(outcome)
        with m.If(self.port.valid & (self.pe.el != 0)):
            with m.Switch(Cat(self.port.op2, self.port.crm, self.port.crn, self.port.op1)):
                for register in self._config.registers:
                    with m.Case(register.op1 << 11 | register.crn << 7 | register.crm << 3 | register.op2):
                        allowed = self._allowed(register)
                        m.d.comb += outcome.eq(Mux(allowed, Outcome.VALUE, Outcome.UNDEFINED))
                        with m.If(allowed & self.port.write):
                            self._write(m, register)

        # Few bits of the encoding tell the registers apart. Whether there is a value at all takes all of them, and
        # hides it a cycle later: a wide multiplexer and a wide gate in one would set the clock of the whole SPU.
        value = Signal(64)
        shown = Signal()
        with m.Switch(Cat(self.port.op2, self.port.crm[0], self.port.op1[2])):
            for register in self._config.registers:
                with m.Case((register.op1 & 4) << 2 | (register.crm & 1) << 3 | register.op2):
                    m.d.sync += value.eq(self._value(register))
        m.d.sync += shown.eq(~self.port.write & (outcome == Outcome.VALUE))
        m.d.comb += self.port.rdata.eq(Mux(shown, value, 0))

        return m

    def _allowed(self, register):
        """The access is not UNDEFINED."""
        if register.read_only:
            return ~self.port.write
        return self.pe.el >= 2 if register.op1 == 4 else C(1)

    def _value(self, register):
        if register is arch.PMSIDR_EL1:
            return C(self._config.pmsidr, 64)
        if register is arch.PMBIDR_EL1:
            owned = ~self.programmable if hasattr(self, "programmable") else C(0, 1)
            return self._config.pmbidr | (owned << arch.PMBIDR_EL1.fields["P"].lsb)
        return Value.cast(getattr(self, _port(register)))

    def _write(self, m, register):
        if register in _STORED:
            m.d.sync += getattr(self, _port(register)).eq(self.port.wdata & self._config.writable(register))
        if register is arch.PMBLIMITR_EL1 or register in _OWNED_ELSEWHERE:
            m.d.comb += getattr(self, f"{_port(register)}_write").eq(1)
