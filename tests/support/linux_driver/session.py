"""The Linux driver on the compiled SPU, the reference beside both, and who reads what they record."""

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
"""At most one of them is scheduled in."""

_HIGH = 0xFFFF << 48
"""Of the addresses that a kernel has; this process has a user's."""


def _encoding(op1: int, crn: int, crm: int, op2: int) -> int:
    return 3 << 19 | op1 << 16 | crn << 12 | crm << 8 | op2 << 5


_REGISTERS = {
    _encoding(register.op1, register.crn, register.crm, register.op2): register for register in arch.REGISTERS
}
_ID_AA64DFR0_EL1 = _encoding(0, 0, 5, 0)
_PMSVER_LSB = 32


class Event(PerfEvent):
    """An event, and the reader of its buffer.

    Attributes
    ----------
    written : bytearray
        The records that the SPU has put into the buffer, each one as the reference has it.
    read : bytearray
        What the reader has got.
    snapshot : bool
    tail : int
        Up to where it has been read.
    losses : int
        How often the driver has found DL.
    """

    def __init__(self, driver: LinuxDriver, number: int):
        super().__init__(driver, number)
        self.reset(snapshot=False)

    def reset(self, *, snapshot: bool) -> None:
        """There is a new event, with a new buffer."""
        self.written = bytearray()
        self.read = bytearray()
        self.snapshot = snapshot
        self.tail = 0
        self.losses = 0
        self._done = 0

    def consume(self, most: int | None = None) -> None:
        """Read what is new, or so many bytes of it, and let the kernel have the room. What lies between two AUX records
        is none of the reader's business.
        """
        upto = self.aux_head if most is None else min(self.aux_head, self.tail + most)
        for record in self.aux_records()[self._done :]:
            start, end = max(record.offset, self.tail), min(record.offset + record.size, upto)
            if start < end:
                self.read += self._buffer(start, end)
            if record.offset + record.size > upto:
                break
            self._done += 1
        self.tail = upto
        self.set_aux_tail(upto)

    def _buffer(self, start: int, end: int) -> bytes:
        """Bytes of the buffer, from and to positions that run on."""
        start, length = start % self.aux_size, end - start
        assert start + length <= self.aux_size, "an AUX record goes beyond the end of the buffer"
        return ctypes.string_at(self.aux_base + start, length)

    def check(self) -> None:
        """All that the SPU has written has arrived, once and in order. Of a snapshot it is what is in the half of the
        buffer that was begun last. What was lost is told of: only there may the last record be torn.
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
        """Of any AUX record so far."""
        flags = AuxFlag(0)
        for record in self.aux_records():
            flags |= record.flags
        return flags


def _check_records(data: bytearray, *, torn: bool) -> None:
    """Each of them is whole, the last one unless it may be torn."""
    problems = [record.problems for record in decode_records(bytes(data)) if record.problems]
    assert len(problems) <= torn, problems


class Session(Core):
    """A machine with one CPU and its SPU, from when the driver finds it until it leaves it. The program runs at EL0.

    Parameters
    ----------
    library : Path
        Of `library.build`.
    config : SPUConfig
    operations : array of TIMED_OPERATION
        The program, which begins again when it ends.

    Attributes
    ----------
    event : Event
        One of `events`, the one that is scheduled in, if any is.
    steps : list of Step
        What the last `kernel` has done to the SPU.
    messages : list of str
        Errors and warnings of the kernel.
    fatal : list of int
        What the driver has found in PMBSR_EL1 besides a full buffer: that it has to tell of.
    abandoned : bool
        The driver has lost data, and nobody has stopped the event: it does not know the interrupts of this buffer.
    driver : LinuxDriver
    enables : int
        How often the driver has given the SPU a buffer.
    aborted : bool
        Since then memory has reported an asynchronous External abort: what was on its way then may have been written
        beyond PMBPTR_EL1.
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
        # Where PMBPTR_EL1 began, if the buffer has been enabled since; the address of the memory; what has left it.
        self._pointer = 0
        self._start: int | None = None
        self._first = 0
        self._taken = 0
        assert self.kernel(self.driver.probe) == 0

    # The kernel.

    def open(self, *, pages: int, snapshot: bool = False, watermark: int = 0, **attributes: int) -> int:
        """A new event with its buffer, in place of the present one; what the driver answers."""
        self.event.reset(snapshot=snapshot)
        return self.kernel(self.event.event_init, **attributes) or self.kernel(
            self.event.aux_setup, pages, snapshot=snapshot, watermark=watermark
        )

    def kernel(self, function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
        """The kernel is entered, and calls a function of the driver; what that answers."""
        self.enter()
        self.steps = []
        answer = function(*arguments, **keywords)
        self.agree()
        return answer

    def serve(self) -> None:
        """The interrupt is taken, and the level is low when that is done: if the driver has a buffer out, and did not
        give it back where no record can be.
        """
        assert self.interrupt
        mine = self._enabled and not self.abandoned
        assert self.kernel(self.driver.interrupt) == (IRQReturn.HANDLED if mine else IRQReturn.NONE)
        usable = self._start is None or self._start % self.config.layout.align == 0
        if mine and usable and not self.abandoned:
            assert not self.interrupt, "the interrupt was handled, and is still there"

    @property
    def _enabled(self) -> bool:
        return bool(self.engine.read(PMBLIMITR_EL1) & PMBLIMITR_EL1.pack(E=1))

    def close(self) -> None:
        """Everything ends: what was recorded has arrived, and the SPU is off."""
        for event in self.events:
            self.kernel(event.delete)
            event.check()
        self.kernel(self.driver.remove)
        assert self.read(arch.PMSCR_EL1) == self.config.fixed(arch.PMSCR_EL1)
        assert self.read(PMBLIMITR_EL1) == self.read(PMBSR_EL1) == 0
        assert not self.interrupt
        told = [re.fullmatch(r".* \[PMBSR=(0x[0-9a-f]{16}), .*\]", message) for message in self.messages]
        assert [match and int(match[1], 16) for match in told] == self.fatal, self.messages

    # The SPU.

    def drain(self) -> None:
        """What has got into memory is in the AUX buffer."""
        super().drain()
        self._take()

    def _read(self, encoding: int) -> int:
        if encoding == _ID_AA64DFR0_EL1:
            return self.config.version << _PMSVER_LSB
        register = _REGISTERS[encoding]
        value = self.read(register)
        self.steps.append(Step(f"MRS {register.name}", value))
        if register is PMBSR_EL1:
            self._learn(value)
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

    def _learn(self, pmbsr: int) -> None:
        """What the driver finds there it has to tell of: to who reads the event, or in the kernel's log."""
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
        """The driver gives the SPU a buffer, as D17.7 wants it, and none of what the reader has not read. (A snapshot
        goes on behind a torn record as it is, where no record can be.) What is written comes into memory of its own
        first, with a page on either side.
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
        self.engine.set_buffer(base - page, size + 2 * page)
        self.engine.memory.fill(UNWRITTEN)
        self.enables += 1
        self._first = base - page
        self._start, self._taken = pointer, 0
        self.aborted = False

    def _take(self) -> None:
        """What the SPU has written is in the AUX buffer now; and that is all that it has written, record for record
        what the reference has.
        """
        assert self.engine.counts()["strays"] == 0, "the SPU has written far outside of its buffer"
        if self._start is None:
            return
        memory = self.engine.memory
        start, end = self._start - self._first, self.read(PMBPTR_EL1) - self._first
        assert start <= end
        behind = end + self.config.max_record_bytes * self.aborted
        assert (memory[:start] == UNWRITTEN).all() and (memory[behind:] == UNWRITTEN).all(), "written outside"
        data = memory[self._start + self._taken - self._first : end].tobytes()
        self.checker.check_records(self._start + self._taken, data)
        ctypes.memmove((self._start + self._taken) & ~_HIGH, data, len(data))
        self.event.written += data
        self._taken += len(data)
