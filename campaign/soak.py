"""`make soak`: a million random records of each named configuration, from the compiled RTL.

Each is decoded and compared with the sample that went in, and its bytes with the reference's.
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

from campaign.expected_records import expected
from campaign.random_samples import random_samples
from spurtle.config import CONFIGS, SPUConfig
from spurtle.support.errors import UserError
from spurtle.support.files import write_json
from spurtle_sim.cosim.record_path import CompiledRecordPath
from spurtle_sim.model import records
from spurtle_sim.model.operation import Sample
from spurtle_sim.records.checks import Monitor
from spurtle_sim.records.decode import Record, decode_records

__all__ = ["differences", "main"]

RECORDS = 1_000_000
CHUNK = 5_000
"""Samples that are drawn and compared at once. Each chunk has a seed of its own, whoever works on it."""
WORKERS = 2
SHOWN = 3
"""Differences that are shown of one configuration, the first ones."""
REPORT = Path(__file__).parents[1] / "build" / "soak" / "report.json"


# Comparing.


@cache
def _engine(name: str) -> CompiledRecordPath:
    return CompiledRecordPath(CONFIGS[name])


def differences(name: str, seed: int, chunk: int, count: int) -> Iterator[str]:
    """What is not as it should be with the records of some random samples, a few lines each."""
    config = CONFIGS[name]
    samples = random_samples(config, (seed, chunk), count)
    written = _engine(name).encode(samples)
    stream = b"".join(written)
    found = list(decode_records(stream))
    if len(found) != count:
        yield f"{count} samples went in, {len(found)} records came out"
    for number, (sample, octets, record) in enumerate(zip(samples, written, found, strict=False)):
        wrong = list(_wrong(config, sample, octets, record))
        if wrong:
            lines = "\n  ".join((*wrong, f"bytes {octets.hex(' ')}", f"of {sample}"))
            yield f"sample {chunk * CHUNK + number}:\n  {lines}"
    for violation in Monitor(config, core=False).check(stream, found):
        yield f"samples from {chunk * CHUNK} on: {violation}"


def _wrong(config: SPUConfig, sample: Sample, octets: bytes, record: Record) -> Iterator[str]:
    reference = records.encode(config, sample)
    if octets != reference:
        yield f"the reference's bytes are {reference.hex(' ')}"
    facts = expected(config, sample)
    for name, fact in facts.items():
        told = getattr(record, name)
        if told != fact:
            yield f"{name} is {told}, and has to be {fact}"
    places = sum(facts[name] is not None for name in ("pc", "target", "previous_target", "va", "pa"))
    if len(record.addresses) != places:
        yield f"there are Address packets with INDEX {sorted(record.addresses)}, and have to be {places}"
    if not record.complete or record.unknown or record.problems:
        yield f"it does not decode: complete {record.complete}, unknown {record.unknown}, problems {record.problems}"


def _first_differences(name: str, seed: int, chunk: int, count: int) -> list[str]:
    return list(islice(differences(name, seed, chunk, count), SHOWN))


# The command.


@dataclass(frozen=True, kw_only=True)
class SoakOutcome:
    """Of one configuration. `records` were compared until the first chunk with a difference, if there was one."""

    config: str
    seed: int
    records: int
    seconds: float
    differences: list[str]


def _soak(name: str, seed: int, count: int, console: Console) -> SoakOutcome:
    """Compare `count` records of one configuration. A bar on a terminal shows how far it is."""
    _engine(name)  # Compiled once, before the workers look for it.
    counts = [min(CHUNK, count - first) for first in range(0, count, CHUNK)]
    begin, done, found = time.monotonic(), 0, []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    # Samples and records hold no cycles: looking for any takes a tenth of the time.
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
    parser = argparse.ArgumentParser(prog="soak", description="Random records through the RTL, in bulk.")
    parser.add_argument("--config", metavar="NAME", help=f"one of {', '.join(CONFIGS)}; all without")
    parser.add_argument("--records", type=int, default=RECORDS, metavar="N", help=f"of each configuration ({RECORDS})")
    parser.add_argument("--seed", type=int, metavar="S", help="of the random samples; a new one without")
    options = parser.parse_args(arguments)
    if options.config and options.config not in CONFIGS:
        raise UserError(f"CONFIG must be {', '.join(CONFIGS)}, not {options.config!r}")
    if options.records < 1:
        raise UserError(f"RECORDS must be at least 1, not {options.records}")
    if options.seed is not None and options.seed < 0:
        raise UserError(f"SEED must not be negative, as {options.seed} is")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0 if every record is as it should be, 1 if one is not, 2 if nothing could be tried."""
    console = Console(soft_wrap=True, highlight=False)
    outcomes: list[SoakOutcome] = []
    try:
        options = _parse(arguments)
        seed = secrets.randbits(32) if options.seed is None else options.seed
        console.print(f"{options.records:,} records of each configuration, SEED={seed}")
        for name in [options.config] if options.config else CONFIGS:
            outcome = _soak(name, seed, options.records, console)
            outcomes.append(outcome)
            rate = f"{outcome.seconds:.0f} s, {outcome.records / outcome.seconds:,.0f} a second"
            verdict = "DIFFERENT" if outcome.differences else "as they should be"
            console.print(f"{name}: {outcome.records:,} records, {rate}: {verdict}")
            if outcome.differences:
                console.print(*outcome.differences, sep="\n", markup=False)
                console.print(f"again: make soak CONFIG={name} RECORDS={outcome.records} SEED={seed}")
        write_json(REPORT, [asdict(outcome) for outcome in outcomes])
    except UserError as error:
        print(f"soak: {error}", file=sys.stderr)
        return 2
    passed = sum(not outcome.differences for outcome in outcomes)
    console.print(f"{passed} of {len(outcomes)} configurations passed; report: {os.path.relpath(REPORT)}")
    return 0 if passed == len(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
