"""Values of fields of System registers.

Ref: DDI0487 M.a, D24.7.
"""

from collections.abc import Collection
from enum import IntEnum, unique
from typing import Protocol

__all__ = [
    "BSC",
    "EC",
    "FM",
    "FSC_ASYNCHRONOUS",
    "FSC_SYNCHRONOUS",
    "PAGE_BYTES",
    "PCT",
    "AltClk",
    "Defined",
    "PMSVer",
    "is_defined",
]


PAGE_BYTES = 4096
"""Granule of PMBLIMITR_EL1.LIMIT."""


@unique
class PMSVer(IntEnum):
    """ID_AA64DFR0_EL1.PMSVer: version of the extension."""

    SPE = 1
    SPE_V1P1 = 2
    SPE_V1P2 = 3
    SPE_V1P3 = 4
    SPE_V1P4 = 5


@unique
class AltClk(IntEnum):
    """PMSIDR_EL1.ALTCLK: clock of the alternate clock issue latency (D17.6.1)."""

    NONE = 0
    SMCU = 1
    IMPLEMENTATION_DEFINED = 15


@unique
class EC(IntEnum):
    """PMBSR_EL1.EC: class of the buffer management event."""

    OTHER = 0x00
    GRANULE_PROTECTION = 0x1E
    IMPLEMENTATION_DEFINED = 0x1F
    STAGE_1 = 0x24
    STAGE_2 = 0x25


FSC_SYNCHRONOUS = 0b010000
"""PMBSR_EL1.FSC: synchronous External abort, not on a translation table walk."""


FSC_ASYNCHRONOUS = 0b010001
"""PMBSR_EL1.FSC: asynchronous External abort."""


@unique
class BSC(IntEnum):
    """PMBSR_EL1.MSS[5:0] when EC is 0: buffer status code."""

    NOT_STOPPED = 0
    BUFFER_FILLED = 1


@unique
class FM(IntEnum):
    """PMBLIMITR_EL1.FM: Fill mode. Other values are reserved."""

    FILL = 0b00
    DISCARD = 0b10


@unique
class PCT(IntEnum):
    """PMSCR_EL1.PCT and PMSCR_EL2.PCT: time in the timestamp. 0b10 is reserved. Bit 1 needs FEAT_ECV."""

    VIRTUAL = 0b00
    PHYSICAL = 0b01
    OFFSET_PHYSICAL = 0b11


class Defined(Protocol):
    """Row of a table of formats or events that some versions and features define.

    Attributes
    ----------
    version : PMSVer
        First version of FEAT_SPE that defines the row.
    features : tuple of str
        Names of fields of `SPUConfig`, of which at least one must be set. Empty if the row needs no feature.
    """

    @property
    def version(self) -> PMSVer: ...

    @property
    def features(self) -> tuple[str, ...]: ...


def is_defined(row: Defined, version: PMSVer, features: Collection[str]) -> bool:
    """Return whether this version with these features defines a row."""
    return version >= row.version and (not row.features or any(feature in features for feature in row.features))
