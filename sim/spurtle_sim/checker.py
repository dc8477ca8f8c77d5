"""The reference beside the compiled SPU: every selection, every record and the buffer's registers, compared."""

from collections import deque

import numpy as np
from numpy.typing import NDArray

from spurtle.arch import Register
from spurtle.config import SPUConfig

from .reference import spu
from .reference.control import PEState
from .reference.records import Facts, Location, Operation

__all__ = ["Checker"]

_MOST_SHOWN = 10


class Checker:
    """Follows what the SPU is told and compares what it answers.

    When the slot of a sampled operation becomes free is the SPU's own affair: the reference takes from it which of
    the selected operations collided, and nothing else.

    Parameters
    ----------
    config : SPUConfig
    context : int
        CONTEXTIDR_EL1.

    Attributes
    ----------
    mismatches : list of str
        The first of them, one sentence each.
    count : int
        All of them.
    """

    def __init__(self, config: SPUConfig, context: int):
        self._spu = spu.SPU(config)
        self._context = context
        self._rows = 0
        self._pending: deque[tuple[np.void, int]] = deque()
        self.count = 0
        self.mismatches: list[str] = []

    def write(self, register: Register, value: int) -> None:
        """Software writes a register of the SPU."""
        self._spu.write(register, value)

    def read(self, register: Register, value: int) -> None:
        """Software has read `value`."""
        self._compare(register.name, value, self._spu.read(register))

    def passed(self, operations: NDArray[np.void], delay: int, selections: NDArray[np.uint64]) -> None:
        """Rows of `TIMED` have passed the sampling point, `delay` cycles late; the SPU has answered `selections`."""
        pe = PEState(contextidr_el1=self._context)
        pass_operation = self._spu.pass_operation
        selected = [row for row in range(len(operations)) if pass_operation(pe)]
        self._compare("selected operations", (selections[:, 0] - self._rows).tolist(), selected)
        self._rows += len(operations)
        for row, (_, sampled) in zip(selected, selections.tolist(), strict=False):
            if sampled:
                self._pending.append((operations[row], delay))
            else:
                self._spu.collide()

    def finish(self, *, all_of_them: bool) -> None:
        """Sampled operations have finished: all of them, or all but the last two.

        The last one may be in flight still; and if the last but one has filled the buffer, that is not known yet:
        operations pass until its record is in memory.
        """
        while len(self._pending) > (0 if all_of_them else 2):
            row, delay = self._pending.popleft()
            self._finish(row, delay)

    def _finish(self, row: np.void, delay: int) -> None:
        pe = PEState(contextidr_el1=self._context, physical_count=int(row["dispatch"]) + delay)
        start = self._spu.start(pe)
        finish = int(row["finish"])
        operation = Operation(
            facts=Facts.unpack(int(row["facts"])),
            events=int(row["events"]),
            pc=int(row["pc"]),
            target=Location(int(row["target"]), 0, 1),
            va=int(row["va"]),
            pa=int(row["pa"]),
            pa_ns=1,
            data_source=int(row["data_source"]),
        )
        self._spu.finish(
            start,
            operation,
            total=finish,
            issue=min(int(row["issue"]), finish),
            translation=max(0, min(int(row["translate_to"]), finish) - max(int(row["translate_from"]), 1)),
        )

    def records(self, address: int, data: bytes) -> None:
        """Software has taken `data` from the buffer at `address`."""
        size = self._spu.config.record_bytes
        for offset in range(0, len(data), size):
            expected = self._spu.buffer.memory.get(address + offset, b"")
            self._compare(f"record at {address + offset:#x}", data[offset : offset + size].hex(), expected.hex())

    def _compare(self, what: str, got: object, expected: object) -> None:
        if got != expected:
            self.count += 1
            if self.count <= _MOST_SHOWN:
                self.mismatches.append(f"{what}: the SPU says {got}, the reference {expected}")
