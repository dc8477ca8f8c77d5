"""Rows of figures: the arithmetic, the table, the JSON file."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.box import SIMPLE
from rich.table import Table

from spurtle.support.files import write_json

from .blocks import Block, bound_of
from .devices import Device
from .flow import Measurement

__all__ = ["FigureRow", "path_table", "rows", "table", "write"]


@dataclass(frozen=True)
class FigureRow:
    """What is published of one circuit on one device.

    Parameters
    ----------
    name, config, device : str
    lut4, ff : int
        Of the circuit alone, carry cells counted in.
    fmax_mhz : float or None
        Median of the seeds; None if it was not placed: the circuit and its harness all but fill the device.
    seeds : int
        Placements measured.
    levels : int or None
        LUTs in a row on the slowest path of the slowest placement; a carry chain counts as one.
    bound : str or None
        Name of the bare circuit, None for one.
    ratio : float or None
        `fmax_mhz` as a part of the bound's.
    """

    name: str
    config: str
    device: str
    lut4: int
    ff: int
    fmax_mhz: float | None
    seeds: int
    levels: int | None
    bound: str | None
    ratio: float | None


def rows(device: Device, measured: Mapping[Block, Measurement]) -> list[FigureRow]:
    """One row for each measurement; every block's bound is among them."""
    fmax = {block: measurement.fmax_mhz and round(measurement.fmax_mhz, 1) for block, measurement in measured.items()}

    def row(block: Block, measurement: Measurement) -> FigureRow:
        bound = bound_of(block)
        mhz = fmax[block]
        most = fmax[bound] if bound else None
        ratio = round(mhz / most, 2) if mhz and most else None
        levels = measurement.slowest.levels if measurement.slowest else None
        size = (measurement.lut4, measurement.ff)
        seeds = len(measurement.placed)
        return FigureRow(block.name, block.config, device.name, *size, mhz, seeds, levels, block.bound, ratio)

    return [row(block, measurement) for block, measurement in measured.items()]


def table(device: Device, rows: Iterable[FigureRow], measured: Mapping[Block, Measurement]) -> Table:
    """The rows of one device for the terminal, with the spread of the seeds."""
    shown = _table(f"{device.title}: area, speed", "bound")
    for heading in ("LUT4", "FF", "Fmax, MHz", "seeds", "ratio"):
        shown.add_column(heading, justify="right")
    shown.add_column("")
    for row, measurement in zip(rows, measured.values(), strict=True):
        fmax = [path.fmax_mhz for path in measurement.placed]
        shown.add_row(
            row.name,
            row.config,
            row.bound or "",
            f"{row.lut4:,}",
            f"{row.ff:,}",
            f"{row.fmax_mhz:.1f}" if row.fmax_mhz else "not placed",
            f"{min(fmax):.0f} to {max(fmax):.0f}" if fmax else "",
            "" if row.ratio is None else f"{row.ratio:.2f}",
            "cached" if measurement.cached else "",
        )
    return shown


def path_table(device: Device, measured: Mapping[Block, Measurement]) -> Table:
    """Where each circuit's clock is lost: the slowest path of the slowest placement."""
    shown = _table(f"{device.title}: critical paths", "from", "to")
    for heading in ("levels", "logic, ns", "routing, ns"):
        shown.add_column(heading, justify="right")
    for block, measurement in measured.items():
        if path := measurement.slowest:
            delays = (f"{path.logic_ns:.2f}", f"{path.routing_ns:.2f}")
            shown.add_row(block.name, block.config, path.source, path.sink, str(path.levels), *delays)
    return shown


def _table(title: str, *headings: str) -> Table:
    return Table("block", "configuration", *headings, title=title, title_justify="left", box=SIMPLE)


def write(path: Path, rows: Iterable[FigureRow]) -> None:
    """Writes the rows as a JSON list."""
    write_json(path, [asdict(row) for row in rows])
