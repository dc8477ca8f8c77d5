"""The System registers: what reads back of what software wrote."""

# Ref: DDI0487 M.a, D24.7.

from dataclasses import dataclass

from spurtle.arch import REGISTERS, Register
from spurtle.config import LFSR_RESET, SPUConfig

from . import sampling

__all__ = ["PMBLIMITR_E", "PMBSR_COLL", "PMBSR_S", "Registers", "find"]

_BY_NAME = {register.name: register for register in REGISTERS}

PMBLIMITR_E = _BY_NAME["PMBLIMITR_EL1"].fields["E"].mask
PMBSR_S = _BY_NAME["PMBSR_EL1"].fields["S"].mask
PMBSR_COLL = _BY_NAME["PMBSR_EL1"].fields["COLL"].mask


@dataclass(kw_only=True, slots=True)
class Registers:
    """The value of each register that software can write, 64 bits each, bits that are not implemented always zero; as
    they are after reset.
    """

    PMSCR_EL1: int = 0
    PMSICR_EL1: int = 0
    PMSIRR_EL1: int = 0
    PMSFCR_EL1: int = 0
    PMSEVFR_EL1: int = 0
    PMSLATFR_EL1: int = 0
    PMBLIMITR_EL1: int = 0
    PMBPTR_EL1: int = 0
    PMBSR_EL1: int = 0
    IMP_PMSRNDR_EL1: int = LFSR_RESET

    def write(self, config: SPUConfig, register: Register, value: int) -> None:
        """MSR. Bits that `config` does not implement are ignored, as is a write to a read-only register."""
        if not register.read_only:
            value &= config.writable(register)
            setattr(self, register.name, sampling.seed(value) if register.name == "IMP_PMSRNDR_EL1" else value)

    def read(self, config: SPUConfig, register: Register) -> int:
        """MRS, by the owner of the Profiling Buffer (PMBIDR_EL1.P is zero)."""
        if register.name == "PMSIDR_EL1":
            return config.pmsidr
        if register.name == "PMBIDR_EL1":
            return config.pmbidr
        return getattr(self, register.name)


def find(register: str | Register) -> Register:
    """The register of that name. Raises ValueError if the SPU has none."""
    if isinstance(register, Register):
        return register
    if register not in _BY_NAME:
        raise ValueError(f"register must be one of {', '.join(_BY_NAME)}, not {register!r}")
    return _BY_NAME[register]
