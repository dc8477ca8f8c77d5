"""Tests of the packet serializer: records in, beats out, with any timing on both sides."""

from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from configurations import FOR_BLOCKS
from spurtle.config import SPUConfig
from spurtle.config.record_layouts import LAST, Packet
from spurtle.gateware.serializer import Serializer
from spurtle_sim.model import records
from tests.support.gateware import Bench, cycle, random_sample
from tests.support.seeds import SEED
from tests.support.tiers import configurations, tiers


def image(config: SPUConfig, packets: dict[Packet, bytes]) -> int:
    """Return packets as the bits of `record.record_layout`."""
    layout, sizes = config.layout, config.packet_bytes
    offsets = layout.offsets(sizes)
    octets = bytearray(offsets[Packet.TIMESTAMP] + sizes[Packet.TIMESTAMP] if layout.packed else layout.max_size)
    for packet, content in packets.items():
        padded = packet in LAST and not (layout.packed or layout.padding_last)
        at = len(octets) - len(content) if padded else offsets[packet]
        octets[at : at + len(content)] = content
    fields = [field.packets for field in layout.fields if field.elastic] + [(Packet.TIMESTAMP,)]
    present = sum(any(packet in packets for packet in field) << number for number, field in enumerate(fields))
    return int.from_bytes(octets, "little") | (present << 8 * len(octets) if layout.packed else 0)


class SerializerBench(Bench):
    """A `Serializer` in the simulator."""

    def __init__(self, config: SPUConfig):
        self.config = config
        self.dut = Serializer(config)
        super().__init__(self.dut)

    def sizes(self, sent: Sequence[dict[Packet, bytes]]) -> list[int]:
        """Return the size of each record in bytes."""
        return [len(records.lay_out(self.config, packets.items())) for packets in sent]

    def play(self, sent: Sequence[dict[Packet, bytes]], gaps: Sequence[int], stalls: Sequence[bool]) -> list[list[int]]:
        """Send records. Check the beats and the rules of streams. Return the cycles of the beats of each record.

        `gaps` are the idle cycles before each record, and `stalls` says in which cycles the sink stalls. The first
        follows the last in both.
        """
        config = self.config

        async def scenario(ctx: Any) -> list[list[int]]:
            dut = self.dut
            end = dut.o.p.end if hasattr(dut.o.p, "end") else dut.o.p.last
            received: list[bytes] = []
            cycles: list[list[int]] = [[]]
            octets = b""
            source, gap, stalled = 0, gaps[0], None
            for now in range(100 + (sum(gaps) + 40) * len(sent) * (1 + len(stalls))):
                if len(received) == len(sent):
                    break
                valid = source < len(sent) and gap == 0
                gap = max(gap - 1, 0)
                inputs = [
                    (dut.i.valid, valid),
                    (dut.i.payload.as_value(), image(config, sent[source]) if valid else 0),
                    (dut.o.ready, not stalls[now % len(stalls)]),
                ]
                accepted, out, ready, data, last, units = await cycle(
                    ctx, inputs, dut.i.ready, dut.o.valid, dut.o.ready, dut.o.p.data, dut.o.p.last, end
                )
                if stalled is not None:
                    assert (out, data, last, units) == stalled, "a stalled beat must hold its value"
                stalled = (out, data, last, units) if out and not ready else None
                if out and ready:
                    size = (
                        units * config.layout.align if last and end is not dut.o.p.last and units else config.bus_bytes
                    )
                    octets += data.to_bytes(config.bus_bytes, "little")[:size]
                    cycles[-1].append(now)
                    if last:
                        received.append(octets)
                        cycles.append([])
                        octets = b""
                if valid and accepted:
                    source += 1
                    gap = gaps[source % len(gaps)]
            assert received == [records.lay_out(config, packets.items()) for packets in sent]
            return cycles[:-1]

        return self.run(scenario)

    def independent_of_ready(self, sent: Sequence[dict[Packet, bytes]]) -> None:
        """Check that `i.ready` does not depend on `o.ready` in the same cycle."""

        async def scenario(ctx: Any) -> None:
            dut, random = self.dut, Random(SEED)
            source = 0
            while source < len(sent):
                ctx.set(dut.i.valid, 1)
                ctx.set(dut.i.payload.as_value(), image(self.config, sent[source]))
                readiness = []
                for ready in (0, 1):
                    ctx.set(dut.o.ready, ready)
                    readiness.append(ctx.get(dut.i.ready))
                assert readiness[0] == readiness[1]
                ctx.set(dut.o.ready, random.random() < 0.6)
                source += readiness[0]
                await ctx.tick()

        self.run(scenario)


def random_packets(config: SPUConfig, seed: int, count: int) -> list[dict[Packet, bytes]]:
    """Return the packets of random samples."""
    random = Random(seed)
    return [dict(records.packets(config, random_sample(random, config))) for _ in range(count)]


@pytest.fixture(scope="module", params=configurations(FOR_BLOCKS))
def bench(request: pytest.FixtureRequest) -> SerializerBench:
    return SerializerBench(request.param)


def test_records_follow_without_an_idle_cycle(bench: SerializerBench) -> None:
    """A fixed layout has the minimum number of beats, without an idle cycle between records."""
    if bench.config.layout.packed:
        pytest.skip("records of several sizes")
    beats = bench.config.max_record_bytes // bench.config.bus_bytes
    cycles = bench.play(random_packets(bench.config, 1, 5), [0], [False])
    assert [beat for record in cycles for beat in record] == list(range(1, 5 * beats + 1))


@pytest.mark.parametrize(
    ("name", "combinations", "distance"),
    tiers(fast=[("kunpeng_920", 24, 1), ("hisilicon_mobile", 24, 1)], full=[("arm_model", 48, 2)]),
)
def test_loads_and_branches_take_at_most_a_quarter_more_cycles_than_beats(
    name: str, combinations: int, distance: int
) -> None:
    """Beats have 8 bytes. Records follow immediately, with and without each optional packet.

    These are contexts, the physical address, the data source, the previous branch target and the Timestamp. `distance`
    is the largest number of cycles from the last beat of a record to the first beat of the next one. In `arm_model` the
    first step can have less than a beat.
    """
    bench = SerializerBench(FOR_BLOCKS[name])
    kinds: dict[frozenset[Packet], dict[Packet, bytes]] = {}
    for packets in random_packets(bench.config, 3, 4000):
        if Packet.VA in packets or Packet.TARGET in packets:
            kinds[frozenset(packets)] = packets
    assert len(kinds) == combinations
    # Each kind is sent three times, so that two of the records follow one of their kind.
    cycles = bench.play([packets for packets in kinds.values() for _ in range(3)], [0], [False])
    ends = [record[-1] for record in cycles]
    beats = [-(-size // 8) for size in bench.sizes(list(kinds.values()))]
    for kind, beat_count, first, second, third in zip(kinds, beats, ends[::3], ends[1::3], ends[2::3], strict=True):
        assert max(second - first, third - second) <= 1.25 * beat_count, sorted(packet.value for packet in kind)
    assert cycles[0][0] == 2 + distance, "the first beat of a record that no other precedes"
    assert max(after[0] - before[-1] for before, after in pairwise(cycles)) == distance


def test_input_ready_does_not_depend_on_output_ready(bench: SerializerBench) -> None:
    bench.independent_of_ready(random_packets(bench.config, 4, 60))


@settings(max_examples=15)
@given(
    seed=st.integers(0, (1 << 32) - 1),
    gaps=st.lists(st.sampled_from([0, 0, 1, 2, 9]), min_size=1, max_size=5),
    stalls=st.lists(st.booleans(), min_size=1, max_size=12).filter(lambda stalls: not all(stalls)),
)
def test_any_timing(bench: SerializerBench, seed: int, gaps: list[int], stalls: list[bool]) -> None:
    bench.play(random_packets(bench.config, seed, 6), gaps, stalls)
