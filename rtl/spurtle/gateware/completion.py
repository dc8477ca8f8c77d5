"""What becomes of a sampled operation that has finished: filtered out, dropped, or recorded (D17.5, D17.6)."""

# Ref: DDI0487 M.a, D17.5 (filtering comes before the record is made), D17.4 (records that are dropped).

from amaranth import *
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from ..config import SPUConfig, check_config
from .component import ConfiguredComponent
from .fsm import FSMState
from .sample import SampleLayout

__all__ = ["Completion", "CompletionState"]


class CompletionState(FSMState):
    """States of `Completion`."""

    FILTER = 0
    DECIDE = 1
    RECORD = 2


class Completion(ConfiguredComponent):
    """Has the filter look at finished samples, one after the other, and the record made of those that it wants.

    Timing: the filter is given the cycle in which a sample comes. What it says is joined in the next, a logical AND of
    its parts, and decides there. A record is asked for from the cycle after that.

    Members
    -------
    i : In(stream of SampleLayout)
        Taken when its record has left, or when there is to be none.
    drop : In(1)
        The record of the sample at `i` is to be dropped.
    writing : In(1)
        The Profiling Buffer takes records: it is enabled and not stopped, nor in discard mode.
    rejected : In(1) for each of filters
        Which filters reject the sample at `i`, combinational.
    fed, filtrated : Out(1)
        Strobes: a sampled operation has finished; it has passed the filter, a cycle later.
    o : Out(stream of SampleLayout)
        The sample at `i`, where its record is to be made; taken when that has left.
    """

    def __init__(self, config: SPUConfig):
        check_config(config)
        super().__init__(
            config,
            {
                "i": In(stream.Signature(SampleLayout(config))),
                "drop": In(1),
                "writing": In(1),
                "rejected": In(len(config.filters)),
                "fed": Out(1),
                "filtrated": Out(1),
                "o": Out(stream.Signature(SampleLayout(config))),
            },
        )

    def elaborate(self, platform):
        m = Module()

        rejections = Signal.like(self.rejected)
        passed = Signal()
        m.d.comb += [passed.eq(~rejections.any()), self.o.payload.eq(self.i.payload)]

        with m.FSM(name="completion"):
            with m.State(CompletionState.FILTER):
                m.d.comb += self.fed.eq(self.i.valid)
                m.d.sync += rejections.eq(self.rejected)
                with m.If(self.i.valid):
                    m.next = CompletionState.DECIDE

            with m.State(CompletionState.DECIDE):
                m.d.comb += self.filtrated.eq(passed)
                with m.If(passed & ~self.drop & self.writing):
                    m.next = CompletionState.RECORD
                with m.Else():
                    m.d.comb += self.i.ready.eq(1)
                    m.next = CompletionState.FILTER

            with m.State(CompletionState.RECORD):
                m.d.comb += [self.o.valid.eq(1), self.i.ready.eq(self.o.ready)]
                with m.If(self.o.ready):
                    m.next = CompletionState.FILTER

        return m
