"""No bias (D17.3.1, D17.3.4): over loops of every length, the RTL selects each operation as often as any other.

What is selected does not depend on what the operations are. So one run says it for every loop: in a loop of L
operations, row r is operation r mod L.

RND = 0: the selections are 257 operations apart (INTERVAL = 1), and arithmetic says which operations of the loop they
are: all of them in turn, or one alone if L is a multiple of 257.

RND = 1: a selection is uniform modulo every L, but it is not independent of the one before unless L divides 256. What
the counts of the operations are then expected to vary by, follows from one function, λ(j): the mean of
exp(-2πi j b / L) over the 256 random steps b. Let N(j) be the discrete Fourier transform of the counts, over n
selections.

* Without FEAT_SPE_ERnd the selections are a random walk on the loop, with steps from 257 to 512. λ(j) are the
  eigenvalues of that Markov chain, and E|N(j)|² = n Re (1 + λ) / (1 - λ).
* With FEAT_SPE_ERnd each is a point of a grid of 257 plus 0 to 255: independent of the others, yet not identically
  distributed. If n is a multiple of L, the grid comes to each operation equally often, 257 being prime; the means of
  N(j) are zero and E|N(j)|² = n (1 - |λ|²). If L is 257, the grid stands still: the last operation before it can never
  be selected, as D17.3.4.3 has it, and the others are equally likely.

In both cases the N(j) of different j > 0 are uncorrelated (those of j and L - j are conjugates) and Gaussian for large
n, so that the sum of |N(j)|² / E|N(j)|² has the chi-square distribution with L - 1 degrees of freedom. Where λ is zero
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
"""Runs of a named configuration, whose compiled model other tests need as well."""

LEVEL = 0.01
"""Odds that correct RTL with perfect random numbers fails anywhere in this file."""
TESTS = len(RANDOM) * len(LANES) * (len(LENGTHS) + 2)
"""Of each run: the loops from two operations on, the lanes, the random steps and their mean."""
TAIL = LEVEL / TESTS / 2
"""Odds of each of the two ends of one test: 2.8e-6. Counts that are too even are as wrong as such that are too odd."""


def runs(modes: Sequence[IntervalMode], lanes: Sequence[int] = LANES) -> pytest.MarkDecorator:
    """Parametrise a test by runs. Those of named configurations are fast."""
    every = [*product(modes, lanes)]
    cases = tiers(fast=[run for run in every if run in NAMED], full=every)
    return pytest.mark.parametrize(("mode", "lanes"), cases, ids=lambda value: getattr(value, "title", value))


@cache
def selections(mode: IntervalMode, lanes: int) -> Selections:
    return run(mode, lanes)


def upper_tail(statistic: float, degrees: int) -> float:
    """Odds that chi-square is at least that large: for whole degrees of freedom, a finite sum."""
    half = statistic / 2
    first = degrees % 2 / 2
    terms = (first + index for index in range(degrees // 2))
    tail = sum(math.exp(term * math.log(half) - half - math.lgamma(term + 1)) for term in terms)
    return tail + (math.erfc(math.sqrt(half)) if degrees % 2 else 0.0)


def even(rows: NDArray[np.int64], mode: IntervalMode, length: int) -> float:
    """How likely correct selections are at least this uneven, over a loop of that length."""
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
    """How likely a multinomial sample is at least that far from its shares."""
    expected = counts.sum() * shares
    return upper_tail(float(((counts - expected) ** 2 / expected).sum()), len(counts) - 1)


def uniform(rows: NDArray[np.int64], mode: IntervalMode) -> float:
    """How likely uniform random steps are at least as uneven as those to these selections."""
    steps = rows + 1 - GRID * np.arange(1, len(rows) + 1) if mode.ernd else np.diff(rows, prepend=-1)
    counts = np.bincount(steps - mode.steps[0], minlength=len(mode.steps))
    return pearson(counts, np.full(len(mode.steps), 1 / len(mode.steps)))


def worst(rows: NDArray[np.int64], mode: IntervalMode) -> tuple[float, int]:
    """The odds of the loop that fits worst, and its length."""
    odds = {length: even(rows, mode, length) for length in LENGTHS[1:]}
    return min((min(tail, 1 - tail), length) for length, tail in odds.items())


@runs(RANDOM)
def test_loops_are_sampled_evenly(mode: IntervalMode, lanes: int) -> None:
    odds, length = worst(selections(mode, lanes).rows, mode)
    assert odds > TAIL, f"a loop of {length}, generator seeded with {seed(lanes):#x}: {odds:.2g}"


@runs(RANDOM, [lanes for lanes in LANES if lanes > 1])
def test_no_lane_is_favoured(mode: IntervalMode, lanes: int) -> None:
    # In the first half, cycles of 1 to `lanes` operations are equally likely, and so is each place in each kind of
    # cycle; in a full cycle the place is the lane. A selection and the next but one are at least 259 operations apart,
    # so that their cycles have nothing to do with each other. In the other half all cycles are full, and the lane is
    # that of the operation in a loop of so many: see above.
    _, places, passing = (member[: mode.samples // 2 : 2].astype(int) for member in selections(mode, lanes))
    kinds = passing * (passing - 1) // 2 + places
    count = lanes * (lanes + 1) // 2
    odds = pearson(np.bincount(kinds, minlength=count), np.full(count, 1 / count))
    assert min(odds, 1 - odds) > TAIL, f"generator seeded with {seed(lanes):#x}: {odds:.2g}"


@runs(RANDOM)
def test_the_random_numbers_are_uniform(mode: IntervalMode, lanes: int) -> None:
    odds = uniform(selections(mode, lanes).rows, mode)
    assert min(odds, 1 - odds) > TAIL, f"generator seeded with {seed(lanes):#x}: {odds:.2g}"


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
    """The mean interval is what it should be."""
    intervals = len(rows) - 1
    error = (rows[-1] - rows[0]) / intervals - expected_mean(mode, interval)
    if mode.rnd and not mode.ernd:
        # The mean of independent steps is Gaussian.
        deviation = np.std(mode.steps) / math.sqrt(intervals)
        assert math.erfc(abs(error) / deviation / math.sqrt(2)) / 2 > TAIL, f"{note}: off by {error}"
    else:
        # All that came between the first and the last selection cancels.
        assert abs(error) <= np.ptp(mode.steps) / intervals, f"{note}: off by {error}"


@pytest.mark.full
def test_the_figure_matches_the_rtl() -> None:
    text = picture(lambda mode: selections(mode, 8).rows)
    assert FILE.read_text() == text, "`python -m docs` writes it"


# What is above has to find a generator or a choice of the operation that is slightly wrong.


def ideal(mode: IntervalMode, steps: NDArray[np.int64]) -> NDArray[np.int64]:
    """The selections that random steps make, by D17.3.4."""
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
    assert uniform(ideal(mode, steps), mode) > TAIL
    assert uniform(ideal(mode, rare), mode) < TAIL


@pytest.mark.parametrize(
    ("statistic", "degrees", "tail"),
    [(3.841459, 1, 0.05), (5.991465, 2, 0.05), (24.99579, 15, 0.05), (135.8067, 100, 0.01)],
)
def test_chi_square(statistic: float, degrees: int, tail: float) -> None:
    assert upper_tail(statistic, degrees) == pytest.approx(tail, rel=1e-5)
