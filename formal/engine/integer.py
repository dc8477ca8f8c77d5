"""Integers that are not known, for functions that are written for `int` and `bytes`.

The functions are `spurtle_sim.model`'s own, and know nothing of this: an `Integer` computes as `int` does, and wherever
Python asks whether one is true (`if`, `while`, `and`, `min` ...) `paths` decides.
"""

import importlib.util
import operator
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, Literal

from .terms import (
    BitVector,
    Boolean,
    all_of,
    as_bits,
    concat,
    constant,
    extract,
    sign_extend,
    simplify,
    sle,
    slt,
    zero_extend,
)

__all__ = ["Integer", "Octets", "equal", "rebuilt", "signed_constant", "unasked"]


def signed_constant(value: int) -> BitVector:
    """Return a number as two's complement, in as many bits as it needs."""
    return constant(value, value.bit_length() + 1)


def _align(a: BitVector, b: BitVector, extra: int = 0) -> tuple[BitVector, BitVector]:
    """Both at one width, `extra` bits above the wider."""
    sizes = a.width, b.width
    above = [max(sizes) + extra - size for size in sizes]
    # Most are as wide as they have to be, and the solver takes its time for nothing as well.
    return sign_extend(above[0], a) if above[0] else a, sign_extend(above[1], b) if above[1] else b


class Integer:
    """An integer that may be any of several. Exact, as Python's: two's complement that widens before it could wrap.

    What would need its one value (`int()`, `range()`, an index, how far to shift left, a dictionary's key) raises
    TypeError.

    Parameters
    ----------
    bits : BitVector
        Its two's complement.
    decide : callable
        Says which way the path of the moment goes at a condition.
    """

    __slots__ = ("bits", "decide")

    def __init__(self, bits: BitVector, decide: Callable[[Boolean], bool]):
        self.bits = bits
        self.decide = decide

    def __bool__(self) -> bool:
        return self.decide(self.bits != 0)

    # `int` is hashable and Integer is not: two of them may or may not be equal.
    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __index__(self) -> int:
        raise TypeError("the value of a symbolic integer is not known")

    def __format__(self, spec: str) -> str:
        raise TypeError("the value of a symbolic integer is not known")

    def __repr__(self) -> str:
        return f"Integer({simplify(self.bits)})"

    def _make(self, bits: BitVector) -> "Integer":
        return Integer(bits, self.decide)

    def _binary(
        self, other: object, apply: Callable[[BitVector, BitVector], BitVector], extra: int, swap: bool = False
    ) -> "Integer":
        if not isinstance(other, Integer | int):
            return NotImplemented
        operands = (self.bits, other.bits if isinstance(other, Integer) else signed_constant(other))
        return self._make(apply(*_align(*(reversed(operands) if swap else operands), extra=extra)))

    def __add__(self, other: object) -> "Integer":
        return self._binary(other, lambda a, b: a + b, 1)

    def __sub__(self, other: object) -> "Integer":
        return self._binary(other, lambda a, b: a - b, 1)

    def __rsub__(self, other: object) -> "Integer":
        return self._binary(other, lambda a, b: a - b, 1, swap=True)

    def __neg__(self) -> "Integer":
        return 0 - self

    def __mul__(self, other: object) -> "Integer":
        if not isinstance(other, Integer | int):
            return NotImplemented
        factor = other.bits if isinstance(other, Integer) else signed_constant(other)
        width = self.bits.width + factor.width
        return self._make(sign_extend(factor.width, self.bits) * sign_extend(width - factor.width, factor))

    def __and__(self, other: object) -> "Integer":
        result = self._binary(other, lambda a, b: a & b, 0)
        if isinstance(other, int) and other >= 0:
            # A mask bounds what it lets through: without this, masking would never make a value narrower again.
            return self._make(extract(other.bit_length(), 0, result.bits))
        return result

    def __or__(self, other: object) -> "Integer":
        return self._binary(other, lambda a, b: a | b, 0)

    def __xor__(self, other: object) -> "Integer":
        return self._binary(other, lambda a, b: a ^ b, 0)

    def __invert__(self) -> "Integer":
        return self._make(~self.bits)

    __radd__, __rmul__, __rand__, __ror__, __rxor__ = __add__, __mul__, __and__, __or__, __xor__

    def __lshift__(self, distance: int) -> "Integer":
        distance = operator.index(distance)
        return self._make(concat(self.bits, constant(0, distance))) if distance else self

    def __rshift__(self, distance: "Integer | int") -> "Integer":
        if isinstance(distance, Integer):
            if distance < 0:
                raise ValueError("negative shift count")
            return self._binary(distance, lambda a, b: a >> b, 0)
        top = self.bits.width - 1
        return self._make(extract(top, min(operator.index(distance), top), self.bits))

    def to_bytes(self, length: int = 1, byteorder: Literal["little"] = "little") -> "Octets":
        """As `int.to_bytes`, but the bytes are integers that are not known either."""
        if byteorder != "little":
            raise ValueError(f"byteorder must be 'little', not {byteorder!r}")
        if self < 0 or self >= 1 << 8 * length:
            raise OverflowError(f"{self!r} does not fit into {length} bytes")
        return Octets((self >> 8 * index) & 0xFF for index in range(length))

    def _compare(self, other: object, holds: Callable[[BitVector, BitVector], Boolean]) -> "Integer":
        # 0 or 1, as a `bool` is in Python.
        return self._binary(other, lambda a, b: as_bits(holds(a, b), 2), 0)

    def __eq__(self, other: object) -> "Integer":  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._compare(other, lambda a, b: a == b)

    def __ne__(self, other: object) -> "Integer":  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._compare(other, lambda a, b: a != b)

    def __lt__(self, other: object) -> "Integer":
        return self._compare(other, slt)

    def __le__(self, other: object) -> "Integer":
        return self._compare(other, sle)

    def __gt__(self, other: object) -> "Integer":
        return self._compare(other, lambda a, b: slt(b, a))

    def __ge__(self, other: object) -> "Integer":
        return self._compare(other, lambda a, b: sle(b, a))


class Octets(list["Integer | int"]):
    """What stands for `bytes` and `bytearray` where bytes may be `Integer`s: made from a length or from numbers."""

    def __init__(self, source: Iterable[Integer | int] | int = ()):
        super().__init__([0] * source if isinstance(source, int) else source)

    def __add__(self, other: Iterable[Integer | int]) -> "Octets":  # pyright: ignore[reportIncompatibleMethodOverride]
        return Octets([*self, *other])


def rebuilt(module: ModuleType) -> Any:
    """A second instance of `module`, of the same source, in which `bytes` and `bytearray` are `Octets`."""
    assert module.__spec__ is not None and module.__spec__.loader is not None
    twin = importlib.util.module_from_spec(module.__spec__)
    vars(twin).update(bytes=Octets, bytearray=Octets)
    module.__spec__.loader.exec_module(twin)
    return twin


def equal(value: Integer | int | Octets, wire: BitVector) -> Boolean:
    """The value is the unsigned number on the wire: a negative or too large one never is. Byte 0 is in bits [7:0]."""
    if isinstance(value, Octets):
        assert wire.width == 8 * len(value)
        return all_of(*(equal(byte, extract(8 * i + 7, 8 * i, wire)) for i, byte in enumerate(value)))
    a, b = _align(value.bits if isinstance(value, Integer) else signed_constant(value), zero_extend(1, wire))
    return a == b


def unasked(condition: Boolean) -> bool:
    """Decide nothing: of an `Integer` of which nothing is asked."""
    raise AssertionError("nothing is asked about it")
