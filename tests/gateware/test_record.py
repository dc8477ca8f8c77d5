"""Tests of the construction of records against the reference, byte for byte."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from configurations import FEATURES, FOR_BLOCKS
from spurtle.arch import ETS, Header, OperationClass
from spurtle.arch.operation_types import GENERAL, UNSPECIFIED
from spurtle.config import SPUConfig
from spurtle.config.record_layouts import LAST, Packet
from spurtle.gateware.record import RecordBuilder, settling_cycles
from spurtle.gateware.spu import RecordPath
from spurtle.interface.operation import VectorsLayout
from spurtle_sim.cosim.pack import sample_bits
from spurtle_sim.model import records
from spurtle_sim.model.operation import Facts, Location, Operation, Sample, Start, Vectors
from tests.support.gateware import Bench, cycle, uniform_samples
from tests.support.tiers import configurations

ALL = (1 << 64) - 1
NO_VECTORS = Vectors()


class RecordBench(Bench):
    """A `RecordBuilder` in the simulator."""

    def __init__(self, config: SPUConfig):
        self.config = config
        self.dut = RecordBuilder(config)
        super().__init__(self.dut)

    def check(self, sample: Sample, hidden: int = ALL) -> dict[Packet, bytes]:
        """Return the packets. Check that they agree with the reference; unused bits of the sample are `hidden`."""
        layout = self.config.layout

        async def scenario(ctx: Any) -> tuple[int, int]:
            ctx.set(self.dut.sample.as_value(), sample_bits(self.config, sample, hidden))
            for _ in range(settling_cycles(self.config)):
                await ctx.tick()
            packets = self.dut.packets
            return ctx.get(packets.octets), ctx.get(packets.present) if layout.packed else 0

        octets, present = self.run(scenario)
        expected = dict(records.packets(self.config, sample))
        image = bytearray(len(self.dut.packets.octets) // 8)
        for packet, content in expected.items():
            at = layout.offsets(self.config.packet_bytes)[packet]
            if packet in LAST and not (layout.packed or layout.padding_last):
                at = len(image) - len(content)
            image[at : at + len(content)] = content
        assert octets.to_bytes(len(image), "little") == image, (sample, expected)
        if layout.packed:
            fields = [field for field in layout.fields if field.elastic]
            present_fields = [any(packet in expected for packet in field.packets) for field in fields]
            present_fields.append(Packet.TIMESTAMP in expected)
            assert present == sum(bit << number for number, bit in enumerate(present_fields)), sample
        return expected


@pytest.fixture(scope="module", params=configurations(FOR_BLOCKS, fast=["minimal", "v1p4", "everything"]))
def bench(request: pytest.FixtureRequest) -> RecordBench:
    return RecordBench(request.param)


@settings(max_examples=200)
@given(st.data())
def test_like_the_reference(bench: RecordBench, data: st.DataObject) -> None:
    bench.check(data.draw(uniform_samples(bench.config)), hidden=data.draw(st.integers(0, ALL)))


def everything(config: SPUConfig, vectors: Vectors = NO_VECTORS, **facts: int) -> Sample:
    """Return a sample in which all numbers are all ones."""
    location = Location(ALL >> 8, 3, 1, int(config.rme))
    valid = ("va_valid", "pa_valid", "va_tagged", "data_source_valid", "imp_counter_valid", "imp_address_valid")
    return Sample(
        start=Start(
            el=1, nse=int(config.rme), contextidr_el1=ALL >> 32, timestamp=ALL, collect_pa=True, collect_nv2_va=True
        ),
        operation=Operation(
            facts=Facts(**dict.fromkeys(valid, 1), **facts),
            events=(1 << 8 * config.events_bytes) - 1,
            pc=ALL >> 8,
            target=location,
            va=ALL,
            pa=ALL >> 8,
            pa_ns=1,
            pa_nse=int(config.rme),
            pa_checked=int(config.mte),
            pa_tag=15 * config.mte,
            data_source=(1 << 8 * config.data_source_bytes) - 1,
            vectors=vectors,
            imp_counter=((1 << config.counter_bits) - 1) * (config.imp_counter != 0),
            imp_address=ALL * (config.imp_address != 0),
        ),
        previous_target=location if config.pbt else None,
        total=ALL,
        issue=ALL,
        translation=ALL,
        alternate_issue=ALL * (config.altclk != 0),
    )


# All combinations of the facts that determine which packets are present.
@pytest.mark.parametrize("kind", [{}, {"load": 1}, {"store": 1}, {"load": 1, "store": 1}, {"branch": 1}], ids=str)
def test_every_kind_of_operation(bench: RecordBench, kind: dict[str, int]) -> None:
    names = (
        "atomic",
        "acquire_release",
        "exclusive",
        "simd_fp",
        "conditional",
        "taken",
        "asynchronous",
        "retired",
        "exception",
    )
    for bits in range(1 << len(names)):
        bench.check(everything(bench.config, **kind, **{name: bits >> bit & 1 for bit, name in enumerate(names)}))


@pytest.mark.parametrize("access", [{"load": 1}, {"store": 1}, {"load": 1, "store": 1}], ids=str)
def test_a_branch_that_accesses_memory_is_recorded_as_a_branch(bench: RecordBench, access: dict[str, int]) -> None:
    """Accesses to the Guarded control stack (D17.6.3). Their addresses are recorded only with FEAT_GCS."""
    packets = bench.check(everything(bench.config, branch=1, taken=1, gcs=1, retired=1, **access))
    assert packets[Packet.OPERATION][0] == Header.OPERATION | OperationClass.BRANCH
    assert Packet.TARGET in packets
    assert (Packet.VA in packets) == bench.config.gcs


# All sizes at which the encoding changes, their neighbors, and sizes without an encoding.
SIZES = sorted({size + step for power in range(19) for size in [1 << power] for step in (-1, 0, 1)} - {1 << 19})


@pytest.mark.parametrize("kind", [{}, {"load": 1}, {"store": 1}], ids=str)
def test_every_vector_length(bench: RecordBench, kind: dict[str, int]) -> None:
    if not bench.config.scalable:
        pytest.skip("no vector length is recorded")
    largest = 1 << (19 if bench.config.spe_sme else 12)
    forms = [Vectors(sve=1), Vectors(sve=1, predicated=1)]
    if bench.config.spe_sme:
        forms = [Vectors(sve=1, count=count) for count in (0, 1, 3, 31)]
        forms += [Vectors(sme=1, count=count) for count in (1, 3, 16)]
        forms += [Vectors(sme=1, tile=1), Vectors(sme=1, tile=1, whole_array=1, count=1)]
    for form in forms:
        for size in [*SIZES, largest - 1]:
            if size < largest:
                bench.check(everything(bench.config, replace(form, bits=size), retired=1, **kind))


@pytest.mark.parametrize(("name", "largest"), [("spe_sme", 128 << ETS.BITS_262144), ("sve", 2048), ("sme", 2048)])
def test_the_width_of_the_vector_size(name: str, largest: int) -> None:
    assert VectorsLayout(FEATURES[f"minimal_{name}"])["bits"].width == largest.bit_length()


def test_an_operation_that_did_not_retire_has_events_and_timestamp_only(bench: RecordBench) -> None:
    packets = bench.check(everything(bench.config, load=1, asynchronous=1))
    assert packets.keys() == {Packet.EVENTS, Packet.TIMESTAMP}
    assert not any(packets[Packet.EVENTS][1:])


@pytest.mark.parametrize("config", configurations(FOR_BLOCKS))
def test_a_sample_is_held_until_its_record_is_accepted(config: SPUConfig) -> None:
    """The sample determines whether the record is dropped, so it is held even if all beats have been read."""
    path = RecordPath(config)
    many_cycles = 4 * config.max_record_bytes // config.bus_bytes + 20

    async def scenario(ctx: Any) -> None:
        async def cycles(*accepted: int) -> list[tuple[int, int]]:
            """Return for each cycle whether the sample is accepted, and whether the record ends."""
            ends = path.beat.valid & path.beat.payload.last
            inputs = [(path.sample.valid, 1), (path.beat.ready, 1)]
            return [await cycle(ctx, [*inputs, (path.accepted, now)], path.sample.ready, ends) for now in accepted]

        for _ in range(3):
            assert sorted(await cycles(*[0] * many_cycles)) == [*[(0, 0)] * (many_cycles - 1), (0, 1)]
            assert await cycles(1, 0) == [(0, 0), (1, 0)]

    Bench(path).run(scenario)


@pytest.mark.parametrize("kind", ["load", "store"])
@pytest.mark.parametrize("sme", [0, 1])
def test_an_sme_access_has_unspecified_registers_without_feat_spe_sme(kind: str, sme: int) -> None:
    """The format of other accesses does not change (D17.6.6)."""
    config = FEATURES["minimal_sme"]
    operation = Operation(facts=Facts(retired=1, simd_fp=1, **{kind: 1}), vectors=Vectors(sme=sme))
    packets = RecordBench(config).check(Sample(start=Start(), operation=operation))
    form = UNSPECIFIED.pack(LDST=kind == "store") if sme else GENERAL.pack(LDST=kind == "store", SIMD_FP=1)
    assert packets[Packet.OPERATION][-1] == form
