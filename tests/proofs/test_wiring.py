"""The proof of the connections between the blocks of the SPU fails for each wrong connection."""

import pytest
from amaranth.hdl import C, Cat

from formal.engine.proof import Result
from formal.engine.transition import Transition, transition
from formal.spu import spu, wiring
from spurtle.config import CONFIGS
from spurtle.gateware.spu import SPU
from tests.support.proofs import FaultMixin, WrongCircuit
from tests.support.tiers import tiers


class WithoutMinlatBit(FaultMixin, SPU):
    """MINLAT[11] is not connected to the filter."""

    def add_fault(self, m):
        register = m.submodules.registers.pmslatfr.as_value()
        m.d.comb += m.submodules.filter.pmslatfr.eq(Cat(register[:11], C(0, 1), register[12:]))


class WithoutIntervalBit(FaultMixin, SPU):
    """The most significant bit of INTERVAL is not connected to the interval counter."""

    def add_fault(self, m):
        m.d.comb += m.submodules.interval_counter.interval.eq(m.submodules.registers.pmsirr.INTERVAL[:-1])


class WrongStateRead(FaultMixin, SPU):
    """Reads of IMP_PMSRNDR_EL1 return PMSICR_EL1."""

    def add_fault(self, m):
        m.d.comb += m.submodules.registers.pmsrndr.eq(m.submodules.interval_counter.pmsicr)


class NeverDropped(FaultMixin, SPU):
    """No record is dropped because the buffer did not run."""

    def add_fault(self, m):
        m.d.comb += m.submodules.completion.drop.eq(0)


class UnfilteredFeed(FaultMixin, SPU):
    """PMU event SAMPLE_FEED_LD counts every sample."""

    def add_fault(self, m):
        m.d.sync += self.pmu.sample_feed_ld.eq(m.submodules.completion.fed)


class InterruptStrobe(FaultMixin, SPU):
    """The interrupt is asserted only in the cycle of a buffer full event, not while S is set."""

    def add_fault(self, m):
        m.d.comb += self.pmbirq.eq(m.submodules.buffer.full)


class UnreadFiltrated(FaultMixin, SPU):
    """PMU event SAMPLE_FILTRATE counts SAMPLE_FEED, and its source is not read."""

    def add_fault(self, m):
        m.d.sync += self.pmu.sample_filtrate.eq(m.submodules.completion.fed)


class FrozenForever(FaultMixin, SPU):
    """The PMU's counters are frozen while the Profiling Buffer is disabled."""

    def add_fault(self, m):
        m.d.sync += self.pmu.freeze.eq(m.submodules.registers.pmblimitr.PMFZ & m.submodules.buffer.pmbsr.S)


@pytest.fixture(scope="module")
def narrow() -> Transition:
    return transition(WithoutIntervalBit(CONFIGS["minimal"]))


def test_an_unconnected_register_bit_fails(narrow: Transition) -> None:
    config = CONFIGS["minimal"]
    assert "a cycle violates it" in wiring.prove_wiring(config, narrow).evidence
    assert wiring.prove_register_bits(config, narrow).result is Result.FAIL


def test_an_input_without_a_row_is_an_error(narrow: Transition, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {name: source for name, source in wiring.SAME.items() if name != "control.pmscr"}
    monkeypatch.setattr(wiring, "SAME", rows)
    verdict = wiring.prove_wiring(CONFIGS["minimal"], narrow)
    assert verdict.result is Result.ERROR
    assert verdict.evidence.endswith("states no source for control.pmscr")


@pytest.mark.parametrize(
    ("wrong", "name"),
    tiers(
        full=[
            (WithoutMinlatBit, "minimal"),
            (InterruptStrobe, "minimal"),
            *((wrong, "minimal") for wrong in (WrongStateRead, NeverDropped, UnfilteredFeed)),
        ],
        long=[(wrong, "v1p4") for wrong in (WrongStateRead, NeverDropped, UnfilteredFeed)],
    ),
)
def test_wrong_connections_fail(wrong: type[SPU], name: str) -> None:
    config = CONFIGS[name]
    WrongCircuit(wrong, config, wiring.prove_wiring).check()


@pytest.mark.full
def test_an_unread_output_fails() -> None:
    config = CONFIGS["minimal"]
    verdict = wiring.prove_wiring(config, transition(UnreadFiltrated(config)))
    assert (verdict.result, verdict.evidence) == (Result.FAIL, "nothing reads completion.filtrated")


@pytest.mark.full
def test_wrong_counter_freezing_fails() -> None:
    config = CONFIGS["arm_model"]
    verdict = spu.prove_freeze(config, transition(FrozenForever(config)))
    assert verdict.evidence.startswith("path ")
