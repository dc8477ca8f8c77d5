"""Where each packet of a record stands (D18.2), as data that the RTL, the reference and the documents share."""

# Ref: DDI0487 M.a, D18.2. The order of packets in a record is IMPLEMENTATION DEFINED; only the Timestamp or End
# packet must be last.

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, unique

__all__ = ["MINIMAL", "NEOVERSE_N1", "V1P4", "Packet", "RecordLayout"]


@unique
class Packet(Enum):
    """Each packet that a record can hold once, named by its content."""

    PC = "PC"
    TARGET = "TARGET"
    VA = "VA"
    PA = "PA"
    CONTEXT_EL1 = "CONTEXT_EL1"
    CONTEXT_EL2 = "CONTEXT_EL2"
    OPERATION = "OPERATION"
    EVENTS = "EVENTS"
    TOTAL = "TOTAL"
    ISSUE = "ISSUE"
    TRANSLATION = "TRANSLATION"
    DATA_SOURCE = "DATA_SOURCE"
    TIMESTAMP = "TIMESTAMP"
    END = "END"


@dataclass(frozen=True)
class RecordLayout:
    """A record of fixed places: each holds one packet or one of several that exclude each other, or zero bytes when
    none is there.

    Padding fills what is left, before the Timestamp or End packet, so that the record's last byte is the last byte of
    its packets.

    Parameters
    ----------
    size : int
        Bytes of every record.
    places : tuple of tuple of Packet
        The places from byte 0 upward; the last place, Timestamp or End, is implied.
    """

    size: int
    places: tuple[tuple[Packet, ...], ...]

    def offsets(self, sizes: Mapping[Packet, int]) -> Iterator[tuple[int, Packet]]:
        """The first byte of each packet, packet by packet, for packets of the given `sizes` in bytes."""
        offset = 0
        for place in self.places:
            for packet in place:
                yield offset, packet
            offset += max(sizes[packet] for packet in place)
        for packet in (Packet.TIMESTAMP, Packet.END):
            yield self.size - sizes[packet], packet

    def used(self, sizes: Mapping[Packet, int]) -> int:
        """Bytes that the places need, padding not counted."""
        return sum(max(sizes[packet] for packet in place) for place in self.places) + sizes[Packet.TIMESTAMP]


NEOVERSE_N1 = RecordLayout(
    size=64,
    places=(
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
    ),
)
"""The order that Neoverse N1 writes, byte for byte."""

MINIMAL = RecordLayout(
    size=64,
    places=tuple(place for place in NEOVERSE_N1.places if place not in ((Packet.CONTEXT_EL2,), (Packet.DATA_SOURCE,))),
)
"""Neoverse N1's order without what the smallest SPU leaves out."""

V1P4 = RecordLayout(
    size=128,
    places=tuple(
        one
        for place in NEOVERSE_N1.places
        for one in (((Packet.VA,), (Packet.TARGET,)) if place == (Packet.VA, Packet.TARGET) else (place,))
    ),
)
"""Neoverse N1's order with places of their own for what a branch and what an access is recorded of: a branch can make
an access to the Guarded control stack."""
