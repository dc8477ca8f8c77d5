"""The slots of the sampled operations: their allocation, their state and their latency counters."""

# Ref: DDI0487 M.a, D17.3.7 R_QWTQB, R_LTMKQ (collisions), D17.6 (total and issue latency), D17.6.1 (alternate clock),
# D17.6.4 (translation latency), D18.2.3 (saturating counters).

from amaranth import *
from amaranth.lib.wiring import In, Out

from ..config import SPUConfig, check_config
from ..interface.members import when
from ..interface.sampling import SamplingPointSignature
from .component import ConfiguredComponent
from .fsm import FSMState
from .sample import StartLayout

__all__ = ["Allocation", "Slot", "SlotState"]


class Allocation(ConfiguredComponent):
    """Gives the free slots to the selected operations, the lowest first. Combinational.

    Members
    -------
    selected : In(ops_per_cycle) for each of selections_per_cycle
        Lane of the selected operation, one bit or none; of the second one, if there are two.
    free : In(slots)
    sampled, slot : Out
        See `SamplingPointSignature`.
    take : Out(slots)
        Slots that are given away.
    collisions : Out(range(selections_per_cycle + 1))
        Selected operations for which there was none: they are not sampled.
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
                "take": Out(config.slots),
                "collisions": Out(range(config.selections_per_cycle + 1)),
            },
        )

    def elaborate(self, platform):
        m = Module()

        # One hot, or zero: the slot that each selection would get.
        offers = []
        free = self.free
        for index in range(len(self.selected)):
            offer = Signal(self._config.slots, name=f"offer_{index}")
            m.d.comb += offer.eq(free & -free)
            offers.append(offer)
            free = free & ~offer

        pairs = list(zip(self.selected, offers, strict=True))
        taken = [Mux(selected.any(), offer, 0) for selected, offer in pairs]
        met = [Mux(offer.any(), selected, 0) for selected, offer in pairs]
        m.d.comb += [
            self.take.eq(taken[0] if len(taken) == 1 else taken[0] | taken[1]),
            self.sampled.eq(met[0] if len(met) == 1 else met[0] | met[1]),
            self.collisions.eq(sum(selected.any() & ~offer.any() for selected, offer in pairs)),
        ]
        if self._config.slots > 1:
            numbers = [_number(offer) for offer in offers]
            for lane, slot in enumerate(self.slot):
                m.d.comb += slot.eq(Mux(self.selected[-1][lane], numbers[-1], numbers[0]))

        return m


def _number(one_hot):
    """The place of the one bit that is set."""
    bits = range((len(one_hot) - 1).bit_length())
    return Cat(Cat(bit for place, bit in enumerate(one_hot) if place >> k & 1).any() for k in bits)


class SlotState(FSMState):
    """States of `Slot`."""

    FREE = 0
    IN_FLIGHT = 1
    FINISHED = 2


class Slot(ConfiguredComponent):
    """One slot. It follows the machine until it is given an operation, then stands still and counts, then holds its
    sample until that has been taken.

    Timing: an operation whose `take` comes in cycle t is told of by `issued`, `completed` and `translating` from t on,
    by `finish` from t + 1; that is one cycle more than has passed since the sampling point. A slot is free again in the
    cycle after `vanish` or `release`.

    Members
    -------
    take : In(1)
        It is given the operation whose state of the PE is at `following`.
    following, start : In(StartLayout), Out(StartLayout)
        State of the PE; what is kept of it, from the cycle after `take` on.
    running, missed : In(1)
        The Profiling Buffer runs in this cycle; it did not in one between that of `following` and this.
    issued, completed, translating, alternate_tick : In(1)
        The last one only with an alternate clock.
    finish, vanish : In(1)
        Its operation has finished; it leaves no record. Not both.
    release : In(1)
        Its sample was taken.
    free, in_flight, finished : Out(1)
    total, issue, translation, alternate_issue : Out(counter_bits)
        Steady while `finished`. The last one only with an alternate clock.
    unwanted : Out(1)
        The buffer has not run in some cycle since the operation passed: its record is to be dropped (D17.4).
    """

    def __init__(self, config: SPUConfig):
        check_config(config)
        super().__init__(
            config,
            {
                "take": In(1),
                "following": In(StartLayout(config)),
                "start": Out(StartLayout(config)),
                "running": In(1),
                "missed": In(1),
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
                "unwanted": Out(1),
            },
        )

    def elaborate(self, platform):
        m = Module()

        executing = Signal()
        waiting = Signal()
        # One that completes without having been issued waits no longer.
        leaves = self.issued | self.completed
        saturated = {name: Signal(name=f"{name}_saturated") for name in self._config.latencies}

        with m.If(~self.running):
            m.d.sync += self.unwanted.eq(1)

        with m.FSM(name="slot"):
            with m.State(SlotState.FREE):
                m.d.comb += self.free.eq(1)
                with m.If(self.take):
                    m.next = SlotState.IN_FLIGHT
                # Whether it is taken or not: `take` comes late in its cycle, and enables none of these flip-flops.
                m.d.sync += [
                    self.start.eq(self.following),
                    self.unwanted.eq(self.missed | ~self.running),
                    self.total.eq(Mux(self.completed, 1, 2)),
                    self.issue.eq(Mux(leaves, 1, 2)),
                    self.translation.eq(self.translating & ~self.completed),
                    *(flag.eq(0) for flag in saturated.values()),
                    executing.eq(~self.completed),
                    waiting.eq(~leaves),
                ]
                if self._config.altclk:
                    m.d.sync += self.alternate_issue.eq(self.alternate_tick & ~leaves)

            with m.State(SlotState.IN_FLIGHT):
                m.d.comb += self.in_flight.eq(1)
                with m.If(self.vanish):
                    m.next = SlotState.FREE
                with m.Elif(self.finish):
                    m.next = SlotState.FINISHED
                with m.Else():
                    self._count_latencies(m, executing, waiting, leaves, saturated)

            with m.State(SlotState.FINISHED):
                m.d.comb += self.finished.eq(1)
                with m.If(self.release):
                    m.next = SlotState.FREE

        return m

    def _count_latencies(self, m, executing, waiting, leaves, saturated):
        """Count the latencies of this cycle, and note which of them end with it."""

        def count(name):
            latency = getattr(self, name)
            with m.If(~saturated[name]):
                m.d.sync += [
                    latency.eq(latency + 1),
                    saturated[name].eq(latency == (1 << self._config.counter_bits) - 2),
                ]

        with m.If(executing & ~self.completed):
            count("total")
            with m.If(self.translating):
                count("translation")
        with m.If(waiting & ~leaves):
            count("issue")
            if self._config.altclk:
                with m.If(self.alternate_tick):
                    count("alternate_issue")
        with m.If(self.completed):
            m.d.sync += executing.eq(0)
        with m.If(leaves):
            m.d.sync += waiting.eq(0)
