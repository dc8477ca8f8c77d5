"""Boards for tests: the compiled SPU as a target of the host driver, and a serial line with errors."""

import random

from boards.board import Board
from boards.host import SerialPort
from boards.host.driver import BASE
from boards.protocol import BoardRegister, ControlBits, Status
from boards.workload import excerpt, repeat
from spurtle import arch
from spurtle.arch import PAGE_BYTES
from spurtle.config import CONFIGS
from spurtle_sim.cosim.spu import CompiledSPU
from spurtle_sim.model.pe import PEState
from spurtle_sim.perf.process import PID

__all__ = ["CompiledBoard", "Noise", "NoisyPort"]

_OPERATIONS = 200_000


class CompiledBoard:
    """A reference for a board: a `boards.host.driver.Target` on the compiled SPU.

    It plays the excerpt of the board as `spurtle profile` plays a program. A read of STATUS while RUN is set plays
    operations until the next interrupt.
    """

    def __init__(self, board: Board) -> None:
        config = CONFIGS[board.config]
        self._board = board
        self._spu = CompiledSPU(config)
        self._spu.set_buffer(BASE, 2 * PAGE_BYTES)
        self._spu.set_pe(PEState(contextidr_el1=PID))
        self._rows = repeat(excerpt(config, board.operations), _OPERATIONS // board.operations)
        self._passed = 0
        self._running = False

    def read(self, register: arch.Register | BoardRegister) -> int:
        if isinstance(register, arch.Register):
            return self._spu.read(register)
        if register is BoardRegister.DRAIN:
            self._spu.drain()
            return 0
        if register is BoardRegister.STATUS:
            self._play()
            return Status.IDLE | Status.IRQ * self._spu.interrupt
        counts = self._spu.counts()
        return self._passed if register is BoardRegister.OPERATIONS else counts[register.name.lower()]

    def write(self, register: arch.Register | BoardRegister, value: int) -> None:
        if isinstance(register, arch.Register):
            self._spu.write(register, value)
        else:
            self._running = bool(value & ControlBits.RUN)

    def fetch(self, address: int, count: int) -> bytes:
        half, offset = divmod(address, self._board.half_bytes)
        # Each half of the buffer of the board is the end of a page here.
        first = (half + 1) * PAGE_BYTES - self._board.half_bytes + offset
        return self._spu.memory[first : first + count].tobytes()

    def _play(self) -> None:
        if self._running and not self._spu.interrupt:
            self._passed += self._spu.play(self._rows[self._passed :])
            assert self._spu.interrupt, f"the buffer is not full after {_OPERATIONS:,} operations: play more"


class Noise:
    """Random errors of a serial line.

    Parameters
    ----------
    seed : int
    lost : int
        Bytes of 10,000 that are lost.
    corrupted : int
        Bytes of 10,000 that arrive with one wrong bit.
    """

    def __init__(self, seed: int, *, lost: int, corrupted: int) -> None:
        self._random = random.Random(seed)
        self._lost = lost
        self._corrupted = corrupted

    def transmit(self, octets: bytes) -> bytes:
        """Return what arrives when `octets` are sent."""
        out = bytearray()
        for octet in octets:
            draw = self._random.randrange(10_000)
            if draw >= self._lost:
                out.append(octet ^ (1 << self._random.randrange(8) if draw < self._lost + self._corrupted else 0))
        return bytes(out)


class NoisyPort:
    """A serial port whose line has noise in both directions."""

    def __init__(self, port: SerialPort, noise: Noise) -> None:
        self._port = port
        self._noise = noise

    @property
    def in_waiting(self) -> int:
        return self._port.in_waiting

    def read(self, size: int = 1) -> bytes:
        return self._noise.transmit(self._port.read(size))

    def write(self, data: bytes, /) -> int | None:
        return self._port.write(self._noise.transmit(data))
