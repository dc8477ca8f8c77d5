"""Absence of bias (D17.3.1, D17.3.4): in loops of every length, the RTL selects all operations equally often.

The selections do not depend on the operations, so one run covers every loop: in a loop of L operations, row r is
operation r mod L.

RND = 0: the selections are 257 operations apart (INTERVAL = 1), so the selected operations of a loop are known: all of
them in turn, or a single one if L is a multiple of 257.

RND = 1: a selection is uniform modulo every L, but it depends on the previous selection unless L divides 256. The
expected variance of the counts of the operations follows from one function, λ(j): the mean of exp(-2πi j b / L) over
the 256 random steps b. Let N(j) be the discrete Fourier transform of the counts, over n selections.

* Without FEAT_SPE_ERnd the selections are a random walk on the loop, with steps from 257 to 512. λ(j) are the
  eigenvalues of that Markov chain, and E|N(j)|² = n Re (1 + λ) / (1 - λ).
* With FEAT_SPE_ERnd each selection is a point of a grid of 257 plus 0 to 255. Selections are independent, but not
  identically distributed. If n is a multiple of L, the grid reaches each operation equally often, because 257 is prime.
  The means of N(j) are then zero and E|N(j)|² = n (1 - |λ|²). If L is 257, each grid point is the same operation. The
  last operation before it can never be selected (D17.3.4.3), and the others are equally likely.

In both cases the N(j) of different j > 0 are uncorrelated (N(j) and N(L - j) are conjugates) and Gaussian for large n.
The sum of |N(j)|² / E|N(j)|² therefore has the chi-square distribution with L - 1 degrees of freedom. If λ is zero,
this is Pearson's test of the multinomial distribution.
"""

import math
from collections.abc import Sequence
from functools import cache
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from docs.intervals import FILE, MODES, IntervalMode, Selections, expected_mean, picture, run, seed, select
from spurtle.config import CONFIGS
from tests.support.seeds import SEED
from tests.support.tiers import tiers

LANES = (1, 4, 8)
LENGTHS = range(1, 301)
GRID = 257
RANDOM = [mode for mode in MODES if mode.rnd]
NAMED = [(mode, lanes) for mode, lanes in product(MODES, LANES) if (lanes, mode.ernd) in ((1, False), (8, True))]
"""Runs of a named configuration, whose compiled model other tests use too."""

LEVEL = 0.01
"""Probability that correct RTL with perfect random numbers fails a test of this file."""
TESTS = len(RANDOM) * len(LANES) * (len(LENGTHS) + 2)
"""Statistical tests: for each run, the loops of at least two operations, the lanes, the random steps and their mean."""
TAIL = LEVEL / TESTS / 2
"""Probability of each of the two tails of one test: 2.8e-6. Counts that are too even are as wrong as uneven counts."""


def runs(modes: Sequence[IntervalMode], lanes: Sequence[int] = LANES) -> pytest.MarkDecorator:
    """Parametrize a test by runs. Those of other configurations, each of which is compiled, are in the long tier."""
    every = [*product(modes, lanes)]
    cases = tiers(fast=[run for run in every if run in NAMED], long=every)
    return pytest.mark.parametrize(("mode", "lanes"), cases, ids=lambda value: getattr(value, "title", value))


@cache
def selections(mode: IntervalMode, lanes: int) -> Selections:
    return run(mode, lanes)


def upper_tail(statistic: float, degrees: int) -> float:
    """Return the probability of a chi-square of at least `statistic`: a finite sum for an integer `degrees`."""
    half = statistic / 2
    first = degrees % 2 / 2
    terms = (first + index for index in range(degrees // 2))
    tail = sum(math.exp(term * math.log(half) - half - math.lgamma(term + 1)) for term in terms)
    return tail + (math.erfc(math.sqrt(half)) if degrees % 2 else 0.0)


def evenness(rows: NDArray[np.int64], mode: IntervalMode, length: int) -> float:
    """Return the probability that correct selections are at least this uneven in a loop of `length` operations."""
    steps = np.array(mode.steps)
    if mode.ernd and length == GRID:
        counts = np.bincount(rows % length, minlength=length)
        if counts[GRID - 2]:
            return 0.0
        return pearson(np.delete(counts, GRID - 2), np.full(GRID - 1, 1 / (GRID - 1)))
    if mode.ernd:
        rows = rows[: len(rows) // length * length]
    transform = np.fft.fft(np.bincount(rows % length, minlength=length))[1:]
    factor = np.fft.fft(np.bincount(steps % length, minlength=length) / len(steps))[1:]
    variance = 1 - abs(factor) ** 2 if mode.ernd else ((1 + factor) / (1 - factor)).real
    return upper_tail(float((abs(transform) ** 2 / variance).sum()) / len(rows), length - 1)


def pearson(counts: NDArray[np.int64], shares: NDArray[np.float64]) -> float:
    """Return the probability that a multinomial sample is at least this far from its shares."""
    expected = counts.sum() * shares
    return upper_tail(float(((counts - expected) ** 2 / expected).sum()), len(counts) - 1)


def uniformity(rows: NDArray[np.int64], mode: IntervalMode) -> float:
    """Return the probability that uniform random steps are at least as uneven as the steps between the selections."""
    steps = rows + 1 - GRID * np.arange(1, len(rows) + 1) if mode.ernd else np.diff(rows, prepend=-1)
    counts = np.bincount(steps - mode.steps[0], minlength=len(mode.steps))
    return pearson(counts, np.full(len(mode.steps), 1 / len(mode.steps)))


def worst(rows: NDArray[np.int64], mode: IntervalMode) -> tuple[float, int]:
    """Return the smallest probability of all loops, and the length of its loop."""
    tails = {length: evenness(rows, mode, length) for length in LENGTHS[1:]}
    return min((min(tail, 1 - tail), length) for length, tail in tails.items())


@runs(RANDOM)
def test_loops_are_sampled_evenly(mode: IntervalMode, lanes: int) -> None:
    probability, length = worst(selections(mode, lanes).rows, mode)
    assert probability > TAIL, f"a loop of {length}, generator seeded with {seed(lanes):#x}: {probability:.2g}"


@runs(RANDOM, [lanes for lanes in LANES if lanes > 1])
def test_no_lane_is_favored(mode: IntervalMode, lanes: int) -> None:
    # In the first half, cycles of 1 to `lanes` operations are equally likely, and so is each position in a cycle of a
    # given size. In a full cycle the position is the lane. A selection and the second next one are at least 259
    # operations apart, so that their cycles are independent. In the second half all cycles are full, and the lane is
    # the operation in a loop of `lanes` operations, which test_loops_are_sampled_evenly covers.
    _, positions, passing = (member[: mode.samples // 2 : 2].astype(int) for member in selections(mode, lanes))
    kinds = passing * (passing - 1) // 2 + positions
    count = lanes * (lanes + 1) // 2
    probability = pearson(np.bincount(kinds, minlength=count), np.full(count, 1 / count))
    assert min(probability, 1 - probability) > TAIL, f"generator seeded with {seed(lanes):#x}: {probability:.2g}"


@runs(RANDOM)
def test_the_random_numbers_are_uniform(mode: IntervalMode, lanes: int) -> None:
    probability = uniformity(selections(mode, lanes).rows, mode)
    assert min(probability, 1 - probability) > TAIL, f"generator seeded with {seed(lanes):#x}: {probability:.2g}"


@runs(MODES[:1])
def test_intervals_without_random_numbers_are_exact(mode: IntervalMode, lanes: int) -> None:
    rows = selections(mode, lanes).rows
    assert rows.tolist() == [GRID * number - 1 for number in range(1, mode.samples + 1)]
    for length in LENGTHS:
        counts = np.bincount(rows % length, minlength=length)
        if length % GRID:
            assert counts.max() - counts.min() <= 1
        else:
            assert np.flatnonzero(counts).tolist() == [GRID - 1]


@runs(MODES)
def test_mean_interval(mode: IntervalMode, lanes: int) -> None:
    rows = selections(mode, lanes).rows
    check_mean(rows, mode, 1, f"generator seeded with {seed(lanes):#x}")


@pytest.mark.parametrize(("name", "rnd"), [("neoverse_n1", 0), ("neoverse_n1", 1), ("v1p4", 1)])
def test_mean_of_a_longer_interval(name: str, rnd: int) -> None:
    config = CONFIGS[name]
    (mode,) = (mode for mode in MODES if mode.rnd == rnd and (mode.ernd == config.ernd or not rnd))
    rows = select(config, rnd=rnd, samples=300, state=seed(0), interval=4).rows
    check_mean(rows, mode, 4, f"generator seeded with {seed(0):#x}")


def check_mean(rows: NDArray[np.int64], mode: IntervalMode, interval: int, note: str) -> None:
    """Check the mean interval."""
    intervals = len(rows) - 1
    error = (rows[-1] - rows[0]) / intervals - expected_mean(mode, interval)
    if mode.rnd and not mode.ernd:
        # The mean of independent steps is Gaussian.
        deviation = np.std(mode.steps) / math.sqrt(intervals)
        assert math.erfc(abs(error) / deviation / math.sqrt(2)) / 2 > TAIL, f"{note}: off by {error}"
    else:
        # The steps between the first and the last selection cancel.
        assert abs(error) <= np.ptp(mode.steps) / intervals, f"{note}: off by {error}"


@pytest.mark.full
def test_the_figure_matches_the_rtl() -> None:
    text = picture(lambda mode: selections(mode, 8).rows)
    assert FILE.read_text() == text, "`python -m docs` writes it"


# The tests above must detect a slightly wrong generator or a slightly wrong choice of the operation.


def ideal(mode: IntervalMode, steps: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the selections for random steps, by D17.3.4."""
    if mode.ernd:
        return GRID * np.arange(1, len(steps) + 1) - 1 + steps
    return np.cumsum(steps) - 1


def random_steps(mode: IntervalMode) -> NDArray[np.int64]:
    return np.random.default_rng(SEED).choice(np.array(mode.steps), mode.samples)


@pytest.mark.parametrize("mode", RANDOM, ids=lambda mode: mode.title)
def test_bias_is_detected(mode: IntervalMode) -> None:
    steps = random_steps(mode)
    rows = ideal(mode, steps)
    every = np.arange(len(rows))
    assert worst(rows, mode)[0] > TAIL
    faults = {
        "one in 20 moved to the first of eight": np.where(every % 20, rows, rows // 8 * 8),
        "one in 20 moved to the next even operation": np.where(every % 20, rows, rows + rows % 2),
        "random numbers without their lowest bit": ideal(mode, steps - (steps - mode.steps[0]) % 2),
        "each random number used twice": ideal(mode, steps[every // 2 * 2]),
    }
    for fault, selected in faults.items():
        assert worst(selected, mode)[0] < TAIL, fault


@pytest.mark.parametrize("mode", RANDOM, ids=lambda mode: mode.title)
def test_nonuniform_steps_are_detected(mode: IntervalMode) -> None:
    steps = random_steps(mode)
    rare = np.where((steps >= mode.steps[-2]) & (np.arange(len(steps)) % 10 > 0), mode.steps[0], steps)
    assert uniformity(ideal(mode, steps), mode) > TAIL
    assert uniformity(ideal(mode, rare), mode) < TAIL


@pytest.mark.parametrize(
    ("statistic", "degrees", "tail"),
    [(3.841459, 1, 0.05), (5.991465, 2, 0.05), (24.99579, 15, 0.05), (135.8067, 100, 0.01)],
)
def test_chi_square(statistic: float, degrees: int, tail: float) -> None:
    assert upper_tail(statistic, degrees) == pytest.approx(tail, rel=1e-5)
