"""Record layouts (D18.2): order and offsets of packets, as data that RTL, reference model and documents share.

The order of packets in a record is IMPLEMENTATION DEFINED. Only the Timestamp or End packet must be last. Padding may
be between any two packets.

Ref: DDI0487 M.a, D18.2.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum, unique
from functools import cached_property

from ..support.arguments import check_type

__all__ = [
    "ARM_MODEL",
    "HISILICON_MOBILE",
    "KUNPENG_920",
    "MINIMAL",
    "NEOVERSE_N1",
    "V1P4",
    "Packet",
    "RecordField",
    "RecordLayout",
    "fixed",
]


@unique
class Packet(StrEnum):
    """Packet that a record can hold once, named by its content."""

    PC = "PC"
    TARGET = "TARGET"
    VA = "VA"
    PA = "PA"
    PREVIOUS_TARGET = "PREVIOUS_TARGET"
    IMP_ADDRESS = "IMP_ADDRESS"
    CONTEXT_EL1 = "CONTEXT_EL1"
    CONTEXT_EL2 = "CONTEXT_EL2"
    OPERATION = "OPERATION"
    EVENTS = "EVENTS"
    TOTAL = "TOTAL"
    ISSUE = "ISSUE"
    TRANSLATION = "TRANSLATION"
    ALTERNATE_ISSUE = "ALTERNATE_ISSUE"
    IMP_COUNTER = "IMP_COUNTER"
    DATA_SOURCE = "DATA_SOURCE"
    TIMESTAMP = "TIMESTAMP"
    END = "END"

    # Each member exists once. The hash of `Enum` hashes the name, which takes a tenth of the time of a record.
    __hash__ = object.__hash__


LAST = (Packet.TIMESTAMP, Packet.END)
"""Packets that end a record. Each record has one of them."""


@dataclass(frozen=True)
class RecordField:
    """Field of a record, which holds one of several runs of packets that exclude each other.

    Bytes that the run does not fill, and those of absent packets, are zero.

    Parameters
    ----------
    runs : tuple of tuple of Packet
        One or more runs, each with one or more packets.
    elastic : bool
        The field is omitted from a record that has none of its packets.
    min_size : int
        Smallest size in bytes. The bytes that no packet fills are zero.

    Raises
    ------
    TypeError
        If a parameter is of another type.
    ValueError
        If there is no run, a run has no packet, or `min_size` is negative.
    """

    runs: tuple[tuple[Packet, ...], ...]
    elastic: bool = False
    min_size: int = 0

    def __post_init__(self) -> None:
        check_type("runs", self.runs, tuple)
        check_type("elastic", self.elastic, bool)
        check_type("min_size", self.min_size, int)
        for run in self.runs:
            check_type("a run", run, tuple)
            for packet in run:
                check_type("a packet", packet, Packet)
        if not self.runs or not all(self.runs):
            raise ValueError(f"runs must be one or more runs of one or more packets, not {self.runs!r}")
        if self.min_size < 0:
            raise ValueError(f"min_size must be 0 or more, not {self.min_size}")

    @property
    def packets(self) -> tuple[Packet, ...]:
        """Packets of all runs, in order."""
        return tuple(packet for run in self.runs for packet in run)

    def size(self, sizes: Mapping[Packet, int]) -> int:
        """Return the size of the field in bytes, for packets of these `sizes`."""
        return max(self.min_size, *(sum(sizes[packet] for packet in run) for run in self.runs))

    def offsets(self, sizes: Mapping[Packet, int]) -> Iterator[tuple[Packet, int]]:
        """Yield each packet with its byte offset from the start of the field."""
        for run in self.runs:
            offset = 0
            for packet in run:
                yield packet, offset
                offset += sizes[packet]


@dataclass(frozen=True)
class RecordLayout:
    """Record fields in order, followed by the Timestamp or End packet and padding to a multiple of `align` bytes.

    If no field is elastic, every record has `max_size` bytes. Otherwise the size of a record depends on its packets.

    Parameters
    ----------
    fields : tuple of RecordField
        Fields from byte 0 on. The last field, for the Timestamp or End packet, is implied.
    align : int
        Alignment in bytes. The size of each record is a multiple of it (PMBIDR_EL1.Align).
    max_size : int
        Maximum size of a record in bytes (PMSIDR_EL1.MaxSize).
    padding_last : bool
        Padding follows the Timestamp or End packet. Otherwise it precedes that packet, so that the last byte of the
        record is the last byte of its packets.

    Raises
    ------
    TypeError
        If a parameter is of another type.
    """

    fields: tuple[RecordField, ...]
    align: int
    max_size: int
    padding_last: bool = False

    def __post_init__(self) -> None:
        check_type("fields", self.fields, tuple)
        for field in self.fields:
            check_type("a field", field, RecordField)
        check_type("align", self.align, int)
        check_type("max_size", self.max_size, int)
        check_type("padding_last", self.padding_last, bool)

    @property
    def packed(self) -> bool:
        """Whether records differ in size, because a field is elastic."""
        return any(field.elastic for field in self.fields)

    @cached_property
    def packets(self) -> tuple[Packet, ...]:
        """Packets of all fields, in order."""
        return (*(packet for field in self.fields for packet in field.packets), *LAST)

    def offsets(self, sizes: Mapping[Packet, int]) -> Mapping[Packet, int]:
        """Return the byte offset of each packet in a record with all fields and without padding."""
        found: dict[Packet, int] = {}
        offset = 0
        for field in self.fields:
            found |= {packet: offset + within for packet, within in field.offsets(sizes)}
            offset += field.size(sizes)
        return found | dict.fromkeys(LAST, offset)

    def longest(self, sizes: Mapping[Packet, int]) -> int:
        """Return the size of the longest record in bytes, padding included."""
        used = sum(field.size(sizes) for field in self.fields) + sizes[Packet.TIMESTAMP]
        return -(-used // self.align) * self.align

    def without(self, *packets: Packet) -> "RecordLayout":
        """Return the layout without the fields that hold only `packets`."""
        remaining = tuple(field for field in self.fields if not {*field.packets} <= {*packets})
        return RecordLayout(remaining, self.align, self.max_size, self.padding_last)


def fixed(size: int, *fields: tuple[Packet, ...]) -> RecordLayout:
    """Return a layout of records of `size` bytes. Each field holds one of its packets."""
    return RecordLayout(tuple(RecordField(tuple((packet,) for packet in field)) for field in fields), size, size)


NEOVERSE_N1 = fixed(
    64,
    (Packet.PC,),
    (Packet.CONTEXT_EL1,),
    (Packet.CONTEXT_EL2,),
    (Packet.OPERATION,),
    (Packet.EVENTS,),
    (Packet.ISSUE,),
    (Packet.TOTAL,),
    (Packet.VA, Packet.TARGET),
    (Packet.TRANSLATION,),
    (Packet.PA,),
    (Packet.DATA_SOURCE,),
)
"""Layout of Neoverse N1, byte for byte."""

MINIMAL = NEOVERSE_N1.without(Packet.CONTEXT_EL2, Packet.DATA_SOURCE)
"""Layout of Neoverse N1 without the packets that the smallest SPU omits."""

V1P4 = fixed(
    128,
    (Packet.PC,),
    (Packet.CONTEXT_EL1,),
    (Packet.CONTEXT_EL2,),
    (Packet.OPERATION,),
    (Packet.EVENTS,),
    (Packet.ISSUE,),
    (Packet.TOTAL,),
    (Packet.VA,),
    (Packet.TARGET,),
    (Packet.TRANSLATION,),
    (Packet.PA,),
    (Packet.DATA_SOURCE,),
    (Packet.PREVIOUS_TARGET,),
    (Packet.ALTERNATE_ISSUE,),
)
"""Order of Neoverse N1 with a separate field for every architected packet. TARGET and VA do not share a field, because
a branch can access the Guarded control stack."""


def _elastic(*runs: tuple[Packet, ...]) -> RecordField:
    return RecordField(runs, elastic=True)


_COUNTERS_FIRST = (
    RecordField(((Packet.PC, Packet.ISSUE, Packet.TOTAL, Packet.EVENTS, Packet.OPERATION),)),
    _elastic((Packet.VA, Packet.TRANSLATION), (Packet.TARGET,)),
)
_REST = (_elastic((Packet.CONTEXT_EL1,)), _elastic((Packet.CONTEXT_EL2,)), _elastic((Packet.PA,)))

KUNPENG_920 = RecordLayout((*_COUNTERS_FIRST, *_REST), align=4, max_size=128)
"""Layout of Kunpeng 920, byte for byte. The offsets of CONTEXT and PA are not known from silicon."""

HISILICON_MOBILE = RecordLayout(
    (
        # Two more bytes: the field of the addresses begins at byte 24, and their payload one byte later.
        RecordField(_COUNTERS_FIRST[0].runs, min_size=24),
        RecordField(_COUNTERS_FIRST[1].runs),
        *_REST,
    ),
    align=8,
    max_size=64,
)
"""Layout of a HiSilicon mobile core, byte for byte. The offsets of CONTEXTIDR_EL2 and PA are not known from silicon."""

ARM_MODEL = RecordLayout(
    (
        _elastic((Packet.CONTEXT_EL1,)),
        _elastic((Packet.CONTEXT_EL2,)),
        _elastic((Packet.TOTAL, Packet.ISSUE)),
        _elastic((Packet.TRANSLATION,)),
        _elastic((Packet.PC,)),
        _elastic((Packet.TARGET,), (Packet.VA,)),
        _elastic((Packet.PA,)),
        _elastic((Packet.PREVIOUS_TARGET,)),
        _elastic((Packet.DATA_SOURCE,)),
        _elastic((Packet.OPERATION,)),
        RecordField(((Packet.EVENTS,),)),
    ),
    align=8,
    max_size=128,
    padding_last=True,
)
"""Order of packets in SPEConstructRecord of the pseudocode."""
