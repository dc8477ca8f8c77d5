"""Hooks of the emulator in C++: each instruction that executes becomes a row of OPERATION, without a call of Python."""

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

__all__ = ["WORD", "Hooks", "Stop", "library"]

WORD = np.dtype([("facts", "<u4"), ("passes", "<u2"), ("traffic", "u1"), ("irregular", "u1")], align=True)
"""Instruction word, as the hooks need it; `facts` of zero if it has not been classified.

`passes` has a bit for each value of NZCV with which a conditional select or compare passes. The other fields are those
of `trace.instruction.Instruction`.
"""


@unique
class Stop(IntEnum):
    """Why the hooks have stopped the emulator."""

    NO = 0  # they have not
    FULL = 1  # there is no free row
    UNKNOWN = 2  # the next instruction has not been classified


class Hooks:
    """Hooks of one emulator, which record into one array after the other.

    Parameters
    ----------
    uc : Uc
    words : numpy.ndarray
        Rows of WORD for every address that can be executed. They may change while the emulator is stopped.
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
            uc._uch,  # pyright: ignore[reportPrivateUsage]: the handle has no other name
            words.ctypes.data,
            start,
        )
        if not self._hooks:
            raise RuntimeError("the emulator refuses hooks")

    def __del__(self) -> None:
        if hasattr(self, "_hooks"):
            self._library.hooks_delete(self._hooks)

    def begin(self, rows: NDArray[np.void]) -> None:
        """Record into `rows` of OPERATION from now on."""
        self._rows = rows
        self._library.hooks_begin(self._hooks, rows.ctypes.data, len(rows))

    def stopped(self) -> Stop:
        """Return why the hooks have stopped the emulator since the last call."""
        return Stop(self._library.hooks_stopped(self._hooks))

    @property
    def count(self) -> int:
        """Number of rows since `begin`; the last instruction may still execute."""
        return self._library.hooks_count(self._hooks)

    def end(self, pc: int) -> None:
        """Complete the rows of a program that ends at `pc`. Remove that of an instruction there: it has not retired."""
        self._library.hooks_end(self._hooks, pc)

    def check(self) -> None:
        """Raise RuntimeError if an instruction has not accessed as many bytes as its word says."""
        if not self._library.hooks_matched(self._hooks):
            raise RuntimeError("the emulator's accesses do not match the instructions'")


def _layout() -> str:
    """Return `layout.h` for the C++ file."""
    declarations = [
        "#pragma once",
        "#include <cstdint>",
        constants("FACT_", "uint32_t", FACT),
        enumeration("Stop", "uint32_t", {stop.name: stop for stop in Stop}),
        struct("Word", WORD),
        struct("Operation", OPERATION),
    ]
    return "\n".join([*declarations, ""])


def library() -> Library:
    """Return the library of the hooks."""
    root = Path(unicorn.__file__).parent
    return Library(
        "emulator_hooks",
        {**package_files("spurtle_sim.emulator", "hooks.cpp"), "layout.h": _layout()},
        options=[f"-I{root / 'include'}"],
        # The same file that the module has loaded.
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
        "begin": (None, [pointer, pointer, number]),
        "stopped": (ctypes.c_uint32, [pointer]),
        "count": (number, [pointer]),
        "end": (None, [pointer, number]),
        "matched": (ctypes.c_bool, [pointer]),
    }
    declare(loaded, "hooks_", functions)
    return loaded
