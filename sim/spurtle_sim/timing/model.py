"""Timing model of a small out-of-order core.

The model computes the cycles in which each operation of a program passes the sampling point, issues and finishes, and
its events. Operations dispatch in program order and wait for the registers that they read. Caches and TLBs have
least-recently-used replacement. A branch predictor determines which branches are mispredicted.
`docs/explanation/timing-model.md` describes what is modeled and what is not. The model is written in C++ (`model.cpp`,
`components.h`). This module is its interface.

Ref: DDI0487 M.a, D17.6 (counters), D18.2.4 (data source), D18.2.6 (events).
"""

import ctypes
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from spurtle.arch import DataSource, Event

from ..native.header import constants, enumeration, struct
from ..native.library import Library, declare, load, package_files
from ..trace.dtypes import OPERATION, TIMED_OPERATION
from ..trace.instruction import FACT, REGISTERS, Instruction, InstructionKind
from .parameters import LINE_SHIFT, TABLE, Parameters

__all__ = ["TimingModel", "library"]

_ALWAYS_READY, _NEVER_READ = REGISTERS, REGISTERS + 1
"""Register numbers of an absent source and of an absent destination."""

_INSTRUCTION = np.dtype(
    [
        ("pc", "<u8"),
        ("facts", "<u4"),
        ("kind", "u1"),
        ("bytes", "u1"),
        ("base", "u1"),
        ("sources", "u1", 6),  # TBX with a table of four registers reads six
        ("destinations", "u1", 4),  # LD4 writes four
    ],
    align=True,
)

_PARAMETERS = np.dtype(
    [
        (name, "<u4", (max(InstructionKind) + 1,)) if parameter.kinds else (name, "<u4")
        for name, parameter in TABLE.items()
    ]
)
"""`Parameters`. Those by kind are indexed by kind, and zero for a kind without a value."""


_ROWS = 4
"""Rows for each operation that a table has at first if operations on the wrong path pass."""


class TimingModel:
    """Timing model of an out-of-order core. It keeps its state from one call of `run` to the next.

    Parameters
    ----------
    instructions : dict of int to Instruction
        Instructions by PC (`Program.instructions`). Instructions can be added between calls, and must not be changed
        or removed.
    parameters : Parameters
        Sizes and latencies.

    Raises
    ------
    UserError
        If there is no C++ compiler.
    """

    def __init__(self, instructions: dict[int, Instruction], parameters: Parameters) -> None:
        self._instructions = instructions
        self._defined = 0
        self._library = _library()
        self._wrong_path = parameters.wrong_path
        self._model = self._library.timing_model_new(_row(parameters).ctypes)

    def __del__(self) -> None:
        if hasattr(self, "_model"):
            self._library.timing_model_delete(self._model)

    @property
    def cycles(self) -> int:
        """Number of cycles until all operations so far have retired."""
        return self._library.timing_model_cycles(self._model)

    def run(self, operations: NDArray[np.void]) -> NDArray[np.void]:
        """Return the timing and the events of each of `operations`.

        Parameters
        ----------
        operations : numpy.ndarray
            Rows of OPERATION, in program order.

        Returns
        -------
        numpy.ndarray
            Rows of TIMED_OPERATION, one for each operation, and after a mispredicted branch one for each operation on
            the wrong path that passes the sampling point. `dispatch` never decreases, also from call to call.

        Raises
        ------
        ValueError
            If there is no instruction at the PC of an operation. The operations before it have been executed.
        """
        self._define()
        rows = np.ascontiguousarray(operations, OPERATION)
        done, parts = 0, [np.empty(0, TIMED_OPERATION)]
        while done < len(rows):
            # Memory that is not written is not allocated, so that the table can have more rows than are expected.
            space = len(rows) - done if not self._wrong_path else _ROWS * (len(rows) - done) + self._wrong_path
            timed, written = np.empty(space, TIMED_OPERATION), ctypes.c_uint64()
            arguments = rows[done:].ctypes.data, len(rows) - done, timed.ctypes.data, len(timed), ctypes.byref(written)
            done += self._library.timing_model_run(self._model, *arguments)
            parts.append(timed[: written.value])
            # The model stops at an operation without an instruction, or when the next one may need more rows.
            if done < len(rows) and written.value + self._wrong_path < len(timed):
                raise ValueError(f"operation {done} must be at the PC of an instruction, not at 0x{rows['pc'][done]:x}")
        return parts[1] if len(parts) == 2 else np.concatenate(parts)

    def redefine(self, instructions: Mapping[int, Instruction]) -> None:
        """Replace instructions, by PC, because the program has changed them."""
        table = _table(instructions)
        self._library.timing_model_define(self._model, table.ctypes.data, len(table))

    def _define(self) -> None:
        """Pass new instructions to the model. They are the last ones, because a dict keeps the order of insertion."""
        new = len(self._instructions) - self._defined
        if new:
            table = _table(dict(islice(reversed(self._instructions.items()), new)))
            self._library.timing_model_define(self._model, table.ctypes.data, len(table))
            self._defined += new


def _table(instructions: Mapping[int, Instruction]) -> NDArray[np.void]:
    """Return rows of _INSTRUCTION. Raise ValueError if the model cannot represent an instruction."""
    for pc in instructions:
        if pc % 4:
            raise ValueError(f"the PC of an instruction must be a multiple of 4, not 0x{pc:x}")
    content = bytearray().join(map(_content, instructions.values()))
    table = np.frombuffer(content, _INSTRUCTION)
    table["pc"] = list(instructions)
    return table


@cache
def _content(instruction: Instruction) -> bytes:
    """Return the row of an instruction with a PC of zero. A program has many instructions, and few different ones."""
    row = np.zeros(1, _INSTRUCTION)
    row["facts"] = instruction.facts
    # An atomic operation reads and writes its bytes. No other access reaches the limit.
    row["bytes"] = min(instruction.traffic, 255)
    row["kind"] = instruction.kind
    for name, absent in (("sources", _ALWAYS_READY), ("destinations", _NEVER_READ), ("base", _NEVER_READ)):
        limit = _INSTRUCTION[name].itemsize
        registers: Sequence[int] = getattr(instruction, name)
        if len(registers) > limit:
            raise ValueError(f"the {name} of an instruction must be at most {limit} registers, not {len(registers)}")
        row[name] = np.frombuffer(bytes(registers).ljust(limit, bytes([absent])), _INSTRUCTION[name])
    return row.tobytes()


def _row(parameters: Parameters) -> NDArray[np.void]:
    """Return `parameters` as a row of _PARAMETERS."""
    row = np.zeros(1, _PARAMETERS)
    row["occupancy"] = 1
    bits = parameters.port_bits()
    for name, parameter in TABLE.items():
        value = getattr(parameters, name)
        if not parameter.kinds:
            row[name] = value
            continue
        for kind, number in value.items():
            row[name][0, kind] = sum(bits[port] for port in number) if parameter.names else number
    return row


def _layout() -> str:
    """Return the text of `layout.h` for the C++ files."""
    declarations = [
        "#pragma once",
        "#include <cstdint>",
        enumeration("Kind", "uint8_t", {kind.name: kind for kind in InstructionKind}),
        constants("FACT_", "uint32_t", FACT),
        constants("EVENT_", "uint64_t", {event.name: 1 << event for event in Event}),
        constants("DATA_SOURCE_", "uint16_t", {source.name: source for source in DataSource}),
        constants("", "unsigned", {"LINE_SHIFT": LINE_SHIFT, "REGISTERS": REGISTERS, "NEVER_READ": _NEVER_READ}),
        struct("Parameters", _PARAMETERS),
        struct("Instruction", _INSTRUCTION),
        struct("Operation", OPERATION),
        struct("TimedOperation", TIMED_OPERATION),
    ]
    return "\n".join([*declarations, ""])


def library() -> Library:
    """Return the library of the timing model."""
    sources = package_files("spurtle_sim.timing", "model.cpp", "components.h", "resources.h")
    return Library("timing_model", {**sources, "layout.h": _layout()})


@cache
def _library() -> ctypes.CDLL:
    [loaded] = load([library()])
    pointer, number = ctypes.c_void_p, ctypes.c_uint64
    functions = {
        "new": (pointer, [pointer]),
        "delete": (None, [pointer]),
        "define": (None, [pointer, pointer, number]),
        "run": (number, [pointer, pointer, number, pointer, number, pointer]),
        "cycles": (number, [pointer]),
    }
    declare(loaded, "timing_model_", functions)
    return loaded
