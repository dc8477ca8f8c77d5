"""The Linux driver on the compiled SPU, the reference that checks both, and readers of the records."""

import ctypes
import re
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spurtle import arch
from spurtle.arch import BSC, EC, PMBLIMITR_EL1, PMBPTR_EL1, PMBSR_EL1
from spurtle.config import SPUConfig
from spurtle_sim.model.pe import PEState
from spurtle_sim.records.decode import decode_records
from tests.support.cpu import UNWRITTEN, Core, Step
from tests.support.linux_driver.binding import AuxFlag, IRQReturn, LinuxDriver, PerfEvent

__all__ = ["FULL", "Event", "Session"]

FULL = PMBSR_EL1.pack(S=1, EC=EC.OTHER, MSS=BSC.BUFFER_FILLED)

_PE = PEState(contextidr_el1=0xBEEF)
_EVENTS = 2
"""Number of events. At most one of them is scheduled in."""

_HIGH = 0xFFFF << 48
"""Upper bits of kernel addresses. The addresses of this process are those of user space."""


def _encoding(op1: int, crn: int, crm: int, op2: int) -> int:
    return 3 << 19 | op1 << 16 | crn << 12 | crm << 8 | op2 << 5


_REGISTERS = {
    _encoding(register.op1, register.crn, register.crm, register.op2): register for register in arch.REGISTERS
}
_ID_AA64DFR0_EL1 = _encoding(0, 0, 5, 0)
_PMSVER_LSB = 32


class Event(PerfEvent):
    """An event and the reader of its buffer.

    Attributes
    ----------
    written : bytearray
        Records that the SPU has written to the buffer. They agree with the reference.
    read : bytearray
        Data that the reader has received.
    snapshot : bool
    tail : int
        Offset up to which the reader has read.
    losses : int
        Number of times that the driver has read PMBSR_EL1.DL as 1.
    """

    def __init__(self, driver: LinuxDriver, number: int):
        super().__init__(driver, number)
        self.reset(snapshot=False)

    def reset(self, *, snapshot: bool) -> None:
        """Start again with a new event and a new buffer."""
        self.written = bytearray()
        self.read = bytearray()
        self.snapshot = snapshot
        self.tail = 0
        self.losses = 0
        self._consumed = 0

    def consume(self, max_bytes: int | None = None) -> None:
        """Read new data, at most `max_bytes`, and return the space to the kernel.

        Only the data of AUX records is read; bytes between two of them are skipped.
        """
        end_offset = self.aux_head if max_bytes is None else min(self.aux_head, self.tail + max_bytes)
        for record in self.aux_records()[self._consumed :]:
            start, end = max(record.offset, self.tail), min(record.offset + record.size, end_offset)
            if start < end:
                self.read += self._buffer(start, end)
            if record.offset + record.size > end_offset:
                break
            self._consumed += 1
        self.tail = end_offset
        self.set_aux_tail(end_offset)

    def _buffer(self, start: int, end: int) -> bytes:
        """Return bytes of the buffer between two offsets, which do not wrap with the buffer."""
        start, length = start % self.aux_size, end - start
        assert start + length <= self.aux_size, "an AUX record extends beyond the end of the buffer"
        return ctypes.string_at(self.aux_base + start, length)

    def check(self) -> None:
        """Check that the reader has received all that the SPU has written, once and in order.

        Of a snapshot only the half of the buffer that was started last is checked. Each loss is reported by a flag, and
        only an AUX record with this flag may end with a partial record.
        """
        records = self.aux_records()
        partial = [AuxFlag.PARTIAL in record.flags for record in records]
        assert sum(partial) == self.losses
        if self.snapshot:
            head = self.aux_head % self.aux_size
            half = head - head % (self.aux_size // 2)
            self.read[:] = self._buffer(half, head)
            assert self.written.endswith(self.read)
            _check_records(self.read, torn=any(partial))
            return
        self.consume()
        assert self.read == self.written
        ends = accumulate(record.size for record in records)
        for record, torn, end in zip(records, partial, ends, strict=True):
            _check_records(self.read[end - record.size : end], torn=torn)

    def flags(self) -> AuxFlag:
        """Return the flags of all AUX records together."""
        flags = AuxFlag(0)
        for record in self.aux_records():
            flags |= record.flags
        return flags


def _check_records(data: bytearray, *, torn: bool) -> None:
    """Check that all records are complete. The last one may be partial if `torn`."""
    problems = [record.problems for record in decode_records(bytes(data)) if record.problems]
    assert len(problems) <= torn, problems


class Session(Core):
    """A machine with one CPU and its SPU, from the probe of the driver until its removal. The program runs at EL0.

    Parameters
    ----------
    library : Path
        Result of `library.build`.
    config : SPUConfig
    operations : array of TIMED_OPERATION
        The program. It starts again when it ends.

    Attributes
    ----------
    events : list of Event
    event : Event
        The one of `events` that is scheduled in, if any is.
    steps : list of Step
        Accesses to the SPU in the last call of `kernel`.
    messages : list of str
        Errors and warnings of the kernel.
    fatal : list of int
        Values of PMBSR_EL1 that the driver has read and must report, because they are not those of a full buffer.
    abandoned : bool
        The driver has found lost data, and perf has not stopped the event. The driver does not handle further
        interrupts of this buffer.
    driver : LinuxDriver
    enables : int
        Number of times that the driver has enabled the Profiling Buffer.
    aborted : bool
        Memory has reported an asynchronous External abort since then. Records in progress at that time may have been
        written beyond PMBPTR_EL1.
    """

    def __init__(self, library: Path, config: SPUConfig, operations: NDArray[np.void]):
        super().__init__(config, operations, _PE)
        self.driver = LinuxDriver(
            library, read=self._read, write=self._write, barrier=self._barrier, message=self._message
        )
        self.events = [Event(self.driver, number) for number in range(_EVENTS)]
        self.event = self.events[0]
        self.messages: list[str] = []
        self.fatal: list[int] = []
        self.abandoned = False
        self.enables = 0
        # PMBPTR_EL1 as written; the same if the buffer has been enabled since; the address of the memory of the SPU;
        # the number of bytes that have been copied from it to the AUX buffer.
        self._pointer = 0
        self._start: int | None = None
        self._first = 0
        self._collected = 0
        assert self.kernel(self.driver.probe) == 0

    # The kernel.

    def open(self, *, pages: int, snapshot: bool = False, watermark: int = 0, **attributes: int) -> int:
        """Open an event with its buffer in place of the present one. Return the result of the driver."""
        self.event.reset(snapshot=snapshot)
        return self.kernel(self.event.event_init, **attributes) or self.kernel(
            self.event.aux_setup, pages, snapshot=snapshot, watermark=watermark
        )

    def kernel(self, function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
        """Enter the kernel and call a function of the driver. Return its result."""
        self.enter()
        self.steps = []
        result = function(*arguments, **keywords)
        self.agree()
        return result

    def serve(self) -> None:
        """Take the interrupt. Check that it is deasserted then.

        It stays asserted if the driver had not enabled a buffer, has abandoned it, or continues at a pointer that is
        not aligned.
        """
        assert self.interrupt
        owned = self._enabled and not self.abandoned
        assert self.kernel(self.driver.interrupt) == (IRQReturn.HANDLED if owned else IRQReturn.NONE)
        usable = self._start is None or self._start % self.config.layout.align == 0
        if owned and usable and not self.abandoned:
            assert not self.interrupt, "the interrupt has been handled, but is still asserted"

    @property
    def _enabled(self) -> bool:
        return bool(self.spu.read(PMBLIMITR_EL1) & PMBLIMITR_EL1.pack(E=1))

    def close(self) -> None:
        """End the session. Check that all records have arrived, and that the SPU is disabled."""
        for event in self.events:
            self.kernel(event.delete)
            event.check()
        self.kernel(self.driver.remove)
        assert self.read(arch.PMSCR_EL1) == self.config.fixed(arch.PMSCR_EL1)
        assert self.read(PMBLIMITR_EL1) == self.read(PMBSR_EL1) == 0
        assert not self.interrupt
        reported = [re.fullmatch(r".* \[PMBSR=(0x[0-9a-f]{16}), .*\]", message) for message in self.messages]
        assert [match and int(match[1], 16) for match in reported] == self.fatal, self.messages

    # The SPU.

    def drain(self) -> None:
        """Drain the SPU, and copy the records to the AUX buffer."""
        super().drain()
        self._collect_records()

    def _read(self, encoding: int) -> int:
        if encoding == _ID_AA64DFR0_EL1:
            return self.config.version << _PMSVER_LSB
        register = _REGISTERS[encoding]
        value = self.read(register)
        self.steps.append(Step(f"MRS {register.name}", value))
        if register is PMBSR_EL1:
            self._note_status(value)
        return value & ~_HIGH if register is PMBPTR_EL1 else value

    def _write(self, encoding: int, value: int) -> None:
        register = _REGISTERS[encoding]
        if register in (PMBPTR_EL1, PMBLIMITR_EL1) and value:
            value |= _HIGH
        self.steps.append(Step(f"MSR {register.name}", value))
        if register is PMBPTR_EL1:
            self._pointer, self._start = value, None
        elif register is PMBLIMITR_EL1:
            self.abandoned = False
            if PMBLIMITR_EL1.unpack(value).E:
                self._enable(value & PMBLIMITR_EL1.fields["LIMIT"].mask)
        elif register is PMBSR_EL1:
            self.abandoned = self._enabled and self.read(PMBSR_EL1) & PMBSR_EL1.pack(DL=1) != 0
        self.write(register, value)

    def _note_status(self, pmbsr: int) -> None:
        """Note a status that the driver has read: it must report it by flags of AUX records or in the kernel log."""
        status = PMBSR_EL1.unpack(pmbsr)
        if status.S:
            self.event.losses += status.DL
            if (status.EC, status.MSS) != (EC.OTHER, BSC.BUFFER_FILLED):
                self.fatal.append(pmbsr)

    def _barrier(self, name: str) -> None:
        self.steps.append(Step(name))
        if name == "PSB CSYNC":
            self.drain()

    def _message(self, line: str) -> None:
        self.messages.append(line)

    def _enable(self, limit: int) -> None:
        """Check the buffer that the driver enables. It must be valid (D17.7), and hold no data that is still unread.

        A snapshot continues after a partial record, at a pointer that is not aligned. The SPU writes to memory of
        `CompiledSPU`, which has one more page on either side.
        """
        event, pointer = self.event, self._pointer
        base, size, page = event.aux_base | _HIGH, event.aux_size, self.driver.page_size
        assert base <= pointer < limit <= base + size
        assert limit % page == 0
        assert pointer % self.config.layout.align == 0 or (event.snapshot and event.losses)
        assert limit - pointer >= self.config.max_record_bytes
        if not event.snapshot:
            assert pointer - base == event.aux_head % size
            assert limit - pointer + event.aux_head - event.tail <= size
        self.spu.set_buffer(base - page, size + 2 * page)
        self.spu.memory.fill(UNWRITTEN)
        self.enables += 1
        self._first = base - page
        self._start, self._collected = pointer, 0
        self.aborted = False

    def _collect_records(self) -> None:
        """Copy new records to the AUX buffer. Check that they agree with the reference, and nothing else changed."""
        assert self.spu.counts()["strays"] == 0, "the SPU has written far outside its buffer"
        if self._start is None:
            return
        memory = self.spu.memory
        start, end = self._start - self._first, self.read(PMBPTR_EL1) - self._first
        assert start <= end
        written_end = end + self.config.max_record_bytes * self.aborted
        assert (memory[:start] == UNWRITTEN).all() and (memory[written_end:] == UNWRITTEN).all(), (
            "the SPU has written outside its records"
        )
        data = memory[self._start + self._collected - self._first : end].tobytes()
        self.checker.check_records(self._start + self._collected, data)
        ctypes.memmove((self._start + self._collected) & ~_HIGH, data, len(data))
        self.event.written += data
        self._collected += len(data)
