"""Rows of figures: their calculation, the tables for the terminal, and the JSON file."""

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
    """Figures of one circuit on one device.

    Parameters
    ----------
    name, config, device : str
    lut4, ff : int
        Area of the circuit without the harness, including carry cells.
    fmax_mhz : float or None
        Median of the seeds; None if the circuit with its harness is too large for the device.
    seeds : int
        Number of placements.
    levels : int or None
        LUTs in series on the slowest path of the slowest placement; a carry chain counts as one.
    bound : str or None
        Name of the plain circuit that bounds it; None for a plain circuit.
    ratio : float or None
        `fmax_mhz` divided by the `fmax_mhz` of the bound.
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
    """Return one row for each measurement. `measured` must contain the bound of each block."""
    fmax = {block: measurement.fmax_mhz and round(measurement.fmax_mhz, 1) for block, measurement in measured.items()}

    def row(block: Block, measurement: Measurement) -> FigureRow:
        bound = bound_of(block)
        mhz = fmax[block]
        bound_mhz = fmax[bound] if bound else None
        ratio = round(mhz / bound_mhz, 2) if mhz and bound_mhz else None
        levels = measurement.slowest.levels if measurement.slowest else None
        size = (measurement.lut4, measurement.ff)
        seeds = len(measurement.placed)
        return FigureRow(block.name, block.config, device.name, *size, mhz, seeds, levels, block.bound, ratio)

    return [row(block, measurement) for block, measurement in measured.items()]


def table(device: Device, rows: Iterable[FigureRow], measured: Mapping[Block, Measurement]) -> Table:
    """Return the table of one device for the terminal, with the minimum and maximum of the seeds."""
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
    """Return the table of critical paths: for each circuit the slowest path of the slowest placement."""
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
    """Write the rows as a JSON list."""
    write_json(path, [asdict(row) for row in rows])
