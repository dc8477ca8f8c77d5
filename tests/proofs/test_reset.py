"""Each register is reset: in whole SPUs, and in an interval counter with as many lanes as there can be."""

from functools import partial

import pytest
from amaranth.hdl import Signal

from formal.engine.induction import resets
from formal.engine.proof import Result
from formal.engine.transition import transition
from formal.spu.spu import prove_reset
from spurtle.config import CONFIGS
from spurtle.gateware import interval
from spurtle.gateware.interval import IntervalCounter
from spurtle.gateware.spu import SPU


@pytest.mark.parametrize("name", ["minimal", "kunpeng_920"])
def test_an_spu_is_reset(name: str) -> None:
    assert prove_reset(CONFIGS[name], transition(SPU(CONFIGS[name]))).result is Result.PASS


def test_an_interval_counter_of_many_lanes_is_reset() -> None:
    assert resets(transition(IntervalCounter(CONFIGS["v1p4"]))).result is Result.PASS


def test_registers_that_are_not_reset_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = partial(Signal, reset_less=True)
    setattr(kept, "like", partial(Signal.like, reset_less=True))
    monkeypatch.setattr(interval, "Signal", kept)
    assert resets(transition(IntervalCounter(CONFIGS["v1p4"]))).result is Result.FAIL
