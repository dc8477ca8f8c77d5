"""What is collected of a sampled operation, and the record that it becomes."""

# Ref: DDI0487 M.a, D17.6 (what is collected) and D18.2 (packets). docs/choices.md says what is IMPLEMENTATION DEFINED.

from collections.abc import Iterator
from dataclasses import dataclass, fields

from spurtle.arch import AddressIndex, ContextIndex, CounterIndex, Event, Header, OperationClass
from spurtle.config import SPUConfig
from spurtle.layout import Packet

__all__ = [
    "Facts",
    "Location",
    "Operation",
    "Sample",
    "Start",
    "encode",
    "events",
    "has_data_source",
    "is_branch",
    "is_memory",
    "saturate",
]


def _bits(*numbers: int) -> int:
    return sum(1 << number for number in numbers)


# D18.2.6: what only a load or store, only a load, only a branch can have done. 12 to 15 are the core's own, about its
# caches.
_MEMORY_EVENTS = _bits(2, 3, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15)
_LOAD_EVENTS = _bits(19, 20, 21, 22, 23)
_BRANCH_EVENTS = _bits(Event.MISPREDICTED)
_OTHER_EVENTS = _bits(*range(64)) - _MEMORY_EVENTS - _LOAD_EVENTS - _BRANCH_EVENTS - _bits(0, 1, 6)


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """What an operation is and did, 0 or 1 each: the members of `spurtle.pe.Facts`, in its order."""

    load: int = 0
    store: int = 0
    branch: int = 0
    atomic: int = 0
    acquire_release: int = 0
    exclusive: int = 0
    simd_fp: int = 0
    vector: int = 0
    floating_point: int = 0
    conditional: int = 0
    taken: int = 0
    indirect: int = 0
    retired: int = 0
    exception: int = 0
    va_valid: int = 0
    pa_valid: int = 0
    va_tagged: int = 0
    data_source_valid: int = 0
    memory_copy: int = 0
    memory_set: int = 0
    gcs: int = 0
    link_or_return: int = 0
    destination: int = 0

    def pack(self) -> int:
        """The facts as one number, `load` in bit 0."""
        return sum(getattr(self, field.name) << bit for bit, field in enumerate(fields(self)))

    @classmethod
    def unpack(cls, value: int) -> "Facts":
        """Inverse of `pack`."""
        return cls(**{field.name: (value >> bit) & 1 for bit, field in enumerate(fields(cls))})


@dataclass(frozen=True, slots=True)
class Location:
    """An instruction address (56 bits) with the Exception level and Security state that it belongs to."""

    address: int = 0
    el: int = 0
    ns: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation:
    """A finished operation, as the core tells it: the members of `spurtle.pe.Operation`, and their widths.

    A branch is neither load nor store, but for an access to the Guarded control stack.
    """

    facts: Facts = Facts()
    events: int = 0
    pc: int = 0
    target: Location = Location()
    va: int = 0
    pa: int = 0
    pa_ns: int = 0
    data_source: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Start:
    """What is captured when the operation passes the sampling point; None is what may not be collected."""

    el: int = 0
    ns: int = 1
    contextidr_el1: int | None = None
    contextidr_el2: int | None = None
    timestamp: int | None = None
    collect_pa: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """A sampled operation that has finished.

    Parameters
    ----------
    start : Start
        What was captured at the sampling point.
    operation : Operation
        What the core told at the end.
    total, issue, translation : int
        Latencies in cycles, not saturated.
    """

    start: Start
    operation: Operation
    total: int = 0
    issue: int = 0
    translation: int = 0


# Bits, not truth values: what runs over z3 values goes one way then, where each `if` would make it go two.


def is_branch(facts: Facts) -> int:
    """It is sampled as a branch. D17.6.3: an operation that generates an exception is not."""
    return facts.branch & ~facts.exception


def is_memory(facts: Facts) -> int:
    """It is a load or store."""
    return facts.load | facts.store


def has_data_access(config: SPUConfig, facts: Facts) -> int:
    """If it retires without an exception, its record tells of an access: it is a load or store. A branch is one where
    it accesses the Guarded control stack (D17.6.3).
    """
    guarded = facts.gcs if config.gcs else 0
    return is_memory(facts) & (guarded | ~is_branch(facts))


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


def saturate(config: SPUConfig, cycles: int) -> int:
    """The count that a Counter packet holds (D18.2.3)."""
    largest = (1 << config.counter_bits) - 1
    return largest if cycles > largest else cycles


def events(config: SPUConfig, sample: Sample) -> int:
    """Payload of the Events packet: only what this kind of operation can have done, only what `config` records.

    Like the filter, which asks for it, this runs over z3 values.
    """
    facts = sample.operation.facts
    if facts.retired == 0:  # D17.6.7: nothing may be inferred from it.
        return 0
    # All of the events if the bit is 1: the bits of -1 are all ones.
    possible = (
        _OTHER_EVENTS
        | -is_memory(facts) & _MEMORY_EVENTS
        | -facts.load & _LOAD_EVENTS
        | -is_branch(facts) & _BRANCH_EVENTS
    )
    value = (
        sample.operation.events & possible
        | facts.exception << Event.GENERATED_EXCEPTION
        | 1 << Event.RETIRED
        | (facts.conditional & ~facts.taken) << Event.NOT_TAKEN
    )
    return value & _bits(*config.events)


def encode(config: SPUConfig, sample: Sample) -> bytes:
    """The record of a sampled operation: `config.record_bytes` bytes.

    Raises
    ------
    ValueError
        If the layout of `config` has no place for a packet of the sample.
    """
    record = bytearray(config.record_bytes)
    offsets = config.packet_offsets
    for packet, content in _packets(config, sample):
        if packet not in offsets:
            raise ValueError(f"a record of {config.name} has no place for {packet.value}")
        offset = offsets[packet]
        record[offset : offset + len(content)] = content
    return bytes(record)


def _packets(config: SPUConfig, sample: Sample) -> Iterator[tuple[Packet, bytes]]:
    start, operation, facts = sample.start, sample.operation, sample.operation.facts

    yield Packet.EVENTS, _events_packet(config, sample)
    if start.timestamp is None:
        yield Packet.END, bytes([Header.END])
    else:
        yield Packet.TIMESTAMP, bytes([Header.TIMESTAMP]) + start.timestamp.to_bytes(8, "little")
    if facts.retired == 0:
        return

    yield Packet.PC, _instruction_address(AddressIndex.PC, Location(operation.pc, start.el, start.ns))
    if start.contextidr_el1 is not None:
        yield Packet.CONTEXT_EL1, _context(ContextIndex.EL1, start.contextidr_el1)
    if start.contextidr_el2 is not None:
        yield Packet.CONTEXT_EL2, _context(ContextIndex.EL2, start.contextidr_el2)
    yield Packet.OPERATION, _operation_type(config, facts)
    yield Packet.ISSUE, _counter(config, CounterIndex.ISSUE, sample.issue)
    yield Packet.TOTAL, _counter(config, CounterIndex.TOTAL, sample.total)
    if facts.exception == 1:  # D17.6.10: what the operation did not compute is not collected.
        return

    if is_branch(facts) and (config.not_taken_target or facts.taken == 1):
        yield Packet.TARGET, _instruction_address(AddressIndex.TARGET, operation.target)
    if has_data_access(config, facts) & facts.va_valid:
        yield Packet.VA, _address(AddressIndex.VA, operation.va, operation.va >> 56 & -facts.va_tagged)
        yield Packet.TRANSLATION, _counter(config, CounterIndex.TRANSLATION, sample.translation)
        if facts.pa_valid == 1 and start.collect_pa:
            yield Packet.PA, _address(AddressIndex.PA, operation.pa, operation.pa_ns << 7)
    if has_data_source(config, facts):
        header = Header.DATA_SOURCE | Header.size_field(config.data_source_bytes)
        yield (
            Packet.DATA_SOURCE,
            bytes([header]) + operation.data_source.to_bytes(config.data_source_bytes, "little"),
        )


def _events_packet(config: SPUConfig, sample: Sample) -> bytes:
    header = Header.EVENTS | Header.size_field(config.events_bytes)
    return bytes([header]) + events(config, sample).to_bytes(config.events_bytes, "little")


def _operation_type(config: SPUConfig, facts: Facts) -> bytes:
    """D18.2.7."""
    if is_branch(facts):
        guarded = facts.gcs if config.gcs else 0
        payload = guarded << 2 | facts.indirect << 1 | facts.conditional
        return bytes([Header.OPERATION | OperationClass.BRANCH, payload])
    if is_memory(facts):
        return bytes([Header.OPERATION | OperationClass.LOAD_STORE, _load_store(config, facts)])
    return bytes([Header.OPERATION | OperationClass.OTHER, facts.conditional])


def _load_store(config: SPUConfig, facts: Facts) -> int:
    """Payload of a load or store. LDST is 0 where memory is read, which an atomic that returns a value does first of
    all; of two accesses the one that is sampled counts.
    """
    ldst = facts.store & (~facts.load | is_destination(config, facts))
    if config.mops and facts.memory_copy == 1:
        return 0b0010_0000 | ldst
    if config.mops and facts.memory_set == 1:
        return 0b0010_0101
    if config.gcs and facts.gcs == 1:
        common = facts.link_or_return ^ 1
        return 0b0100_0000 | common << 2 | ldst
    if facts.acquire_release | facts.exclusive | facts.atomic:
        return facts.acquire_release << 4 | facts.exclusive << 3 | facts.atomic << 2 | 1 << 1 | ldst
    return facts.simd_fp << 2 | ldst


def _address(index: AddressIndex, address: int, top_byte: int) -> bytes:
    return bytes([Header.ADDRESS | index]) + (address & (1 << 56) - 1 | top_byte << 56).to_bytes(8, "little")


def _instruction_address(index: AddressIndex, location: Location) -> bytes:
    return _address(index, location.address, location.ns << 7 | location.el << 5)


def _context(index: ContextIndex, contextidr: int) -> bytes:
    return bytes([Header.CONTEXT | index]) + contextidr.to_bytes(4, "little")


def _counter(config: SPUConfig, index: CounterIndex, cycles: int) -> bytes:
    return bytes([Header.COUNTER | index]) + saturate(config, cycles).to_bytes(2, "little")
