"""Tests of records and the filter of the gateware against the reference in random configurations."""

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from itertools import product
from random import Random
from typing import Any

import pytest

from spurtle.arch import AltClk, PMSVer
from spurtle.config import SPUConfig
from spurtle.config.record_layouts import LAST, Packet
from spurtle.gateware.spu import RecordPath
from spurtle_sim.cosim.pack import sample_bits
from spurtle_sim.model import records
from spurtle_sim.model.operation import Sample
from spurtle_sim.records.checks import Monitor
from spurtle_sim.records.decode import decode_records
from spurtle_sim.records.json_object import to_json
from spurtle_sim.records.json_sample import from_json
from tests.support.filter_bench import FilterBench
from tests.support.gateware import Bench, random_registers, random_sample
from tests.support.random_configurations import random_configuration
from tests.support.samples import plausible
from tests.support.seeds import SEED
from tests.support.tiers import tiers

SAMPLES = 25
"""Number of samples in each configuration."""


class RecordPathBench(Bench):
    """A `RecordPath` in the simulator."""

    def __init__(self, config: SPUConfig):
        self.config = config
        self.dut = RecordPath(config)
        # The simulator writes masks in decimal. Those of 2,048 bytes have more digits than Python converts by default.
        digits = sys.get_int_max_str_digits()
        sys.set_int_max_str_digits(0)
        try:
            super().__init__(self.dut)
        finally:
            sys.set_int_max_str_digits(digits)

    def encode(self, samples: Iterable[Sample]) -> list[bytes]:
        """Return the record of each sample. No beat is stalled."""
        dut, config = self.dut, self.config

        async def scenario(ctx: Any) -> list[bytes]:
            ctx.set(dut.beat.ready, 1)
            ctx.set(dut.accepted, 1)
            encoded = []
            for sample in samples:
                ctx.set(dut.sample.payload.as_value(), sample_bits(config, sample))
                await ctx.tick().repeat(2)
                ctx.set(dut.sample.valid, 1)
                octets, last = b"", 0
                while not last:
                    valid, last, data, end, accepted = await self._cycle(ctx)
                    if accepted:
                        ctx.set(dut.sample.valid, 0)
                    if valid:
                        octets += data.to_bytes(config.bus_bytes, "little")[: end * config.layout.align or None]
                encoded.append(octets)
            return encoded

        return self.run(scenario)

    async def _cycle(self, ctx: Any) -> Sequence[int]:
        """Advance by one cycle. Return `valid`, `last`, `data` and `end` of the beat, and `ready` of the sample."""
        beat, sample = self.dut.beat, self.dut.sample
        end = beat.p.end if hasattr(beat.p, "end") else beat.valid
        _, _, valid, last, data, units, accepted = await ctx.tick().sample(
            beat.valid, beat.p.last, beat.p.data, end, sample.ready
        )
        last &= valid
        return valid, last, data, units if last and end is not beat.valid else 0, accepted


@pytest.mark.full
def test_every_choice_is_drawn() -> None:
    random = Random(SEED)
    drawn = [random_configuration(random) for _ in range(200)]
    for field in fields(SPUConfig):
        if field.type is bool:
            assert {getattr(config, field.name) for config in drawn} == {False, True}, field.name
    for name, every in (("version", PMSVer), ("altclk", AltClk), ("bus_bytes", (4, 8, 16, 32, 64))):
        assert {getattr(config, name) for config in drawn} == {*every}, name
    layouts = [config.layout for config in drawn]
    assert {(layout.packed, layout.padding_last) for layout in layouts} == {*product((False, True), repeat=2)}
    assert {layout.align for layout in layouts} >= {1, 2, 4, 8, 128, 256, 512, 1024, 2048}
    assert {*Packet} == {packet for layout in layouts for field in layout.fields for packet in field.packets} | {*LAST}
    assert any(len(field.runs) == 2 for layout in layouts for field in layout.fields)
    assert any(len(field.runs[0]) > 1 and field.elastic for layout in layouts for field in layout.fields)


@pytest.mark.parametrize("count", tiers(fast=[2], full=[6], long=[200]))
def test_like_the_reference(count: int, record_property: Callable[[str, object], None]) -> None:
    for number in range(count):
        random = Random(f"{SEED} {number}")
        config = random_configuration(random)
        samples = [random_sample(random, config) for _ in range(SAMPLES)]
        for sample, octets in zip(samples, RecordPathBench(config).encode(samples), strict=True):
            assert octets == records.encode(config, sample), (number, config, sample)
        decisions = [(random_registers(random, config, sample), sample) for sample in samples for _ in range(2)]
        FilterBench(config).check(decisions)
    record_property("configurations", count)


@pytest.mark.parametrize("count", tiers(fast=[20], full=[200], long=[4_000]))
def test_records_are_read_and_made_again(count: int) -> None:
    """Each record satisfies the invariants, and its decoded facts encode to the same record."""
    for number in range(count):
        random = Random(f"{SEED} {number}")
        config = random_configuration(random)
        samples = [plausible(config, random_sample(random, config)) for _ in range(SAMPLES)]
        encoded = [records.encode(config, sample) for sample in samples]
        assert Monitor(config, core=False).check(b"".join(encoded)) == [], (number, config)
        for sample, octets in zip(samples, encoded, strict=True):
            (record,) = decode_records(octets)
            facts = json.loads(json.dumps(to_json(record)))
            assert records.encode(config, from_json(config, facts)) == octets, (number, config, sample)
