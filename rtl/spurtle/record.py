"""From a sample to the bytes of its record, with everything removed that may not be shown (D17.6, D18.2)."""

# Ref: DDI0487 M.a, D17.6.3, D17.6.4, D17.6.7, D17.6.10 (what is recorded of which operation), D18.2 (packets).

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .arch import AddressIndex, ContextIndex, CounterIndex, Event, Header, OperationClass
from .config import SPUConfig
from .inflight import Sample
from .layout import Packet
from .pe import has_data_source, is_branch, is_destination

__all__ = ["Record"]

_MEMORY_EVENTS = frozenset(range(16)) - {Event.GENERATED_EXCEPTION, Event.RETIRED, Event.NOT_TAKEN, Event.MISPREDICTED}
_LOAD_EVENTS = frozenset(range(Event.L2D_ACCESS, Event.STREAMING_SVE))

# Packets whose content is not the sample's own but worked out of its facts.
_DERIVED = frozenset({Packet.OPERATION, Packet.EVENTS})


class Record(wiring.Component):
    """A row of multiplexers, one for each place of the layout.

    An operation that did not retire shows nothing but an Events packet of zeros and the Timestamp or End packet; one
    that generated an exception shows no data address, no target and no data source.

    Latency: `events` is combinational. `octets` is right one cycle after `sample` has come to rest: what is worked out
    of the facts is registered, because the serializer has multiplexers of its own behind it.

    Members
    -------
    sample : In(Sample)
    events : Out(8 * events_bytes)
        The Events packet, which the filter looks at.
    octets : Out(8 * record_bytes)
        Byte 0 in bits [7:0].
    """

    def __init__(self, config: SPUConfig):
        self._config = config
        super().__init__(
            {
                "sample": In(Sample(config)),
                "events": Out(8 * config.events_bytes),
                "octets": Out(8 * config.record_bytes),
            }
        )

    def elaborate(self, platform):
        m = Module()

        octets = [C(0, 8)] * self._config.record_bytes
        for packet, (present, header, payload) in self._packets().items():
            if packet in self._config.packet_offsets:
                size = self._config.packet_bytes[packet]
                content = Signal(8 * size, name=f"packet_{packet.name.lower()}")
                value = Cat(C(0, 8) | header, payload)
                if packet in _DERIVED:
                    m.d.sync += content.eq(Mux(present, value, 0))
                else:
                    here = Signal(name=f"has_{packet.name.lower()}")
                    m.d.sync += here.eq(present)
                    m.d.comb += content.eq(Mux(here, value, 0))
                for index in range(size):
                    # Packets that share a place exclude each other.
                    octets[self._config.packet_offsets[packet] + index] |= content.word_select(index, 8)
        m.d.comb += [self.octets.eq(Cat(octets)), self.events.eq(self._events())]

        return m

    def _events(self):
        """The Events packet: what the core reports, as far as this kind of operation can have done it (D18.2.6)."""
        operation = self.sample.operation
        facts = operation.facts
        bits = []
        for event in range(8 * self._config.events_bytes):
            match event:
                case _ if event not in self._config.events:
                    bit = C(0)
                case Event.GENERATED_EXCEPTION:
                    bit = facts.exception
                case Event.RETIRED:
                    bit = C(1)
                case Event.NOT_TAKEN:
                    bit = facts.conditional & ~facts.taken
                case Event.MISPREDICTED:
                    bit = operation.events[event] & is_branch(facts)
                case _ if event in _MEMORY_EVENTS:
                    bit = operation.events[event] & (facts.load | facts.store)
                case _ if event in _LOAD_EVENTS:
                    bit = operation.events[event] & facts.load
                case _:
                    bit = operation.events[event]
            bits.append(bit & facts.retired)
        return Cat(bits)

    def _packets(self):
        """Each packet as (present, header, payload)."""
        config = self._config
        start = self.sample.start
        operation = self.sample.operation
        facts = operation.facts

        completed = facts.retired & ~facts.exception
        memory = facts.load | facts.store
        # Only to the Guarded control stack does a branch make an access.
        branch = is_branch(facts) if config.gcs else is_branch(facts) & ~memory
        has_target = facts.retired & branch & (facts.taken | C(config.not_taken_target, 1))
        has_va = completed & memory & facts.va_valid
        operation_class, operation_payload = self._operation_type(memory, branch)

        packets = {
            Packet.PC: (
                facts.retired,
                Header.ADDRESS | AddressIndex.PC,
                Cat(operation.pc, C(0, 5), start.el, start.ns),
            ),
            Packet.TARGET: (
                has_target,
                Header.ADDRESS | AddressIndex.TARGET,
                Cat(operation.target.address, C(0, 5), operation.target.el, operation.target.ns),
            ),
            Packet.VA: (
                has_va,
                Header.ADDRESS | AddressIndex.VA,
                Cat(operation.va[:56], operation.va[56:] & facts.va_tagged.replicate(8)),
            ),
            Packet.PA: (
                has_va & facts.pa_valid & start.collect.pa,
                Header.ADDRESS | AddressIndex.PA,
                Cat(operation.pa, C(0, 7), operation.pa_ns),
            ),
            Packet.CONTEXT_EL1: (
                facts.retired & start.collect.context_el1,
                Header.CONTEXT | ContextIndex.EL1,
                start.contextidr_el1,
            ),
            Packet.CONTEXT_EL2: (
                facts.retired & start.collect.context_el2,
                Header.CONTEXT | ContextIndex.EL2,
                start.contextidr_el2,
            ),
            Packet.OPERATION: (facts.retired, Header.OPERATION | operation_class, operation_payload),
            Packet.EVENTS: (C(1), Header.EVENTS | Header.size_field(config.events_bytes), self.events),
            Packet.TOTAL: (facts.retired, Header.COUNTER | CounterIndex.TOTAL, self.sample.total),
            Packet.ISSUE: (facts.retired, Header.COUNTER | CounterIndex.ISSUE, self.sample.issue),
            Packet.TRANSLATION: (has_va, Header.COUNTER | CounterIndex.TRANSLATION, self.sample.translation),
            Packet.TIMESTAMP: (start.collect.timestamp, Header.TIMESTAMP, start.timestamp),
            Packet.END: (~start.collect.timestamp, Header.END, C(0, 0)),
        }
        if config.data_source_bytes:
            packets[Packet.DATA_SOURCE] = (
                has_data_source(config, facts),
                Header.DATA_SOURCE | Header.size_field(config.data_source_bytes),
                operation.data_source,
            )
        return packets

    def _operation_type(self, memory, branch):
        """CLASS and payload of the Operation Type packet (D18.2.7)."""
        facts = self.sample.operation.facts

        payload = Mux(memory, self._load_store(), facts.conditional)
        if self._config.gcs:
            payload = Mux(branch, Cat(facts.conditional, facts.indirect, facts.gcs), payload)
        else:
            payload = Mux(branch, Cat(facts.conditional, facts.indirect), payload)
        not_branch = Mux(memory, OperationClass.LOAD_STORE, OperationClass.OTHER)
        return Mux(branch, OperationClass.BRANCH, not_branch), payload

    def _load_store(self):
        """Payload of a load or store: the most special of the forms that apply."""
        config = self._config
        facts = self.sample.operation.facts
        # An atomic that returns a value reads memory first of all. Of two accesses one is sampled.
        ldst = facts.store & (~facts.load | is_destination(config, facts))

        extended = facts.atomic | facts.acquire_release | facts.exclusive
        general = Cat(ldst, C(0, 1), facts.simd_fp)
        payload = Mux(extended, Cat(ldst, C(1, 1), facts.atomic, facts.exclusive, facts.acquire_release), general)
        if config.gcs:
            payload = Mux(facts.gcs, Cat(ldst, C(0, 1), ~facts.link_or_return, C(0b01000, 5)), payload)
        if config.mops:
            payload = Mux(facts.memory_set, 0b0010_0101, payload)
            payload = Mux(facts.memory_copy, Cat(ldst, C(0b0010_000, 7)), payload)
        return payload
