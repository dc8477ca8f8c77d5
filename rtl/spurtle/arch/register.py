"""Description of a System register: encoding, fields and traps."""

# Ref: DDI0487 M.a, D24.7.

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
    """A field of a System register.

    Parameters
    ----------
    lsb, width : int
    doc : str
        Meaning, and how values that the architecture does not define are taken.
    values : type of IntEnum or None
        Names of its values, where they have some.
    """

    doc: str
    values: type[IntEnum] | None = None


@unique
class Trap(Enum):
    """The field of MDCR_EL2 that traps accesses from EL1 to EL2."""

    TPMS = "TPMS"
    """If it is one."""
    E2PB = "E2PB"
    """If bit 0 of it is zero."""


@dataclass(frozen=True)
class FineGrainedTrap:
    """Traps accesses from EL1 to EL2: a field of HDFGRTR_EL2 for reads and of HDFGWTR_EL2 for writes, or of
    HDFGRTR2_EL2 and HDFGWTR2_EL2. It traps if it is one, and if its name begins with `n` if it is zero.
    """

    name: str
    bit: int
    second: bool = False
    """Of FEAT_FGT2."""

    @property
    def inverted(self) -> bool:
        return self.name.startswith("n")


@dataclass(frozen=True)
class Register:
    """A 64-bit System register: op0 is 3 for all of them.

    Bits that no field names are RES0. Which fields a configuration implements is `SPUConfig.writable`'s to say.

    Parameters
    ----------
    name : str
    op1, crm, op2 : int
    purpose : str
        What it is for.
    fields : dict of str to Field
    read_only : bool
    crn : int
    owned : bool
        Accesses from EL1 and EL2 of another Security state than the one that owns the Profiling Buffer trap to EL3, by
        MDCR_EL3.{NSPBE, NSPB}.
    trap : Trap or None
    fine_grained : FineGrainedTrap or None
    enable : str
        Field of MDCR_EL3 that lets EL1 and EL2 access it, if it is one. Empty if there is none.
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
        """op1, CRn, CRm and op2, from the most significant bit down."""
        return self.op1 << 11 | self.crn << 7 | self.crm << 3 | self.op2

    @property
    def assembler_name(self) -> str:
        """What every assembler takes for it, whether it knows the register or not."""
        return f"S3_{self.op1}_C{self.crn}_C{self.crm}_{self.op2}"

    def unpack(self, value: int) -> Any:
        """The fields of `value`, as attributes."""
        return SimpleNamespace(**{name: field.of(value) for name, field in self.fields.items()})

    def pack(self, **fields: int) -> int:
        """The value that holds `fields`, all others zero. Raises KeyError on an unknown field, ValueError on one that
        is too large.
        """
        value = 0
        for name, number in fields.items():
            field = self.fields[name]
            if not 0 <= number < 1 << field.width:
                raise ValueError(f"{self.name}.{name} must be below {1 << field.width}, not {number}")
            value |= number << field.lsb
        return value
