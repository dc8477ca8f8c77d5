"""Interface of the front ends, which execute a program and yield its operations: Unicorn and QEMU."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from signal import Signals
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..native.library import Library
from ..perf.events import TimedEvent
from ..perf.process import PID, Process
from ..trace.instruction import Instruction

__all__ = ["QEMU_HINT", "Batch", "FrontEnd"]

QEMU_HINT = "--emulator qemu supports more programs (apt-get install qemu-user, or make qemu)"
"""Hint for a program that Unicorn cannot run."""


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Operations that one thread has executed.

    Parameters
    ----------
    operations : numpy.ndarray
        Rows of OPERATION, in program order.
    thread : int
        Number of the thread, which is CONTEXTIDR_EL1 while it runs.
    changed : dict of int to Instruction
        Instructions by PC that the program has replaced by these before the operations.
    events : sequence of TimedEvent
        What happened after the operations. The times are not set.
    """

    operations: NDArray[np.void]
    thread: int = PID
    changed: Mapping[int, Instruction] = field(default_factory=dict[int, Instruction])
    events: Sequence[TimedEvent] = ()


class FrontEnd(Protocol):
    """Program that can be executed once, by `batches`."""

    path: Path
    """Absolute path."""

    instructions: dict[int, Instruction]
    """Instructions by PC. They include those of every operation that was yielded."""

    failure: str
    """Sentence that describes the crash of the program. Empty without a crash."""

    @property
    def hint(self) -> str:
        """Sentence about another front end, if the program needs what this one does not have. Otherwise empty."""
        ...

    @property
    def grade(self) -> str:
        """Sentence that names the front end, and what it does not record."""
        ...

    @property
    def process(self) -> Process:
        """The process, with the mappings at its start that are known before it runs."""
        ...

    @property
    def exit_status(self) -> int | None:
        """Exit status as in a shell: 128 + signal after a fatal signal. None while the program runs."""
        ...

    def libraries(self) -> list[Library]:
        """Return the libraries that `batches` loads."""
        ...

    def kill(self, number: Signals) -> None:
        """Send a signal to the program. A signal handler can call this method."""
        ...

    def batches(self) -> Generator[Batch]:
        """Run the program until it ends. Every operation is in one batch."""
        ...
