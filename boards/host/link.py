"""Commands to a board and its answers, over any serial port. Lost commands and answers are repeated."""

import binascii
import os
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

_ATTEMPTS = 8
"""How often a command is sent before the host gives up."""

_TIMEOUT = 1.0
"""Seconds without a byte after which an answer counts as lost."""

_OUTCOMES = {
    1: "is UNDEFINED at the current Exception level",
    2: "traps to EL2",
    3: "traps to EL3",
    REFUSED: "is unknown to the board",
}


class LinkError(Exception):
    """Failure of the link, as a sentence: the board does not answer, refuses a command, or is disconnected."""


class SerialPort(Protocol):
    """Subset of `serial.Serial` that the host uses."""

    @property
    def in_waiting(self) -> int:
        """Number of received bytes."""
        ...

    def read(self, size: int = 1) -> bytes:
        """Return up to `size` bytes; fewer after the timeout of the port."""
        ...

    def write(self, data: bytes, /) -> int | None: ...


def open_port(name: str, baud: int) -> Any:
    """Open a serial port or a pseudo-terminal.

    Raises
    ------
    UserError
        If it cannot be opened, or pyserial is not installed.
    """
    try:
        import serial
    except ModuleNotFoundError as error:
        raise UserError("pyserial is not installed: run `pip install -e .[boards]`") from error
    try:
        port = serial.Serial(name, baud, timeout=0.05)
    except (OSError, ValueError, OverflowError) as error:
        # The text of pyserial repeats the name and the number of the error.
        number = error.errno if isinstance(error, OSError) else None
        reason = error if number is None else os.strerror(number)
        raise UserError(f"cannot open the serial port {name!r}: {reason}") from error
    # The FTDI drivers delay short answers by 16 ms unless low latency is set. Not every port supports this setting.
    with suppress(OSError, ValueError, NotImplementedError):
        port.set_low_latency_mode(True)
    return port


def crc(octets: bytes) -> int:
    """Return the `protocol.CRC` of some bytes."""
    return binascii.crc_hqx(octets, 0xFFFF)


@dataclass(frozen=True)
class Answer:
    """An intact answer, with the fields of `protocol.ANSWER`."""

    tag: int
    outcome: int
    address: int
    payload: bytes


class Deframer:
    """Parser of a stream of bytes, of which some may be missing or wrong, that yields the intact answers.

    Attributes
    ----------
    damaged : int
        Number of times that a wrong CRC, or the end of the stream before the end of a frame, followed a SYNC.
    skipped : int
        Number of bytes outside of intact frames.
    """

    def __init__(self) -> None:
        self.damaged = 0
        self.skipped = 0
        self._pending = bytearray()

    def feed(self, octets: bytes) -> Iterator[Answer]:
        """Add bytes, and yield the answers that they complete."""
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
                self.damaged += 1
                self._skip()
                continue
            del self._pending[:end]
            yield Answer(**head, payload=frame[ANSWER.size : -CRC_BYTES])

    def flush(self) -> Iterator[Answer]:
        """End the stream: yield the intact answers among the pending bytes, and drop incomplete frames."""
        while self._pending:
            self.damaged += self._pending[0] == SYNC
            self._skip()
            yield from self.feed(b"")

    def _skip(self) -> None:
        """Skip the bytes before the next SYNC: the first byte does not begin an intact frame."""
        following = self._pending.find(SYNC, 1)
        count = len(self._pending) if following < 0 else following
        self.skipped += count
        del self._pending[:count]


class Link:
    """Access to the registers and the memory of a board.

    Parameters
    ----------
    port : SerialPort
    timeout : float
        Seconds without a byte after which an answer counts as lost.

    Attributes
    ----------
    board : int
        Number of the board.
    resent : int
        Number of commands that were sent again.
    lost : int
        Number of bytes of memory that could not be fetched.

    Raises
    ------
    LinkError
        If nothing answers, or the device that answers is not a board with this protocol.
    """

    def __init__(self, port: SerialPort, timeout: float = _TIMEOUT) -> None:
        self._port = port
        self._timeout = timeout
        self._deframer = Deframer()
        self._tag = 0
        self.resent = 0
        self.lost = 0
        # Another host may have left a command incomplete: `_resynchronize` ends it. The first command must be a READ,
        # which `Server` executes for any tag.
        self._resynchronize()
        identity = self.read(BoardRegister.IDENTITY)
        if identity & ~0xFF != MAGIC:
            raise LinkError(f"the device is not a board of Spurtle: its IDENTITY is {identity:#018x}")
        self.board = identity & 0xFF

    @property
    def damaged(self) -> int:
        """Number of damaged frames."""
        return self._deframer.damaged

    def read(self, register: arch.Register | BoardRegister) -> int:
        """Return the value of a register.

        Raises
        ------
        LinkError
            If it cannot be read.
        """
        return self._access(CommandOperation.READ, register, 0)

    def write(self, register: arch.Register | BoardRegister, value: int) -> None:
        """Write a register.

        Raises
        ------
        LinkError
            If it cannot be written.
        """
        self._access(CommandOperation.WRITE, register, value)

    def fetch(self, address: int, count: int) -> bytes:
        """Return `count` bytes of the buffer memory. Bytes that cannot be fetched are zero, and are counted in `lost`.

        Raises
        ------
        LinkError
            If no byte can be fetched.
        """
        chunks: dict[int, bytes] = {}
        missing = [(address, count)] if count else []
        for attempt in range(_ATTEMPTS):
            if attempt:
                self.resent += len(missing)
            for first, size in missing:
                answers = self._answers(CommandOperation.FETCH, first, size)
                chunks |= {answer.address: answer.payload for answer in answers}
                if not answers:
                    break
            missing = [
                (first, size)
                for first in range(address, address + count, CHUNK_BYTES)
                if len(chunks.get(first, b"")) != (size := min(CHUNK_BYTES, address + count - first))
            ]
            if not missing:
                break
        if missing and not chunks:
            raise LinkError(f"the board does not answer: FETCH was sent {_ATTEMPTS} times")
        self.lost += sum(size for _, size in missing)
        for first, size in missing:
            chunks[first] = bytes(size)
        return b"".join(chunks[first] for first in range(address, address + count, CHUNK_BYTES))

    def _access(self, operation: CommandOperation, register: arch.Register | BoardRegister, value: int) -> int:
        address = BOARD | register if isinstance(register, BoardRegister) else register.encoding
        self._tag = (self._tag + 1) % 256
        for attempt in range(_ATTEMPTS):
            self.resent += attempt > 0
            for answer in self._exchange(operation, address, value, WORD_BYTES):
                if answer.address != address or len(answer.payload) != WORD_BYTES:
                    continue  # an answer to a command of another host
                if answer.outcome:
                    raise LinkError(f"{operation.name} of {register.name} {_OUTCOMES.get(answer.outcome, 'fails')}")
                return int.from_bytes(answer.payload, "little")
        raise LinkError(f"the board does not answer: {operation.name} of {register.name} was sent {_ATTEMPTS} times")

    def _answers(self, operation: CommandOperation, address: int, count: int) -> list[Answer]:
        self._tag = (self._tag + 1) % 256
        return list(self._exchange(operation, address, count, count))

    def _exchange(self, operation: CommandOperation, address: int, value: int, expected: int) -> Iterator[Answer]:
        """Send a command; yield its answers until `expected` bytes of payload are received, or the board is silent."""
        command = COMMAND.pack(tag=self._tag, operation=operation, address=address, data=value)
        self._write(bytes([SYNC]) + command + crc(command).to_bytes(CRC_BYTES, "big"))
        silent_since = time.monotonic()
        while True:
            octets = self._read()
            if octets:
                silent_since = time.monotonic()
            elif time.monotonic() - silent_since >= self._timeout:
                break
            for answer in self._deframer.feed(octets):
                if answer.tag == self._tag:
                    expected -= len(answer.payload)
                    yield answer
            if expected <= 0:
                return
        for answer in self._deframer.flush():
            if answer.tag == self._tag:
                yield answer
        self._resynchronize()

    def _resynchronize(self) -> None:
        # An incomplete frame in `CommandReceiver` ends with these zeros.
        self._write(bytes(1 + COMMAND.size + CRC_BYTES))

    def _read(self) -> bytes:
        try:
            # Read all received bytes; wait for one if there are none.
            return self._port.read(max(1, self._port.in_waiting))
        except OSError as error:
            raise LinkError(f"the serial port cannot be read: {error}") from error

    def _write(self, octets: bytes) -> None:
        try:
            self._port.write(octets)
        except OSError as error:
            raise LinkError(f"the serial port cannot be written: {error}") from error
