"""The slot of the sampled operation: what it captures, what it counts, when it is free, and what it discards."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pytest
from gateware import Bench, cycle
from hypothesis import given, settings
from hypothesis import strategies as st

from spurtle.config import CONFIGS, SPUConfig
from spurtle.control import Collect
from spurtle.inflight import InFlight, Sample, Start


@dataclass(frozen=True)
class Journey:
    """One sampled operation. Cycles count from the one in which it passes the sampling point.

    `idle` cycles go by before it could be selected at the earliest; `stop` is a cycle in which the buffer does not run.
    """

    idle: int = 0
    issue: int | None = 1
    finish: int = 2
    translating: frozenset[int] = frozenset()
    vanished: bool = False
    passes: bool = True
    wait: int = 0
    stop: int | None = None

    @property
    def leaves(self) -> bool:
        """A record is offered."""
        stopped = self.stop is not None and self.stop <= self.finish + 2
        return self.passes and not self.vanished and not stopped

    @property
    def free(self) -> int:
        """The first cycle in which a selection is sampled again."""
        if self.vanished:
            return self.finish + 2
        return self.finish + 5 + self.wait if self.leaves else self.finish + 4


class InFlightBench(Bench):
    def __init__(self, config: SPUConfig):
        self.config = config
        self.dut = InFlight(config)
        super().__init__(self.dut)

    def play(self, journeys: Sequence[Journey], seed: int = 0) -> None:
        """The journeys one after the other, and a colliding selection in about every other cycle that has none.

        All inputs that the slot should not look at are noise.
        """
        random = Random(seed)
        dut = self.dut
        steady = dut.sample.payload.as_value()
        outputs = (
            dut.sampled,
            dut.collision,
            dut.fed,
            dut.filtrated,
            dut.pending,
            dut.sample.valid,
            dut.unwanted,
            steady,
        )

        async def scenario(ctx: Any) -> None:
            now = 0
            slot_free = 0
            for journey in journeys:
                # It can pass in the last cycle in which a selection still collides.
                passes = now + journey.idle
                captured = ()
                expected = None
                while now < passes + journey.free - 1:
                    at = now - passes
                    noise = self.noise(random)
                    inputs = dict(noise)
                    collides = (at > 1 or now < slot_free) and random.getrandbits(1)
                    inputs["selected"] = at == 1 or collides
                    inputs["running"] = at != journey.stop
                    inputs["finish_valid"] = at == journey.finish
                    inputs["vanished"] = journey.vanished
                    inputs["ready"] = at == journey.finish + 3 + journey.wait
                    if at >= 1 and at < journey.finish:
                        inputs["issued"] = at == journey.issue
                        inputs["translating"] = at in journey.translating
                    if at == journey.finish + 1:
                        inputs["pass_filter"] = journey.passes
                    if at == 0:
                        captured = tuple(noise[name] for name in ("el", "ns", "contextidr_el1", "timestamp", "collect"))
                    if at == journey.finish:
                        expected = self.sample(journey, captured, noise["operation"])

                    sampled, collision, fed, filtrated, pending, valid, unwanted, payload = await cycle(
                        ctx, self.wires(inputs), *outputs
                    )
                    where = f"cycle {at} of {journey}"
                    assert sampled == (at == 1), where
                    assert collision == collides, where
                    finished = not journey.vanished and at > journey.finish
                    assert fed == (finished and at == journey.finish + 1), where
                    assert filtrated == (finished and journey.passes and at == journey.finish + 2), where
                    assert pending == (finished and at < journey.free - 1), where
                    assert valid == (journey.leaves and journey.finish + 3 <= at < journey.free - 1), where
                    if pending:
                        assert payload == expected, where
                        assert unwanted == (journey.stop is not None and journey.stop < at), where
                    now += 1
                slot_free = passes + journey.free

        self.run(scenario)

    def noise(self, random: Random) -> dict[str, int]:
        bits = random.getrandbits
        return {
            "el": bits(2),
            "ns": bits(1),
            "contextidr_el1": bits(32),
            "timestamp": bits(64),
            "collect": bits(4),
            "issued": bits(1),
            "translating": bits(1),
            "operation": bits(len(self.dut.finish.operation.as_value())),
            "pass_filter": bits(1),
        }

    def wires(self, inputs: dict[str, int]) -> list[tuple[Any, int]]:
        dut = self.dut
        return [
            (dut.selected, inputs["selected"]),
            (dut.pe.el, inputs["el"]),
            (dut.pe.ns, inputs["ns"]),
            (dut.pe.contextidr_el1, inputs["contextidr_el1"]),
            (dut.pe.physical_count, inputs["timestamp"]),
            (dut.collect.as_value(), inputs["collect"]),
            (dut.running, inputs["running"]),
            (dut.in_flight.issued, inputs["issued"]),
            (dut.in_flight.translating, inputs["translating"]),
            (dut.finish.valid, inputs["finish_valid"]),
            (dut.finish.vanished, inputs["vanished"]),
            (dut.finish.operation.as_value(), inputs["operation"]),
            (dut.pass_filter, inputs["pass_filter"]),
            (dut.sample.ready, inputs["ready"]),
        ]

    def sample(self, journey: Journey, captured: tuple[int, ...], operation: int) -> int:
        """The bits of the sample, its latencies counted anew from the journey."""
        largest = (1 << self.config.counter_bits) - 1
        layout = Sample(self.config)
        issue = journey.finish if journey.issue is None else min(journey.issue, journey.finish)
        translation = len([at for at in journey.translating if 1 <= at < journey.finish])
        members = {"el": captured[0], "ns": captured[1], "contextidr_el1": captured[2], "timestamp": captured[3]}
        start = Start.const({**members, "collect": Collect.from_bits(captured[4])})
        latencies = {"total": journey.finish, "issue": issue, "translation": translation}
        bits = start.as_bits() << layout["start"].offset | operation << layout["operation"].offset
        for name, cycles in latencies.items():
            bits |= min(cycles, largest) << layout[name].offset
        return bits


@pytest.fixture(scope="module", params=CONFIGS.values(), ids=CONFIGS)
def bench(request: pytest.FixtureRequest) -> InFlightBench:
    return InFlightBench(request.param)


@pytest.mark.parametrize("idle", [0, 1])
@pytest.mark.parametrize(
    "journey",
    [Journey(), Journey(vanished=True), Journey(passes=False), Journey(finish=5, issue=None),
     Journey(finish=5, issue=4),
     Journey(finish=5, issue=5), Journey(finish=5, translating=frozenset(range(6))), Journey(wait=4)],
    ids=str,
)  # fmt: skip
def test_the_next_operation_is_sampled_as_soon_as_the_slot_is_free(
    bench: InFlightBench, journey: Journey, idle: int
) -> None:
    bench.play([replace(journey, idle=idle)] * 3)


@pytest.mark.parametrize("passes", [True, False])
@pytest.mark.parametrize("stop", range(-1, 9))
def test_an_operation_is_unwanted_once_the_buffer_did_not_run(bench: InFlightBench, stop: int, passes: bool) -> None:
    # Before it passes (cycle 0) it does not matter; once the record is offered, the buffer sees for itself.
    journey = Journey(finish=4, stop=stop if stop > 0 else None, passes=passes, wait=2, idle=2)
    bench.play([journey, Journey(), journey])


def test_latencies_saturate() -> None:
    config = CONFIGS["minimal"]
    finish = (1 << config.counter_bits) + 8
    bench = InFlightBench(config)
    bench.play([Journey(finish=finish, issue=None, translating=frozenset(range(finish))), Journey()])


@st.composite
def journeys(draw: st.DrawFn) -> Journey:
    finish = draw(st.integers(2, 12))
    return Journey(
        idle=draw(st.integers(0, 3)),
        issue=draw(st.none() | st.integers(1, finish)),
        finish=finish,
        translating=draw(st.frozensets(st.integers(1, finish))),
        vanished=draw(st.booleans()),
        passes=draw(st.booleans()),
        wait=draw(st.integers(0, 5)),
        stop=draw(st.none() | st.integers(1, finish + 6)),
    )


@settings(max_examples=30)
@given(st.lists(journeys(), min_size=1, max_size=5), st.integers(0, 999))
def test_any_journeys(bench: InFlightBench, journeys: list[Journey], seed: int) -> None:
    bench.play(journeys, seed)
