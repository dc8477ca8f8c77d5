"""Figure of the sample intervals (D17.3.4): `docs/explanation/intervals.svg`, measured on the compiled SPU."""

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import configurations
from spurtle.arch import (
    IMP_PMSRNDR_EL1,
    PMBLIMITR_EL1,
    PMBPTR_EL1,
    PMSCR_EL1,
    PMSFCR_EL1,
    PMSICR_EL1,
    PMSIRR_EL1,
    PMSLATFR_EL1,
)
from spurtle.config import CONFIGS, SPUConfig
from spurtle_sim.cosim.spu import CompiledSPU
from spurtle_sim.trace.dtypes import TIMED_OPERATION

from .figure import figure

__all__ = [
    "FILE",
    "MODES",
    "IntervalMode",
    "Selections",
    "current",
    "expected_mean",
    "picture",
    "run",
    "seed",
    "select",
]

FILE = Path(__file__).parent / "explanation" / "intervals.svg"
_BASE, _SIZE = 0x1_0000, 0x1000
_CYCLES = 1 << 15
"""Cycles in one batch."""


class IntervalMode(NamedTuple):
    """One of the three modes of D17.3.4.

    Members
    -------
    title : str
        Title of its panel.
    ernd : bool
        Whether FEAT_SPE_ERnd is implemented.
    rnd : int
        PMSIRR_EL1.RND.
    steps : range
        Possible intervals with INTERVAL = 1; with FEAT_SPE_ERnd, random offsets from a grid with step 257.
    samples : int
        Number of selections that are measured.
    """

    title: str
    ernd: bool
    rnd: int
    steps: range
    samples: int


MODES = (
    IntervalMode("RND = 0", ernd=False, rnd=0, steps=range(257, 258), samples=600),
    IntervalMode("RND = 1", ernd=False, rnd=1, steps=range(257, 513), samples=20_000),
    IntervalMode("RND = 1, FEAT_SPE_ERnd", ernd=True, rnd=1, steps=range(256), samples=20_000),
)


class Selections(NamedTuple):
    """Selected operations of a run.

    Members
    -------
    rows : NDArray
        Numbers of the operations in program order, from 0.
    positions, passing : NDArray
        Position of each among the operations that pass in the same cycle, from 0; the number of those operations.
    """

    rows: NDArray[np.int64]
    positions: NDArray[np.uint8]
    passing: NDArray[np.uint8]


def run(mode: IntervalMode, lanes: int) -> Selections:
    """Return the selections of the measured run with that number of lanes."""
    return select(_configuration(mode, lanes), rnd=mode.rnd, samples=mode.samples, state=seed(lanes))


def seed(lanes: int) -> int:
    """Return the seed of the random number generator, which is different for each number of lanes."""
    return 0x5EED_0000 + lanes


def _configuration(mode: IntervalMode, lanes: int) -> SPUConfig:
    """Return a named configuration, or one with enough slots for operations that finish at once."""
    for config in CONFIGS.values():
        if (config.ops_per_cycle, config.ernd) == (lanes, mode.ernd):
            return config
    return configurations.lanes(lanes, slots=2 if mode.ernd else 1, ernd=mode.ernd)


def select(config: SPUConfig, *, rnd: int, samples: int, state: int, interval: int = 1) -> Selections:
    """Return the first selections of an SPU that starts with PMSICR_EL1 = 0 and `state` in its generator.

    In each cycle 1 to `ops_per_cycle` operations pass, each number with the same probability; during the second half
    of the selections all lanes are occupied. The operations finish at once, and the filter rejects all of them.
    """
    engine = CompiledSPU(config)
    engine.write(PMBPTR_EL1, _BASE)
    engine.write(PMBLIMITR_EL1, _BASE + _SIZE | 1)
    engine.write(PMSFCR_EL1, PMSFCR_EL1.pack(FL=1))
    engine.write(PMSLATFR_EL1, config.writable(PMSLATFR_EL1))
    engine.write(PMSICR_EL1, 0)
    engine.write(PMSIRR_EL1, PMSIRR_EL1.pack(INTERVAL=interval, RND=rnd))
    engine.write(IMP_PMSRNDR_EL1, state)
    engine.write(PMSCR_EL1, PMSCR_EL1.pack(E0SPE=1))

    random = np.random.default_rng(config.ops_per_cycle)
    table = np.zeros(_CYCLES * config.ops_per_cycle, TIMED_OPERATION)
    table["issue"], table["finish"] = 1, 2
    rows: list[NDArray[np.int64]] = []
    positions: list[NDArray[np.uint8]] = []
    passing: list[NDArray[np.uint8]] = []
    for start in count(_CYCLES, _CYCLES):
        least = 1 if sum(map(len, rows)) < samples // 2 else config.ops_per_cycle
        counts = random.integers(least, config.ops_per_cycle, size=_CYCLES, endpoint=True)
        operations = table[: counts.sum()]
        operations["dispatch"] = np.repeat(np.arange(start, start + _CYCLES), counts)
        first = np.repeat(np.cumsum(counts) - counts, counts)
        positions.append((np.arange(len(operations)) - first).astype(np.uint8))
        passing.append(np.repeat(counts, counts).astype(np.uint8))
        engine.play(operations)
        selections = engine.selections()
        if not selections["sampled"].all():
            raise RuntimeError("an operation collided: the configuration must have enough slots")
        rows.append(selections["first"].astype(np.int64))
        if sum(map(len, rows)) >= samples:
            break
    found = np.concatenate(rows)[:samples]
    return Selections(found, np.concatenate(positions)[found], np.concatenate(passing)[found])


_BINS = np.arange(1, 514, 8)
"""Edges of the bars in operations. The possible intervals, from 2 to 512, fill complete bars."""
_LEFT, _TOP, _PITCH, _HEIGHT, _SCALE = 60, 56, 150, 100, 1.6
_STYLES = (
    ".bars { fill: #7fabd6 }",
    ".expected { stroke: #a0522d; stroke-width: 1.5; fill: none }",
    ".mean { stroke: #16344f; stroke-width: 1.2; stroke-dasharray: 5 3 }",
)
_TITLE = ("Operations from one selection to the next, INTERVAL = 1. Bars: measured on the RTL; line: expected.",)
_PANEL = """\
  <text class="name" x="{left}" y="{title_y:g}">{title}</text>
  <text class="end" x="{right:g}" y="{title_y:g}">{caption}</text>
  <path class="bars" d="{bars}"/>
  <path class="expected" d="{expected}"/>
  <path class="mean" d="M{mean_x:.1f} {top:g}V{base:g}"/>
  <path class="axis" d="M{left} {top:g}V{base:g}H{right:g}"/>
{labels}"""


def _shares(mode: IntervalMode) -> NDArray[np.float64]:
    """Return the exact probability of each interval, by its length."""
    steps = np.bincount(mode.steps) / len(mode.steps)
    if not mode.ernd:
        return steps
    # The distance of two points of the grid, plus the difference of their random offsets.
    difference = np.convolve(steps, steps[::-1])
    return np.concatenate([np.zeros(257 - (len(difference) // 2)), difference])


def expected_mean(mode: IntervalMode, interval: int = 1) -> float:
    """Return the mean interval in operations."""
    shares = _shares(mode)
    return float(shares @ np.arange(len(shares))) + 256 * (interval - 1)


def picture(runs: Callable[[IntervalMode], NDArray[np.int64]]) -> str:
    """Return the SVG of the intervals in each mode. `runs` returns the selected rows of a mode."""
    panels: list[str] = []
    for number, mode in enumerate(MODES):
        intervals = np.diff(runs(mode))
        panels.append(_panel(mode, intervals, _TOP + number * _PITCH))
    width, height = _x(513) + 30, _TOP + len(MODES) * _PITCH - 12
    return figure((width, height), left=_LEFT, title=_TITLE, styles=_STYLES, panels=panels)


def _x(operations: float) -> float:
    return _LEFT + _SCALE * operations


def _panel(mode: IntervalMode, intervals: NDArray[np.int64], top: int) -> str:
    base = top + _HEIGHT
    shares = _shares(mode)
    expected = len(intervals) * np.histogram(np.arange(len(shares)), _BINS, weights=shares)[0]
    counts, _ = np.histogram(intervals, _BINS)
    scale = _HEIGHT / max(counts.max(), expected.max())
    bars = "".join(
        f"M{_x(left):.1f} {base}v{-scale * tall:.1f}h{8 * _SCALE - 1:.1f}V{base}z"
        for left, tall in zip(_BINS.tolist(), counts, strict=False)
        if tall
    )
    steps = "".join(
        f"V{base - scale * tall:.1f}H{_x(right):.1f}" for right, tall in zip(_BINS[1:].tolist(), expected, strict=True)
    )
    labels = [
        f'  <text class="on middle" x="{_x(tick):.1f}" y="{base + 15}">{tick}</text>'
        for tick in (0, 128, 257, 384, 512)
    ]
    labels.append(f'  <text class="on end" x="{_LEFT - 6}" y="{top + 9}">{counts.max():,}</text>')
    mean = float(intervals.mean())
    return _PANEL.format(
        left=_LEFT,
        right=_x(513),
        top=top,
        base=base,
        title=mode.title,
        title_y=top - 10,
        caption=f"{len(intervals):,} intervals, mean {mean:.2f} (expected: {expected_mean(mode):g})",
        bars=bars,
        expected=f"M{_x(1):.1f} {base}{steps}V{base}",
        mean_x=_x(mean),
        labels="\n".join(labels),
    )


def current() -> str:
    """Return the figure of the intervals of eight lanes, measured on the RTL."""
    return picture(lambda mode: run(mode, 8).rows)
