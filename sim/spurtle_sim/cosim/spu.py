"""Compiled SPU: generated Verilog, translated by Verilator and driven in batches, without a Python call per cycle."""

import ctypes
import os
from dataclasses import astuple, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spurtle.arch import FSC_SYNCHRONOUS, Register
from spurtle.config import SPUConfig
from spurtle.support.arguments import check_range
from spurtle.support.errors import UserError

from ..model.buffer import Fault, FaultKind
from ..model.pe import PEState
from ..model.registers import Outcome
from ..native.library import declare, load
from ..trace.dtypes import FINISH, RESPONSE, SELECTION, TIMED_OPERATION
from .compiled import GeneratedModel
from .faults import ABORT, TRANSLATION, memory_faults
from .structs import PE_STATE, counts
from .waves import WaveFile, waves_library

__all__ = ["CompiledSPU", "library"]

_OUTCOMES = {
    Outcome.UNDEFINED: "is UNDEFINED",
    Outcome.TRAP_EL2: "traps to EL2",
    Outcome.TRAP_EL3: "traps to EL3",
}


def library(config: SPUConfig, waves: WaveFile | None = None) -> GeneratedModel:
    """Return the library of the compiled SPU of a configuration."""
    return waves_library(config, waves) if waves else GeneratedModel(config.module, "spu.cpp", "spu", config)


@cache
def _library(model: GeneratedModel) -> ctypes.CDLL:
    [loaded] = load([model])
    pointer, number, unsigned = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint
    functions = {
        "new": (pointer, [pointer]),
        "delete": (None, [pointer]),
        "set_buffer": (None, [pointer, pointer, number, number]),
        "set_pe": (None, [pointer, pointer]),
        "set_memory_latency": (None, [pointer, unsigned]),
        "disturb_memory": (None, [pointer, number, *4 * [unsigned]]),
        "set_faulting_range": (None, [pointer, number, number, unsigned]),
        "set_skipping": (None, [pointer, ctypes.c_bool]),
        "set_forwarding": (None, [pointer, ctypes.c_bool]),
        "play": (number, [pointer, pointer, number, ctypes.c_bool]),
        "access": (unsigned, [pointer, *4 * [unsigned], ctypes.c_bool, pointer]),
        "reset": (None, [pointer]),
        "drain": (ctypes.c_bool, [pointer]),
        "interrupt": (ctypes.c_bool, [pointer]),
        "counts": (None, [pointer, pointer]),
        **dict.fromkeys(("selections", "finishes", "responses"), (number, [pointer, pointer, number])),
    }
    if model.options:  # waveforms
        functions |= {
            "open_waves": (None, [pointer, ctypes.c_char_p, number, number]),
            "close_waves": (ctypes.c_int, [pointer]),
        }
    declare(loaded, "spu_", functions)
    return loaded


class CompiledSPU:
    """Compiled SPU, and the part of a core that reports operations to it.

    Up to `ops_per_cycle` operations pass the sampling point in a cycle. Some lanes stay empty, and which ones changes
    from cycle to cycle. In each cycle, at most one finish is reported, of the oldest operation that has finished. With
    FEAT_SPE_PBT finishes are reported in program order, and before each of them the last taken branch before its
    operation.

    Time is counted in cycles of the program: the program and its timer stop while software serves an interrupt.

    At first the program runs at EL0, Non-secure EL1 owns the Profiling Buffer, and no access is trapped.

    Parameters
    ----------
    config : SPUConfig
    waves : WaveFile or None
        File for the cycles around some samples. `close_waves` completes it.

    Raises
    ------
    UserError
        If there is no C++ compiler, if it fails, or if the cache cannot be written.
    """

    def __init__(self, config: SPUConfig, waves: WaveFile | None = None):
        self._config = config
        self._library = _library(library(config, waves))
        self._spu = self._library.spu_new(_row(PEState()).ctypes)
        if waves:
            self._library.spu_open_waves(self._spu, os.fsencode(waves.path), waves.first, waves.last)
        self._memory = np.zeros(0, np.uint8)
        # Indices are the numbers of the faults in `spu_memory.h`.
        self._faults = (None, *memory_faults(config), ABORT)

    def __del__(self) -> None:
        if hasattr(self, "_spu"):
            self._library.spu_delete(self._spu)

    def close_waves(self) -> None:
        """Complete the file of waveforms. Only for an SPU that writes one. Raises UserError if it cannot be written."""
        error = self._library.spu_close_waves(self._spu)
        if error:
            raise UserError(f"cannot write the waveforms: {os.strerror(error)}")

    def set_buffer(self, base: int, size: int) -> None:
        """Set the memory of the Profiling Buffer to `size` zero bytes from address `base`."""
        self._memory = np.zeros(size, np.uint8)
        self._library.spu_set_buffer(self._spu, self._memory.ctypes.data, base, size)

    @property
    def memory(self) -> NDArray[np.uint8]:
        """Memory of the Profiling Buffer, as it is now."""
        return self._memory

    def set_pe(self, pe: PEState) -> None:
        """Set the state of the PE in which operations pass and software accesses registers.

        The physical count of `pe` is ignored: it is the program time.
        """
        self._library.spu_set_pe(self._spu, _row(pe).ctypes)

    def set_memory_latency(self, cycles: int) -> None:
        """Set the cycles from the last beat of a record to its response, at first 1.

        Raises
        ------
        ValueError
            If it is not from 1 to 1000.
        """
        check_range("cycles", cycles, 1, 1000)
        self._library.spu_set_memory_latency(self._spu, cycles)

    def disturb_memory(self, seed: int, *, stall: int = 0, late: int = 0, fault: int = 0, abort: int = 0) -> None:
        """Make memory stall, respond late, and report faults and External aborts at random.

        Parameters
        ----------
        seed : int
            State of the random number generator, not zero.
        stall : int
            Memory accepts no beat in `stall` of 256 cycles.
        late : int
            Greatest additional delay of a response in cycles.
        fault : int
            `fault` of 256 records have a fault.
        abort : int
            An asynchronous External abort of a write since the last PSB CSYNC is reported in `abort` of 65536 cycles.
            None is reported to an SPU that ignores External aborts.
        """
        self._library.spu_disturb_memory(self._spu, seed, stall, late, fault, abort)

    def set_faulting_range(
        self, base: int, size: int, kind: FaultKind = FaultKind.STAGE_1, *, external: bool = False
    ) -> None:
        """Make each record fault that writes to one of `size` bytes from address `base`.

        The fault is a translation fault or, if `external`, a synchronous External abort. There is at most one such
        range: a call replaces the previous range, and a size of 0 removes it.

        Parameters
        ----------
        base, size : int
            Multiples of the width of the bus.
        kind : FaultKind
        external : bool

        Raises
        ------
        ValueError
            If the configuration does not have this fault.
        """
        fault = Fault(kind=kind, fsc=FSC_SYNCHRONOUS if external else TRANSLATION, external=external)
        if fault not in self._faults:
            raise ValueError(f"{self._config.name} has no {'external ' if external else ''}fault of kind {kind.name}")
        self._library.spu_set_faulting_range(self._spu, base, size, self._faults.index(fault))

    def set_skipping(self, enabled: bool) -> None:
        """Enable or disable the skipping of cycles in which no operation passes and no output changes.

        It is enabled at first. The results are the same.
        """
        self._library.spu_set_skipping(self._spu, enabled)

    def set_forwarding(self, enabled: bool) -> None:
        """Enable or disable fast-forward: operations that only decrement PMSICR_EL1 are not simulated.

        It is disabled at first. Selections, records, registers and times are the same. The PMU event SAMPLE_POP of
        operations that are not simulated is counted here, and the number of simulated cycles is smaller.
        """
        self._library.spu_set_forwarding(self._spu, enabled)

    def play(self, operations: NDArray[np.void], *, settle: bool = False) -> int:
        """Let operations pass the sampling point until all have passed or the SPU asserts its interrupt.

        The next call continues where this one ends: lanes of the last cycle may be free, answers outstanding and
        operations in flight. With `settle`, and after an interrupt, the call returns when no operation is in flight.
        The rows after an interrupt are delayed by the time for which it stopped the program.

        Parameters
        ----------
        operations : array of TIMED_OPERATION
            Contiguous.
        settle : bool

        Returns
        -------
        int
            Number of operations that have passed.
        """
        if operations.dtype != TIMED_OPERATION or not operations.flags.c_contiguous:
            raise ValueError(f"operations must be a contiguous array of TIMED_OPERATION, not of {operations.dtype}")
        return self._library.spu_play(self._spu, operations.ctypes.data, len(operations), settle)

    def read(self, register: Register) -> int:
        """Read a register as `access` does (MRS). Raises ValueError if the access is UNDEFINED or trapped."""
        return self._value(register, None)

    def write(self, register: Register, value: int) -> None:
        """Write a register as `access` does (MSR). Raises ValueError if the access is UNDEFINED or trapped."""
        self._value(register, value)

    def _value(self, register: Register, value: int | None) -> int:
        outcome, number = self.access(register, value)
        if outcome != Outcome.VALUE:
            raise ValueError(f"{'MRS' if value is None else 'MSR'} of {register.name} {_OUTCOMES[outcome]}")
        return number

    def access(self, register: Register, value: int | None = None) -> tuple[Outcome, int]:
        """Access a register: MSR, or MRS if `value` is None.

        The access is made at the program's Exception level. A program at EL0 has its kernel make the access, at EL1, or
        at EL2 if it is a register of EL2.

        Returns
        -------
        Outcome
        int
            The value read.
        """
        number = ctypes.c_uint64(value or 0)
        encoding = (register.op1, register.crn, register.crm, register.op2)
        write = value is not None
        outcome = self._library.spu_access(self._spu, *encoding, write, ctypes.byref(number))
        return Outcome(outcome), number.value

    def reset(self) -> None:
        """Reset the SPU, the core and memory: no operation is in flight, and no record is being written."""
        self._library.spu_reset(self._spu)

    def drain(self) -> None:
        """Execute PSB CSYNC. Raises RuntimeError if it does not complete."""
        if not self._library.spu_drain(self._spu):
            raise RuntimeError("the SPU did not drain")

    @property
    def interrupt(self) -> bool:
        """Level of PMBIRQ."""
        return self._library.spu_interrupt(self._spu)

    def selections(self) -> NDArray[np.void]:
        """Return the selections since the last call, in program order, as rows of `SELECTION`."""
        return self._rows(self._library.spu_selections, SELECTION)

    def finishes(self) -> NDArray[np.void]:
        """Return the finishes since the last call, in the order in which they were reported, as rows of `FINISH`."""
        return self._rows(self._library.spu_finishes, FINISH)

    def responses(self) -> list[Fault | None]:
        """Return the responses of memory since the last call, in order.

        The response to a record is its fault, or None if all of it was written. `ABORT` is an asynchronous External
        abort.
        """
        faults = (
            (self._faults[number], written)
            for number, written in self._rows(self._library.spu_responses, RESPONSE).tolist()
        )
        return [fault and replace(fault, written=written) for fault, written in faults]

    def _rows(self, function: Any, dtype: np.dtype[np.void]) -> NDArray[np.void]:
        out = np.zeros(function(self._spu, None, 0), dtype)
        function(self._spu, out.ctypes.data, len(out))
        return out

    def counts(self) -> dict[str, int]:
        """Return the counters, with the names of `structs.counts`."""
        out = np.zeros(1, counts(self._config))
        self._library.spu_counts(self._spu, out.ctypes.data)
        return dict(zip(out.dtype.names or (), out[0].item(), strict=True))


def _row(pe: PEState) -> NDArray[np.void]:
    """Return `pe` as a row of PE_STATE."""
    return np.array([astuple(pe)], PE_STATE)
