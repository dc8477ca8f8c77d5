"""What is collected of a sampled operation, and the record that it becomes."""

# Ref: DDI0487 M.a, D17.6 (what is collected) and D18.2 (packets). docs/choices.md says what is IMPLEMENTATION DEFINED.
# All of this also runs over z3 values: nothing but `if`, comparisons, `+`, `*`, bit operations and shifts by constants.

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from spurtle.arch import (
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
from spurtle.arch import operation_types as types
from spurtle.arch.fields import BitField
from spurtle.arch.packets import HEADER_INDEX, INSTRUCTION_TOP, PHYSICAL_TOP
from spurtle.config import SPUConfig
from spurtle.config.record_layouts import Packet

__all__ = [
    "Facts",
    "Location",
    "Operation",
    "Sample",
    "Start",
    "Vectors",
    "encode",
    "events",
    "has_data_source",
    "is_branch",
    "is_memory",
    "lay_out",
    "packets",
    "saturate",
]


def _bits(*numbers: int) -> int:
    return sum(1 << number for number in numbers)


# D18.2.6: what only a load or store, only a load, only a branch, only an SVE or SME operation can have done. 12 to 15
# are the core's own, about its caches.
_MEMORY_EVENTS = _bits(2, 3, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15)
_LOAD_EVENTS = _bits(19, 20, 21, 22, 23)
_BRANCH_EVENTS = _bits(Event.MISPREDICTED)
_SCALABLE_EVENTS = _bits(Event.PARTIAL_PREDICATE, Event.EMPTY_PREDICATE)
_OTHER_EVENTS = _bits(*range(64)) - _MEMORY_EVENTS - _LOAD_EVENTS - _BRANCH_EVENTS - _SCALABLE_EVENTS - _bits(0, 1, 6)

_VECTOR_BITS = (1 << 12) - 1
"""What of `Vectors.bits` holds the length of a vector; only a tile is larger."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """What an operation is and did, 0 or 1 each: the members of `spurtle.interface.operation.Facts`, in its order."""

    load: int = 0
    store: int = 0
    branch: int = 0
    atomic: int = 0
    acquire_release: int = 0
    exclusive: int = 0
    simd_fp: int = 0
    unspecified: int = 0
    allocation_tag: int = 0
    nv2: int = 0
    memory_copy: int = 0
    memory_set: int = 0
    gcs: int = 0
    vector: int = 0
    floating_point: int = 0
    conditional: int = 0
    taken: int = 0
    indirect: int = 0
    link: int = 0
    procedure_return: int = 0
    asynchronous: int = 0
    retired: int = 0
    exception: int = 0
    va_valid: int = 0
    pa_valid: int = 0
    va_tagged: int = 0
    data_source_valid: int = 0
    destination: int = 0
    imp_counter_valid: int = 0
    imp_address_valid: int = 0

    def pack(self) -> int:
        """The facts as one number, `load` in bit 0."""
        return sum(getattr(self, name) << bit for bit, name in enumerate(self.__slots__))

    @classmethod
    def unpack(cls, value: int) -> "Facts":
        """Inverse of `pack`."""
        return cls(**{name: (value >> bit) & 1 for bit, name in enumerate(cls.__slots__)})


@dataclass(frozen=True, kw_only=True, slots=True)
class Vectors:
    """What an SVE or SME operation works on (D17.6.6): the members of `spurtle.interface.operation.Vectors`.

    `bits` has 12 bits, of a tile operation 19, and `count` 5; all others are 0 or 1.
    """

    sve: int = 0
    predicated: int = 0
    gather_scatter: int = 0
    bits: int = 0
    sme: int = 0
    tile: int = 0
    whole_array: int = 0
    count: int = 0


@dataclass(frozen=True, slots=True)
class Location:
    """An instruction address (56 bits) with the Exception level and Security state that it belongs to. Realm where both
    `ns` and `nse` are 1.
    """

    address: int = 0
    el: int = 0
    ns: int = 0
    nse: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation:
    """A finished operation, as the core tells it.

    It has the members of `interface.operation.OperationLayout`, and their widths. What belongs to a feature is nothing
    without it.

    A branch is neither load nor store, but for an access to the Guarded control stack.
    """

    facts: Facts = Facts()
    events: int = 0
    pc: int = 0
    target: Location = Location()
    va: int = 0
    pa: int = 0
    pa_ns: int = 0
    pa_nse: int = 0
    pa_checked: int = 0
    pa_tag: int = 0
    data_source: int = 0
    vectors: Vectors = Vectors()
    imp_counter: int = 0
    imp_address: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Start:
    """What is captured when the operation passes the sampling point; None is what may not be collected.

    `collect_nv2_va` permits the address of a System register that FEAT_NV2 keeps in memory (D17.6.4.2).
    """

    el: int = 0
    ns: int = 1
    nse: int = 0
    contextidr_el1: int | None = None
    contextidr_el2: int | None = None
    timestamp: int | None = None
    collect_pa: bool = False
    collect_nv2_va: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """A sampled operation that has finished.

    Parameters
    ----------
    start : Start
        What was captured at the sampling point.
    operation : Operation
        What the core told at the end.
    previous_target : Location or None
        Where the last taken branch before it went, None if that may not be collected (D17.6.3.1).
    total, issue, translation : int
        Latencies in cycles, not saturated.
    alternate_issue : int
        Issue latency in cycles of the alternate clock, not saturated (D17.6.1).
    """

    start: Start
    operation: Operation
    previous_target: Location | None = None
    total: int = 0
    issue: int = 0
    translation: int = 0
    alternate_issue: int = 0


# Bits, not truth values: what runs over z3 values goes one way then, where each `if` would make it go two.


def is_branch(facts: Facts) -> int:
    """It is sampled as a branch. D17.6.3: an operation that generates an exception is not."""
    return facts.branch & ~facts.exception


def is_memory(facts: Facts) -> int:
    """It is a load or store."""
    return facts.load | facts.store


def has_data_access(config: SPUConfig, facts: Facts) -> int:
    """If it retires without an exception, its record tells of an access: it is a load or store. So is a branch that
    accesses the Guarded control stack (D17.6.3), of which nothing is told without FEAT_GCS.
    """
    return is_memory(facts) if config.gcs else is_memory(facts) & ~is_branch(facts)


def is_destination(config: SPUConfig, facts: Facts) -> int:
    """Of its two accesses the store is sampled. A Memory Copy has two, and of the operations on the Guarded control
    stack GCSSS2 (D17.6.4.3, D17.6.4.5).
    """
    copies = facts.memory_copy if config.mops else 0
    switches = facts.gcs if config.gcs else 0
    return (copies | switches) & facts.store & facts.destination


def has_data_source(config: SPUConfig, facts: Facts) -> int:
    """Its record has a Data Source packet: the access that is sampled loads (D18.2.4)."""
    if config.data_source_bytes == 0:
        return 0
    loads = has_data_access(config, facts) & facts.load & ~is_destination(config, facts)
    return loads & facts.data_source_valid & facts.retired & ~facts.exception


def _is_sve(config: SPUConfig, operation: Operation) -> int:
    """A Sampled SVE SIMD operation (D17.6.6)."""
    return operation.vectors.sve if config.scalable else 0


def _is_sme(config: SPUConfig, operation: Operation) -> int:
    """A Sampled SME vector or SME tile operation (D17.6.6)."""
    return operation.vectors.sme if config.sme else 0


def _has_sme_format(config: SPUConfig, operation: Operation) -> int:
    """A Sampled SME operation that is recorded as such. Without FEAT_SPE_SME none is (D17.6.6)."""
    return _is_sme(config, operation) if config.spe_sme else 0


def saturate(config: SPUConfig, cycles: int) -> int:
    """The count that a Counter packet holds (D18.2.3)."""
    largest = (1 << config.counter_bits) - 1
    return largest if cycles > largest else cycles


def events(config: SPUConfig, sample: Sample) -> int:
    """Payload of the Events packet: only what this kind of operation can have done, only what `config` records."""
    operation, facts = sample.operation, sample.operation.facts
    if facts.retired == 0:  # D17.6.7: nothing may be inferred from it.
        return 0
    # All of the events if the bit is 1: the bits of -1 are all ones.
    possible = (
        _OTHER_EVENTS
        | -has_data_access(config, facts) & _MEMORY_EVENTS
        | -(has_data_access(config, facts) & facts.load) & _LOAD_EVENTS
        | -is_branch(facts) & _BRANCH_EVENTS
        | -((_is_sve(config, operation) | _is_sme(config, operation)) & ~is_branch(facts)) & _SCALABLE_EVENTS
    )
    told = operation.events & possible
    if config.spe_sme:
        told = told & ~_bits(Event.SMCU) | facts.asynchronous << Event.SMCU
    value = (
        told
        | facts.exception << Event.GENERATED_EXCEPTION
        | 1 << Event.RETIRED
        | (facts.conditional & ~facts.taken) << Event.NOT_TAKEN
    )
    return value & _bits(*config.events)


def encode(config: SPUConfig, sample: Sample) -> bytes:
    """The record of a sampled operation: as long as its layout and its packets make it.

    Raises
    ------
    ValueError
        If the layout of `config` has no place for a packet of the sample.
    """
    return lay_out(config, packets(config, sample))


def lay_out(config: SPUConfig, packets: Iterable[tuple[Packet, bytes]]) -> bytes:
    """The record that holds `packets`, given in any order: End or Timestamp, which ends it, and whatever else is there.

    Each stands at its place; then padding brings the record to a multiple of `layout.align` bytes (D18.2.8).

    Raises
    ------
    ValueError
        If the layout of `config` has no place for a packet.
    """
    layout, contents = config.layout, dict(packets)
    placed = layout.packets
    for packet in contents:
        if packet not in placed:
            raise ValueError(f"a record of {config.name} has no place for {packet.value}")
    record = bytearray()
    for place, size, offsets in config.places:
        there = [packet for packet in offsets if packet in contents]
        if place.elastic and not there:
            continue
        octets = bytearray(size)
        for packet in there:
            octets[offsets[packet] : offsets[packet] + len(contents[packet])] = contents[packet]
        record += octets
    last = contents[Packet.TIMESTAMP if Packet.TIMESTAMP in contents else Packet.END]
    padding = bytes(-(len(record) + len(last)) % layout.align)
    return bytes(record + (last + padding if layout.padding_last else padding + last))


def packets(config: SPUConfig, sample: Sample) -> Iterator[tuple[Packet, bytes]]:
    """Every packet of the record, header and payload, in no order that means anything."""
    start, operation, facts = sample.start, sample.operation, sample.operation.facts

    yield Packet.EVENTS, _sized(Header.EVENTS, events(config, sample), config.events_bytes)
    if start.timestamp is None:
        yield Packet.END, bytes([Header.END])
    else:
        yield Packet.TIMESTAMP, bytes([Header.TIMESTAMP]) + start.timestamp.to_bytes(8, "little")
    if facts.retired == 0:  # D17.6.7: a speculated value may not be told.
        return

    pc = Location(operation.pc, start.el, start.ns, start.nse)
    yield Packet.PC, _instruction_address(config, AddressIndex.PC, pc)
    if start.contextidr_el1 is not None:
        yield Packet.CONTEXT_EL1, _context(ContextIndex.EL1, start.contextidr_el1)
    if start.contextidr_el2 is not None:
        yield Packet.CONTEXT_EL2, _context(ContextIndex.EL2, start.contextidr_el2)
    yield Packet.OPERATION, _operation_type(config, operation)
    yield Packet.TOTAL, _counter(CounterIndex.TOTAL, saturate(config, sample.total))
    if Packet.ISSUE in config.layout.packets:  # D17.6: a count that is fixed may be omitted.
        yield Packet.ISSUE, _counter(CounterIndex.ISSUE, saturate(config, sample.issue))
    if config.altclk and facts.asynchronous == 1:  # D17.6.1
        yield Packet.ALTERNATE_ISSUE, _counter(CounterIndex.ALTERNATE_ISSUE, saturate(config, sample.alternate_issue))
    if facts.exception == 1:  # D17.6.10: what the operation did not compute is not collected.
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
        yield Packet.DATA_SOURCE, _sized(Header.DATA_SOURCE, operation.data_source, config.data_source_bytes)
    if config.imp_counter and facts.imp_counter_valid == 1:
        yield Packet.IMP_COUNTER, _counter(config.imp_counter, operation.imp_counter)
    if config.imp_address and facts.imp_address_valid == 1:
        address = operation.imp_address
        yield Packet.IMP_ADDRESS, _address(config.imp_address, address, address >> ADDRESS_BITS)


def _has_va(config: SPUConfig, sample: Sample) -> int:
    """The data virtual address is there, and with it the translation latency (D17.6.4)."""
    facts = sample.operation.facts
    accessed = has_data_access(config, facts) & facts.va_valid
    if config.nv2 and not sample.start.collect_nv2_va:  # D17.6.4.2
        return accessed & ~facts.nv2
    return accessed


def _operation_type(config: SPUConfig, operation: Operation) -> bytes:
    """D18.2.7. A branch that makes an access is a branch (D17.6.3)."""
    facts = operation.facts
    if is_branch(facts):
        return bytes([Header.OPERATION | OperationClass.BRANCH, _branch(config, facts)])
    if is_memory(facts):
        return bytes([Header.OPERATION | OperationClass.LOAD_STORE, _load_store(config, operation)])
    return bytes([Header.OPERATION | OperationClass.OTHER, _other(config, operation)])


def _branch(config: SPUConfig, facts: Facts) -> int:
    """Payload of a branch."""
    guarded = facts.gcs if config.gcs else 0
    return types.BRANCH.pack(CR=_procedure(config, facts), GCS=guarded, IND=facts.indirect, COND=facts.conditional)


def _procedure(config: SPUConfig, facts: Facts) -> int:
    """CR: 0b00 exactly without FEAT_SPE_CRR."""
    if not config.crr:
        return CR.NOT_RECORDED
    if facts.link == 1:
        return CR.LINK
    return CR.RETURN if facts.procedure_return == 1 else CR.NEITHER


def _load_store(config: SPUConfig, operation: Operation) -> int:
    """Payload of a load or store. LDST is 0 where memory is read, which an atomic that returns a value does first of
    all; of two accesses the one that is sampled counts.
    """
    facts = operation.facts
    ldst = facts.store & (~facts.load | is_destination(config, facts))
    if config.mops and facts.memory_copy == 1:
        return types.MEMORY_COPY.pack(LDST=ldst)
    if config.mops and facts.memory_set == 1:
        return types.MEMORY_SET.pack()
    if config.gcs and facts.gcs == 1:
        common = (facts.link | facts.procedure_return) ^ 1
        return types.GUARDED_CONTROL_STACK.pack(COMM=common, LDST=ldst)
    if config.mte and config.version >= PMSVer.SPE_V1P3 and facts.allocation_tag == 1:
        return types.TAG.pack(LDST=ldst)
    if config.nv2 and facts.nv2 == 1:
        return types.NV2.pack(LDST=ldst)
    if _is_sve(config, operation) | _has_sme_format(config, operation):
        vectors = operation.vectors
        # The predicate of a load counts from FEAT_SPEv1p2 on.
        predicated = vectors.predicated if config.version >= PMSVer.SPE_V1P2 else vectors.predicated & ldst
        return types.SVE_LOAD_STORE.pack(
            SG=vectors.gather_scatter, EVL=_evl(config, operation), PRED=predicated, LDST=ldst
        )
    if _is_sme(config, operation):
        return types.UNSPECIFIED.pack(LDST=ldst)
    if facts.acquire_release | facts.exclusive | facts.atomic:
        return types.EXTENDED.pack(AR=facts.acquire_release, EXCL=facts.exclusive, AT=facts.atomic, LDST=ldst)
    if config.version >= PMSVer.SPE_V1P1 and facts.unspecified == 1:
        return types.UNSPECIFIED.pack(LDST=ldst)
    return types.GENERAL.pack(SIMD_FP=facts.simd_fp, LDST=ldst)


def _other(config: SPUConfig, operation: Operation) -> int:
    """Payload of data processing, and of all that is nothing else."""
    facts, vectors = operation.facts, operation.vectors
    if _has_sme_format(config, operation):
        return types.SME_DATA_PROCESSING.pack(ETS=_ets(operation), FP=facts.floating_point)
    if _is_sve(config, operation):
        return types.SVE_DATA_PROCESSING.pack(
            EVL=_evl(config, operation), PRED=vectors.predicated, FP=facts.floating_point
        )
    if config.fpf:
        # Without FEAT_SPE_SME an SME operation is Other, and none of Advanced SIMD.
        advanced = facts.vector & ~facts.unspecified & ~_is_sme(config, operation)
        return types.OTHER.pack(ASE=advanced, FP=facts.floating_point, COND=facts.conditional)
    return types.OTHER.pack(COND=facts.conditional)


def _evl(config: SPUConfig, operation: Operation) -> int:
    """EVL: how often 32 bits must be doubled to hold what is operated on. That is all vectors with FEAT_SPE_SME, one
    of them without (D17.6.6); the product is rounded up, not the length.
    """
    size, most = operation.vectors.bits & _VECTOR_BITS, EVL.BITS_2048
    if config.spe_sme:
        size, most = size * operation.vectors.count, EVL.MORE
    return sum(size > types.EVL_UNIT << doublings for doublings in range(most))


def _ets(operation: Operation) -> int:
    """ETS: how often 128 bits must be doubled to hold what is operated on. What is larger than any size is taken for
    the whole array.
    """
    vectors = operation.vectors
    if vectors.tile == 1:
        size = vectors.bits
    else:
        size = (vectors.bits & _VECTOR_BITS) * vectors.count
    doubled = sum(size > types.ETS_UNIT << doublings for doublings in range(ETS.BITS_262144 + 1))
    if vectors.whole_array | (doubled > ETS.BITS_262144):
        return ETS.WHOLE_ARRAY
    return doubled


def _sized(header: Header, value: int, payload_bytes: int) -> bytes:
    return bytes([header | Header.size_field(payload_bytes)]) + value.to_bytes(payload_bytes, "little")


def _indexed(header: Header, index: int) -> bytes:
    """Header of an Address or Counter packet: one byte while INDEX[4:3] are zero, two otherwise."""
    short = bytes([header | HEADER_INDEX.of(index)])
    extension = index >> HEADER_INDEX.width
    return bytes([Header.EXTENDED | extension]) + short if extension else short


def _address(index: int, address: int, top_byte: int) -> bytes:
    value = address & (1 << ADDRESS_BITS) - 1 | top_byte << ADDRESS_BITS
    return _indexed(Header.ADDRESS, index) + value.to_bytes(8, "little")


def _in_place(fields: Mapping[str, BitField], **values: int) -> int:
    """Return the byte with these fields."""
    byte = 0
    for name, value in values.items():
        byte = byte | value << fields[name].lsb
    return byte


def _instruction_address(config: SPUConfig, index: AddressIndex, location: Location) -> bytes:
    nse = location.nse if config.rme else 0
    top_byte = _in_place(INSTRUCTION_TOP, NS=location.ns, EL=location.el, NSE=nse)
    return _address(index, location.address, top_byte)


def _physical_address(config: SPUConfig, operation: Operation) -> bytes:
    """D18.2.1. PAT of an access that is not checked is zero."""
    top_byte = _in_place(PHYSICAL_TOP, NS=operation.pa_ns)
    if config.rme:
        top_byte |= _in_place(PHYSICAL_TOP, NSE=operation.pa_nse)
    if config.mte:
        tag = operation.pa_tag & -operation.pa_checked
        top_byte |= _in_place(PHYSICAL_TOP, CH=operation.pa_checked, PAT=tag)
    return _address(AddressIndex.PA, operation.pa, top_byte)


def _context(index: ContextIndex, contextidr: int) -> bytes:
    return bytes([Header.CONTEXT | index]) + contextidr.to_bytes(4, "little")


def _counter(index: int, count: int) -> bytes:
    return _indexed(Header.COUNTER, index) + count.to_bytes(2, "little")
