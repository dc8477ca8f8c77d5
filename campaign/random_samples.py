"""Samples with random facts, drawn thousands at a time."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spurtle.config import SPUConfig
from spurtle.config.record_layouts import Packet
from spurtle_sim.model.operation import Facts, Location, Operation, Sample, Start, Vectors
from tests.support.operation_kinds import KINDS, RARE

__all__ = ["random_samples"]


class _Columns:
    """Columns of random numbers, one for each sample: numpy draws thousands as fast as Python draws a few."""

    def __init__(self, generator: np.random.Generator, samples: int):
        self._generator, self._samples = generator, samples

    def below(self, limit: int) -> NDArray[np.uint64]:
        return self._generator.integers(0, limit, self._samples, np.uint64)

    def bits(self, width: int) -> NDArray[np.uint64]:
        return self.below(1 << width)

    def rare(self, probability: float) -> NDArray[np.uint64]:
        """Return ones with this probability, otherwise zeros."""
        return (self._generator.random(self._samples) < probability).astype(np.uint64)

    def any_of(self, *columns: NDArray[np.uint64]) -> NDArray[np.uint64]:
        return np.choose(self.below(len(columns)).astype(np.intp), columns)

    def number(self, width: int) -> NDArray[np.uint64]:
        """Return numbers of `width` bits of which a half are random, a quarter all zeros and a quarter all ones."""
        one = np.uint64((1 << width) - 1)
        return self.any_of(self.bits(width), self.bits(width), self.bits(width) & np.uint64(0), self.bits(width) | one)

    def size(self, width: int) -> NDArray[np.uint64]:
        """Return sizes of vectors and tiles: powers of two, which have an encoding, their neighbors, and others."""
        power, one = np.uint64(1) << self.below(width + 1), np.uint64(1)
        return self.any_of(self.bits(width), power, power - one, power + one) & np.uint64((1 << width) - 1)


def random_samples(config: SPUConfig, seed: Sequence[int], count: int) -> list[Sample]:
    """Return samples with facts in any combination that a core may report, plausible or not.

    A branch is neither a load nor a store, unless it accesses the Guarded control stack. A memory set is not a load.
    Facts of features that are not implemented are random; other fields of these features are zero.
    """
    columns = _Columns(np.random.default_rng(seed), count)
    bits, number = columns.bits, columns.number
    nse = 1 if config.rme else 0

    def locations() -> list[Location]:
        return [Location(*row) for row in _rows(number(56), bits(2), bits(1), bits(nse))]

    def optional(values: list[Any], possible: object) -> list[Any]:
        present = columns.rare(0.5 if possible else 0).tolist()
        return [value if is_present else None for value, is_present in zip(values, present, strict=True)]

    def latency() -> list[int]:
        return columns.any_of(columns.below(40), bits(config.counter_bits + 1)).tolist()

    def context(packet: Packet) -> list[int | None]:
        return optional(bits(32).tolist(), packet in config.layout.packets)

    facts, vectors, mte = _facts(config, columns), _vectors(config, columns), int(config.mte)
    starts = {
        "el": bits(2).tolist(), "ns": bits(1).tolist(), "nse": bits(nse).tolist(),
        "contextidr_el1": context(Packet.CONTEXT_EL1), "contextidr_el2": context(Packet.CONTEXT_EL2),
        "timestamp": optional(bits(64).tolist(), True), "collect_pa": columns.rare(0.5).astype(bool).tolist(),
        "collect_nv2_va": columns.rare(0.5).astype(bool).tolist(),
    }  # fmt: skip
    targets = locations()
    numbers = {
        "events": number(8 * config.events_bytes), "pc": number(56), "va": number(64), "pa": number(56),
        "pa_ns": bits(1), "pa_nse": bits(nse), "pa_checked": bits(mte), "pa_tag": bits(4 * mte),
        "data_source": number(8 * config.data_source_bytes),
    }  # fmt: skip
    operations = {"facts": facts, "vectors": vectors, "target": targets, **_lists(numbers)}
    return _objects(
        Sample,
        {
            "start": _objects(Start, starts),
            "operation": _objects(Operation, operations),
            "previous_target": optional(locations(), config.pbt),
            **{name: latency() for name in config.latencies},
        },
    )


def _facts(config: SPUConfig, columns: _Columns) -> list[Facts]:
    bits = columns.bits
    facts = {name: bits(1) for name in Facts.__slots__}
    facts |= {name: columns.rare(0.15) for name in RARE}
    facts |= zip(("load", "store", "branch"), np.array(KINDS, np.uint64)[columns.below(len(KINDS))].T, strict=True)
    facts |= {"retired": columns.rare(0.9), "exception": columns.rare(0.1)}
    both = facts["memory_copy"] & bits(1) if config.mops else bits(0)
    may = facts["gcs"] | (facts["branch"] ^ np.uint64(1))
    facts["load"] = (facts["load"] | both) & may & ~(facts["memory_set"] & ~facts["memory_copy"])
    facts["store"] = (facts["store"] | both) & may
    return _objects(Facts, _lists(facts))


def _vectors(config: SPUConfig, columns: _Columns) -> list[Vectors]:
    bits = columns.bits
    sve, sme, named = int(config.scalable), int(config.sme), int(config.spe_sme)
    vectors = {
        "sve": bits(sve), "predicated": bits(sve), "gather_scatter": bits(sve),
        "sme": bits(sme) & bits(1), "tile": bits(named), "whole_array": bits(named) & bits(1),
        "bits": columns.any_of(columns.size(12 * sve), columns.size(19 if named else 12 * sve)),
        "count": columns.any_of(columns.below(1 + 4 * named), bits(5 * named)),
    }  # fmt: skip
    return _objects(Vectors, _lists(vectors))


def _lists(columns: Mapping[str, NDArray[np.uint64]]) -> dict[str, list[Any]]:
    return {name: column.tolist() for name, column in columns.items()}


def _rows(*columns: NDArray[np.uint64]) -> Iterator[tuple[int, ...]]:
    return zip(*(column.tolist() for column in columns), strict=True)


def _objects(kind: type[Any], columns: dict[str, list[Any]]) -> list[Any]:
    """Return one object for each row."""
    names = tuple(columns)
    return [kind(**dict(zip(names, row, strict=True))) for row in zip(*columns.values(), strict=True)]
