"""Sample records: the packets of a sampled operation, and their encoding.

docs/choices.md lists the IMPLEMENTATION DEFINED choices. All functions also run on z3 values. They therefore use only
`if`, comparisons, `+`, `*`, bit operations and shifts by constants.

Ref: DDI0487 M.a, D17.6 (collected data) and D18.2 (packets).
"""

from collections.abc import Iterable, Iterator, Mapping

from spurtle.arch import ADDRESS_BITS, AddressIndex, ContextIndex, CounterIndex, Event, Header, OperationClass
from spurtle.arch.fields import BitField
from spurtle.arch.packets import HEADER_INDEX, INSTRUCTION_TOP, PHYSICAL_TOP
from spurtle.config import SPUConfig
from spurtle.config.record_layouts import Packet

from . import operation_type
from .kinds import has_data_access, has_data_source, is_branch, is_memory, is_sme, is_sve
from .operation import Location, Operation, Sample

__all__ = ["encode", "events", "lay_out", "packets", "saturate"]


def _bits(*numbers: int) -> int:
    """Return the mask of these bits."""
    return sum(1 << number for number in numbers)


# Events that only loads and stores, only loads, only branches, and only SVE and SME operations can have (D18.2.6).
# Events 12 to 15 are IMPLEMENTATION DEFINED; Spurtle reserves them for the caches, so only loads and stores have them.
_MEMORY_EVENTS = _bits(
    Event.L1D_ACCESS,
    Event.L1D_REFILL,
    Event.TLB_ACCESS,
    Event.TLB_WALK,
    Event.LLC_ACCESS,
    Event.LLC_MISS,
    Event.REMOTE_ACCESS,
    Event.MISALIGNED,
    *range(12, 16),
)
_LOAD_EVENTS = _bits(
    Event.L2D_ACCESS, Event.L2D_MISS, Event.CACHE_DATA_MODIFIED, Event.RECENTLY_FETCHED, Event.DATA_SNOOPED
)
_BRANCH_EVENTS = _bits(Event.MISPREDICTED)
_SCALABLE_EVENTS = _bits(Event.PARTIAL_PREDICATE, Event.EMPTY_PREDICATE)
_DERIVED_EVENTS = _bits(Event.GENERATED_EXCEPTION, Event.RETIRED, Event.NOT_TAKEN)
"""Events that the SPU derives from the facts of the operation."""
_OTHER_EVENTS = _bits(*range(64)) & ~(
    _MEMORY_EVENTS | _LOAD_EVENTS | _BRANCH_EVENTS | _SCALABLE_EVENTS | _DERIVED_EVENTS
)


def saturate(config: SPUConfig, cycles: int) -> int:
    """Return the count in the Counter packet: the number of cycles, saturated (D18.2.3)."""
    largest = (1 << config.counter_bits) - 1
    return largest if cycles > largest else cycles


def events(config: SPUConfig, sample: Sample) -> int:
    """Return the payload of the Events packet: the events that this kind of operation can have and `config` records."""
    operation, facts = sample.operation, sample.operation.facts
    if facts.retired == 0:  # D17.6.7: events 0 and 1 are zero, and the others must not reveal speculative values.
        return 0
    # The negated bit is a mask: all ones if the bit is 1, zero if it is 0.
    possible = (
        _OTHER_EVENTS
        | -has_data_access(config, facts) & _MEMORY_EVENTS
        | -(has_data_access(config, facts) & facts.load) & _LOAD_EVENTS
        | -is_branch(facts) & _BRANCH_EVENTS
        | -((is_sve(config, operation) | is_sme(config, operation)) & ~is_branch(facts)) & _SCALABLE_EVENTS
    )
    reported = operation.events & possible
    if config.spe_sme:
        reported = reported & ~_bits(Event.SMCU) | facts.asynchronous << Event.SMCU
    value = (
        reported
        | facts.exception << Event.GENERATED_EXCEPTION
        | 1 << Event.RETIRED
        | (facts.conditional & ~facts.taken) << Event.NOT_TAKEN
    )
    return value & _bits(*config.events)


def encode(config: SPUConfig, sample: Sample) -> bytes:
    """Return the record of a sampled operation, padding included.

    Raises
    ------
    ValueError
        If the record layout of `config` has no field for a packet of the sample.
    """
    return lay_out(config, packets(config, sample))


def lay_out(config: SPUConfig, packets: Iterable[tuple[Packet, bytes]]) -> bytes:
    """Return the record that holds `packets`, which can be in any order and include either End or Timestamp.

    The layout determines the offset of each packet. Padding extends the record to a multiple of `layout.align` bytes
    (D18.2.8).

    Raises
    ------
    ValueError
        If the record layout of `config` has no field for a packet.
    """
    layout, contents = config.layout, dict(packets)
    layout_packets = layout.packets
    for packet in contents:
        if packet not in layout_packets:
            raise ValueError(f"a record of {config.name} has no field for {packet.value}")
    record = bytearray()
    for field, size, offsets in config.record_fields:
        present = [packet for packet in offsets if packet in contents]
        if field.elastic and not present:
            continue
        octets = bytearray(size)
        for packet in present:
            octets[offsets[packet] : offsets[packet] + len(contents[packet])] = contents[packet]
        record += octets
    last = contents[Packet.TIMESTAMP if Packet.TIMESTAMP in contents else Packet.END]
    padding = bytes(-(len(record) + len(last)) % layout.align)
    return bytes(record + (last + padding if layout.padding_last else padding + last))


def packets(config: SPUConfig, sample: Sample) -> Iterator[tuple[Packet, bytes]]:
    """Yield the bytes of each packet of the record, header and payload. The order has no meaning."""
    start, operation, facts = sample.start, sample.operation, sample.operation.facts

    yield Packet.EVENTS, _packet(Header.EVENTS, events(config, sample), config.events_bytes)
    if start.timestamp is None:
        yield Packet.END, bytes([Header.END])
    else:
        yield Packet.TIMESTAMP, bytes([Header.TIMESTAMP]) + start.timestamp.to_bytes(8, "little")
    if facts.retired == 0:  # D17.6.7: speculative values must not be recorded.
        return

    pc = Location(operation.pc, start.el, start.ns, start.nse)
    yield Packet.PC, _instruction_address(config, AddressIndex.PC, pc)
    if start.contextidr_el1 is not None:
        yield Packet.CONTEXT_EL1, _context(ContextIndex.EL1, start.contextidr_el1)
    if start.contextidr_el2 is not None:
        yield Packet.CONTEXT_EL2, _context(ContextIndex.EL2, start.contextidr_el2)
    yield Packet.OPERATION, _operation_type(config, operation)
    yield Packet.TOTAL, _counter(CounterIndex.TOTAL, saturate(config, sample.total))
    if Packet.ISSUE in config.layout.packets:  # D17.6: the packet of a constant count may be omitted.
        yield Packet.ISSUE, _counter(CounterIndex.ISSUE, saturate(config, sample.issue))
    if config.altclk and facts.asynchronous == 1:  # D17.6.1
        yield Packet.ALTERNATE_ISSUE, _counter(CounterIndex.ALTERNATE_ISSUE, saturate(config, sample.alternate_issue))
    if facts.exception == 1:  # D17.6.10: values that were not computed are not collected.
        return

    if is_branch(facts) and (config.not_taken_target or facts.taken == 1):
        yield Packet.TARGET, _instruction_address(config, AddressIndex.TARGET, operation.target)
    if config.pbt and (config.pbt_of_all or is_branch(facts)) and sample.previous_target is not None:
        yield Packet.PREVIOUS_TARGET, _instruction_address(config, AddressIndex.PREVIOUS_TARGET, sample.previous_target)
    if _has_va(config, sample):
        yield Packet.VA, _address(AddressIndex.VA, operation.va, operation.va >> ADDRESS_BITS & -facts.va_tagged)
        yield Packet.TRANSLATION, _counter(CounterIndex.TRANSLATION, saturate(config, sample.translation))
        if facts.pa_valid == 1 and start.collect_pa:
            yield Packet.PA, _physical_address(config, operation)
    if has_data_source(config, facts):
        yield Packet.DATA_SOURCE, _packet(Header.DATA_SOURCE, operation.data_source, config.data_source_bytes)
    if config.imp_counter and facts.imp_counter_valid == 1:
        yield Packet.IMP_COUNTER, _counter(config.imp_counter, operation.imp_counter)
    if config.imp_address and facts.imp_address_valid == 1:
        address = operation.imp_address
        yield Packet.IMP_ADDRESS, _address(config.imp_address, address, address >> ADDRESS_BITS)


def _has_va(config: SPUConfig, sample: Sample) -> int:
    """Return whether the record has the data virtual address, and with it the translation latency (D17.6.4)."""
    facts = sample.operation.facts
    accessed = has_data_access(config, facts) & facts.va_valid
    if config.nv2 and not sample.start.collect_nv2_va:  # D17.6.4.2
        return accessed & ~facts.nv2
    return accessed


def _operation_type(config: SPUConfig, operation: Operation) -> bytes:
    """Return the Operation Type packet (D18.2.7). A branch that accesses memory is recorded as a branch (D17.6.3)."""
    facts = operation.facts
    if is_branch(facts):
        return bytes([Header.OPERATION | OperationClass.BRANCH, operation_type.branch(config, facts)])
    if is_memory(facts):
        return bytes([Header.OPERATION | OperationClass.LOAD_STORE, operation_type.load_store(config, operation)])
    return bytes([Header.OPERATION | OperationClass.OTHER, operation_type.other(config, operation)])


def _packet(header: Header, value: int, payload_bytes: int) -> bytes:
    """Return a packet whose header has SZ, the size of the payload."""
    return bytes([header | Header.size_field(payload_bytes)]) + value.to_bytes(payload_bytes, "little")


def _indexed(header: Header, index: int) -> bytes:
    """Return the header of an Address or Counter packet: one byte if INDEX[4:3] is zero, otherwise two bytes."""
    short = bytes([header | HEADER_INDEX.of(index)])
    extension = index >> HEADER_INDEX.width
    return bytes([Header.EXTENDED | extension]) + short if extension else short


def _address(index: int, address: int, top_byte: int) -> bytes:
    """Return an Address packet (D18.2.1)."""
    value = address & (1 << ADDRESS_BITS) - 1 | top_byte << ADDRESS_BITS
    return _indexed(Header.ADDRESS, index) + value.to_bytes(8, "little")


def _pack_byte(fields: Mapping[str, BitField], **values: int) -> int:
    """Return the byte in which the named fields have the given values."""
    byte = 0
    for name, value in values.items():
        byte = byte | value << fields[name].lsb
    return byte


def _instruction_address(config: SPUConfig, index: AddressIndex, location: Location) -> bytes:
    """Return the Address packet of an instruction address (D18.2.1)."""
    nse = location.nse if config.rme else 0
    top_byte = _pack_byte(INSTRUCTION_TOP, NS=location.ns, EL=location.el, NSE=nse)
    return _address(index, location.address, top_byte)


def _physical_address(config: SPUConfig, operation: Operation) -> bytes:
    """Return the Address packet of the physical address (D18.2.1). PAT of an Unchecked access is zero."""
    top_byte = _pack_byte(PHYSICAL_TOP, NS=operation.pa_ns)
    if config.rme:
        top_byte |= _pack_byte(PHYSICAL_TOP, NSE=operation.pa_nse)
    if config.mte:
        tag = operation.pa_tag & -operation.pa_checked
        top_byte |= _pack_byte(PHYSICAL_TOP, CH=operation.pa_checked, PAT=tag)
    return _address(AddressIndex.PA, operation.pa, top_byte)


def _context(index: ContextIndex, contextidr: int) -> bytes:
    """Return a Context packet (D18.2.2)."""
    return bytes([Header.CONTEXT | index]) + contextidr.to_bytes(4, "little")


def _counter(index: int, count: int) -> bytes:
    """Return a Counter packet (D18.2.3)."""
    return _indexed(Header.COUNTER, index) + count.to_bytes(2, "little")
