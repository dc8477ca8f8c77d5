"""Commands to a board and its answers, over any port of bytes. What is lost on the line is asked for again."""

import binascii
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from spurtle import arch
from spurtle.support.errors import UserError

from ..protocol import (
    ANSWER,
    BOARD,
    CHUNK_BYTES,
    COMMAND,
    CRC_BYTES,
    MAGIC,
    OVERHEAD_BYTES,
    REFUSED,
    SYNC,
    WORD_BYTES,
    BoardRegister,
    CommandOperation,
)

__all__ = ["Answer", "Deframer", "Link", "LinkError", "SerialPort", "crc", "open_port"]

_TRIES = 8
_PATIENCE = 1.0
"""Seconds without a byte, after which nothing more is expected."""

_OUTCOMES = {
    1: "is UNDEFINED where the PE is",
    2: "traps to EL2",
    3: "traps to EL3",
    REFUSED: "is unknown to the board",
}


class LinkError(Exception):
    """The board does not answer, refuses what it is asked for, or is gone: a sentence."""


class SerialPort(Protocol):
    """Bytes to and from a board: what is used of `serial.Serial`."""

    @property
    def in_waiting(self) -> int:
        """Bytes that have come."""
        ...

    def read(self, size: int = 1) -> bytes:
        """As many bytes, or fewer when nothing has come for a while."""
        ...

    def write(self, data: bytes, /) -> int | None: ...


def open_port(name: str, baud: int) -> Any:
    """The serial port, or pseudo-terminal, of that name. Raises UserError if it cannot be opened."""
    try:
        import serial
    except ModuleNotFoundError as error:
        raise UserError("pyserial is not installed: `pip install -e .[boards]` brings it") from error
    try:
        port = serial.Serial(name, baud, timeout=0.05)
    except (OSError, ValueError, OverflowError) as error:
        raise UserError(f"cannot open the serial port {name!r}: {error}") from error
    # FTDI's drivers hold short answers back for 16 ms, unless they are asked not to; not every port knows that.
    with suppress(OSError, ValueError, NotImplementedError):
        port.set_low_latency_mode(True)
    return port


def crc(octets: bytes) -> int:
    """`protocol.CRC` of them."""
    return binascii.crc_hqx(octets, 0xFFFF)


@dataclass(frozen=True)
class Answer:
    """A whole frame. Its fields are those of `protocol.ANSWER`."""

    tag: int
    outcome: int
    address: int
    payload: bytes


class Deframer:
    """Whole answers out of a stream of bytes that may lack some, or have wrong ones.

    Attributes
    ----------
    broken : int
        How often something has looked like a frame and was none.
    skipped : int
        Bytes that are of no whole frame.
    """

    def __init__(self) -> None:
        self.broken = 0
        self.skipped = 0
        self._pending = bytearray()

    def feed(self, octets: bytes) -> Iterator[Answer]:
        """The answers that are whole with these bytes."""
        self._pending += octets
        while len(self._pending) >= OVERHEAD_BYTES:
            head = ANSWER.unpack(bytes(self._pending[1 : 1 + ANSWER.size]))
            length = head.pop("length")
            if self._pending[0] != SYNC or length > CHUNK_BYTES:
                self._skip()
                continue
            end = OVERHEAD_BYTES + length
            if len(self._pending) < end:
                return
            frame = bytes(self._pending[1:end])
            if crc(frame[:-CRC_BYTES]) != int.from_bytes(frame[-CRC_BYTES:], "big"):
                self.broken += 1
                self._skip()
                continue
            del self._pending[:end]
            yield Answer(**head, payload=frame[ANSWER.size : -CRC_BYTES])

    def give_up(self) -> Iterator[Answer]:
        """Nothing more comes: a frame that lacks bytes is broken, and there may be whole ones in it."""
        while self._pending:
            self.broken += self._pending[0] == SYNC
            self._skip()
            yield from self.feed(b"")

    def _skip(self) -> None:
        """The first byte begins no frame: go on at the next that may."""
        following = self._pending.find(SYNC, 1)
        count = len(self._pending) if following < 0 else following
        self.skipped += count
        del self._pending[:count]


class Link:
    """Registers and memory of a board.

    Parameters
    ----------
    port : Port
    patience : float
        Seconds without a byte, after which an answer is lost.

    Attributes
    ----------
    board : int
        The number by which the board is known.
    repeated : int
        Commands that had to be sent again.
    lost : int
        Bytes of memory that could not be had, however often they were asked for.

    Raises
    ------
    LinkError
        If nothing answers, or what answers is no board of ours.
    """

    def __init__(self, port: SerialPort, patience: float = _PATIENCE) -> None:
        self._port = port
        self._patience = patience
        self._deframer = Deframer()
        self._tag = 0
        self.repeated = 0
        self.lost = 0
        # Ends what another host may have begun (`CommandReceiver`). A READ comes first, as `Server` wants it.
        self._resynchronize()
        identity = self.read(BoardRegister.IDENTITY)
        if identity & ~0xFF != MAGIC:
            raise LinkError(f"what answers is no board of Spurtle's: it says {identity:#018x}")
        self.board = identity & 0xFF

    @property
    def broken(self) -> int:
        """Frames that came broken."""
        return self._deframer.broken

    def read(self, register: arch.Register | BoardRegister) -> int:
        """What is in it. Raises LinkError if it cannot be read."""
        return self._access(CommandOperation.READ, register, 0)

    def write(self, register: arch.Register | BoardRegister, value: int) -> None:
        """Raises LinkError if it cannot be written."""
        self._access(CommandOperation.WRITE, register, value)

    def fetch(self, address: int, count: int) -> bytes:
        """`count` bytes of the buffer's memory. What cannot be had is zero, and counts as `lost`. Raises LinkError if
        nothing can be had.
        """
        chunks: dict[int, bytes] = {}
        wanted = [(address, count)] if count else []
        for attempt in range(_TRIES):
            if attempt:
                self.repeated += len(wanted)
            for first, size in wanted:
                answers = self._answers(CommandOperation.FETCH, first, size)
                chunks |= {answer.address: answer.payload for answer in answers}
                if not answers:
                    break
            wanted = [
                (place, size)
                for place in range(address, address + count, CHUNK_BYTES)
                if len(chunks.get(place, b"")) != (size := min(CHUNK_BYTES, address + count - place))
            ]
            if not wanted:
                break
        if wanted and not chunks:
            raise LinkError(f"the board does not answer: FETCH was sent {_TRIES} times")
        self.lost += sum(size for _, size in wanted)
        for place, size in wanted:
            chunks[place] = bytes(size)
        return b"".join(chunks[place] for place in range(address, address + count, CHUNK_BYTES))

    def _access(self, operation: CommandOperation, register: arch.Register | BoardRegister, value: int) -> int:
        address = BOARD | register if isinstance(register, BoardRegister) else register.encoding
        self._tag = (self._tag + 1) % 256
        for attempt in range(_TRIES):
            self.repeated += attempt > 0
            for answer in self._exchange(operation, address, value, WORD_BYTES):
                if answer.address != address or len(answer.payload) != WORD_BYTES:
                    continue  # of another host's command
                if answer.outcome:
                    raise LinkError(f"{operation.name} of {register.name} {_OUTCOMES.get(answer.outcome, 'fails')}")
                return int.from_bytes(answer.payload, "little")
        raise LinkError(f"the board does not answer: {operation.name} of {register.name} was sent {_TRIES} times")

    def _answers(self, operation: CommandOperation, address: int, count: int) -> list[Answer]:
        self._tag = (self._tag + 1) % 256
        return list(self._exchange(operation, address, count, count))

    def _exchange(self, operation: CommandOperation, address: int, value: int, expected: int) -> Iterator[Answer]:
        """Sends a command; yields what answers it until `expected` bytes have come, or no more come."""
        command = COMMAND.pack(tag=self._tag, operation=operation, address=address, data=value)
        self._write(bytes([SYNC]) + command + crc(command).to_bytes(CRC_BYTES, "big"))
        silent_since = time.monotonic()
        while True:
            octets = self._read()
            if octets:
                silent_since = time.monotonic()
            elif time.monotonic() - silent_since >= self._patience:
                break
            for answer in self._deframer.feed(octets):
                if answer.tag == self._tag:
                    expected -= len(answer.payload)
                    yield answer
            if expected <= 0:
                return
        for answer in self._deframer.give_up():
            if answer.tag == self._tag:
                yield answer
        self._resynchronize()

    def _resynchronize(self) -> None:
        self._write(bytes(1 + COMMAND.size + CRC_BYTES))

    def _read(self) -> bytes:
        try:
            # What is there, and at least a byte.
            return self._port.read(max(1, self._port.in_waiting))
        except OSError as error:
            raise LinkError(f"the serial port is gone: {error}") from error

    def _write(self, octets: bytes) -> None:
        try:
            self._port.write(octets)
        except OSError as error:
            raise LinkError(f"the serial port is gone: {error}") from error
