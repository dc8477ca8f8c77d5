"""Reproducible emulation of the Linux system calls of one program."""

import errno
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

from unicorn.unicorn import Uc

from .linux.clock import Clock
from .linux.descriptors import Descriptors
from .linux.guest import Call, Guest, Int, Long, NotEmulatedError, UInt
from .linux.memory import MemoryCalls
from .linux.names import NAMES
from .linux.paths import PathCalls
from .linux.process import ProcessCalls
from .linux.signals import SignalCalls
from .linux.streams import StreamCalls

__all__ = ["Kernel"]


class Kernel:
    """Linux kernel of one process: its memory, files, signals and attributes.

    The process uses the standard streams of the host, and can read its files. Time is the result of `now`, and random
    bytes depend on the seed only, so that runs are reproducible. A system call that is not emulated fails, and is
    reported once on standard error.

    Parameters
    ----------
    uc : Uc
        Emulator, which contains the memory of the process.
    path : Path
        Path of the program, for /proc/self/exe.
    end : int
        First address after the program. The heap starts at the next page boundary.
    now : callable
        Returns the nanoseconds since the start of the program.
    seed : int
        Seed of the random bytes.
    on_map : callable, optional
        Called with start, length, protection and name of each anonymous mapping that the program creates, and of the
        complete heap when it grows.

    Attributes
    ----------
    exit_status : int or None
        Exit status, which is 128 + signal after a fatal signal. None while the program runs.
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
        clock, memory, signals = Clock(guest, now), MemoryCalls(guest, end, on_map), SignalCalls(guest, self._exit)
        self._descriptors = Descriptors(guest)
        self._paths = PathCalls(guest, self._descriptors, path)
        streams = StreamCalls(guest, self._descriptors, clock, signals)
        process = ProcessCalls(guest, memory, clock, name=path.name, seed=seed, exit_=self._exit)
        groups = (clock, memory, signals, self._descriptors, self._paths, streams, process)
        self._calls = {call.__name__: (call, _types(call)) for group in groups for call in group.calls}

    def call(self, number: int, arguments: tuple[int, ...]) -> int:
        """Execute system call `number`. Return its result, which is a negative errno after an error.

        `arguments` are the values of X0 to X5.
        """
        number &= 2**32 - 1
        name = NAMES.get(number, "")
        if name not in self._calls:
            return self._report(number, "", errno.ENOSYS)
        call, types = self._calls[name]
        try:
            return call(*(_convert(value, type_) for value, type_ in zip(arguments, types, strict=False)))
        except NotEmulatedError as error:
            return self._report(number, f" {error.feature}", error.number)
        except OSError as error:
            return -(error.errno or errno.EIO)

    @property
    def reported(self) -> bool:
        """Whether a feature that is not emulated was reported."""
        return bool(self._reported)

    def close(self) -> None:
        """Close the host files that the program has not closed."""
        self._descriptors.close_all()
        self._paths.close()

    def _exit(self, status: int) -> None:
        self.exit_status = status

    def _report(self, number: int, feature: str, error: int) -> int:
        """Report once that a feature of a system call is not emulated. Return the result of the call."""
        name = f"{NAMES[number]} (system call {number})" if number in NAMES else f"system call {number}"
        message = f"spurtle: {name}{feature} is not emulated: the program receives {errno.errorcode[error]}"
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
    """Return the value of a parameter. Register bits above the width of its type are ignored."""
    bits = _BITS[type_]
    value = register & (1 << bits) - 1
    return value - (1 << bits) if type_ in _SIGNED and value >> bits - 1 else value
