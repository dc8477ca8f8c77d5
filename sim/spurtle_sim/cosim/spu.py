"""The compiled SPU: its generated Verilog, translated by Verilator and driven in batches, no Python call per cycle."""

import ctypes
from dataclasses import astuple, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spurtle.arch import FSC_SYNCHRONOUS, Register
from spurtle.config import SPUConfig

from ..model.buffer import Fault, FaultKind
from ..model.pe import PEState
from ..model.registers import Outcome
from ..native.library import declare, load
from ..trace.dtypes import FINISH, RESPONSE, SELECTION, TIMED_OPERATION
from .compiled import GeneratedModel
from .faults import ABORT, TRANSLATION, memory_faults
from .structs import PE_STATE, counts

__all__ = ["CompiledSPU", "library"]

_OUTCOMES = {
    Outcome.UNDEFINED: "is UNDEFINED",
    Outcome.TRAP_EL2: "traps to EL2",
    Outcome.TRAP_EL3: "traps to EL3",
}


def library(config: SPUConfig) -> GeneratedModel:
    """Return the library of the compiled SPU of a configuration."""
    return GeneratedModel(config.module, "spu.cpp", "spu", config)


@cache
def _library(config: SPUConfig) -> ctypes.CDLL:
    [loaded] = load([library(config)])
    pointer, number, unsigned = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint
    functions = {
        "new": (pointer, [pointer]),
        "delete": (None, [pointer]),
        "set_buffer": (None, [pointer, pointer, number, number]),
        "set_pe": (None, [pointer, pointer]),
        "disturb_memory": (None, [pointer, number, *4 * [unsigned]]),
        "set_faulting_range": (None, [pointer, number, number, unsigned]),
        "set_skipping": (None, [pointer, ctypes.c_bool]),
        "play": (number, [pointer, pointer, number, ctypes.c_bool]),
        "access": (unsigned, [pointer, *4 * [unsigned], ctypes.c_bool, pointer]),
        "reset": (None, [pointer]),
        "drain": (ctypes.c_bool, [pointer]),
        "interrupt": (ctypes.c_bool, [pointer]),
        "counts": (None, [pointer, pointer]),
        **dict.fromkeys(("selections", "finishes", "responses"), (number, [pointer, pointer, number])),
    }
    declare(loaded, "spu_", functions)
    return loaded


class CompiledSPU:
    """An SPU that plays operations, and the part of a core that reports them: up to `ops_per_cycle` pass in a cycle,
    lanes stay empty here and there, and one finish is told in a cycle, that of the oldest operation that has finished.
    With FEAT_SPE_PBT ends are told in program order, and before each the taken branch that came before its operation.

    Time is counted in cycles of the program: while software serves an interrupt, the program and its timer stand still.

    At first the program runs at EL0, Non-secure EL1 owns the Profiling Buffer, and nothing traps.

    Parameters
    ----------
    config : SPUConfig

    Raises
    ------
    UserError
        If there is no C++ compiler, it fails, or the cache cannot be written.
    """

    def __init__(self, config: SPUConfig):
        self._config = config
        self._library = _library(config)
        self._spu = self._library.spu_new(_row(PEState()).ctypes)
        self._memory = np.zeros(0, np.uint8)
        # In the order of the numbers that the compiled part has for them.
        self._faults = (None, *memory_faults(config), ABORT)

    def __del__(self) -> None:
        if hasattr(self, "_spu"):
            self._library.spu_delete(self._spu)

    def set_buffer(self, base: int, size: int) -> None:
        """Memory for the Profiling Buffer: `size` zero bytes from address `base`."""
        self._memory = np.zeros(size, np.uint8)
        self._library.spu_set_buffer(self._spu, self._memory.ctypes.data, base, size)

    @property
    def memory(self) -> NDArray[np.uint8]:
        """The Profiling Buffer's memory, as it is now."""
        return self._memory

    def set_pe(self, pe: PEState) -> None:
        """State of the PE from now on, in which operations play and software accesses registers. The system counter
        is driven by the compiled SPU.
        """
        self._library.spu_set_pe(self._spu, _row(pe).ctypes)

    def disturb_memory(self, seed: int, *, stall: int = 0, late: int = 0, fault: int = 0, abort: int = 0) -> None:
        """From now on memory takes no beat in `stall` of 256 cycles, answers up to `late` cycles late, and meets a
        fault in `fault` of 256 records, by random numbers from `seed`, which is not zero. In `abort` of 65536 cycles it
        tells of an asynchronous External abort on some write since the last PSB CSYNC, unless the SPU ignores those.
        """
        self._library.spu_disturb_memory(self._spu, seed, stall, late, fault, abort)

    def set_faulting_range(
        self, base: int, size: int, kind: FaultKind = FaultKind.STAGE_1, *, external: bool = False
    ) -> None:
        """From now on a record meets a fault where it touches one of `size` bytes from address `base`, both multiples
        of the bus's width: a translation fault or, if `external`, a synchronous External abort. There is one hole at
        most, and none without a size.

        Raises ValueError if the SPU knows no such fault.
        """
        fault = Fault(kind=kind, fsc=FSC_SYNCHRONOUS if external else TRANSLATION, external=external)
        if fault not in self._faults:
            raise ValueError(f"{self._config.name} has no {'external ' if external else ''}fault of kind {kind.name}")
        self._library.spu_set_faulting_range(self._spu, base, size, self._faults.index(fault))

    def set_skipping(self, enabled: bool) -> None:
        """Choose whether cycles are left out in which no operation passes and nothing that can be seen changes. They
        are, unless this says otherwise; the results are the same.
        """
        self._library.spu_set_skipping(self._spu, enabled)

    def play(self, operations: NDArray[np.void], *, settle: bool = False) -> int:
        """Play rows of `TIMED_OPERATION` and return how many have passed the sampling point: all, or those before the
        SPU raises its interrupt.

        The next call goes on where this one ends: with lanes of the last cycle still free, answers outstanding and
        operations in flight; unless `settle` says that there is none. An interrupt waits until all has finished. The
        rows that follow are put off by as long as it held up the program.
        """
        if operations.dtype != TIMED_OPERATION or not operations.flags.c_contiguous:
            raise ValueError(f"operations must be a contiguous array of TIMED_OPERATION, not of {operations.dtype}")
        return self._library.spu_play(self._spu, operations.ctypes.data, len(operations), settle)

    def read(self, register: Register) -> int:
        """MRS, as `access`. Raises ValueError if it is UNDEFINED or trapped."""
        return self._value(register, None)

    def write(self, register: Register, value: int) -> None:
        """MSR, as `access`. Raises ValueError if it is UNDEFINED or trapped."""
        self._value(register, value)

    def _value(self, register: Register, value: int | None) -> int:
        outcome, number = self.access(register, value)
        if outcome != Outcome.VALUE:
            raise ValueError(f"{'MRS' if value is None else 'MSR'} of {register.name} {_OUTCOMES[outcome]}")
        return number

    def access(self, register: Register, value: int | None = None) -> tuple[Outcome, int]:
        """MSR, or MRS without a value: what it comes to, and what has been read.

        It is made at the program's Exception level. At EL0 it is the kernel's, at EL1, or at EL2 if the register is one
        of EL2.
        """
        number = ctypes.c_uint64(value or 0)
        encoding = (register.op1, register.crn, register.crm, register.op2)
        write = value is not None
        outcome = self._library.spu_access(self._spu, *encoding, write, ctypes.byref(number))
        return Outcome(outcome), number.value

    def reset(self) -> None:
        """Reset the SPU, and the core: nothing is in flight."""
        self._library.spu_reset(self._spu)

    def drain(self) -> None:
        """PSB CSYNC. Raises RuntimeError if the SPU does not answer."""
        if not self._library.spu_drain(self._spu):
            raise RuntimeError("the SPU did not drain within 1000 cycles")

    @property
    def interrupt(self) -> bool:
        """Level of PMBIRQ."""
        return self._library.spu_interrupt(self._spu)

    def selections(self) -> NDArray[np.void]:
        """What was selected since the last call, in program order: of `SELECTION`."""
        return self._rows(self._library.spu_selections, SELECTION)

    def finishes(self) -> NDArray[np.void]:
        """What has finished since the last call, in that order: of `FINISH`."""
        return self._rows(self._library.spu_finishes, FINISH)

    def responses(self) -> list[Fault | None]:
        """What memory has said since the last call, in order: of each record what it met, None if it is all there; and
        `ABORT` of an asynchronous External abort.
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
        """Return what was counted so far. See `structs.counts`."""
        out = np.zeros(1, counts(self._config))
        self._library.spu_counts(self._spu, out.ctypes.data)
        return dict(zip(out.dtype.names or (), out[0].item(), strict=True))


def _row(pe: PEState) -> NDArray[np.void]:
    """Return `pe` as a row of PE_STATE."""
    return np.array([astuple(pe)], PE_STATE)
