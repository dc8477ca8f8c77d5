"""Decoder of a Profiling Buffer: from bytes to packets to records.

It decodes records of every version up to FEAT_SPEv1p4, with packets in any order. No byte is ignored silently: an
unknown packet is skipped by its size and reported, and a record lists its problems.

Ref: DDI0487 M.a, D18.1 (headers, sizes, packets that software skips) and D18.2 (packets).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, unique
from typing import NamedTuple

from spurtle.arch import ADDRESS_BITS, AddressIndex, ContextIndex, CounterIndex, Header
from spurtle.arch.packets import EXTENDED_INDEX, HEADER_CLASS, HEADER_INDEX, HEADER_SIZE, INSTRUCTION_TOP, PHYSICAL_TOP
from spurtle.support.numerals import counted

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
"""Largest number of padding bytes in one `DecodedPacket`: the number that `perf report -D` shows on one line."""


@unique
class PacketKind(Enum):
    """Kind of a packet."""

    PADDING = "padding"
    END = "End"
    TIMESTAMP = "Timestamp"
    EVENTS = "Events"
    DATA_SOURCE = "Data Source"
    CONTEXT = "Context"
    OPERATION = "Operation Type"
    ADDRESS = "Address"
    COUNTER = "Counter"
    UNKNOWN = "unknown"  # not defined in D18.2; the decoder skips it by its size
    BAD = "bad"  # without a size, so the decoder skips one byte; or cut off by the end of the data


@dataclass(frozen=True, slots=True)
class DecodedPacket:
    """One packet.

    Parameters
    ----------
    offset, size : int
        Offset in the data, and number of bytes, header included.
    kind : PacketKind
        Kind of the packet.
    index : int
        INDEX of an Address, Counter or Context packet, CLASS of an Operation Type packet; otherwise zero.
    value : int
        Payload, little-endian, or the first header byte of an unknown or bad packet.
    """

    offset: int
    size: int
    kind: PacketKind
    index: int
    value: int


def _short_header(header: int) -> tuple[PacketKind, int, int]:
    """Return kind, index and payload size of a packet. Any header from 0x40 has SZ, even an unknown one (D18.1)."""
    payload = 1 << HEADER_SIZE.of(header)
    if header <= 0x1F:
        if header == Header.PADDING:
            return PacketKind.PADDING, 0, 0
        return PacketKind.END if header == Header.END else PacketKind.UNKNOWN, 0, 0
    if header == Header.TIMESTAMP:
        return PacketKind.TIMESTAMP, 0, payload
    if header & ~HEADER_SIZE.mask == Header.EVENTS:
        return PacketKind.EVENTS, 0, payload
    # The payload has one or two bytes: SZ[1] is zero.
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
    """Yield the packets of `data`, in order. Every byte is in one packet. Arbitrary bytes raise no exception."""
    for fields in packet_fields(data if isinstance(data, bytes) else bytes(memoryview(data))):
        yield DecodedPacket(*fields)


def packet_fields(data: bytes) -> Iterator[tuple[int, int, PacketKind, int, int]]:
    """Yield the fields of each `DecodedPacket` as a tuple, because a large buffer holds millions of packets."""
    # Local variables are faster than attributes of modules and classes.
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
    """Return the fields of a packet with an extended header.

    The first byte holds INDEX[4:3]. The second byte has the format of a short header.
    """
    prefix = data[offset]
    if offset + 1 == len(data):
        return offset, 1, PacketKind.BAD, 0, prefix
    second = data[offset + 1]
    if second <= _EXTENDED[-1]:
        # The second byte has no SZ. It can be the start of the next packet, so only the first byte is skipped.
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
    """Instruction address, 56 bits, with its Exception level and Security state (D18.2.1)."""

    address: int
    el: int
    ns: int
    nse: int


class PhysicalAddress(NamedTuple):
    """Physical address, 56 bits, with its address space, CH (checked) and PAT (Physical Address Tag) (D18.2.1)."""

    address: int
    ns: int
    nse: int
    ch: int
    pat: int


class Problem(NamedTuple):
    """Problem in the data, with its offset."""

    offset: int
    message: str


@dataclass(slots=True)
class Record:
    """One record: the payloads of its packets, and their decoded values.

    Parameters
    ----------
    offset, size : int
        Offset of the first packet after any padding, and number of bytes up to the end of the last packet.
    complete : bool
        Whether the record ends with a Timestamp or End packet.
    addresses, counters, contexts : dict of int to int
        Payloads of the Address, Counter and Context packets, by INDEX.
    operation_packet : tuple of int, int or None
        CLASS and payload of the Operation Type packet.
    events : int or None
        Payload of the Events packet.
    data_source, timestamp : int or None
        Payloads of the Data Source and Timestamp packets.
    unknown : tuple of DecodedPacket
        Packets that D18.2 does not define.
    problems : tuple of Problem
        Problems in the record, or between it and the previous record.
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
        """Address of the sampled instruction."""
        return self._instruction_address(AddressIndex.PC)

    @property
    def target(self) -> InstructionAddress | None:
        """Target of the branch."""
        return self._instruction_address(AddressIndex.TARGET)

    @property
    def previous_target(self) -> InstructionAddress | None:
        """Target of the previous taken branch (FEAT_SPE_PBT)."""
        return self._instruction_address(AddressIndex.PREVIOUS_TARGET)

    @property
    def va(self) -> int | None:
        """Data virtual address, 64 bits, with the tag in the top byte."""
        return self.addresses.get(AddressIndex.VA)

    @property
    def pa(self) -> PhysicalAddress | None:
        """Data physical address."""
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
        """Total latency in cycles."""
        return self.counters.get(CounterIndex.TOTAL)

    @property
    def issue(self) -> int | None:
        """Issue latency in cycles."""
        return self.counters.get(CounterIndex.ISSUE)

    @property
    def translation(self) -> int | None:
        """Translation latency in cycles."""
        return self.counters.get(CounterIndex.TRANSLATION)

    @property
    def operation(self) -> OperationType | None:
        """Decoded Operation Type packet."""
        return None if self.operation_packet is None else operation_type(*self.operation_packet)

    def _instruction_address(self, index: AddressIndex) -> InstructionAddress | None:
        value = self.addresses.get(index)
        if value is None:
            return None
        top = value >> ADDRESS_BITS
        state = (INSTRUCTION_TOP[name].of(top) for name in ("EL", "NS", "NSE"))
        return InstructionAddress(value & (1 << ADDRESS_BITS) - 1, *state)


def decode_records(data: bytes | bytearray | memoryview) -> Iterator[Record]:
    """Yield the records of `data`, in order. The last record can be incomplete. Arbitrary bytes raise no exception.

    A record with `problems` is decoded as far as possible. If a packet is repeated, the first one is used.

    The data is that of one Profiling Buffer. `spurtle_sim.read_perf_data` returns the buffers in a perf.data file.
    """
    # Local variables are faster than attributes of classes.
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
            yield _finish(record, stop)
            record = None
        else:
            _add(record, DecodedPacket(offset, size, kind, index, value), len(data))
    if record is not None:
        message = "the record is incomplete: the data ends before its Timestamp or End packet"
        record.problems += (Problem(record.offset, message),)
        yield _finish(record, stop)


def _add(record: Record, packet: DecodedPacket, end: int) -> None:
    """Add a packet to a record.

    `decode_records` itself adds the first packet of the frequent kinds: Address, Counter, Timestamp and End.
    """
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
        record.problems += (_bad_packet_problem(packet, end),)
    else:
        message = f"a second {kind.value} packet in the record that starts at {record.offset:#x}"
        record.problems += (Problem(packet.offset, message),)


def _bad_packet_problem(packet: DecodedPacket, end: int) -> Problem:
    offset, size, header = packet.offset, packet.size, packet.value
    if offset + size == end:
        after = counted(size, "byte")
        return Problem(offset, f"the packet with header {header:#04x} is cut off by the end of the data after {after}")
    return Problem(offset, f"the extended header {header:#04x} is not followed by a header with a size")


def _finish(record: Record, stop: int) -> Record:
    record.size = stop - record.offset
    if record.events is None and record.complete:
        record.problems += (Problem(record.offset, "the record has no Events packet: it does not start here"),)
    return record
