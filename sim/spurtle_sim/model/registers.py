"""The System registers: who may access them, and what reads back of what software wrote."""

# Ref: DDI0487 M.a, D24.7. `access` also runs over z3 values, as `control` does.

from dataclasses import dataclass
from enum import IntEnum

from spurtle.arch import (
    IMP_PMSRNDR_EL1,
    PCT,
    PMBIDR_EL1,
    PMBLIMITR_EL1,
    PMBSR_EL1,
    PMSCR_EL1,
    PMSCR_EL2,
    PMSCR_EL12,
    Register,
    Trap,
)
from spurtle.config import LFSR_ACCESS_RESET, LFSR_RESET, SPUConfig

from . import sampling
from .pe import PEState, el2_enabled, owner, owns, programmable

__all__ = ["PMBLIMITR_E", "PMBSR_COLL", "PMBSR_S", "Outcome", "Registers", "access", "find_register"]

PMBLIMITR_E = PMBLIMITR_EL1.fields["E"].mask
PMBSR_S = PMBSR_EL1.fields["S"].mask
PMBSR_COLL = PMBSR_EL1.fields["COLL"].mask


@dataclass(kw_only=True, slots=True)
class Registers:
    """The value of each register that software can write, 64 bits each. Bits that are not implemented are always zero,
    and so are registers that the configuration lacks. The defaults are those after reset without a second generator.
    """

    PMSCR_EL1: int = 0
    PMSNEVFR_EL1: int = 0
    PMSICR_EL1: int = 0
    PMSIRR_EL1: int = 0
    PMSFCR_EL1: int = 0
    PMSEVFR_EL1: int = 0
    PMSLATFR_EL1: int = 0
    PMBLIMITR_EL1: int = 0
    PMBPTR_EL1: int = 0
    PMBSR_EL1: int = 0
    PMSDSFR_EL1: int = 0
    PMSCR_EL2: int = 0
    IMP_PMSRNDR_EL1: int = LFSR_RESET

    @classmethod
    def after_reset(cls, config: SPUConfig) -> "Registers":
        """What reset leaves in an SPU of `config`."""
        access = LFSR_ACCESS_RESET if config.access_bits else 0
        return cls(IMP_PMSRNDR_EL1=IMP_PMSRNDR_EL1.pack(STATE=LFSR_RESET, ACCESS=access))

    def write(self, config: SPUConfig, register: Register, value: int) -> None:
        """MSR. Bits that `config` does not implement are ignored, as is a write to a read-only register."""
        if register.read_only:
            return
        value &= config.writable(register)
        if register.name == IMP_PMSRNDR_EL1.name:
            written = IMP_PMSRNDR_EL1.unpack(value)
            access = sampling.seed(written.ACCESS) if config.access_bits else 0
            value = IMP_PMSRNDR_EL1.pack(STATE=sampling.seed(written.STATE), ACCESS=access)
        setattr(self, register.name, value)

    def read(self, config: SPUConfig, register: Register, pe: PEState) -> int:
        """MRS, where the PE is in this state: of PMBIDR_EL1 P depends on it."""
        if register.name == "PMSIDR_EL1":
            return config.pmsidr
        if register.name == "PMBIDR_EL1":
            return config.pmbidr | PMBIDR_EL1.pack(P=not programmable(config, pe))
        if register.name == "PMSCR_EL1" and not config.el2:
            # Without EL2 there is no virtual offset: PCT is 0b01, physical time, and ignores writes.
            return self.PMSCR_EL1 | PMSCR_EL1.pack(PCT=PCT.PHYSICAL)
        return getattr(self, register.name)


def find_register(config: SPUConfig, register: str | Register) -> Register:
    """The register of that name. Raises ValueError if an SPU of `config` has none."""
    name = register.name if isinstance(register, Register) else register
    there = {register.name: register for register in config.registers}
    if name not in there:
        raise ValueError(f"register must be one of {', '.join(there)}, not {name!r}")
    return there[name]


class Outcome(IntEnum):
    """What a System register access comes to."""

    VALUE = 0
    UNDEFINED = 1
    TRAP_EL2 = 2
    TRAP_EL3 = 3


def access(config: SPUConfig, register: Register, write: int, pe: PEState) -> tuple[Outcome, Register | None]:
    """What MSR, or MRS if `write` is zero, of this register comes to where the PE is in this state; and the register
    that is written or read by it, if one is: PMSCR_EL1 may be another register's name, and PMSCR_EL12 always is.
    """
    if _undefined(config, register, write, pe):
        return Outcome.UNDEFINED, None
    if pe.el == 1 and el2_enabled(config, pe, pe.ns) and _traps_to_el2(config, register, write, pe):
        return Outcome.TRAP_EL2, None
    if pe.el != 3 and config.el3 and _traps_to_el3(config, register, pe):
        return Outcome.TRAP_EL3, None
    if register == PMSCR_EL12:
        return Outcome.VALUE, PMSCR_EL1
    if register == PMSCR_EL1 and pe.el == 2 and _host(config, pe):
        return Outcome.VALUE, PMSCR_EL2
    return Outcome.VALUE, register


def _undefined(config: SPUConfig, register: Register, write: int, pe: PEState) -> bool:
    if register not in config.accessors or pe.el == 0:
        return True
    if register.read_only and write:
        return True
    if register == PMSCR_EL2:
        return pe.el == 1
    if register == PMSCR_EL12:
        return pe.el == 1 or not _host(config, pe)
    return False


def _host(config: SPUConfig, pe: PEState) -> bool:
    """At EL2 PMSCR_EL1 is a name of PMSCR_EL2, and PMSCR_EL12 that of PMSCR_EL1."""
    return el2_enabled(config, pe, pe.ns) and pe.hcr_el2_e2h == 1


def _traps_to_el2(config: SPUConfig, register: Register, write: int, pe: PEState) -> bool:
    """From EL1, where EL2 is enabled."""
    if _fine_grained(config, register, write, pe):
        return True
    if register.trap == Trap.TPMS:
        return pe.mdcr_el2_tpms == 1
    if register.trap == Trap.E2PB:
        return pe.mdcr_el2_e2pb & 1 == 0
    return False


def _fine_grained(config: SPUConfig, register: Register, write: int, pe: PEState) -> bool:
    """While EL3 does not enable the traps of FEAT_FGT there are none, and those of FEAT_FGT2 are as if all their fields
    were zero.
    """
    trap = register.fine_grained
    if trap is None:
        return False
    if trap.second:
        fields = pe.hdfgwtr2_el2 if write else pe.hdfgrtr2_el2
        if config.el3 and pe.scr_el3_fgten2 == 0:
            fields = 0
    else:
        if not config.fgt or (config.el3 and pe.scr_el3_fgten == 0):
            return False
        fields = pe.hdfgwtr_el2 if write else pe.hdfgrtr_el2
    return (fields >> trap.bit) & 1 != trap.inverted


def _traps_to_el3(config: SPUConfig, register: Register, pe: PEState) -> bool:
    """From EL1 and EL2, with EL3."""
    if register.owned and (pe.mdcr_el3_nspb & 1 == 0 or not owns(config, owner(config, pe), pe.ns, pe.nse)):
        return True
    if register.enable:
        return getattr(pe, f"mdcr_el3_{register.enable.lower()}") == 0
    return False
