"""Checks of System register accesses (D24.7).

Ref: DDI0487 M.a, D24.7, "Accessing" of each register. Encodings and traps are in arch/registers.py.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence

from amaranth import *
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from .. import arch
from ..config import SPUConfig, check_config
from ..interface.pe_state import PEStateSignature, el2_enabled
from ..interface.sysreg import AccessOutcome, SystemRegisterSignature
from .component import ConfiguredComponent

__all__ = ["ACCESS_INPUTS", "RegisterAccess", "access_groups", "port_name", "selection_layout"]

ACCESS_INPUTS = ("valid", "write", "op1", "crn", "crm", "op2")
"""Members of `SystemRegisterSignature` that identify the access."""


def port_name(register: arch.Register) -> str:
    """Return the name of the port of a register."""
    return register.name.lower().removesuffix("_el1").removeprefix("imp_")


def selection_layout(registers: Iterable[arch.Register]) -> data.StructLayout:
    """Return the layout with one bit for each register, with the name of its port."""
    return data.StructLayout({port_name(register): 1 for register in registers})


def _check_distinct(registers: Sequence[arch.Register], key: Callable[[arch.Register], int], what: str) -> None:
    """Raise ValueError if two registers have the same key: only one of them would be accessed."""
    seen: dict[int, arch.Register] = {}
    for register in registers:
        other = seen.setdefault(key(register), register)
        if other is not register:
            raise ValueError(f"{what} of {register.name} must be its own, not that of {other.name}, {key(register):#x}")


def access_groups(config: SPUConfig) -> list[list[arch.Register]]:
    """Return the accessors of a configuration in groups whose accesses have equal outcomes in every state of the PE."""
    groups: dict[Hashable, list[arch.Register]] = {}
    for register in config.accessors:
        trap = register.fine_grained if _has_fine_grained(config, register) else None
        key = register.op1, register.trap, trap, register.owned, register.enable
        groups.setdefault(key, []).append(register)
    return [*groups.values()]


def _has_fine_grained(config: SPUConfig, register: arch.Register) -> bool:
    trap = register.fine_grained
    return trap is not None and (config.fgt2 if trap.second else config.fgt)


class RegisterAccess(ConfiguredComponent):
    """Outcome of a System register access, and the register that it reads or writes.

    An access that names no register, comes from EL0, writes a read-only register, or comes from below the Exception
    level of the register is UNDEFINED. UNDEFINED takes precedence over traps to EL2, and these over traps to EL3.

    Latency: `outcome`, `reads` and `writes` are registers. They are valid two cycles after the access, and depend on
    the state of the PE in the cycle of the access. There can be an access in every cycle. Reset: no access.

    Members
    -------
    valid, write, op1, crn, crm, op2 : In
        As in `SystemRegisterSignature`.
    pe : In(PEStateSignature)
    outcome : Out(AccessOutcome)
        UNDEFINED without an access.
    reads : Out(selection_layout)
        Register that is read, one-hot. Zero unless `outcome` is VALUE.
    writes : Out(selection_layout)
        Register that is written, likewise. Read-only registers have no bit.
    """

    proof_signals = ("hits", "permissions", "redirected")

    def __init__(self, config: SPUConfig):
        check_config(config)
        _check_distinct(config.accessors, lambda register: register.encoding, "encoding")
        port = SystemRegisterSignature().flip().members
        super().__init__(
            config,
            {
                **{name: port[name] for name in ACCESS_INPUTS},
                "pe": In(PEStateSignature(config)),
                "outcome": Out(AccessOutcome, init=AccessOutcome.UNDEFINED),
                "reads": Out(selection_layout(config.registers)),
                "writes": Out(selection_layout(register for register in config.registers if not register.read_only)),
            },
        )

    def elaborate(self, platform):
        m = Module()

        enabled = host = el2_enabled(self._config, self.pe, self.pe.ns)
        redirected = Signal()
        if self._config.el2:
            # EL2 runs a host (FEAT_VHE).
            host = enabled & self.pe.hcr_el2_e2h
            m.d.sync += redirected.eq((self.pe.el == 2) & host)
        writing = Signal()
        m.d.sync += writing.eq(self.write)

        # The first stage decodes the register and, at the same time, finds the outcome of an access to each group, so
        # that the decoder is not in the path from the state of the PE.
        groups = access_groups(self._config)
        hits = Signal(data.StructLayout({register.name: 1 for register in self._config.accessors}))
        permissions = Signal(data.ArrayLayout(AccessOutcome, len(groups)))
        for register in self._config.accessors:
            m.d.sync += hits[register.name].eq(self._names(register))
        for permission, registers in zip(permissions, groups, strict=True):
            m.d.sync += permission.eq(self._permission(registers[0], host, enabled))

        target = Signal(self.reads.shape())
        outcome = C(0, AccessOutcome.as_shape().width)
        for permission, registers in zip(permissions, groups, strict=True):
            for register in registers:
                with m.If(hits[register.name] & (permission == AccessOutcome.VALUE)):
                    self._select_target(m, target, register, redirected)
            # The outcome is UNDEFINED without a hit. With that value inverted to zero, OR combines all groups.
            hit = Cat(hits[register.name] for register in registers).any()
            outcome |= (permission.as_value() ^ AccessOutcome.UNDEFINED) & hit.replicate(len(outcome))
        m.d.sync += [self.outcome.eq(outcome ^ AccessOutcome.UNDEFINED), self.reads.eq(Mux(writing, 0, target))]
        for name, _ in self.writes.shape():
            m.d.sync += self.writes[name].eq(writing & target[name])

        return m

    def _names(self, register):
        """Return whether the access names `register`. A write to a read-only register names none."""
        valid = self.valid & ~self.write if register.read_only else self.valid
        return valid & (Cat(self.op2, self.crm, self.crn, self.op1) == register.encoding)

    def _permission(self, register, host, enabled):
        """Return the outcome of an access that names `register`."""
        from_el1 = (self.pe.el == 1) & enabled
        below_el3 = self.pe.el != 3
        to_el3 = Mux(below_el3 & self._trapped_to_el3(register), AccessOutcome.TRAP_EL3, AccessOutcome.VALUE)
        to_el2 = Mux(from_el1 & self._trapped_to_el2(register), AccessOutcome.TRAP_EL2, to_el3)
        return Mux(self._undefined(register, host), AccessOutcome.UNDEFINED, to_el2)

    def _undefined(self, register, host):
        undefined = self.pe.el == 0
        if register.op1 != arch.PMSCR_EL1.op1:
            undefined |= self.pe.el == 1
        if register is arch.PMSCR_EL12:
            undefined |= ~host
        return undefined

    def _trapped_to_el2(self, register):
        if not self._config.el2:
            return C(0)
        trapped = self._fine_grained(register.fine_grained) if _has_fine_grained(self._config, register) else C(0)
        if register.trap is arch.Trap.TPMS:
            trapped |= self.pe.mdcr_el2_tpms
        elif register.trap is arch.Trap.E2PB:
            trapped |= ~self.pe.mdcr_el2_e2pb[0]
        return trapped

    def _fine_grained(self, trap):
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

    def _select_target(self, m, target, register, redirected):
        """Set `target`, with the redirection of PMSCR_EL1 and PMSCR_EL12 in a host (FEAT_VHE)."""
        if register is arch.PMSCR_EL12:
            m.d.comb += target.pmscr.eq(1)
        elif register is arch.PMSCR_EL1 and self._config.el2:
            m.d.comb += [target.pmscr.eq(~redirected), target.pmscr_el2.eq(redirected)]
        else:
            m.d.comb += target[port_name(register)].eq(1)
