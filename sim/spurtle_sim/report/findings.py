"""Findings of a report: problems of memory accesses and branches that cost many cycles, with their lines."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from spurtle.arch import Event

from .analysis import LINE_BYTES, words_of
from .columns import Array, PacketSlot
from .lines import SourceLine
from .reading import KINDS, Profile

__all__ = ["Finding", "findings"]

_WRONG_SHARE = 0.05  # smallest error of a share that is reported
_DEVIATIONS = 5  # smallest error in standard deviations of independent samples
_FEWEST = 15  # samples of a finding
_MISSES = 0.25  # smallest share of loads that miss
_CYCLES = 0.01  # smallest share of the misses of a line in all latencies
_MISPREDICTIONS = 0.15  # smallest share of branches that are mispredicted
_MISPREDICTED = 0.002  # smallest share of the mispredicted branches of a line in all operations: 2 of 1,000
_RESTART = 10.0  # cycles after a misprediction, which the latency of the branch does not contain
_WORDS = 2  # most words of a cache line that a wasteful structure uses
_MANY_LINES = 64  # fewest cache lines of a structure that does not fit
_SPACING = 4096  # smallest distance of addresses that share a set in L1 caches of every size
_WAYS = 4  # addresses that a set can hold, at least, in L1 caches of cores with SPE
_STRIDES = [1 << bit for bit in range(20, 11, -1)]  # distances that are searched, from a mebibyte down to _SPACING
_NEAR = 32  # part of a stride by which the distance of two accesses can differ from a multiple of it
_MOST = 0.75  # smallest share of the distances that are near a multiple; of random ones, a sixteenth


class Finding(NamedTuple):
    """Problem of a line.

    Members
    -------
    kind : str
        Name of the problem.
    place : str
        Function and line.
    text : str
        Sentences about the problem and its remedy.
    cost : str
        Size of the problem, in words.
    source : SourceLine or None
    """

    kind: str
    place: str
    text: str
    cost: str
    source: SourceLine | None

    def __str__(self) -> str:
        return f"{self.place}: {self.text}"

    def object(self) -> dict[str, Any]:
        """Return the finding for JSON."""
        source = None if self.source is None else {"file": self.source.file, "line": self.source.line}
        return {"kind": self.kind, "place": self.place, "text": self.text, "cost": self.cost, "source": source}


class _Group(NamedTuple):
    """Samples of a line with an event: the line, the samples, and the share of the event among all that can have it."""

    number: int
    samples: Array
    rate: float


def findings(profile: Profile) -> list[Finding]:
    """Return the problems, the most expensive first."""
    found = [*_memory(profile), *_branches(profile)]
    return [*_aliasing(profile), *(finding for _, finding in sorted(found, key=lambda pair: -pair[0]))]


def _aliasing(profile: Profile) -> Iterator[Finding]:
    """Yield a finding if the samples hit only some instructions of a loop, which the exact counts show."""
    index, names = profile.lines
    exact = None if profile.jitter else profile.exact_share(names, by_line=True)
    if exact is None:
        return
    share = np.bincount(index, minlength=len(names)) / len(index)
    wrong = int(np.abs(share - exact).argmax())
    deviation = np.sqrt(exact[wrong] * (1 - exact[wrong]) / len(index))
    if abs(share[wrong] - exact[wrong]) > max(_WRONG_SHARE, _DEVIATIONS * deviation):
        text = (
            f"its share of the samples is {100 * share[wrong]:.1f} %, and its exact share is "
            f"{100 * exact[wrong]:.1f} %. Samples are in step with a loop: use jitter or another interval."
        )
        cost = f"wrong by {100 * abs(share[wrong] - exact[wrong]):.1f} % of the operations"
        yield _finding(profile, wrong, "Samples in step with a loop", text, cost)


def _groups(profile: Profile, chosen: Array, event: Array, smallest: float) -> Iterator[_Group]:
    """Yield the lines of the chosen samples in which an event is frequent."""
    index, _ = profile.lines
    counts, hits = np.bincount(index[chosen]), np.bincount(index[chosen & event], minlength=int(index.max()) + 1)
    for number in np.flatnonzero(hits >= _FEWEST).tolist():
        rate = hits[number] / counts[number]
        if rate >= smallest:
            yield _Group(number, np.flatnonzero(chosen & event & (index == number)), float(rate))


def _memory(profile: Profile) -> Iterator[tuple[float, Finding]]:
    columns = profile.columns
    loads = profile.has_event(Event.L1D_ACCESS) & columns.has(PacketSlot.VA)
    index, _ = profile.lines
    variable, variables = profile.variables
    cycles = float(columns.total.sum(dtype=np.int64))
    for group in _groups(profile, loads, profile.has_event(Event.L1D_REFILL), _MISSES):
        cost = float(columns.total[group.samples].sum(dtype=np.int64))
        if cost < _CYCLES * cycles:
            continue
        owner = variables[int(np.bincount(variable[group.samples]).argmax())]
        kind, text = _misses(columns.va[group.samples], owner, jitter=profile.jitter)
        begin = f"{100 * group.rate:.0f} % of its loads miss the L1 data cache"
        line = float(columns.total[index == group.number].sum(dtype=np.int64))
        share = f"{100 * line / cycles:.0f} % of the cycles of all latencies"
        yield cost, _finding(profile, group.number, kind, f"{begin}{text}", share)


def _misses(address: Array, owner: str, *, jitter: bool) -> tuple[str, str]:
    """Return the kind of a problem of loads that miss, and the end of the sentence about it."""
    lines = np.unique(address // LINE_BYTES * LINE_BYTES)
    words = words_of(address)
    if len(lines) > _WAYS and (spacing := _spacing(lines)) >= _SPACING:
        return "Stride that thrashes a cache set", (
            f". They use {len(lines)} cache lines of {owner}. The addresses differ by multiples of "
            f"{spacing:,} bytes, so they share a set of the cache: change the stride, by padding for example."
        )
    # Without jitter, samples of a loop over consecutive addresses can have this distance.
    if jitter and (stride := _stride(address)):
        return "Large stride", (
            f". Consecutive accesses to {owner} are about a multiple of {stride:,} bytes apart, so they use a new "
            "cache line each time, and few sets of the cache: access memory in the order of its addresses, by "
            "exchanging loops for example."
        )
    if len(words) <= _WORDS and len(lines) >= _MANY_LINES:
        return "Wasted cache lines", (
            f". They use {len(words)} of the 8 words of each cache line of {owner}: the rest is wasted. "
            "Store the members that are used together next to each other."
        )
    return "Cache misses", f", mostly in {owner}."


def _branches(profile: Profile) -> Iterator[tuple[float, Finding]]:
    branches = profile.kind == KINDS.index("branch")
    for group in _groups(profile, branches, profile.has_event(Event.MISPREDICTED), _MISPREDICTIONS):
        share = len(group.samples) / len(profile)
        if share < _MISPREDICTED:
            continue
        text = (
            f"{100 * group.rate:.0f} % of its branches are mispredicted. Their direction is hard to "
            "predict: replace the branch by a conditional select, or sort the data."
        )
        cost = f"{1000 * share:.0f} mispredictions in 1,000 operations"
        yield _RESTART * len(group.samples), _finding(profile, group.number, "Unpredictable branch", text, cost)


def _finding(profile: Profile, line: int, kind: str, text: str, cost: str) -> Finding:
    """Return a finding about a line of `Profile.lines`."""
    name = profile.lines[1][line]
    return Finding(kind, name, text, cost, next(place.source for place in profile.places if place.line == name))


def _spacing(lines: Array) -> int:
    """Return the largest power of two that divides all differences of the addresses."""
    differences = int(np.bitwise_or.reduce(lines ^ lines[0])) if len(lines) else 0
    return differences & -differences


def _stride(address: Array) -> int:
    """Return the largest power of two near multiples of which are most distances of consecutive accesses, or 0."""
    distances = np.abs(np.diff(address.astype(np.int64)))
    distances = distances[distances > 0]
    for stride in _STRIDES:
        residues = distances % stride
        near = np.minimum(residues, stride - residues) <= stride // _NEAR
        if len(distances) >= _FEWEST and np.mean(near & (distances > stride // 2)) >= _MOST:
            return stride
    return 0
