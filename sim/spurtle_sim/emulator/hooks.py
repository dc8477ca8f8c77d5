"""Hooks of the emulator in C++. They record each executed instruction as a row of OPERATION without calling Python."""

import ctypes
from enum import IntEnum, unique
from functools import cache
from pathlib import Path

import numpy as np
import unicorn
from numpy.typing import NDArray
from unicorn.unicorn import Uc

from ..native.header import constants, enumeration, struct
from ..native.library import Library, declare, load, package_files
from ..trace.dtypes import OPERATION
from ..trace.instruction import FACT
from .words import WORD

__all__ = ["Hooks", "StopReason", "library"]


@unique
class StopReason(IntEnum):
    """Reason for which the hooks have stopped the emulator."""

    NONE = 0  # the hooks have not stopped it
    FULL = 1  # no row is free
    UNCLASSIFIED = 2  # the next instruction has not been classified


class Hooks:
    """Hooks of one emulator. They record into one array of operations at a time.

    Parameters
    ----------
    uc : Uc
    words : numpy.ndarray
        Rows of WORD for every executable address. They can change while the emulator is stopped.
    start : int
        Address of the first word.

    Raises
    ------
    UserError
        If there is no C++ compiler.
    """

    def __init__(self, uc: Uc, words: NDArray[np.void], start: int) -> None:
        self._words = words
        self._rows = np.empty(0, OPERATION)
        self._library = _library()
        self._hooks = self._library.hooks_new(
            uc._uch,  # pyright: ignore[reportPrivateUsage]: the handle has no public name
            words.ctypes.data,
            start,
        )
        if not self._hooks:
            raise RuntimeError("the emulator does not accept the hooks")

    def __del__(self) -> None:
        if hasattr(self, "_hooks"):
            self._library.hooks_delete(self._hooks)

    def record_to(self, rows: NDArray[np.void]) -> None:
        """Record into `rows` of OPERATION from now on."""
        self._rows = rows  # the C++ code has a pointer to them
        self._library.hooks_record_to(self._hooks, rows.ctypes.data, len(rows))

    def take_stop_reason(self) -> StopReason:
        """Return the reason for which the hooks have stopped the emulator since the last call."""
        return StopReason(self._library.hooks_take_stop_reason(self._hooks))

    @property
    def count(self) -> int:
        """Number of rows recorded since `record_to`. The last instruction can still be in execution."""
        return self._library.hooks_count(self._hooks)

    def finish(self, pc: int) -> None:
        """Complete the last row of a program that ends at `pc`.

        If the last instruction is at `pc`, it has not retired and its row is removed.
        """
        self._library.hooks_finish(self._hooks, pc)

    def check_traffic(self) -> None:
        """Raise RuntimeError if an instruction has accessed more or fewer bytes than its word specifies."""
        if not self._library.hooks_traffic_matches(self._hooks):
            raise RuntimeError("the accesses of the emulator do not match the instructions")


def _layout() -> str:
    """Return the text of `layout.h` for the C++ file."""
    declarations = [
        "#pragma once",
        "#include <cstdint>",
        constants("FACT_", "uint32_t", FACT),
        enumeration("StopReason", "uint32_t", {reason.name: reason for reason in StopReason}),
        struct("Word", WORD),
        struct("Operation", OPERATION),
    ]
    return "\n".join([*declarations, ""])


def library() -> Library:
    """Return the shared library of the hooks."""
    root = Path(unicorn.__file__).parent
    return Library(
        "emulator_hooks",
        {**package_files("spurtle_sim.emulator", "hooks.cpp"), "layout.h": _layout()},
        options=[f"-I{root / 'include'}"],
        # The file that the Python module has loaded, so that both use one copy of the library.
        link_options=[str(root / "lib" / "libunicorn.so.2"), f"-Wl,-rpath,{root / 'lib'}"],
        releases={"unicorn": str(unicorn.unicorn.uc_version())},
    )


@cache
def _library() -> ctypes.CDLL:
    [loaded] = load([library()])
    pointer, number = ctypes.c_void_p, ctypes.c_uint64
    functions = {
        "new": (pointer, [pointer, pointer, number]),
        "delete": (None, [pointer]),
        "record_to": (None, [pointer, pointer, number]),
        "take_stop_reason": (ctypes.c_uint32, [pointer]),
        "count": (number, [pointer]),
        "finish": (None, [pointer, number]),
        "traffic_matches": (ctypes.c_bool, [pointer]),
    }
    declare(loaded, "hooks_", functions)
    return loaded
