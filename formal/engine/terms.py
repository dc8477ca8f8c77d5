"""Terms of the solver z3 with their types: bit vectors, conditions, solver and model. No other module imports z3."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar, overload

import z3

__all__ = [
    "BitVector", "Boolean", "Model", "Solver", "Term", "TermError", "Undecided", "all_of", "any_of", "as_bits",
    "boolean", "concat", "constant", "extract", "if_else", "implies", "not_", "parse", "remainder", "shift_right",
    "sign_extend", "simplify", "sle", "slt", "substitute", "uge", "ugt", "ule", "ult", "variable", "widened",
    "zero_extend",
]  # fmt: skip

TermError = z3.Z3Exception
"""Terms of these types or widths do not fit together, or a text is no SMT-LIB."""


class Undecided(Exception):
    """The solver gave up within its time."""


class Term:
    """A bit vector or a condition. Terms are compared with `same`: `==` is a condition about their values."""

    __slots__ = ("_ref",)

    # A term has no truth value of its own, and `==` does not compare terms.
    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __init__(self, ref: Any):
        self._ref = ref

    def __bool__(self) -> bool:
        raise TypeError("the value of a term is not known")

    def __repr__(self) -> str:
        return str(self._ref)

    @property
    def number(self) -> int:
        """Number that equal terms have in common, for as long as one of them exists."""
        return self._ref.get_id()

    @property
    def children(self) -> "list[Boolean | BitVector]":
        """Operands of the outermost operation."""
        return [_wrapped(child) for child in self._ref.children()]

    def same(self, other: "Term") -> bool:
        """Return whether this is the same term, written in the same way."""
        return self._ref.eq(other._ref)


class Boolean(Term):
    """A condition."""

    __slots__ = ()

    def __eq__(self, other: "Boolean | bool") -> "Boolean":  # pyright: ignore[reportIncompatibleMethodOverride]
        return Boolean(self._ref == _raw(other))

    def __ne__(self, other: "Boolean | bool") -> "Boolean":  # pyright: ignore[reportIncompatibleMethodOverride]
        return Boolean(self._ref != _raw(other))

    @property
    def conjuncts(self) -> "list[Boolean]":
        """Conditions of which this is the conjunction."""
        return [Boolean(child) for child in self._ref.children()] if z3.is_and(self._ref) else [self]

    @property
    def value(self) -> bool | None:
        """Value, if this is a constant."""
        return True if z3.is_true(self._ref) else False if z3.is_false(self._ref) else None


class BitVector(Term):
    """A number of a fixed width. Operands have the same width, or are `int`; results wrap."""

    __slots__ = ()

    @property
    def width(self) -> int:
        """Width in bits."""
        return self._ref.size()

    @property
    def value(self) -> int | None:
        """Value, unsigned, if this is a constant."""
        return self._ref.as_long() if isinstance(self._ref, z3.BitVecNumRef) else None

    @property
    def signed(self) -> int | None:
        """Value as two's complement, if this is a constant."""
        return self._ref.as_signed_long() if isinstance(self._ref, z3.BitVecNumRef) else None

    @property
    def is_variable(self) -> bool:
        """Whether this is a variable or a constant."""
        return z3.is_const(self._ref)

    @property
    def extracted(self) -> tuple[int, int] | None:
        """Highest and lowest bit that `extract` takes from its operand, if this is the result of it."""
        if self._ref.decl().kind() != z3.Z3_OP_EXTRACT:
            return None
        high, low = self._ref.params()
        return high, low

    @property
    def is_concatenation(self) -> bool:
        """Whether this is the result of `concat`."""
        return self._ref.decl().kind() == z3.Z3_OP_CONCAT

    def __eq__(self, other: "BitVector | int") -> Boolean:  # pyright: ignore[reportIncompatibleMethodOverride]
        return Boolean(self._ref == _raw(other))

    def __ne__(self, other: "BitVector | int") -> Boolean:  # pyright: ignore[reportIncompatibleMethodOverride]
        return Boolean(self._ref != _raw(other))

    def __add__(self, other: "BitVector | int") -> "BitVector":
        return BitVector(self._ref + _raw(other))

    def __sub__(self, other: "BitVector | int") -> "BitVector":
        return BitVector(self._ref - _raw(other))

    def __rsub__(self, other: int) -> "BitVector":
        return BitVector(other - self._ref)

    def __mul__(self, other: "BitVector | int") -> "BitVector":
        return BitVector(self._ref * _raw(other))

    def __and__(self, other: "BitVector | int") -> "BitVector":
        return BitVector(self._ref & _raw(other))

    def __or__(self, other: "BitVector | int") -> "BitVector":
        return BitVector(self._ref | _raw(other))

    def __xor__(self, other: "BitVector | int") -> "BitVector":
        return BitVector(self._ref ^ _raw(other))

    __radd__, __rmul__, __rand__, __ror__, __rxor__ = __add__, __mul__, __and__, __or__, __xor__

    def __invert__(self) -> "BitVector":
        return BitVector(~self._ref)

    def __lshift__(self, distance: "BitVector | int") -> "BitVector":
        return BitVector(self._ref << _raw(distance))

    def __rshift__(self, distance: "BitVector | int") -> "BitVector":
        """Shift as two's complement: the sign is repeated."""
        return BitVector(self._ref >> _raw(distance))


AnyTerm = TypeVar("AnyTerm", Boolean, BitVector)


def _raw(operand: Term | int) -> Any:
    return operand._ref if isinstance(operand, Term) else operand  # pyright: ignore[reportPrivateUsage]


def _wrapped(ref: Any) -> Boolean | BitVector:
    return BitVector(ref) if isinstance(ref, z3.BitVecRef) else Boolean(ref)


# Constants and variables.


def variable(name: str, width: int) -> BitVector:
    """Return the bit vector of this name, which may have any value."""
    return BitVector(z3.BitVec(name, width))


def constant(value: int, width: int) -> BitVector:
    """Return a number, modulo 2 to the power of the width."""
    return BitVector(z3.BitVecVal(value, width))


def boolean(value: bool) -> Boolean:
    """Return the condition that is always, or never, true."""
    return Boolean(z3.BoolVal(value))


# Conditions.


def all_of(*conditions: Boolean | bool) -> Boolean:
    """Return the conjunction; of none it is true."""
    return _joined(z3.Z3_mk_and, conditions)


def any_of(*conditions: Boolean | bool) -> Boolean:
    """Return the disjunction; of none it is false."""
    return _joined(z3.Z3_mk_or, conditions)


def _joined(make: Any, conditions: Sequence[Boolean | bool]) -> Boolean:
    # By the library's own function: z3.And and z3.Or try what each operand could be, which takes three times as long.
    refs: list[Any] = [
        _raw(condition if isinstance(condition, Boolean) else boolean(condition)) for condition in conditions
    ]
    context: Any = z3.main_ctx()
    operands = (z3.Ast * len(refs))(*[ref.ast for ref in refs])
    return Boolean(z3.BoolRef(make(context.ref(), len(refs), operands), context))


def not_(condition: Boolean) -> Boolean:
    """Return the negation."""
    return Boolean(z3.Not(_raw(condition)))


def implies(condition: Boolean, consequence: Boolean) -> Boolean:
    """Return whether `consequence` holds, if `condition` does."""
    return Boolean(z3.Implies(_raw(condition), _raw(consequence)))


@overload
def if_else(condition: Boolean, one: BitVector, other: BitVector | int) -> BitVector: ...
@overload
def if_else(condition: Boolean, one: int, other: BitVector) -> BitVector: ...
@overload
def if_else(condition: Boolean, one: Boolean, other: Boolean) -> Boolean: ...
def if_else(condition: Boolean, one: Term | int, other: Term | int) -> Term:
    """Return `one` where the condition holds, `other` elsewhere."""
    return _wrapped(z3.If(_raw(condition), _raw(one), _raw(other)))


def ult(a: BitVector, b: BitVector | int) -> Boolean:
    """Return whether a < b, unsigned."""
    return Boolean(z3.ULT(_raw(a), _raw(b)))


def ule(a: BitVector, b: BitVector | int) -> Boolean:
    """Return whether a <= b, unsigned."""
    return Boolean(z3.ULE(_raw(a), _raw(b)))


def ugt(a: BitVector, b: BitVector | int) -> Boolean:
    """Return whether a > b, unsigned."""
    return Boolean(z3.UGT(_raw(a), _raw(b)))


def uge(a: BitVector, b: BitVector | int) -> Boolean:
    """Return whether a >= b, unsigned."""
    return Boolean(z3.UGE(_raw(a), _raw(b)))


def slt(a: BitVector, b: BitVector | int) -> Boolean:
    """Return whether a < b, as two's complement."""
    return Boolean(_raw(a) < _raw(b))


def sle(a: BitVector, b: BitVector | int) -> Boolean:
    """Return whether a <= b, as two's complement."""
    return Boolean(_raw(a) <= _raw(b))


# Bit vectors.


def extract(high: int, low: int, term: BitVector) -> BitVector:
    """Return the bits from `low` to `high`, both included."""
    return BitVector(z3.Extract(high, low, _raw(term)))


def concat(first: BitVector, *others: BitVector) -> BitVector:
    """Return the terms side by side, the most significant first."""
    return BitVector(z3.Concat([_raw(term) for term in (first, *others)])) if others else first


def zero_extend(bits: int, term: BitVector) -> BitVector:
    """Return the term with so many zeros above it."""
    return BitVector(z3.ZeroExt(bits, _raw(term)))


def sign_extend(bits: int, term: BitVector) -> BitVector:
    """Return the term with its sign so many times more above it."""
    return BitVector(z3.SignExt(bits, _raw(term)))


def widened(term: BitVector, width: int) -> BitVector:
    """Return the same unsigned number in `width` bits."""
    return zero_extend(width - term.width, term) if term.width < width else term


def as_bits(term: Boolean | BitVector, width: int = 1) -> BitVector:
    """Return a condition as the number 0 or 1 in `width` bits. A bit vector is returned as it is."""
    return if_else(term, constant(1, width), constant(0, width)) if isinstance(term, Boolean) else term


def shift_right(term: BitVector, distance: BitVector | int) -> BitVector:
    """Shift an unsigned number: zeros follow from above."""
    return BitVector(z3.LShR(_raw(term), _raw(distance)))


def remainder(term: BitVector, divisor: BitVector | int) -> BitVector:
    """Return the remainder of an unsigned division."""
    return BitVector(z3.URem(_raw(term), _raw(divisor)))


# Terms as a whole.


def simplify(term: AnyTerm) -> AnyTerm:
    """Return an equal term that is simpler: a constant, if it has no variables."""
    return type(term)(z3.simplify(_raw(term)))


def substitute(term: AnyTerm, *replaced: tuple[BitVector, BitVector]) -> AnyTerm:
    """Return the term with the second of each pair in the place of the first."""
    return type(term)(z3.substitute(_raw(term), *[(_raw(old), _raw(new)) for old, new in replaced]))


def parse(text: str) -> list[Boolean]:
    """Return what an SMT-LIB text asserts."""
    return [Boolean(assertion) for assertion in z3.parse_smt2_string(text)]


# Questions.


class Model:
    """Values of the variables that meet the conditions of a solver. Variables that do not matter are zero."""

    def __init__(self, ref: Any):
        self._ref = ref

    def value(self, term: BitVector) -> int:
        """Return the value of a term, unsigned."""
        return self._ref.eval(_raw(term), model_completion=True).as_long()

    def signed(self, term: BitVector) -> int:
        """Return the value of a term as two's complement."""
        return self._ref.eval(_raw(term), model_completion=True).as_signed_long()

    def holds(self, condition: Boolean) -> bool:
        """Return whether the values meet the condition."""
        return z3.is_true(self._ref.eval(_raw(condition), model_completion=True))


class Solver:
    """A solver for one question, or for a few that lead on from one to the next.

    Parameters
    ----------
    assertions : Boolean
        What it assumes.
    seconds : float
        Time for one question.
    """

    def __init__(self, *assertions: Boolean, seconds: float = 300):
        self._solver: Any = z3.SolverFor("QF_BV")
        self._solver.set("timeout", int(1000 * seconds))
        self.add(*assertions)

    def add(self, *assertions: Boolean) -> None:
        """Assume more conditions."""
        self._solver.add(*[_raw(assertion) for assertion in assertions])

    @property
    def assertions(self) -> Sequence[Boolean]:
        """The conditions that are assumed."""
        return [Boolean(assertion) for assertion in self._solver.assertions()]

    @contextmanager
    def restored(self) -> Generator[None]:
        """Forget, at the end, what is added within."""
        self._solver.push()
        try:
            yield
        finally:
            self._solver.pop()

    def possible(self, *conditions: Boolean) -> bool:
        """Return whether some values meet the conditions and all that is assumed. Raises Undecided if it cannot say."""
        answer = self._solver.check(*[_raw(condition) for condition in conditions])
        if answer == z3.unknown:
            raise Undecided(self._solver.reason_unknown())
        return answer == z3.sat

    def model(self) -> Model:
        """Return the values that `possible` found."""
        return Model(self._solver.model())
