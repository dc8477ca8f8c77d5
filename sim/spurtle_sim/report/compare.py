"""Comparison of two profiles: shares and latencies of functions and lines side by side, with significance."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from spurtle.arch import Event

from .columns import Array
from .reading import Profile
from .statistics import difference, rates
from .summary import ReportContents, build_report
from .tables import ReportTable, TableColumn, Unit

__all__ = ["build_comparison"]

_NOTE = (
    "A change is significant if its interval of 95 % confidence does not contain 0. Of 20 rows without a change, one "
    "is significant by chance. Shares are of operations: if one function gets more, all others get less."
)

_CHANGES = (
    TableColumn("share_a", "A %", Unit.PERCENT, "share of the samples of A"),
    TableColumn("share_b", "B %", Unit.PERCENT, "share of the samples of B"),
    TableColumn("change", "change", Unit.CHANGE, "share of B minus share of A"),
    TableColumn("margin", "95 %", Unit.MARGIN, "half of the interval of 95 % confidence of the change"),
    TableColumn("significant", "significant", Unit.TEXT, "whether the interval does not contain 0"),
    TableColumn("cycles_a", "cycles A", Unit.TEXT, "mean total latency in A"),
    TableColumn("cycles_b", "cycles B", Unit.TEXT, "mean total latency in B"),
)
_RATES = (
    TableColumn("refill_a", "refill % A", Unit.PERCENT, "loads of A that missed the L1 data cache"),
    TableColumn("refill_b", "refill % B", Unit.PERCENT, "loads of B that missed the L1 data cache"),
    TableColumn("mispredicted_a", "mispred % A", Unit.PERCENT, "branches of A that were mispredicted"),
    TableColumn("mispredicted_b", "mispred % B", Unit.PERCENT, "branches of B that were mispredicted"),
)


def build_comparison(first: Profile, second: Profile, *, limit: int | None = 15) -> ReportContents:
    """Return a report on the differences of two profiles. Functions and lines are matched by their names."""
    return ReportContents(
        f"A: {first.path}, B: {second.path}",
        [
            f"{letter}: {sentence}"
            for letter, profile in (("A", first), ("B", second))
            for sentence in build_report(profile, limit=1).recording
        ],
        [],
        [
            *_compared("functions", "Functions by change", (first, second), (first.functions, second.functions), limit),
            *_compared("lines", "Lines by change", (first, second), (first.lines, second.lines), limit),
        ],
    )


def _compared(
    key: str,
    title: str,
    profiles: tuple[Profile, Profile],
    groups: tuple[tuple[Array, list[str]], tuple[Array, list[str]]],
    limit: int | None,
) -> Iterator[ReportTable]:
    """Yield the changes of functions or lines, and their rates of misses and mispredictions."""
    names = list(dict.fromkeys([*groups[0][1], *groups[1][1]]))
    number = {name: index for index, name in enumerate(names)}
    indices = [np.array([number[name] for name in own], np.intp)[index] for index, own in groups]
    delta, low, high = difference(indices[0], indices[1], len(names))
    shares = [np.bincount(index, minlength=len(names)) / len(index) for index in indices]
    cycles = [
        _means(profile.columns.total, index, len(names)) for profile, index in zip(profiles, indices, strict=True)
    ]
    misses = [_rates(profile, index, len(names)) for profile, index in zip(profiles, indices, strict=True)]
    order = np.lexsort((-shares[0], -np.abs(delta)))[:limit].tolist()
    rows: list[Sequence[Any]] = [
        (
            *(float(share[n]) for share in shares), float(delta[n]), float((high[n] - low[n]) / 2),
            "yes" if low[n] > 0 or high[n] < 0 else "no",
            *(mean[n] for mean in cycles), names[n],
        )
        for n in order
    ]  # fmt: skip
    name = TableColumn("name", "line" if key == "lines" else "function", Unit.TEXT)
    rates_of = [(*(pair[kind][n] for kind in range(2) for pair in misses), names[n]) for n in order]
    yield ReportTable(key, title, (*_CHANGES, name), rows, _NOTE if key == "functions" else "")
    yield ReportTable(f"{key}_rates", f"Rates of these {key}", (*_RATES, name), [*rates_of])


def _means(values: Array, index: Array, count: int) -> list[float | None]:
    """Return the mean of each group, in tenths. None for groups without samples."""
    sums, counts = np.bincount(index, values, minlength=count), np.bincount(index, minlength=count)
    return [round(total / n, 1) if n else None for total, n in zip(sums.tolist(), counts.tolist(), strict=True)]


def _rates(profile: Profile, index: Array, count: int) -> tuple[list[float | None], list[float | None]]:
    """Return the shares of loads that missed and of branches that were mispredicted, for each group."""
    refill, mispredicted = (
        rates(index, count, profile.has_event(event), profile.may_have(event))
        for event in (Event.L1D_REFILL, Event.MISPREDICTED)
    )
    return refill, mispredicted
