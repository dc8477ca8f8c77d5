"""Cores for driver models: a program, System registers, barriers and memory, checked by the reference."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spurtle.arch import PCT, PMBPTR_EL1, PMSCR_EL2, PMSIDR_EL1, Register
from spurtle.config import SPUConfig
from spurtle_sim.cosim.faults import ABORT
from spurtle_sim.model.pe import PEState
from spurtle_sim.trace.dtypes import TIMED_OPERATION
from tests.support.checked_spu import CheckedSPU

__all__ = ["CPU", "PAGE", "UNWRITTEN", "Core", "Step"]

PAGE = 4096
_BASE = 0xFFFF_0000_1000_0000
UNWRITTEN = 0xA5
"""Content of a byte of memory that has not been written."""

_EL0 = PEState()


class Step(NamedTuple):
    """An instruction of software: MSR or MRS of a register of the SPU, or a barrier."""

    name: str
    value: int = 0


class Core(CheckedSPU):
    """A core with an SPU that executes a program; the reference checks the SPU.

    The kernel executes between two calls of `run`. Sampled operations may be in flight then, unless the configuration
    has previous branch targets, for which operations finish in program order. None is in flight after the SPU has
    raised its interrupt (see `CompiledSPU.play`).

    Parameters
    ----------
    config : SPUConfig
    operations : array of TIMED_OPERATION
        The program. It starts again when it ends.
    pe : PEState
        The state of the PE in which the program executes. The kernel executes in it as well, but at EL1 if the program
        executes at EL0.

    Attributes
    ----------
    steps : list of Step
        Instructions of software that access the SPU, in program order.
    collided : int
        Number of operations that were selected and not sampled.
    aborted : bool
        Whether memory has reported an asynchronous External abort.
    """

    def __init__(self, config: SPUConfig, operations: NDArray[np.void], pe: PEState):
        super().__init__(config, pe)
        self.steps: list[Step] = []
        self.collided = 0
        self.aborted = False
        self._operations = operations
        self._next = 0
        self._laps = 0
        if config.el2:  # as a hypervisor sets it for its guests
            self.write(PMSCR_EL2, PMSCR_EL2.pack(PA=1, PCT=PCT.PHYSICAL))
        self.spu.set_pe(pe)

    def run(self, count: int) -> int:
        """Execute `count` operations, or fewer if the SPU raises its interrupt. Return the number executed."""
        remaining = count
        while remaining and not self.interrupt:
            rows = self._operations[self._next : self._next + remaining].copy()
            rows["dispatch"] += np.uint64(self._laps * int(self._operations["dispatch"][-1] + 1))
            passed = self.spu.play(rows)
            self._follow(rows[:passed], settled=self.interrupt)
            remaining -= passed
            laps, self._next = divmod(self._next + passed, len(self._operations))
            self._laps += laps
        return count - remaining

    def enter(self) -> None:
        """Enter the kernel: the SPU has answered all operations that have passed.

        With previous branch targets, for which operations finish in program order, all have finished as well.
        """
        if self.config.pbt:
            self.spu.play(np.zeros(0, TIMED_OPERATION), settle=True)
        else:
            self.spu.read(PMSIDR_EL1)
        self._follow(np.zeros(0, TIMED_OPERATION), settled=False)

    def drain(self) -> None:
        """Execute PSB CSYNC: operations in flight finish, and their records are written to memory."""
        self.spu.play(np.zeros(0, TIMED_OPERATION), settle=True)
        self.spu.drain()
        self._follow(np.zeros(0, TIMED_OPERATION), settled=True)

    def _follow(self, passed: NDArray[np.void], *, settled: bool) -> None:
        """Check operations that have passed, and the outcomes that the SPU has reported since the last call."""
        selections, _, responses = self.check_operations(passed, settled=settled)
        self.collided += int((selections["sampled"] == 0).sum())
        self.aborted |= ABORT in responses

    @property
    def interrupt(self) -> bool:
        """Level of PMBIRQ."""
        return self.spu.interrupt

    def agree(self) -> None:
        """Check that the SPU and the reference have agreed so far."""
        assert not self.checker.mismatches, self.checker.mismatches


class CPU(Core):
    """A core with memory, for driver models.

    Each `psb_csync` compares the records that the SPU has written with the reference. It checks that nothing
    else has changed in memory and in the pages on either side.

    Parameters
    ----------
    pages : int
        Size of memory in pages.

    Attributes
    ----------
    memory : range
        Addresses of memory.
    written : bytearray
        Records that the SPU has written.
    """

    def __init__(self, config: SPUConfig, operations: NDArray[np.void], *, pe: PEState = _EL0, pages: int = 16):
        super().__init__(config, operations, pe)
        self.memory = range(_BASE, _BASE + pages * PAGE)
        self.written = bytearray()
        self.spu.set_buffer(_BASE - PAGE, (pages + 2) * PAGE)
        self.spu.memory.fill(UNWRITTEN)
        # The expected content of memory, and the PMBPTR_EL1 up to which it was compared.
        self._expected = self.spu.memory.copy()
        self._pointer = 0

    def run(self, count: int) -> int:
        passed = super().run(count)
        self.enter()
        return passed

    # Instructions of the kernel.

    def mrs(self, register: Register) -> int:
        """Read a register and check that the SPU and the reference agree."""
        value = self.read(register)
        self.agree()
        self.steps.append(Step(f"MRS {register.name}", value))
        return value

    def msr(self, register: Register, value: int) -> None:
        """Write a register."""
        self.steps.append(Step(f"MSR {register.name}", value))
        self.write(register, value)
        if register is PMBPTR_EL1:
            self._compare_memory()
            self._pointer = self.read(PMBPTR_EL1)

    def isb(self) -> None:
        self.steps.append(Step("ISB"))

    def dsb(self) -> None:
        self.steps.append(Step("DSB"))

    def psb_csync(self) -> None:
        """Write the records of the operations in flight to memory, and check them."""
        self.steps.append(Step("PSB CSYNC"))
        self.drain()
        self._collect_records()

    def load(self, start: int, end: int) -> bytes:
        """Return the bytes of memory from `start` up to `end`."""
        return self.spu.memory[self._slice(start, end)].tobytes()

    def clear(self, start: int, end: int) -> None:
        """Write zeros from `start` up to `end`."""
        span = self._slice(start, end)
        self.spu.memory[span] = self._expected[span] = 0

    def _slice(self, start: int, end: int) -> slice:
        assert self.memory.start <= start <= end <= self.memory.stop
        base = self.memory.start - PAGE
        return slice(start - base, end - base)

    def _collect_records(self) -> None:
        """Check the records that the SPU has written: those between the last pointer and PMBPTR_EL1."""
        start, end = self._pointer, self.read(PMBPTR_EL1)
        if start != end:
            data = self.load(start, end)
            self.checker.check_records(start, data)
            self.written += data
            span = self._slice(start, end)
            self._expected[span] = self.spu.memory[span]
            self._pointer = end
        self._compare_memory()
        self.agree()

    def _compare_memory(self) -> None:
        assert self.spu.counts()["strays"] == 0, "the SPU has written far outside its memory"
        assert (self.spu.memory == self._expected).all(), "the SPU has written bytes that its pointer did not pass"
