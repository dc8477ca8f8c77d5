"""`make soak`: a million random records of each named configuration, from the compiled RTL.

Each is decoded and compared with the sample that went in, and its bytes with the reference's.
"""

# Ref: DDI0487 M.a, D17.6 (what is collected), D18.2 (packets). `expected` is a reading of its own: of facts, not bytes.

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
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from spurtle.arch import ContextIndex, CounterIndex, Event, PMSVer
from spurtle.config import CONFIGS, SPUConfig
from spurtle.config.record_layouts import Packet
from spurtle.support.errors import UserError
from spurtle.support.files import write_json
from spurtle_sim.cosim.record_engine import RecordEngine
from spurtle_sim.model import records
from spurtle_sim.model.records import Facts, Location, Operation, Sample, Start, Vectors
from spurtle_sim.records import decode
from spurtle_sim.records.checks import Monitor
from spurtle_sim.records.operation_type import OperationType

__all__ = ["differences", "expected", "main", "random_samples"]

RECORDS = 1_000_000
CHUNK = 5_000
"""Samples that are drawn and compared at once. Each chunk has a seed of its own, whoever works on it."""
WORKERS = 2
SHOWN = 3
"""Differences that are shown of one configuration, the first ones."""
REPORT = Path(__file__).parents[1] / "build" / "soak" / "report.json"


# What goes in.


class _Columns:
    """Random numbers, one for each sample at a time: numpy draws thousands as fast as Python draws a few."""

    def __init__(self, generator: np.random.Generator, samples: int):
        self._generator, self._samples = generator, samples

    def below(self, limit: int) -> NDArray[np.uint64]:
        return self._generator.integers(0, limit, self._samples, np.uint64)

    def bits(self, width: int) -> NDArray[np.uint64]:
        return self.below(1 << width)

    def rare(self, probability: float) -> NDArray[np.uint64]:
        """1 as often as that, otherwise 0."""
        return (self._generator.random(self._samples) < probability).astype(np.uint64)

    def any_of(self, *columns: NDArray[np.uint64]) -> NDArray[np.uint64]:
        return np.choose(self.below(len(columns)).astype(np.intp), columns)

    def number(self, width: int) -> NDArray[np.uint64]:
        """All zeros and all ones come often."""
        one = np.uint64((1 << width) - 1)
        return self.any_of(self.bits(width), self.bits(width), self.bits(width) & np.uint64(0), self.bits(width) | one)

    def size(self, width: int) -> NDArray[np.uint64]:
        """Around those sizes of vectors and tiles that have a code, and any others."""
        power, one = np.uint64(1) << self.below(width + 1), np.uint64(1)
        return self.any_of(self.bits(width), power, power - one, power + one) & np.uint64((1 << width) - 1)


_KINDS = ((1, 0, 0), (0, 1, 0), (1, 1, 0), (0, 0, 1), (1, 0, 1), (0, 1, 1), (0, 0, 0))
"""Load, store, branch. An atomic operation is load and store."""

_RARE = (
    "atomic",
    "acquire_release",
    "exclusive",
    "unspecified",
    "allocation_tag",
    "nv2",
    "memory_copy",
    "memory_set",
    "gcs",
)
"""What makes a load or store a special one: all at once they would hide each other."""


def random_samples(config: SPUConfig, seed: Sequence[int], count: int) -> list[Sample]:
    """Samples with facts in any combination that a core may state, plausible or not.

    A branch is neither load nor store, unless it accesses the Guarded control stack; a memory set does not load. Facts
    that belong to a feature which `config` lacks are anything, other fields of it zero.
    """
    columns = _Columns(np.random.default_rng(seed), count)
    bits, number = columns.bits, columns.number
    nse = 1 if config.rme else 0

    def locations() -> list[Location]:
        return [Location(*row) for row in _rows(number(56), bits(2), bits(1), bits(nse))]

    def optional(values: list[Any], possible: object) -> list[Any]:
        there = columns.rare(0.5 if possible else 0).tolist()
        return [value if wanted else None for value, wanted in zip(values, there, strict=True)]

    def latency() -> list[int]:
        return columns.any_of(columns.below(40), bits(config.counter_bits + 1)).tolist()

    def context(packet: Packet) -> list[int | None]:
        return optional(bits(32).tolist(), packet in config.layout.packets)

    facts = {name: bits(1) for name in Facts.__slots__}
    facts |= {name: columns.rare(0.15) for name in _RARE}
    facts |= zip(("load", "store", "branch"), np.array(_KINDS, np.uint64)[columns.below(len(_KINDS))].T, strict=True)
    facts |= {"retired": columns.rare(0.9), "exception": columns.rare(0.1)}
    both = facts["memory_copy"] & bits(1) if config.mops else bits(0)
    may = facts["gcs"] | (facts["branch"] ^ np.uint64(1))
    facts["load"] = (facts["load"] | both) & may & ~(facts["memory_set"] & ~facts["memory_copy"])
    facts["store"] = (facts["store"] | both) & may

    sve, sme, mte = (1 if feature else 0 for feature in (config.scalable, config.sme, config.mte))
    named = 1 if config.spe_sme else 0
    vectors = {
        "sve": bits(sve), "predicated": bits(sve), "gather_scatter": bits(sve),
        "sme": bits(sme) & bits(1), "tile": bits(named), "whole_array": bits(named) & bits(1),
        "bits": columns.any_of(columns.size(12 * sve), columns.size(19 if named else 12 * sve)),
        "count": columns.any_of(columns.below(1 + 4 * named), bits(5 * named)),
    }  # fmt: skip
    starts = {
        "el": bits(2).tolist(), "ns": bits(1).tolist(), "nse": bits(nse).tolist(),
        "contextidr_el1": context(Packet.CONTEXT_EL1), "contextidr_el2": context(Packet.CONTEXT_EL2),
        "timestamp": optional(bits(64).tolist(), True), "collect_pa": columns.rare(0.5).astype(bool).tolist(),
        "collect_nv2_va": columns.rare(0.5).astype(bool).tolist(),
    }  # fmt: skip
    operations = {
        "facts": _made(Facts, {name: column.tolist() for name, column in facts.items()}),
        "vectors": _made(Vectors, {name: column.tolist() for name, column in vectors.items()}),
        "target": locations(),
        **{
            name: column.tolist()
            for name, column in {
                "events": number(8 * config.events_bytes), "pc": number(56), "va": number(64), "pa": number(56),
                "pa_ns": bits(1), "pa_nse": bits(nse), "pa_checked": bits(mte), "pa_tag": bits(4 * mte),
                "data_source": number(8 * config.data_source_bytes),
            }.items()
        },
    }  # fmt: skip
    return _made(
        Sample,
        {
            "start": _made(Start, starts),
            "operation": _made(Operation, operations),
            "previous_target": optional(locations(), config.pbt),
            **{name: latency() for name in config.latencies},
        },
    )


def _rows(*columns: NDArray[np.uint64]) -> Iterator[tuple[int, ...]]:
    return zip(*(column.tolist() for column in columns), strict=True)


def _made(kind: type[Any], columns: dict[str, list[Any]]) -> list[Any]:
    """One object for each row."""
    names = tuple(columns)
    return [kind(**dict(zip(names, row, strict=True))) for row in zip(*columns.values(), strict=True)]


# What has to come out.


def expected(config: SPUConfig, sample: Sample) -> dict[str, Any]:
    """What the record of a sample says, by the names of `decode.Record`; None, or nothing, where it does not."""
    start, operation, facts = sample.start, sample.operation, sample.operation.facts
    said: dict[str, Any] = {
        "pc": None, "target": None, "previous_target": None, "va": None, "pa": None, "data_source": None,
        "operation": None, "contexts": {}, "counters": {}, "events": 0, "timestamp": start.timestamp,
    }  # fmt: skip
    if not facts.retired:  # D17.6.7
        return said
    completed = not facts.exception
    accesses, loads = _told_of_access(config, facts)
    second = _samples_store_of_two(config, facts)

    said["pc"] = (operation.pc, start.el, start.ns, start.nse)
    contexts = {ContextIndex.EL1: start.contextidr_el1, ContextIndex.EL2: start.contextidr_el2}
    said["contexts"] = {index: value for index, value in contexts.items() if value is not None}
    said["operation"] = _expected_operation(config, operation)
    said["events"] = _expected_events(config, operation)
    latencies = {CounterIndex.TOTAL: sample.total, CounterIndex.ISSUE: sample.issue}
    if config.altclk and facts.asynchronous:  # D17.6.1
        latencies[CounterIndex.ALTERNATE_ISSUE] = sample.alternate_issue
    if completed and facts.branch:  # D17.6.3
        said["target"] = _instruction_address(operation.target)
        if config.pbt and sample.previous_target is not None:
            said["previous_target"] = _instruction_address(sample.previous_target)
    permitted = start.collect_nv2_va or not (config.nv2 and facts.nv2)
    if completed and accesses and facts.va_valid and permitted:  # D17.6.4, D17.6.4.2
        said["va"] = operation.va if facts.va_tagged else operation.va % (1 << 56)
        latencies[CounterIndex.TRANSLATION] = sample.translation
        if facts.pa_valid and start.collect_pa:
            tag = operation.pa_tag if operation.pa_checked else 0
            said["pa"] = (operation.pa, operation.pa_ns, operation.pa_nse, operation.pa_checked, tag)
    said["counters"] = {index: min(cycles, (1 << config.counter_bits) - 1) for index, cycles in latencies.items()}
    if completed and loads and not second and facts.data_source_valid and config.data_source_bytes:  # D18.2.4
        said["data_source"] = operation.data_source
    return said


def _instruction_address(location: Location) -> tuple[int, int, int, int]:
    return (location.address, location.el, location.ns, location.nse)


def _samples_store_of_two(config: SPUConfig, facts: Facts) -> bool:
    """D17.6.4.3, D17.6.4.5."""
    two = (config.mops and facts.memory_copy) or (config.gcs and facts.gcs)
    return bool(two and facts.store and facts.destination)


def _told_of_access(config: SPUConfig, facts: Facts) -> tuple[int, int]:
    """Of a load or store, and of a load. Of a branch nothing without FEAT_GCS (D17.6.3)."""
    told = config.gcs or facts.exception or not facts.branch
    return (facts.load | facts.store, facts.load) if told else (0, 0)


def _mask(*events: int) -> int:
    return sum(1 << event for event in events)


_FACTS = _mask(Event.GENERATED_EXCEPTION, Event.RETIRED, Event.NOT_TAKEN)
_OF_ACCESSES = _mask(*range(2, 6), *range(8, 16))
_OF_LOADS = _mask(*range(19, 24))
_OF_BRANCHES = _mask(Event.MISPREDICTED)
_OF_VECTORS = _mask(Event.PARTIAL_PREDICATE, Event.EMPTY_PREDICATE)


def _expected_events(config: SPUConfig, operation: Operation) -> int:
    """D18.2.6."""
    facts = operation.facts
    accesses, loads = _told_of_access(config, facts)
    value = operation.events & ~_FACTS | _mask(Event.RETIRED)
    for possible, events in (
        (accesses, _OF_ACCESSES),
        (loads, _OF_LOADS),
        (facts.branch and not facts.exception, _OF_BRANCHES),
        ((operation.vectors.sve or operation.vectors.sme) and not (facts.branch and not facts.exception), _OF_VECTORS),
    ):
        if not possible:
            value &= ~events
    if facts.exception:
        value |= _mask(Event.GENERATED_EXCEPTION)
    if facts.conditional and not facts.taken:
        value |= _mask(Event.NOT_TAKEN)
    if config.spe_sme:
        value = value | _mask(Event.SMCU) if facts.asynchronous else value & ~_mask(Event.SMCU)
    return value & sum(1 << event for event in config.events)


def _expected_operation(config: SPUConfig, operation: Operation) -> OperationType:
    """D18.2.7."""
    facts, vectors = operation.facts, operation.vectors
    if facts.branch and not facts.exception:
        procedure = "call" if facts.link else "return" if facts.procedure_return else "neither"
        return OperationType("branch", "branch", {
            "conditional": facts.conditional, "indirect": facts.indirect, "gcs": facts.gcs if config.gcs else 0,
            "procedure": procedure if config.crr else "unknown",
        })  # fmt: skip
    scalable = vectors.sve or vectors.sme
    size = vectors.bits % (1 << 12) * (vectors.count if config.spe_sme else 1)
    if not facts.load and not facts.store:
        if vectors.sme:
            size = vectors.bits if vectors.tile else size
            whole = vectors.whole_array or size > 262144
            bits = "all" if whole else _rounded(size, 128)
            return OperationType("other", "sme", {"bits": bits, "fp": facts.floating_point})
        if scalable:
            attributes = {
                "bits": _vector_bits(config, size),
                "fp": facts.floating_point,
                "predicated": vectors.predicated,
            }
            return OperationType("other", "sve", attributes)
        fp, simd = (facts.floating_point, facts.vector and not facts.unspecified) if config.fpf else (0, 0)
        return OperationType("other", "other", {"conditional": facts.conditional, "fp": fp, "simd": simd})

    # An atomic that returns a value is a load, a copy what is sampled of it.
    kind = "store" if not facts.load or _samples_store_of_two(config, facts) else "load"
    if config.mops and facts.memory_copy:
        return OperationType(kind, "memory_copy", {})
    if config.mops and facts.memory_set:
        return OperationType(kind, "memory_set", {})
    if config.gcs and facts.gcs:
        return OperationType(kind, "gcs", {"common": not (facts.link or facts.procedure_return)})
    if config.mte and facts.allocation_tag:
        return OperationType(kind, "tag", {})
    if config.nv2 and facts.nv2:
        return OperationType(kind, "nv2", {})
    if scalable:
        predicated = vectors.predicated if kind == "store" or config.version >= PMSVer.SPE_V1P2 else 0
        return OperationType(kind, "sve", {
            "bits": _vector_bits(config, size), "predicated": predicated, "gather_scatter": vectors.gather_scatter,
        })  # fmt: skip
    if facts.atomic or facts.acquire_release or facts.exclusive:
        return OperationType(kind, "extended", {
            "atomic": facts.atomic, "exclusive": facts.exclusive, "acquire_release": facts.acquire_release,
        })  # fmt: skip
    if facts.unspecified and config.version >= PMSVer.SPE_V1P1:
        return OperationType(kind, "unspecified", {})
    return OperationType(kind, "simd_fp" if facts.simd_fp else "general", {})


def _vector_bits(config: SPUConfig, size: int) -> int | str:
    if size > 2048:
        return "more" if config.spe_sme else 2048
    return _rounded(size, 32)


def _rounded(size: int, least: int) -> int:
    """The next power of two."""
    return max(least, 1 << max(0, size - 1).bit_length())


# Comparing.


@cache
def _engine(name: str) -> RecordEngine:
    return RecordEngine(CONFIGS[name])


def differences(name: str, seed: int, chunk: int, count: int) -> Iterator[str]:
    """What is not as it should be with the records of some random samples, a few lines each."""
    config = CONFIGS[name]
    samples = random_samples(config, (seed, chunk), count)
    written = _engine(name).encode(samples)
    stream = b"".join(written)
    found = list(decode.records(stream))
    if len(found) != count:
        yield f"{count} samples went in, {len(found)} records came out"
    for number, (sample, octets, record) in enumerate(zip(samples, written, found, strict=False)):
        wrong = list(_wrong(config, sample, octets, record))
        if wrong:
            lines = "\n  ".join((*wrong, f"bytes {octets.hex(' ')}", f"of {sample}"))
            yield f"sample {chunk * CHUNK + number}:\n  {lines}"
    for violation in Monitor(config, promises=False).check(stream, found):
        yield f"samples from {chunk * CHUNK} on: {violation}"


def _wrong(config: SPUConfig, sample: Sample, octets: bytes, record: decode.Record) -> Iterator[str]:
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
