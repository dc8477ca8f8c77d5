"""Reset of every register: of complete SPUs, and of an interval counter with the maximum number of lanes."""

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
from tests.support.tiers import tiers


@pytest.mark.parametrize("name", tiers(fast=["minimal"], full=["kunpeng_920"]))
def test_reset_restores_the_initial_state_of_an_spu(name: str) -> None:
    assert prove_reset(CONFIGS[name], transition(SPU(CONFIGS[name]))).result is Result.PASS


def test_reset_restores_the_initial_state_of_an_interval_counter() -> None:
    assert resets(transition(IntervalCounter(CONFIGS["v1p4"]))).result is Result.PASS


def test_registers_without_reset_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    without_reset = partial(Signal, reset_less=True)
    setattr(without_reset, "like", partial(Signal.like, reset_less=True))
    monkeypatch.setattr(interval, "Signal", without_reset)
    assert resets(transition(IntervalCounter(CONFIGS["v1p4"]))).result is Result.FAIL
