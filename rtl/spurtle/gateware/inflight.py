"""Sampled operations from the sampling point until their records are made: slots, captured state and order.

Ref: DDI0487 M.a, D17.3.7 (sampled operations), D17.6 (captured information).
"""

from amaranth import *
from amaranth.lib import memory, stream
from amaranth.lib.wiring import In, Out

from ..config import SPUConfig, check_config
from ..interface.members import when
from ..interface.pe_state import PEStateSignature
from ..interface.sampling import FinishSignature, InFlightSignature, SamplingPointSignature
from .component import ConfiguredComponent
from .control import CollectionPermissions
from .finish_order import FinishOrder
from .previous_target import previous_target_layout
from .sample import KnownAtFinishLayout, SampleLayout, StartLayout
from .slots import Allocation, Slot
from .start_states import StartStates

__all__ = ["InFlight"]

_LOW_BITS = 32
"""Width of the part of the timestamp from which the offset is subtracted first."""


class InFlight(ConfiguredComponent):
    """Sampled operations, from the sampling point until their samples are accepted.

    Samples are sent in the order in which their operations finished. With one slot, a sample stays in the registers
    that captured it until it is accepted. With several slots, its parts are in memories, except for the latencies; it
    is moved to an output register, and its slot is free for another operation.

    Members
    -------
    selected : In(ops_per_cycle) for each of selections_per_cycle
        See `Allocation`; `answer_latency` cycles after the operation passed the sampling point.
    sampled, slot, collisions : Out
        See `Allocation`.
    pe, collect : In(PEStateSignature), In(CollectionPermissions)
        State and permissions for the operations that pass the sampling point in this cycle.
    offset, subtract_offset : In(64), In(1)
        Offset of the system counter of this cycle for the timestamp, and whether it is subtracted. Only with EL2.
    running : In(1)
        The Profiling Buffer is enabled and not stopped.
    in_flight, finish : In
        Reports of the core.
    previous : In(previous_target_layout)
        Target of the taken branch that retired last. Only with FEAT_SPE_PBT.
    sample : Out(stream of SampleLayout)
        Finished operation. Valid one cycle after `finish` at the earliest with one slot. With several slots, valid two
        cycles after `finish` and two cycles after the previous sample was accepted, at the earliest.
    drop : Out(1)
        The buffer did not run in some cycle since the operation passed the sampling point: its record is to be dropped.
    pending : Out(1)
        The sample of a finished operation has not been accepted.
    """

    proof_signals = (
        "incoming",
        "start",
        "start_*",
        "was_stopped_*",
        "offset_high",
        "borrow",
        "known_at_finish",
        "operations",
    )

    def __init__(self, config: SPUConfig):
        check_config(config)
        point = SamplingPointSignature(config).flip().members
        super().__init__(
            config,
            {
                "selected": In(config.ops_per_cycle).array(config.selections_per_cycle),
                **{name: point[name] for name in ("sampled", "slot") if name in point},
                "collisions": Out(range(config.selections_per_cycle + 1)),
                "pe": In(PEStateSignature(config)),
                "collect": In(CollectionPermissions),
                **when(config.el2, offset=In(64), subtract_offset=In(1)),
                "running": In(1),
                "in_flight": In(InFlightSignature(config)),
                "finish": In(FinishSignature(config)),
                **when(config.pbt, previous=In(previous_target_layout(config))),
                "sample": Out(stream.Signature(SampleLayout(config))),
                "drop": Out(1),
                "pending": Out(1),
            },
        )

    def elaborate(self, platform):
        m = Module()

        m.submodules.allocation = allocation = Allocation(self._config)
        slots = [Slot(self._config) for _ in range(self._config.slots)]
        # State of the PE for the operations that passed in the previous cycle.
        incoming = Signal(StartLayout(self._config))
        was_stopped = self._was_stopped(m)
        m.d.comb += incoming.eq(self._register_state(m))
        for number, slot in enumerate(slots):
            m.submodules[f"slot_{number}"] = slot
            self._connect_slot(m, number, slot, allocation, was_stopped)
        m.d.comb += [
            *(port.eq(selected) for port, selected in zip(allocation.selected, self.selected, strict=True)),
            self.sampled.eq(allocation.sampled),
            self.collisions.eq(allocation.collisions),
        ]
        if len(slots) == 1:
            self._offer_in_place(m, slots[0], incoming)
        else:
            m.submodules.start_states = start_states = StartStates(self._config)
            m.d.comb += [
                *(port.eq(slot) for port, slot in zip(self.slot, allocation.slot, strict=True)),
                start_states.free.eq(allocation.free),
                start_states.incoming.eq(incoming),
            ]
            self._offer_in_order(m, slots, start_states)

        return m

    def _connect_slot(self, m, number, slot, allocation, was_stopped):
        """Connect a slot to the allocation, and to the core's reports of its operation."""
        finishes = self.finish.valid & (self.finish.slot == number if self._config.slots > 1 else 1)
        m.d.comb += [
            allocation.free[number].eq(slot.free),
            slot.allocate.eq(allocation.allocate[number]),
            slot.running.eq(self.running),
            slot.was_stopped.eq(was_stopped),
            slot.issued.eq(self.in_flight.issued[number]),
            slot.completed.eq(self.in_flight.completed[number]),
            slot.translating.eq(self.in_flight.translating[number]),
            *([slot.alternate_tick.eq(self.in_flight.alternate_tick)] if self._config.altclk else []),
            slot.finish.eq(finishes & ~self.finish.vanished),
            slot.vanish.eq(finishes & self.finish.vanished),
        ]

    def _register_state(self, m):
        """Return the state of the PE for the operations that passed in the previous cycle."""
        now = Signal(StartLayout(self._config))
        config = self._config
        states = ["el", "ns", *(["nse"] if config.rme else []), "contextidr_el1"]
        states += ["contextidr_el2"] if config.el2 else []
        m.d.comb += [
            *(now[name].eq(getattr(self.pe, name)) for name in states),
            now.timestamp.eq(self.pe.physical_count),
            now.collect.eq(self.collect),
        ]
        start = Signal(StartLayout(config), name="start_0")
        m.d.sync += start.eq(now)
        return self._subtract_offset(m, start) if config.el2 else start

    def _was_stopped(self, m):
        """Return whether the buffer did not run since the operations that `sampled` reports in this cycle passed."""
        was_stopped = Const(0)
        for age in range(1, self._config.answer_latency):
            before, was_stopped = was_stopped, Signal(name=f"was_stopped_{age}")
            m.d.sync += was_stopped.eq(before | ~self.running)
        return was_stopped

    def _subtract_offset(self, m, start):
        """Subtract the offset from the timestamp of `start`, which is registered. Return `start` with the difference.

        The low half is subtracted before the register and the high half after it, because a carry chain of 64 bits
        does not fit into one cycle.
        """
        count, offset = self.pe.physical_count, self.offset
        low = Signal(_LOW_BITS + 1)
        borrow = Signal()
        offset_high = Signal(len(count) - _LOW_BITS)
        shifted = Signal.like(start, name="shifted")
        m.d.comb += low.eq(count[:_LOW_BITS] - offset[:_LOW_BITS])
        m.d.sync += [
            # `subtract_offset` arrives late: it selects the difference, and is not an operand of its carry chain.
            start.timestamp[:_LOW_BITS].eq(Mux(self.subtract_offset, low[:_LOW_BITS], count[:_LOW_BITS])),
            borrow.eq(self.subtract_offset & low[-1]),
            # AND, because a multiplexer with zero would become a reset of the flip-flops, whose net is slow on iCE40.
            offset_high.eq(offset[_LOW_BITS:] & self.subtract_offset.replicate(len(offset_high))),
        ]
        # The borrow is subtracted as an additional bit below the others, so that there is one carry chain.
        high = Cat(C(0, 1), start.timestamp[_LOW_BITS:]) - Cat(borrow, offset_high)
        m.d.comb += [shifted.eq(start), shifted.timestamp[_LOW_BITS:].eq(high[1:])]
        return shifted

    def _offer_in_place(self, m, slot, incoming):
        """Send the sample of the only slot from the registers that captured it.

        `incoming` is the state of the PE for the operations that passed in the previous cycle.
        """
        for age in range(1, self._config.answer_latency):
            before, incoming = incoming, Signal(StartLayout(self._config), name=f"start_{age}")
            m.d.sync += incoming.eq(before)
        start = Signal(StartLayout(self._config))
        known_at_finish = Signal(KnownAtFinishLayout(self._config))
        # Captured while the slot is free, because `allocate` arrives late.
        with m.If(slot.free):
            m.d.sync += start.eq(incoming)
        with m.If(slot.in_flight):
            m.d.sync += self._capture_finish(known_at_finish)
        m.d.comb += [
            self.sample.p.start.eq(start),
            *(self.sample.p[name].eq(known_at_finish[name]) for name in KnownAtFinishLayout(self._config).members),
            *(self.sample.p[name].eq(getattr(slot, name)) for name in self._config.latencies),
            self.sample.valid.eq(slot.finished),
            slot.release.eq(self.sample.ready),
            self.drop.eq(slot.drop),
            self.pending.eq(slot.finished),
        ]

    def _capture_finish(self, known_at_finish):
        """Return assignments that capture what is known at the finish of an operation."""
        previous = [known_at_finish.previous.eq(self.previous)] if self._config.pbt else []
        return [known_at_finish.operation.eq(self.finish.operation), *previous]

    def _offer_in_order(self, m, slots, start_states):
        """Move the samples out of their slots, in the order in which their operations finished."""
        known_at_finish = KnownAtFinishLayout(self._config)
        m.submodules.operations = operations = memory.Memory(shape=known_at_finish, depth=len(slots), init=[])
        m.submodules.order = order = FinishOrder(self._config)
        store = operations.write_port()
        load = operations.read_port(domain="comb")
        # The word of an operation that vanishes is written too: its slot becomes free.
        ends = self.finish.valid & Cat(slot.in_flight for slot in slots).bit_select(self.finish.slot, 1)
        next_slot = order.first
        advance = Signal()
        chosen = Signal(SampleLayout(self._config))
        chosen_drop = Signal()
        m.d.comb += [
            order.push.eq(ends & ~self.finish.vanished),
            order.slot.eq(self.finish.slot),
            store.en.eq(ends),
            store.addr.eq(self.finish.slot),
            *self._capture_finish(store.data),
            load.addr.eq(next_slot),
            start_states.slot.eq(next_slot),
            # Not in the cycle of `ready`, which arrives late: it would be in the path to every slot.
            advance.eq(order.present[0] & ~self.sample.valid),
            order.pop.eq(advance),
            chosen.start.eq(start_states.start),
            *(chosen[name].eq(load.data[name]) for name in KnownAtFinishLayout(self._config).members),
            self.pending.eq(order.present[0] | self.sample.valid),
        ]
        with m.Switch(next_slot):
            for number, slot in enumerate(slots):
                with m.Case(number):
                    m.d.comb += [
                        slot.release.eq(advance),
                        *(chosen[name].eq(getattr(slot, name)) for name in self._config.latencies),
                        chosen_drop.eq(slot.drop),
                    ]

        with m.If(~self.running):
            m.d.sync += self.drop.eq(1)
        with m.If(self.sample.ready):
            m.d.sync += self.sample.valid.eq(0)
        # The register is loaded with valid samples only: content of the memory from before its first write must not be
        # visible.
        with m.If(advance):
            m.d.sync += [
                self.sample.valid.eq(1),
                self.sample.payload.eq(chosen),
                self.drop.eq(chosen_drop | ~self.running),
            ]
