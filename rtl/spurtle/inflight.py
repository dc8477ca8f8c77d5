"""The slot of the sampled operation: its counters, timestamp and context, and collisions (D17.3.7, D17.6)."""

# Ref: DDI0487 M.a, D17.3.7 R_WQTBQ, R_LTMKQ (collisions), D17.6 (what is captured), D18.2.3 (saturating counters).

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from .config import SPUConfig
from .control import Collect
from .pe import Finish, Operation, PEState
from .pe import InFlight as InFlightPort

__all__ = ["InFlight", "Sample", "Start"]


class Start(data.Struct):
    """State of the PE when the operation passed the sampling point, and what of it may be recorded. LSB first."""

    el: 2
    ns: 1
    contextidr_el1: 32
    contextidr_el2: 32
    timestamp: 64
    collect: Collect


class Sample(data.StructLayout):
    """A sampled operation, from start to finish. LSB first.

    Members
    -------
    start : Start
    operation : Operation
    total, issue, translation : unsigned(counter_bits)
        Latencies in cycles; all ones when saturated.
    """

    def __init__(self, config: SPUConfig):
        super().__init__(
            {
                "start": Start,
                "operation": Operation(config),
                "total": config.counter_bits,
                "issue": config.counter_bits,
                "translation": config.counter_bits,
            }
        )


class InFlight(wiring.Component):
    """One slot. It follows the machine until an operation is selected, then stands still and counts, then holds its
    sample until the record has left.

    Timing: an operation passes the sampling point in cycle t; `selected` says so in t + 1; `finish` comes in t + 2 or
    later, and its total latency is the distance from t. The filter is given one cycle, its verdict the next. A
    selection that finds the slot taken in cycle t collides.

    An operation that was in flight or unwritten while the buffer was not running leaves no record (D17.4).

    Members
    -------
    selected : In(1)
        The operation that passed in the cycle before is selected.
    sampled, collision : Out(1)
        What became of it.
    pe, collect : In(PEState), In(Collect)
        As they are for the operation that passes in this cycle.
    running : In(1)
        The Profiling Buffer is enabled and not stopped.
    in_flight, finish : In
        What the core reports.
    sample : Out(stream of Sample)
        Valid for an operation that is to be recorded, taken when its record has left. The payload is steady from the
        cycle after `finish`: that is what the filter looks at.
    unwanted : Out(1)
        The buffer has not run in some cycle since the operation passed: its record is to be dropped.
    pass_filter : In(1)
        The filter's verdict on the payload, combinational.
    fed, filtrated : Out(1)
        Strobes: a sampled operation has finished; it has passed the filter.
    pending : Out(1)
        There is a finished operation whose record has not left.
    """

    def __init__(self, config: SPUConfig):
        self._config = config
        super().__init__(
            {
                "selected": In(1),
                "sampled": Out(1),
                "collision": Out(1),
                "pe": In(PEState()),
                "collect": In(Collect),
                "running": In(1),
                "in_flight": In(InFlightPort()),
                "finish": In(Finish(config)),
                "sample": Out(stream.Signature(Sample(config))),
                "unwanted": Out(1),
                "pass_filter": In(1),
                "fed": Out(1),
                "filtrated": Out(1),
                "pending": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()

        sample = self.sample.payload
        waiting = Signal()
        passed = Signal()
        saturated = {name: Signal(name=f"{name}_saturated") for name in ("total", "issue", "translation")}

        def count(name):
            with m.If(~saturated[name]):
                m.d.sync += [
                    sample[name].eq(sample[name] + 1),
                    saturated[name].eq(sample[name] == (1 << self._config.counter_bits) - 2),
                ]

        with m.If(~self.running):
            m.d.sync += self.unwanted.eq(1)

        with m.FSM(name="slot"):
            with m.State("FREE"):
                m.d.comb += self.sampled.eq(self.selected)
                with m.If(self.selected):
                    m.next = "IN_FLIGHT"
                with m.Else():
                    self._follow(m, sample.start)
                    m.d.sync += self.unwanted.eq(0)
                m.d.sync += [
                    sample.total.eq(2),
                    sample.issue.eq(Mux(self.in_flight.issued, 1, 2)),
                    sample.translation.eq(self.in_flight.translating),
                    *(flag.eq(0) for flag in saturated.values()),
                    waiting.eq(~self.in_flight.issued),
                ]

            with m.State("IN_FLIGHT"):
                m.d.sync += sample.operation.eq(self.finish.operation)
                with m.If(self.finish.valid):
                    m.next = "FILTER"
                    with m.If(self.finish.vanished):
                        m.next = "FREED"
                with m.Else():
                    count("total")
                    with m.If(waiting & ~self.in_flight.issued):
                        count("issue")
                    with m.If(self.in_flight.translating):
                        count("translation")
                    with m.If(self.in_flight.issued):
                        m.d.sync += waiting.eq(0)

            with m.State("FILTER"):
                m.d.comb += [self.pending.eq(1), self.fed.eq(1)]
                m.d.sync += passed.eq(self.pass_filter)
                m.next = "VERDICT"

            with m.State("VERDICT"):
                m.d.comb += [self.pending.eq(1), self.filtrated.eq(passed)]
                m.next = "FREED"
                with m.If(passed & ~self.unwanted & self.running):
                    m.next = "RECORD"

            with m.State("RECORD"):
                m.d.comb += [self.pending.eq(1), self.sample.valid.eq(1)]
                with m.If(self.sample.ready):
                    m.next = "FREED"

            with m.State("FREED"):
                # One cycle of following before an operation may be selected.
                self._follow(m, sample.start)
                m.d.sync += self.unwanted.eq(0)
                m.next = "FREE"

        m.d.comb += self.collision.eq(self.selected & ~self.sampled)

        return m

    def _follow(self, m, start):
        m.d.sync += [
            start.el.eq(self.pe.el),
            start.ns.eq(self.pe.ns),
            start.contextidr_el1.eq(self.pe.contextidr_el1),
            start.timestamp.eq(self.pe.physical_count),
            start.collect.eq(self.collect),
        ]
