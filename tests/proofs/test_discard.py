"""The proofs of Discard mode, and of a change of owner, fail for wrong circuits."""

import pytest

from configurations import FEATURES
from formal.buffer import discard
from formal.engine.induction import inductive
from formal.engine.transition import transition
from spurtle.arch import FM
from spurtle.gateware.buffer import ProfilingBuffer
from tests.support.proofs import FaultMixin, WrongCircuit
from tests.support.tiers import tiers

DISCARDS = FEATURES["minimal_v1p2"]


class IgnoresDiscardMode(FaultMixin, ProfilingBuffer):
    """Discard mode is ignored."""

    def add_fault(self, m):
        m.d.comb += [m.submodules.issue.writing.eq(self.running), m.submodules.issue.enabled.eq(1)]


class LosesCollisions(FaultMixin, ProfilingBuffer):
    """A collision is not reported in Discard mode."""

    def add_fault(self, m):
        with m.If(self.pmblimitr.FM == FM.DISCARD):
            m.d.comb += m.submodules.buffer_status.collision.eq(0)


class AdvancesPointer(FaultMixin, ProfilingBuffer):
    """The pointer advances for dropped beats."""

    def add_fault(self, m):
        with m.If(self.i.valid & self.i.ready & ~self.write.beat.valid):
            m.d.comb += m.submodules.write_pointer.advance.eq(1)


class WaitsForMemory(FaultMixin, ProfilingBuffer):
    """Dropped beats wait for memory."""

    def add_fault(self, m):
        with m.If(~self.write.beat.ready):
            m.d.comb += [self.i.ready.eq(0), m.submodules.issue.i.valid.eq(0)]


class FullInDiscardMode(FaultMixin, ProfilingBuffer):
    """The buffer is full in Discard mode as well, if no record fits."""

    def add_fault(self, m):
        with m.If(self.running & (self.pmbptr[12:] >= self.pmblimitr.LIMIT)):
            m.d.comb += self.full.eq(1)


@pytest.mark.parametrize(
    "wrong",
    tiers(fast=[IgnoresDiscardMode], full=[LosesCollisions, AdvancesPointer, WaitsForMemory, FullInDiscardMode]),
)
def test_wrong_discard_modes_fail(wrong: type[ProfilingBuffer]) -> None:
    WrongCircuit(wrong, DISCARDS, discard.prove_discards).check()


class IgnoresNewOwner(FaultMixin, ProfilingBuffer):
    """The buffer runs in the cycle of `new_owner`."""

    def add_fault(self, m):
        m.d.comb += [
            self.running.eq(self.pmblimitr.E & ~self.pmbsr.S),
            m.submodules.issue.writing.eq(self.running),
        ]


class AlwaysCommits(FaultMixin, ProfilingBuffer):
    """The pointer advances at the end of every record."""

    def add_fault(self, m):
        with m.If(m.submodules.records.none == 0):
            m.d.comb += m.submodules.write_pointer.advance.eq(1)


def test_a_buffer_that_ignores_a_new_owner_fails() -> None:
    WrongCircuit(IgnoresNewOwner, DISCARDS, discard.prove_new_owner).check()
    WrongCircuit(AlwaysCommits, DISCARDS, discard.prove_abandoned).check()


def test_a_record_that_advances_the_pointer_in_discard_mode_fails() -> None:
    assert "a cycle violates it" in discard.prove_no_commit(transition(IgnoresDiscardMode(DISCARDS))).evidence
    # PMBLIMITR_EL1 can change without a write strobe.
    assert (
        "a cycle violates it"
        in inductive(transition(ProfilingBuffer(DISCARDS)), discard.no_commit_while_discarding).evidence
    )
