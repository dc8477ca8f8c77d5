"""Where each packet of a record stands (D18.2), as data that the RTL, the reference and the documents share."""

# Ref: DDI0487 M.a, D18.2. The order of packets in a record is IMPLEMENTATION DEFINED; only the Timestamp or End
# packet must be last. Padding may stand between any two packets.

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
    """Each packet that a record can hold once, named by its content."""

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

    # There is one of each. That of `Enum` hashes the name, a tenth of the time that a record takes.
    __hash__ = object.__hash__


LAST = (Packet.TIMESTAMP, Packet.END)
"""One of these ends every record."""


@dataclass(frozen=True)
class RecordField:
    """A field of a record, which holds one of several runs of packets that exclude each other. Bytes that the run does
    not fill, and those of absent packets, are zero.

    Parameters
    ----------
    runs : tuple of tuple of Packet
        At least one, each with at least one packet.
    elastic : bool
        Left out while none of its packets is there.
    min_size : int
        Smallest size in bytes. The bytes that no packet fills are zero.

    Raises
    ------
    TypeError
        If a parameter is of another type.
    ValueError
        If there is no run, a run without a packet, or `min_size` is negative.
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
        """All that can stand here."""
        return tuple(packet for run in self.runs for packet in run)

    def size(self, sizes: Mapping[Packet, int]) -> int:
        """Bytes, for packets of the given `sizes`."""
        return max(self.min_size, *(sum(sizes[packet] for packet in run) for run in self.runs))

    def offsets(self, sizes: Mapping[Packet, int]) -> Iterator[tuple[Packet, int]]:
        """First byte of each packet, counted from the first of the field."""
        for run in self.runs:
            offset = 0
            for packet in run:
                yield packet, offset
                offset += sizes[packet]


@dataclass(frozen=True)
class RecordLayout:
    """Record fields in order, then the Timestamp or End packet, and padding up to a multiple of `align` bytes.

    Where no field is elastic every record has `max_size` bytes. Otherwise it is as long as its packets make it.

    Parameters
    ----------
    fields : tuple of RecordField
        From byte 0 upward; the last field, Timestamp or End, is implied.
    align : int
        The size of each record is a multiple of it (PMBIDR_EL1.Align).
    max_size : int
        What the longest record may have (PMSIDR_EL1.MaxSize).
    padding_last : bool
        Padding follows the Timestamp or End packet. Otherwise it stands before it, so that the last byte of the record
        is the last byte of its packets.

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
        """Records differ in size."""
        return any(field.elastic for field in self.fields)

    @cached_property
    def packets(self) -> tuple[Packet, ...]:
        """All that have a field, in order."""
        return (*(packet for field in self.fields for packet in field.packets), *LAST)

    def offsets(self, sizes: Mapping[Packet, int]) -> Mapping[Packet, int]:
        """First byte of each packet in the record that leaves no field out and has no padding in front of its end."""
        found: dict[Packet, int] = {}
        offset = 0
        for field in self.fields:
            found |= {packet: offset + within for packet, within in field.offsets(sizes)}
            offset += field.size(sizes)
        return found | dict.fromkeys(LAST, offset)

    def longest(self, sizes: Mapping[Packet, int]) -> int:
        """Bytes of the longest record, padding included."""
        used = sum(field.size(sizes) for field in self.fields) + sizes[Packet.TIMESTAMP]
        return -(-used // self.align) * self.align

    def without(self, *packets: Packet) -> "RecordLayout":
        """The same but for fields that hold nothing but `packets`."""
        left = tuple(field for field in self.fields if not {*field.packets} <= {*packets})
        return RecordLayout(left, self.align, self.max_size, self.padding_last)


def fixed(size: int, *fields: tuple[Packet, ...]) -> RecordLayout:
    """Records of `size` bytes. Each field holds one of the packets that are given for it."""
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
"""What Neoverse N1 writes, byte for byte."""

MINIMAL = NEOVERSE_N1.without(Packet.CONTEXT_EL2, Packet.DATA_SOURCE)
"""Neoverse N1's order without what the smallest SPU leaves out."""

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
"""Neoverse N1's order with a field for every packet that has a name, each of its own: a branch can make an access to
the Guarded control stack."""


def _elastic(*runs: tuple[Packet, ...]) -> RecordField:
    return RecordField(runs, elastic=True)


_COUNTERS_FIRST = (
    RecordField(((Packet.PC, Packet.ISSUE, Packet.TOTAL, Packet.EVENTS, Packet.OPERATION),)),
    _elastic((Packet.VA, Packet.TRANSLATION), (Packet.TARGET,)),
)
_REST = (_elastic((Packet.CONTEXT_EL1,)), _elastic((Packet.CONTEXT_EL2,)), _elastic((Packet.PA,)))

KUNPENG_920 = RecordLayout((*_COUNTERS_FIRST, *_REST), align=4, max_size=128)
"""What Kunpeng 920 writes, byte for byte, as far as it is known: of CONTEXT and PA it is not."""

HISILICON_MOBILE = RecordLayout(
    (
        # Two bytes more put the payload of each address that follows on a multiple of eight, plus one.
        RecordField(_COUNTERS_FIRST[0].runs, min_size=24),
        RecordField(_COUNTERS_FIRST[1].runs),
        *_REST,
    ),
    align=8,
    max_size=64,
)
"""What a HiSilicon mobile core writes, byte for byte, as far as it is known: of CONTEXTIDR_EL2 and PA it is not."""

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
"""The order of the pseudocode's SPEConstructRecord."""
