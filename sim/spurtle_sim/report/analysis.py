"""Tables of one profile: functions, lines, memory, branches."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from spurtle.arch import Event
from spurtle.support.numerals import counted

from .columns import Array, PacketSlot
from .levels import LEVELS
from .reading import KINDS, Profile
from .statistics import percentiles, rates, shares
from .tables import ReportTable, TableColumn, Unit

__all__ = [
    "LINE_BYTES",
    "branches",
    "cache_lines",
    "functions",
    "latencies",
    "memory_levels",
    "source_lines",
    "variables",
    "words_of",
]

LINE_BYTES = 64
"""Size of a cache line of every core with SPE."""

_WORD_BYTES = 8
_NAME = TableColumn("name", "function", Unit.TEXT)
_COUNTED = (
    TableColumn("samples", "samples", Unit.COUNT, "sampled operations"),
    TableColumn("share", "share %", Unit.PERCENT, "share of the samples, an estimate of the share of operations"),
    TableColumn("margin", "95 %", Unit.MARGIN, "half of the interval of 95 % confidence of the share"),
    TableColumn("exact", "exact %", Unit.PERCENT, "exact share of the executed operations, if the run knows it"),
    TableColumn("latency_share", "cycles %", Unit.PERCENT, "share of the sum of all total latencies"),
    TableColumn("refill", "refill %", Unit.PERCENT, "loads that missed the L1 data cache"),
    TableColumn("walk", "walk %", Unit.PERCENT, "accesses that walked the page tables"),
    TableColumn("mispredicted", "mispred %", Unit.PERCENT, "branches that were mispredicted"),
)
_LATENCIES = (
    TableColumn("total", "total", Unit.CYCLES, "total latency: cycles from dispatch to completion"),
    TableColumn("issue", "issue", Unit.CYCLES, "issue latency: cycles from dispatch to issue"),
    TableColumn("translation", "translation", Unit.CYCLES, "translation latency of accesses"),
)

_PERCENTILES = "Of the samples, 50 % have at most the latency p50, 90 % at most p90, and 99 % at most p99."


def functions(profile: Profile, limit: int | None = 12) -> ReportTable:
    """Return the functions with the most samples."""
    index, names = profile.functions
    return _counted(profile, index, names, limit, "functions", "Functions", by_line=False)


def source_lines(profile: Profile, limit: int | None = 12) -> ReportTable:
    """Return the source lines with the greatest sum of latencies, or instructions if the program has no lines."""
    index, names = profile.lines
    return _counted(profile, index, names, limit, "lines", "Lines by cycles", by_line=True)


def _counted(
    profile: Profile, index: Array, names: list[str], limit: int | None, key: str, title: str, *, by_line: bool
) -> ReportTable:
    count = len(names)
    found = shares(index, count)
    counts = np.bincount(index, minlength=count)
    cycles = np.bincount(index, profile.columns.total, minlength=count)
    exact = profile.exact_share(names, by_line=by_line)
    found_rates = [
        rates(index, count, profile.has_event(event), profile.may_have(event))
        for event in (Event.L1D_REFILL, Event.TLB_WALK, Event.MISPREDICTED)
    ]
    order = np.argsort(-(cycles if by_line else counts), kind="stable")[:limit].tolist()
    rows: list[Sequence[Any]] = [
        (
            int(counts[n]), float(found.share[n]), float((found.high[n] - found.low[n]) / 2),
            None if exact is None else float(exact[n]), float(cycles[n] / max(cycles.sum(), 1)),
            *(rate[n] for rate in found_rates), names[n],
        )
        for n in order
    ]  # fmt: skip
    name = TableColumn("name", "line" if by_line else "function", Unit.TEXT)
    return ReportTable(key, title, (*_COUNTED, name), rows, "" if found.bootstrap else _binomial_note(len(index)))


def _binomial_note(count: int) -> str:
    return (
        f"With {counted(count, 'sample')} the intervals are those of independent samples. They are too narrow if the "
        "samples are not independent: in phases of the program, or without jitter in a loop."
    )


def latencies(profile: Profile, table: ReportTable) -> ReportTable:
    """Return percentiles of the latencies of the functions or lines of another table."""
    index, names = profile.lines if table.key == "lines" else profile.functions
    number = {name: position for position, name in enumerate(names)}
    rows = [(*_split(profile, np.flatnonzero(index == number[row[-1]])), row[-1]) for row in table.rows]
    title = f"Latencies of these {table.key} in cycles: p50/p90/p99"
    note = "" if table.key == "lines" else _PERCENTILES
    return ReportTable(f"{table.key}_latencies", title, (*_LATENCIES, table.columns[-1]), [*rows], note)


def _split(profile: Profile, chosen: Array) -> tuple[Any, Any, Any]:
    """Return percentiles of total, issue and translation latency of some samples."""
    columns = profile.columns
    translated = chosen[columns.has(PacketSlot.TRANSLATION)[chosen]]
    return (
        percentiles(columns.total[chosen]),
        percentiles(columns.issue[chosen]),
        percentiles(columns.translation[translated]),
    )


def memory_levels(profile: Profile) -> ReportTable:
    """Return the levels of the memory system that served the loads."""
    loads = np.flatnonzero(profile.kind == KINDS.index("load"))
    level = profile.level[loads].astype(np.int64)
    found = shares(level, len(LEVELS))
    counts = np.bincount(level, minlength=len(LEVELS)).tolist()
    columns = (*_COUNTED[:3], *_LATENCIES, TableColumn("name", "level", Unit.TEXT))
    rows = [
        (
            count,
            float(found.share[n]),
            float(found.high[n] - found.low[n]) / 2,
            *_split(profile, loads[level == n]),
            name,
        )
        for n, (name, count) in enumerate(zip(LEVELS, counts, strict=True))
        if count
    ]
    return ReportTable("levels", "Loads by the level that served them", columns, [*rows])


def variables(profile: Profile, limit: int | None = 10) -> ReportTable:
    """Return the variables and memory regions with the greatest sum of latencies of their accesses."""
    index, names = profile.variables
    accesses = np.flatnonzero(index >= 0)
    columns = (
        TableColumn("samples", "accesses", Unit.COUNT, "sampled loads and stores"),
        TableColumn("refill", "refill %", Unit.PERCENT, "loads that missed the L1 data cache"),
        TableColumn("walk", "walk %", Unit.PERCENT, "accesses that walked the page tables"),
        TableColumn("lines", "lines", Unit.COUNT, "different cache lines that were sampled"),
        TableColumn("words", "words", Unit.TEXT, "different 8-byte words of a cache line in which accesses begin"),
        _LATENCIES[0],
        TableColumn("name", "variable", Unit.TEXT),
    )
    group = index[accesses]
    cycles = np.bincount(group, profile.columns.total[accesses], minlength=len(names))
    refill, walk = (
        rates(group, len(names), profile.has_event(event)[accesses], profile.may_have(event)[accesses])
        for event in (Event.L1D_REFILL, Event.TLB_WALK)
    )
    rows: list[Sequence[Any]] = []
    for n in np.argsort(-cycles, kind="stable")[:limit].tolist():
        chosen = accesses[group == n]
        if len(chosen):
            address = profile.columns.va[chosen]
            lines = len(np.unique(address // LINE_BYTES))
            words = f"{len(words_of(address))} of {LINE_BYTES // _WORD_BYTES}"
            total = percentiles(profile.columns.total[chosen])
            rows.append((len(chosen), refill[n], walk[n], lines, words, total, names[n]))
    return ReportTable("variables", "Memory by variable", columns, rows)


def words_of(addresses: Array) -> Array:
    """Return which 8-byte words of a cache line some accesses begin in."""
    return np.unique(addresses % LINE_BYTES // _WORD_BYTES)


def cache_lines(profile: Profile, limit: int = 8) -> ReportTable:
    """Return the cache lines with the most refills."""
    index, names = profile.variables
    refills = np.flatnonzero((index >= 0) & profile.has_event(Event.L1D_REFILL))
    number = profile.columns.va // LINE_BYTES
    found, first, counts = np.unique(number[refills], return_index=True, return_counts=True)
    rows: list[Sequence[Any]] = []
    accesses = np.flatnonzero(index >= 0)
    for n in np.argsort(-counts, kind="stable")[:limit].tolist():
        chosen = accesses[number[accesses] == found[n]]
        words = f"{len(words_of(profile.columns.va[chosen]))} of {LINE_BYTES // _WORD_BYTES}"
        name = f"{int(found[n]) * LINE_BYTES:#x} {names[index[refills[first[n]]]]}"
        rows.append((int(counts[n]), len(chosen), words, percentiles(profile.columns.total[chosen]), name))
    columns = (
        TableColumn("refills", "refills", Unit.COUNT, "sampled loads that missed the L1 data cache"),
        TableColumn("samples", "accesses", Unit.COUNT, "sampled loads and stores"),
        TableColumn("words", "words", Unit.TEXT, "different 8-byte words of the line in which accesses begin"),
        _LATENCIES[0],
        TableColumn("name", "cache line", Unit.TEXT),
    )
    return ReportTable("cache_lines", "Cache lines by refills", columns, rows)


def branches(profile: Profile, limit: int | None = 10) -> ReportTable:
    """Return the lines with the most mispredicted branches."""
    index, names = profile.lines
    chosen = np.flatnonzero(profile.kind == KINDS.index("branch"))
    group = index[chosen]
    counts = np.bincount(group, minlength=len(names))
    missed = np.bincount(group, profile.has_event(Event.MISPREDICTED)[chosen], minlength=len(names)).astype(int)
    not_taken = np.bincount(group, profile.has_event(Event.NOT_TAKEN)[chosen], minlength=len(names)).tolist()
    columns = (
        TableColumn("samples", "branches", Unit.COUNT, "sampled branches"),
        TableColumn("missed", "mispred", Unit.COUNT, "sampled branches that were mispredicted"),
        TableColumn("mispredicted", "mispred %", Unit.PERCENT, "share of the branches that were mispredicted"),
        TableColumn("taken", "taken %", Unit.PERCENT, "share of the branches that were taken"),
        TableColumn("name", "line", Unit.TEXT),
    )
    rows = [
        (int(counts[n]), int(missed[n]), float(missed[n] / counts[n]), 1 - not_taken[n] / int(counts[n]), names[n])
        for n in np.lexsort((-counts, -missed))[: min(limit or len(names), np.count_nonzero(counts))].tolist()
    ]
    return ReportTable("branches", "Branches by mispredictions", columns, [*rows])
