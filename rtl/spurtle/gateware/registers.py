"""System registers behind one port, and checks of accesses to them (D24.7).

Ref: DDI0487 M.a, D24.7, "Accessing" of each register. Encodings, fields and traps are in arch/registers.py, implemented
bits in config/spu.py.
"""

from collections.abc import Callable, Sequence

from amaranth import *
from amaranth.lib import data
from amaranth.lib.wiring import In, Out, connect, flipped

from .. import arch
from ..config import SPUConfig, check_config
from ..interface.members import when
from ..interface.pe_state import PEStateSignature, el2_enabled
from ..interface.register_layout import register_layout
from ..interface.sysreg import AccessOutcome, SystemRegisterSignature
from .component import ConfiguredComponent

__all__ = ["RegisterAccess", "RegisterFile", "port_name"]

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

_NAMED = ("write", "op1", "crn", "crm", "op2")
"""Members of the port that identify the access."""


def port_name(register: arch.Register) -> str:
    """Return the name of the port of a register."""
    return register.name.lower().removesuffix("_el1").removeprefix("imp_")


def _number(register: arch.Register) -> int:
    """Return the short number of a register. EL2, CRm[0] and op2 distinguish all registers."""
    return (register.op1 & 4) << 2 | (register.crm & 1) << 3 | register.op2


def _check_distinct(registers: Sequence[arch.Register], key: Callable[[arch.Register], int], what: str) -> None:
    """Raise ValueError if two registers have the same key: only one of them would be accessed."""
    seen: dict[int, arch.Register] = {}
    for register in registers:
        other = seen.setdefault(key(register), register)
        if other is not register:
            raise ValueError(f"{what} of {register.name} must be its own, not that of {other.name}, {key(register):#x}")


class RegisterAccess(ConfiguredComponent):
    """Outcome of a System register access, and the register that it accesses. Combinational.

    An access that names no register, comes from EL0, writes a read-only register, or comes from below the Exception
    level of the register is UNDEFINED. UNDEFINED takes precedence over traps to EL2, and these over traps to EL3.

    Members
    -------
    write, op1, crn, crm, op2 : In
        As in `SystemRegisterSignature`.
    pe : In(PEStateSignature)
    outcome : Out(AccessOutcome)
    target : Out(1 bit for each register of the configuration)
        Register that is read or written, one-hot, with the names of the members of `RegisterFile`. Zero unless
        `outcome` is VALUE.
    """

    def __init__(self, config: SPUConfig):
        check_config(config)
        _check_distinct(config.accessors, lambda register: register.encoding, "encoding")
        port = SystemRegisterSignature().flip().members
        super().__init__(
            config,
            {
                **{name: port[name] for name in _NAMED},
                "pe": In(PEStateSignature(config)),
                "outcome": Out(AccessOutcome, init=AccessOutcome.UNDEFINED),
                "target": Out(data.StructLayout({port_name(register): 1 for register in config.registers})),
            },
        )

    def elaborate(self, platform):
        m = Module()

        below_el3 = self.pe.el != 3
        enabled = host = el2_enabled(self._config, self.pe, self.pe.ns)
        from_el1 = (self.pe.el == 1) & enabled
        # EL2 runs a host (FEAT_VHE).
        if self._config.el2:
            host = enabled & self.pe.hcr_el2_e2h
        with m.Switch(Cat(self.op2, self.crm, self.crn, self.op1)):
            for register in self._config.accessors:
                with m.Case(register.encoding):
                    with m.If(self._undefined(register, host)):
                        m.d.comb += self.outcome.eq(AccessOutcome.UNDEFINED)
                    with m.Elif(from_el1 & self._trapped_to_el2(register)):
                        m.d.comb += self.outcome.eq(AccessOutcome.TRAP_EL2)
                    with m.Elif(below_el3 & self._trapped_to_el3(register)):
                        m.d.comb += self.outcome.eq(AccessOutcome.TRAP_EL3)
                    with m.Else():
                        m.d.comb += self.outcome.eq(AccessOutcome.VALUE)
                        self._select_target(m, register, host)

        return m

    def _undefined(self, register, host):
        undefined = self.pe.el == 0
        if register.op1 != arch.PMSCR_EL1.op1:
            undefined |= self.pe.el == 1
        if register is arch.PMSCR_EL12:
            undefined |= ~host
        return undefined | self.write if register.read_only else undefined

    def _trapped_to_el2(self, register):
        if not self._config.el2:
            return C(0)
        trapped = self._fine_grained(register.fine_grained) if register.fine_grained else C(0)
        if register.trap is arch.Trap.TPMS:
            trapped |= self.pe.mdcr_el2_tpms
        elif register.trap is arch.Trap.E2PB:
            trapped |= ~self.pe.mdcr_el2_e2pb[0]
        return trapped

    def _fine_grained(self, trap):
        if not (self._config.fgt2 if trap.second else self._config.fgt):
            return C(0)
        number = "2" if trap.second else ""
        read, write = (getattr(self.pe, f"hdfg{kind}tr{number}_el2") for kind in "rw")
        field = read[trap.name]
        if trap.name in write.shape().members:
            field = Mux(self.write, write[trap.name], field)
        enabled = getattr(self.pe, f"scr_el3_fgten{number}") if self._config.el3 else C(1)
        if trap.second:  # Unlike FEAT_FGT, FEAT_FGT2 traps while EL3 does not enable its fields.
            return ~enabled | ~field
        return enabled & (~field if trap.inverted else field)

    def _trapped_to_el3(self, register):
        if not self._config.el3:
            return C(0)
        trapped = C(0)
        if register.owned:
            # Reserved values of {NSPBE, NSPB} select Secure state.
            trapped = ~self.pe.mdcr_el3_nspb[0] | (self.pe.mdcr_el3_nspb[1] != self.pe.ns)
            if self._config.rme:
                trapped |= (self.pe.mdcr_el3_nspbe & self.pe.mdcr_el3_nspb[1]) != self.pe.nse
        if register.enable:
            trapped |= ~getattr(self.pe, f"mdcr_el3_{register.enable.lower()}")
        return trapped

    def _select_target(self, m, register, host):
        """Set `target`, with the redirection of PMSCR_EL1 and PMSCR_EL12 in a host (FEAT_VHE)."""
        if register is arch.PMSCR_EL12:
            m.d.comb += self.target.pmscr.eq(1)
        elif register is arch.PMSCR_EL1 and self._config.el2:
            redirected = (self.pe.el == 2) & host
            m.d.comb += [self.target.pmscr.eq(~redirected), self.target.pmscr_el2.eq(redirected)]
        else:
            m.d.comb += self.target[port_name(register)].eq(1)


class RegisterFile(ConfiguredComponent):
    """System registers: decoding of accesses, and storage of the registers that only software writes.

    Other registers are stored in the components that change them. An access whose outcome is not VALUE changes nothing.

    Timing: an access is performed in the cycle after `valid`. In the cycle after that, `rdata` and `outcome` are valid,
    and a write has taken effect. Reset: every stored register is zero.

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

    proof_signals = ("owned", "number", "outcome")

    def __init__(self, config: SPUConfig):
        check_config(config)
        _check_distinct(config.registers, _number, "short number")
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
        m.d.comb += [getattr(access, name).eq(getattr(self.port, name)) for name in _NAMED]

        # Access checks are registered: the access is performed in the cycle after it arrived.
        meant = Signal.like(access.target)
        target = Signal.like(access.target)
        write = Signal()
        outcome = Signal(AccessOutcome, init=AccessOutcome.UNDEFINED)
        number = Signal(5)
        m.d.comb += meant.eq(Mux(self.port.valid, access.target, 0))
        el2 = meant.pmscr_el2 if self._config.several_owners else C(0, 1)
        m.d.sync += [
            target.eq(meant),
            write.eq(self.port.write),
            self.wdata.eq(self.port.wdata),
            outcome.eq(Mux(self.port.valid, access.outcome, AccessOutcome.UNDEFINED)),
            number.eq(Cat(self.port.op2, self.port.crm[0], el2)),
        ]
        for register in self._config.registers:
            if not register.read_only:
                self._write(m, register, target[port_name(register)] & write)

        # Without a value, `rdata` is reset. That takes no gates, and no time behind the wide multiplexer.
        owned = Signal()
        if self._config.several_owners:
            m.d.sync += owned.eq(~self.programmable)
        m.d.sync += [self.port.rdata.eq(0), self.port.outcome.eq(outcome)]
        with m.If(~write & (outcome == AccessOutcome.VALUE)):
            with m.Switch(number):
                for register in self._config.registers:
                    with m.Case(_number(register)):
                        m.d.sync += self.port.rdata.eq(self._value(register, owned))

        return m

    def _value(self, register, owned):
        if register is arch.PMSIDR_EL1:
            return C(self._config.pmsidr, 64)
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
