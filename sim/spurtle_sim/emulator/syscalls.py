"""The Linux system calls of one program, answered the same way at each run."""

import errno
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

from unicorn.unicorn import Uc

from .linux.clock import Clock
from .linux.descriptors import Descriptors
from .linux.guest import Call, Guest, Int, Long, NotEmulatedError, UInt
from .linux.memory import Memory
from .linux.names import NAMES
from .linux.paths import Paths
from .linux.process import ProcessCalls
from .linux.signals import Signals
from .linux.streams import Streams

__all__ = ["Kernel"]


class Kernel:
    """Memory, files, signals and facts of one process.

    The standard streams are the host's, and its files can be read. Time is what `now` says and random bytes come from a
    seed, so that a run can be repeated. What is not emulated fails, and is reported once on standard error.

    Parameters
    ----------
    uc : Uc
        Holds the memory of the process.
    path : Path
        The program, for /proc/self/exe.
    end : int
        First address after the program: the heap starts on the next page.
    now : callable
        Nanoseconds since the program started.
    seed : int
        Of the random numbers.
    on_map : callable
        Receives start, length, protection and name of memory that the program has asked for.

    Attributes
    ----------
    exit_status : int or None
        As `wait` reports it: 128 + signal after a fatal signal. None while the program runs.
    """

    def __init__(
        self,
        uc: Uc,
        *,
        path: Path,
        end: int,
        now: Callable[[], int],
        seed: int,
        on_map: Callable[[int, int, int, str], None] = lambda *_: None,
    ) -> None:
        self.exit_status: int | None = None
        self._reported: set[str] = set()
        guest = Guest(uc)
        clock, memory, signals = Clock(guest, now), Memory(guest, end, on_map), Signals(guest, self._end)
        self._descriptors = Descriptors(guest)
        self._paths = Paths(guest, self._descriptors, path)
        streams = Streams(guest, self._descriptors, clock, signals)
        process = ProcessCalls(guest, memory, clock, name=path.name, seed=seed, end=self._end)
        groups = (clock, memory, signals, self._descriptors, self._paths, streams, process)
        self._calls = {call.__name__: (call, _types(call)) for group in groups for call in group.calls}

    def call(self, number: int, arguments: tuple[int, ...]) -> int:
        """Return the result of system call `number`, negative for an errno; `arguments` are six registers."""
        number &= 2**32 - 1
        name = NAMES.get(number, "")
        if name not in self._calls:
            return self._refuse(number, "", errno.ENOSYS)
        call, types = self._calls[name]
        try:
            return call(*(_convert(value, type_) for value, type_ in zip(arguments, types, strict=False)))
        except NotEmulatedError as error:
            return self._refuse(number, f" {error.what}", error.number)
        except OSError as error:
            return -(error.errno or errno.EIO)

    def close(self) -> None:
        """Close the host files that the program left open."""
        self._descriptors.close_all()
        self._paths.close()

    def _end(self, status: int) -> None:
        self.exit_status = status

    def _refuse(self, number: int, what: str, error: int) -> int:
        """Report, once, that a system call is not emulated; return its result."""
        name = f"{NAMES[number]} (system call {number})" if number in NAMES else f"system call {number}"
        message = f"spurtle: {name}{what} is not emulated: the program gets {errno.errorcode[error]}"
        if message not in self._reported:
            self._reported.add(message)
            print(message, file=sys.stderr)
        return -error


def _types(call: Call) -> list[Any]:
    """Return the types of the parameters of a system call."""
    hints = get_type_hints(call, include_extras=True)
    del hints["return"]
    return [*hints.values()]


_BITS = {Int: 32, UInt: 32, Long: 64, int: 64}
_SIGNED = {Int, Long}


def _convert(register: int, type_: Any) -> int:
    """Return the value of a parameter: the register may hold anything above the bits of a shorter type."""
    bits = _BITS[type_]
    value = register & (1 << bits) - 1
    return value - (1 << bits) if type_ in _SIGNED and value >> bits - 1 else value
