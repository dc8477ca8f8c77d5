"""Tests of the completion of samples: each is filtered once, and its record is written or dropped."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spurtle.config import CONFIGS
from spurtle.gateware.completion import Completion
from tests.support.gateware import Bench, cycle


@dataclass(frozen=True)
class Finished:
    """A finished sample. Cycles are relative to the one in which it becomes valid.

    Members
    -------
    idle : int
        Cycles without a sample before it.
    passes : bool
        Whether it passes the filter.
    discard : int or None
        The cycle in which the buffer is in Discard mode.
    drop_from : int or None
        The first cycle in which `drop` is asserted.
    wait : int
        Cycles for which the record is stalled.
    """

    idle: int = 0
    passes: bool = True
    discard: int | None = None
    drop_from: int | None = None
    wait: int = 0

    @property
    def recorded(self) -> bool:
        """Whether its record is output.

        The state in the cycle of the verdict determines it. `drop` reports earlier stops, and the buffer drops a
        record on later ones.
        """
        return self.passes and self.discard != 1 and (self.drop_from is None or self.drop_from > 1)


class CompletionBench(Bench):
    """A `Completion` in the simulator."""

    def __init__(self):
        self.dut = Completion(CONFIGS["minimal"])
        super().__init__(self.dut)

    def play(self, samples: Sequence[Finished], seed: int = 0) -> None:
        """Play samples in sequence and check all outputs in each cycle. Unused inputs are random from `seed`."""
        dut = self.dut
        random = Random(seed)
        outputs = (dut.fed, dut.fed_as, dut.filtrated, dut.i.ready, dut.o.valid, dut.o.payload.as_value())

        async def scenario(ctx: Any) -> None:
            feed = 0
            for sample in samples:
                payload = random.getrandbits(len(dut.i.payload.as_value()))
                last = 2 + sample.wait if sample.recorded else 2
                for at in range(-sample.idle, last + 1):
                    reasons, noise = random.randrange(1, 1 << len(dut.rejected)), random.getrandbits(len(dut.rejected))
                    inputs = [
                        (dut.i.valid, at >= 0),
                        (dut.i.payload.as_value(), payload),
                        (dut.feed, random.getrandbits(len(dut.feed))),
                        (dut.rejected, reasons if at == 0 and not sample.passes else noise if at else 0),
                        (dut.discard, at == sample.discard),
                        (dut.drop, sample.drop_from is not None and at >= sample.drop_from),
                        (dut.o.ready, at == last if at >= 2 else random.getrandbits(1)),
                    ]
                    fed, fed_as, filtrated, accepted, record, output = await cycle(ctx, inputs, *outputs)
                    where = f"cycle {at} of {sample}, seed {seed}"
                    assert fed == (at == 1), where
                    assert fed_as == (feed if at == 1 else 0), where
                    feed = inputs[2][1]
                    assert filtrated == (at == 1 and sample.passes), where
                    assert record == (at >= 2 and sample.recorded), where
                    if record:
                        assert output == payload, where
                    # `ready` is not checked before a sample is valid.
                    if at >= 0:
                        assert accepted == (at == last), where

        self.run(scenario)


@pytest.fixture(scope="module")
def bench() -> CompletionBench:
    return CompletionBench()


@pytest.mark.parametrize("passes", [True, False])
def test_samples_in_sequence(bench: CompletionBench, passes: bool) -> None:
    bench.play([Finished(passes=passes)] * 3)
    bench.play([Finished(passes=passes, idle=2, wait=3)] * 3)


@pytest.mark.parametrize("passes", [True, False])
@pytest.mark.parametrize("when", range(5))
def test_drop_before_the_verdict_prevents_the_record(bench: CompletionBench, when: int, passes: bool) -> None:
    # After the verdict only the buffer can drop the record.
    bench.play([Finished(passes=passes, discard=when, drop_from=when + 1, wait=2), Finished(), Finished(drop_from=0)])


finished = st.builds(
    Finished,
    idle=st.integers(0, 2),
    passes=st.booleans(),
    discard=st.none() | st.integers(0, 5),
    drop_from=st.none() | st.integers(0, 5),
    wait=st.integers(0, 3),
)


@settings(max_examples=50)
@given(st.lists(finished, min_size=1, max_size=8), st.integers(0, 999))
def test_any_samples(bench: CompletionBench, samples: list[Finished], seed: int) -> None:
    bench.play(samples, seed)
