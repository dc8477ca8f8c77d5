"""Formats of the Operation Type packet (D18.2.7): SUBCLASS and the other fields of the payload.

Ref: DDI0487 M.a, D18.2.7. Where its figures and its lists of fields disagree, the description of each field decides.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from .packets import ETS, EVL, OperationClass
from .values import PMSVer

__all__ = [
    "BRANCH",
    "ETS_UNIT",
    "EVL_UNIT",
    "EXTENDED",
    "FORMS",
    "GENERAL",
    "GUARDED_CONTROL_STACK",
    "MEMORY_COPY",
    "MEMORY_SET",
    "NV2",
    "OTHER",
    "SME_DATA_PROCESSING",
    "SVE_DATA_PROCESSING",
    "SVE_LOAD_STORE",
    "TAG",
    "TILE_SIZE_BITS",
    "UNSPECIFIED",
    "VECTOR_LENGTH_BITS",
    "Form",
]

EVL_UNIT = 32
"""Bits of a vector whose EVL is zero. Each EVL stands for twice as many bits as the one before."""

ETS_UNIT = 128
"""Bits of a tile whose ETS is zero. Each ETS stands for twice as many bits as the one before."""

VECTOR_LENGTH_BITS = (EVL_UNIT << EVL.BITS_2048).bit_length()
"""Width of the number of bits in a vector, which is at most 2048."""

TILE_SIZE_BITS = (ETS_UNIT << ETS.BITS_262144).bit_length()
"""Width of the number of bits in a tile or several tiles, which is at most 262144."""


@dataclass(frozen=True)
class Form:
    """Format of the payload.

    Parameters
    ----------
    name : str
    operation_class : OperationClass
    subclass : str
        SUBCLASS from bit 7 down, as the architecture writes it. `x` is a bit of a field.
    fields : mapping of str to tuple of int
        Bits of each field, the least significant first.
    version : PMSVer
        First version of FEAT_SPE that defines the format.
    features : tuple of str
        Names of fields of `SPUConfig`, of which at least one must be set. Empty if the format needs no feature.
    """

    name: str
    operation_class: OperationClass
    subclass: str
    fields: Mapping[str, tuple[int, ...]]
    version: PMSVer = PMSVer.SPE
    features: tuple[str, ...] = ()

    @cached_property
    def fixed(self) -> int:
        """Mask of the bits that SUBCLASS fixes."""
        return int(self.subclass.replace("0", "1").replace("x", "0"), 2)

    @cached_property
    def value(self) -> int:
        """Payload with all fields zero."""
        return int(self.subclass.replace("x", "0"), 2)

    def matches(self, operation_class: int, payload: int) -> bool:
        """Return whether a packet has this format."""
        return operation_class == self.operation_class and payload & self.fixed == self.value

    def pack(self, **fields: int) -> int:
        """Return the payload with these fields. All others are zero. The values may be symbolic.

        Raises
        ------
        KeyError
            If the format has no such field.
        """
        payload = self.value
        for name, number in fields.items():
            for index, bit in enumerate(self.fields[name]):
                payload = payload | (number >> index & 1) << bit
        return payload

    def unpack(self, payload: int) -> dict[str, int]:
        """Return the fields of a payload."""
        return {
            name: sum((payload >> bit & 1) << index for index, bit in enumerate(bits))
            for name, bits in self.fields.items()
        }


_LDST = {"LDST": (0,)}

OTHER = Form("other", OperationClass.OTHER, "00000xxx", {"COND": (0,), "FP": (1,), "ASE": (2,)})

SVE_DATA_PROCESSING = Form(
    "sve",
    OperationClass.OTHER,
    "0xxx1xx0",
    {"EVL": (4, 5, 6), "FP": (1,), "PRED": (2,)},
    PMSVer.SPE_V1P1,
    ("sve", "sme"),
)

SME_DATA_PROCESSING = Form(
    "sme", OperationClass.OTHER, "1xxx1xx0", {"ETS": (2, 4, 5, 6), "FP": (1,)}, features=("spe_sme",)
)

GENERAL = Form("general", OperationClass.LOAD_STORE, "00000x0x", {**_LDST, "SIMD_FP": (2,)})
"""Load or store of general-purpose registers or of SIMD&FP registers."""

UNSPECIFIED = Form("unspecified", OperationClass.LOAD_STORE, "0001000x", _LDST, PMSVer.SPE_V1P1)

TAG = Form("tag", OperationClass.LOAD_STORE, "0001010x", _LDST, PMSVer.SPE_V1P3, ("mte",))

NV2 = Form("nv2", OperationClass.LOAD_STORE, "0011000x", _LDST, features=("nv2",))

EXTENDED = Form("extended", OperationClass.LOAD_STORE, "000xxx1x", {**_LDST, "AT": (2,), "EXCL": (3,), "AR": (4,)})

SVE_LOAD_STORE = Form(
    "sve",
    OperationClass.LOAD_STORE,
    "xxxx1x0x",
    {**_LDST, "EVL": (4, 5, 6), "PRED": (2,), "SG": (7,)},
    PMSVer.SPE_V1P1,
    ("sve", "sme"),
)

MEMORY_COPY = Form("memory_copy", OperationClass.LOAD_STORE, "0010000x", _LDST, PMSVer.SPE_V1P3, ("mops",))

MEMORY_SET = Form("memory_set", OperationClass.LOAD_STORE, "00100101", {}, PMSVer.SPE_V1P3, ("mops",))
"""Memory set, which is always a store: SUBCLASS fixes LDST."""

GUARDED_CONTROL_STACK = Form(
    "gcs", OperationClass.LOAD_STORE, "01000x0x", {**_LDST, "COMM": (2,)}, PMSVer.SPE_V1P4, ("gcs",)
)

BRANCH = Form("branch", OperationClass.BRANCH, "000xxxxx", {"COND": (0,), "IND": (1,), "GCS": (2,), "CR": (3, 4)})

FORMS = (
    OTHER,
    SVE_DATA_PROCESSING,
    SME_DATA_PROCESSING,
    GENERAL,
    EXTENDED,
    UNSPECIFIED,
    TAG,
    NV2,
    SVE_LOAD_STORE,
    MEMORY_COPY,
    MEMORY_SET,
    GUARDED_CONTROL_STACK,
    BRANCH,
)
"""All formats. No payload has two of them."""
