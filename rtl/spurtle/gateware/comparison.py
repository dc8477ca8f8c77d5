"""Comparisons of small numbers in two levels of LUTs, which take less time than a carry chain.

The low and the high two bits are compared by tables of four inputs.
"""

import operator
from collections.abc import Callable

from amaranth import *

__all__ = ["at_most", "at_most_one_more"]

_HALF = 2
"""Bits of a number that a table compares."""


def at_most(a: Value, b: Value) -> Value:
    """Return whether `a <= b`. The numbers have at most four bits."""
    (low_a, high_a), (low_b, high_b) = _halves(a), _halves(b)
    less = _table(operator.lt, high_a, high_b)
    return _table(operator.le, high_a, high_b) & (less | _table(operator.le, low_a, low_b))


def at_most_one_more(a: Value, b: Value) -> Value:
    """Return whether `a <= b + 1`. The numbers have at most four bits."""
    (low_a, high_a), (low_b, high_b) = _halves(a), _halves(b)
    # If the high halves are equal, the low halves decide. If that of `a` is one more, the sum must carry into it.
    other = _table(lambda x, y: x <= y + 1 and x != y, high_a, high_b)
    equal = _table(lambda x, y: x <= y + 1, low_a, low_b)
    carried = _table(lambda x, y: x == 0 and y == (1 << _HALF) - 1, low_a, low_b)
    return Mux(_table(operator.le, high_a, high_b), other | equal, other & carried)


def _halves(number: Value) -> tuple[Value, Value]:
    """Return the low and the high half of a number."""
    return number[:_HALF], number[_HALF:]


def _table(function: Callable[[int, int], bool], a: Value, b: Value) -> Value:
    """Return a predicate of two numbers, as a constant that they index."""
    rows = [function(x, y) for y in range(1 << len(b)) for x in range(1 << len(a))]
    return Cat(C(row, 1) for row in rows).bit_select(Cat(a, b), 1)
