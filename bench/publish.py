"""Published figures: bench/figures.json, the tables of docs/bench.md, and the figures of `spurtle configs`."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from docs.markdown import with_table
from spurtle.config import figures
from spurtle.support.files import write_file, write_json

from .blocks import ANY, BLOCKS
from .devices import DEVICES
from .report import FigureRow, blocks

__all__ = ["FIGURES", "PAGE", "SUMMARY", "publish", "read", "with_tables"]

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "bench" / "figures.json"
SUMMARY = ROOT / "rtl" / "spurtle" / "config" / figures.FILE
"""Figures of complete SPUs, which `spurtle configs` prints."""
PAGE = ROOT / "docs" / "bench.md"

_HEADINGS = ("block", "configuration", "LUT4", "FF", "memories, multipliers", "Fmax, MHz", "levels", "bound", "ratio")


def read() -> list[FigureRow]:
    """Return the published figures."""
    return [FigureRow(**row) for row in json.loads(FIGURES.read_text())]


def publish(rows: Iterable[FigureRow]) -> None:
    """Replace the published figures of the circuits in `rows`.

    Raises
    ------
    UserError
        If a file cannot be written.
    """
    known = {(row.device, row.name, row.config): row for row in [*read(), *rows]}
    order = [(device, block.name, block.config) for device in DEVICES for block in BLOCKS]
    published = [known[key] for key in order if key in known]
    write_json(FIGURES, [asdict(row) for row in published])
    write_json(SUMMARY, _summary(published))
    write_file(PAGE, with_tables(PAGE.read_text(), published).encode())


def with_tables(page: str, rows: Iterable[FigureRow]) -> str:
    """Return the page with these rows in the table of each device."""
    published = list(rows)
    for device in DEVICES:
        page = with_table(page, device, _HEADINGS, (_cells(row) for row in published if row.device == device))
    return page


def _summary(rows: Iterable[FigureRow]) -> dict[str, dict[str, dict[str, object]]]:
    """Return the figures of each complete SPU by configuration and device."""
    summary: dict[str, dict[str, dict[str, object]]] = {}
    for row in rows:
        if row.name == "spu":
            measured = figures.Figures(row.lut4, row.fmax_mhz)
            summary.setdefault(row.config, {})[row.device] = asdict(measured)
    return summary


def _cells(row: FigureRow) -> tuple[str, ...]:
    one_seed = " (one seed)" if row.seeds == 1 else ""
    return (
        f"*{row.name}*" if row.bound is None else f"`{row.name}`",
        "" if row.config == ANY else row.config,
        f"{row.lut4:,}",
        f"{row.ff:,}",
        blocks(row),
        f"{row.fmax_mhz:.0f}{one_seed}" if row.fmax_mhz else "not placed",
        "" if row.levels is None else f"{row.levels}",
        row.bound or "",
        "" if row.ratio is None else f"{row.ratio:.2f}",
    )
