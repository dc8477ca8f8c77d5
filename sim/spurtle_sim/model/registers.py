"""System registers: values, and UNDEFINED and trapped accesses.

`access` also runs on z3 values, like the functions of `control`.

Ref: DDI0487 M.a, D24.7.
"""

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
    """Values of the registers that software can write, 64 bits each.

    Bits and registers that the configuration does not implement are always zero. The defaults are the reset values of a
    configuration without a second random number generator.
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
        """Return the registers after reset."""
        access = LFSR_ACCESS_RESET if config.access_bits else 0
        return cls(IMP_PMSRNDR_EL1=IMP_PMSRNDR_EL1.pack(STATE=LFSR_RESET, ACCESS=access))

    def write(self, config: SPUConfig, register: Register, value: int) -> None:
        """Write a register (MSR). Unimplemented bits, and writes to read-only registers, are ignored."""
        if register.read_only:
            return
        value &= config.writable(register)
        if register.name == IMP_PMSRNDR_EL1.name:
            written = IMP_PMSRNDR_EL1.unpack(value)
            access = sampling.seed(written.ACCESS) if config.access_bits else 0
            value = IMP_PMSRNDR_EL1.pack(STATE=sampling.seed(written.STATE), ACCESS=access)
        setattr(self, register.name, value)

    def read(self, config: SPUConfig, register: Register, pe: PEState) -> int:
        """Read a register (MRS). PMBIDR_EL1.P depends on the state of the PE."""
        if register.name == "PMSIDR_EL1":
            return config.pmsidr
        if register.name == "PMBIDR_EL1":
            return config.pmbidr | PMBIDR_EL1.pack(P=not programmable(config, pe))
        if register.name == "PMSCR_EL1" and not config.el2:
            # Without EL2 there is no virtual offset: PCT reads as 0b01 (physical time) and ignores writes.
            return self.PMSCR_EL1 | PMSCR_EL1.pack(PCT=PCT.PHYSICAL)
        return getattr(self, register.name)


def find_register(config: SPUConfig, register: str | Register) -> Register:
    """Return the register of that name.

    Raises
    ------
    ValueError
        If `config` has no register of that name.
    """
    name = register.name if isinstance(register, Register) else register
    implemented = {register.name: register for register in config.registers}
    if name not in implemented:
        raise ValueError(f"register must be one of {', '.join(implemented)}, not {name!r}")
    return implemented[name]


class Outcome(IntEnum):
    """Outcome of a System register access."""

    VALUE = 0
    UNDEFINED = 1
    TRAP_EL2 = 2
    TRAP_EL3 = 3


def access(config: SPUConfig, register: Register, write: int, pe: PEState) -> tuple[Outcome, Register | None]:
    """Return the outcome of an access to a register, and the register that is accessed, or None.

    `write` is 1 for MSR and 0 for MRS. PMSCR_EL1 can be an alias of PMSCR_EL2, and PMSCR_EL12 is an alias of PMSCR_EL1.
    """
    if _is_undefined(config, register, write, pe):
        return Outcome.UNDEFINED, None
    if pe.el == 1 and el2_enabled(config, pe, pe.ns) and _traps_to_el2(config, register, write, pe):
        return Outcome.TRAP_EL2, None
    if pe.el != 3 and config.el3 and _traps_to_el3(config, register, pe):
        return Outcome.TRAP_EL3, None
    if register == PMSCR_EL12:
        return Outcome.VALUE, PMSCR_EL1
    if register == PMSCR_EL1 and pe.el == 2 and _in_e2h_host(config, pe):
        return Outcome.VALUE, PMSCR_EL2
    return Outcome.VALUE, register


def _is_undefined(config: SPUConfig, register: Register, write: int, pe: PEState) -> bool:
    """Return whether the access is UNDEFINED, which has priority over all traps."""
    if register not in config.accessors or pe.el == 0:
        return True
    if register.read_only and write:
        return True
    if register == PMSCR_EL2:
        return pe.el == 1
    if register == PMSCR_EL12:
        return pe.el == 1 or not _in_e2h_host(config, pe)
    return False


def _in_e2h_host(config: SPUConfig, pe: PEState) -> bool:
    """Return whether PMSCR_EL1 is an alias of PMSCR_EL2 at EL2, and PMSCR_EL12 an alias of PMSCR_EL1."""
    return el2_enabled(config, pe, pe.ns) and pe.hcr_el2_e2h == 1


def _traps_to_el2(config: SPUConfig, register: Register, write: int, pe: PEState) -> bool:
    """Return whether the access from EL1 is trapped to EL2, which is enabled."""
    if _has_fine_grained_trap(config, register, write, pe):
        return True
    if register.trap == Trap.TPMS:
        return pe.mdcr_el2_tpms == 1
    if register.trap == Trap.E2PB:
        return pe.mdcr_el2_e2pb & 1 == 0
    return False


def _has_fine_grained_trap(config: SPUConfig, register: Register, write: int, pe: PEState) -> bool:
    """Return whether a fine-grained trap applies.

    If EL3 does not enable the traps of FEAT_FGT, none applies. If EL3 does not enable those of FEAT_FGT2, the fields of
    their registers are treated as zero.
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
    """Return whether the access from EL1 or EL2 is trapped to EL3."""
    if register.owned and (pe.mdcr_el3_nspb & 1 == 0 or not owns(config, owner(config, pe), pe.ns, pe.nse)):
        return True
    if register.enable:
        return getattr(pe, f"mdcr_el3_{register.enable.lower()}") == 0
    return False
