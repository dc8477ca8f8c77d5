"""Command `python -m bench.simulation`: measures the rates of the simulators, relative to a CXXRTL model."""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from docs.markdown import with_table
from spurtle.support.errors import UserError
from spurtle.support.files import write_file, write_json

from .rates import REFERENCE, ROUNDS, Benchmark, BenchmarkError, benchmarks, rates

__all__ = ["PAGE", "RATES", "Rate", "main", "read", "with_rates"]

ROOT = Path(__file__).resolve().parents[1]
RATES = ROOT / "bench" / "simulation.json"
PAGE = ROOT / "docs" / "bench.md"

_HEADINGS = ("simulator", "of", "million per CPU second", "times CXXRTL")


@dataclass(frozen=True)
class Rate:
    """Rate of a simulator.

    Parameters
    ----------
    stage, subject, unit : str
        See `rates.Benchmark`.
    millions : float
        Units per CPU second, in millions, on the machine of the run.
    ratio : float
        Rate divided by the rate of the CXXRTL model. Ratios can be compared between machines.
    """

    stage: str
    subject: str
    unit: str
    millions: float
    ratio: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Returns
    -------
    int
        Exit status: 0 after success, 1 if a simulator is wrong, 2 if a model cannot be compiled or a file cannot be
        written.
    """
    parser = argparse.ArgumentParser(
        prog="python -m bench.simulation", description="Measure the rates of the simulators, relative to CXXRTL."
    )
    parser.add_argument(
        "--publish", action="store_true", help="write the rates into bench/simulation.json and docs/bench.md"
    )
    options = parser.parse_args(arguments)
    # A pipe has no width; the table needs 120 columns.
    console = Console(width=None if sys.stdout.isatty() else 120)
    try:
        measured = rows(measure_all())
        console.print(table(measured, read()))
        if options.publish:
            write_json(RATES, [asdict(rate) for rate in measured])
            write_file(PAGE, with_rates(PAGE.read_text(), measured).encode())
    except (UserError, BenchmarkError) as error:
        print(f"bench-sim: {error}", file=sys.stderr)
        return 2 if isinstance(error, UserError) else 1
    return 0


def measure_all() -> dict[Benchmark, float]:
    """Return the rate of each benchmark, the reference first, and show progress."""
    console = Console(stderr=True)
    with tempfile.TemporaryDirectory() as folder, console.status("preparing") as status, silent_programs():
        return rates(benchmarks(Path(folder)), ROUNDS, status.update)


@contextmanager
def silent_programs() -> Generator[None]:
    """Discard the standard output of emulated programs, which write to file descriptor 1 directly."""
    sys.stdout.flush()
    saved = os.dup(1)
    with Path(os.devnull).open("w") as null:
        os.dup2(null.fileno(), 1)
    try:
        yield
    finally:
        os.dup2(saved, 1)
        os.close(saved)


def rows(measured: Mapping[Benchmark, float]) -> list[Rate]:
    """Return the rows of the table. `measured` must contain the reference."""
    [reference] = [rate for benchmark, rate in measured.items() if benchmark.stage == REFERENCE]
    return [
        Rate(benchmark.stage, benchmark.subject, benchmark.unit, _rounded(rate / 1e6), _rounded(rate / reference))
        for benchmark, rate in measured.items()
    ]


def _rounded(number: float) -> float:
    """Return the number with three significant digits: noise is larger than the fourth digit."""
    return float(f"{number:.3g}")


def read() -> list[Rate]:
    """Return the published rates."""
    return [Rate(**rate) for rate in json.loads(RATES.read_text())]


def table(measured: Iterable[Rate], published: Iterable[Rate]) -> Table:
    """Return the table of rates for the terminal, next to the published ratios."""
    shown = Table("simulator", "of", title="Simulation", title_justify="left", box=SIMPLE)
    for heading in ("per CPU second", "times CXXRTL", "published", "change"):
        shown.add_column(heading, justify="right")
    ratios = {(rate.stage, rate.subject): rate.ratio for rate in published}
    for rate in measured:
        ratio = ratios.get((rate.stage, rate.subject))
        compared = ("", "") if ratio is None else (f"{ratio:g}", f"{rate.ratio / ratio - 1:+.0%}")
        shown.add_row(rate.stage, rate.subject, f"{rate.millions:g} M {rate.unit}", f"{rate.ratio:g}", *compared)
    return shown


def with_rates(page: str, rates: Iterable[Rate]) -> str:
    """Return the page with these rates in its table."""
    cells = ((rate.stage, f"`{rate.subject}`", f"{rate.millions:g} {rate.unit}", f"{rate.ratio:g}") for rate in rates)
    return with_table(page, "simulation", _HEADINGS, cells)


if __name__ == "__main__":
    sys.exit(main())
