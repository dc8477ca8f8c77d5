"""The record filter against the reference's `filtering.collect`."""

from collections import Counter
from typing import Any

import pytest
from gateware import VARIANTS, Bench, registers, sample_bits, samples
from hypothesis import given, settings
from hypothesis import strategies as st

from spurtle.arch import PMSFCR_EL1
from spurtle.config import SPUConfig
from spurtle.filter import Filter
from spurtle_sim.reference import filtering, records
from spurtle_sim.reference.records import Facts, Operation, Sample, Start
from spurtle_sim.reference.registers import Registers

PLAIN = Sample(start=Start(), operation=Operation(facts=Facts(retired=1)), total=10)


class FilterBench(Bench):
    def __init__(self, config: SPUConfig):
        self.config = config
        self.dut = Filter(config)
        self.verdicts = Counter[bool]()
        super().__init__(self.dut, clocked=False)

    def check(self, registers: Registers, sample: Sample) -> bool:
        """The verdict, which is the reference's."""
        expected = filtering.collect(self.config, registers, sample)

        async def scenario(ctx: Any) -> int:
            ctx.set(self.dut.sample.as_value(), sample_bits(self.config, sample))
            ctx.set(self.dut.events, records.events(self.config, sample))
            ctx.set(self.dut.pmsfcr.as_value(), registers.PMSFCR_EL1)
            ctx.set(self.dut.pmsevfr.as_value(), registers.PMSEVFR_EL1)
            ctx.set(self.dut.pmslatfr.as_value(), registers.PMSLATFR_EL1)
            return ctx.get(self.dut.collect)

        assert self.run(scenario) == expected
        self.verdicts[expected] += 1
        return expected


@pytest.fixture(scope="module", params=VARIANTS.values(), ids=VARIANTS)
def bench(request: pytest.FixtureRequest) -> FilterBench:
    return FilterBench(request.param)


@settings(max_examples=150)
@given(st.data())
def test_like_the_reference(bench: FilterBench, data: st.DataObject) -> None:
    written = data.draw(registers(bench.config))
    sample = data.draw(samples(bench.config))
    # What random registers seldom are: a filter that is on, and within reach of the sample.
    controls = data.draw(st.tuples(*[st.integers(0, 1)] * 3))
    written.PMSFCR_EL1 |= PMSFCR_EL1.pack(**dict(zip(("FE", "FT", "FL"), controls, strict=True)))
    if data.draw(st.booleans()):
        written.PMSEVFR_EL1 &= records.events(bench.config, sample) | data.draw(st.sampled_from([0, 1 << 1, 1 << 5]))
    if data.draw(st.booleans()):
        latency = records.saturate(bench.config, sample.total) + data.draw(st.integers(-1, 1))
        written.PMSLATFR_EL1 = min(max(latency, 0), (1 << bench.config.counter_bits) - 1)
    bench.check(written, sample)


def test_verdicts_were_mixed(bench: FilterBench) -> None:
    assert min(bench.verdicts[True], bench.verdicts[False]) >= 20


@pytest.mark.parametrize("facts", [Facts(retired=1), Facts(load=1, retired=1), Facts(load=1, store=1, retired=1),
                                   Facts(store=1, retired=1), Facts(branch=1, taken=1, retired=1),
                                   Facts(branch=1, exception=1, retired=1)], ids=str)  # fmt: skip
def test_every_combination_of_types(bench: FilterBench, facts: Facts) -> None:
    sample = Sample(start=Start(), operation=Operation(facts=facts))
    for types in range(8):
        pmsfcr = PMSFCR_EL1.pack(FT=1, B=types & 1, LD=types >> 1 & 1, ST=types >> 2 & 1)
        bench.check(Registers(PMSFCR_EL1=pmsfcr), sample)


@pytest.mark.parametrize("control", ["FE", "FT", "FL"])
def test_a_filter_that_selects_nothing_has_no_effect(bench: FilterBench, control: str) -> None:
    assert bench.check(Registers(PMSFCR_EL1=PMSFCR_EL1.pack(**{control: 1})), PLAIN)


def test_latency_is_compared_saturated(bench: FilterBench) -> None:
    largest = (1 << bench.config.counter_bits) - 1
    written = Registers(PMSFCR_EL1=PMSFCR_EL1.pack(FL=1), PMSLATFR_EL1=largest)
    for total, verdict in ((largest - 1, False), (largest, True), (largest + 1, True), (largest * 3, True)):
        sample = Sample(start=Start(), operation=PLAIN.operation, total=total)
        assert bench.check(written, sample) == verdict
