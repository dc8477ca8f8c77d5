"""Comparison of the compiled SPU with the reference model: selections, records, registers of the buffer, PMU events."""

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
from ..trace.vectors import unpack_vectors

__all__ = ["Checker"]

_MAX_MESSAGES = 10

_TAKEN_BRANCH = Facts(branch=1, taken=1, retired=1).pack()
_TAKEN_BRANCH_MASK = Facts(branch=1, taken=1, retired=1, exception=1).pack()

_unpack_facts = cache(Facts.unpack)
"""`Facts.unpack` with a cache: a program has few different values."""

_unpack_vectors = cache(unpack_vectors)

_COUNT = PMSICR_EL1.fields["COUNT"].mask
"""Greatest value of PMSICR_EL1 while ECOUNT is zero."""

_MAX_PENDING = 16
"""Upper bound of the finished operations that an SPU of eight slots holds.

The record of an earlier operation is in memory or was dropped. If that record stopped the buffer, no more operations
pass.
"""


class Checker:
    """Comparison of an SPU with the reference model, which receives the same inputs.

    From the SPU the reference takes only which of the selected operations collided, because the SPU decides when a slot
    becomes free. The core reports when an operation finished, and memory reports the faults of records.

    Parameters
    ----------
    config : SPUConfig
    pe : PEState
        State in which the program runs.

    Attributes
    ----------
    mismatches : list of str
        One sentence for each of the first mismatches.
    count : int
        Number of all mismatches.
    """

    def __init__(self, config: SPUConfig, pe: PEState):
        self._spu = spu.ReferenceSPU(config)
        self._spu.update_owner(pe)
        self._pe = pe
        self._rows = 0
        # Operations that the reference selected and the SPU has not answered yet: number, row, choice of access, target
        # of the last taken branch before it.
        self._selected: deque[tuple[int, np.void, int, Location | None]] = deque()
        self._last_target: Location | None = None
        # Counts of PMU events.
        names = ("pop", "feed", "filtrate", "collision", *(f"feed_{event}" for event in config.feed_events))
        self._events = Counter(dict.fromkeys(names, 0))
        # Sampled operations by number: row, target of the last taken branch before it, values captured at the start.
        self._in_flight: dict[int, tuple[np.void, Location | None, Start]] = {}
        # Samples that passed the filter and that the reference has not written yet, and responses of memory.
        self._collected: deque[Sample] = deque()
        self._responses: deque[Fault | None] = deque()
        self.count = 0
        self.mismatches: list[str] = []

    def switch(self, pe: PEState) -> None:
        """Change the state in which operations pass. No operation is in flight."""
        self._spu.update_owner(pe)
        self._pe = pe

    def write(self, register: Register, value: int) -> None:
        """Write a register of the reference, as software has written it in the SPU."""
        self._spu.write(register, value)

    def read(self, register: Register, value: int) -> None:
        """Check the value that software has read from a register of the SPU."""
        kernel = self._pe if self._pe.el else replace(self._pe, el=1)
        self._compare(register.name, value, self._spu.read(register, kernel))

    def check_operations(
        self,
        operations: NDArray[np.void],
        selections: NDArray[np.void],
        finishes: NDArray[np.void],
        responses: Iterable[Fault | None],
        *,
        settled: bool,
    ) -> None:
        """Check rows of `TIMED_OPERATION` that have passed the sampling point, and the outcomes reported since.

        With `settled` no operation is in flight, and either the SPU is drained or its buffer has stopped: memory has
        responded to every record that it will write.
        """
        # The registers that decide this do not change while operations pass.
        enabled = control.profiling_enabled(self._spu.config, self._spu.registers, self._pe)
        selected = list(self._selected_rows(len(operations))) if enabled else []
        self._events["pop"] += len(operations)
        for row, previous in zip(selected, self._previous_targets(operations, selected), strict=True):
            destination, _ = self._spu.choose_access() if self._spu.config.access_bits else (0, 0)
            self._selected.append((self._rows + row, operations[row].copy(), destination, previous))
        self._rows += len(operations)
        for first, candidates, sampled, time, destination in selections.tolist():
            self._check_selection(range(first, first + candidates), sampled, time, destination)
        for number in finishes["row"].tolist():
            if number in self._in_flight:
                self._finish(*self._in_flight.pop(number))
        self._responses.extend(responses)
        while len(self._collected) > (0 if settled else _MAX_PENDING):
            self._write(self._collected.popleft())
        if settled:
            self._compare("selected operations without an answer", 0, len(self._selected))
            self._compare("sampled operations without a finish", 0, len(self._in_flight))
            self._report_aborts()
            self._compare(
                "records that the reference does not have", len(self._responses) if self._writes_records() else 0, 0
            )
            while self._responses:  # to records that were being written when the buffer stopped
                self._spu.buffer.abandon(self._responses.popleft())
                self._report_aborts()

    def _selected_rows(self, operations: int) -> Iterator[int]:
        """Yield which of the next operations are selected.

        Operations that decrement COUNT, and not to zero, are counted in one step.
        """
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

    def _check_selection(self, group: range, sampled: int, time: int, destination: int) -> None:
        """Check that the operation that the SPU selected in a group is the next one that the reference selected."""
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
        """Return the target of the last taken branch before each selected operation."""
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
            vectors=_unpack_vectors(int(row["vectors"])),
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
        collected = filtering.collect(config, registers, sample)
        if collected:
            self._collected.append(sample)
        self._events["feed"] += 1
        self._events["filtrate"] += collected
        self._events.update({f"feed_{name}": fed for name, fed in filtering.feed(config, registers, sample).items()})

    def _write(self, sample: Sample) -> None:
        """Write the record of a sample to the reference, with the fault that memory reported.

        The record is dropped if the buffer is disabled, if profiling is stopped, and in Discard mode.
        """
        self._report_aborts()
        fault = None
        if self._writes_records():
            self._compare(f"record of the operation at {sample.operation.pc:#x} in memory", bool(self._responses), True)
            fault = self._responses.popleft() if self._responses else None
        self._spu.buffer.write(records.encode(self._spu.config, sample), fault)

    def _report_aborts(self) -> None:
        """Report to the reference the External aborts that precede the next response to a record."""
        while self._responses and self._responses[0] == ABORT:
            self._responses.popleft()
            self._spu.buffer.abort()

    def _writes_records(self) -> bool:
        """Return whether records are written to the buffer."""
        return control.buffer_enabled(self._spu.registers) and not control.discard_mode(self._spu.registers)

    def check_counts(self, counts: Mapping[str, int]) -> None:
        """Check the counts of PMU events, by their names without SAMPLE, when no operation is in flight."""
        for name, count in self._events.items():
            self._compare(f"SAMPLE_{name.upper()} events", counts[name], count)

    def check_records(self, address: int, data: bytes) -> None:
        """Check `data` that software has read from the buffer at `address`."""
        offset = 0
        while offset < len(data):
            # If the reference has no record here, the SPU has written too many: the rest is one mismatch.
            expected = self._spu.buffer.memory.get(address + offset, b"")
            record = data[offset : offset + len(expected)] if expected else data[offset:]
            self._compare(f"record at {address + offset:#x}", record.hex(), expected.hex())
            offset += len(record)

    def _compare(self, subject: str, actual: object, expected: object) -> None:
        if actual != expected:
            self.count += 1
            if self.count <= _MAX_MESSAGES:
                self.mismatches.append(f"{subject}: the SPU has {actual}, the reference has {expected}")
