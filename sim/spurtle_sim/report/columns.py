"""Columnar decoder of Profiling Buffers: from bytes to one array for each field of the records.

It finds the same records as `records.decode`, whose packet sizes and kinds it uses. It walks through many chunks of the
data at the same time, one packet of each chunk in a step, because a Python object for each record is too slow.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import IntEnum, unique
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spurtle.arch import AddressIndex, ContextIndex, CounterIndex, Header
from spurtle.arch.packets import HEADER_CLASS, HEADER_SIZE

from ..records.decode import PacketKind, packet_fields

__all__ = ["ABSENT", "Array", "PacketSlot", "RecordColumns", "decode_columns"]

Array = NDArray[Any]
"""Array of any type. The checker does not know the types of most results of numpy."""

Octets = NDArray[np.uint8]
Indices = NDArray[np.intp]

ABSENT = 0xFFFF
"""Value of the columns `operation` and `source` if the record does not have the packet."""

_CHUNK = 4096  # bytes that one step of a walk advances through. Larger chunks need more steps, smaller ones more arrays
_BATCH = 1 << 24  # bytes that are decoded together, which bounds the memory of the temporary arrays
_WINDOW = 8  # bytes of the largest payload
_HEADERS = 256
_EXTENDED = range(Header.EXTENDED, 2 * Header.EXTENDED)


@unique
class PacketSlot(IntEnum):
    """Kind of a packet, with the index of those that are columns. Packets of the last four have no column."""

    PC = 0
    TARGET = 1
    VA = 2
    TOTAL = 3
    ISSUE = 4
    TRANSLATION = 5
    CONTEXT_EL1 = 6
    CONTEXT_EL2 = 7
    OPERATION = 8
    EVENTS = 9
    SOURCE = 10
    TIMESTAMP = 11
    END = 12
    OTHER = 13
    UNKNOWN = 14
    BAD = 15
    PADDING = 16


_SLOTS: dict[tuple[PacketKind, int], PacketSlot] = {
    (PacketKind.ADDRESS, AddressIndex.PC): PacketSlot.PC,
    (PacketKind.ADDRESS, AddressIndex.TARGET): PacketSlot.TARGET,
    (PacketKind.ADDRESS, AddressIndex.VA): PacketSlot.VA,
    (PacketKind.COUNTER, CounterIndex.TOTAL): PacketSlot.TOTAL,
    (PacketKind.COUNTER, CounterIndex.ISSUE): PacketSlot.ISSUE,
    (PacketKind.COUNTER, CounterIndex.TRANSLATION): PacketSlot.TRANSLATION,
    (PacketKind.CONTEXT, ContextIndex.EL1): PacketSlot.CONTEXT_EL1,
    (PacketKind.CONTEXT, ContextIndex.EL2): PacketSlot.CONTEXT_EL2,
}
_SLOTS_OF_KINDS = {
    PacketKind.OPERATION: PacketSlot.OPERATION,
    PacketKind.EVENTS: PacketSlot.EVENTS,
    PacketKind.DATA_SOURCE: PacketSlot.SOURCE,
    PacketKind.TIMESTAMP: PacketSlot.TIMESTAMP,
    PacketKind.END: PacketSlot.END,
    PacketKind.UNKNOWN: PacketSlot.UNKNOWN,
    PacketKind.BAD: PacketSlot.BAD,
    PacketKind.PADDING: PacketSlot.PADDING,
}


@dataclass
class RecordColumns:
    """Fields of records, each an array with one element for each record.

    Parameters
    ----------
    pc, target, va : array
        Payloads of Address packets. The top byte of `pc` and `target` holds Exception level and Security state.
    total, issue, translation : array
        Latencies in cycles.
    context : array
        CONTEXTIDR_EL1, or CONTEXTIDR_EL2 in records that have only this one.
    operation : array
        CLASS and payload of the Operation Type packet, as a number of 16 bits. ABSENT without the packet.
    events, timestamp : array
    source : array
        Payload of the Data Source packet. ABSENT without the packet.
    present : array
        Bit n is set if the record has a packet of the slot n.
    complete : array
        Whether the record ends with a Timestamp or End packet.
    problems : array
        Number of the problems of each record, as `records.decode` lists them.
    buffer : array
        Index of the buffer in the list that was decoded.
    """

    pc: Array
    target: Array
    va: Array
    total: Array
    issue: Array
    translation: Array
    context: Array
    operation: Array
    events: Array
    timestamp: Array
    source: Array
    present: Array
    complete: Array
    problems: Array
    buffer: Array

    def __len__(self) -> int:
        return len(self.pc)

    def has(self, slot: PacketSlot) -> Array:
        """Return which records have a packet of a slot."""
        return (self.present >> int(slot) & 1).astype(bool)


_WIDE = ("pc", "target", "va", "timestamp", "present", "complete", "problems", "buffer")
"""RecordColumns that keep their types. The types of the others are as small as their values allow."""


def decode_columns(buffers: Sequence[bytes]) -> RecordColumns:
    """Return the records of several Profiling Buffers, in order. Arbitrary bytes raise no exception."""
    parts: list[RecordColumns] = []
    first, size = 0, 0
    for number, buffer in enumerate(buffers):
        size += len(buffer)
        if size >= _BATCH or number == len(buffers) - 1:
            parts.append(_decode(buffers[first : number + 1], first))
            first, size = number + 1, 0
    columns = [vars(part) for part in parts or [_decode([], 0)]]
    # Each column of the parts is released when it has been joined.
    return RecordColumns(
        **{each.name: np.concatenate([part.pop(each.name) for part in columns]) for each in fields(RecordColumns)}
    )


def _decode(buffers: Sequence[bytes], first: int) -> RecordColumns:
    """Return the records of buffers that are decoded together. The first of them has the number `first`."""
    sizes = np.array([len(buffer) for buffer in buffers], np.intp)
    ends = np.cumsum(sizes)
    begins = ends - sizes
    data = np.frombuffer(b"".join([*buffers, bytes(2 * _WINDOW)]), np.uint8)
    packets = _packets(data, begins, ends)
    return _Records(data, packets, begins, ends).columns(first)


@cache
def _short_table() -> tuple[Octets, Octets]:
    """Return size and slot of the packet of each first byte."""
    rows = [next(packet_fields(bytes([header, *bytes(_WINDOW)]))) for header in range(_HEADERS)]
    sizes = [1 if header == 0 else row[1] for header, row in enumerate(rows)]
    return np.array(sizes, np.uint8), np.array([_slot(row[2], row[3]) for row in rows], np.uint8)


@cache
def _extended_table() -> tuple[Octets, Octets]:
    """Return size and slot of the packet of each pair of an extended header and a second byte."""
    pairs = ((prefix, second) for prefix in _EXTENDED for second in range(_HEADERS))
    rows = [next(packet_fields(bytes([*pair, *bytes(_WINDOW)]))) for pair in pairs]
    return np.array([row[1] for row in rows], np.uint8), np.array([_slot(row[2], row[3]) for row in rows], np.uint8)


def _slot(kind: PacketKind, index: int) -> PacketSlot:
    return _SLOTS_OF_KINDS.get(kind) or _SLOTS.get((kind, index), PacketSlot.OTHER)


def _sizes_and_slots(data: Octets, at: Indices) -> tuple[Indices, Octets]:
    """Return size and slot of the packets at some offsets, regardless of the end of their buffer."""
    sizes, slots = _short_table()
    header = data[at]
    size, slot = sizes[header].astype(np.intp), slots[header]
    extended = np.flatnonzero(header >> 5 == Header.EXTENDED >> 5)
    if len(extended):
        sizes, slots = _extended_table()
        pair = (header[extended].astype(np.intp) - Header.EXTENDED) * _HEADERS + data[at[extended] + 1]
        size[extended], slot[extended] = sizes[pair], slots[pair]
    return size, slot


def _packets(data: Octets, begins: Indices, ends: Indices) -> Indices:
    """Return the offsets of the packets, without padding. The first packet of each buffer is at its beginning."""
    chunks = [np.arange(begin, end, _CHUNK) for begin, end in zip(begins, ends, strict=True)]
    starts = np.concatenate([*chunks, np.zeros(0, np.intp)]).astype(np.intp)
    buffer = np.repeat(np.arange(len(begins)), [len(chunk) for chunk in chunks])
    stops = np.minimum(starts + _CHUNK, ends[buffer])
    marks = np.zeros(len(data), bool)
    exits = _walk(data, marks, starts, stops)
    # A chunk that does not begin with a packet was walked from a wrong offset. The walks soon meet.
    for chunk in np.flatnonzero((exits[:-1] != starts[1:]) & (buffer[:-1] == buffer[1:])) + 1:
        _repair(data, marks, int(exits[chunk - 1]), int(starts[chunk]), int(stops[chunk]), exits, int(chunk))
    found = np.flatnonzero(marks)
    return found[data[found] != 0]


def _walk(data: Octets, marks: Array, starts: Indices, stops: Indices) -> Indices:
    """Mark the packets from `starts` to `stops` of several chunks. Return the end of the last packet of each."""
    exits = starts.copy()
    number, at, stop = np.arange(len(starts)), starts.copy(), stops
    while len(at):
        marks[at] = True
        at = at + _sizes_and_slots(data, at)[0]
        running = at < stop
        if not running.all():
            exits[number[~running]] = at[~running]
            number, at, stop = number[running], at[running], stop[running]
    return exits


def _repair(data: Octets, marks: Array, entry: int, start: int, stop: int, exits: Indices, chunk: int) -> None:
    """Walk through a chunk again from `entry`, until a packet that its first walk has found."""
    at = entry
    sizes = _short_table()[0].tolist()
    visited: list[int] = []
    while at < stop and not marks[at]:
        visited.append(at)
        header = int(data[at])
        at += int(_sizes_and_slots(data, np.array([at]))[0][0]) if header in _EXTENDED else sizes[header]
    marks[start : min(at, stop)] = False
    marks[visited] = True
    if at >= stop:
        exits[chunk] = at


class _Records:
    """Records that some packets make up."""

    def __init__(self, data: Octets, packets: Indices, begins: Indices, ends: Indices):
        size, slot = _sizes_and_slots(data, packets)
        # Only the last packet of a buffer can be cut off by its end.
        last = np.searchsorted(packets, ends) - 1
        inside = (last >= 0) & (ends > begins)
        last, limit = last[inside], ends[inside]
        slot[last[packets[last] + size[last] > limit]] = PacketSlot.BAD
        closes = (slot == PacketSlot.TIMESTAMP) | (slot == PacketSlot.END)
        opens = np.concatenate([np.ones(min(1, len(packets)), bool), closes[:-1]])
        firsts = np.searchsorted(packets, begins)
        opens[firsts[firsts < len(packets)]] = True
        self._data, self._packets, self._slot, self._size, self._begins = data, packets, slot, size, begins
        self._record = np.cumsum(opens) - 1
        self._count = int(self._record[-1]) + 1 if len(packets) else 0
        self._opens, self._closes = opens, closes
        self._present = np.zeros(self._count, np.uint32)
        self._problems = np.zeros(self._count, np.uint16)
        # Payloads are read as words that begin at any byte.
        self._words = np.ndarray((max(len(data) - _WINDOW + 1, 0),), "<u8", data, strides=(1,))

    def columns(self, first: int) -> RecordColumns:
        """Return the columns. The first buffer has the number `first`."""
        values = {slot: self._values(slot) for slot in PacketSlot if slot < PacketSlot.END}
        self._select(PacketSlot.END)
        self._count_repeated_others()
        bad = self._record[self._slot == PacketSlot.BAD]
        np.add.at(self._problems, bad, 1)
        complete = np.zeros(self._count, bool)
        complete[self._record[self._closes]] = True
        self._problems += ~complete
        self._problems += complete & (self._present >> int(PacketSlot.EVENTS) & 1 == 0)
        has_el1 = (self._present >> int(PacketSlot.CONTEXT_EL1) & 1).astype(bool)
        context = np.where(has_el1, values[PacketSlot.CONTEXT_EL1], values[PacketSlot.CONTEXT_EL2])
        columns: dict[str, Array] = {
            **{slot.name.lower(): array for slot, array in values.items() if not slot.name.startswith("CONTEXT")},
            "context": context,
            "present": self._present,
            "complete": complete,
            "problems": self._problems,
            "buffer": (np.searchsorted(self._begins, self._packets[self._opens], "right") - 1 + first).astype(np.int32),
        }
        return RecordColumns(**{name: array if name in _WIDE else _narrow(array) for name, array in columns.items()})

    def _select(self, slot: PacketSlot) -> tuple[Indices, Indices]:
        """Return packets of a slot and their records: the first one of each record. The others are problems."""
        chosen = np.flatnonzero(self._slot == slot)
        record = self._record[chosen]
        repeated = np.flatnonzero(record[1:] == record[:-1]) + 1
        if len(repeated):
            np.add.at(self._problems, record[repeated], 1)
            chosen, record = np.delete(chosen, repeated), np.delete(record, repeated)
        self._present[record] |= np.uint32(1 << slot)
        return chosen, record

    def _count_repeated_others(self) -> None:
        """Add a problem for each packet without a column that has the kind and the index of an earlier packet."""
        chosen = np.flatnonzero(self._slot == PacketSlot.OTHER)
        at = self._packets[chosen]
        extended = self._data[at] >> 5 == Header.EXTENDED >> 5
        prefix = np.where(extended, self._data[at] - Header.EXTENDED, 0)
        kind = np.where(extended, self._data[at + 1], self._data[at]) & (0xFF ^ HEADER_SIZE.mask)
        keys = (self._record[chosen] * 32 + prefix) * _HEADERS + kind
        different, counts = np.unique(keys, return_counts=True)
        np.add.at(self._problems, different // (32 * _HEADERS), (counts - 1).astype(np.uint16))

    def _values(self, slot: PacketSlot) -> Array:
        values = np.full(self._count, ABSENT if slot in (PacketSlot.OPERATION, PacketSlot.SOURCE) else 0, np.uint64)
        chosen, record = self._select(slot)
        at, size = self._packets[chosen], self._size[chosen]
        header_bytes = 1 + (self._data[at] >> 5 == Header.EXTENDED >> 5)
        payload = self._words[at + header_bytes]
        width = (size - header_bytes).astype(np.uint64)
        payload &= np.uint64(0xFFFF_FFFF_FFFF_FFFF) >> (np.uint64(8) * (np.uint64(_WINDOW) - width))
        if slot is PacketSlot.OPERATION:  # the class is in the header
            payload |= (self._data[at].astype(np.uint64) & np.uint64(HEADER_CLASS.mask)) << np.uint64(8)
        values[record] = payload
        return values


def _narrow(values: Array) -> Array:
    """Return the values in the smallest type that holds all of them. The types of several batches can differ."""
    largest = int(values.max()) if len(values) else 0
    return values.astype(next(kind for kind in (np.uint16, np.uint32, np.uint64) if largest <= np.iinfo(kind).max))
