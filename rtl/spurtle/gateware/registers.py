"""System registers behind one port (D24.7).

Ref: DDI0487 M.a, D24.7. Encodings and fields are in arch/registers.py, implemented bits in config/spu.py.
"""

from functools import reduce
from operator import or_

from amaranth import *
from amaranth.lib.wiring import In, Out, connect, flipped

from .. import arch
from ..arch import REGISTER_BITS
from ..config import SPUConfig, check_config
from ..interface.members import when
from ..interface.pe_state import PEStateSignature
from ..interface.register_layout import register_layout
from ..interface.sysreg import ACCESS_LATENCY, SystemRegisterSignature
from .component import ConfiguredComponent
from .register_access import ACCESS_INPUTS, RegisterAccess, port_name

__all__ = ["RegisterFile"]

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


class RegisterFile(ConfiguredComponent):
    """System registers: the result of each access, and storage of the registers that only software writes.

    Other registers are stored in the components that change them. An access whose outcome is not VALUE changes nothing.

    Timing: an access in cycle t is performed in cycle t + `ACCESS_LATENCY` - 1. A read returns all bits of the register
    as they are in that cycle, PMBIDR_EL1.P as `programmable` is in cycle t. The strobes that report a write are valid
    in that cycle, and so is `wdata`. In the next one `rdata` and `outcome` are valid, and the write has taken effect.
    Reset: every stored register is zero, and no access is in progress.

    Members
    -------
    port : In(SystemRegisterSignature)
    pe : In(PEStateSignature)
    programmable : In(1)
        See `control.ProfilingControl`. Only with EL2 or EL3.
    pmscr, pmscr_el2, pmsnevfr, pmsirr, pmsfcr, pmsevfr, pmslatfr, pmblimitr, pmsdsfr : Out
        Stored registers of the configuration, in their layouts.
    pmblimitr_write : Out(1)
        Software writes PMBLIMITR_EL1 in this cycle.
    pmsicr, pmbptr, pmbsr, pmsrndr : In(64)
        Registers that the SPU itself changes.
    pmsicr_write, pmbptr_write, pmbsr_write, pmsrndr_write : Out(1)
        Software writes the register in this cycle.
    wdata : Out(64)
        Value that software writes.
    """

    proof_signals = ("owned",)

    def __init__(self, config: SPUConfig):
        check_config(config)
        super().__init__(
            config,
            {
                "port": In(SystemRegisterSignature()),
                "pe": In(PEStateSignature(config)),
                **when(config.several_owners, programmable=In(1)),
                **{
                    port_name(register): Out(register_layout(register))
                    for register in _STORED
                    if register in config.registers
                },
                "pmblimitr_write": Out(1),
                **{port_name(register): In(64) for register in _OWNED_ELSEWHERE},
                **{f"{port_name(register)}_write": Out(1) for register in _OWNED_ELSEWHERE},
                "wdata": Out(64),
            },
        )

    def elaborate(self, platform):
        m = Module()

        m.submodules.access = access = RegisterAccess(self._config)
        connect(m, flipped(self.pe), access.pe)
        m.d.comb += [getattr(access, name).eq(getattr(self.port, name)) for name in ACCESS_INPUTS]
        m.d.sync += self.port.outcome.eq(access.outcome)

        next_wdata = Signal.like(self.wdata)
        m.d.sync += [next_wdata.eq(self.port.wdata), self.wdata.eq(next_wdata)]
        for register in self._config.registers:
            if not register.read_only:
                self._write(m, register, access.writes[port_name(register)])

        # PMBIDR_EL1.P, delayed to the cycle in which it is read.
        owned = Signal(ACCESS_LATENCY - 1)
        if self._config.several_owners:
            m.d.sync += owned.eq(Cat(~self.programmable, owned))
        # An AND-OR of one-hot selections has fewer levels than a multiplexer with a number, and is zero without a read.
        # PMSICR_EL1, which is the output of a carry chain, is the last operand and has the shortest path.
        values = (
            self._value(register, owned[-1]) & access.reads[port_name(register)].replicate(REGISTER_BITS)
            for register in sorted(self._config.registers, key=lambda register: register is arch.PMSICR_EL1)
        )
        m.d.sync += self.port.rdata.eq(reduce(or_, values))

        return m

    def _value(self, register, owned):
        if register is arch.PMSIDR_EL1:
            return C(self._config.pmsidr, REGISTER_BITS)
        if register is arch.PMBIDR_EL1:
            return self._config.pmbidr | (owned << arch.PMBIDR_EL1.fields["P"].lsb)
        value = Value.cast(getattr(self, port_name(register)))
        fixed = self._config.fixed(register)
        return value | fixed if fixed else value

    def _write(self, m, register, written):
        if register in _STORED:
            with m.If(written):
                m.d.sync += getattr(self, port_name(register)).eq(self.wdata & self._config.writable(register))
        if register is arch.PMBLIMITR_EL1 or register in _OWNED_ELSEWHERE:
            m.d.comb += getattr(self, f"{port_name(register)}_write").eq(written)
