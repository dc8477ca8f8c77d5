"""The slots of the sampled operations: their counters, timestamp and context, and collisions (D17.3.7, D17.6)."""

# Ref: DDI0487 M.a, D17.3.7 R_QWTQB, R_LTMKQ (collisions), D17.6 (what is captured), D18.2.3 (saturating counters).

from amaranth import *
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from ..config import SPUConfig, check_config
from ..interface.operation import OperationLayout
from ..interface.pe_state import PEStateSignature
from ..interface.sampling import FinishSignature, InFlightSignature, SamplingPointSignature
from .control import Collect
from .previous import previous_layout

__all__ = ["Allocation", "InFlight", "SampleLayout", "Slot", "StartLayout"]


class StartLayout(data.StructLayout):
    """State of the PE when the operation passed the sampling point, and what of it may be recorded. LSB first; `nse`
    only with FEAT_RME.
    """

    def __init__(self, config: SPUConfig):
        super().__init__(
            {
                "el": 2,
                "ns": 1,
                **({"nse": 1} if config.rme else {}),
                "contextidr_el1": 32,
                "contextidr_el2": 32,
                "timestamp": 64,
                "collect": Collect,
            }
        )


class SampleLayout(data.StructLayout):
    """A sampled operation, from start to finish. LSB first.

    Members
    -------
    start : Start
    operation : Operation
    previous : previous_layout
        Where the taken branch before it went. Only with FEAT_SPE_PBT.
    total, issue, translation, alternate_issue : unsigned(counter_bits)
        Latencies in cycles; all ones when saturated. The last one only with an alternate clock.
    """

    def __init__(self, config: SPUConfig):
        super().__init__(
            {"start": StartLayout(config), **_told(config), **dict.fromkeys(config.latencies, config.counter_bits)}
        )


def _told(config: SPUConfig) -> dict[str, data.Layout]:
    """What of a sample is known when its operation finishes, and not before."""
    return {
        "operation": OperationLayout(config),
        **({"previous": previous_layout(config)} if config.pbt else {}),
    }


class Allocation(wiring.Component):
    """Gives the free slots to the selected operations, the lowest first. Combinational.

    Members
    -------
    selected : In(ops_per_cycle) for each of selections_per_cycle
        Lane of the selected operation, one bit or none; of the second one, if there are two.
    free : In(slots)
    sampled, slot : Out
        See `pe.SamplingPoint`.
    take : Out(slots)
        Slots that are given away.
    collisions : Out(range(selections_per_cycle + 1))
        Selected operations for which there was none: they are not sampled.
    """

    def __init__(self, config: SPUConfig):
        check_config(config)
        self._config = config
        point = SamplingPointSignature(config).flip().members
        super().__init__(
            {
                "selected": In(config.ops_per_cycle).array(config.selections_per_cycle),
                "free": In(config.slots),
                **{name: point[name] for name in ("sampled", "slot") if name in point},
                "take": Out(config.slots),
                "collisions": Out(range(config.selections_per_cycle + 1)),
            }
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


class Slot(wiring.Component):
    """One slot. It follows the machine until it is given an operation, then stands still and counts, then holds its
    sample until that has been taken.

    Timing: an operation whose `take` comes in cycle t is told of by `issued`, `completed` and `translating` from t on,
    by `finish` from t + 1; that is one cycle more than has passed since the sampling point. A slot is free again in the
    cycle after `vanish` or `release`.

    Members
    -------
    take : In(1)
        It is given the operation whose state of the PE is at `following`.
    following, start : In(Start), Out(Start)
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
        self._config = config
        super().__init__(
            {
                "take": In(1),
                "following": In(StartLayout(config)),
                "start": Out(StartLayout(config)),
                "running": In(1),
                "missed": In(1),
                "issued": In(1),
                "completed": In(1),
                "translating": In(1),
                **({"alternate_tick": In(1)} if config.altclk else {}),
                "finish": In(1),
                "vanish": In(1),
                "release": In(1),
                "free": Out(1),
                "in_flight": Out(1),
                "finished": Out(1),
                **dict.fromkeys(config.latencies, Out(config.counter_bits)),
                "unwanted": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()

        executing = Signal()
        waiting = Signal()
        # One that completes without having been issued waits no longer.
        leaves = self.issued | self.completed
        saturated = {name: Signal(name=f"{name}_saturated") for name in self._config.latencies}

        def count(name):
            latency = getattr(self, name)
            with m.If(~saturated[name]):
                m.d.sync += [
                    latency.eq(latency + 1),
                    saturated[name].eq(latency == (1 << self._config.counter_bits) - 2),
                ]

        with m.If(~self.running):
            m.d.sync += self.unwanted.eq(1)

        with m.FSM(name="slot"):
            with m.State("FREE"):
                m.d.comb += self.free.eq(1)
                with m.If(self.take):
                    m.next = "IN_FLIGHT"
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

            with m.State("IN_FLIGHT"):
                m.d.comb += self.in_flight.eq(1)
                with m.If(self.vanish):
                    m.next = "FREE"
                with m.Elif(self.finish):
                    m.next = "FINISHED"
                with m.Else():
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

            with m.State("FINISHED"):
                m.d.comb += self.finished.eq(1)
                with m.If(self.release):
                    m.next = "FREE"

        return m


class InFlight(wiring.Component):
    """The sampled operations, from the sampling point until their records have left.

    Samples are offered in the order in which their operations finished. With one slot the sample stays in it until it
    is taken; with more, it is moved out and its slot is free for another operation.

    Members
    -------
    selected : In(ops_per_cycle) for each of selections_per_cycle
        See `Allocation`; `answer_latency` cycles after the operation passed.
    sampled, slot, collisions : Out
        See `Allocation`.
    pe, collect : In(PEState), In(Collect)
        As they are for the operations that pass in this cycle.
    offset : In(64)
        Taken off the system counter of the same cycle for the timestamp. Only with EL2.
    running : In(1)
        The Profiling Buffer is enabled and not stopped.
    in_flight, finish : In
        What the core reports.
    previous : In(previous_layout)
        Where the taken branch went that retired last. Only with FEAT_SPE_PBT.
    sample : Out(stream of Sample)
        A finished operation, steady until it is taken. From a `finish` it takes one cycle to be offered with one slot,
        two with more.
    unwanted : Out(1)
        The buffer has not run in some cycle since the operation passed: its record is to be dropped.
    pending : Out(1)
        There is a finished operation whose sample has not been taken.
    """

    def __init__(self, config: SPUConfig):
        check_config(config)
        self._config = config
        point = SamplingPointSignature(config).flip().members
        super().__init__(
            {
                "selected": In(config.ops_per_cycle).array(config.selections_per_cycle),
                **{name: point[name] for name in ("sampled", "slot") if name in point},
                "collisions": Out(range(config.selections_per_cycle + 1)),
                "pe": In(PEStateSignature(config)),
                "collect": In(Collect),
                **({"offset": In(64)} if config.el2 else {}),
                "running": In(1),
                "in_flight": In(InFlightSignature(config)),
                "finish": In(FinishSignature(config)),
                **({"previous": In(previous_layout(config))} if config.pbt else {}),
                "sample": Out(stream.Signature(SampleLayout(config))),
                "unwanted": Out(1),
                "pending": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()

        m.submodules.allocation = allocation = Allocation(self._config)
        slots = [Slot(self._config) for _ in range(self._config.slots)]
        following, missed = self._delay(m)
        for number, slot in enumerate(slots):
            m.submodules[f"slot_{number}"] = slot
            mine = self.finish.valid & (self.finish.slot == number if len(slots) > 1 else 1)
            m.d.comb += [
                allocation.free[number].eq(slot.free),
                slot.take.eq(allocation.take[number]),
                slot.following.eq(following),
                slot.running.eq(self.running),
                slot.missed.eq(missed),
                slot.issued.eq(self.in_flight.issued[number]),
                slot.completed.eq(self.in_flight.completed[number]),
                slot.translating.eq(self.in_flight.translating[number]),
                *([slot.alternate_tick.eq(self.in_flight.alternate_tick)] if self._config.altclk else []),
                slot.finish.eq(mine & ~self.finish.vanished),
                slot.vanish.eq(mine & self.finish.vanished),
            ]
        m.d.comb += [
            *(mine.eq(selected) for mine, selected in zip(allocation.selected, self.selected, strict=True)),
            self.sampled.eq(allocation.sampled),
            self.collisions.eq(allocation.collisions),
        ]
        if len(slots) == 1:
            self._keep(m, slots[0])
        else:
            m.d.comb += [mine.eq(slot) for mine, slot in zip(self.slot, allocation.slot, strict=True)]
            self._move(m, slots)

        return m

    def _delay(self, m):
        """State of the PE, and whether the buffer has not run since, of the operations that are answered in this
        cycle.
        """
        now = Signal(StartLayout(self._config))
        states = ("el", "ns", "nse", "contextidr_el1", "contextidr_el2")
        m.d.comb += [
            *(now[name].eq(getattr(self.pe, name)) for name in states if hasattr(self.pe, name)),
            now.timestamp.eq(self.pe.physical_count),
            now.collect.eq(self.collect),
        ]
        missed = Const(0)
        for age in range(self._config.answer_latency):
            if age:
                before, missed = missed, Signal(name=f"missed_{age}")
                m.d.sync += missed.eq(before | ~self.running)
            before, now = now, Signal(StartLayout(self._config), name=f"start_{age}")
            m.d.sync += now.eq(before)
            if age == 0 and self._config.el2:
                now = self._take_off(m, now)
        return now, missed

    def _take_off(self, m, start):
        """The timestamp from the system counter, a cycle after them: choosing the offset and a subtraction of 64 bits
        do not fit into one.
        """
        offset_before = Signal(64)
        m.d.sync += offset_before.eq(self.offset)
        shifted = Signal.like(start, name="shifted")
        m.d.comb += [shifted.eq(start), shifted.timestamp.eq(start.timestamp - offset_before)]
        return shifted

    def _keep(self, m, slot):
        """The only slot's sample stays where it is."""
        told = Signal(data.StructLayout(_told(self._config)))
        with m.If(slot.in_flight):
            m.d.sync += self._tell(told)
        m.d.comb += [
            self.sample.p.start.eq(slot.start),
            *(self.sample.p[name].eq(told[name]) for name in _told(self._config)),
            *(self.sample.p[name].eq(getattr(slot, name)) for name in self._config.latencies),
            self.sample.valid.eq(slot.finished),
            slot.release.eq(self.sample.ready),
            self.unwanted.eq(slot.unwanted),
            self.pending.eq(slot.finished),
        ]

    def _tell(self, told):
        """What the finish of an operation tells of it."""
        previous = [told.previous.eq(self.previous)] if self._config.pbt else []
        return [told.operation.eq(self.finish.operation), *previous]

    def _move(self, m, slots):
        """The samples are moved out in the order in which their operations finished."""
        told = data.StructLayout(_told(self._config))
        m.submodules.operations = operations = memory.Memory(shape=told, depth=len(slots), init=[])
        m.submodules.order = order = SyncFIFO(width=len(self.finish.slot), depth=len(slots))
        store = operations.write_port()
        load = operations.read_port(domain="comb")
        ends = Cat(slot.in_flight & slot.finish for slot in slots).any()
        next_slot = order.r_data
        moves = Signal()
        chosen = Signal(SampleLayout(self._config))
        chosen_unwanted = Signal()
        m.d.comb += [
            order.w_en.eq(ends),
            order.w_data.eq(self.finish.slot),
            store.en.eq(ends),
            store.addr.eq(self.finish.slot),
            *self._tell(store.data),
            load.addr.eq(next_slot),
            moves.eq(order.r_rdy & (~self.sample.valid | self.sample.ready)),
            order.r_en.eq(moves),
            *(chosen[name].eq(load.data[name]) for name in _told(self._config)),
            self.pending.eq(order.r_rdy | self.sample.valid),
        ]
        with m.Switch(next_slot):
            for number, slot in enumerate(slots):
                with m.Case(number):
                    m.d.comb += [
                        slot.release.eq(moves),
                        chosen.start.eq(slot.start),
                        *(chosen[name].eq(getattr(slot, name)) for name in self._config.latencies),
                        chosen_unwanted.eq(slot.unwanted),
                    ]

        with m.If(~self.running):
            m.d.sync += self.unwanted.eq(1)
        with m.If(self.sample.ready):
            m.d.sync += self.sample.valid.eq(0)
        # Nothing else is loaded: what memory holds before its first write must not be seen.
        with m.If(moves):
            m.d.sync += [
                self.sample.valid.eq(1),
                self.sample.payload.eq(chosen),
                self.unwanted.eq(chosen_unwanted | ~self.running),
            ]
