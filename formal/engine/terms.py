"""Typed interface to the solver z3: bit vectors, conditions, solver and model. No other module imports z3."""

from collections.abc import Sequence
from typing import Any, TypeVar, overload

import z3

__all__ = [
    "AnyTerm", "BitVector", "Boolean", "Model", "Solver", "Term", "TermError", "Undecided", "all_of", "any_of",
    "as_bits", "boolean", "concat", "constant", "extract", "if_else", "implies", "not_", "parse", "remainder",
    "shift_right", "sign_extend", "simplify", "sle", "slt", "substitute", "uge", "ugt", "ule", "ult", "variable",
    "widened", "zero_extend",
]  # fmt: skip

TermError = z3.Z3Exception
"""Error of z3: types or widths of operands do not match, or a text is not SMT-LIB."""


class Undecided(Exception):
    """Failure of the solver to decide a query, usually because its time limit expired."""


class Term:
    """Bit vector or condition. `same` compares terms; `==` returns a condition on their values."""

    __slots__ = ("_ref",)

    # Terms have no truth value, and `==` does not compare terms.
    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __init__(self, ref: Any):
        self._ref = ref

    def __bool__(self) -> bool:
        raise TypeError("the value of a term is not known")

    def __repr__(self) -> str:
        return str(self._ref)

    @property
    def number(self) -> int:
        """Number of the term, shared by equal terms, and unique while one of them exists."""
        return self._ref.get_id()

    @property
    def children(self) -> "list[Boolean | BitVector]":
        """Operands of the outermost operation."""
        return [_wrapped(child) for child in self._ref.children()]

    def same(self, other: "Term") -> bool:
        """Return whether both are syntactically the same term."""
        return self._ref.eq(other._ref)


class Boolean(Term):
    """Condition: a term that is true or false."""

    __slots__ = ()

    def __eq__(self, other: "Boolean | bool") -> "Boolean":  # pyright: ignore[reportIncompatibleMethodOverride]
        return Boolean(self._ref == _raw(other))

    def __ne__(self, other: "Boolean | bool") -> "Boolean":  # pyright: ignore[reportIncompatibleMethodOverride]
        return Boolean(self._ref != _raw(other))

    @property
    def conjuncts(self) -> "list[Boolean]":
        """Operands of this conjunction, or the condition itself."""
        return [Boolean(child) for child in self._ref.children()] if z3.is_and(self._ref) else [self]

    @property
    def value(self) -> bool | None:
        """Value of a constant, otherwise None."""
        return True if z3.is_true(self._ref) else False if z3.is_false(self._ref) else None


class BitVector(Term):
    """Bit vector of a fixed width. Operands have the same width, or are `int`; results wrap."""

    __slots__ = ()

    @property
    def width(self) -> int:
        """Width in bits."""
        return self._ref.size()

    @property
    def value(self) -> int | None:
        """Unsigned value of a constant, otherwise None."""
        return self._ref.as_long() if isinstance(self._ref, z3.BitVecNumRef) else None

    @property
    def signed(self) -> int | None:
        """Two's complement value of a constant, otherwise None."""
        return self._ref.as_signed_long() if isinstance(self._ref, z3.BitVecNumRef) else None

    @property
    def is_variable(self) -> bool:
        """Whether this term is a variable or a constant."""
        return z3.is_const(self._ref)

    @property
    def extracted(self) -> tuple[int, int] | None:
        """Highest and lowest bit of the operand, if this is a result of `extract`, otherwise None."""
        if self._ref.decl().kind() != z3.Z3_OP_EXTRACT:
            return None
        high, low = self._ref.params()
        return high, low

    @property
    def is_concatenation(self) -> bool:
        """Whether this term is a result of `concat`."""
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
        """Return the arithmetic right shift."""
        return BitVector(self._ref >> _raw(distance))


AnyTerm = TypeVar("AnyTerm", Boolean, BitVector)
"""Bit vector or condition, the same in arguments and result."""


def _raw(operand: Term | int) -> Any:
    return operand._ref if isinstance(operand, Term) else operand  # pyright: ignore[reportPrivateUsage]


def _wrapped(ref: Any) -> Boolean | BitVector:
    return BitVector(ref) if isinstance(ref, z3.BitVecRef) else Boolean(ref)


# Constants and variables.


def variable(name: str, width: int) -> BitVector:
    """Return the variable of this name."""
    return BitVector(z3.BitVec(name, width))


def constant(value: int, width: int) -> BitVector:
    """Return a number, modulo 2 to the power of the width."""
    return BitVector(z3.BitVecVal(value, width))


def boolean(value: bool) -> Boolean:
    """Return the constant condition true or false."""
    return Boolean(z3.BoolVal(value))


# Conditions.


def all_of(*conditions: Boolean | bool) -> Boolean:
    """Return the conjunction. Without conditions it is true."""
    return _joined(z3.Z3_mk_and, conditions)


def any_of(*conditions: Boolean | bool) -> Boolean:
    """Return the disjunction. Without conditions it is false."""
    return _joined(z3.Z3_mk_or, conditions)


def _joined(make: Any, conditions: Sequence[Boolean | bool]) -> Boolean:
    # Call the C function directly: z3.And and z3.Or coerce each operand, which takes three times as long.
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
    """Return the condition that `consequence` holds if `condition` does."""
    return Boolean(z3.Implies(_raw(condition), _raw(consequence)))


@overload
def if_else(condition: Boolean, one: BitVector, other: BitVector | int) -> BitVector: ...
@overload
def if_else(condition: Boolean, one: int, other: BitVector) -> BitVector: ...
@overload
def if_else(condition: Boolean, one: Boolean, other: Boolean) -> Boolean: ...
def if_else(condition: Boolean, one: Term | int, other: Term | int) -> Term:
    """Return the term that is `one` if the condition holds, otherwise `other`."""
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
    """Return bits `high` to `low`, both inclusive."""
    return BitVector(z3.Extract(high, low, _raw(term)))


def concat(first: BitVector, *others: BitVector) -> BitVector:
    """Return the concatenation of the terms, the most significant first."""
    return BitVector(z3.Concat([_raw(term) for term in (first, *others)])) if others else first


def zero_extend(bits: int, term: BitVector) -> BitVector:
    """Return the term extended by `bits` zeros."""
    return BitVector(z3.ZeroExt(bits, _raw(term)))


def sign_extend(bits: int, term: BitVector) -> BitVector:
    """Return the term extended by `bits` copies of its sign."""
    return BitVector(z3.SignExt(bits, _raw(term)))


def widened(term: BitVector, width: int) -> BitVector:
    """Return the term zero-extended to at least `width` bits."""
    return zero_extend(width - term.width, term) if term.width < width else term


def as_bits(term: Boolean | BitVector, width: int = 1) -> BitVector:
    """Return a condition as the number 0 or 1 in `width` bits. A bit vector is returned unchanged."""
    return if_else(term, constant(1, width), constant(0, width)) if isinstance(term, Boolean) else term


def shift_right(term: BitVector, distance: BitVector | int) -> BitVector:
    """Return the logical right shift."""
    return BitVector(z3.LShR(_raw(term), _raw(distance)))


def remainder(term: BitVector, divisor: BitVector | int) -> BitVector:
    """Return the remainder of an unsigned division."""
    return BitVector(z3.URem(_raw(term), _raw(divisor)))


# Transformations of terms.


def simplify(term: AnyTerm) -> AnyTerm:
    """Return a simplified equal term. Without variables it is a constant."""
    return type(term)(z3.simplify(_raw(term)))


def substitute(term: AnyTerm, *replaced: tuple[BitVector, BitVector]) -> AnyTerm:
    """Return the term with the first of each pair replaced by the second."""
    return type(term)(z3.substitute(_raw(term), *[(_raw(old), _raw(new)) for old, new in replaced]))


def parse(text: str) -> list[Boolean]:
    """Return the assertions of an SMT-LIB text."""
    return [Boolean(assertion) for assertion in z3.parse_smt2_string(text)]


# Queries.


class Model:
    """Assignment of values to variables that satisfies the conditions of a solver. Irrelevant variables are zero."""

    def __init__(self, ref: Any):
        self._ref = ref

    def value(self, term: BitVector) -> int:
        """Return the unsigned value of a term."""
        return self._ref.eval(_raw(term), model_completion=True).as_long()

    def signed(self, term: BitVector) -> int:
        """Return the two's complement value of a term."""
        return self._ref.eval(_raw(term), model_completion=True).as_signed_long()

    def holds(self, condition: Boolean) -> bool:
        """Return whether the values satisfy the condition."""
        return z3.is_true(self._ref.eval(_raw(condition), model_completion=True))


class Solver:
    """Solver for one query, or for several incremental ones.

    Parameters
    ----------
    assertions : Boolean
        Conditions that are assumed.
    seconds : float
        Time limit of one query.
    """

    def __init__(self, *assertions: Boolean, seconds: float = 300):
        self._solver: Any = z3.SolverFor("QF_BV")
        self._solver.set("timeout", int(1000 * seconds))
        self.add(*assertions)

    def add(self, *assertions: Boolean) -> None:
        """Add conditions that are assumed."""
        self._solver.add(*[_raw(assertion) for assertion in assertions])

    @property
    def assertions(self) -> Sequence[Boolean]:
        """Conditions that are assumed."""
        return [Boolean(assertion) for assertion in self._solver.assertions()]

    def enter(self, *assertions: Boolean) -> None:
        """Begin a scope with these assertions."""
        self._solver.push()
        self.add(*assertions)

    def leave(self, scopes: int) -> None:
        """End scopes, the last one first, until this number remains."""
        self._solver.pop(self._solver.num_scopes() - scopes)

    def possible(self, *conditions: Boolean) -> bool:
        """Return whether the conditions and the assumptions are satisfiable. Raise Undecided if the solver gives up."""
        answer = self._solver.check(*[_raw(condition) for condition in conditions])
        if answer == z3.unknown:
            raise Undecided(self._solver.reason_unknown())
        return answer == z3.sat

    def model(self) -> Model:
        """Return the model that `possible` found."""
        return Model(self._solver.model())
