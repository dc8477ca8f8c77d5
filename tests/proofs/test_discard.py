"""The proofs of discard mode, and of another owner of the Profiling Buffer, find what is wrong."""

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


class Fills(FaultMixin, ProfilingBuffer):
    """Knows no discard mode."""

    def add_fault(self, m):
        m.d.comb += self.writing.eq(self.running)


class LosesCollisions(FaultMixin, ProfilingBuffer):
    """A collision is not told of in discard mode."""

    def add_fault(self, m):
        with m.If(self.pmblimitr.FM == FM.DISCARD):
            m.d.sync += self.pmbsr.COLL.eq(self.pmbsr.COLL)


class Moves(FaultMixin, ProfilingBuffer):
    """The pointer follows what is dropped."""

    def add_fault(self, m):
        with m.If(self.i.valid & self.i.ready & ~self.write.beat.valid):
            m.d.sync += self.pmbptr.eq(self.pmbptr + 8)


class WaitsForMemory(FaultMixin, ProfilingBuffer):
    """What is dropped waits for memory."""

    def add_fault(self, m):
        with m.If(~self.write.beat.ready):
            m.d.comb += self.i.ready.eq(0)


class Stops(FaultMixin, ProfilingBuffer):
    """It is full whenever no record would fit."""

    def add_fault(self, m):
        with m.If(self.running & (self.pmbptr[12:] >= self.pmblimitr.LIMIT)):
            m.d.comb += self.full.eq(1)


@pytest.mark.parametrize("wrong", tiers(fast=[Fills], full=[LosesCollisions, Moves, WaitsForMemory, Stops]))
def test_wrong_discard_modes_fail(wrong: type[ProfilingBuffer]) -> None:
    WrongCircuit(wrong, DISCARDS, discard.prove_discards).check()


class Deaf(FaultMixin, ProfilingBuffer):
    """Goes on for another owner."""

    def add_fault(self, m):
        m.d.comb += self.running.eq(self.pmblimitr.E & ~self.pmbsr.S)


class Commits(FaultMixin, ProfilingBuffer):
    """The pointer moves with the end of each record."""

    def add_fault(self, m):
        with m.If(self.write.done):
            m.d.sync += self.pmbptr.eq(self.write.beat.p.address)


def test_a_buffer_that_ignores_a_new_owner_fails() -> None:
    WrongCircuit(Deaf, DISCARDS, discard.prove_new_owner).check()
    WrongCircuit(Commits, DISCARDS, discard.prove_unkept).check()


def test_a_record_that_advances_the_pointer_in_discard_mode_fails() -> None:
    assert "a cycle violates it" in discard.prove_kept(transition(Fills(DISCARDS))).evidence
    # PMBLIMITR_EL1 can change without a write strobe.
    assert "a cycle violates it" in inductive(transition(ProfilingBuffer(DISCARDS)), discard.kept).evidence
