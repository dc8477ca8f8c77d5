"""Findings of a report: sentences about memory accesses and branches that cost many cycles, with their lines."""

from collections.abc import Iterator

import numpy as np

from spurtle.arch import Event

from .analysis import LINE_BYTES, words_of
from .columns import Array, PacketSlot
from .reading import KINDS, Profile

__all__ = ["findings"]

_WRONG_SHARE = 0.05  # smallest error of a share that is reported
_DEVIATIONS = 5  # smallest error in standard deviations of independent samples
_FEWEST = 15  # samples of a finding
_MISSES = 0.25  # smallest share of loads that miss
_MISPREDICTIONS = 0.15  # smallest share of branches that are mispredicted
_WORDS = 2  # most words of a cache line that a wasteful structure uses
_MANY_LINES = 64  # fewest cache lines of a structure that does not fit
_SPACING = 4096  # smallest distance of addresses that share a set in L1 caches of every size
_WAYS = 4  # addresses that a set can hold, at least, in L1 caches of cores with SPE


def findings(profile: Profile) -> list[str]:
    """Return sentences, the most expensive first."""
    index, names = profile.lines
    found = [*_memory(profile, index, names), *_branches(profile, index, names)]
    ordered = [sentence for _, sentence in sorted(found, key=lambda pair: -pair[0])]
    return [*_aliasing(profile, index, names), *ordered]


def _aliasing(profile: Profile, index: Array, names: list[str]) -> Iterator[str]:
    """Yield a sentence if the samples hit only some instructions of a loop, which the exact counts show."""
    exact = None if profile.jitter else profile.exact_share(names, by_line=True)
    if exact is None:
        return
    share = np.bincount(index, minlength=len(names)) / len(index)
    wrong = int(np.abs(share - exact).argmax())
    deviation = np.sqrt(exact[wrong] * (1 - exact[wrong]) / len(index))
    if abs(share[wrong] - exact[wrong]) > max(_WRONG_SHARE, _DEVIATIONS * deviation):
        yield (
            f"{names[wrong]}: its share of the samples is {100 * share[wrong]:.1f} %, and its exact share is "
            f"{100 * exact[wrong]:.1f} %. Samples are in step with a loop: use jitter or another interval."
        )


def _candidates(index: Array, chosen: Array, event: Array, smallest: float) -> Iterator[tuple[int, Array, float]]:
    """Yield the groups of the chosen samples in which an event is frequent: group, samples with the event, rate."""
    counts, hits = np.bincount(index[chosen]), np.bincount(index[chosen & event], minlength=int(index.max()) + 1)
    for group in np.flatnonzero(hits >= _FEWEST).tolist():
        rate = hits[group] / counts[group]
        if rate >= smallest:
            yield group, np.flatnonzero(chosen & event & (index == group)), float(rate)


def _memory(profile: Profile, index: Array, names: list[str]) -> Iterator[tuple[float, str]]:
    columns = profile.columns
    loads = profile.has_event(Event.L1D_ACCESS) & columns.has(PacketSlot.VA)
    variable, variables = profile.variables
    for group, samples, rate in _candidates(index, loads, profile.has_event(Event.L1D_REFILL), _MISSES):
        address = columns.va[samples]
        lines = np.unique(address // LINE_BYTES * LINE_BYTES)
        owner = variables[int(np.bincount(variable[samples]).argmax())]
        begin = f"{names[group]}: {100 * rate:.0f} % of its loads miss the L1 data cache"
        cost = float(columns.total[samples].sum())
        spacing = _spacing(lines)
        words = words_of(address)
        if len(lines) > _WAYS and spacing >= _SPACING:
            yield (
                cost,
                (
                    f"{begin}. They use {len(lines)} cache lines of {owner}. The addresses differ by multiples of "
                    f"{spacing:,} bytes, so they share a set of the cache: change the stride, by padding for example."
                ),
            )
        elif len(words) <= _WORDS and len(lines) >= _MANY_LINES:
            yield (
                cost,
                (
                    f"{begin}. They use {len(words)} of the 8 words of each cache line of {owner}: the rest is wasted. "
                    "Store the members that are used together next to each other."
                ),
            )
        else:
            yield cost, f"{begin}, mostly in {owner}."


def _branches(profile: Profile, index: Array, names: list[str]) -> Iterator[tuple[float, str]]:
    branches = profile.kind == KINDS.index("branch")
    event = profile.has_event(Event.MISPREDICTED)
    for group, samples, rate in _candidates(index, branches, event, _MISPREDICTIONS):
        cost = 10.0 * len(samples)  # cycles of a restart, which the latency of the branch does not contain
        yield (
            cost,
            (
                f"{names[group]}: {100 * rate:.0f} % of its branches are mispredicted. Their direction is hard to "
                "predict: replace the branch by a conditional select, or sort the data."
            ),
        )


def _spacing(lines: Array) -> int:
    """Return the largest power of two that divides all differences of the addresses."""
    differences = int(np.bitwise_or.reduce(lines ^ lines[0])) if len(lines) else 0
    return differences & -differences
