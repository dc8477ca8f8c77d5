"""The packet serializer: a record in, full beats out, whatever the pace of either side."""

from collections.abc import Sequence
from typing import Any

import pytest
from gateware import VARIANTS, Bench, cycle
from hypothesis import given, settings
from hypothesis import strategies as st

from spurtle.config import SPUConfig
from spurtle.serializer import Serializer


class SerializerBench(Bench):
    def __init__(self, config: SPUConfig):
        self.config = config
        self.dut = Serializer(config)
        self.beats = config.record_bytes // config.bus_bytes
        super().__init__(self.dut)

    def play(self, gaps: Sequence[int], stalls: Sequence[bool], content: bytes) -> list[int]:
        """One record after each of `gaps`, while the sink stalls as `stalls` says, over and over.

        Checks beats, stream rules and that each record is taken with its last beat. Returns the cycles of the beats.
        """
        size = self.config.record_bytes
        sent = [bytes(byte ^ number for byte in content.ljust(size, b"\xa5")) for number in range(len(gaps))]

        async def scenario(ctx: Any) -> list[int]:
            dut = self.dut
            received: list[bytes] = []
            cycles: list[int] = []
            source, gap, stalled = 0, gaps[0], None
            for now in range(sum(gaps) + 4 * self.beats * (len(gaps) + 1) * (1 + len(stalls))):
                if len(received) == self.beats * len(sent):
                    break
                valid = source < len(sent) and gap == 0
                gap = max(gap - 1, 0)
                inputs = [
                    (dut.i.valid, valid),
                    (dut.i.payload, int.from_bytes(sent[source], "little") if valid else 0),
                    (dut.o.ready, not stalls[now % len(stalls)]),
                ]
                taken, out, ready, data, last = await cycle(
                    ctx, inputs, dut.i.ready, dut.o.valid, dut.o.ready, dut.o.p.data, dut.o.p.last
                )
                if stalled is not None:
                    assert (out, data, last) == stalled, "a stalled beat stands still"
                stalled = (out, data, last) if out and not ready else None
                if out and ready:
                    received.append(data.to_bytes(self.config.bus_bytes, "little"))
                    cycles.append(now)
                    assert last == (len(received) % self.beats == 0)
                if valid and taken:
                    source += 1
                    gap = gaps[source] if source < len(sent) else 0
                    # Its last beat comes out next.
                    assert len(received) == self.beats * source - 1
            assert b"".join(received) == b"".join(sent)
            return cycles

        return self.run(scenario)


@pytest.fixture(scope="module", params=VARIANTS.values(), ids=VARIANTS)
def bench(request: pytest.FixtureRequest) -> SerializerBench:
    return SerializerBench(request.param)


def test_no_idle_beat(bench: SerializerBench) -> None:
    cycles = bench.play([0] * 5, [False], bytes(range(64)))
    assert cycles == list(range(1, 5 * bench.beats + 1))


def test_a_beat_does_not_wait_for_ready(bench: SerializerBench) -> None:
    async def scenario(ctx: Any) -> None:
        dut = bench.dut
        await cycle(ctx, [(dut.i.valid, 1), (dut.o.ready, 0)])
        assert ctx.get(dut.o.valid)

    bench.run(scenario)


@settings(max_examples=25)
@given(
    gaps=st.lists(st.sampled_from([0, 0, 1, 2, 9]), min_size=1, max_size=5),
    stalls=st.lists(st.booleans(), min_size=1, max_size=12).filter(lambda stalls: not all(stalls)),
    content=st.binary(min_size=1, max_size=64),
)
def test_any_pace(bench: SerializerBench, gaps: list[int], stalls: list[bool], content: bytes) -> None:
    bench.play(gaps, stalls, content)
