"""Rows of figures: their calculation, the tables for the terminal, and the JSON file."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.box import SIMPLE
from rich.table import Table

from spurtle.support.files import write_json

from .blocks import Block, bounds_of
from .devices import DEVICES, Device
from .flow import Measurement
from .paths import CriticalPath

__all__ = ["FigureRow", "blocks", "pair_table", "path_table", "rows", "table", "write"]


@dataclass(frozen=True)
class FigureRow:
    """Figures of one circuit on one device.

    Parameters
    ----------
    name, config, device : str
    lut4, ff : int
        Area of the circuit without the harness, including carry cells and LUT RAM.
    cells : dict of str to int
        Number of cells of each type, without flip-flops.
    fmax_mhz : float or None
        Median of the seeds; None if the circuit with its harness is too large for the device.
    seeds : int
        Number of placements.
    levels : int or None
        LUTs in series on the slowest path of the slowest placement; a carry chain counts as one.
    bound : str or None
        Name of the plain circuit that bounds it: the slowest one on this device, if there are several. None for a plain
        circuit.
    ratio : float or None
        `fmax_mhz` divided by the `fmax_mhz` of the bound.
    """

    name: str
    config: str
    device: str
    lut4: int
    ff: int
    cells: dict[str, int]
    fmax_mhz: float | None
    seeds: int
    levels: int | None
    bound: str | None
    ratio: float | None


def rows(device: Device, measured: Mapping[Block, Measurement]) -> list[FigureRow]:
    """Return one row for each measurement. `measured` must contain the bounds of each block."""
    fmax = {block: measurement.fmax_mhz and round(measurement.fmax_mhz, 1) for block, measurement in measured.items()}

    def row(block: Block, measurement: Measurement) -> FigureRow:
        # A plain circuit that is too large for the device has no frequency.
        bound = min(bounds_of(block), key=lambda plain: fmax[plain] or math.inf, default=None)
        mhz = fmax[block]
        bound_mhz = fmax[bound] if bound else None
        area = measurement.area
        return FigureRow(
            name=block.name,
            config=block.config,
            device=device.name,
            lut4=area.lut4,
            ff=area.ff,
            cells=dict(area.cells),
            fmax_mhz=mhz,
            seeds=len(measurement.placed),
            levels=measurement.slowest.levels if measurement.slowest else None,
            bound=bound.name if bound else None,
            ratio=round(mhz / bound_mhz, 2) if mhz and bound_mhz else None,
        )

    return [row(block, measurement) for block, measurement in measured.items()]


def table(device: Device, rows: Iterable[FigureRow], measured: Mapping[Block, Measurement]) -> Table:
    """Return the table of one device for the terminal, with the minimum and maximum of the seeds."""
    shown = _table(f"{device.title}: area, speed", "bound")
    for heading in ("LUT4", "FF"):
        shown.add_column(heading, justify="right")
    shown.add_column("memories, multipliers")
    for heading in ("Fmax, MHz", "seeds", "ratio"):
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
            blocks(row),
            f"{row.fmax_mhz:.1f}" if row.fmax_mhz else "not placed",
            f"{min(fmax):.0f} to {max(fmax):.0f}" if fmax else "",
            "" if row.ratio is None else f"{row.ratio:.2f}",
            "cached" if measurement.cached else "",
        )
    return shown


def blocks(row: FigureRow) -> str:
    """Return the numbers of memories and multipliers of a circuit, without the prefixes of their types."""
    counted = {kind: count for kind, count in row.cells.items() if kind in DEVICES[row.device].blocks}
    return ", ".join(f"{count:,} {kind.removeprefix('TRELLIS_')}" for kind, count in counted.items())


def path_table(device: Device, measured: Mapping[Block, Measurement]) -> Table:
    """Return the table of critical paths: for each circuit the slowest path of the slowest placement."""
    slowest = ((block, path) for block, measurement in measured.items() if (path := measurement.slowest))
    return _paths(f"{device.title}: critical paths", slowest)


def pair_table(device: Device, measured: Mapping[Block, Measurement], count: int) -> Table:
    """Return the table of the `count` slowest pairs of registers of each circuit, in its slowest placement."""
    slowest = ((block, path) for block, measurement in measured.items() for path in measurement.pairs[:count])
    return _paths(f"{device.title}: longest path of each pair of registers", slowest)


def _paths(title: str, paths: Iterable[tuple[Block, CriticalPath]]) -> Table:
    shown = _table(title, "from", "to")
    for heading in ("MHz", "levels", "logic, ns", "routing, ns"):
        shown.add_column(heading, justify="right")
    for block, path in paths:
        delays = (f"{path.logic_ns:.2f}", f"{path.routing_ns:.2f}")
        figures = (f"{path.fmax_mhz:.1f}", str(path.levels), *delays)
        shown.add_row(block.name, block.config, path.source, path.sink, *figures)
    return shown


def _table(title: str, *headings: str) -> Table:
    return Table("block", "configuration", *headings, title=title, title_justify="left", box=SIMPLE)


def write(path: Path, rows: Iterable[FigureRow]) -> None:
    """Write the rows as a JSON list."""
    write_json(path, [asdict(row) for row in rows])
