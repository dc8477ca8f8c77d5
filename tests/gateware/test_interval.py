"""Tests of the sample interval counters against `sampling.advance` of the reference, cycle by cycle."""

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import cycle as endless
from itertools import product
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from configurations import lanes
from spurtle.arch import PMSICR_EL1
from spurtle.config import SPUConfig
from spurtle.gateware.interval import IntervalCounter
from spurtle_sim.model.sampling import advance
from tests.support.gateware import Bench, cycle
from tests.support.interval_cases import CASES
from tests.support.seeds import SEED
from tests.support.tiers import configurations

RES0 = 0x00AB_CDEF << 32
"""Ones in the RES0 bits of PMSICR_EL1, which software may write."""


@dataclass(frozen=True)
class Step:
    """The inputs in one cycle.

    Members
    -------
    lanes : int
        Lanes in which an operation passes, one bit for each lane.
    interval, rnd : int
        Fields of PMSIRR_EL1.
    write : (int, int) or None
        COUNT and ECOUNT that software writes.
    """

    lanes: int = 0
    interval: int = 1
    rnd: int = 0
    write: tuple[int, int] | None = None


class Expected:
    """The expected counters, selections and answers. `numbers[0]` is the next random number."""

    def __init__(self, config: SPUConfig, numbers: Sequence[int]):
        self.config = config
        self.count = self.ecount = self.passed = 0
        self.chosen: list[int] = []
        self.answers: dict[int, list[int]] = {}
        self.numbers = deque(numbers)
        self._delayed = deque([0] * config.count_delay)
        self._earlier = Step(interval=0)

    def counted(self, lanes: int) -> int:
        """Return the lanes that are counted in the cycle in which operations pass in `lanes`."""
        self._delayed.append(lanes)
        return self._delayed.popleft()

    def advance(self, now: int, step: Step, lanes: int) -> tuple[int, list[int]]:
        """Count operations in `lanes`. Return the number of random numbers drawn, and the selected lanes."""
        config = self.config
        # With several lanes the gateware uses PMSIRR_EL1 and the random number of the previous cycle. The number is the
        # same in this cycle, because numbers are not used in two consecutive cycles.
        settled = step if config.ops_per_cycle == 1 else self._earlier
        rule = {"interval": settled.interval, "rnd": settled.rnd, "random": self.numbers[0], "ernd": config.ernd}
        answer: list[int] = []
        drawn = 0
        for lane in range(config.ops_per_cycle):
            if lanes >> lane & 1:
                self.passed += 1
                if step.write is not None:
                    continue
                self.count, self.ecount, is_selected, is_drawn = advance(self.count, self.ecount, **rule)
                drawn += is_drawn
                if is_selected:
                    answer.append(lane)
                    self.chosen.append(self.passed)
        self.numbers.rotate(-drawn)
        self.answers[now - config.count_delay + config.answer_latency] = answer
        if step.write is not None:
            self.count, self.ecount = step.write[0], step.write[1] if config.ernd else 0
        self._earlier = step
        return drawn, answer


class IntervalBench(Bench):
    """An `IntervalCounter` in the simulator. `selections` counts cycles by their number of selections."""

    def __init__(self, config: SPUConfig):
        self.config = config
        self.width = config.ops_per_cycle
        self.full = (1 << self.width) - 1
        self.dut = IntervalCounter(config)
        self.selections = Counter[int]()
        super().__init__(self.dut)

    def play(self, steps: Sequence[Step], numbers: Sequence[int] = (0,)) -> tuple[list[int], tuple[int, int]]:
        """Play cycles and check the outputs, with further cycles that show the effect of the last.

        `numbers` are the random numbers in the order of their use; the first follows the last. Return the numbers of
        the selected operations, the first of which is 1, and COUNT and ECOUNT after the last cycle.
        """
        config, dut = self.config, self.dut
        outputs = (dut.pmsicr.as_value(), dut.draw, dut.population, *dut.selected)

        async def scenario(ctx: Any) -> tuple[list[int], tuple[int, int]]:
            expected = Expected(config, numbers)
            rest = [replace(steps[-1], lanes=0, write=None)] * (config.answer_latency + 1)
            for now, step in enumerate([*steps, *rest]):
                written = step.write or (0xDEAD_BEEF, 0xA5)
                # Operations that pass while profiling is disabled are not counted.
                inputs = [
                    (dut.operations, step.lanes or self.full),
                    (dut.enabled, step.lanes != 0),
                    (dut.interval, step.interval),
                    (dut.rnd, step.rnd),
                    (dut.random, expected.numbers[0]),
                    (dut.write, step.write is not None),
                    (dut.wdata.as_value(), PMSICR_EL1.pack(COUNT=written[0], ECOUNT=written[1]) | RES0),
                ]
                pmsicr, draw, population, *selected = await cycle(ctx, inputs, *outputs)

                lanes = expected.counted(step.lanes)
                where = (now, step, f"counted {lanes:b}", expected.numbers)
                assert pmsicr == PMSICR_EL1.pack(COUNT=expected.count, ECOUNT=expected.ecount), where
                answer = [1 << lane for lane in expected.answers.pop(now, [])]
                assert selected == answer + [0] * (len(selected) - len(answer)), where
                assert population == lanes.bit_count(), where
                drawn, answer = expected.advance(now, step, lanes)
                assert draw == drawn, where
                self.selections[len(answer)] += 1
            return expected.chosen, (expected.count, expected.ecount)

        return self.run(scenario)

    def pass_members(self, patterns: Iterator[int], members: int) -> list[int]:
        """Return the lanes of each cycle from `patterns`, until exactly `members` operations have passed."""
        result = []
        while members:
            lanes = next(patterns)
            while lanes.bit_count() > members:
                lanes &= lanes - 1
            members -= lanes.bit_count()
            result.append(lanes)
        return result

    def ragged(self, seed: int) -> Iterator[int]:
        """Yield random lanes. About every second time they are all lanes."""
        random = Random(f"{SEED} {seed}")
        while True:
            yield random.choice([self.full, random.getrandbits(self.width)])


LANES = {f"{width}-ernd{ernd:d}": lanes(width, ernd=ernd) for width, ernd in product((1, 2, 3, 4, 5, 8), (False, True))}


@pytest.fixture(scope="module", params=configurations(LANES, fast=("1-ernd0", "3-ernd1")))
def bench(request: pytest.FixtureRequest) -> IntervalBench:
    return IntervalBench(request.param)


def test_rules(bench: IntervalBench) -> None:
    # PMSIRR_EL1 applies to the operations that are counted, so it changes `late` cycles after they pass.
    late = max(bench.config.count_delay - 1, 0)
    for seed, case in enumerate(CASES):
        if bench.config.ernd not in case.ernd:
            continue
        lanes, rnds = [], [case.passing[0][1]] * late
        for members, rnd in case.passing:
            passing = bench.pass_members(bench.ragged(seed), members)
            lanes += passing
            rnds += [rnd] * len(passing)
        steps = [Step(write=(case.count, case.ecount))]
        steps += [Step(*step) for step in zip(lanes + [0] * late, endless([case.interval]), rnds, strict=False)]
        assert bench.play(steps, case.numbers) == (list(case.selected), case.remaining), f"seed {seed}: {case}"


def test_every_combination_of_small_counts_in_one_cycle(bench: IntervalBench) -> None:
    # The operations of one cycle can decrement each of COUNT, ECOUNT and the random number to zero. The next cycle
    # shows the remaining values.
    near = range(bench.width + 2)
    idle = [Step()] * bench.config.count_delay
    bench.selections.clear()
    for number in near:
        # With all lanes and the random number 0, two operations are selected in one cycle for any seed.
        lanes = endless([bench.full]) if number == 0 else bench.ragged(number)
        steps = []
        for count, ecount in product(near, near if bench.config.ernd else (0, 3)):
            steps += [Step(write=(count, ecount)), Step(next(lanes)), Step(bench.full), *idle]
        for rnd in (0, 1) if number == 0 else (1,):
            bench.play([replace(step, rnd=rnd) for step in steps], [number])
    assert max(bench.selections) == bench.config.selections_per_cycle


def test_a_write_in_any_cycle_around_a_carry(bench: IntervalBench) -> None:
    # The upper part of COUNT is updated some cycles after the lower part. The write is in any cycle around that.
    width = bench.width
    steps = []
    for start, offset, delay in product((0, 0x100), range(width + 1), range(5)):
        for written in (0, width, 0x100, 0x100 + width):
            steps += [Step(write=(start + offset, 0)), *[Step(bench.full)] * delay]
            steps += [Step(bench.full, write=(written, 0)), *[Step(bench.full)] * 4]
    intervals = Random(f"{SEED} {width}")
    bench.play([replace(step, interval=intervals.choice([0, 1, 2, 0xFF_FFFF])) for step in steps])


counts = st.integers(0, 12) | st.integers(0xF8, 0x108) | st.integers(0, 0x301) | st.integers(0, 0xFFFF_FFFF)
ecounts = st.integers(0, 12) | st.integers(0, 0xFF)
numbers = st.lists(st.integers(0, 9) | st.integers(0, 0xFF), min_size=1, max_size=4)


@st.composite
def schedules(draw: st.DrawFn, width: int) -> list[Step]:
    """Draw sequences of cycles in which PMSIRR_EL1 changes little. Some end with a write."""
    steps: list[Step] = []
    for _ in range(draw(st.integers(1, 6))):
        # Some sequences are as long as an interval.
        cycles = draw(st.integers(1, 12) | st.integers(1, 12) | st.integers(256 // width, 256 // width + 3))
        intervals = draw(st.lists(st.integers(0, 2) | st.just(0xFF_FFFF), min_size=1, max_size=2))
        rnd = draw(st.integers(0, 1))
        sparse = draw(st.booleans())
        random = Random(draw(st.integers(0, 9999)))
        for number in range(cycles):
            lanes = random.getrandbits(width) if sparse else (1 << width) - 1
            steps.append(Step(lanes, intervals[number % len(intervals)], rnd))
        steps[-1] = replace(steps[-1], write=draw(st.none() | st.tuples(counts, ecounts)))
    return steps


@settings(max_examples=15)
@given(st.data(), numbers)
def test_like_the_reference(bench: IntervalBench, data: st.DataObject, numbers: list[int]) -> None:
    bench.play(data.draw(schedules(bench.width)), numbers)


@settings(max_examples=5)
@given(counts, ecounts, st.integers(0, 1), st.integers(0, 0xFF), st.integers(0, 300), st.integers(0, 99))
def test_restored_counters_continue(
    bench: IntervalBench, count: int, ecount: int, rnd: int, number: int, members: int, seed: int
) -> None:
    def play(start: tuple[int, int], members: int) -> tuple[list[int], tuple[int, int]]:
        passing = bench.pass_members(bench.ragged(seed), members)
        return bench.play([Step(0, 1, rnd, start), *(Step(lanes, 1, rnd) for lanes in passing)], [number])

    chosen, remaining = play((count, ecount), 300)
    before, saved = play((count, ecount), members)
    after, restored = play(saved, 300 - members)
    assert before + [members + later for later in after] == chosen
    assert restored == remaining
