"""Record construction against the reference's `records.encode`, byte for byte."""

from typing import Any

import pytest
from gateware import VARIANTS, Bench, sample_bits, samples
from hypothesis import given, settings
from hypothesis import strategies as st

from spurtle.config import SPUConfig
from spurtle.record import Record
from spurtle_sim.reference import records
from spurtle_sim.reference.records import Facts, Location, Operation, Sample, Start

ALL = (1 << 64) - 1


class RecordBench(Bench):
    def __init__(self, config: SPUConfig):
        self.config = config
        self.dut = Record(config)
        super().__init__(self.dut)

    def check(self, sample: Sample, hidden: int = ALL) -> bytes:
        """The record, which is the reference's, whatever `hidden` the gateware was given where it may not collect."""

        async def scenario(ctx: Any) -> tuple[int, int]:
            ctx.set(self.dut.sample.as_value(), sample_bits(self.config, sample, hidden))
            await ctx.tick()
            return ctx.get(self.dut.octets), ctx.get(self.dut.events)

        octets, events = self.run(scenario)
        record = octets.to_bytes(self.config.record_bytes, "little")
        assert record == records.encode(self.config, sample), (record.hex(), sample)
        assert events == records.events(self.config, sample)
        return record


@pytest.fixture(scope="module", params=VARIANTS.values(), ids=VARIANTS)
def bench(request: pytest.FixtureRequest) -> RecordBench:
    return RecordBench(request.param)


@settings(max_examples=200)
@given(st.data())
def test_like_the_reference(bench: RecordBench, data: st.DataObject) -> None:
    bench.check(data.draw(samples(bench.config)), hidden=data.draw(st.integers(0, ALL)))


def everything(config: SPUConfig, **facts: int) -> Sample:
    """A sample with each number all ones."""
    return Sample(
        start=Start(el=1, contextidr_el1=ALL >> 32, timestamp=ALL, collect_pa=True),
        operation=Operation(
            facts=Facts(va_valid=1, pa_valid=1, va_tagged=1, data_source_valid=1, **facts),
            events=(1 << 8 * config.events_bytes) - 1,
            pc=ALL >> 8,
            target=Location(ALL >> 8, 3, 1),
            va=ALL,
            pa=ALL >> 8,
            pa_ns=1,
            data_source=(1 << 8 * config.data_source_bytes) - 1,
        ),
        total=ALL,
        issue=ALL,
        translation=ALL,
    )


# Every combination of the facts that decide which packets there are.
@pytest.mark.parametrize("kind", [{}, {"load": 1}, {"store": 1}, {"load": 1, "store": 1}, {"branch": 1}], ids=str)
def test_every_kind_of_operation(bench: RecordBench, kind: dict[str, int]) -> None:
    names = (
        "atomic",
        "acquire_release",
        "exclusive",
        "simd_fp",
        "conditional",
        "taken",
        "indirect",
        "retired",
        "exception",
    )
    for bits in range(1 << len(names)):
        bench.check(everything(bench.config, **kind, **{name: bits >> bit & 1 for bit, name in enumerate(names)}))


def test_an_operation_that_did_not_retire_shows_nothing(bench: RecordBench) -> None:
    record = bench.check(everything(bench.config, load=1))
    events = bench.config.packet_offsets[records.Packet.EVENTS]
    assert set(record[:-9]) - {record[events]} == {0}
