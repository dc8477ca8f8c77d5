"""Vectors of an SVE operation as a number of 15 bits, which the tables of operations hold.

Ref: DDI0487 M.a, D17.6.6 (SVE operations).
"""

from spurtle.arch import EVL
from spurtle.arch.operation_types import EVL_UNIT

from ..model.operation import Vectors

__all__ = ["LENGTH_LIMIT", "LENGTH_SHIFT", "LENGTH_UNIT", "VECTORS", "VECTOR_LIMIT", "pack_vectors", "unpack_vectors"]

VECTORS = {"sve": (0, 1), "predicated": (1, 1), "gather_scatter": (2, 1), "count": (3, 5), "bits": (8, 7)}
"""First bit and width of each member of `interface.operation.VectorsLayout` that an SVE operation has.

`bits` is in units of `LENGTH_UNIT`.
"""

VECTOR_LIMIT = 1 << sum(width for _, width in VECTORS.values())
"""Upper bound of the numbers, which are less."""

LENGTH_UNIT = EVL_UNIT
"""Unit of `bits`: the shortest length that a record can have. Every length of SVE is a multiple of it."""

LENGTH_SHIFT = VECTORS["bits"][0]
"""First bit of `bits`, which is the last member."""

LENGTH_LIMIT = 1 << EVL.BITS_2048
"""Maximum of `bits`, in its unit."""


def pack_vectors(*, bits: int = 0, count: int = 1, predicated: bool = False, gather_scatter: bool = False) -> int:
    """Return the vectors of an SVE operation as a number. A length that is no multiple of the unit is rounded up."""
    values = {"sve": 1, "predicated": predicated, "gather_scatter": gather_scatter, "count": count}
    values["bits"] = -(-bits // LENGTH_UNIT)
    return sum(value << VECTORS[name][0] for name, value in values.items())


def unpack_vectors(number: int) -> Vectors:
    """Return the vectors that a number describes."""
    values = {name: number >> first & (1 << width) - 1 for name, (first, width) in VECTORS.items()}
    return Vectors(**{**values, "bits": values["bits"] * LENGTH_UNIT})
