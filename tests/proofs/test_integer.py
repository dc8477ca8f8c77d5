"""Symbolic integers compute as Python's integers do."""

import operator
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formal.engine.integer import Integer, Octets, equal, no_decision, rebuild
from formal.engine.terms import Solver, variable
from spurtle.config import CONFIGS
from spurtle_sim.model import records
from spurtle_sim.model.operation import Facts, Operation, Sample, Start
from tests.support.proofs import integer_value, known_integer


@settings(max_examples=40)
@given(st.integers(-300, 300), st.integers(-300, 300), st.integers(0, 12))
def test_integer_operations_match_python(a: int, b: int, distance: int) -> None:
    for name in ("add", "sub", "mul", "and_", "or_", "xor", "eq", "ne", "lt", "le", "gt", "ge"):
        apply = getattr(operator, name)
        for result in (
            apply(known_integer(a), known_integer(b)),
            apply(known_integer(a), b),
            apply(a, known_integer(b)),
        ):
            assert integer_value(result) == apply(a, b), name
    for name in ("lshift", "rshift"):
        apply = getattr(operator, name)
        assert integer_value(apply(known_integer(a), distance)) == apply(a, distance), name
    assert integer_value(known_integer(a) >> known_integer(distance)) == a >> distance
    if b < 0:
        with pytest.raises(ValueError, match="negative shift count"):
            known_integer(a) >> known_integer(b)
    else:  # The distance may exceed the width of the value.
        assert integer_value(known_integer(a) >> known_integer(b)) == a >> b
    assert (integer_value(-known_integer(a)), integer_value(~known_integer(a))) == (-a, ~a)


def test_to_bytes_matches_python() -> None:
    assert list(map(integer_value, known_integer(0x1234).to_bytes(3, "little"))) == [0x34, 0x12, 0]
    for value in (-1, 1 << 16):
        with pytest.raises(OverflowError):
            known_integer(value).to_bytes(2, "little")


def test_a_rebuilt_module_computes_the_same_results() -> None:
    config = CONFIGS["minimal"]
    twin = rebuild(records)
    encoded = []
    for reference, number in ((records, int), (twin, known_integer)):
        facts = Facts(load=1, retired=1, va_valid=1)
        operation = Operation(facts=facts, pc=number(0x40_0123), va=number(0xFFFF_0000_1234_5678))
        start = Start(el=number(1), timestamp=number(77))
        encoded.append(reference.encode(config, Sample(start=start, operation=operation, total=number(5000))))
    assert bytes(map(integer_value, encoded[1])) == encoded[0]
    assert not hasattr(records, "bytes")


@pytest.mark.parametrize(
    "use", [lambda x: 1 << x, lambda x: x << x, range, lambda x: [0][x], lambda x: {x: 0}, "{}".format, int]
)
def test_operations_that_need_a_known_value_raise(use: Callable[[Any], object]) -> None:
    with pytest.raises(TypeError):
        use(Integer(variable("x", 8), no_decision))


def test_a_negative_or_too_large_value_equals_no_wire() -> None:
    wire = variable("wire", 4)
    for value in (-1, 16):
        assert not Solver().possible(equal(value, wire), equal(known_integer(value), wire))
    two = variable("two", 16)
    assert not Solver().possible(equal(Octets([known_integer(3), 2]), two), two != 0x203)
