"""What an operating system's driver does with the SPU: programs it, serves its interrupt, stops it."""

# Ref: DDI0487 M.a, D17.7; the order of accesses is that of the Linux driver.

import numpy as np
from numpy.typing import NDArray

from spurtle import arch
from spurtle.config import SPUConfig

from ..cosim.spu import CompiledSPU
from ..model.pe import PEState
from ..perf.events import Aux, loss_flags
from ..perf.spool import Spool
from ..trace.dtypes import TIMED_OPERATION
from .options import Sampling
from .scoreboard import Checker

__all__ = ["Driver"]

_BASE = 0xFFFF_0000_1000_0000
_SIZE = 1 << 16


class Driver:
    """Profiles EL0 in a buffer of 64 KiB; or in none, in Discard mode.

    Parameters
    ----------
    config : SPUConfig
    sampling : Sampling
    context : int
        CONTEXTIDR_EL1: the process.
    check : bool
        Compare every selection, every record, the buffer's registers and the PMU events with the reference.
    spool : Spool or None
        Where the records are kept; None for memory.

    Raises
    ------
    ValueError
        If the configuration does not have one of the filters.

    Attributes
    ----------
    aux : list of Aux
        The records that have been taken from the buffer, each time that they were.
    checker : Checker or None
    sampled, collided, interrupts : int
        How often each has happened.
    """

    def __init__(
        self,
        config: SPUConfig,
        sampling: Sampling,
        *,
        context: int,
        check: bool,
        spool: Spool | None = None,
    ):
        sampling.check(config)
        self._spu = CompiledSPU(config)
        self._spu.set_buffer(_BASE, _SIZE)
        pe = PEState(contextidr_el1=context)
        self._spu.set_pe(pe)
        self.checker = Checker(config, pe) if check else None
        self.aux: list[Aux] = []
        self._pid = context
        self._spool = spool
        self.sampled = 0
        self.collided = 0
        self.interrupts = 0

        self._discard = sampling.filters.discard

        if self._discard:  # as Linux: neither a pointer nor a limit
            self._write(arch.PMBLIMITR_EL1, arch.PMBLIMITR_EL1.pack(E=1, FM=arch.FM.DISCARD))
        else:
            self._write(arch.PMBPTR_EL1, _BASE)
            self._write(arch.PMBLIMITR_EL1, _BASE + _SIZE | arch.PMBLIMITR_EL1.pack(E=1))
        for register, value in sampling.writes(config):
            self._write(register, value)

    def run(self, operations: NDArray[np.void]) -> None:
        """Let rows of `TIMED_OPERATION` pass, and serve the interrupts that they raise."""
        self._play(operations, settle=False)

    def stop(self) -> None:
        """Wait for the operations in flight, stop profiling and take what is in the buffer."""
        self._play(np.zeros(0, TIMED_OPERATION), settle=True)
        self._write(arch.PMSCR_EL1, 0)
        self._take()
        self._write(arch.PMBLIMITR_EL1, 0)
        if self.checker:
            self.checker.check_counts(self.counts())

    def counts(self) -> dict[str, int]:
        """See `CompiledSPU.counts`."""
        return self._spu.counts()

    @property
    def data(self) -> bytes:
        """The records that have been taken from the buffer, in order."""
        return b"".join(bytes(aux.data) for aux in self.aux)

    @property
    def time(self) -> int:
        """Program time, in cycles."""
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
            answers = self._spu.responses()  # taken without a checker as well: the compiled SPU would keep them all
            if self.checker:
                self.checker.check_operations(operations[:passed], selections, finishes, answers, settled=settled)
            operations = operations[passed:]
            if interrupt:
                self._serve()
            elif not len(operations):
                return

    def _serve(self) -> None:
        """The interrupt handler. Clearing PMBSR_EL1 as the last act lets profiling go on."""
        self.interrupts += 1
        self._take()
        self._write(arch.PMBPTR_EL1, _BASE)
        self._write(arch.PMBSR_EL1, 0)

    def _take(self) -> None:
        """Drain the SPU and take what it has written. Raises RuntimeError if some of that is outside of the buffer."""
        self._spu.drain()
        if self.counts()["strays"]:
            raise RuntimeError("the SPU has written outside of its buffer")
        flags = loss_flags(self._read(arch.PMBSR_EL1))
        end = self._read(arch.PMBPTR_EL1)
        if self._discard:
            return
        data = self._spu.memory[: end - _BASE].tobytes()
        kept = self._spool.keep(data) if self._spool else data
        self.aux.append(Aux(time=self.time, pid=self._pid, tid=self._pid, data=kept, flags=flags))
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
