"""What a board plays that has no core: an excerpt of a real workload, and that excerpt as words of block RAM."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from amaranth.hdl import Shape
from numpy.typing import NDArray

from spurtle.config import SPUConfig
from spurtle.interface.operation import LocationLayout, OperationLayout
from spurtle_sim.perf.process import Process
from spurtle_sim.timing.parameters import Parameters
from spurtle_sim.trace.dtypes import TIMED_OPERATION

__all__ = ["COLUMNS_OF_CONSTANTS", "Packed", "excerpt", "gaps", "pack", "process", "repeated"]

_PROGRAM = Path(__file__).parents[1] / "sim" / "workloads" / "sort.elf"
_FUNCTION = "sift"
"""The work begins where it is called for the first time. Before that the program only makes up the numbers that it
sorts. From there it builds the heap, and its calls are short: even 256 operations hold eight of them, and what `main`
does in between, while later on one call is about as long as that.
"""

_GAP_OF_REPEAT = Parameters.redirect
"""Cycles from the last operation of an excerpt to the first one of the next pass: what a mispredicted branch costs."""

COLUMNS_OF_CONSTANTS = 2
"""Of columns, the first two: number 0 is zero in each row, number 1 is one."""


def process() -> Process:
    """Whose the operations are."""
    # Imported here because it loads the emulator, which the gateware does not need.
    from spurtle_sim.emulator.program import Program
    from spurtle_sim.profile.run import process_of

    return process_of(Program(_PROGRAM))


def excerpt(config: SPUConfig, operations: int) -> NDArray[np.void]:
    """So many consecutive operations of heap sort, timed as `spurtle profile` times them, from where it is at its work:
    rows of TIMED_OPERATION, whose `dispatch` counts from the first of them.
    """
    # Imported here because it loads the emulator, which the gateware does not need.
    from spurtle_sim.emulator.program import Program
    from spurtle_sim.timing.model import TimingModel

    program = Program(_PROGRAM)
    timing_model = TimingModel(program.instructions, Parameters(ops_per_cycle=config.ops_per_cycle))
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
    """Cycles from each operation to the one that passes after it. The first one follows the last."""
    return np.append(np.diff(rows["dispatch"]), np.uint64(_GAP_OF_REPEAT))


def repeated(rows: NDArray[np.void], passes: int) -> NDArray[np.void]:
    """Rows of TIMED_OPERATION that `passes` of the excerpt are, one after the other."""
    after = np.tile(gaps(rows), passes)
    many = np.tile(rows, passes)
    many["dispatch"] = np.cumsum(after) - after
    return many


@dataclass(frozen=True)
class Packed:
    """An excerpt without what it says twice. A bit of a field is a column of the table; of columns with the same
    content one is stored, and none that is all zeros or all ones.

    Parameters
    ----------
    words : list of int
        One for each row: the stored columns, from number `COLUMNS_OF_CONSTANTS` on, LSB first.
    width : int
        Of a word, bits.
    fields : mapping of str to tuple of int
        Columns of each field of TIMED_OPERATION but `dispatch`, LSB first, up to the last one that is not zero.
        No field is wider than the port that it is for, and what is for no port is not there.
    """

    words: list[int]
    width: int
    fields: Mapping[str, tuple[int, ...]]


def pack(config: SPUConfig, rows: NDArray[np.void]) -> Packed:
    """`rows` for the ports of an SPU of `config`."""
    columns = {bytes([constant] * len(rows)): constant for constant in range(COLUMNS_OF_CONSTANTS)}
    fields: dict[str, tuple[int, ...]] = {}
    for name, width in _widths(config).items():
        values = rows[name].astype(np.uint64)
        bits = range(min(width, int(values.max()).bit_length()))
        contents = [(values >> np.uint64(bit) & np.uint64(1)).astype(np.uint8).tobytes() for bit in bits]
        fields[name] = tuple(columns.setdefault(content, len(columns)) for content in contents)
    stored = list(columns)[COLUMNS_OF_CONSTANTS:]
    table = np.frombuffer(b"".join(stored), np.uint8).reshape(len(stored), len(rows))
    octets = np.packbits(table.T, axis=1, bitorder="little")
    return Packed([int.from_bytes(row.tobytes(), "little") for row in octets], len(stored), fields)


def _widths(config: SPUConfig) -> dict[str, int]:
    """Of the fields that ports carry. Latencies are not carried: they may be as long as they like."""
    operation = OperationLayout(config)
    told = ("facts", "events", "pc", "va", "pa", "data_source")
    latencies = ("issue", "finish", "translate_from", "translate_to")
    return {
        **{name: Shape.cast(operation[name].shape).width for name in told if name in operation.members},
        "target": Shape.cast(LocationLayout(config)["address"].shape).width,
        **{name: 8 * TIMED_OPERATION[name].itemsize for name in latencies},
    }
