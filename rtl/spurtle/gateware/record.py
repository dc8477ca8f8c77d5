"""Construction of the packets of a record, without information that may not be recorded (D17.6, D18.2).

Ref: DDI0487 M.a, D17.6.3 to D17.6.10 (recorded information by kind of operation), D18.2 (packets).
"""

from amaranth import *
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from ..arch import ADDRESS_BITS, AddressIndex, ContextIndex, CounterIndex, Header
from ..arch.packets import HEADER_INDEX, INSTRUCTION_TOP, PHYSICAL_TOP
from ..config import SPUConfig, check_config
from ..config.record_layouts import LAST, Packet
from ..interface.operation import has_data_access, has_data_source, is_branch
from .component import ConfiguredComponent
from .operation_type import OperationTypeEncoder
from .payload import pack_fields
from .reported_events import event_groups
from .sample import SampleLayout

__all__ = ["RecordBuilder", "record_layout", "settling_cycles"]

# Packets whose content is derived from the facts of the sample.
_DERIVED = frozenset({Packet.OPERATION, Packet.EVENTS})


def record_layout(config: SPUConfig) -> data.StructLayout:
    """Return the layout of the packets of a record, byte 0 in bits [7:0]. LSB first.

    Members
    -------
    octets : unsigned
        The complete record or, in a packed layout, every field, present or absent, without padding.
    present : unsigned
        Elastic fields that are present, in order, and whether the record ends with a Timestamp packet. Only in a packed
        layout.
    """
    layout = config.layout
    if not layout.packed:
        return data.StructLayout({"octets": 8 * layout.max_size})
    unpadded = layout.offsets(config.packet_bytes)[Packet.TIMESTAMP] + config.packet_bytes[Packet.TIMESTAMP]
    return data.StructLayout(
        {"octets": 8 * unpadded, "present": sum(field.elastic for field in layout.fields) + 1},
    )


def settling_cycles(config: SPUConfig) -> int:
    """Return the number of cycles for which a sample must be stable before its packets are valid."""
    return 5 if config.spe_sme else 2


class RecordBuilder(ConfiguredComponent):
    """Builder of the packets of a record, each at its offset in the layout. Absent packets are zero.

    The record of an operation that did not retire has only an Events packet of zeros and the Timestamp or End packet.
    The record of an operation that generated an exception has no address except the PC, no data source, no translation
    latency, and no IMPLEMENTATION DEFINED counter or address.

    Latency: `packets` is valid when `sample` has been stable for `settling_cycles`. What is derived from the facts is
    registered, because the multiplexers of the serializer follow. With FEAT_SPE_SME so are the codes of sizes of
    vectors, the product of vector length and count, and its operands.

    Members
    -------
    sample : In(SampleLayout)
    packets : Out(record_layout)
    """

    proof_signals = (
        "has_*",
        "packet_operation",
        "packet_events",
        "vector_length",
        "vector_count",
        "vector_product",
        "size",
        "evl",
        "ets",
        "ets_of_tiles",
    )

    def __init__(self, config: SPUConfig):
        check_config(config)
        super().__init__(
            config,
            {
                "sample": In(SampleLayout(config)),
                "packets": Out(record_layout(config)),
            },
        )

    def elaborate(self, platform):
        m = Module()

        octets = [C(0, 8)] * (len(self.packets.octets) // 8)
        elastic = [field for field in self._config.layout.fields if field.elastic]
        elastic_packets = {packet for field in elastic for packet in field.packets}
        has_packet = {}
        for packet, (present, header, payload) in self._packets(m).items():
            if packet in self._config.layout.packets:
                content = Signal(8 * self._config.packet_bytes[packet], name=f"packet_{packet.name.lower()}")
                value = Cat(header, payload)
                if packet in elastic_packets or packet not in _DERIVED:
                    has_packet[packet] = Signal(name=f"has_{packet.name.lower()}")
                    m.d.sync += has_packet[packet].eq(present)
                if packet in _DERIVED:
                    m.d.sync += content.eq(Mux(present, value, 0))
                else:
                    m.d.comb += content.eq(Mux(has_packet[packet], value, 0))
                for offset, octet in enumerate(self._octets(content), self._offset(packet)):
                    # Packets that share a field exclude each other.
                    octets[offset] |= octet
        m.d.comb += self.packets.octets.eq(Cat(octets))
        if self._config.layout.packed:
            present = [Cat(has_packet[packet] for packet in field.packets).any() for field in elastic]
            m.d.comb += self.packets.present.eq(Cat(present, has_packet[Packet.TIMESTAMP]))

        return m

    @staticmethod
    def _octets(content):
        return [content.word_select(index, 8) for index in range(len(content) // 8)]

    def _offset(self, packet):
        """Return the offset of the packet in the record."""
        layout, sizes = self._config.layout, self._config.packet_bytes
        if packet in LAST and not (layout.packed or layout.padding_last):
            return layout.max_size - sizes[packet]
        return layout.offsets(sizes)[packet]

    def _events(self):
        """Return the Events packet (D18.2.6)."""
        bits = [C(0)] * (8 * self._config.events_bytes)
        for group in event_groups(self._config, self.sample.operation):
            for number, value in zip(group.numbers, group.values, strict=True):
                bits[number] = value & group.condition
        return Cat(bits)

    def _packets(self, m):
        """Return each packet as (present, header, payload)."""
        config = self._config
        sample = self.sample
        start = sample.start
        operation = sample.operation
        facts = operation.facts

        completed = facts.retired & ~facts.exception
        branch = is_branch(facts)
        has_target = facts.retired & branch & (facts.taken | C(config.not_taken_target, 1))
        has_va = completed & has_data_access(config, facts) & facts.va_valid
        if config.nv2:
            has_va &= ~facts.nv2 | start.collect.nv2_va
        operation_class, operation_payload = OperationTypeEncoder(config, operation).encode(m, branch)
        return {
            **self._addresses(has_target, has_va),
            **self._contexts(),
            Packet.OPERATION: (facts.retired, C(0, 8) | Header.OPERATION | operation_class, operation_payload),
            Packet.EVENTS: (C(1), C(Header.EVENTS | Header.size_field(config.events_bytes), 8), self._events()),
            Packet.TOTAL: (facts.retired, _counter(CounterIndex.TOTAL), sample.total),
            Packet.ISSUE: (facts.retired, _counter(CounterIndex.ISSUE), sample.issue),
            Packet.TRANSLATION: (has_va, _counter(CounterIndex.TRANSLATION), sample.translation),
            Packet.TIMESTAMP: (start.collect.timestamp, C(Header.TIMESTAMP, 8), start.timestamp),
            Packet.END: (~start.collect.timestamp, C(Header.END, 8), C(0, 0)),
            **self._optional(completed, branch),
        }

    def _addresses(self, has_target, has_va):
        sample = self.sample
        operation = sample.operation
        facts = operation.facts
        return {
            Packet.PC: (
                facts.retired,
                _address(AddressIndex.PC),
                Cat(operation.pc, self._state(sample.start)),
            ),
            Packet.TARGET: (
                has_target,
                _address(AddressIndex.TARGET),
                Cat(operation.target.address, self._state(operation.target)),
            ),
            Packet.VA: (
                has_va,
                _address(AddressIndex.VA),
                Cat(operation.va[:ADDRESS_BITS], operation.va[ADDRESS_BITS:] & facts.va_tagged.replicate(8)),
            ),
            Packet.PA: (
                has_va & facts.pa_valid & sample.start.collect.pa,
                _address(AddressIndex.PA),
                Cat(operation.pa, self._physical(operation)),
            ),
        }

    def _contexts(self):
        start = self.sample.start
        retired = self.sample.operation.facts.retired
        return {
            Packet.CONTEXT_EL1: (
                retired & start.collect.context_el1,
                C(Header.CONTEXT | ContextIndex.EL1, 8),
                start.contextidr_el1,
            ),
            Packet.CONTEXT_EL2: (
                retired & start.collect.context_el2,
                C(Header.CONTEXT | ContextIndex.EL2, 8),
                start.contextidr_el2,
            ),
        }

    def _optional(self, completed, branch):
        """Return the packets that depend on the configuration."""
        config = self._config
        sample = self.sample
        operation = sample.operation
        facts = operation.facts

        packets = {}
        if config.data_source_bytes:
            packets[Packet.DATA_SOURCE] = (
                has_data_source(config, facts),
                C(Header.DATA_SOURCE | Header.size_field(config.data_source_bytes), 8),
                operation.data_source,
            )
        if config.pbt:
            packets[Packet.PREVIOUS_TARGET] = (
                completed & sample.previous.valid & (C(config.pbt_of_all, 1) | branch),
                _address(AddressIndex.PREVIOUS_TARGET),
                Cat(sample.previous.target.address, self._state(sample.previous.target)),
            )
        if config.altclk:
            packets[Packet.ALTERNATE_ISSUE] = (
                facts.retired & facts.asynchronous,
                _counter(CounterIndex.ALTERNATE_ISSUE),
                sample.alternate_issue,
            )
        if config.imp_counter:
            packets[Packet.IMP_COUNTER] = (
                completed & facts.imp_counter_valid,
                _counter(config.imp_counter),
                operation.imp_counter,
            )
        if config.imp_address:
            packets[Packet.IMP_ADDRESS] = (
                completed & facts.imp_address_valid,
                _address(config.imp_address),
                operation.imp_address,
            )
        return packets

    def _state(self, location):
        """Return the top byte of an instruction address: NS, EL and NSE."""
        nse = location.nse if self._config.rme else C(0, 1)
        return pack_fields(INSTRUCTION_TOP, NSE=nse, EL=location.el, NS=location.ns)

    def _physical(self, operation):
        """Return the top byte of a physical address: NS, CH, NSE and PAT.

        PAT is zero for an access that is not checked.
        """
        nse = operation.pa_nse if self._config.rme else C(0, 1)
        if not self._config.mte:
            return pack_fields(PHYSICAL_TOP, NSE=nse, NS=operation.pa_ns)
        tag = operation.pa_tag & operation.pa_checked.replicate(len(operation.pa_tag))
        return pack_fields(PHYSICAL_TOP, PAT=tag, NSE=nse, CH=operation.pa_checked, NS=operation.pa_ns)


def _address(index: int):
    return _header(Header.ADDRESS, index)


def _counter(index: int):
    return _header(Header.COUNTER, index)


def _header(header: Header, index: int):
    """Return a short header, or an extended one if INDEX requires it (D18.2.1, D18.2.3)."""
    short = C(header | HEADER_INDEX.of(index), 8)
    extension = index >> HEADER_INDEX.width
    return Cat(C(Header.EXTENDED | extension, 8), short) if extension else short
