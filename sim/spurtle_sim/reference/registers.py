"""The System registers: what reads back of what software wrote."""

# Ref: DDI0487 M.a, D24.7.

from dataclasses import dataclass

from spurtle.arch import IMP_PMSRNDR_EL1, PMBIDR_EL1, PMBLIMITR_EL1, PMBSR_EL1, Register
from spurtle.config import LFSR_ACCESS_RESET, LFSR_RESET, SPUConfig

from . import sampling
from .pe import PEState, programmable

__all__ = ["PMBLIMITR_E", "PMBSR_COLL", "PMBSR_S", "Registers", "find"]

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
        return getattr(self, register.name)


def find(config: SPUConfig, register: str | Register) -> Register:
    """The register of that name. Raises ValueError if an SPU of `config` has none."""
    name = register.name if isinstance(register, Register) else register
    there = {register.name: register for register in config.registers}
    if name not in there:
        raise ValueError(f"register must be one of {', '.join(there)}, not {name!r}")
    return there[name]
