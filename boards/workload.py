"""Excerpt of a workload for a board without a core, and its packing into words of block RAM."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from amaranth.hdl import Shape
from numpy.typing import NDArray

from spurtle.config import SPUConfig
from spurtle.interface.operation import LocationLayout, OperationLayout
from spurtle_sim.perf.process import Process
from spurtle_sim.timing.core import read_core
from spurtle_sim.trace.dtypes import TIMED_OPERATION

__all__ = ["CONSTANT_COLUMNS", "PackedExcerpt", "excerpt", "gaps", "pack", "repeat", "workload_process"]

_PROGRAM = Path(__file__).parents[1] / "sim" / "workloads" / "sort.elf"
_FUNCTION = "sift"
"""Function whose first call is the start of the excerpt.

Before this call the program only generates the numbers that it sorts. From this call on it builds the heap with short
calls: 256 operations contain eight of them, and the code of `main` between them. Later a single call is about as long
as that.
"""

_GAP_OF_REPEAT = read_core().parameters.redirect
"""Cycles from the last operation of the excerpt to the first one of the next pass: those of a mispredicted branch."""

CONSTANT_COLUMNS = 2
"""Number of constant columns: column 0 is zero in each row, column 1 is one."""


def workload_process() -> Process:
    """Return the process that executes the workload."""
    # Imported here because it loads the emulator, which the gateware does not need.
    from spurtle_sim.emulator.program import Program

    return Program(_PROGRAM).process


def excerpt(config: SPUConfig, operations: int) -> NDArray[np.void]:
    """Return consecutive operations of heap sort with the timing of `spurtle profile`.

    Parameters
    ----------
    config : SPUConfig
    operations : int
        Number of operations.

    Returns
    -------
    numpy.ndarray
        Rows of TIMED_OPERATION, from the first call of `sift` on. `dispatch` is zero in the first row.
    """
    # Imported here because it loads the emulator, which the gateware does not need.
    from spurtle_sim.emulator.program import Program
    from spurtle_sim.timing.model import TimingModel

    program = Program(_PROGRAM)
    timing_model = TimingModel(program.instructions, read_core().for_lanes(config.ops_per_cycle))
    entry = next(address for address, name in program.image.functions if name == _FUNCTION)
    running = program.run()
    rows = np.zeros(0, TIMED_OPERATION)
    while len(rows) < operations:
        rows = np.concatenate((rows, timing_model.run(next(running))))
        calls = np.flatnonzero(rows["pc"] == entry)
        rows = rows[calls[0] if len(calls) else len(rows) :]
    rows = rows[:operations].copy()
    rows["dispatch"] -= rows["dispatch"][0]
    return rows


def gaps(rows: NDArray[np.void]) -> NDArray[np.uint64]:
    """Return the cycles from each operation to the next one. The first operation follows the last one."""
    return np.append(np.diff(rows["dispatch"]), np.uint64(_GAP_OF_REPEAT))


def repeat(rows: NDArray[np.void], passes: int) -> NDArray[np.void]:
    """Return the rows of `passes` successive passes of the excerpt."""
    following_gaps = np.tile(gaps(rows), passes)
    repeated = np.tile(rows, passes)
    repeated["dispatch"] = np.cumsum(following_gaps) - following_gaps
    return repeated


@dataclass(frozen=True)
class PackedExcerpt:
    """An excerpt in which each bit of a field is a column of a table, without redundant columns.

    Columns with the same content are stored once; columns of zeros and of ones are not stored.

    Parameters
    ----------
    words : list of int
        One word for each row: the stored columns from number `CONSTANT_COLUMNS` on, LSB first.
    width : int
        Bits of a word.
    fields : mapping of str to tuple of int
        Columns of each field of TIMED_OPERATION except `dispatch`, LSB first, up to the last column that is not zero.
        A field is not wider than its port; a field without a port is absent.
    """

    words: list[int]
    width: int
    fields: Mapping[str, tuple[int, ...]]


def pack(config: SPUConfig, rows: NDArray[np.void]) -> PackedExcerpt:
    """Return `rows` packed for the ports of an SPU with this configuration."""
    columns = {bytes([constant] * len(rows)): constant for constant in range(CONSTANT_COLUMNS)}
    fields: dict[str, tuple[int, ...]] = {}
    for name, width in _widths(config).items():
        values = rows[name].astype(np.uint64)
        bits = range(min(width, int(values.max()).bit_length()))
        contents = [(values >> np.uint64(bit) & np.uint64(1)).astype(np.uint8).tobytes() for bit in bits]
        fields[name] = tuple(columns.setdefault(content, len(columns)) for content in contents)
    stored = list(columns)[CONSTANT_COLUMNS:]
    table = np.frombuffer(b"".join(stored), np.uint8).reshape(len(stored), len(rows))
    octets = np.packbits(table.T, axis=1, bitorder="little")
    return PackedExcerpt([int.from_bytes(row.tobytes(), "little") for row in octets], len(stored), fields)


def _widths(config: SPUConfig) -> dict[str, int]:
    """Return the widths of the fields. Latencies have no port: their width is that of TIMED_OPERATION."""
    operation = OperationLayout(config)
    on_ports = ("facts", "events", "pc", "va", "pa", "data_source")
    latencies = ("issue", "finish", "translate_from", "translate_to")
    return {
        **{name: Shape.cast(operation[name].shape).width for name in on_ports if name in operation.members},
        "target": Shape.cast(LocationLayout(config)["address"].shape).width,
        **{name: 8 * TIMED_OPERATION[name].itemsize for name in latencies},
    }
