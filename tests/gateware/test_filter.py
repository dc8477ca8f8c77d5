"""Tests of the record filter against `filtering.collect` and `filtering.feed` of the reference.

tests/system/test_filter_decisions.py compares a million random decisions of the generated Verilog.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from random import Random

import pytest

from configurations import FEATURES, FOR_BLOCKS
from spurtle.arch import PMSFCR_EL1
from spurtle.config import UnpredictableFilter
from spurtle_sim.model import filtering
from spurtle_sim.model.operation import Facts, Operation, Sample, Start
from spurtle_sim.model.registers import Registers
from tests.support.filter_bench import FilterBench
from tests.support.gateware import random_registers, random_sample
from tests.support.seeds import SEED
from tests.support.tiers import configurations

CONFIGS = {**FOR_BLOCKS, **FEATURES}


@pytest.fixture(scope="module", params=configurations(CONFIGS))
def bench(request: pytest.FixtureRequest) -> FilterBench:
    return FilterBench(request.param)


@pytest.fixture(scope="module")
def everything() -> FilterBench:
    """Return a filter with all features."""
    return FilterBench(FOR_BLOCKS["v1p4"])


def plain(total: int = 10, data_source: int = 0, **facts: int) -> Sample:
    return Sample(
        start=Start(), operation=Operation(facts=Facts(retired=1, **facts), data_source=data_source), total=total
    )


def test_like_the_reference(bench: FilterBench) -> None:
    random = Random(SEED)
    samples = [random_sample(random, bench.config) for _ in range(400)]
    verdicts = bench.check((random_registers(random, bench.config, sample), sample) for sample in samples)
    assert min(Counter(verdicts).values()) >= 50, "one verdict is rare"


# D17.5.1.


def test_every_combination_of_facts(bench: FilterBench) -> None:
    names = ("load", "store", "branch", "exception", "simd_fp", "vector", "floating_point")
    for bits in product((0, 1), repeat=len(names)):
        facts = dict(zip(names, bits, strict=True))
        if not (facts["branch"] and (facts["load"] or facts["store"])) or bench.config.gcs:
            bench.check([(Registers(), plain(gcs=facts["branch"], **facts))])


@pytest.mark.long
def test_every_setting_of_types_and_masks(everything: FilterBench) -> None:
    """All settings with FEAT_SPE_EFT, for each combination of types."""

    def decisions() -> Iterable[tuple[Registers, Sample]]:
        for flags in range(32):
            names = ("branch", "load", "store", "floating_point", "vector")
            facts = {name: flags >> bit & 1 for bit, name in enumerate(names)}
            sample = plain(gcs=facts["branch"], **facts)
            assert filtering.type_flags(everything.config, sample.operation.facts) == flags
            for types, masks in product(range(32), repeat=2):
                yield Registers(PMSFCR_EL1=PMSFCR_EL1.pack(FT=1) | types << 16 | masks << 48), sample

    verdicts = everything.check(decisions())
    # The m masked flags must equal the setting, which leaves 2 ** (5 - m) combinations. If c other types are selected,
    # the combinations without any of them are discarded.
    passing = sum(2 ** (5 - m) - (2 ** (5 - m - c) if c else 0) for m, c in _masked_and_selected())
    assert sum(verdicts) == passing


def _masked_and_selected() -> Iterable[tuple[int, int]]:
    """Yield the number of types with a mask and the number of other selected types, for each setting."""
    for types, masks in product(range(32), repeat=2):
        yield masks.bit_count(), (types & ~masks).bit_count()


def test_every_setting_of_types_without_masks(bench: FilterBench) -> None:
    kinds = [{}, {"load": 1}, {"load": 1, "store": 1}, {"store": 1}, {"branch": 1}, {"branch": 1, "exception": 1}]
    settings = [Registers(PMSFCR_EL1=PMSFCR_EL1.pack(FT=1) | types << 16) for types in range(8)]
    bench.check((registers, plain(**facts)) for registers, facts in product(settings, kinds))


# D17.5.3, D17.5.4.


def test_the_saturated_latency_is_compared(bench: FilterBench) -> None:
    largest = (1 << bench.config.counter_bits) - 1
    written = Registers(PMSFCR_EL1=PMSFCR_EL1.pack(FL=1), PMSLATFR_EL1=largest)
    totals = (largest - 1, largest, largest + 1, largest * 3)
    assert bench.check((written, plain(total)) for total in totals) == [False, True, True, True]


def test_every_data_source(everything: FilterBench) -> None:
    """The low six bits of a data source select the bit of PMSDSFR_EL1."""
    sources = [*range(64), *range(64, 128), 0xFFC0, 0xFFFF]
    bits = [Registers(PMSFCR_EL1=PMSFCR_EL1.pack(FDS=1), PMSDSFR_EL1=1 << bit) for bit in range(64)]
    pairs = [*product(sources, range(64))]
    verdicts = everything.check(
        (bits[bit], plain(load=1, data_source_valid=1, data_source=source)) for source, bit in pairs
    )
    assert verdicts == [source % 64 == bit for source, bit in pairs]


@pytest.mark.parametrize(
    "facts",
    [{"load": 1}, {"store": 1, "data_source_valid": 1}, {"branch": 1, "data_source_valid": 1}, {"data_source_valid": 1},
     {"load": 1, "data_source_valid": 1, "exception": 1},
     {"load": 1, "store": 1, "data_source_valid": 1, "memory_copy": 1, "destination": 1}],
    ids=str,
)  # fmt: skip
def test_operations_without_a_data_source_pass(everything: FilterBench, facts: dict[str, int]) -> None:
    assert everything.check([(Registers(PMSFCR_EL1=PMSFCR_EL1.pack(FDS=1)), plain(**facts))]) == [True]


# CONSTRAINED UNPREDICTABLE.


@pytest.fixture(scope="module", params=UnpredictableFilter, ids=lambda choice: choice.name)
def either(request: pytest.FixtureRequest) -> tuple[FilterBench, FilterBench, bool]:
    """Return the smallest filter and one with FEAT_SPE_FnE, with the same choice; and whether the record passes."""
    choice = request.param
    configs = (FOR_BLOCKS["minimal"], FEATURES["minimal_fne"])
    small, fne = (FilterBench(replace(config, unpredictable_filter=choice)) for config in configs)
    return small, fne, choice is UnpredictableFilter.NO_EFFECT


@pytest.mark.parametrize("enable", ["FE", "FT", "FL", "FnE"])
def test_a_filter_that_selects_nothing(either: tuple[FilterBench, FilterBench, bool], enable: str) -> None:
    small, fne, passes = either
    registers = Registers(PMSFCR_EL1=PMSFCR_EL1.pack(**{enable: 1}))
    for bench in [fne] if enable == "FnE" else [small, fne]:
        assert bench.check([(registers, plain()), (Registers(), plain())]) == [passes, True]


@pytest.mark.parametrize("events", [1 << 5, 1 << 1, 1 << 5 | 1 << 1])
def test_an_event_that_both_event_filters_select(either: tuple[FilterBench, FilterBench, bool], events: int) -> None:
    """Both event filters have no effect, or both discard all records. Other filters are not affected."""
    _, bench, passes = either
    overlap = Registers(PMSFCR_EL1=PMSFCR_EL1.pack(FE=1, FnE=1), PMSEVFR_EL1=events, PMSNEVFR_EL1=1 << 2 | events)
    latency = replace(overlap, PMSFCR_EL1=PMSFCR_EL1.pack(FE=1, FnE=1, FL=1), PMSLATFR_EL1=11)
    assert bench.check([(overlap, plain()), (latency, plain(10)), (latency, plain(11))]) == [passes, False, passes]
    # With only one of the two enabled, the result is not UNPREDICTABLE.
    retired = events == 1 << 1
    for enable, verdict in (("FE", retired), ("FnE", events & 1 << 1 == 0)):
        alone = replace(overlap, PMSFCR_EL1=PMSFCR_EL1.pack(**{enable: 1}))
        assert bench.check([(alone, plain())]) == [verdict]


def test_no_selected_type_without_masks_passes_with_feat_spe_eft(everything: FilterBench) -> None:
    """With FEAT_SPE_EFT the result is not UNPREDICTABLE, so that the choice has no effect."""
    registers = Registers(PMSFCR_EL1=PMSFCR_EL1.pack(FT=1))
    discards = FilterBench(replace(everything.config, unpredictable_filter=UnpredictableFilter.DISCARD))
    assert [bench.check([(registers, plain())]) for bench in (everything, discards)] == [[True]] * 2
