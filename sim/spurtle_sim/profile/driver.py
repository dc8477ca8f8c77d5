"""Driver of the compiled SPU: programs it, serves its interrupt and stops it, as an operating system does.

Accesses to registers have the order of the Linux driver.

Ref: DDI0487 M.a, D17.7.
"""

import numpy as np
from numpy.typing import NDArray

from spurtle import arch
from spurtle.config import SPUConfig

from ..cosim.spu import CompiledSPU
from ..cosim.waves import WaveFile
from ..model.pe import PEState
from ..perf.events import Aux, loss_flags
from ..perf.spool import Spool
from ..report.exact import ExactCounts
from ..trace.dtypes import TIMED_OPERATION
from .executed import ExecutedCounter
from .options import Sampling
from .scoreboard import Checker

__all__ = ["Driver"]

# Address and size of the Profiling Buffer. The address is one of the kernel, as in Linux.
_BASE = 0xFFFF_0000_1000_0000
_SIZE = 1 << 16


class Driver:
    """Driver that profiles EL0, with a buffer of 64 KiB. In Discard mode there is no buffer.

    Parameters
    ----------
    config : SPUConfig
    sampling : Sampling
    context : int
        CONTEXTIDR_EL1: the number of the process.
    check : bool
        Compare every selection, every record, the registers of the buffer and the PMU events with the reference model.
    spool : Spool or None
        File that stores the records. None stores them in memory.
    waves : WaveFile or None
        File for the waveforms of some samples. `stop` completes it.
    fast_forward : bool
        Simulate only the cycles around each sample. Not with `waves`.

    Attributes
    ----------
    aux : list of Aux
        One event for each time that records were read from the buffer.
    checker : Checker or None
    sampled, collided, interrupts : int
        Numbers of sampled operations, collisions and interrupts.

    Raises
    ------
    UserError
        If there is no C++ compiler, if it fails, or if the cache cannot be written.
    ValueError
        If the configuration does not have one of the filters.
    """

    def __init__(
        self,
        config: SPUConfig,
        sampling: Sampling,
        *,
        context: int,
        check: bool,
        spool: Spool | None = None,
        waves: WaveFile | None = None,
        fast_forward: bool = False,
    ):
        sampling.check(config)
        self._spu = CompiledSPU(config, waves)
        self._spu.set_forwarding(fast_forward)
        self._waves = waves
        self._spu.set_buffer(_BASE, _SIZE)
        pe = PEState(contextidr_el1=context)
        self._spu.set_pe(pe)
        self.checker = Checker(config, pe) if check else None
        self.aux: list[Aux] = []
        self._pid = self._context = context
        self._spool = spool
        self.sampled = 0
        self.collided = 0
        self.interrupts = 0
        self._executed = ExecutedCounter()

        self._discard = sampling.filters.discard

        if self._discard:  # Linux sets neither a pointer nor a limit
            self._write(arch.PMBLIMITR_EL1, arch.PMBLIMITR_EL1.pack(E=1, FM=arch.FM.DISCARD))
        else:
            self._write(arch.PMBPTR_EL1, _BASE)
            self._write(arch.PMBLIMITR_EL1, _BASE + _SIZE | arch.PMBLIMITR_EL1.pack(E=1))
        for register, value in sampling.writes(config):
            self._write(register, value)

    def switch(self, context: int) -> None:
        """Change CONTEXTIDR_EL1, if another thread runs. The operations in flight finish before."""
        if context == self._context:
            return
        self._play(np.zeros(0, TIMED_OPERATION), settle=True)
        self._context = context
        pe = PEState(contextidr_el1=context)
        self._spu.set_pe(pe)
        if self.checker:
            self.checker.switch(pe)

    def run(self, operations: NDArray[np.void]) -> None:
        """Play rows of `TIMED_OPERATION` and serve the interrupts."""
        self._executed.add(operations)
        self._play(operations, settle=False)

    def stop(self) -> None:
        """Wait for the operations in flight, stop profiling and read the rest of the buffer."""
        self._play(np.zeros(0, TIMED_OPERATION), settle=True)
        self._write(arch.PMSCR_EL1, 0)
        self._read_buffer()
        self._write(arch.PMBLIMITR_EL1, 0)
        if self._waves:
            self._spu.close_waves()
        if self.checker:
            self.checker.check_counts(self.counts())

    def counts(self) -> dict[str, int]:
        """Return the counters of `CompiledSPU.counts`."""
        return self._spu.counts()

    @property
    def exact(self) -> ExactCounts:
        """Executed operations by PC, and counts of samples."""
        counts = {"sampled": self.sampled, "collided": self.collided, "passed": self.counts()["filtrate"]}
        return ExactCounts(self._executed.counts, {**counts, "interrupts": self.interrupts})

    @property
    def data(self) -> bytes:
        """Records that were read from the buffer, in order."""
        return b"".join(bytes(aux.data) for aux in self.aux)

    @property
    def time(self) -> int:
        """Program time in cycles."""
        return self.counts()["time"]

    def _play(self, operations: NDArray[np.void], *, settle: bool) -> None:
        while True:
            passed = self._spu.play(operations, settle=settle)
            selections = self._spu.selections()
            sampled = int(selections["sampled"].sum())
            self.sampled += sampled
            self.collided += len(selections) - sampled
            finishes = self._spu.finishes()
            interrupt = self._spu.interrupt
            settled = interrupt or settle
            if settled:
                self._spu.drain()
            responses = self._spu.responses()  # without a checker too, because the compiled SPU would accumulate them
            if self.checker:
                self.checker.check_operations(operations[:passed], selections, finishes, responses, settled=settled)
            operations = operations[passed:]
            if interrupt:
                self._serve()
            elif not len(operations):
                return

    def _serve(self) -> None:
        """Serve the interrupt. PMBSR_EL1 is cleared last, which lets profiling continue."""
        self.interrupts += 1
        self._read_buffer()
        self._write(arch.PMBPTR_EL1, _BASE)
        self._write(arch.PMBSR_EL1, 0)

    def _read_buffer(self) -> None:
        """Drain the SPU and read the buffer. Raises RuntimeError if the SPU has written outside of the buffer."""
        self._spu.drain()
        if self.counts()["strays"]:
            raise RuntimeError("the SPU has written outside of the Profiling Buffer")
        flags = loss_flags(self._read(arch.PMBSR_EL1))
        end = self._read(arch.PMBPTR_EL1)
        if self._discard:
            return
        data = self._spu.memory[: end - _BASE].tobytes()
        stored = self._spool.append(data) if self._spool else data
        self.aux.append(Aux(time=self.time, pid=self._pid, tid=self._pid, data=stored, flags=flags))
        if self.checker:
            self.checker.check_records(_BASE, data)

    def _write(self, register: arch.Register, value: int) -> None:
        self._spu.write(register, value)
        if self.checker:
            self.checker.write(register, value)

    def _read(self, register: arch.Register) -> int:
        value = self._spu.read(register)
        if self.checker:
            self.checker.read(register, value)
        return value
