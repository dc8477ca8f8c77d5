"""The proofs of the serializer and of the aligner fail for wrong circuits and wrong references."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import Signal

from configurations import FEATURES
from formal.buffer import aligner
from formal.engine import sby
from formal.engine.induction import inductive, unconstrained
from formal.engine.proof import Result, Verdict
from formal.engine.terms import BitVector, all_of, extract, if_else, shift_right
from formal.engine.transition import Transition, transition
from formal.serializer import cutter, packer, serializer
from formal.serializer.packer_history import watched
from formal.serializer.steps import prove_steps
from spurtle.config import CONFIGS
from spurtle.gateware import serializer as serializer_rtl
from spurtle.gateware.aligner import Aligner
from spurtle.gateware.beat import beat_layout
from spurtle.gateware.cutter import Cutter
from spurtle.gateware.packer import Packer
from spurtle.gateware.skid import SkidBuffer
from spurtle.gateware.spu import RecordPath
from spurtle_sim.model import records
from tests.support.proofs import FaultMixin, check_faults
from tests.support.tiers import tiers

PACKED = FEATURES["minimal_packed"]
KUNPENG = CONFIGS["kunpeng_920"]
MODEL = CONFIGS["arm_model"]


# Skid buffer.


@pytest.mark.parametrize("count", tiers(fast=[2], full=[5]))
def test_seeded_faults_of_the_skid_buffer_fail(count: int) -> None:
    check_faults(lambda: SkidBuffer(beat_layout(PACKED)), [serializer.prove_queue], count=count, assuming=unconstrained)


class CombinationalReady(FaultMixin, SkidBuffer):
    """`i.ready` depends combinationally on `o.ready`."""

    def add_fault(self, m):
        m.d.comb += self.i.ready.eq(self.o.ready | ~self.o.valid)


@pytest.mark.full
def test_a_combinational_path_between_readys_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    assert serializer.prove_independent(transition(Packer(PACKED))).result is Result.FAIL
    assert serializer.prove_independent(transition(CombinationalReady(beat_layout(PACKED)))).result is Result.FAIL
    monkeypatch.setattr(serializer_rtl, "SkidBuffer", CombinationalReady)
    assert "the outputs differ" in serializer.prove_path(transition(RecordPath(CONFIGS["minimal"]))).evidence


# Records of a fixed size.


class AcceptsEarly(Cutter):
    """A record is accepted one beat early."""

    def elaborate(self, platform):
        self._beats -= 1
        m = super().elaborate(platform)
        self._beats += 1
        return m


class FollowsInput(FaultMixin, Cutter):
    """The lower half of a record is not registered."""

    def add_fault(self, m):
        m.d.comb += self.o.p.data.eq(self.i.p.octets.word_select(0, len(self.o.p.data)))


@pytest.mark.parametrize("wrong", [AcceptsEarly, FollowsInput])
def test_a_wrong_cutter_fails(wrong: type[Cutter], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sby, "BUILD", tmp_path)
    monkeypatch.setattr(cutter, "Cutter", wrong)
    spec = cutter.CutterSpec(CONFIGS["minimal"])
    verdict = sby.check(spec, "faulty", mode="prove", depth=2, probes={"beat": "dut.beat", "at_last": "dut.at_last"})
    # After a reset the fault appears only after more than two cycles: the induction step fails, not the base case.
    assert verdict.result is Result.UNKNOWN
    assert "trace_induct.vcd" in verdict.evidence


# Packed records.


@pytest.mark.parametrize("count", tiers(long=[10]))
def test_seeded_faults_of_the_packer_fail(count: int) -> None:
    proofs: list[Callable[[Transition], Verdict]] = [
        lambda system: packer.prove_invariant(PACKED, system),
        lambda system: packer.prove_output(PACKED, system),
        lambda system: packer.prove_ends(PACKED, system),
        lambda system: packer.prove_rate(PACKED, system),
    ]

    def relevant(name: str, value: BitVector) -> BitVector:
        """Return the value, without the bytes and the size of a step that is not valid."""
        unused = {"step": value.width - 2, "shifted": value.width - 1 - PACKED.bus_bytes}
        if name not in unused:
            return value
        valid = extract(value.width - 1, value.width - 1, value) == 1
        return if_else(valid, value, shift_right(value, unused[name]))

    assert {"step", "shifted"} <= {*transition(Packer(PACKED)).registers}
    check_faults(
        lambda: Packer(PACKED),
        proofs,
        count=count,
        assuming=lambda wires: all_of(packer.invariant(PACKED)(wires), packer.input_contract(PACKED)(wires)),
        watched=lambda system: watched(PACKED, system),
        relevant=relevant,
    )


class WaitsForNextRecord(Packer):
    """The remainder of a record is sent only when the next one arrives."""

    def _assemble(self, m, shifted, advance):
        super()._assemble(m, shifted, advance)
        with m.If(~self.i.valid):
            m.d.comb += self.o.valid.eq(0)


class NeverLast(Packer):
    """`last` is never asserted."""

    def _assemble(self, m, shifted, advance):
        super()._assemble(m, shifted, advance)
        m.d.comb += self.o.p.last.eq(0)


class FillsSlowly(Packer):
    """A stage that is empty is filled only in every second cycle."""

    def _assemble(self, m, shifted, advance):
        right, pause = Signal(), Signal()
        super()._assemble(m, shifted, right)
        m.d.sync += pause.eq(~pause)
        m.d.comb += advance.eq(right & (shifted.valid | ~pause))


def test_a_packer_that_loses_cycles_fails() -> None:
    system = watched(KUNPENG, transition(FillsSlowly(KUNPENG)))
    assert packer.prove_output(KUNPENG, system).result is Result.PASS
    assert "a cycle violates it" in packer.prove_rate(KUNPENG, system).evidence


class OverwritesStep(Packer):
    """A shifted step is overwritten before there is space for it."""

    def _assemble(self, m, shifted, advance):
        super()._assemble(m, shifted, advance)
        m.d.comb += advance.eq(1)


class AcceptsWithFirstStep(Packer):
    """A record is accepted with its first step."""

    def _select(self, m, step, position, advance):
        super()._select(m, step, position, advance)
        m.d.comb += self.i.ready.eq(advance)


@pytest.mark.parametrize("wrong", tiers(fast=[AcceptsWithFirstStep], full=[OverwritesStep]))
def test_a_packer_that_loses_or_repeats_bytes_fails(wrong: type[Packer]) -> None:
    system = watched(KUNPENG, transition(wrong(KUNPENG)))
    verdicts = [packer.prove_invariant(KUNPENG, system), packer.prove_output(KUNPENG, system)]
    assert Result.FAIL in [verdict.result for verdict in verdicts]


@pytest.mark.full
def test_a_packer_that_does_not_finish_a_record_fails() -> None:
    right, wrong = (watched(MODEL, transition(each(MODEL))) for each in (Packer, WaitsForNextRecord))
    assert packer.prove_ends(MODEL, right).result is Result.PASS
    assert "a cycle violates it" in packer.prove_ends(MODEL, wrong).evidence


@pytest.mark.full
def test_a_record_that_never_ends_is_not_covered() -> None:
    assert "the shortest record" in packer.cover(KUNPENG, watched(KUNPENG, transition(NeverLast(KUNPENG)))).evidence


@pytest.mark.parametrize("config", tiers(fast=[KUNPENG], full=[MODEL]), ids=lambda config: config.name)
def test_other_padding_fails(config: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert prove_steps(config).result is Result.PASS
    layout = replace(config.layout, padding_last=not config.layout.padding_last)
    right = records.lay_out
    other = replace(config, name="other", layout=layout)
    monkeypatch.setattr(records, "lay_out", lambda _, contents: right(other, contents))
    assert "TIMESTAMP:\n  expected " in prove_steps(config).evidence


def test_a_layout_in_another_order_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    right = records.lay_out
    other = replace(MODEL, name="other", layout=replace(MODEL.layout, fields=MODEL.layout.fields[::-1]))
    monkeypatch.setattr(records, "lay_out", lambda _, contents: right(other, contents))
    assert prove_steps(MODEL).result is Result.FAIL


# Words of memory.


@pytest.mark.parametrize("count", tiers(fast=[2], full=[5]))
def test_seeded_faults_of_the_aligner_fail(count: int) -> None:
    proofs: list[Callable[[Transition], Verdict]] = [
        lambda system: aligner.prove_relation(PACKED, system),
        lambda system: aligner.prove_words(PACKED, system),
    ]
    check_faults(
        lambda: Aligner(PACKED),
        proofs,
        count=count,
        assuming=aligner.relation(PACKED),
        watched=lambda system: aligner.watched(PACKED, system),
    )


class WritesLastWord(FaultMixin, Aligner):
    """Every byte of the last word is written."""

    def add_fault(self, m):
        with m.If(self.o.p.last):
            m.d.comb += self.o.p.strobe.eq(-1)


class LosesRemainder(FaultMixin, Aligner):
    """The remainder of the last beat is lost."""

    def add_fault(self, m):
        with m.If(self.i.p.last):
            m.d.comb += self.o.p.last.eq(1)


@pytest.mark.parametrize("wrong", [WritesLastWord, LosesRemainder])
def test_an_aligner_that_writes_too_much_or_too_little_fails(wrong: type[Aligner]) -> None:
    system = aligner.watched(KUNPENG, transition(wrong(KUNPENG)))
    assert "a cycle violates it" in aligner.prove_words(KUNPENG, system).evidence


class MixesRecords(FaultMixin, Aligner):
    """The last word contains bits of the next record."""

    def add_fault(self, m):
        with m.If(self.o.p.last):
            m.d.comb += self.o.p.data[-1].eq(self.i.p.data[0])


def test_a_stalled_word_that_changes_fails() -> None:
    """Bytes that are not written must be stable as well."""
    for kind, result in (Aligner, Result.PASS), (MixesRecords, Result.FAIL):
        system = aligner.watched(KUNPENG, transition(kind(KUNPENG)))
        assert aligner.prove_stalled_words(KUNPENG, system).result is result


def test_the_relation_needs_a_stable_offset() -> None:
    """`ProfilingBuffer` keeps the offset stable. Without this contract the words are wrong."""
    system = aligner.watched(KUNPENG, transition(Aligner(KUNPENG)))
    assert inductive(system, aligner.relation(KUNPENG)).result is Result.FAIL
    assert aligner.cover(KUNPENG, system).result is Result.PASS
