"""Command `python -m bench.records`: measures cycles per record and collisions on the compiled SPU."""

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path

from rich.box import SIMPLE
from rich.console import Console
from rich.progress import track
from rich.table import Table

from docs.markdown import with_table
from docs.record_rates import FILE, picture
from spurtle.support.arguments import check_range
from spurtle.support.errors import UserError
from spurtle.support.files import write_file, write_json
from spurtle_sim.cosim.spu import library
from spurtle_sim.native.library import load

from .record_rates import LATENCIES, SETTINGS, RecordRate, RecordRateError, Setting, measure

__all__ = ["PAGE", "RATES", "SEED", "SELECTIONS", "main", "read", "with_rates"]

ROOT = Path(__file__).resolve().parents[1]
RATES = ROOT / "bench" / "records.json"
PAGE = ROOT / "docs" / "bench.md"

SEED = 1
"""Default state of the random number generator of the intervals."""

SELECTIONS = 10_000
"""Default number of selected operations in a measurement."""

_HEADINGS = ("SPU", "INTERVAL", "slots", "outstanding", "flight", *map(str, LATENCIES))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Returns
    -------
    int
        Exit status: 0 after success, 1 if the SPU loses an operation, 2 if an argument is invalid, an SPU cannot be
        compiled or a file cannot be written.
    """
    # A pipe has no width; the table needs 120 columns.
    console = Console(width=None if sys.stdout.isatty() else 120)
    try:
        options = _parse(arguments)
        rates = measure_all(SETTINGS, selections=options.selections, seed=options.seed)
        console.print(table(rates))
        if options.publish:
            write_json(RATES, [{**asdict(rate.setting), **_numbers(rate)} for rate in rates])
            write_file(PAGE, with_rates(PAGE.read_text(), rates).encode())
            write_file(FILE, picture(rates).encode())
    except (UserError, RecordRateError) as error:
        print(f"bench-records: {error}", file=sys.stderr)
        return 2 if isinstance(error, UserError) else 1
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.records", description="Measure cycles per record and collisions on the compiled SPU."
    )
    parser.add_argument(
        "--selections",
        type=int,
        default=SELECTIONS,
        metavar="N",
        help=f"selected operations in each measurement; default: {SELECTIONS}",
    )
    parser.add_argument(
        "--seed", type=int, default=SEED, metavar="N", help=f"seed of the random intervals; default: {SEED}"
    )
    parser.add_argument(
        "--publish",
        action="store_true",
        help=f"write the results into bench/{RATES.name}, docs/bench.md and its figure",
    )
    options = parser.parse_args(arguments)
    try:
        check_range("--selections", options.selections, 2, 100_000)
        check_range("--seed", options.seed, 1, (1 << 32) - 1)
    except ValueError as error:
        raise UserError(str(error)) from error
    return options


def measure_all(settings: Sequence[Setting], *, selections: int, seed: int) -> list[RecordRate]:
    """Return the rate of each setting, and show progress. The SPUs are compiled first.

    Raises
    ------
    UserError
        If an SPU cannot be compiled.
    RecordRateError
        If an SPU loses an operation.
    """
    load([library(config) for config in dict.fromkeys(setting.spu for setting in settings)])
    errors = Console(stderr=True)
    shown = track(settings, "measuring", console=errors, transient=True, disable=not errors.is_terminal)
    return [measure(setting, selections=selections, seed=seed) for setting in shown]


def _numbers(rate: RecordRate) -> dict[str, int]:
    return {"selected": rate.selected, "recorded": rate.recorded, "cycles": rate.cycles}


def read() -> list[RecordRate]:
    """Return the published rates."""
    rows: list[dict[str, int]] = json.loads(RATES.read_text())
    numbers = ("selected", "recorded", "cycles")
    return [
        RecordRate(
            Setting(**{name: value for name, value in row.items() if name not in numbers}),  # pyright: ignore[reportArgumentType]
            **{name: row[name] for name in numbers},
        )
        for row in rows
    ]


def table(rates: Iterable[RecordRate]) -> Table:
    """Return the table of rates for the terminal."""
    title = "Cycles per record and collisions, by the latency of memory in cycles"
    shown = Table(*_HEADINGS[:5], title=title, padding=(0, 1, 0, 0), title_justify="left", box=SIMPLE)
    for heading in _HEADINGS[5:]:
        shown.add_column(heading, justify="right")
    for cells in _rows(rates):
        shown.add_row(*cells)
    return shown


def with_rates(page: str, rates: Iterable[RecordRate]) -> str:
    """Return the page with these rates in its table."""
    return with_table(page, "records", _HEADINGS, ((f"`{name}`", *cells) for name, *cells in _rows(rates)))


def _rows(rates: Iterable[RecordRate]) -> Iterable[tuple[str, ...]]:
    """Yield the cells of each row: the settings that differ in the latency of memory alone."""
    for key, row in groupby(rates, lambda rate: tuple(asdict(rate.setting).values())[:-1]):
        yield *map(str, key), *map(_cell, row)


def _cell(rate: RecordRate) -> str:
    """Return cycles per record, and the share of collisions if there were any."""
    collisions = f" ({rate.collisions:.1%})" if rate.collisions else ""
    return f"{rate.cycles_per_record:.1f}{collisions}"


if __name__ == "__main__":
    sys.exit(main())
