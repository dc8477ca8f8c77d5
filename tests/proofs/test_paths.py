"""Symbolic execution explores every possible path of a function, and no others."""

import pytest

from formal.engine.integer import Integer, no_decision
from formal.engine.paths import explore, fold, merge
from formal.engine.terms import BitVector, Solver, constant, extract, sign_extend, simplify, substitute, ugt, variable
from tests.support.proofs import integer_value, known_integer


def classify(a: int, b: int) -> int:
    """Classify two numbers, with every kind of branch. The path that raises is impossible."""
    if a == 0 and b > 3:
        return 1
    if min(a, b) == a:
        return a + b
    while a > b + 2:
        a -= 7
        if a > 9:
            raise AssertionError("15 - 7 is 8")
    return a - b


def test_paths_are_complete_and_exclusive() -> None:
    a, b = variable("a", 4), variable("b", 4)
    paths = list(explore(classify, a, b))
    for x in range(16):
        for y in range(16):
            values = ((a, constant(x, 4)), (b, constant(y, 4)))
            taken = [path for path in paths if simplify(substitute(path.condition, *values)).value]
            assert len(taken) == 1
            result = taken[0].result
            got = (
                integer_value(Integer(substitute(result.bits, *values), no_decision))
                if isinstance(result, Integer)
                else result
            )
            assert got == classify(x, y)
    solver = Solver()
    assert all(solver.possible(path.condition) for path in paths)


def test_fold_selects_the_result_of_the_taken_path() -> None:
    a, b = variable("a", 4), variable("b", 4)
    paths = list(explore(classify, a, b))

    def values(result: Integer | int) -> list[BitVector]:
        bits = (known_integer(result) if isinstance(result, int) else result).bits
        return [extract(7, 0, sign_extend(8, bits)), constant(3, 4)]

    term, same = fold(paths, values)
    for x in range(16):
        for y in range(16):
            value = simplify(substitute(term, (a, constant(x, 4)), (b, constant(y, 4))))
            assert value.signed == classify(x, y)
    # A term that is equal on all paths needs no selection.
    assert same.same(constant(3, 4))


def test_assumptions_exclude_paths() -> None:
    x = variable("x", 4)
    solver = Solver()
    solver.add(ugt(x, 5))
    assert [path.result for path in explore(lambda x: "low" if x < 5 else "high", x, solver=solver)] == ["high"]
    solver.add(x == 0)
    assert list(explore(lambda x: x, x, solver=solver)) == []


def test_a_merged_function_returns_the_same_results() -> None:
    same_function = merge(lambda a, b: (classify(a, b) + 16, a == b), [4, 4], [6, 1])
    for x in range(16):
        for y in range(16):
            assert list(map(integer_value, same_function(known_integer(x), y))) == [classify(x, y) + 16, x == y]


def test_values_that_may_not_fit_are_rejected() -> None:
    with pytest.raises(ValueError, match=r"^result 1 of <lambda> may need more than 4 bits$"):
        merge(lambda a: (a, a + 1), [4], [4, 4])
    with pytest.raises(ValueError, match=r"^result 0 of <lambda> may need more than 4 bits$"):
        merge(lambda a: (a - 1,), [4], [4])
    same = merge(lambda a: (a,), [4], [4])
    with pytest.raises(ValueError, match=r" may need more than 4 bits$"):
        same(known_integer(16))
    with pytest.raises(ValueError, match=r" may need more than 4 bits$"):
        same(known_integer(-1))
