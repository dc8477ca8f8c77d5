"""The Profiling Buffer: addresses of records, buffer full, and buffer management events.

`end`, `abandon`, `abort`, `stop_if_full` and `collide` also run on z3 values. They therefore use only `if`,
comparisons, sums, bit operations and shifts by constants.

Ref: DDI0487 M.a, D17.5.5 (Discard mode), D17.7, D24.7 (PMBSR_EL1).
"""

from dataclasses import dataclass
from enum import IntEnum, unique

from spurtle.arch import BSC, EC, FSC_ASYNCHRONOUS, PMBLIMITR_EL1, PMBSR_EL1
from spurtle.config import SPUConfig

from .control import buffer_enabled, discard_mode
from .registers import PMBSR_COLL, PMBSR_S, Registers

__all__ = ["Buffer", "Fault", "FaultKind", "fault_kinds"]

_EA = PMBSR_EL1.fields["EA"].mask
_DL = PMBSR_EL1.fields["DL"].mask
# Fields of PMBSR_EL1 that a buffer management event does not clear.
_STICKY = PMBSR_COLL | _EA | _DL


@unique
class FaultKind(IntEnum):
    """Cause of a fault on a write to the Profiling Buffer, with the value of PMBSR_EL1.EC that reports it."""

    NOT_ALLOWED = EC.OTHER
    """The owner is not allowed to access memory at the address."""
    GRANULE_PROTECTION = EC.GRANULE_PROTECTION
    STAGE_1 = EC.STAGE_1
    STAGE_2 = EC.STAGE_2


def fault_kinds(config: SPUConfig) -> list[FaultKind]:
    """Return the kinds of fault that can occur: Granule Protection Checks require FEAT_RME."""
    return [kind for kind in FaultKind if config.rme or kind != FaultKind.GRANULE_PROTECTION]


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Fault on the write of a record.

    Attributes
    ----------
    kind : FaultKind
        Cause of the fault.
    written : int
        Number of bytes of the record that were written before the fault.
    fsc : int
        Fault status code of a Data Abort at stage 1 or stage 2.
    flags : int
        Bits of PMBSR_EL1.MSS2 of a Data Abort, at their bit positions in PMBSR_EL1.
    external : bool
        Whether the fault is a synchronous External abort.
    """

    kind: FaultKind
    written: int = 0
    fsc: int = 0
    flags: int = 0
    external: bool = False


class Buffer:
    """The Profiling Buffer, as PMBPTR_EL1, PMBLIMITR_EL1 and PMBSR_EL1 control it.

    Parameters
    ----------
    config : SPUConfig
        Configuration of the SPU.
    registers : Registers
        System registers that the buffer reads and writes.

    Attributes
    ----------
    memory : dict of int to bytes
        The last record written at each address. A record that later records of another size have partly overwritten
        remains in the dictionary.
    """

    def __init__(self, config: SPUConfig, registers: Registers):
        self._config = config
        self._registers = registers
        self.memory: dict[int, bytes] = {}

    def write(self, record: bytes, fault: Fault | None = None) -> bool:
        """Write one record at PMBPTR_EL1, and return whether the complete record is in the buffer.

        Profiling stops after a fault, and when the longest record no longer fits. The record is discarded if the buffer
        is disabled, if profiling is stopped (D17.4), and in Discard mode.
        """
        if not self._writes_records():
            self.abandon(fault)
            return False
        written = record if fault is None else record[: fault.written]
        if written:
            self.memory[self._registers.PMBPTR_EL1] = written
        self.end(len(record), fault)
        self.stop_if_full()
        return fault is None

    def end(self, length: int, fault: Fault | None = None) -> None:
        """End the write of a record of `length` bytes at PMBPTR_EL1, with or without a fault.

        PMBPTR_EL1 becomes the address of the first byte that was not written. A fault sets PMBSR_EL1.DL if that address
        is within a record, or if the access is not allowed.
        """
        if fault is None:
            self._registers.PMBPTR_EL1 += length
            return
        self._registers.PMBPTR_EL1 += fault.written
        data_abort = fault.kind == FaultKind.STAGE_1 or fault.kind == FaultKind.STAGE_2
        self._stop(fault.kind, fault.fsc | fault.flags if data_abort else 0)
        if fault.written != 0 or fault.kind == FaultKind.NOT_ALLOWED:
            self._registers.PMBSR_EL1 |= _DL
        if fault.external:
            self._registers.PMBSR_EL1 |= _EA

    def abandon(self, fault: Fault | None = None) -> None:
        """Abandon a record. A fault on it is not reported, except that an External abort sets PMBSR_EL1.EA.

        A record is abandoned if, since its write started, profiling has stopped or software has written PMBPTR_EL1 or
        PMBLIMITR_EL1.
        """
        if fault is not None and fault.external:
            self._registers.PMBSR_EL1 |= _EA

    def abort(self) -> None:
        """Report an asynchronous External abort. The write that caused it is unknown, so PMBSR_EL1.DL is set too."""
        self._stop(EC.STAGE_1, FSC_ASYNCHRONOUS)
        self._registers.PMBSR_EL1 |= _EA | _DL

    def stop_if_full(self) -> None:
        """Stop profiling with BSC = 1 (buffer filled) if the longest record does not fit.

        Call this after each record and after each write of a System register.

        The effect of an invalid pointer is CONSTRAINED UNPREDICTABLE (R_PGGHS). The model treats it as a full buffer:
        no address outside the buffer is ever written. In Discard mode the pointer is ignored and the buffer is never
        full.
        """
        if self._writes_records() and not self._has_space():
            self._stop(EC.OTHER, BSC.BUFFER_FILLED)

    def collide(self) -> None:
        """Report a sample collision: a selected operation was not sampled, because no slot was free (D17.3.7)."""
        self._registers.PMBSR_EL1 |= PMBSR_COLL

    def _stop(self, ec: int, syndrome: int) -> None:
        """Report a buffer management event, unless PMBSR_EL1.S is set: the syndrome of the first event is kept.

        Parameters
        ----------
        ec : int
            Event class.
        syndrome : int
            MSS and MSS2, at their bit positions in PMBSR_EL1.
        """
        status = self._registers.PMBSR_EL1
        if status & PMBSR_S == 0:
            self._registers.PMBSR_EL1 = (status & _STICKY) | PMBSR_S | ec << PMBSR_EL1.fields["EC"].lsb | syndrome

    def _writes_records(self) -> bool:
        """Return whether records are written to the buffer."""
        return buffer_enabled(self._registers) and not discard_mode(self._registers)

    def _has_space(self) -> bool:
        """Return whether PMBPTR_EL1 is valid (D17.7) and the longest record fits below the limit.

        A valid pointer is aligned, and has the bits [63:56] of the limit. The sum of pointer and size is not
        truncated to 64 bits.
        """
        size = self._config.max_record_bytes
        pointer = self._registers.PMBPTR_EL1
        limit = self._registers.PMBLIMITR_EL1 & PMBLIMITR_EL1.fields["LIMIT"].mask
        aligned = pointer & self._config.layout.align - 1 == 0
        return aligned and pointer >> 56 == limit >> 56 and pointer + size <= limit
