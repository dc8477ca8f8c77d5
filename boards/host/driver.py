"""Driver of the SPU on a board: programs it, serves its interrupt and stops it, as an operating system does.

Ref: DDI0487 M.a, D17.7.
"""

import time
from typing import Protocol

from spurtle import arch
from spurtle.arch import PAGE_BYTES
from spurtle.config import CONFIGS
from spurtle_sim.perf.events import NOTHING_LOST, loss_flags
from spurtle_sim.profile.options import Sampling

from ..board import Board
from ..protocol import COUNT_BITS, BoardRegister, ControlBits, Status
from .link import LinkError

__all__ = ["BASE", "BoardDriver", "Target"]

BASE = 0xFFFF_0000_1000_0000
"""Virtual address of the two pages of the buffer."""

_TIMEOUT = 5.0
"""Seconds within which the program must stop."""


class Target(Protocol):
    """Access to the registers and the memory of a board, as `Link` provides it."""

    def read(self, register: arch.Register | BoardRegister) -> int: ...

    def write(self, register: arch.Register | BoardRegister, value: int) -> None: ...

    def fetch(self, address: int, count: int) -> bytes: ...


class BoardDriver:
    """Driver that profiles the program of a board. The SPU fills one half of the buffer while the host reads the other.

    Parameters
    ----------
    board : Board
    target : Target
    sampling : Sampling
        Sampling parameters.
    keep_running : bool
        Whether the program continues while the buffer is full, without being sampled until the interrupt is served.
        Otherwise it waits.

    Attributes
    ----------
    data : bytearray
        Records received, in order.
    interrupts : int
        Number of interrupts served.
    losses : AuxFlag
        Losses that the SPU has reported.
    """

    def __init__(self, board: Board, target: Target, sampling: Sampling, *, keep_running: bool = False) -> None:
        self._board = board
        self._target = target
        self._keep = ControlBits.KEEP if keep_running else ControlBits(0)
        self._half = 0
        self._counts = dict.fromkeys(_COUNTERS, 0)
        self.data = bytearray()
        self.interrupts = 0
        self.losses = NOTHING_LOST
        self._stop_program()
        self._last = self._read_counts()
        target.write(arch.PMBLIMITR_EL1, 0)
        target.write(arch.PMBSR_EL1, 0)
        self._select_half(0)
        for register, value in sampling.writes(CONFIGS[board.config]):
            target.write(register, value)

    def start(self) -> None:
        """Start the program."""
        self._target.write(BoardRegister.CONTROL, ControlBits.RUN | self._keep)

    def arm(self) -> None:
        """Let the button of the board start the program, once."""
        self._target.write(BoardRegister.CONTROL, ControlBits.ARM | self._keep)

    @property
    def started(self) -> bool:
        """Whether the program runs, or continues when the interrupt is served."""
        return bool(self._target.read(BoardRegister.CONTROL) & ControlBits.RUN)

    def serve(self) -> bool:
        """Serve the interrupt if PMBIRQ is asserted, and return whether it was.

        The program continues while the full half is read.

        Raises
        ------
        LinkError
            If the SPU reports a fault, the program does not stop, or the board has been reset.
        """
        if not self._target.read(BoardRegister.STATUS) & Status.IRQ:
            return False
        if self._keep:
            self._target.write(BoardRegister.CONTROL, self._keep)
        first, count = self._finish_half()
        self.interrupts += 1
        self._select_half(self._half ^ 1)
        self._target.write(arch.PMBSR_EL1, 0)
        if self._keep:
            self.start()
        self.data += self._target.fetch(first, count)
        return True

    def stop(self) -> None:
        """Stop the program, then profiling, and read the records in the buffer."""
        self._stop_program()
        first, count = self._finish_half()
        self._target.write(arch.PMSCR_EL1, 0)
        self._target.write(arch.PMBLIMITR_EL1, 0)
        self.data += self._target.fetch(first, count)

    def counts(self) -> dict[str, int]:
        """Return the counts of the board since the driver was created, by the names of its registers in lower case.

        The counters wrap: call this at least once in 2 ** 32 operations.
        """
        now = self._read_counts()
        for name, value in now.items():
            self._counts[name] += (value - self._last[name]) % (1 << COUNT_BITS)
        self._last = now
        return dict(self._counts)

    def _read_counts(self) -> dict[str, int]:
        return {name: self._target.read(register) for name, register in _COUNTERS.items()}

    def _select_half(self, half: int) -> None:
        self._half = half
        end = BASE + (half + 1) * PAGE_BYTES
        self._target.write(arch.PMBPTR_EL1, end - self._board.half_bytes)
        self._target.write(arch.PMBLIMITR_EL1, end | arch.PMBLIMITR_EL1.pack(E=1))

    def _finish_half(self) -> tuple[int, int]:
        """Drain the SPU, and return the memory address and the size of the records in the current half."""
        self._wait_until_idle()
        self._target.read(BoardRegister.DRAIN)
        syndrome = self._target.read(arch.PMBSR_EL1)
        if arch.PMBSR_EL1.unpack(syndrome).EC:
            raise LinkError(f"the SPU reports a fault: PMBSR_EL1 is {syndrome:#x}")
        self.losses |= loss_flags(syndrome)
        end = BASE + (self._half + 1) * PAGE_BYTES
        count = self._target.read(arch.PMBPTR_EL1) - (end - self._board.half_bytes)
        if not 0 <= count <= self._board.half_bytes:
            raise LinkError("PMBPTR_EL1 is outside of the current half of the buffer: the board has been reset")
        return self._half * self._board.half_bytes, count

    def _stop_program(self) -> None:
        self._target.write(BoardRegister.CONTROL, self._keep)
        self._wait_until_idle()

    def _wait_until_idle(self) -> None:
        deadline = time.monotonic() + _TIMEOUT
        while not self._target.read(BoardRegister.STATUS) & Status.IDLE:
            if time.monotonic() > deadline:
                raise LinkError(f"the program does not stop: its last operation did not finish within {_TIMEOUT:g} s")


_COUNTERS = {register.name.lower(): register for register in BoardRegister if register >= BoardRegister.OPERATIONS}
