"""The proofs of the complete SPU fail for wrong circuits."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from amaranth.hdl import C
from amaranth.lib import wiring

from configurations import FEATURES
from formal.engine.proof import Result, Verdict
from formal.engine.transition import transition
from formal.spu import spu
from spurtle.arch import PMSCR_EL1
from spurtle.config import CONFIGS
from spurtle.gateware import registers as registers_rtl
from spurtle.gateware import spu as spu_rtl
from spurtle.gateware.register_access import RegisterAccess
from spurtle.gateware.spu import SPU
from tests.support.proofs import FaultMixin, WrongCircuit
from tests.support.tiers import tiers


class CountsInDebugState(FaultMixin, SPU):
    """Operations are counted in Debug state too."""

    def add_fault(self, m):
        counted = m.submodules.control.enabled | self.pe.debug
        m.d.comb += m.submodules.interval_counter.enabled.eq(counted)


@pytest.mark.full
def test_counting_while_profiling_is_disabled_fails() -> None:
    config = CONFIGS["minimal"]
    WrongCircuit(CountsInDebugState, config, spu.prove_disabled).check()


class DrawsAlways(FaultMixin, SPU):
    """A random number is drawn for every operation that passes."""

    def add_fault(self, m):
        m.d.comb += m.submodules.access_lfsr.draw.eq(self.sampling.valid != 0)


@pytest.mark.full
def test_drawing_while_profiling_is_disabled_fails() -> None:
    config = FEATURES["minimal_sve"]
    WrongCircuit(DrawsAlways, config, spu.prove_undrawn).check()


class NothingUndefined(RegisterAccess):
    """No access is UNDEFINED."""

    def _undefined(self, register, host):
        return C(0)


class SetsUnimplementedBits(registers_rtl.RegisterFile):
    """Unimplemented bits can be set."""

    def _write(self, m, register, written):
        super()._write(m, register, written)
        if register is PMSCR_EL1:
            with m.If(written):
                m.d.sync += self.pmscr.eq(self.wdata)


@pytest.mark.parametrize(
    ("module", "wrong", "prove"),
    tiers(
        full=[
            (registers_rtl, NothingUndefined, spu.prove_pmscr_el2),
            (spu_rtl, SetsUnimplementedBits, spu.prove_implemented),
        ]
    ),
)
def test_unprotected_registers_fail(
    module: Any, wrong: type[wiring.Component], prove: Callable[..., Verdict], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, wrong.__bases__[0].__name__, wrong)
    config = CONFIGS["neoverse_n1"]
    WrongCircuit(SPU, config, prove).check()


class UnconnectedNewOwner(FaultMixin, SPU):
    """`new_owner` is not connected to the buffer."""

    def add_fault(self, m):
        m.d.comb += m.submodules.buffer.new_owner.eq(0)


class KeepsPreviousTarget(FaultMixin, SPU):
    """The previous branch target is kept on a change of owner."""

    def add_fault(self, m):
        m.d.comb += m.submodules.previous_target.new_owner.eq(0)


@pytest.mark.full
def test_an_unreported_new_owner_fails() -> None:
    config = replace(FEATURES["minimal_pbt"], name="owners", el3=True)
    assert spu.prove_new_owner(config, transition(SPU(config))).result is Result.PASS
    for wrong in (UnconnectedNewOwner, KeepsPreviousTarget):
        WrongCircuit(wrong, config, spu.prove_new_owner).check()


class FeedWithoutSample(FaultMixin, SPU):
    """SAMPLE_FEED_LAT does not depend on SAMPLE_FEED."""

    def add_fault(self, m):
        m.d.sync += self.pmu.sample_feed_lat.eq(m.submodules.filter.feed.lat)


class FiltrateWithoutSample(FaultMixin, SPU):
    """SAMPLE_FILTRATE counts verdicts in cycles without a sample."""

    def add_fault(self, m):
        m.d.sync += self.pmu.sample_filtrate.eq(~m.submodules.filter.rejected.as_value().any())


class UnconnectedLimitWrite(FaultMixin, SPU):
    """`pmblimitr_write` is not connected to the buffer."""

    def add_fault(self, m):
        m.d.comb += m.submodules.buffer.pmblimitr_write.eq(0)


@pytest.mark.parametrize(
    ("wrong", "prove"),
    tiers(
        full=[
            (FeedWithoutSample, spu.prove_fed),
            (FiltrateWithoutSample, spu.prove_fed),
            (UnconnectedLimitWrite, spu.prove_limit),
        ]
    ),
)
def test_wrong_events_and_strobes_fail(wrong: type[SPU], prove: Callable[..., Verdict]) -> None:
    config = CONFIGS["minimal"]
    WrongCircuit(wrong, config, prove).check()
