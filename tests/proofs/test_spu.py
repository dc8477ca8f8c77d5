"""The proofs of the whole SPU find what is wrong."""

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
from spurtle.gateware.spu import SPU
from tests.support.proofs import FaultMixin, WrongCircuit
from tests.support.tiers import tiers


class Counts(FaultMixin, SPU):
    """Counts what passes in Debug state too."""

    def add_fault(self, m):
        counted = m.submodules.control.enabled | self.pe.debug
        m.d.comb += m.submodules.interval_counter.operations.eq(self.sampling.valid & counted)


@pytest.mark.full
def test_counting_while_profiling_is_disabled_fails() -> None:
    config = CONFIGS["minimal"]
    WrongCircuit(Counts, config, spu.prove_disabled).check()


class Draws(FaultMixin, SPU):
    """Draws a number for whatever passes."""

    def add_fault(self, m):
        m.d.comb += m.submodules.access_lfsr.draw.eq(self.sampling.valid != 0)


@pytest.mark.full
def test_drawing_while_profiling_is_disabled_fails() -> None:
    config = FEATURES["minimal_sve"]
    WrongCircuit(Draws, config, spu.prove_undrawn).check()


class Unguarded(registers_rtl.RegisterAccess):
    """EL1 has what EL2 has."""

    def _undefined(self, register, host):
        return C(0)


class Whole(registers_rtl.RegisterFile):
    """Bits that are not implemented can be set."""

    def _write(self, m, register, written):
        super()._write(m, register, written)
        if register is PMSCR_EL1:
            with m.If(written):
                m.d.sync += self.pmscr.eq(self.wdata)


@pytest.mark.parametrize(
    ("room", "wrong", "prove"),
    tiers(full=[(registers_rtl, Unguarded, spu.prove_pmscr_el2), (spu_rtl, Whole, spu.prove_implemented)]),
)
def test_unprotected_registers_fail(
    room: Any, wrong: type[wiring.Component], prove: Callable[..., Verdict], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, wrong.__bases__[0].__name__, wrong)
    config = CONFIGS["neoverse_n1"]
    WrongCircuit(SPU, config, prove).check()


class Untold(FaultMixin, SPU):
    """Does not tell the buffer that it has another owner."""

    def add_fault(self, m):
        m.d.comb += m.submodules.buffer.new_owner.eq(0)


class Remembers(FaultMixin, SPU):
    """Keeps the previous branch target for another owner."""

    def add_fault(self, m):
        m.d.comb += m.submodules.previous_target.new_owner.eq(0)


@pytest.mark.full
def test_an_unreported_new_owner_fails() -> None:
    config = replace(FEATURES["minimal_pbt"], name="owners", el3=True)
    assert spu.prove_new_owner(config, transition(SPU(config))).result is Result.PASS
    for wrong in (Untold, Remembers):
        WrongCircuit(wrong, config, spu.prove_new_owner).check()


class Anytime(FaultMixin, SPU):
    """Tells of the filters' answers when there is nothing to tell."""

    def add_fault(self, m):
        m.d.sync += self.pmu.sample_feed_lat.eq(m.submodules.filter.feed.lat)


class Unfed(FaultMixin, SPU):
    """Counts verdicts when there is no sample."""

    def add_fault(self, m):
        m.d.sync += self.pmu.sample_filtrate.eq(~m.submodules.filter.rejected.as_value().any())


class Silent(FaultMixin, SPU):
    """Does not tell the buffer that its limit is written."""

    def add_fault(self, m):
        m.d.comb += m.submodules.buffer.pmblimitr_write.eq(0)


@pytest.mark.parametrize(
    ("wrong", "prove"),
    tiers(
        fast=[(Anytime, spu.prove_fed)],
        full=[(Unfed, spu.prove_fed), (Silent, spu.prove_limit)],
    ),
)
def test_wrong_events_and_strobes_fail(wrong: type[SPU], prove: Callable[..., Verdict]) -> None:
    config = CONFIGS["minimal"]
    WrongCircuit(wrong, config, prove).check()
