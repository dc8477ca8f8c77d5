"""The sample interval counter against the reference's `sampling.advance`, cycle by cycle."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from gateware import Bench, cycle
from hypothesis import given, settings
from hypothesis import strategies as st

from spurtle.interval import IntervalCounter
from spurtle_sim.reference.sampling import advance

COUNTS = (0, 1, 2, 255, 256, 257, 0xFFFF, 0x1_0000, 0x1_0001, 0xFFFF_FF00, 0xFFFF_FFFF)
INTERVALS = (0, 1, 2, 0xFF_FFFF)


@dataclass(frozen=True)
class Step:
    """What happens in one cycle; `write` is what software writes to COUNT."""

    operation: bool
    interval: int
    write: int | None = None


@pytest.fixture(scope="module")
def dut() -> IntervalCounter:
    return IntervalCounter()


@pytest.fixture(scope="module")
def bench(dut: IntervalCounter) -> Bench:
    return Bench(dut)


def play(bench: Bench, dut: IntervalCounter, steps: Sequence[Step]) -> list[int]:
    """Check each cycle; returns the numbers of the cycles whose operation was selected."""

    async def scenario(ctx: Any) -> list[int]:
        selections = []
        count, selected = 0, False
        for number, step in enumerate([*steps, Step(False, 0)]):
            inputs = [
                (dut.operation, step.operation),
                (dut.interval, step.interval),
                (dut.write, step.write is not None),
                (dut.wdata, step.write or 0),
            ]
            seen = await cycle(ctx, inputs, dut.count, dut.selected)
            assert seen == (count, selected), f"cycle {number}"
            if selected:
                selections.append(number - 1)
            selected = False
            if step.write is not None:
                count = step.write
            elif step.operation:
                count, selected = advance(count, step.interval)
        return selections

    return bench.run(scenario)


@pytest.mark.parametrize("interval", INTERVALS)
@pytest.mark.parametrize("count", COUNTS)
def test_counts_down_from(bench: Bench, dut: IntervalCounter, count: int, interval: int) -> None:
    play(bench, dut, [Step(True, interval, count), *[Step(True, interval)] * 270])


@pytest.mark.parametrize("gap", [0, 1, 3])
@pytest.mark.parametrize("interval", [0, 1, 3])
def test_selections_are_an_interval_and_one_apart(bench: Bench, dut: IntervalCounter, interval: int, gap: int) -> None:
    distance = max(interval, 1) * 256 + 1
    steps = [Step(number % (gap + 1) == 0, interval) for number in range(3 * distance * (gap + 1))]
    selections = play(bench, dut, steps)
    assert selections == [(distance * number - 1) * (gap + 1) for number in (1, 2, 3)]


@pytest.mark.parametrize("interval", [0, 1])
@pytest.mark.parametrize("low", [0, 1, 2, 255])
def test_write_beside_a_borrow(bench: Bench, dut: IntervalCounter, low: int, interval: int) -> None:
    # The upper part takes the borrow of the lower part a cycle late: a write may come before, in or after that cycle.
    for delay in range(4):
        steps = [Step(False, interval, 0x201), *[Step(True, interval)] * (1 + delay), Step(True, interval, 0x100 | low)]
        play(bench, dut, [*steps, *[Step(True, interval)] * 520])


counts = st.sampled_from(COUNTS) | st.integers(0, 0x301) | st.integers(0, 0xFFFF_FFFF)
intervals = st.sampled_from(INTERVALS) | st.integers(0, 3)
runs = st.tuples(
    st.integers(1, 8) | st.sampled_from([254, 255, 256, 257]),  # operations
    st.integers(0, 2),  # idle cycles after each
    intervals,
    st.none() | counts,  # written in the run's last cycle
)


@settings(max_examples=30)
@given(st.lists(runs, min_size=1, max_size=6))
def test_like_the_reference(
    bench: Bench, dut: IntervalCounter, schedule: list[tuple[int, int, int, int | None]]
) -> None:
    steps = []
    for operations, gap, interval, write in schedule:
        steps += [Step(True, interval), *[Step(False, interval)] * gap] * operations
        steps[-1] = Step(steps[-1].operation, interval, write)
    play(bench, dut, steps)
