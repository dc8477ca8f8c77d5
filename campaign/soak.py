"""Command `python -m campaign.soak`: a million random records of each configuration in the compiled record path.

Each record is decoded and compared with its sample. Its bytes are compared with the record of the reference model.
"""

import argparse
import gc
import os
import secrets
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache
from itertools import islice
from multiprocessing import get_context
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from campaign.expected_records import expected_record
from campaign.random_samples import random_samples
from spurtle.config import CONFIGS, SPUConfig
from spurtle.support.errors import UserError
from spurtle.support.files import write_json
from spurtle.support.numerals import counted
from spurtle_sim.cosim.record_path import CompiledRecordPath
from spurtle_sim.model import records
from spurtle_sim.model.operation import Sample
from spurtle_sim.records.checks import Monitor
from spurtle_sim.records.decode import Record, decode_records

__all__ = ["differences", "main"]

RECORDS = 1_000_000
"""Default number of records of each configuration."""
CHUNK = 5_000
"""Samples that are drawn and compared together. Each chunk has its own seed, whichever worker compares it."""
WORKERS = 2
"""Number of processes."""
MAX_SHOWN = 3
"""Maximum number of differences that are shown for one configuration."""
REPORT = Path(__file__).parents[1] / "build" / "soak" / "report.json"


# Comparison.


@cache
def _record_path(name: str) -> CompiledRecordPath:
    return CompiledRecordPath(CONFIGS[name])


def differences(name: str, seed: int, chunk: int, count: int) -> Iterator[str]:
    """Yield a description of each wrong record among the records of a chunk of random samples."""
    config = CONFIGS[name]
    samples = random_samples(config, (seed, chunk), count)
    written = _record_path(name).encode(samples)
    stream = b"".join(written)
    found = list(decode_records(stream))
    if len(found) != count:
        yield f"the number of records must be {count}, not {len(found)}"
    for number, (sample, octets, record) in enumerate(zip(samples, written, found, strict=False)):
        wrong = list(_differences_of_record(config, sample, octets, record))
        if wrong:
            lines = "\n  ".join((*wrong, f"bytes: {octets.hex(' ')}", f"sample: {sample}"))
            yield f"sample {chunk * CHUNK + number}:\n  {lines}"
    for violation in Monitor(config, core=False).check(stream, found):
        yield f"chunk that starts at sample {chunk * CHUNK}: {violation}"


def _differences_of_record(config: SPUConfig, sample: Sample, octets: bytes, record: Record) -> Iterator[str]:
    reference = records.encode(config, sample)
    if octets != reference:
        yield f"the bytes of the reference model are {reference.hex(' ')}"
    facts = expected_record(config, sample)
    for name, fact in facts.items():
        decoded = getattr(record, name)
        if decoded != fact:
            yield f"{name} must be {fact}, not {decoded}"
    addresses = sum(facts[name] is not None for name in ("pc", "target", "previous_target", "va", "pa"))
    if len(record.addresses) != addresses:
        yield f"there must be {addresses} Address packets, not those with INDEX {sorted(record.addresses)}"
    if not record.complete or record.unknown or record.problems:
        yield f"decoding fails: complete {record.complete}, unknown {record.unknown}, problems {record.problems}"


def _first_differences(name: str, seed: int, chunk: int, count: int) -> list[str]:
    return list(islice(differences(name, seed, chunk, count), MAX_SHOWN))


# The command.


@dataclass(frozen=True, kw_only=True)
class SoakOutcome:
    """Outcome of one configuration. `records` were compared, up to and including the first chunk with a difference."""

    config: str
    seed: int
    records: int
    seconds: float
    differences: list[str]


def _soak(name: str, seed: int, count: int, console: Console) -> SoakOutcome:
    """Compare `count` records of one configuration, and show progress on a terminal."""
    _record_path(name)  # compiled here, so that the workers find it in the cache
    counts = [min(CHUNK, count - first) for first in range(0, count, CHUNK)]
    begin, done, found = time.monotonic(), 0, []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    # The garbage collector is disabled: samples and records have no reference cycles, and it takes a tenth of the time.
    pool = ProcessPoolExecutor(WORKERS, get_context("spawn"), initializer=gc.disable)
    try:
        with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
            task = progress.add_task(name, total=count)
            results = pool.map(
                _first_differences, *zip(*((name, seed, chunk, n) for chunk, n in enumerate(counts)), strict=True)
            )
            for size, found in zip(counts, results, strict=True):
                done += size
                progress.advance(task, size)
                if found:
                    break
    finally:
        pool.shutdown(cancel_futures=True)
    return SoakOutcome(config=name, seed=seed, records=done, seconds=time.monotonic() - begin, differences=found)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m campaign.soak",
        description="Compare random records of the RTL with the reference model, in volume.",
    )
    parser.add_argument("--config", metavar="NAME", help=f"one of {', '.join(CONFIGS)}; default: all")
    parser.add_argument(
        "--records",
        type=int,
        default=RECORDS,
        metavar="N",
        help=f"number of records of each configuration; default: {RECORDS}",
    )
    parser.add_argument("--seed", type=int, metavar="S", help="seed of the random samples; default: a new one")
    options = parser.parse_args(arguments)
    if options.config and options.config not in CONFIGS:
        *others, last = CONFIGS
        raise UserError(f"CONFIG must be {', '.join(others)} or {last}, not {options.config!r}")
    if options.records < 1:
        raise UserError(f"RECORDS must be at least 1, not {options.records}")
    if options.seed is not None and options.seed < 0:
        raise UserError(f"SEED must be at least 0, not {options.seed}")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Returns
    -------
    int
        Exit status: 0 if all records are correct, 1 if one is wrong, 2 if no record could be compared.
    """
    console = Console(soft_wrap=True, highlight=False)
    outcomes: list[SoakOutcome] = []
    try:
        options = _parse(arguments)
        seed = secrets.randbits(32) if options.seed is None else options.seed
        console.print(f"{counted(options.records, 'record')} of each configuration, SEED={seed}")
        for name in [options.config] if options.config else CONFIGS:
            outcome = _soak(name, seed, options.records, console)
            outcomes.append(outcome)
            rate = f"{outcome.seconds:.0f} s, {outcome.records / outcome.seconds:,.0f} a second"
            verdict = "WRONG" if outcome.differences else "correct"
            console.print(f"{name}: {counted(outcome.records, 'record')}, {rate}: {verdict}")
            if outcome.differences:
                console.print(*outcome.differences, sep="\n", markup=False)
                console.print(f"repeat: make soak CONFIG={name} RECORDS={outcome.records} SEED={seed}")
        write_json(REPORT, [asdict(outcome) for outcome in outcomes])
    except UserError as error:
        print(f"soak: {error}", file=sys.stderr)
        return 2
    passed = sum(not outcome.differences for outcome in outcomes)
    console.print(f"{passed} of {counted(len(outcomes), 'configuration')} passed; report: {os.path.relpath(REPORT)}")
    return 0 if passed == len(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
