"""Command `python -m formal`: run the proofs, print a table, write a report into build/formal."""

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from spurtle.support.errors import UserError
from spurtle.support.files import write_json

from .engine.proof import Proof, ProofRow, Result
from .engine.tools import BUILD, warm_up
from .proofs import all_proofs

COLUMNS = ("property", "block", "config", "method", "depth", "seconds", "result")


def select(proofs: Sequence[Proof], names: Sequence[str], *, full: bool) -> list[Proof]:
    """Return the proofs of the named blocks, or of all blocks. Raise UserError if a block is unknown.

    Slow proofs are among them only if `full` is True.
    """
    blocks = list(dict.fromkeys(proof.block for proof in proofs))
    for name in names:
        if name not in blocks:
            raise UserError(f"NAME must be {', '.join(blocks[:-1])} or {blocks[-1]}, not {name!r}")
    return [proof for proof in proofs if (not names or proof.block in names) and (full or not proof.slow)]


_groups: list[list[Proof]] = []
"""Proofs to run, in groups. Worker processes inherit them by fork: proofs are functions and cannot be pickled."""


def _prove(group: int) -> list[ProofRow]:
    return [proof.run() for proof in _groups[group]]


def prove(proofs: Sequence[Proof], console: Console) -> list[ProofRow]:
    """Run the proofs on all cores and return their rows, in the order of the proofs.

    The proofs of a block in one configuration run in one process, because they share the circuit. Progress is shown as
    a status line in a terminal, otherwise as one line for each proof.
    """
    _groups[:] = [list(group) for _, group in groupby(proofs, key=lambda proof: (proof.block, proof.config))]
    rows: list[ProofRow] = []
    cores = os.cpu_count() or 1
    with get_context("fork").Pool(cores) as pool, console.status(f"{len(proofs)} proofs on {cores} cores") as status:
        for done in pool.imap(_prove, range(len(_groups))):
            for row in done:
                rows.append(row)
                line = f"[{len(rows)}/{len(proofs)}] {row.block} {row.config}: {row.property}: {row.result}"
                if console.is_terminal:
                    status.update(line)
                else:
                    console.print(line, markup=False, soft_wrap=True)
    return rows


def show(rows: Sequence[ProofRow], console: Console) -> None:
    """Print the table, then the evidence of each proof that did not pass."""
    table = Table(*COLUMNS)
    for row in rows:
        style = "green" if row.result is Result.PASS else "bold red"
        table.add_row(*(str(asdict(row)[column]) for column in COLUMNS[:-1]), f"[{style}]{row.result}[/]")
    console.print(table)
    for row in rows:
        if row.result is not Result.PASS:
            console.print(f"{row.result}: {row.block} {row.config}: {row.property}", style="bold red", markup=False)
            console.print(row.evidence, markup=False, highlight=False, soft_wrap=True)


def write_report(rows: Sequence[ProofRow], seconds: float, path: Path) -> None:
    """Write the report: the duration of the run, and an object for each row."""
    write_json(
        path,
        {
            "seconds": round(seconds, 1),
            "proofs": [{column: asdict(row)[column] for column in COLUMNS} for row in rows],
        },
    )


def announcement(proofs: Sequence[Proof], path: Path) -> str:
    """Return the number of proofs and, if the report in `path` lists exactly these proofs, its duration."""
    line = f"{len(proofs)} proofs"
    try:
        report: Any = json.loads(path.read_text())
        reported = [(row["property"], row["block"], row["config"]) for row in report["proofs"]]
        seconds = round(report["seconds"])
    except (OSError, ValueError, KeyError, TypeError):
        return line  # There is no report, or it has another format.
    if reported != [(proof.property, proof.block, proof.config) for proof in proofs]:
        return line
    return f"{line}; the last run took {seconds // 60} min {seconds % 60} s"


def not_run(number: int) -> str:
    """Return the end of the last line: how many proofs were not run, and the command that runs them."""
    return f"; proofs not run: {number} (make formal-full)" if number else ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Return 0 if every proof passed, 1 if one did not, 2 if the proofs could not be run."""
    parser = argparse.ArgumentParser(prog="python -m formal", description="Prove the gateware, block by block.")
    parser.add_argument("--full", action="store_true", help="run the proofs that take long as well")
    parser.add_argument("name", nargs="*", metavar="NAME", help="block to prove (default: all blocks)")
    options = parser.parse_args(arguments)
    console = Console()
    if not console.is_terminal:
        console = Console(width=140)  # The width of a log file is not known.
    try:
        every = select(list(all_proofs()), options.name, full=True)
        proofs = select(every, [], full=options.full)
        report = BUILD / ("report-full.json" if options.full else "report.json")
        console.print(announcement(proofs, report), markup=False, highlight=False)
        warm_up()
        started = time.monotonic()
        rows = prove(proofs, console)
        show(rows, console)
        write_report(rows, time.monotonic() - started, report)
    except UserError as error:
        print(f"formal: {error}", file=sys.stderr)
        return 2
    passed = sum(row.result is Result.PASS for row in rows)
    shown = report.relative_to(Path.cwd()) if report.is_relative_to(Path.cwd()) else report
    line = f"{passed} of {len(rows)} passed; report: {shown}{not_run(len(every) - len(proofs))}"
    console.print(line, markup=False, highlight=False, soft_wrap=True)
    return 0 if passed == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
