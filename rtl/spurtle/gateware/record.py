"""From a sample to the packets of its record, with everything removed that may not be shown (D17.6, D18.2)."""

# Ref: DDI0487 M.a, D17.6.3 to D17.6.10 (what is recorded of which operation), D18.2 (packets).

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..arch import (
    ADDRESS_BITS,
    CR,
    ETS,
    EVL,
    AddressIndex,
    ContextIndex,
    CounterIndex,
    Event,
    Header,
    OperationClass,
    PMSVer,
)
from ..arch import operation_types as types
from ..arch.packets import HEADER_INDEX, INSTRUCTION_TOP, PHYSICAL_TOP
from ..config import SPUConfig, check_config
from ..config.record_layouts import LAST, Packet
from ..interface.operation import has_data_access, has_data_source, has_load, is_branch, is_destination, is_scalable
from .payload import in_place
from .payload import payload as payload_of
from .sample import SampleLayout

__all__ = ["RecordBuilder", "record_layout"]

_MEMORY_EVENTS = frozenset(range(16)) - {Event.GENERATED_EXCEPTION, Event.RETIRED, Event.NOT_TAKEN, Event.MISPREDICTED}
_LOAD_EVENTS = frozenset(range(Event.L2D_ACCESS, Event.STREAMING_SVE))
_PREDICATE_EVENTS = frozenset({Event.PARTIAL_PREDICATE, Event.EMPTY_PREDICATE})

# Packets whose content is not the sample's own but worked out of its facts.
_DERIVED = frozenset({Packet.OPERATION, Packet.EVENTS})


def record_layout(config: SPUConfig) -> data.StructLayout:
    """The packets of a record, byte 0 in bits [7:0]. LSB first.

    Members
    -------
    octets : unsigned
        The whole record, or in a packed layout each place whether it is left out or not, without padding.
    present : unsigned
        Which of the elastic places are not left out, in order, and whether the record ends with a Timestamp packet.
        Only there in a packed layout.
    """
    layout = config.layout
    if not layout.packed:
        return data.StructLayout({"octets": 8 * layout.max_size})
    unpadded = layout.offsets(config.packet_bytes)[Packet.TIMESTAMP] + config.packet_bytes[Packet.TIMESTAMP]
    return data.StructLayout(
        {"octets": 8 * unpadded, "present": sum(place.elastic for place in layout.places) + 1},
    )


class RecordBuilder(wiring.Component):
    """Each packet at its place of the layout, or zeros there: those that share a place exclude each other.

    An operation that did not retire shows nothing but an Events packet of zeros and the Timestamp or End packet; one
    that generated an exception shows no address but its PC, no data source, no translation latency and nothing of the
    core's own.

    Latency: `events` is combinational. `packets` is right two cycles after `sample` has come to rest: what is worked
    out of the facts is registered, because the serializer has multiplexers of its own behind it, and so is the product
    that a vector length is.

    Members
    -------
    sample : In(Sample)
    events : Out(8 * events_bytes)
        The Events packet, which the filter looks at.
    packets : Out(record_layout)
    """

    def __init__(self, config: SPUConfig):
        check_config(config)
        self._config = config
        super().__init__(
            {
                "sample": In(SampleLayout(config)),
                "events": Out(8 * config.events_bytes),
                "packets": Out(record_layout(config)),
            }
        )

    def elaborate(self, platform):
        m = Module()

        octets = [C(0, 8)] * (len(self.packets.octets) // 8)
        elastic = [place for place in self._config.layout.places if place.elastic]
        told = {packet for place in elastic for packet in place.packets}
        here = {}
        for packet, (present, header, payload) in self._packets(m).items():
            if packet in self._config.layout.packets:
                content = Signal(8 * self._config.packet_bytes[packet], name=f"packet_{packet.name.lower()}")
                value = Cat(header, payload)
                if packet in told or packet not in _DERIVED:
                    here[packet] = Signal(name=f"has_{packet.name.lower()}")
                    m.d.sync += here[packet].eq(present)
                if packet in _DERIVED:
                    m.d.sync += content.eq(Mux(present, value, 0))
                else:
                    m.d.comb += content.eq(Mux(here[packet], value, 0))
                for offset, octet in enumerate(self._octets(content), self._offset(packet)):
                    # Packets that share a place exclude each other.
                    octets[offset] |= octet
        m.d.comb += [self.packets.octets.eq(Cat(octets)), self.events.eq(self._events())]
        if self._config.layout.packed:
            present = [Cat(here[packet] for packet in place.packets).any() for place in elastic]
            m.d.comb += self.packets.present.eq(Cat(present, here[Packet.TIMESTAMP]))

        return m

    @staticmethod
    def _octets(content):
        return [content.word_select(index, 8) for index in range(len(content) // 8)]

    def _offset(self, packet):
        """First byte of the packet."""
        layout, sizes = self._config.layout, self._config.packet_bytes
        if packet in LAST and not (layout.packed or layout.padding_last):
            return layout.max_size - sizes[packet]
        return layout.offsets(sizes)[packet]

    def _events(self):
        """The Events packet: what the core reports, as far as this kind of operation can have done it (D18.2.6)."""
        config = self._config
        operation = self.sample.operation
        facts = operation.facts
        bits = []
        for event in range(8 * config.events_bytes):
            match event:
                case _ if event not in config.events:
                    bit = C(0)
                case Event.GENERATED_EXCEPTION:
                    bit = facts.exception
                case Event.RETIRED:
                    bit = C(1)
                case Event.NOT_TAKEN:
                    bit = facts.conditional & ~facts.taken
                case Event.MISPREDICTED:
                    bit = operation.events[event] & is_branch(facts)
                case Event.SMCU if config.spe_sme:
                    bit = facts.asynchronous
                case _ if event in _MEMORY_EVENTS:
                    bit = operation.events[event] & has_data_access(config, facts)
                case _ if event in _LOAD_EVENTS:
                    bit = operation.events[event] & has_load(config, facts)
                case _ if event in _PREDICATE_EVENTS:
                    bit = operation.events[event] & is_scalable(config, operation) & ~is_branch(facts)
                case _:
                    bit = operation.events[event]
            bits.append(bit & facts.retired)
        return Cat(bits)

    def _packets(self, m):
        """Each packet as (present, header, payload)."""
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
        operation_class, operation_payload = self._operation_type(m, branch)

        packets = {
            Packet.PC: (
                facts.retired,
                _address(AddressIndex.PC),
                Cat(operation.pc, self._state(start)),
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
                has_va & facts.pa_valid & start.collect.pa,
                _address(AddressIndex.PA),
                Cat(operation.pa, self._physical(operation)),
            ),
            Packet.CONTEXT_EL1: (
                facts.retired & start.collect.context_el1,
                C(Header.CONTEXT | ContextIndex.EL1, 8),
                start.contextidr_el1,
            ),
            Packet.CONTEXT_EL2: (
                facts.retired & start.collect.context_el2,
                C(Header.CONTEXT | ContextIndex.EL2, 8),
                start.contextidr_el2,
            ),
            Packet.OPERATION: (facts.retired, C(0, 8) | Header.OPERATION | operation_class, operation_payload),
            Packet.EVENTS: (C(1), C(Header.EVENTS | Header.size_field(config.events_bytes), 8), self.events),
            Packet.TOTAL: (facts.retired, _counter(CounterIndex.TOTAL), sample.total),
            Packet.ISSUE: (facts.retired, _counter(CounterIndex.ISSUE), sample.issue),
            Packet.TRANSLATION: (has_va, _counter(CounterIndex.TRANSLATION), sample.translation),
            Packet.TIMESTAMP: (start.collect.timestamp, C(Header.TIMESTAMP, 8), start.timestamp),
            Packet.END: (~start.collect.timestamp, C(Header.END, 8), C(0, 0)),
        }
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
        """Top byte of an instruction address: NS, EL and NSE."""
        nse = location.nse if self._config.rme else C(0, 1)
        return in_place(INSTRUCTION_TOP, NSE=nse, EL=location.el, NS=location.ns)

    def _physical(self, operation):
        """Top byte of a physical address: NS, CH, NSE and PAT. An access that is not checked has no tag here."""
        nse = operation.pa_nse if self._config.rme else C(0, 1)
        if not self._config.mte:
            return in_place(PHYSICAL_TOP, NSE=nse, NS=operation.pa_ns)
        tag = operation.pa_tag & operation.pa_checked.replicate(len(operation.pa_tag))
        return in_place(PHYSICAL_TOP, PAT=tag, NSE=nse, CH=operation.pa_checked, NS=operation.pa_ns)

    def _operation_type(self, m, branch):
        """CLASS and payload of the Operation Type packet (D18.2.7). An access makes no less of a branch (D17.6.3)."""
        config = self._config
        facts = self.sample.operation.facts
        memory = facts.load | facts.store
        size = self._size(m, memory) if config.scalable else None

        payload = Mux(branch, self._branch(), Mux(memory, self._load_store(size), self._data_processing(size)))
        not_branch = Mux(memory, OperationClass.LOAD_STORE, OperationClass.OTHER)
        return Mux(branch, OperationClass.BRANCH, not_branch), payload

    def _size(self, m, memory):
        """Bits that an SVE or SME operation works on: of all vectors with FEAT_SPE_SME, of one without (D17.6.6)."""
        vectors = self.sample.operation.vectors
        if not self._config.spe_sme:
            return vectors.bits
        size = Signal(19)
        tiles = vectors.sme & vectors.tile & ~memory
        m.d.sync += size.eq(Mux(tiles, vectors.bits, vectors.bits[:12] * vectors.count))
        return size

    def _branch(self):
        facts = self.sample.operation.facts
        gcs = facts.gcs if self._config.gcs else C(0, 1)
        procedure = C(CR.NOT_RECORDED, 2)
        if self._config.crr:
            procedure = Mux(facts.link, CR.LINK, Mux(facts.procedure_return, CR.RETURN, CR.NEITHER))
        fields = {"COND": facts.conditional, "IND": facts.indirect, "GCS": gcs, "CR": procedure}
        return payload_of(types.BRANCH, short=True, **fields)

    def _data_processing(self, size):
        """Payload of an operation that is neither a branch nor a load or store."""
        config = self._config
        operation = self.sample.operation
        facts = operation.facts

        payload = payload_of(types.OTHER, short=True, COND=facts.conditional)
        if config.fpf:
            advanced = facts.vector & ~facts.unspecified & ~is_scalable(config, operation)
            fields = {"COND": facts.conditional, "FP": facts.floating_point, "ASE": advanced}
            payload = payload_of(types.OTHER, short=True, **fields)
        if config.scalable:
            vectors = operation.vectors
            of_vectors = payload_of(
                types.SVE_DATA_PROCESSING, FP=facts.floating_point, PRED=vectors.predicated, EVL=self._evl(size)
            )
            payload = Mux(vectors.sve, of_vectors, payload)
        if config.spe_sme:
            ets = _rounded_up(size, ETS.BITS_128, 7, ETS.BITS_262144, beyond=ETS.WHOLE_ARRAY)
            ets |= vectors.whole_array.replicate(4)
            of_array = payload_of(types.SME_DATA_PROCESSING, FP=facts.floating_point, ETS=ets)
            payload = Mux(vectors.sme, of_array, payload)
        return payload

    def _load_store(self, size):
        """Payload of a load or store: the most special of the forms that apply."""
        config = self._config
        operation = self.sample.operation
        facts = operation.facts
        # An atomic that returns a value reads memory first of all. Of two accesses one is sampled.
        ldst = facts.store & (~facts.load | is_destination(config, facts))

        payload = payload_of(types.GENERAL, short=True, LDST=ldst, SIMD_FP=facts.simd_fp)
        if config.version >= PMSVer.SPE_V1P1:
            payload = Mux(facts.unspecified, payload_of(types.UNSPECIFIED, LDST=ldst), payload)
        extended = facts.atomic | facts.acquire_release | facts.exclusive
        flags = {"AT": facts.atomic, "EXCL": facts.exclusive, "AR": facts.acquire_release}
        payload = Mux(extended, payload_of(types.EXTENDED, short=True, LDST=ldst, **flags), payload)
        if config.sme and not config.spe_sme:
            payload = Mux(operation.vectors.sme, payload_of(types.UNSPECIFIED, LDST=ldst), payload)
        if config.scalable:
            # A load with zeroing predication is said to be predicated from FEAT_SPEv1p2 on.
            told = C(config.version >= PMSVer.SPE_V1P2, 1) | ~facts.load
            predicated = operation.vectors.predicated & told
            fields = {"PRED": predicated, "EVL": self._evl(size), "SG": operation.vectors.gather_scatter}
            of_vectors = payload_of(types.SVE_LOAD_STORE, LDST=ldst, **fields)
            named = is_scalable(config, operation) if config.spe_sme else operation.vectors.sve
            payload = Mux(named, of_vectors, payload)
        if config.nv2:
            payload = Mux(facts.nv2, payload_of(types.NV2, LDST=ldst), payload)
        if config.mte and config.version >= PMSVer.SPE_V1P3:
            payload = Mux(facts.allocation_tag, payload_of(types.TAG, LDST=ldst), payload)
        if config.gcs:
            common = ~(facts.link | facts.procedure_return)
            payload = Mux(facts.gcs, payload_of(types.GUARDED_CONTROL_STACK, LDST=ldst, COMM=common), payload)
        if config.mops:
            payload = Mux(facts.memory_set, types.MEMORY_SET.value, payload)
            payload = Mux(facts.memory_copy, payload_of(types.MEMORY_COPY, LDST=ldst), payload)
        return payload

    def _evl(self, size):
        beyond = EVL.MORE if self._config.spe_sme else EVL.BITS_2048
        return _rounded_up(size, EVL.BITS_32, 5, EVL.BITS_2048, beyond=beyond)


def _address(index: int):
    return _header(Header.ADDRESS, index)


def _counter(index: int):
    return _header(Header.COUNTER, index)


def _header(header: Header, index: int):
    """Short, or extended where INDEX needs it (D18.2.1, D18.2.3)."""
    short = C(header | HEADER_INDEX.of(index), 8)
    extension = index >> HEADER_INDEX.width
    return Cat(C(Header.EXTENDED | extension, 8), short) if extension else short


def _rounded_up(size, first: int, power: int, last: int, *, beyond: int):
    """The code of a size in bits, where `first` stands for 2^power and the codes up to `last` for its doubles: that of
    the next size that is not less; `beyond` for anything more.
    """
    code = C(beyond, int(last).bit_length())
    for place in reversed(range(last - first + 1)):
        # More than this size: a higher bit, or this one and a lower one.
        bit = power + place
        more = size[bit + 1 :].any() | (size[bit] & size[:bit].any())
        code = Mux(more, code, first + place)
    return code
