"""Bytes of a Profiling Buffer -> packets -> records, of every version up to FEAT_SPEv1p4 and in any order of packets.

Nothing is dropped silently: an unknown packet is skipped by its size but handed on, and a record says what is wrong.
"""

# Ref: DDI0487 M.a, D18.1 (headers, sizes, what software skips) and D18.2 (packets).

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, unique
from typing import NamedTuple

from spurtle.arch import ADDRESS_BITS, AddressIndex, ContextIndex, CounterIndex, Header
from spurtle.arch.packets import EXTENDED_INDEX, HEADER_CLASS, HEADER_INDEX, HEADER_SIZE, INSTRUCTION_TOP, PHYSICAL_TOP

from .operation_type import OperationType, operation_type

__all__ = [
    "DecodedPacket",
    "InstructionAddress",
    "PacketKind",
    "PhysicalAddress",
    "Problem",
    "Record",
    "decode_packets",
    "decode_records",
    "packet_fields",
]

_LONGEST_PADDING = 16
"""Padding bytes in one `DecodedPacket`: as many as `perf report -D` shows on a line."""


@unique
class PacketKind(Enum):
    """What a packet is."""

    PADDING = "padding"
    END = "End"
    TIMESTAMP = "Timestamp"
    EVENTS = "Events"
    DATA_SOURCE = "Data Source"
    CONTEXT = "Context"
    OPERATION = "Operation Type"
    ADDRESS = "Address"
    COUNTER = "Counter"
    UNKNOWN = "unknown"  # skipped by its size
    BAD = "bad"  # no size: one byte is skipped; or cut off by the end of the data


@dataclass(frozen=True, slots=True)
class DecodedPacket:
    """One packet.

    Parameters
    ----------
    offset, size : int
        Where it starts in the data, and its bytes with the header.
    kind : Kind
    index : int
        INDEX of an Address, Counter or Context packet, CLASS of an Operation Type packet; otherwise zero.
    value : int
        Payload, little-endian; the first header byte where `kind` is unknown or bad.
    """

    offset: int
    size: int
    kind: PacketKind
    index: int
    value: int


def _short_header(header: int) -> tuple[PacketKind, int, int]:
    """Return kind, index and payload bytes. D18.1: any header from 0x40 upward has SZ, known or not."""
    payload = 1 << HEADER_SIZE.of(header)
    if header <= 0x1F:
        if header == Header.PADDING:
            return PacketKind.PADDING, 0, 0
        return PacketKind.END if header == Header.END else PacketKind.UNKNOWN, 0, 0
    if header == Header.TIMESTAMP:
        return PacketKind.TIMESTAMP, 0, payload
    if header & ~HEADER_SIZE.mask == Header.EVENTS:
        return PacketKind.EVENTS, 0, payload
    # One or two bytes: the more significant bit of SZ is zero.
    if header in (Header.DATA_SOURCE | Header.size_field(size) for size in (1, 2)):
        return PacketKind.DATA_SOURCE, 0, payload
    for known, kind, index in (
        (Header.CONTEXT, PacketKind.CONTEXT, HEADER_CLASS),
        (Header.OPERATION, PacketKind.OPERATION, HEADER_CLASS),
        (Header.ADDRESS, PacketKind.ADDRESS, HEADER_INDEX),
        (Header.COUNTER, PacketKind.COUNTER, HEADER_INDEX),
    ):
        if header & ~index.mask == known:
            return kind, index.of(header), payload
    return PacketKind.UNKNOWN, 0, payload


_HEADERS = [_short_header(header) for header in range(256)]
_EXTENDED = range(Header.EXTENDED, 2 * Header.EXTENDED)


def decode_packets(data: bytes | bytearray | memoryview) -> Iterator[DecodedPacket]:
    """Every byte of `data` as packets, in order and without a gap. Never raises, whatever the bytes are."""
    for fields in packet_fields(data if isinstance(data, bytes) else bytes(memoryview(data))):
        yield DecodedPacket(*fields)


def packet_fields(data: bytes) -> Iterator[tuple[int, int, PacketKind, int, int]]:
    """The fields of each `DecodedPacket`: bare, because a large buffer holds millions of them."""
    headers, pad, unknown, bad, number = (
        _HEADERS,
        PacketKind.PADDING,
        PacketKind.UNKNOWN,
        PacketKind.BAD,
        int.from_bytes,
    )
    offset, end = 0, len(data)
    while offset < end:
        header = data[offset]
        if header == 0:
            run = data[offset : offset + _LONGEST_PADDING]
            stop = offset + len(run) - len(run.lstrip(b"\0"))
            yield offset, stop - offset, pad, 0, 0
        elif header in _EXTENDED:
            packet = _extended(data, offset)
            stop = offset + packet[1]
            yield packet
        else:
            kind, index, payload_bytes = headers[header]
            start = offset + 1
            stop = start + payload_bytes
            if stop > end:
                stop = end
                yield offset, end - offset, bad, 0, header
            elif kind is unknown:
                yield offset, stop - offset, kind, 0, header
            else:
                yield offset, stop - offset, kind, index, number(data[start:stop], "little")
        offset = stop


def _extended(data: bytes, offset: int) -> tuple[int, int, PacketKind, int, int]:
    """A packet whose header has two bytes: INDEX[4:3] are in the first, the second looks like a short header."""
    prefix = data[offset]
    if offset + 1 == len(data):
        return offset, 1, PacketKind.BAD, 0, prefix
    second = data[offset + 1]
    if second <= _EXTENDED[-1]:
        # No SZ in the second byte. It may start the next packet, so only the first is skipped.
        return offset, 1, PacketKind.BAD, 0, prefix
    kind, index, payload_bytes = _HEADERS[second]
    size = 2 + payload_bytes
    if offset + size > len(data):
        return offset, len(data) - offset, PacketKind.BAD, 0, prefix
    if kind not in (PacketKind.ADDRESS, PacketKind.COUNTER) or prefix & ~EXTENDED_INDEX.mask != Header.EXTENDED:
        return offset, size, PacketKind.UNKNOWN, 0, prefix
    value = int.from_bytes(data[offset + 2 : offset + size], "little")
    return offset, size, kind, EXTENDED_INDEX.of(prefix) << HEADER_INDEX.width | index, value


class InstructionAddress(NamedTuple):
    """An instruction's address, 56 bits, with the Exception level and Security state that it belongs to (D18.2.1)."""

    address: int
    el: int
    ns: int
    nse: int


class PhysicalAddress(NamedTuple):
    """A physical address, 56 bits, its address space, and the Allocation Tag, checked if CH is one (D18.2.1)."""

    address: int
    ns: int
    nse: int
    ch: int
    pat: int


class Problem(NamedTuple):
    """Something wrong: at which byte, and what."""

    offset: int
    message: str


@dataclass(slots=True)
class Record:
    """One record: its packets by kind, and what they say.

    Parameters
    ----------
    offset, size : int
        Where its first packet stands, padding before it not counted, and the bytes up to the end of its last.
    complete : bool
        It ends with a Timestamp or End packet.
    addresses, counters, contexts : dict of int to int
        Payloads of the Address, Counter and Context packets by INDEX.
    operation_packet : tuple of int, int or None
        CLASS and payload of the Operation Type packet.
    events : int or None
        Bits of the Events packet.
    data_source, timestamp : int or None
    unknown : tuple of Packet
        Packets that D18.2 does not know.
    problems : tuple of Problem
        What was wrong in it, or between it and the record before.
    """

    offset: int = 0
    size: int = 0
    complete: bool = False
    addresses: dict[int, int] = field(default_factory=dict[int, int])
    counters: dict[int, int] = field(default_factory=dict[int, int])
    contexts: dict[int, int] = field(default_factory=dict[int, int])
    operation_packet: tuple[int, int] | None = None
    events: int | None = None
    data_source: int | None = None
    timestamp: int | None = None
    unknown: tuple[DecodedPacket, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def pc(self) -> InstructionAddress | None:
        """The sampled instruction."""
        return self._instruction_address(AddressIndex.PC)

    @property
    def target(self) -> InstructionAddress | None:
        """Where the branch went."""
        return self._instruction_address(AddressIndex.TARGET)

    @property
    def previous_target(self) -> InstructionAddress | None:
        """Where the last taken branch before the operation went (FEAT_SPE_PBT)."""
        return self._instruction_address(AddressIndex.PREVIOUS_TARGET)

    @property
    def va(self) -> int | None:
        """The virtual address accessed, 64 bits with the tag in the top byte."""
        return self.addresses.get(AddressIndex.VA)

    @property
    def pa(self) -> PhysicalAddress | None:
        """The physical address accessed."""
        value = self.addresses.get(AddressIndex.PA)
        if value is None:
            return None
        top = value >> ADDRESS_BITS
        state = (PHYSICAL_TOP[name].of(top) for name in ("NS", "NSE", "CH", "PAT"))
        return PhysicalAddress(value & (1 << ADDRESS_BITS) - 1, *state)

    @property
    def context_el1(self) -> int | None:
        """CONTEXTIDR_EL1."""
        return self.contexts.get(ContextIndex.EL1)

    @property
    def context_el2(self) -> int | None:
        """CONTEXTIDR_EL2."""
        return self.contexts.get(ContextIndex.EL2)

    @property
    def total(self) -> int | None:
        """Total latency, in cycles."""
        return self.counters.get(CounterIndex.TOTAL)

    @property
    def issue(self) -> int | None:
        """Issue latency, in cycles."""
        return self.counters.get(CounterIndex.ISSUE)

    @property
    def translation(self) -> int | None:
        """Translation latency, in cycles."""
        return self.counters.get(CounterIndex.TRANSLATION)

    @property
    def operation(self) -> OperationType | None:
        """What the operation was."""
        return None if self.operation_packet is None else operation_type(*self.operation_packet)

    def _instruction_address(self, index: AddressIndex) -> InstructionAddress | None:
        value = self.addresses.get(index)
        if value is None:
            return None
        top = value >> ADDRESS_BITS
        state = (INSTRUCTION_TOP[name].of(top) for name in ("EL", "NS", "NSE"))
        return InstructionAddress(value & (1 << ADDRESS_BITS) - 1, *state)


def decode_records(data: bytes | bytearray | memoryview) -> Iterator[Record]:
    """The records of `data`, in order; the last may be incomplete. Never raises, whatever the bytes are.

    A record with `problems` is decoded as far as its bytes allow. Where a packet stands twice, the first one counts.

    The data is that of one Profiling Buffer. `spurtle_sim.read_perf_data` returns the buffers in a perf.data file.
    """
    padding, end_packet, timestamp, address, counter = (
        PacketKind.PADDING,
        PacketKind.END,
        PacketKind.TIMESTAMP,
        PacketKind.ADDRESS,
        PacketKind.COUNTER,
    )
    record: Record | None = None
    stop = 0
    for offset, size, kind, index, value in packet_fields(data if isinstance(data, bytes) else bytes(memoryview(data))):
        if kind is padding:
            continue
        if record is None:
            record = Record(offset)
        stop = offset + size
        if kind is address and index not in record.addresses:
            record.addresses[index] = value
        elif kind is counter and index not in record.counters:
            record.counters[index] = value
        elif kind is timestamp or kind is end_packet:
            if kind is timestamp:
                record.timestamp = value
            record.complete = True
            yield _finished(record, stop)
            record = None
        else:
            _add(record, DecodedPacket(offset, size, kind, index, value), len(data))
    if record is not None:
        message = "the record is incomplete: the data ends before its Timestamp or End packet"
        record.problems += (Problem(record.offset, message),)
        yield _finished(record, stop)


def _add(record: Record, packet: DecodedPacket, end: int) -> None:
    """Put any packet in its place but for the frequent ones, which never come here the first time."""
    kind, index, value = packet.kind, packet.index, packet.value
    if kind is PacketKind.EVENTS and record.events is None:
        record.events = value
    elif kind is PacketKind.OPERATION and record.operation_packet is None:
        record.operation_packet = (index, value)
    elif kind is PacketKind.CONTEXT and index not in record.contexts:
        record.contexts[index] = value
    elif kind is PacketKind.DATA_SOURCE and record.data_source is None:
        record.data_source = value
    elif kind is PacketKind.UNKNOWN:
        record.unknown += (packet,)
    elif kind is PacketKind.BAD:
        record.problems += (_bad(packet, end),)
    else:
        message = f"a second {kind.value} packet in the record that starts at {record.offset:#x}"
        record.problems += (Problem(packet.offset, message),)


def _bad(packet: DecodedPacket, end: int) -> Problem:
    offset, size, header = packet.offset, packet.size, packet.value
    if offset + size == end:
        return Problem(
            offset, f"the packet with header {header:#04x} is cut off by the end of the data, {size} bytes later"
        )
    return Problem(offset, f"header {header:#04x} is extended, but no header that has a size follows it")


def _finished(record: Record, stop: int) -> Record:
    record.size = stop - record.offset
    if record.events is None and record.complete:
        record.problems += (Problem(record.offset, "the record has no Events packet: it does not start here"),)
    return record
