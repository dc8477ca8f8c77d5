"""`make bench-sim`: how fast the simulators are, each as a multiple of a CXXRTL model in the same run."""

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

from .rates import REFERENCE, ROUNDS, Measure, MeasureError, measures, rates

__all__ = ["KEPT", "PAGE", "Rate", "main", "read", "with_rates"]

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "bench" / "simulation.json"
PAGE = ROOT / "docs" / "bench.md"

_HEADINGS = ("simulator", "of", "million per CPU second", "times CXXRTL")


@dataclass(frozen=True)
class Rate:
    """A row of the table.

    Parameters
    ----------
    stage, subject, unit : str
        See `rates.Measure`.
    millions : float
        Units per CPU second, in millions, on the machine of the run.
    ratio : float
        As a multiple of the CXXRTL model's cycles. It is what runs on several machines have in common.
    """

    stage: str
    subject: str
    unit: str
    millions: float
    ratio: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit status: 0, 1 if a measure is broken, 2 if nothing could be measured."""
    parser = argparse.ArgumentParser(prog="python -m bench.simulation", description="Rates of the simulators.")
    parser.add_argument("--publish", action="store_true", help="keep them in bench/simulation.json and docs/bench.md")
    options = parser.parse_args(arguments)
    # A pipe has no width of its own; the table needs this much.
    console = Console(width=None if sys.stdout.isatty() else 120)
    try:
        found = rows(measure_all())
        console.print(table(found, read()))
        if options.publish:
            write_json(KEPT, [asdict(rate) for rate in found])
            write_file(PAGE, with_rates(PAGE.read_text(), found).encode())
    except (UserError, MeasureError) as error:
        print(f"bench-sim: {error}", file=sys.stderr)
        return 2 if isinstance(error, UserError) else 1
    return 0


def measure_all() -> dict[Measure, float]:
    """Return the rate of each measure, the reference first; show progress."""
    console = Console(stderr=True)
    with tempfile.TemporaryDirectory() as folder, console.status("preparing") as status, silent_programs():
        return rates(measures(Path(folder)), ROUNDS, status.update)


@contextmanager
def silent_programs() -> Generator[None]:
    """Discard what emulated programs write to standard output: they write to the file descriptor."""
    sys.stdout.flush()
    kept = os.dup(1)
    with Path(os.devnull).open("w") as nothing:
        os.dup2(nothing.fileno(), 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def rows(measured: Mapping[Measure, float]) -> list[Rate]:
    """Return the rows of what was measured, which includes the reference."""
    [reference] = [rate for measure, rate in measured.items() if measure.stage == REFERENCE]
    return [
        Rate(measure.stage, measure.subject, measure.unit, _rounded(rate / 1e6), _rounded(rate / reference))
        for measure, rate in measured.items()
    ]


def _rounded(number: float) -> float:
    """Return the number with three significant digits: the noise is larger than the next one."""
    return float(f"{number:.3g}")


def read() -> list[Rate]:
    """Return the rates that are kept."""
    return [Rate(**rate) for rate in json.loads(KEPT.read_text())]


def table(found: Iterable[Rate], kept: Iterable[Rate]) -> Table:
    """Return the rates for a terminal, beside the ratios that are kept."""
    shown = Table("simulator", "of", title="Simulation", title_justify="left", box=SIMPLE)
    for heading in ("per CPU second", "times CXXRTL", "kept", "change"):
        shown.add_column(heading, justify="right")
    before = {(rate.stage, rate.subject): rate.ratio for rate in kept}
    for rate in found:
        ratio = before.get((rate.stage, rate.subject))
        compared = ("", "") if ratio is None else (f"{ratio:g}", f"{rate.ratio / ratio - 1:+.0%}")
        shown.add_row(rate.stage, rate.subject, f"{rate.millions:g} M {rate.unit}", f"{rate.ratio:g}", *compared)
    return shown


def with_rates(page: str, rates: Iterable[Rate]) -> str:
    """Return the page with these rates in its table."""
    cells = ((rate.stage, f"`{rate.subject}`", f"{rate.millions:g} {rate.unit}", f"{rate.ratio:g}") for rate in rates)
    return with_table(page, "simulation", _HEADINGS, cells)


if __name__ == "__main__":
    sys.exit(main())
