"""Reader of what the plugin in QEMU records, in C++: it makes operations of the blocks that threads execute."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, unique
from functools import cache
from signal import Signals

import numpy as np
from numpy.typing import NDArray

from spurtle.support.errors import PROFILE_FAILED, UserError

from ..emulator.words import WORD
from ..native.header import constants, enumeration, struct
from ..native.library import Library, declare, load, package_files
from ..trace.dtypes import OPERATION
from ..trace.instruction import FACT
from ..trace.vectors import LENGTH_SHIFT, LENGTH_UNIT

__all__ = [
    "STACK_BYTES",
    "Reader",
    "Step",
    "StepResult",
    "ThreadEvent",
    "library",
    "plugin",
    "sent_by_terminal",
    "start",
]

STACK_BYTES = (8 << 20) + (1 << 16)
"""Size of the stack of a program. The plugin recognizes the mapping by it, so it is not the size of another mapping."""

_TERMINAL = (Signals.SIGINT, Signals.SIGHUP)
"""Signals that a terminal sends to all processes in the foreground, and that a profile handles."""

_SHARED = ("ring.h",)
_PLUGIN = ("plugin.cpp", "api.h", "guest.h", "writer.h")
_READER = ("reader.cpp", "reader.h", "launch.cpp")


@unique
class ThreadEvent(IntEnum):
    """Event of a thread. The plugin writes it with the words, and then the text, that are listed.

    The reader handles the last four itself.
    """

    THREAD = 0  # the thread was started, or it executes another program
    INITIAL = 1  # start, length, offset; path: mapping at the start of the program. The last one has length zero
    MAP = 2  # start, length, offset, protection; path
    HEAP = 3  # its end
    PROTECT = 4  # start, length, protection: the memory can be executed
    NAME = 5  # name of the thread
    EXECUTE = 6  # path: the process is about to execute a program
    REFUSED = 7  # path: it is about to execute a program that is not for AArch64
    EXIT = 8  # whether the whole process ends
    DEFINE = 9  # number, PC, number of instructions, words of a block
    HANDLER = 10  # address of a signal handler
    SIGRETURN = 11
    FORK = 12  # number: a thread or process is about to be started


@unique
class StepResult(IntEnum):
    """Reason why a step of the reader has ended."""

    IDLE = 0  # there is nothing to read
    ROWS = 1
    EVENT = 2  # an event follows the operations
    UNCLASSIFIED = 3  # the next block must be classified
    ENDED = 4  # the thread has ended


_REPORT = np.dtype(
    [
        ("kind", "<u4"),
        ("count", "<u4"),
        ("process", "<u4"),
        ("thread", "<u4"),
        ("parent", "<u4"),
        ("event", "<u4"),
        ("words", "<u4"),
        ("address", "<u8"),
        ("content", "<u8"),
    ],
    align=True,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """StepResult of a step of the reader.

    Parameters
    ----------
    result : StepResult
    operations : numpy.ndarray
        Rows of OPERATION of one thread, in program order.
    process, thread, parent : int
        Numbers of the process, of the thread and of the parent process on the host.
    event : ThreadEvent or None
        Only with StepResult.EVENT.
    content : bytes
        Words of the event, or instruction words of the block.
    address : int
        PC of the block.
    """

    result: StepResult
    operations: NDArray[np.void]
    process: int
    thread: int
    parent: int
    event: ThreadEvent | None
    content: bytes
    address: int

    def values(self) -> list[int]:
        """Return the words of the event."""
        return np.frombuffer(self.content, "<u8").tolist()

    def text(self, words: int) -> str:
        """Return the text after `words` words of the event."""
        return self.content[8 * words :].partition(b"\0")[0].decode(errors="surrogateescape")

    def instructions(self) -> list[int]:
        """Return the instruction words of the block."""
        return np.frombuffer(self.content, "<u4").tolist()


class Reader:
    """Shared memory that the plugin writes, and its reader.

    Parameters
    ----------
    limit : int
        Maximum number of operations in a report.

    Raises
    ------
    UserError
        If there is no C++ compiler, or not enough memory.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._library = _library()
        self._report = np.zeros(1, _REPORT)
        self._reader = self._library.reader_new()
        if not self._reader:
            raise UserError("there is not enough memory for the records of the emulator")

    def __del__(self) -> None:
        if getattr(self, "_reader", None):
            self._library.reader_delete(self._reader)

    @property
    def descriptor(self) -> int:
        """Descriptor of the shared memory."""
        return self._library.reader_descriptor(self._reader)

    @property
    def exhausted(self) -> bool:
        """Whether the program had more threads than the reader can read."""
        return self._library.reader_exhausted(self._reader)

    @property
    def started(self) -> bool:
        """Whether QEMU has loaded the plugin."""
        return self._library.reader_started(self._reader)

    @property
    def crash(self) -> int:
        """PC of the instruction that ended the program, or zero if it is not known."""
        return self._library.reader_crash(self._reader)

    def configure(self, command: Sequence[str], sysroot: str, *, follow: bool) -> None:
        """Set what the plugin needs: the arguments of QEMU before a program, and whether child processes are recorded.

        Raises
        ------
        UserError
            If an argument is too long.
        """
        text = b"".join(argument.encode(errors="surrogateescape") + b"\0" for argument in command) + b"\0"
        if not self._library.reader_configure(self._reader, text, len(text), sysroot.encode(), follow):
            raise UserError("the paths of QEMU, of the plugin and of the sysroot must be shorter")

    def step(self) -> Step:
        """Return the next operations of a thread, and the reason why there are not more."""
        rows = np.empty(self._limit, OPERATION)
        self._library.reader_step(self._reader, rows.ctypes.data, len(rows), self._report.ctypes.data)
        found = self._report[0]
        result = StepResult(int(found["kind"]))
        size = int(found["words"]) * (4 if result is StepResult.UNCLASSIFIED else 8)
        return Step(
            result=result,
            operations=rows[: int(found["count"])],
            process=int(found["process"]),
            thread=int(found["thread"]),
            parent=int(found["parent"]),
            event=ThreadEvent(int(found["event"])) if result is StepResult.EVENT else None,
            content=ctypes.string_at(int(found["content"]), size) if size else b"",
            address=int(found["address"]),
        )

    def classify(self, words: NDArray[np.void]) -> None:
        """Set the rows of WORD of the block that the last report named as unclassified."""
        self._library.reader_classify(self._reader, words.ctypes.data)

    def end(self, signal: int) -> None:
        """Step that the first process has ended, by a signal or with signal zero. The rest can then be read."""
        self._library.reader_end(self._reader, signal)


def _layout() -> str:
    """Return the text of `layout.h` for the C++ files."""
    declarations = [
        "#pragma once",
        "#include <cstdint>",
        constants("FACT_", "uint32_t", FACT),
        constants("", "uint64_t", {"STACK_BYTES": STACK_BYTES}),
        constants("", "unsigned", {"LENGTH_SHIFT": LENGTH_SHIFT, "LENGTH_UNIT": LENGTH_UNIT}),
        constants("", "int", {"PROFILE_FAILED": PROFILE_FAILED}),
        enumeration("Event", "uint32_t", {event.name: event for event in ThreadEvent}),
        enumeration("Result", "uint32_t", {result.name: result for result in StepResult}),
        struct("Word", WORD),
        struct("Operation", OPERATION),
        struct("Report", _REPORT),
    ]
    return "\n".join([*declarations, ""])


def _sources(names: Sequence[str]) -> dict[str, str]:
    return {**package_files("spurtle_sim.qemu", *_SHARED, *names), "layout.h": _layout()}


def library() -> Library:
    """Return the library of the reader."""
    return Library("qemu_reader", _sources(_READER))


def plugin() -> Library:
    """Return the plugin, which QEMU loads."""
    return Library("qemu_plugin", _sources(_PLUGIN), options=["-fvisibility=hidden"], link_options=["-ldl"])


def start(command: Sequence[str]) -> int:
    """Start QEMU with the environment of this process. Return the number of the process.

    Raises
    ------
    UserError
        If no process can be created.
    """
    arguments = [argument.encode(errors="surrogateescape") for argument in command]
    for number in _TERMINAL:
        _library().launch_watch(number)
    process: int = _library().launch_start((ctypes.c_char_p * (len(arguments) + 1))(*arguments, None))
    if process < 0:
        raise UserError("cannot start QEMU: no process can be created")
    return process


def sent_by_terminal(number: Signals) -> bool:
    """Return whether a terminal has sent the last signal with this number, and so to QEMU too."""
    return _library().launch_take_sent_by_terminal(number)


@cache
def _library() -> ctypes.CDLL:
    [loaded] = load([library()])
    pointer, number = ctypes.c_void_p, ctypes.c_uint64
    functions = {
        "new": (pointer, []),
        "delete": (None, [pointer]),
        "descriptor": (ctypes.c_int, [pointer]),
        "configure": (ctypes.c_bool, [pointer, ctypes.c_char_p, number, ctypes.c_char_p, ctypes.c_bool]),
        "step": (None, [pointer, pointer, number, pointer]),
        "classify": (None, [pointer, pointer]),
        "end": (None, [pointer, ctypes.c_uint32]),
        "exhausted": (ctypes.c_bool, [pointer]),
        "started": (ctypes.c_bool, [pointer]),
        "crash": (number, [pointer]),
    }
    declare(loaded, "reader_", functions)
    launch = {
        "start": (ctypes.c_int, [pointer]),
        "watch": (None, [ctypes.c_int]),
        "take_sent_by_terminal": (ctypes.c_bool, [ctypes.c_int]),
    }
    declare(loaded, "launch_", launch)
    return loaded
