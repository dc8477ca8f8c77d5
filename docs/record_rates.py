"""Figure of collisions against the latency of memory: `docs/record_rates.svg`, from `bench/records.json`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.record_rates import FLIGHTS, LATENCIES, RecordRate, Setting

from .figure import figure

__all__ = ["FILE", "picture"]

FILE = Path(__file__).parent / "record_rates.svg"

_CONFIG = "v1p4"
_STROKES = tuple(
    f'stroke="{color}" stroke-width="{width}"'
    for color, width in (("#c44e52", 6.5), ("#dd9f4e", 5), ("#5f8f5f", 3.5), ("#16344f", 2))
)
"""Strokes of the curves of a panel, in order. Curves can coincide: each is thinner than the one below it."""

_LEFT, _TOP, _WIDTH, _HEIGHT, _GAP, _ROW_PITCH = 62, 74, 300, 150, 60, 226
_STYLES = (
    ".grid { stroke: #ddd; stroke-width: 1; fill: none }",
    ".curve { fill: none; stroke-linejoin: round }",
)
_TITLE = (
    f"Share of selected operations that collide, {_CONFIG}, INTERVAL = 1, measured on the RTL. Horizontal: latency of",
    "memory in cycles, from the last beat of a record to its response. Flight: cycles from sampling to completion.",
)


class _Row(NamedTuple):
    """Panels next to each other, one for each flight time, with the same curves.

    Members
    -------
    title : str
    curves : sequence of tuple of int
        Slots and outstanding records of each curve.
    labels : sequence of str
        Texts of the legend.
    """

    title: str
    curves: Sequence[tuple[int, int]]
    labels: Sequence[str]


_COUNTS = (1, 2, 4, 8)
_ROWS = (
    _Row("4 slots", [(4, count) for count in _COUNTS], [f"{count} outstanding" for count in _COUNTS]),
    _Row("4 outstanding records", [(count, 4) for count in _COUNTS], [f"slots: {count}" for count in _COUNTS]),
)


def picture(rates: Iterable[RecordRate]) -> str:
    """Return the SVG of these rates, which must contain those of all curves."""
    shares = {rate.setting: rate.collisions for rate in rates}
    parts: list[str] = []
    for number, row in enumerate(_ROWS):
        top, left = _TOP + number * _ROW_PITCH, _LEFT
        for flight in FLIGHTS:
            parts += _panel(row, flight, shares, left, top)
            left += _WIDTH + _GAP
        parts += _legend(row, left - _GAP + 24, top)
    width = _LEFT + len(FLIGHTS) * (_WIDTH + _GAP) + 90
    height = _TOP + len(_ROWS) * _ROW_PITCH - 34
    return figure((width, height), left=_LEFT, title=_TITLE, styles=_STYLES, panels=parts)


def _panel(row: _Row, flight: int, shares: Mapping[Setting, float], left: int, top: int) -> Iterator[str]:
    base = top + _HEIGHT

    def x(latency: float) -> float:
        return left + _WIDTH * latency / LATENCIES[-1]

    def y(share: float) -> float:
        return base - _HEIGHT * share

    yield f'  <text class="name" x="{left}" y="{top - 10}">{row.title}, flight {flight}</text>'
    for share in (0, 0.25, 0.5, 0.75, 1):
        yield f'  <path class="grid" d="M{left} {y(share):.1f}h{_WIDTH}"/>'
        yield f'  <text class="on end" x="{left - 6}" y="{y(share) + 4:.1f}">{share:.0%}</text>'
    for tick in range(0, LATENCIES[-1] + 1, 20):
        yield f'  <text class="on middle" x="{x(tick):.1f}" y="{base + 16}">{tick}</text>'
    yield f'  <path class="axis" d="M{left} {top}V{base}H{left + _WIDTH}"/>'
    for (slots, outstanding), stroke in zip(row.curves, _STROKES, strict=True):
        settings = (Setting(_CONFIG, 1, slots, outstanding, flight, latency) for latency in LATENCIES)
        points = " ".join(f"{x(each.latency):.1f},{y(shares[each]):.1f}" for each in settings)
        yield f'  <polyline class="curve" {stroke} points="{points}"/>'


def _legend(row: _Row, left: int, top: int) -> Iterator[str]:
    for number, (label, stroke) in enumerate(zip(row.labels, _STROKES, strict=True)):
        y = top + 12 + 18 * number
        yield f'  <path {stroke} d="M{left} {y - 4}h18"/>'
        yield f'  <text class="on" x="{left + 24}" y="{y}">{label}</text>'
