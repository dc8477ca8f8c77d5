"""A core for drivers: a program, System registers, barriers, memory; and the reference beside it."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spurtle.arch import PCT, PMBPTR_EL1, PMSCR_EL2, PMSIDR_EL1, Register
from spurtle.config import SPUConfig
from spurtle_sim.cosim.faults import ABORT
from spurtle_sim.model.pe import PEState
from spurtle_sim.trace.dtypes import TIMED
from tests.support.checked_engine import CheckedEngine

__all__ = ["CPU", "PAGE", "UNWRITTEN", "Core", "Step"]

PAGE = 4096
_BASE = 0xFFFF_0000_1000_0000
UNWRITTEN = 0xA5
"""What memory holds where nobody has written."""

_EL0 = PEState()


class Step(NamedTuple):
    """What software does to the SPU: MSR or MRS of a register, or a barrier."""

    name: str
    value: int = 0


class Core(CheckedEngine):
    """A program on a core with its SPU, and the reference beside it. Between two calls of `run` the kernel has the
    core. Then sampled operations may be in flight, if ends need not be told in program order; where the SPU has raised
    its interrupt none is (see `Engine.play`).

    Parameters
    ----------
    config : SPUConfig
    operations : array of TIMED
        The program, which begins again when it ends.
    pe : PEState
        In which it runs, and the kernel: that at EL1 for a program at EL0.

    Attributes
    ----------
    steps : list of Step
        What software has done to the SPU.
    collided : int
        Operations that were selected and not sampled.
    aborted : bool
        Memory has reported an asynchronous External abort.
    """

    def __init__(self, config: SPUConfig, operations: NDArray[np.void], pe: PEState):
        super().__init__(config, pe)
        self.steps: list[Step] = []
        self.collided = 0
        self.aborted = False
        self._operations = operations
        self._next = 0
        self._laps = 0
        if config.el2:  # as EL2 leaves it to its guests
            self.write(PMSCR_EL2, PMSCR_EL2.pack(PA=1, PCT=PCT.PHYSICAL))
        self.engine.set_pe(pe)

    def run(self, count: int) -> int:
        """Let so many operations pass, or fewer if the SPU raises its interrupt; how many have."""
        left = count
        while left and not self.interrupt:
            rows = self._operations[self._next : self._next + left].copy()
            rows["dispatch"] += np.uint64(self._laps * int(self._operations["dispatch"][-1] + 1))
            passed = self.engine.play(rows)
            self._follow(rows[:passed], settled=self.interrupt)
            left -= passed
            laps, self._next = divmod(self._next + passed, len(self._operations))
            self._laps += laps
        return count - left

    def enter(self) -> None:
        """What has passed has its answers before the kernel does anything; and has retired, if ends are in order."""
        if self.config.pbt:
            self.engine.play(np.zeros(0, TIMED), settle=True)
        else:
            self.engine.read(PMSIDR_EL1)
        self._follow(np.zeros(0, TIMED), settled=False)

    def drain(self) -> None:
        """PSB CSYNC: what is in flight finishes, and its records get into memory."""
        self.engine.play(np.zeros(0, TIMED), settle=True)
        self.engine.drain()
        self._follow(np.zeros(0, TIMED), settled=True)

    def _follow(self, passed: NDArray[np.void], *, settled: bool) -> None:
        """The reference is told of what has passed, and of what has become of that and of what passed before."""
        selections, _, answers = self.check_operations(passed, settled=settled)
        self.collided += int((selections["sampled"] == 0).sum())
        self.aborted |= ABORT in answers

    @property
    def interrupt(self) -> bool:
        """Level of PMBIRQ."""
        return self.engine.interrupt

    def agree(self) -> None:
        """The SPU and the reference have done the same so far."""
        assert not self.checker.mismatches, self.checker.mismatches


class CPU(Core):
    """The same with memory for models of drivers. What the SPU writes is compared with the reference record for record,
    whenever the kernel waits for it; nothing else in memory has changed then, nor in the pages on either side.

    Parameters
    ----------
    pages : int
        Of memory.

    Attributes
    ----------
    memory : range
        The addresses of it.
    written : bytearray
        What the SPU has written.
    """

    def __init__(self, config: SPUConfig, operations: NDArray[np.void], *, pe: PEState = _EL0, pages: int = 16):
        super().__init__(config, operations, pe)
        self.memory = range(_BASE, _BASE + pages * PAGE)
        self.written = bytearray()
        self.engine.set_buffer(_BASE - PAGE, (pages + 2) * PAGE)
        self.engine.memory.fill(UNWRITTEN)
        # Memory as it is to be, and where PMBPTR_EL1 was then.
        self._known = self.engine.memory.copy()
        self._pointer = 0

    def run(self, count: int) -> int:
        passed = super().run(count)
        self.enter()
        return passed

    # What the kernel does.

    def mrs(self, register: Register) -> int:
        value = self.read(register)
        self.agree()
        self.steps.append(Step(f"MRS {register.name}", value))
        return value

    def msr(self, register: Register, value: int) -> None:
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
        """What is in flight finishes, and its records get into memory."""
        self.steps.append(Step("PSB CSYNC"))
        self.drain()
        self._look()

    def load(self, start: int, end: int) -> bytes:
        """What is in memory from one address to another."""
        return self.engine.memory[self._places(start, end)].tobytes()

    def clear(self, start: int, end: int) -> None:
        """Write zeros from one address to another."""
        places = self._places(start, end)
        self.engine.memory[places] = self._known[places] = 0

    def _places(self, start: int, end: int) -> slice:
        assert self.memory.start <= start <= end <= self.memory.stop
        base = self.memory.start - PAGE
        return slice(start - base, end - base)

    def _look(self) -> None:
        """What the SPU has written is in memory: that is where its pointer has passed, and what the reference has."""
        start, end = self._pointer, self.read(PMBPTR_EL1)
        if start != end:
            data = self.load(start, end)
            self.checker.records(start, data)
            self.written += data
            places = self._places(start, end)
            self._known[places] = self.engine.memory[places]
            self._pointer = end
        self._compare_memory()
        self.agree()

    def _compare_memory(self) -> None:
        assert self.engine.counts()["strays"] == 0, "the SPU has written far outside of its memory"
        assert (self.engine.memory == self._known).all(), "the SPU has written what its pointer did not pass"
