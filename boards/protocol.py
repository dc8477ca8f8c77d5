"""Numbers and frames of the UART protocol, for the gateware and the host.

`docs/reference/protocol.md` describes the protocol.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, IntFlag, unique
from types import MappingProxyType

from amaranth.lib import data
from amaranth.lib.crc import catalog

__all__ = [
    "ANSWER",
    "BOARD",
    "CHUNK_BYTES",
    "COMMAND",
    "COUNT_BITS",
    "CRC",
    "CRC_BYTES",
    "MAGIC",
    "OVERHEAD_BYTES",
    "REFUSED",
    "SYNC",
    "WORD_BYTES",
    "BoardRegister",
    "CommandOperation",
    "ControlBits",
    "Frame",
    "Status",
]

SYNC = 0xA5
"""First byte of each frame. The value may occur inside a frame as well, so only the CRC confirms a frame."""

CRC = catalog.CRC16_IBM_3740
"""CRC of all bytes between SYNC and the CRC.

It is sent most significant byte first; all other numbers are sent least significant byte first.
"""

CRC_BYTES = 2

WORD_BYTES = 8
"""Bytes of a register: a System register or a register of the board."""

CHUNK_BYTES = 256
"""Maximum number of bytes of memory in one answer, which limits what a damaged frame loses."""


@unique
class CommandOperation(IntEnum):
    """Operation of a command."""

    READ = 0
    """Read a register: one answer with a word."""
    WRITE = 1
    """Write `data` to a register: one answer with an undefined word.

    A WRITE with the tag of the previous command is answered but not executed. A host can therefore repeat a WRITE whose
    answer was lost.
    """
    FETCH = 2
    """Read `data` bytes of the buffer memory from `address` on.

    The answers have CHUNK_BYTES each; the last one has the remaining bytes.
    """


BOARD = 1 << 14
"""Bit of `address` in READ and WRITE that selects a register of the board.

If the bit is clear, `address` is the encoding of a System register.
"""

REFUSED = 0xFF
"""Outcome of an unknown operation or register. All other outcomes are those of `interface.sysreg.AccessOutcome`."""


MAGIC = int.from_bytes(b"\0spurtle", "little")
"""Upper seven bytes of IDENTITY, which identify a board with this protocol."""

COUNT_BITS = 32
"""Width of the counters of the board."""


@unique
class BoardRegister(IntEnum):
    """64-bit registers of the board. Read-only registers ignore writes."""

    IDENTITY = 0
    """MAGIC with the number of the board in the low eight bits. Read-only."""
    CONTROL = 1
    """`ControlBits`."""
    STATUS = 2
    """`Status`. Read-only."""
    DRAIN = 3
    """PSB CSYNC: a read or a write is answered when it is complete."""
    OPERATIONS = 4
    """Operations of the program that have passed the sampling point, since reset, modulo 2 ** COUNT_BITS. Read-only."""
    POP = 5
    """PMU events SAMPLE_POP since reset, modulo 2 ** COUNT_BITS. Read-only."""
    FEED = 6
    """PMU events SAMPLE_FEED since reset, modulo 2 ** COUNT_BITS. Read-only."""
    FILTRATE = 7
    """PMU events SAMPLE_FILTRATE since reset, modulo 2 ** COUNT_BITS. Read-only."""
    COLLISION = 8
    """PMU events SAMPLE_COLLISION since reset, modulo 2 ** COUNT_BITS. Read-only."""


class ControlBits(IntFlag):
    """Bits of CONTROL."""

    RUN = 1
    """The program runs."""
    KEEP = 2
    """The program does not wait while PMBIRQ is asserted."""
    ARM = 4
    """The button sets RUN and clears this bit."""


class Status(IntFlag):
    """Bits of STATUS."""

    IDLE = 1
    """The program is stopped, and no sampled operation is in flight."""
    IRQ = 2
    """Level of PMBIRQ."""


@dataclass(frozen=True)
class Frame:
    """Fields of a frame between SYNC and the payload or the CRC, least significant byte first.

    Parameters
    ----------
    fields : mapping of str to int
        Size in bytes of each field by its name.
    """

    fields: Mapping[str, int]

    @property
    def size(self) -> int:
        """Total size of the fields, in bytes."""
        return sum(self.fields.values())

    @property
    def layout(self) -> data.StructLayout:
        """Layout of the fields."""
        return data.StructLayout({name: 8 * size for name, size in self.fields.items()})

    def pack(self, **values: int) -> bytes:
        """Return the bytes of the fields.

        Raises
        ------
        OverflowError
            If a value does not fit into its field.
        """
        return b"".join(values[name].to_bytes(size, "little") for name, size in self.fields.items())

    def unpack(self, octets: bytes) -> dict[str, int]:
        """Return the values of the fields in `size` bytes."""
        values: dict[str, int] = {}
        offset = 0
        for name, size in self.fields.items():
            values[name] = int.from_bytes(octets[offset : offset + size], "little")
            offset += size
        return values


COMMAND = Frame(MappingProxyType({"tag": 1, "operation": 1, "address": 2, "data": WORD_BYTES}))
"""Command of the host, which the CRC follows. The host chooses `tag`, and the answer repeats it."""

ANSWER = Frame(MappingProxyType({"tag": 1, "outcome": 1, "address": 2, "length": 2}))
"""Answer of the board, which `length` bytes of payload and the CRC follow.

`address` is that of the command; for FETCH it is the address of the first byte of the payload.
"""

OVERHEAD_BYTES = 1 + ANSWER.size + CRC_BYTES
"""Size of an answer without its payload, in bytes."""
