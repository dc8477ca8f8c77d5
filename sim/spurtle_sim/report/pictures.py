"""Pictures of a report, as SVG: each explains something that a table does not."""

import io
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from .columns import Array
from .levels import LEVELS
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
    """Picture with its title, and a text that says what it shows, for readers who do not see it.

    Members
    -------
    title, text : str
    svg : bytes
    """

    title: str
    text: str
    svg: bytes


def pictures(profile: Profile, functions: ReportTable) -> list[Picture]:
    """Return the pictures of a profile. Those without data are left out."""
    drawn = (_functions(functions), _latencies(profile), _timeline(profile), _heat_map(profile))
    return [picture for picture in drawn if picture is not None]


def _draw(title: str, text: str, plot: Callable[[Any], None], height: float = _SIZE[1]) -> Picture:
    with matplotlib.rc_context(_STYLE):
        figure = Figure((_SIZE[0], height), layout="constrained")
        plot(figure.subplots())
        output = io.BytesIO()
        figure.savefig(output, format="svg", metadata={"Date": None})
    return Picture(title, text, output.getvalue())


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
        f"Bars of the shares of {len(rows)} functions. The largest is {first['name']} with "
        f"{100 * first['share']:.1f} %{known}. The table of functions has the numbers."
    )
    return _draw("Shares of functions", text, plot, 0.9 + 0.28 * len(rows))


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
            label = f"{name}: {len(values):,} loads"
            axes.hist(values, edges, histtype="stepfilled", alpha=0.5, color=color, edgecolor=color, label=label)
        axes.set_xscale("log")
        axes.set_xlabel("total latency, cycles")
        axes.set_ylabel("sampled loads")
        axes.legend(frameon=False)

    medians = ", ".join(f"{name} {int(np.median(values))} cycles" for name, values in groups)
    return _draw("Latencies of loads by level", f"Histogram of the total latencies. Medians: {medians}.", plot)


def _timeline(profile: Profile) -> Picture | None:
    time = _relative_time(profile)
    if time is None:
        return None
    index, names = profile.functions
    top = np.argsort(-np.bincount(index, minlength=len(names)))[:_FUNCTIONS].tolist()
    edges = np.linspace(0, max(int(time.max()), 1), _SLICES + 1)
    counts = [np.histogram(time[index == n], edges)[0] for n in top]
    total = np.maximum(np.histogram(time, edges)[0], 1)
    rest = total - np.sum(counts, axis=0)
    shares = [100 * each / total for each in (*counts, np.maximum(rest, 0))]

    def plot(axes: Any) -> None:
        labels = [*(_short(names[n]) for n in top), "others"]
        axes.stackplot(edges[:-1], shares, labels=labels, colors=[*_COLORS[: len(top)], "#dddddd"], step="post")
        axes.set_xlabel("time, ticks of the timestamps")
        axes.set_ylabel("share of the samples, %")
        axes.set_ylim(0, 100)
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)

    shown = ", ".join(names[n] for n in top)
    return _draw("Functions over time", f"Shares of the functions {shown} in {_SLICES} parts of the run.", plot)


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
        extent = (0, int(time.max()), 0, len(pages))
        counts, _, _ = np.histogram2d(row, time[accesses], bins, ((0, len(pages)), (0, max(int(time.max()), 1))))
        shown = np.ma.masked_equal(counts, 0)
        image = axes.imshow(
            shown, aspect="auto", origin="lower", extent=extent, cmap="viridis", interpolation="nearest"
        )
        axes.figure.colorbar(image, ax=axes, label="samples")
        borders = [0, *(np.flatnonzero(np.diff(owner)) + 1).tolist(), len(pages)]
        wide = [pair for pair in pairwise(borders) if pair[1] - pair[0] >= len(pages) / 16]
        axes.set_yticks([(low + high) / 2 for low, high in wide], [_short(names[owner[low]]) for low, _ in wide])
        axes.set_xlabel("time, ticks of the timestamps")
        axes.set_ylabel("pages with accesses, by address")

    text = f"Heat map of {len(accesses):,} data accesses to {len(pages):,} pages of 4 KiB over time."
    return _draw("Data accesses by address and time", text, plot, 4.0)


def _relative_time(profile: Profile) -> Array | None:
    """Return the time of each sample since the first one, or None without timestamps."""
    time = profile.columns.timestamp
    return None if not time.any() else (time - time[time > 0].min()) * (time > 0)


def _short(name: str) -> str:
    # A dollar sign begins a formula in matplotlib.
    return shortened(name, 28).replace("$", r"\$")
