"""Counter of the executed operations of each address, in C++."""

import ctypes
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ..native.header import struct
from ..native.library import Library, declare, load, package_files
from ..trace.dtypes import TIMED_OPERATION

__all__ = ["ExecutedCounter", "library"]


class ExecutedCounter:
    """Counter of the executed operations of each address.

    Raises
    ------
    UserError
        If there is no C++ compiler.
    """

    def __init__(self) -> None:
        self._library = _library()
        self._counter = self._library.executed_new()

    def __del__(self) -> None:
        if hasattr(self, "_counter"):
            self._library.executed_delete(self._counter)

    def add(self, operations: NDArray[np.void]) -> None:
        """Count rows of `TIMED_OPERATION`, contiguous. Addresses are multiples of 4."""
        self._library.executed_add(self._counter, operations.ctypes.data, len(operations))

    @property
    def counts(self) -> dict[int, int]:
        """Numbers of operations by address."""
        addresses, counts = np.zeros((2, self._library.executed_list(self._counter, None, None)), np.uint64)
        self._library.executed_list(self._counter, addresses.ctypes.data, counts.ctypes.data)
        return dict(zip(addresses.tolist(), counts.tolist(), strict=True))


def library() -> Library:
    """Return the library of the counter."""
    sources = package_files("spurtle_sim.profile", "executed.cpp")
    layout = ["#pragma once", "#include <cstdint>", struct("TimedOperation", TIMED_OPERATION), ""]
    return Library("executed", {**sources, "layout.h": "\n".join(layout)})


@cache
def _library() -> ctypes.CDLL:
    [loaded] = load([library()])
    pointer, number = ctypes.c_void_p, ctypes.c_uint64
    functions = {
        "new": (pointer, []),
        "delete": (None, [pointer]),
        "add": (None, [pointer, pointer, number]),
        "list": (number, [pointer, pointer, pointer]),
    }
    declare(loaded, "executed_", functions)
    return loaded
