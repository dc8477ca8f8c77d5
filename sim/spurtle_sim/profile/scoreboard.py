"""The reference beside the compiled SPU: every selection, every record and the buffer's registers, compared."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from spurtle.arch import PMSICR_EL1, Register
from spurtle.config import SPUConfig

from ..cosim.faults import ABORT
from ..model import control, filtering, records, spu
from ..model.buffer import Fault
from ..model.control import PEState
from ..model.operation import Facts, Location, Operation, Sample, Start

__all__ = ["Checker"]

_MOST_SHOWN = 10

_TAKEN_BRANCH = Facts(branch=1, taken=1, retired=1).pack()
_TAKEN_BRANCH_MASK = Facts(branch=1, taken=1, retired=1, exception=1).pack()

_unpack_facts = cache(Facts.unpack)
"""`Facts.unpack`, of which the few different values of a program are computed once."""

_COUNT = PMSICR_EL1.fields["COUNT"].mask
"""As much as PMSICR_EL1 can be without ECOUNT."""

_UNDECIDED = 16
"""More than an SPU of eight slots holds of finished operations: the record of an earlier one is in memory or dropped,
and if that has stopped the buffer, operations no longer pass.
"""


class Checker:
    """Follows what the SPU is told and compares what it answers.

    When slots become free is the SPU's own affair: the reference takes from it which of the selected operations
    collided, and nothing else. When an operation finished is the core's; what a record met is memory's.

    Parameters
    ----------
    config : SPUConfig
    pe : PEState
        That the program runs in.

    Attributes
    ----------
    mismatches : list of str
        The first of them, one sentence each.
    count : int
        All of them.
    """

    def __init__(self, config: SPUConfig, pe: PEState):
        self._spu = spu.ReferenceSPU(config)
        self._spu.update_owner(pe)
        self._pe = pe
        self._rows = 0
        # By the reference: number, row, which access, where the taken branch before it went. The SPU has not answered.
        self._selected: deque[tuple[int, np.void, int, Location | None]] = deque()
        self._last_target: Location | None = None
        # PMU events.
        names = ("pop", "feed", "filtrate", "collision", *(f"feed_{event}" for event in config.feed_events))
        self._events = Counter(dict.fromkeys(names, 0))
        # By number: its row, where the taken branch before it went, and what was captured when it passed.
        self._in_flight: dict[int, tuple[np.void, Location | None, Start]] = {}
        # What the filter has kept and the reference has not written yet, and what memory has said of it.
        self._kept: deque[Sample] = deque()
        self._answers: deque[Fault | None] = deque()
        self.count = 0
        self.mismatches: list[str] = []

    def write(self, register: Register, value: int) -> None:
        """Software writes a register of the SPU."""
        self._spu.write(register, value)

    def read(self, register: Register, value: int) -> None:
        """Software has read `value`."""
        kernel = self._pe if self._pe.el else replace(self._pe, el=1)
        self._compare(register.name, value, self._spu.read(register, kernel))

    def check_operations(
        self,
        operations: NDArray[np.void],
        selections: NDArray[np.void],
        finishes: NDArray[np.void],
        answers: Iterable[Fault | None],
        *,
        settled: bool,
    ) -> None:
        """Check rows of `TIMED_OPERATION` that have passed the sampling point, and the outcomes reported since.

        With `settled` there is nothing left in flight, and either the SPU has drained or its buffer has stopped: no
        record will get into the buffer of which memory has not spoken yet.
        """
        # No register that this depends on changes while operations pass.
        enabled = control.profiling_enabled(self._spu.config, self._spu.registers, self._pe)
        selected = list(self._selections(len(operations))) if enabled else []
        self._events["pop"] += len(operations)
        for row, previous in zip(selected, self._previous_targets(operations, selected), strict=True):
            destination, _ = self._spu.choose_access() if self._spu.config.access_bits else (0, 0)
            self._selected.append((self._rows + row, operations[row].copy(), destination, previous))
        self._rows += len(operations)
        for first, candidates, sampled, time, destination in selections.tolist():
            self._answer(range(first, first + candidates), sampled, time, destination)
        for number in finishes["row"].tolist():
            if number in self._in_flight:
                self._finish(*self._in_flight.pop(number))
        self._answers.extend(answers)
        while len(self._kept) > (0 if settled else _UNDECIDED):
            self._write(self._kept.popleft())
        if settled:
            self._compare("selected operations without an answer", 0, len(self._selected))
            self._compare("sampled operations without an end", 0, len(self._in_flight))
            self._abort()
            self._compare("records that the reference has not", len(self._answers) if self._fills() else 0, 0)
            while self._answers:  # of what was on its way when the buffer stopped
                self._spu.buffer.abandon(self._answers.popleft())
                self._abort()

    def _selections(self, operations: int) -> Iterator[int]:
        """Which of so many operations are selected. Those that only decrement COUNT, and not to zero, pass at once."""
        registers = self._spu.registers
        row = 0
        while row < operations:
            count = registers.PMSICR_EL1
            if 1 < count <= _COUNT:
                passing = min(count - 1, operations - row)
                registers.PMSICR_EL1 = count - passing
                row += passing
            else:
                if self._spu.count_operation():
                    yield row
                row += 1

    def _answer(self, group: range, sampled: int, time: int, destination: int) -> None:
        """The SPU says that an operation of this group was selected: by the reference it is the next one."""
        number, row, chosen, previous = self._selected.popleft() if self._selected else (None, None, 0, None)
        if number is None or row is None or number not in group:
            self._compare(f"selected operation, at {time}", [*group], number)
        elif sampled:
            self._compare(f"access to sample of operation {number}", destination, chosen)
            start = self._spu.start(replace(self._pe, physical_count=time))
            self._in_flight[number] = row, previous, start
        else:
            self._spu.collide()
            self._events["collision"] += 1

    def _previous_targets(self, operations: NDArray[np.void], selected: Sequence[int]) -> list[Location | None]:
        """Where the last taken branch before each selected operation went."""
        taken = np.flatnonzero(operations["facts"] & _TAKEN_BRANCH_MASK == _TAKEN_BRANCH)
        targets = operations["target"][taken]

        def target(branches: int) -> Location | None:
            return Location(int(targets[branches - 1]), 0, 1) if branches else self._last_target

        previous = [target(branches) for branches in np.searchsorted(taken, selected).tolist()]
        self._last_target = target(len(taken))
        return previous

    def _finish(self, row: np.void, previous: Location | None, start: Start) -> None:
        config, registers, pe = self._spu.config, self._spu.registers, self._pe
        operation = Operation(
            facts=_unpack_facts(int(row["facts"])),
            events=int(row["events"]),
            pc=int(row["pc"]),
            target=Location(int(row["target"]), 0, 1),
            va=int(row["va"]),
            pa=int(row["pa"]),
            pa_ns=1,
            data_source=int(row["data_source"]),
        )
        sample = Sample(
            start=start,
            operation=operation,
            previous_target=previous
            if control.branch_profiled(config, registers, pe, el=pe.el, ns=pe.ns, nse=pe.nse, aarch32=pe.aarch32)
            else None,
            total=int(row["finish"]),
            issue=int(row["issue"]),
            translation=int(row["translate_to"]) - int(row["translate_from"]),
        )
        kept = filtering.collect(config, registers, sample)
        if kept:
            self._kept.append(sample)
        self._events["feed"] += 1
        self._events["filtrate"] += kept
        self._events.update({f"feed_{name}": told for name, told in filtering.feed(config, registers, sample).items()})

    def _write(self, sample: Sample) -> None:
        """The record of a sample is in memory, has met a fault, or is dropped because the buffer does not fill."""
        self._abort()
        fault = None
        if self._fills():
            self._compare(f"record of the operation at {sample.operation.pc:#x} in memory", bool(self._answers), True)
            fault = self._answers.popleft() if self._answers else None
        self._spu.buffer.write(records.encode(self._spu.config, sample), fault)

    def _abort(self) -> None:
        """External aborts that memory told of before it spoke of the next record."""
        while self._answers and self._answers[0] == ABORT:
            self._answers.popleft()
            self._spu.buffer.abort()

    def _fills(self) -> bool:
        """Records are written."""
        return control.buffer_enabled(self._spu.registers) and not control.discard_mode(self._spu.registers)

    def check_counts(self, counts: Mapping[str, int]) -> None:
        """What the SPU has told the PMU, after all has settled: events by their names without SAMPLE."""
        for name, count in self._events.items():
            self._compare(f"SAMPLE_{name.upper()} events", counts[name], count)

    def check_records(self, address: int, data: bytes) -> None:
        """Software has taken `data` from the buffer at `address`."""
        offset = 0
        while offset < len(data):
            # Where the reference has none the SPU has written too many: all that is left is wrong.
            expected = self._spu.buffer.memory.get(address + offset, b"")
            record = data[offset : offset + len(expected)] if expected else data[offset:]
            self._compare(f"record at {address + offset:#x}", record.hex(), expected.hex())
            offset += len(record)

    def _compare(self, what: str, got: object, expected: object) -> None:
        if got != expected:
            self.count += 1
            if self.count <= _MOST_SHOWN:
                self.mismatches.append(f"{what}: the SPU says {got}, the reference {expected}")
