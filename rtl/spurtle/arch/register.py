"""Description of a System register: encoding, fields and traps.

Ref: DDI0487 M.a, D24.7.
"""

from dataclasses import dataclass
from enum import Enum, IntEnum, unique
from types import SimpleNamespace
from typing import Any

from .fields import BitField

__all__ = ["ENCODING_BITS", "REGISTER_BITS", "Field", "FineGrainedTrap", "Register", "Trap"]

REGISTER_BITS = 64
"""Width of each System register."""

ENCODING_BITS = 14
"""Width of op1, CRn, CRm and op2 together. op0 is 3."""


@dataclass(frozen=True)
class Field(BitField):
    """Field of a System register.

    Parameters
    ----------
    lsb, width : int
    doc : str
        Meaning of the field, and treatment of values that the architecture does not define.
    values : type of IntEnum or None
        Named values of the field. None if its values have no names.
    """

    doc: str
    values: type[IntEnum] | None = None


@unique
class Trap(Enum):
    """Field of MDCR_EL2 that traps accesses from EL1 to EL2."""

    TPMS = "TPMS"
    """Accesses trap if TPMS is one."""
    E2PB = "E2PB"
    """Accesses trap if bit 0 of E2PB is zero."""


@dataclass(frozen=True)
class FineGrainedTrap:
    """Fine-grained trap of accesses from EL1 to EL2: a field of HDFGRTR_EL2 for reads and HDFGWTR_EL2 for writes.

    Accesses trap if the field is one. If its name begins with `n`, accesses trap if the field is zero.

    Parameters
    ----------
    name : str
        Name of the field.
    bit : int
        Bit number of the field.
    second : bool
        The field is in HDFGRTR2_EL2 and HDFGWTR2_EL2, which FEAT_FGT2 adds.
    """

    name: str
    bit: int
    second: bool = False

    @property
    def inverted(self) -> bool:
        """Whether accesses trap if the field is zero."""
        return self.name.startswith("n")


@dataclass(frozen=True)
class Register:
    """64-bit System register. op0 is 3 for all of them.

    Bits outside of the fields are RES0. `SPUConfig.writable` returns the bits that a configuration implements.

    Parameters
    ----------
    name : str
    op1, crm, op2 : int
    purpose : str
        Function of the register, as one or more sentences.
    fields : dict of str to Field
    read_only : bool
    crn : int
    owned : bool
        Accesses from EL1 and EL2 trap to EL3 if their Security state does not own the Profiling Buffer
        (MDCR_EL3.{NSPBE, NSPB}).
    trap : Trap or None
    fine_grained : FineGrainedTrap or None
    enable : str
        Field of MDCR_EL3 that must be one for accesses from EL1 and EL2. Empty if there is none.
    """

    name: str
    op1: int
    crm: int
    op2: int
    purpose: str
    fields: dict[str, Field]
    read_only: bool = False
    crn: int = 9
    owned: bool = True
    trap: Trap | None = None
    fine_grained: FineGrainedTrap | None = None
    enable: str = ""

    @property
    def encoding(self) -> int:
        """Concatenation of op1, CRn, CRm and op2, op1 most significant."""
        return self.op1 << 11 | self.crn << 7 | self.crm << 3 | self.op2

    @property
    def assembler_name(self) -> str:
        """Generic name, which every assembler accepts."""
        return f"S3_{self.op1}_C{self.crn}_C{self.crm}_{self.op2}"

    def unpack(self, value: int) -> Any:
        """Return the fields of `value` as attributes of an object."""
        return SimpleNamespace(**{name: field.of(value) for name, field in self.fields.items()})

    def pack(self, **fields: int) -> int:
        """Return the value with these `fields`. All others are zero.

        Raises
        ------
        KeyError
            If the register has no such field.
        ValueError
            If a value is negative or too large for its field.
        """
        value = 0
        for name, number in fields.items():
            field = self.fields[name]
            if not 0 <= number < 1 << field.width:
                raise ValueError(f"{self.name}.{name} must be below {1 << field.width}, not {number}")
            value |= number << field.lsb
        return value
