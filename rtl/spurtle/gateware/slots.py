"""Slots of sampled operations: allocation, state and latency counters.

Ref: DDI0487 M.a, D17.3.7 R_QWTQB, R_LTMKQ (collisions), D17.6 (total and issue latency), D17.6.1 (alternate clock),
D17.6.4 (translation latency), D18.2.3 (saturating counters).
"""

from amaranth import *
from amaranth.lib.wiring import In, Out

from ..config import SPUConfig, check_config
from ..interface.members import when
from ..interface.sampling import SamplingPointSignature
from .component import ConfiguredComponent
from .fsm import FSMState

__all__ = ["Allocation", "Slot", "SlotState", "index_of"]


class Allocation(ConfiguredComponent):
    """Allocation of free slots to selected operations, the lowest slot first. Combinational.

    Members
    -------
    selected : In(ops_per_cycle) for each of selections_per_cycle
        Lane of the selected operation, one-hot or zero; of the second one, if there are two.
    free : In(slots)
    sampled, slot : Out
        See `SamplingPointSignature`.
    allocate : Out(slots)
        Slots that are allocated in this cycle.
    collisions : Out(range(selections_per_cycle + 1))
        Count of selected operations without a free slot. They are not sampled.
    """

    def __init__(self, config: SPUConfig):
        check_config(config)
        point = SamplingPointSignature(config).flip().members
        super().__init__(
            config,
            {
                "selected": In(config.ops_per_cycle).array(config.selections_per_cycle),
                "free": In(config.slots),
                **{name: point[name] for name in ("sampled", "slot") if name in point},
                "allocate": Out(config.slots),
                "collisions": Out(range(config.selections_per_cycle + 1)),
            },
        )

    def elaborate(self, platform):
        m = Module()

        # One-hot or zero: the slot that each selection would get.
        offers = []
        free = self.free
        for index in range(len(self.selected)):
            offer = Signal(self._config.slots, name=f"offer_{index}")
            # The lowest bit that is one.
            m.d.comb += offer.eq(free & -free)
            offers.append(offer)
            free = free & ~offer

        # One or two selections, whose lanes and slots differ.
        pairs = list(zip(self.selected, offers, strict=True))
        allocated = [Mux(selected.any(), offer, 0) for selected, offer in pairs]
        granted = [Mux(offer.any(), selected, 0) for selected, offer in pairs]
        m.d.comb += [
            self.allocate.eq(allocated[0] if len(allocated) == 1 else allocated[0] | allocated[1]),
            self.sampled.eq(granted[0] if len(granted) == 1 else granted[0] | granted[1]),
            self.collisions.eq(sum(selected.any() & ~offer.any() for selected, offer in pairs)),
        ]
        if self._config.slots > 1:
            # Lanes without a selection are not read: the first selection needs no condition.
            numbers = [index_of(offer) for offer in offers]
            for lane, slot in enumerate(self.slot):
                m.d.comb += slot.eq(Mux(self.selected[-1][lane], numbers[-1], numbers[0]))

        return m


def index_of(one_hot):
    """Return the index of the bit that is one."""
    bits = range((len(one_hot) - 1).bit_length())
    return Cat(Cat(bit for index, bit in enumerate(one_hot) if index >> k & 1).any() for k in bits)


class SlotState(FSMState):
    """States of `Slot`."""

    FREE = 0
    IN_FLIGHT = 1
    FINISHED = 2


class Slot(ConfiguredComponent):
    """Slot of one sampled operation.

    Once allocated it counts latencies. When the operation has finished it holds them until `release`.

    Timing: for an operation whose `allocate` is in cycle t, `issued`, `completed` and `translating` are reported from t
    on, and `finish` from t + 1. The report in t describes the first cycle after the sampling point: an operation that
    completes in it has a total latency of one. A slot is free again in the cycle after `vanish` or `release`.

    Members
    -------
    allocate : In(1)
        The slot is allocated to an operation.
    running, was_stopped : In(1)
        The Profiling Buffer runs in this cycle; it did not run in some cycle since the operation passed the sampling
        point and before this cycle.
    issued, completed, translating, alternate_tick : In(1)
        As in `InFlightSignature`. `alternate_tick` only with an alternate clock.
    finish, vanish : In(1)
        The operation has finished; it leaves no record. Never both.
    release : In(1)
        The sample was accepted.
    free, in_flight, finished : Out(1)
    total, issue, translation, alternate_issue : Out(counter_bits)
        Constant while `finished`. `alternate_issue` only with an alternate clock.
    drop : Out(1)
        The buffer did not run in some cycle since the operation passed the sampling point: its record is dropped
        (D17.4).
    """

    proof_signals = ("slot_state", "executing", "waiting")

    def __init__(self, config: SPUConfig):
        check_config(config)
        super().__init__(
            config,
            {
                "allocate": In(1),
                "running": In(1),
                "was_stopped": In(1),
                "issued": In(1),
                "completed": In(1),
                "translating": In(1),
                **when(config.altclk, alternate_tick=In(1)),
                "finish": In(1),
                "vanish": In(1),
                "release": In(1),
                "free": Out(1),
                "in_flight": Out(1),
                "finished": Out(1),
                **dict.fromkeys(config.latencies, Out(config.counter_bits)),
                "drop": Out(1),
            },
        )

    def elaborate(self, platform):
        m = Module()

        executing = Signal()
        waiting = Signal()
        # An operation that completes without a report of its issue no longer waits for issue.
        issue_ends = self.issued | self.completed

        with m.FSM(name="slot"):
            with m.State(SlotState.FREE):
                m.d.comb += self.free.eq(1)
                with m.If(self.allocate):
                    m.next = SlotState.IN_FLIGHT

            with m.State(SlotState.IN_FLIGHT):
                m.d.comb += self.in_flight.eq(1)
                with m.If(self.vanish):
                    m.next = SlotState.FREE
                with m.Elif(self.finish):
                    m.next = SlotState.FINISHED

            with m.State(SlotState.FINISHED):
                m.d.comb += self.finished.eq(1)
                with m.If(self.release):
                    m.next = SlotState.FREE

        with m.If(~self.running):
            m.d.sync += self.drop.eq(1)
        with m.If(self.in_flight & ~self.finish & ~self.vanish):
            self._count_latencies(m, executing & ~self.completed, waiting & ~issue_ends)
            with m.If(self.completed):
                m.d.sync += executing.eq(0)
            with m.If(issue_ends):
                m.d.sync += waiting.eq(0)
        # Captured in every cycle: `allocate` arrives late, and must not enable these flip-flops. A counter holds its
        # latency in case it ends with the next report: one if it ended with this one, two if not. `translation` and
        # `alternate_issue` are one if the operation waits for a translation, or for issue during a tick of the
        # alternate clock, in this report. Not in the FSM, so that Yosys maps the zeros to the reset of the flip-flops.
        with m.If(self.free):
            m.d.sync += [
                self.drop.eq(self.was_stopped | ~self.running),
                self.total.eq(Mux(self.completed, 1, 2)),
                self.issue.eq(Mux(issue_ends, 1, 2)),
                self.translation.eq(self.translating & ~self.completed),
                executing.eq(~self.completed),
                waiting.eq(~issue_ends),
            ]
            if self._config.altclk:
                m.d.sync += self.alternate_issue.eq(self.alternate_tick & ~issue_ends)

        return m

    def _count_latencies(self, m, executes, waits):
        """Count this cycle in each latency that has not ended. A counter whose carry is one stops at all ones.

        Parameters
        ----------
        executes, waits : Value
            The operation completes after this cycle; it is issued after this cycle. An operation that waits executes.
        """

        def count(condition, latency, following):
            with m.If(condition & ~following[-1]):
                m.d.sync += latency.eq(following)

        total = self.total + 1
        count(executes, self.total, total)
        # The issue latency equals the total latency until it ends, so that it needs no adder.
        count(waits, self.issue, total)
        count(executes & self.translating, self.translation, self.translation + 1)
        # The alternate clock issue latency is the issue latency in cycles of that clock (D17.6.1).
        if self._config.altclk:
            count(waits & self.alternate_tick, self.alternate_issue, self.alternate_issue + 1)
