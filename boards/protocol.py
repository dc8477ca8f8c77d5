"""Frames on the UART: commands to the board and its answers. `docs/reference/protocol.md` describes the protocol."""

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
"""First byte of every frame. It can be in a frame as well: only the CRC says that a frame is one."""

CRC = catalog.CRC16_IBM_3740
"""Over everything between SYNC and itself. It is sent most significant byte first, all other numbers least."""

CRC_BYTES = 2

WORD_BYTES = 8
"""Of a register, System or board."""

CHUNK_BYTES = 256
"""Bytes of memory in one answer, at most: what is lost with a frame."""


@unique
class CommandOperation(IntEnum):
    """What a command asks for."""

    READ = 0
    """A register: one answer, of a word."""
    WRITE = 1
    """`data` to a register: one answer, of a word without a meaning. With the tag of the command before it is not done
    again, only answered: so a host whose answer was lost may repeat it.
    """
    FETCH = 2
    """`data` bytes of the buffer's memory from `address` on: answers of CHUNK_BYTES, the last one of what is left."""


BOARD = 1 << 14
"""In `address` of READ and WRITE: a register of the board. Without it, the encoding of a System register."""

REFUSED = 0xFF
"""Outcome of what the board does not know. Otherwise it is that of `interface.sysreg.AccessOutcome`."""


MAGIC = int.from_bytes(b"\0spurtle", "little")
"""Of IDENTITY: what answers is a board of ours, and speaks this protocol."""

COUNT_BITS = 32


@unique
class BoardRegister(IntEnum):
    """Registers of the board, of 64 bits. What can only be read ignores writes."""

    IDENTITY = 0
    """MAGIC, and the number of the board in the low eight bits."""
    CONTROL = 1
    """`ControlBits`."""
    STATUS = 2
    """`Status`."""
    DRAIN = 3
    """PSB CSYNC: reading it is answered when that is complete."""
    OPERATIONS = 4
    """Operations of the program that have passed the sampling point. This and the following count from reset, modulo
    2 ** COUNT_BITS.
    """
    POP = 5
    FEED = 6
    FILTRATE = 7
    COLLISION = 8


class ControlBits(IntFlag):
    """Bits of Register.CONTROL."""

    RUN = 1
    """The program runs."""
    KEEP = 2
    """It does not stand still when the SPU raises its interrupt."""
    ARM = 4
    """The button sets RUN and clears this."""


class Status(IntFlag):
    """Bits of Register.STATUS."""

    IDLE = 1
    """The program stands still with nothing in flight."""
    IRQ = 2
    """The level of PMBIRQ."""


@dataclass(frozen=True)
class Frame:
    """The fields between SYNC and payload or CRC, least significant byte first.

    Parameters
    ----------
    fields : mapping of str to int
        Name and bytes of each.
    """

    fields: Mapping[str, int]

    @property
    def size(self) -> int:
        """Bytes of all fields."""
        return sum(self.fields.values())

    @property
    def layout(self) -> data.StructLayout:
        """The same as bits."""
        return data.StructLayout({name: 8 * size for name, size in self.fields.items()})

    def pack(self, **values: int) -> bytes:
        """The bytes. Raises OverflowError if a number is too large."""
        return b"".join(values[name].to_bytes(size, "little") for name, size in self.fields.items())

    def unpack(self, octets: bytes) -> dict[str, int]:
        """The numbers in `size` bytes."""
        values: dict[str, int] = {}
        place = 0
        for name, size in self.fields.items():
            values[name] = int.from_bytes(octets[place : place + size], "little")
            place += size
        return values


COMMAND = Frame(MappingProxyType({"tag": 1, "operation": 1, "address": 2, "data": WORD_BYTES}))
"""From the host; the CRC follows. `tag` is any number, and the answer has it too."""

ANSWER = Frame(MappingProxyType({"tag": 1, "outcome": 1, "address": 2, "length": 2}))
"""From the board; `length` bytes of payload follow, then the CRC. `address` is the register, or their place."""

OVERHEAD_BYTES = 1 + ANSWER.size + CRC_BYTES
"""Of an answer, beside its payload."""
