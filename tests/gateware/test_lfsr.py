"""Tests of the random number generators of sampling (D17.3.2).

The gateware agrees with the reference. The numbers are uniform, and the period of the state is 2**32 - 1.
"""

from collections.abc import Sequence
from math import sqrt
from random import Random
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spurtle.config import LFSR_ACCESS_RESET, LFSR_RESET
from spurtle.gateware.lfsr import LFSR
from spurtle_sim.model.sampling import access_number, draw, draw_access, random_byte, seed
from tests.support.gateware import Bench, boundary_integers, cycle
from tests.support.seeds import SEED

BITS = 32
PERIOD = (1 << BITS) - 1
PRIME_FACTORS = (3, 5, 17, 257, 65537)

# The component.


@pytest.fixture(scope="module", params=[False, True], ids=["draw", "late draw"])
def dut(request: pytest.FixtureRequest) -> LFSR:
    return LFSR(bits=8, draws=1, reset=LFSR_RESET, late_draw=request.param)


@pytest.fixture(scope="module")
def bench(dut: LFSR) -> Bench:
    return Bench(dut)


@pytest.fixture(scope="module", params=[(1, 1), (1, 2), (8, 1), (8, 2), (9, 2)], ids=str)
def accesses(request: pytest.FixtureRequest) -> tuple[Bench, LFSR, int]:
    """Return a generator for the choice of accesses: its bench, the component and the bits of a number.

    The parameters are the bits of a number, and the operations that can be selected in a cycle.
    """
    bits, draws = request.param
    dut = LFSR(bits=bits, draws=draws, reset=LFSR_ACCESS_RESET)
    return Bench(dut), dut, bits


def play(bench: Bench, dut: LFSR, steps: Sequence[tuple[bool, int | None]]) -> None:
    """Check each cycle from reset. A step says whether a number is used, and what software writes."""

    async def scenario(ctx: Any) -> None:
        state = LFSR_RESET
        for number, (used, written) in enumerate([*steps, (False, None)]):
            inputs = [(dut.draw, used), (dut.write, written is not None), (dut.wdata, written or 0)]
            outputs = await cycle(ctx, inputs, dut.state, dut.random[0])
            assert outputs == (state, random_byte(state)), f"cycle {number} of {steps}"
            if written is not None:
                state = seed(written)
            elif used:
                state = draw(state)

    bench.run(scenario)


steps = st.tuples(st.booleans(), st.none() | boundary_integers(BITS))


@settings(max_examples=50)
@given(st.lists(steps, max_size=40))
def test_like_the_reference(bench: Bench, dut: LFSR, steps: list[tuple[bool, int | None]]) -> None:
    play(bench, dut, steps)


def test_a_thousand_numbers_from_reset(bench: Bench, dut: LFSR) -> None:
    play(bench, dut, [(True, None)] * 1000)


def test_the_state_holds_while_no_number_is_used(bench: Bench, dut: LFSR) -> None:
    play(bench, dut, [(False, None)] * 10)


def test_zero_is_written_as_one(bench: Bench, dut: LFSR) -> None:
    play(bench, dut, [(False, 0), (False, None), (True, None), (True, 0), (True, None)])


def test_a_write_overrides_a_draw_in_the_same_cycle(bench: Bench, dut: LFSR) -> None:
    play(bench, dut, [(True, 0x8000_0000), (True, None), (True, None)])


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 2), st.none() | boundary_integers(BITS)), max_size=60))
def test_up_to_two_numbers_a_cycle(accesses: tuple[Bench, LFSR, int], steps: list[tuple[int, int | None]]) -> None:
    bench, dut, bits = accesses
    draws = len(dut.random)

    async def scenario(ctx: Any) -> None:
        state = LFSR_ACCESS_RESET
        for number, (used, written) in enumerate([*steps, (0, None)]):
            used = min(used, draws)
            inputs = [(dut.draw, used), (dut.write, written is not None), (dut.wdata, written or 0)]
            outputs = await cycle(ctx, inputs, dut.state, *dut.random)
            states = [state]
            for _ in range(draws):
                states.append(draw_access(states[-1], bits))
            expected = (state, *(access_number(later, bits) for later in states[:draws]))
            assert outputs == expected, f"cycle {number} of {steps}"
            state = states[used]
            if written is not None:
                state = seed(written)

    bench.run(scenario)


# Algebra over GF(2). A matrix is a tuple of its columns. A column is an integer, whose bit k is in row k.

Matrix = tuple[int, ...]
IDENTITY: Matrix = tuple(1 << k for k in range(BITS))
STEP: Matrix = tuple(draw(column) for column in IDENTITY)


def apply(matrix: Matrix, vector: int) -> int:
    """Return the product of a matrix and a vector."""
    result = 0
    for index, column in enumerate(matrix):
        if vector >> index & 1:
            result ^= column
    return result


def multiply(left: Matrix, right: Matrix) -> Matrix:
    return tuple(apply(left, column) for column in right)


def add(left: Matrix, right: Matrix) -> Matrix:
    return tuple(a ^ b for a, b in zip(left, right, strict=True))


def power(matrix: Matrix, exponent: int) -> Matrix:
    result = IDENTITY
    while exponent:
        if exponent & 1:
            result = multiply(result, matrix)
        matrix = multiply(matrix, matrix)
        exponent >>= 1
    return result


def rank(vectors: Sequence[int]) -> int:
    """Return the number of linearly independent vectors."""
    reduced: list[int] = []
    for vector in vectors:
        for other in reduced:
            vector = min(vector, vector ^ other)
        if vector:
            reduced.append(vector)
    return len(reduced)


def test_a_draw_is_linear() -> None:
    # Therefore `STEP`, which holds the results for single bits, determines the result for any state.
    assert draw(0) == 0
    random = Random(SEED)
    for _ in range(1000):
        state = random.getrandbits(BITS)
        assert draw(state) == apply(STEP, state), state


def test_the_period_of_every_state_is_maximal() -> None:
    """All states except zero are on one cycle of 2**32 - 1 states.

    The period of a state divides 2**32 - 1, because STEP**(2**32 - 1) = I. If it were shorter, it would divide
    (2**32 - 1) / p for a prime p, and that power of STEP would not change the state. That power minus I is invertible,
    so this is true only for zero.

    Over the period, the newest byte has each value 2**24 times, except zero, which it has 2**24 - 1 times, because the
    state zero does not occur.
    """
    rest = PERIOD
    for prime in PRIME_FACTORS:
        assert rest % prime == 0 and all(prime % divisor for divisor in range(2, int(sqrt(prime)) + 1))
        rest //= prime
    assert rest == 1

    assert power(STEP, PERIOD) == IDENTITY
    for prime in PRIME_FACTORS:
        assert rank(add(power(STEP, PERIOD // prime), IDENTITY)) == BITS, prime


def test_draws_of_single_bits_and_of_bytes_agree() -> None:
    """The second generator has the same sequence as the first, and therefore the same period.

    Numbers of nine bits repeat after a third of it: three is the greatest common divisor of nine and the period.
    """
    random = Random(SEED)
    for _ in range(1000):
        state = stepped = random.getrandbits(BITS)
        for _ in range(8):
            stepped = draw_access(stepped, 1)
        assert stepped == draw(state) == draw_access(state, 8)
        assert draw_access(state, 9) == draw_access(stepped, 1)


def test_the_state_is_the_last_four_numbers() -> None:
    """Therefore any four consecutive numbers occur once in the period, except four zeros."""
    state = LFSR_RESET
    numbers = [random_byte(state)]
    for _ in range(3):
        state = draw(state)
        numbers.append(random_byte(state))
    assert state == int.from_bytes(bytes(numbers), "big")


@pytest.mark.parametrize("lag", range(1, 65))
def test_pairs_of_numbers_are_uniform_over_the_period(lag: int) -> None:
    """The sixteen bits of two numbers at this distance are linearly independent functions of the state.

    Therefore each pair of values occurs 2**16 times in the period, and a pair of zeros once less.
    """
    later = power(STEP, lag)
    # Row k holds the state bits on which bit k of the later number depends. Bit k of the earlier number is state bit k.
    rows = [sum((later[index] >> bit & 1) << index for index in range(BITS)) for bit in range(8)]
    assert rank([*(1 << bit for bit in range(8)), *rows]) == 16


# Statistics. A part of the sequence, which is what a profile uses, is as irregular as true random numbers.

DRAWS = 1 << 16
LEVEL = 0.001
"""Probability that true random numbers fail a test: half of it for too much deviation, half for too little."""


def chi_square_limits(degrees: int) -> tuple[float, float]:
    """Return the quantiles of the chi-square distribution at LEVEL / 2 and 1 - LEVEL / 2.

    They are those of Wilson and Hilferty, who approximate its cube root by a normal distribution. With eight degrees of
    freedom the interval is 15 % and 1 % too wide at its two ends.
    """

    def quantile(probability: float) -> float:
        spread = 2 / (9 * degrees)
        return degrees * (1 - spread + NormalDist().inv_cdf(probability) * sqrt(spread)) ** 3

    return quantile(LEVEL / 2), quantile(1 - LEVEL / 2)


@pytest.fixture(scope="module", params=[LFSR_RESET, 1, 0x8000_0000, PERIOD], ids=hex)
def stretch(request: pytest.FixtureRequest) -> np.ndarray:
    """Return DRAWS numbers from a state on."""
    state = request.param
    numbers = []
    for _ in range(DRAWS):
        numbers.append(random_byte(state))
        state = draw(state)
    return np.array(numbers)


def test_numbers_are_uniform(stretch: np.ndarray) -> None:
    expected = DRAWS / 256
    statistic = ((np.bincount(stretch, minlength=256) - expected) ** 2 / expected).sum()
    least, most = chi_square_limits(255)
    assert least < statistic < most


def test_numbers_are_not_correlated(stretch: np.ndarray) -> None:
    # For independent numbers each autocorrelation times sqrt(DRAWS) is nearly normal (Box and Pierce).
    lags = range(1, 9)
    centered = stretch - 127.5
    variance = (256**2 - 1) / 12
    correlations = [(centered[lag:] * centered[:-lag]).mean() / variance for lag in lags]
    statistic = DRAWS * sum(correlation**2 for correlation in correlations)
    least, most = chi_square_limits(len(lags))
    assert least < statistic < most, correlations
