"""The proofs of the serializer and of the aligner find what is wrong."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from configurations import FEATURES
from formal.buffer import aligner
from formal.engine import sby
from formal.engine.induction import inductive
from formal.engine.proof import Result, Verdict
from formal.engine.terms import all_of
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


# The register stage.


@pytest.mark.parametrize("count", tiers(fast=[2], full=[9]))
def test_seeded_faults_of_the_skid_buffer_fail(count: int) -> None:
    proofs = [lambda system: inductive(system, serializer.spares), serializer.prove_queue]
    check_faults(lambda: SkidBuffer(beat_layout(PACKED)), proofs, count=count, assuming=serializer.spares)


class Open(FaultMixin, SkidBuffer):
    """No place for what comes while the output stalls."""

    def add_fault(self, m):
        m.d.comb += self.i.ready.eq(self.o.ready | ~self.o.valid)


@pytest.mark.full
def test_a_combinational_path_between_readys_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    assert serializer.prove_independent(transition(Packer(PACKED))).result is Result.FAIL
    assert serializer.prove_independent(transition(Open(beat_layout(PACKED)))).result is Result.FAIL
    monkeypatch.setattr(serializer_rtl, "SkidBuffer", Open)
    assert "the outputs differ" in serializer.prove_path(transition(RecordPath(CONFIGS["minimal"]))).evidence


# Records of one size.


class LosesRecords(Cutter):
    """Takes a record one beat early."""

    def elaborate(self, platform):
        self._beats -= 1
        m = super().elaborate(platform)
        self._beats += 1
        return m


def test_a_wrong_cutter_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sby, "BUILD", tmp_path)
    monkeypatch.setattr(cutter, "Cutter", LosesRecords)
    spec = cutter.CutterSpec(CONFIGS["minimal"])
    verdict = sby.check(spec, "faulty", mode="prove", depth=2, probes={"beat": "dut.beat"})
    # It takes more than two cycles to show after a reset: the step fails, not the base.
    assert verdict.result is Result.UNKNOWN
    assert "trace_induct.vcd" in verdict.evidence


# Records that differ in size.


@pytest.mark.parametrize("count", tiers(long=[10]))
def test_seeded_faults_of_the_packer_fail(count: int) -> None:
    proofs: list[Callable[[Transition], Verdict]] = [
        lambda system: packer.prove_invariant(PACKED, system),
        lambda system: packer.prove_output(PACKED, system),
        lambda system: packer.prove_ends(PACKED, system),
    ]
    check_faults(
        lambda: Packer(PACKED),
        proofs,
        count=count,
        assuming=lambda wires: all_of(packer.invariant(PACKED)(wires), packer.record_comes(PACKED)(wires)),
        watched=lambda system: watched(PACKED, system),
    )


class Waits(Packer):
    """What is left of a record waits for the next one."""

    def _assemble(self, m, shifted, advance):
        super()._assemble(m, shifted, advance)
        with m.If(~self.i.valid):
            m.d.comb += self.o.valid.eq(0)


class Endless(Packer):
    """Never says that a record ends."""

    def _assemble(self, m, shifted, advance):
        super()._assemble(m, shifted, advance)
        m.d.comb += self.o.p.last.eq(0)


class Drops(Packer):
    """What is placed is gone before there is room for it."""

    def _assemble(self, m, shifted, advance):
        super()._assemble(m, shifted, advance)
        m.d.comb += advance.eq(1)


class Early(Packer):
    """Begins the next record before the one has left."""

    def _select(self, m, step, position, advance):
        super()._select(m, step, position, advance)
        m.d.comb += self.i.ready.eq(advance)


@pytest.mark.parametrize("wrong", tiers(fast=[Early], full=[Drops]))
def test_a_packer_that_loses_or_repeats_bytes_fails(wrong: type[Packer]) -> None:
    system = watched(KUNPENG, transition(wrong(KUNPENG)))
    verdicts = [packer.prove_invariant(KUNPENG, system), packer.prove_output(KUNPENG, system)]
    assert Result.FAIL in [verdict.result for verdict in verdicts]


@pytest.mark.full
def test_a_packer_that_does_not_finish_a_record_fails() -> None:
    right, wrong = (watched(MODEL, transition(each(MODEL))) for each in (Packer, Waits))
    assert packer.prove_ends(MODEL, right).result is Result.PASS
    assert "a cycle violates it" in packer.prove_ends(MODEL, wrong).evidence


@pytest.mark.full
def test_a_record_that_never_ends_is_not_covered() -> None:
    assert "the shortest record" in packer.cover(KUNPENG, watched(KUNPENG, transition(Endless(KUNPENG)))).evidence


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


# The words of memory.


@pytest.mark.parametrize("count", tiers(fast=[2], full=[9]))
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


class Spills(FaultMixin, Aligner):
    """Writes the whole of each last word."""

    def add_fault(self, m):
        with m.If(self.o.p.last):
            m.d.comb += self.o.p.strobe.eq(-1)


class Cuts(FaultMixin, Aligner):
    """Forgets what a last beat has left over."""

    def add_fault(self, m):
        with m.If(self.i.p.last):
            m.d.comb += self.o.p.last.eq(1)


@pytest.mark.parametrize("wrong", [Spills, Cuts])
def test_an_aligner_that_writes_too_much_or_too_little_fails(wrong: type[Aligner]) -> None:
    system = aligner.watched(KUNPENG, transition(wrong(KUNPENG)))
    assert "a cycle violates it" in aligner.prove_words(KUNPENG, system).evidence


class Mixes(FaultMixin, Aligner):
    """Shows the next record in the last word of the one before it."""

    def add_fault(self, m):
        with m.If(self.o.p.last):
            m.d.comb += self.o.p.data[-1].eq(self.i.p.data[0])


def test_a_stalled_word_that_changes_fails() -> None:
    """In a byte that is not written as well."""
    for kind, result in (Aligner, Result.PASS), (Mixes, Result.FAIL):
        system = aligner.watched(KUNPENG, transition(kind(KUNPENG)))
        assert aligner.prove_stalled_words(KUNPENG, system).result is result


def test_the_relation_needs_a_stable_offset() -> None:
    """The buffer keeps it: without that the words are not what they should be."""
    system = aligner.watched(KUNPENG, transition(Aligner(KUNPENG)))
    assert inductive(system, aligner.relation(KUNPENG)).result is Result.FAIL
    assert aligner.cover(KUNPENG, system).result is Result.PASS
