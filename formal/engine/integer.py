"""Symbolic integers, for functions that are written for `int` and `bytes`.

The functions are those of `spurtle_sim.model`, unchanged: an `Integer` computes as `int` does. Where Python needs its
truth value (`if`, `while`, `and`, `min` ...), `paths` decides.
"""

import importlib.util
import operator
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, Literal

from .terms import (
    AnyTerm,
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

__all__ = ["Integer", "Octets", "equal", "no_decision", "rebuild", "signed_constant"]


_Computed = dict[Any, Any]
"""Results of operations, with the operands. The key is the name of the operation and the identity of its operands."""


def signed_constant(value: int) -> BitVector:
    """Return a number as two's complement, in `bit_length() + 1` bits."""
    return constant(value, value.bit_length() + 1)


def _align(a: BitVector, b: BitVector, extra: int = 0) -> tuple[BitVector, BitVector]:
    """Return both operands sign-extended to one width, `extra` bits more than the wider one."""
    sizes = a.width, b.width
    above = [max(sizes) + extra - size for size in sizes]
    # Most operands have the right width already, and an extension by zero bits costs the solver time as well.
    return sign_extend(above[0], a) if above[0] else a, sign_extend(above[1], b) if above[1] else b


def _bits(value: "Integer | int") -> BitVector:
    """Return the two's complement of a number."""
    return value.bits if isinstance(value, Integer) else signed_constant(value)


class Integer:
    """A symbolic integer. It is exact, as Python's are: two's complement that is widened before it could wrap.

    Operations that need a known value (`int()`, `range()`, an index, the distance of a left shift, a dictionary key)
    raise TypeError.

    Parameters
    ----------
    bits : BitVector
        Two's complement of the value.
    decide : callable
        Return the truth value of a condition on the current path.
    computed : dict, optional
        Results of the operations on this integer and on those that are computed from it. The paths through a function
        have operations in common, and each of them is computed once.
    """

    __slots__ = ("_computed", "bits", "decide")

    def __init__(self, bits: BitVector, decide: Callable[[Boolean], bool], computed: "_Computed | None" = None):
        self.bits = bits
        self.decide = decide
        self._computed: _Computed = {} if computed is None else computed

    def __bool__(self) -> bool:
        return self.decide(self._once("bool", None, lambda: self.bits != 0))

    # `int` is hashable and `Integer` is not: whether two of them are equal is not known.
    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __index__(self) -> int:
        raise TypeError("the value of a symbolic integer is not known")

    def __format__(self, spec: str) -> str:
        raise TypeError("the value of a symbolic integer is not known")

    def __repr__(self) -> str:
        return f"Integer({simplify(self.bits)})"

    def _once(self, name: str, other: "BitVector | int | None", compute: Callable[[], AnyTerm]) -> AnyTerm:
        """Return the result of the operation `name` with this operand, which is computed the first time."""
        key = name, id(self.bits), id(other) if isinstance(other, BitVector) else (other,)
        found = self._computed.get(key)
        if found is None:
            # The operands are stored as well: while they exist, no other term has their `id`.
            self._computed[key] = found = compute(), self.bits, other
        return found[0]

    def _make(self, name: str, other: "Integer | int | None", compute: Callable[[], BitVector]) -> "Integer":
        operand = other.bits if isinstance(other, Integer) else other
        return Integer(self._once(name, operand, compute), self.decide, self._computed)

    def _binary(
        self,
        name: str,
        other: object,
        apply: Callable[[BitVector, BitVector], BitVector],
        extra: int = 0,
        swap: bool = False,
    ) -> "Integer":
        if not isinstance(other, Integer | int):
            return NotImplemented

        def compute() -> BitVector:
            operands = (self.bits, _bits(other))
            return apply(*_align(*(reversed(operands) if swap else operands), extra=extra))

        return self._make(name, other, compute)

    def __add__(self, other: object) -> "Integer":
        return self._binary("+", other, lambda a, b: a + b, 1)

    def __sub__(self, other: object) -> "Integer":
        return self._binary("-", other, lambda a, b: a - b, 1)

    def __rsub__(self, other: object) -> "Integer":
        return self._binary("reversed -", other, lambda a, b: a - b, 1, swap=True)

    def __neg__(self) -> "Integer":
        return 0 - self

    def __mul__(self, other: object) -> "Integer":
        if not isinstance(other, Integer | int):
            return NotImplemented

        def product() -> BitVector:
            factor = _bits(other)
            width = self.bits.width + factor.width
            return sign_extend(factor.width, self.bits) * sign_extend(width - factor.width, factor)

        return self._make("*", other, product)

    def __and__(self, other: object) -> "Integer":
        if not isinstance(other, int) or other < 0:
            return self._binary("&", other, lambda a, b: a & b)

        def masked() -> BitVector:
            # The mask bounds the result. Without this, no operation would make a value narrower again.
            a, b = _align(self.bits, signed_constant(other))
            return extract(other.bit_length(), 0, a & b)

        return self._make("&", other, masked)

    def __or__(self, other: object) -> "Integer":
        return self._binary("|", other, lambda a, b: a | b)

    def __xor__(self, other: object) -> "Integer":
        return self._binary("^", other, lambda a, b: a ^ b)

    def __invert__(self) -> "Integer":
        return self._make("~", None, lambda: ~self.bits)

    __radd__, __rmul__, __rand__, __ror__, __rxor__ = __add__, __mul__, __and__, __or__, __xor__

    def __lshift__(self, distance: int) -> "Integer":
        distance = operator.index(distance)
        if not distance:
            return self
        return self._make("<<", distance, lambda: concat(self.bits, constant(0, distance)))

    def __rshift__(self, distance: "Integer | int") -> "Integer":
        if isinstance(distance, Integer):
            if distance < 0:
                raise ValueError("negative shift count")
            return self._binary(">>", distance, lambda a, b: a >> b)
        top = self.bits.width - 1
        lowest = min(operator.index(distance), top)
        return self._make(">>", lowest, lambda: extract(top, lowest, self.bits))

    def to_bytes(self, length: int = 1, byteorder: Literal["little"] = "little") -> "Octets":
        """Return the bytes of the value, as `int.to_bytes` does, as symbolic integers."""
        if byteorder != "little":
            raise ValueError(f"byteorder must be 'little', not {byteorder!r}")
        if self < 0 or self >= 1 << 8 * length:
            raise OverflowError(f"{self!r} does not fit into {length} bytes")
        return Octets((self >> 8 * index) & 0xFF for index in range(length))

    def _compare(self, name: str, other: object, holds: Callable[[BitVector, BitVector], Boolean]) -> "Integer":
        # The result is 0 or 1, as a `bool` is in Python.
        return self._binary(name, other, lambda a, b: as_bits(holds(a, b), 2))

    def __eq__(self, other: object) -> "Integer":  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._compare("==", other, lambda a, b: a == b)

    def __ne__(self, other: object) -> "Integer":  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._compare("!=", other, lambda a, b: a != b)

    def __lt__(self, other: object) -> "Integer":
        return self._compare("<", other, slt)

    def __le__(self, other: object) -> "Integer":
        return self._compare("<=", other, sle)

    def __gt__(self, other: object) -> "Integer":
        return self._compare(">", other, lambda a, b: slt(b, a))

    def __ge__(self, other: object) -> "Integer":
        return self._compare(">=", other, lambda a, b: sle(b, a))


class Octets(list["Integer | int"]):
    """Replacement for `bytes` and `bytearray` whose items may be `Integer`s: made from a length or from numbers."""

    def __init__(self, source: Iterable[Integer | int] | int = ()):
        super().__init__([0] * source if isinstance(source, int) else source)

    def __add__(self, other: Iterable[Integer | int]) -> "Octets":  # pyright: ignore[reportIncompatibleMethodOverride]
        return Octets([*self, *other])


def rebuild(module: ModuleType) -> Any:
    """Execute the source of `module` again and return a second instance, with `bytes` and `bytearray` as `Octets`."""
    assert module.__spec__ is not None and module.__spec__.loader is not None
    twin = importlib.util.module_from_spec(module.__spec__)
    vars(twin).update(bytes=Octets, bytearray=Octets)
    module.__spec__.loader.exec_module(twin)
    return twin


def equal(value: Integer | int | Octets, wire: BitVector) -> Boolean:
    """Return whether the value equals the unsigned number on the wire.

    A negative value, or one that is too large, never does. Byte 0 of `Octets` is in bits [7:0].
    """
    if isinstance(value, Octets):
        assert wire.width == 8 * len(value)
        return all_of(*(equal(byte, extract(8 * i + 7, 8 * i, wire)) for i, byte in enumerate(value)))
    a, b = _align(_bits(value), zero_extend(1, wire))
    return a == b


def no_decision(condition: Boolean) -> bool:
    """Raise AssertionError: `decide` of an `Integer` whose truth value is never used."""
    raise AssertionError("the truth value of this integer must not be used")
