"""Completion of sampled operations that have finished: filtered out, dropped, or recorded (D17.5, D17.6).

Ref: DDI0487 M.a, D17.5 (filtering precedes the construction of the record), D17.4 (dropped records).
"""

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
    DROP = 2
    RECORD = 3


class Completion(ConfiguredComponent):
    """Control of filtering and recording of finished samples, one after the other.

    Timing: the filter has the cycle in which a sample becomes valid. Its results are registered, and combined and used
    in the next cycle. A record is requested from the cycle after that on, or the sample is accepted in that cycle, in a
    state of its own: the results arrive too late to release a slot. If the buffer stops in the cycle in which they are
    used, or later, the buffer drops the record.

    Members
    -------
    i : In(stream of SampleLayout)
        Accepted when its record has been sent, or when it is known that it has none.
    drop : In(1)
        The record of the sample at `i` is to be dropped, because the buffer did not run in some earlier cycle.
    discard : In(1)
        The Profiling Buffer is in Discard mode: no record is made.
    rejected, feed : In, one bit for each of filters; for each of feed_events
        Filters that reject the sample at `i`; events that it feeds. Combinational.
    fed, filtrated : Out(1)
        Strobes, one cycle after the sample became valid: a sampled operation has finished; it has passed the filters.
    fed_as : Out, one bit for each of feed_events
        Events that the operation feeds, in the cycle of `fed`, and otherwise zero.
    o : Out(stream of SampleLayout)
        Sample at `i` whose record is to be made. Accepted when the record has been sent.
    """

    proof_signals = ("completion_state", "rejections", "feed_of_sample")

    def __init__(self, config: SPUConfig):
        check_config(config)
        super().__init__(
            config,
            {
                "i": In(stream.Signature(SampleLayout(config))),
                "drop": In(1),
                "discard": In(1),
                "rejected": In(len(config.filters)),
                "feed": In(len(config.feed_events)),
                "fed": Out(1),
                "filtrated": Out(1),
                "fed_as": Out(len(config.feed_events)),
                "o": Out(stream.Signature(SampleLayout(config))),
            },
        )

    def elaborate(self, platform):
        m = Module()

        rejections = Signal.like(self.rejected)
        feed = Signal.like(self.feed, name="feed_of_sample")
        passed = Signal()
        m.d.comb += [passed.eq(~rejections.any()), self.o.payload.eq(self.i.payload)]

        with m.FSM(name="completion"):
            with m.State(CompletionState.FILTER):
                m.d.sync += [rejections.eq(self.rejected), feed.eq(self.feed)]
                with m.If(self.i.valid):
                    m.next = CompletionState.DECIDE

            with m.State(CompletionState.DECIDE):
                m.d.comb += [self.fed.eq(1), self.fed_as.eq(feed), self.filtrated.eq(passed)]
                with m.If(~passed | self.drop | self.discard):
                    m.next = CompletionState.DROP
                with m.Else():
                    m.next = CompletionState.RECORD

            with m.State(CompletionState.DROP):
                m.d.comb += self.i.ready.eq(1)
                m.next = CompletionState.FILTER

            with m.State(CompletionState.RECORD):
                m.d.comb += [self.o.valid.eq(1), self.i.ready.eq(self.o.ready)]
                with m.If(self.o.ready):
                    m.next = CompletionState.FILTER

        return m
