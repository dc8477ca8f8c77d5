"""Pictures of a report, as SVG: each explains something that a table does not."""

import io
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from spurtle.support.numerals import counted

from .columns import Array
from .levels import LEVELS
from .losses import nanoseconds
from .reading import KINDS, Profile
from .tables import ReportTable, shortened

__all__ = ["Picture", "pictures"]

_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text: smaller, and it can be searched
    "svg.hashsalt": "spurtle",  # the same file for the same profile
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
_SIZE = 8.0, 3.2  # inches
_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#999999", "#000000", "#f0e442")
"""Colors that color-blind readers can distinguish (Okabe and Ito)."""

_PAGE_BYTES = 4096
_TIMES, _ROWS = 200, 120  # most cells of the heat map
_CELL = 8  # samples for each column of the heat map, at least
_SLICES = 80  # of the timeline
_FUNCTIONS = 6  # of the timeline


class Picture(NamedTuple):
    """Picture.

    Members
    -------
    title : str
    text : str
        Text that says what the picture shows, for readers who do not see it.
    caption : str
        Text that says how to read it.
    svg : bytes
    """

    title: str
    text: str
    caption: str
    svg: bytes


def pictures(profile: Profile, functions: ReportTable) -> list[Picture]:
    """Return the pictures of a profile. Those without data are left out."""
    drawn = (_functions(functions), _latencies(profile), _timeline(profile), _heat_map(profile))
    return [picture for picture in drawn if picture is not None]


def _draw(title: str, text: str, caption: str, plot: Callable[[Any], None], height: float = _SIZE[1]) -> Picture:
    with matplotlib.rc_context(_STYLE):
        figure = Figure((_SIZE[0], height), layout="constrained")
        plot(figure.subplots())
        output = io.BytesIO()
        figure.savefig(output, format="svg", metadata={"Date": None})
    return Picture(title, text, caption, output.getvalue())


def _functions(table: ReportTable) -> Picture | None:
    rows = table.objects()[::-1]
    if not rows:
        return None
    exact = [row["exact"] for row in rows]

    def plot(axes: Any) -> None:
        places = np.arange(len(rows))
        shares = [100 * row["share"] for row in rows]
        margins = [100 * row["margin"] for row in rows]
        axes.barh(places, shares, 0.6, xerr=margins, color=_COLORS[0], label="sampled, with 95 % interval", capsize=2)
        if exact[0] is not None:
            values = [100 * value for value in exact]
            axes.plot(values, places, "D", color=_COLORS[1], label="exact", markersize=5)
        axes.set_yticks(places, [_short(row["name"]) for row in rows])
        axes.set_xlabel("share of operations, %")
        axes.legend(loc="lower right", frameon=False)

    first = rows[-1]
    known = "" if exact[0] is None else f", exactly {100 * first['exact']:.1f} %"
    text = (
        f"Bars of the shares of {counted(len(rows), 'function')}. The largest is {first['name']} with "
        f"{100 * first['share']:.1f} %{known}. The table of functions has the numbers."
    )
    caption = (
        "Bars: share of the sampled operations, with its interval of 95 % confidence. Diamonds: exact share, if it is "
        "known. These are shares of executed operations, not of time."
    )
    return _draw("Shares of functions", text, caption, plot, 0.9 + 0.28 * len(rows))


def _latencies(profile: Profile) -> Picture | None:
    loads = profile.kind == KINDS.index("load")
    groups = [(name, profile.columns.total[loads & (profile.level == n)]) for n, name in enumerate(LEVELS)]
    groups = [(name, values) for name, values in groups if len(values)]
    if not groups:
        return None
    largest = max(int(values.max()) for _, values in groups)

    def plot(axes: Any) -> None:
        edges = np.geomspace(1, max(largest, 2) + 1, 60)
        for (name, values), color in zip(groups, _COLORS, strict=False):
            label = f"{name}: {counted(len(values), 'load')}"
            axes.hist(values, edges, histtype="stepfilled", alpha=0.5, color=color, edgecolor=color, label=label)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        axes.set_xlabel("total latency, cycles")
        axes.set_ylabel("sampled loads")
        axes.legend(frameon=False)

    medians = ", ".join(f"{name} {counted(int(np.median(values)), 'cycle')}" for name, values in groups)
    caption = (
        "Number of loads by the cycles that they took, from dispatch to completion, and by the level of the memory "
        "system that served them."
    )
    text = f"Histogram of the total latencies. Medians: {medians}."
    return _draw("Latencies of loads by level", text, caption, plot)


def _timeline(profile: Profile) -> Picture | None:
    time = _relative_time(profile)
    if time is None:
        return None
    index, names = profile.functions
    top = np.argsort(-np.bincount(index, minlength=len(names)))[:_FUNCTIONS].tolist()
    edges = np.linspace(0, float(time.max()) or 1.0, _SLICES + 1)
    counts = [np.histogram(time[index == n], edges)[0] for n in top]
    total = np.maximum(np.histogram(time, edges)[0], 1)
    rest = total - np.sum(counts, axis=0)
    shares = [100 * each / total for each in (*counts, np.maximum(rest, 0))]

    def plot(axes: Any) -> None:
        labels = [*(_short(names[n]) for n in top), "others"]
        axes.stackplot(edges[:-1], shares, labels=labels, colors=[*_COLORS[: len(top)], "#dddddd"], step="post")
        _label_time(axes, profile)
        axes.set_ylabel("share of the samples, %")
        axes.set_ylim(0, 100)
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)

    shown = ", ".join(names[n] for n in top)
    text = f"Shares of the functions {shown} in {_SLICES} parts of the run."
    caption = "Which functions were executed when: height is the share of the sampled operations in a part of the run."
    return _draw("Functions over time", text, caption, plot)


def _heat_map(profile: Profile) -> Picture | None:
    time = _relative_time(profile)
    variable, names = profile.variables
    accesses = np.flatnonzero(variable >= 0)
    if time is None or not len(accesses):
        return None
    pages, row = np.unique(profile.columns.va[accesses] // _PAGE_BYTES, return_inverse=True)
    owner = np.zeros(len(pages), np.int64)
    owner[row] = variable[accesses]
    bins = min(len(pages), _ROWS), min(max(len(accesses) // _CELL, 1), _TIMES)

    def plot(axes: Any) -> None:
        end = float(time.max()) or 1.0
        extent = (0, end, 0, len(pages))
        counts, _, _ = np.histogram2d(row, time[accesses], bins, ((0, len(pages)), (0, end)))
        shown = np.ma.masked_equal(counts, 0)
        image = axes.imshow(
            shown, aspect="auto", origin="lower", extent=extent, cmap="viridis", interpolation="nearest"
        )
        axes.figure.colorbar(image, ax=axes, label="samples")
        borders = [0, *(np.flatnonzero(np.diff(owner)) + 1).tolist(), len(pages)]
        wide = [pair for pair in pairwise(borders) if pair[1] - pair[0] >= len(pages) / 16]
        axes.set_yticks([(low + high) / 2 for low, high in wide], [_short(names[owner[low]]) for low, _ in wide])
        _label_time(axes, profile)
        axes.set_ylabel("pages with accesses, by address")

    text = f"Heat map of {counted(len(accesses), 'data access')} to {counted(len(pages), 'page')} of 4 KiB over time."
    caption = (
        "Each cell is a part of memory and of the run; its color is the number of sampled accesses. Only pages with "
        "accesses are shown. A diagonal is a walk through memory."
    )
    return _draw("Data accesses by address and time", text, caption, plot, 4.0)


def _label_time(axes: Any, profile: Profile) -> None:
    known = profile.contents.sideband.time is not None
    axes.xaxis.set_major_formatter(EngFormatter(unit="s" if known else ""))
    axes.set_xlabel("time" if known else "time, ticks of the timestamps")


def _relative_time(profile: Profile) -> Array | None:
    """Return the time of each sample since the first one, or None without timestamps.

    It is in seconds, or if the file does not say how long a tick is, in ticks.
    """
    ticks = profile.columns.timestamp
    conversion = profile.contents.sideband.time
    if not ticks.any():
        return None
    time = ticks if conversion is None else nanoseconds(ticks, conversion)
    known = ticks > 0
    return np.where(known, time - time[known].min(), 0) * (1.0 if conversion is None else 1e-9)


def _short(name: str) -> str:
    # A dollar sign begins a formula in matplotlib.
    return shortened(name, 28).replace("$", r"\$")
