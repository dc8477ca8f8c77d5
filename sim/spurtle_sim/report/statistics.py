"""Statistics of groups of samples: shares with confidence intervals, rates, and percentiles of latencies."""

from typing import NamedTuple

import numpy as np

from .columns import Array

__all__ = ["FEW", "Percentiles", "Shares", "difference", "percentiles", "rates", "shares"]

FEW = 200
"""Fewest samples for which blocks are resampled."""

_BLOCKS = 100
_RESAMPLES = 1000
_PART = 1000  # groups that are resampled together, which bounds the memory
_Z = 1.959964  # 97.5 % quantile of the normal distribution


class Percentiles(NamedTuple):
    """Percentiles of a latency in cycles."""

    p50: int
    p90: int
    p99: int

    def __str__(self) -> str:
        return f"{self.p50}/{self.p90}/{self.p99}"


class Shares(NamedTuple):
    """Shares of groups of samples.

    Members
    -------
    share, low, high : array
        Share of each group, and its interval of 95 % confidence.
    bootstrap : bool
        Whether the interval is from resampled blocks of consecutive samples. Otherwise it is the binomial one.
    """

    share: Array
    low: Array
    high: Array
    bootstrap: bool


def percentiles(values: Array) -> Percentiles | None:
    """Return percentiles of some latencies, or None if there are none."""
    if not len(values):
        return None
    return Percentiles(*(int(each) for each in np.percentile(values, (50, 90, 99), method="inverted_cdf")))


def shares(group: Array, count: int) -> Shares:
    """Return the shares of `count` groups. `group` has the number of the group of each sample, in order of time.

    Consecutive samples are not independent: a program has phases. Blocks of consecutive samples are resampled, which
    keeps the dependence within a block. Fewer samples than FEW get the interval of Wilson for independent samples.
    """
    total = len(group)
    counts = np.bincount(group, minlength=count)[:count]
    share = counts / max(total, 1)
    if total < FEW:
        return Shares(share, *_wilson(share, max(total, 1)), bootstrap=False)
    low, high = np.concatenate(
        [
            np.percentile(_resampled(group, count, part), (2.5, 97.5), axis=0)
            for part in (slice(first, first + _PART) for first in range(0, count, _PART))
        ],
        axis=1,
    )
    return Shares(share, low, high, bootstrap=True)


def rates(index: Array, count: int, event: Array, among: Array) -> list[float | None]:
    """Return the share of samples with an event among some samples, for each group. None without such samples."""
    all_ = np.bincount(index[among], minlength=count)
    hits = np.bincount(index[among & event], minlength=count)
    return [hit / all_of if all_of else None for hit, all_of in zip(hits.tolist(), all_.tolist(), strict=True)]


def difference(first: Array, second: Array, count: int) -> tuple[Array, Array, Array]:
    """Return the differences of the shares of groups in two profiles, second minus first, and their intervals."""
    one, two = shares(first, count), shares(second, count)
    delta = two.share - one.share
    if one.bootstrap and two.bootstrap:
        parts = [slice(start, start + _PART) for start in range(0, count, _PART)]
        resampled = (_resampled(second, count, part, seed=1) - _resampled(first, count, part) for part in parts)
        low, high = np.concatenate([np.percentile(each, (2.5, 97.5), axis=0) for each in resampled], axis=1)
        return delta, low, high
    below = np.hypot(two.share - two.low, one.high - one.share)
    above = np.hypot(two.high - two.share, one.share - one.low)
    return delta, delta - below, delta + above


def _resampled(group: Array, count: int, part: slice, seed: int = 0) -> Array:
    """Return shares of a part of the groups, one row for each resampling of the blocks."""
    total = len(group)
    block = np.arange(total) * _BLOCKS // total
    table = np.bincount(block * count + group, minlength=_BLOCKS * count).reshape(_BLOCKS, count)
    # The same seed for the same report. Two profiles that are compared need different ones.
    random = np.random.default_rng(seed)
    # The products are integers below 2^53, so they are exact, and numpy multiplies matrices of floats faster.
    weights = random.multinomial(_BLOCKS, np.full(_BLOCKS, 1 / _BLOCKS), _RESAMPLES).astype(float)
    table = table.astype(float)
    return weights @ table[:, part] / (weights @ table.sum(axis=1))[:, None]


def _wilson(share: Array, total: int) -> tuple[Array, Array]:
    center = (share + _Z**2 / (2 * total)) / (1 + _Z**2 / total)
    half = _Z * np.sqrt(share * (1 - share) / total + _Z**2 / (4 * total**2)) / (1 + _Z**2 / total)
    return center - half, center + half
