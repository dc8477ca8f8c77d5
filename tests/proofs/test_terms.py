"""The interface to the solver: each operation has its declared type and the documented result."""

import inspect
import operator
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal.engine import terms
from formal.engine.terms import (
    BitVector,
    Boolean,
    Model,
    Solver,
    TermError,
    Undecided,
    all_of,
    any_of,
    as_bits,
    boolean,
    concat,
    constant,
    extract,
    if_else,
    implies,
    not_,
    parse,
    remainder,
    shift_right,
    sign_extend,
    simplify,
    sle,
    slt,
    substitute,
    uge,
    ugt,
    ule,
    ult,
    variable,
    widened,
    zero_extend,
)
from tests.support.paths import ROOT

WIDTH = 4
A, B = variable("a", WIDTH), variable("b", WIDTH)
P, Q = A == 1, B == 1


def signed(value: int) -> int:
    return value - (1 << WIDTH) if value >> WIDTH - 1 else value


NUMBERS: dict[Callable[..., Any], Callable[[int, int], int]] = {
    operator.add: lambda a, b: a + b,
    operator.sub: lambda a, b: a - b,
    operator.mul: lambda a, b: a * b,
    operator.and_: lambda a, b: a & b,
    operator.or_: lambda a, b: a | b,
    operator.xor: lambda a, b: a ^ b,
    operator.lshift: lambda a, b: a << b,
    operator.rshift: lambda a, b: signed(a) >> b,
    shift_right: lambda a, b: a >> b,
    remainder: lambda a, b: a % b if b else a,
}
"""Operations on two bit vectors whose result is a bit vector of the same width."""

COMPARISONS: dict[Callable[..., Any], Callable[[int, int], bool]] = {
    operator.eq: lambda a, b: a == b,
    operator.ne: lambda a, b: a != b,
    ult: lambda a, b: a < b,
    ule: lambda a, b: a <= b,
    ugt: lambda a, b: a > b,
    uge: lambda a, b: a >= b,
    slt: lambda a, b: signed(a) < signed(b),
    sle: lambda a, b: signed(a) <= signed(b),
}


def numbers() -> st.SearchStrategy[int]:
    return st.integers(0, (1 << WIDTH) - 1)


@given(numbers(), numbers())
def test_operations_match_python(a: int, b: int) -> None:
    values = (A, constant(a, WIDTH)), (B, constant(b, WIDTH))
    for apply, expected in NUMBERS.items():
        for term in (apply(A, B), apply(A, b)):
            assert type(term) is BitVector
            assert term.width == WIDTH
            assert simplify(substitute(term, *values)).value == expected(a, b) & (1 << WIDTH) - 1, apply
    for apply, expected in COMPARISONS.items():
        for term in (apply(A, B), apply(A, b)):
            assert type(term) is Boolean
            assert simplify(substitute(term, *values)).value is expected(a, b), apply


@given(numbers())
def test_an_int_can_be_the_left_operand(a: int) -> None:
    value = (A, constant(a, WIDTH))
    for apply in (operator.add, operator.sub, operator.mul, operator.and_, operator.or_, operator.xor):
        term = apply(3, A)
        assert type(term) is BitVector
        assert simplify(substitute(term, value)).value == apply(3, a) & (1 << WIDTH) - 1
    assert simplify(substitute(~A, value)).value == ~a & (1 << WIDTH) - 1


@pytest.mark.parametrize("p", [False, True])
@pytest.mark.parametrize("q", [False, True])
def test_conditions(p: bool, q: bool) -> None:
    values = (A, constant(p, WIDTH)), (B, constant(q, WIDTH))
    expected = {
        all_of(P, Q).number: (all_of(P, Q), p and q),
        any_of(P, Q).number: (any_of(P, Q), p or q),
        not_(P).number: (not_(P), not p),
        implies(P, Q).number: (implies(P, Q), not p or q),
        (P == Q).number: (P == Q, p == q),
        (P != Q).number: (P != Q, p != q),
        if_else(P, Q, not_(Q)).number: (if_else(P, Q, not_(Q)), q if p else not q),
    }
    assert len(expected) == 7
    for term, value in expected.values():
        assert type(term) is Boolean
        assert simplify(substitute(term, *values)).value is value
    chosen = if_else(P, A, 7)
    assert type(chosen) is BitVector
    assert simplify(substitute(chosen, *values)).value == (1 if p else 7)
    assert simplify(if_else(boolean(p), 3, constant(9, WIDTH))).value == (3 if p else 9)
    assert [simplify(as_bits(boolean(p), width)).value for width in (1, 6)] == [p, p]
    assert as_bits(A).same(A)


def test_empty_conjunction_and_disjunction() -> None:
    assert simplify(all_of()).value is True
    assert simplify(any_of()).value is False
    assert simplify(all_of(True, P)).same(P)
    assert P.value is None


def test_extract_concat_and_extension() -> None:
    value = constant(0b1010, WIDTH)
    for term, width, number in (
        (extract(2, 1, value), 2, 0b01),
        (concat(value, constant(3, 2)), 6, 0b101011),
        (concat(value), WIDTH, 0b1010),
        (zero_extend(2, value), 6, 0b001010),
        (sign_extend(2, value), 6, 0b111010),
        (widened(value, 6), 6, 0b001010),
        (widened(value, 2), WIDTH, 0b1010),
    ):
        assert type(term) is BitVector
        assert (term.width, simplify(term).value) == (width, number)
    assert (value.value, value.signed) == (10, -6)
    assert constant(-1, WIDTH).value == 15


def test_structure_of_a_term() -> None:
    cut, joined = extract(2, 1, A), concat(A, B)
    assert cut.extracted == (2, 1)
    assert joined.extracted is None
    assert (cut.is_concatenation, joined.is_concatenation) == (False, True)
    assert [child.same(part) for child, part in zip(joined.children, (A, B), strict=True)] == [True, True]
    assert (A.is_variable, cut.is_variable) == (True, False)
    assert [each.same(part) for each, part in zip(all_of(P, Q).conjuncts, (P, Q), strict=True)] == [True, True]
    assert P.conjuncts[0].same(P)
    assert (A + B).same(A + B)
    assert (A + B).number == (A + B).number
    assert not (A + B).same(B + A)


def test_a_term_has_no_truth_value() -> None:
    for term in (A, P):
        with pytest.raises(TypeError, match="not known"):
            bool(term)
        with pytest.raises(TypeError, match="unhashable"):
            hash(term)
    assert A.value is None


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: A + constant(0, WIDTH + 1),
        lambda: constant(0, WIDTH + 1) == A,
        lambda: ult(A, constant(0, WIDTH + 1)),
        lambda: implies(P, A),  # pyright: ignore[reportArgumentType]
        lambda: extract(WIDTH, 0, A),
        lambda: parse("(assert"),
    ],
)
def test_mismatched_operands_raise(wrong: Callable[[], object]) -> None:
    with pytest.raises(TermError):
        wrong()


def test_a_bit_vector_is_not_a_condition() -> None:
    with pytest.raises(TypeError):
        all_of(A)  # pyright: ignore[reportArgumentType]


def test_parse_returns_the_assertions() -> None:
    (read,) = parse("(declare-const a (_ BitVec 4)) (assert (= a #x1))")
    assert type(read) is Boolean
    assert read.same(P)


def test_solver_queries_and_models() -> None:
    solver = Solver(ugt(A, 5))
    solver.add(ult(A, 7))
    assert solver.possible()
    assert not solver.possible(A != 6)
    solver.enter(A == 6)
    solver.enter(A == 1)
    assert not solver.possible()
    solver.leave(1)
    assert solver.possible()
    solver.leave(0)
    assert solver.possible(B == 9)
    model = solver.model()
    assert type(model) is Model
    assert (model.value(A), model.value(B), model.signed(B)) == (6, 9, -7)
    assert (model.holds(A == 6), model.holds(A == 5)) == (True, False)
    # A variable without conditions has a value as well.
    assert model.value(variable("other", 3)) == 0
    assert [type(assertion) for assertion in solver.assertions] == [Boolean, Boolean]


def test_a_timeout_raises_undecided() -> None:
    x, y = variable("x", 64), variable("y", 64)
    factors = zero_extend(64, x) * zero_extend(64, y) == constant((1 << 89) - 1, 128) * constant((1 << 31) - 1, 128)
    with pytest.raises(Undecided):
        Solver(factors, ugt(x, 1), ugt(y, 1), seconds=0.01).possible()


def test_z3_is_imported_by_the_terms_module_alone() -> None:
    """Every public name of the module also occurs in this file."""
    assert set(terms.__all__) - set(re.findall(r"\w+", Path(__file__).read_text())) - {"AnyTerm", "Term"} == set()
    users = [
        path.relative_to(ROOT)
        for folder in ("formal", "tests", "campaign", "sim", "rtl", "bench", "boards")
        for path in (ROOT / folder).rglob("*.py")
        if re.search(r"^\s*(import|from) z3\b", path.read_text(), re.MULTILINE)
    ]
    assert users == [Path(inspect.getfile(terms)).relative_to(ROOT)]
