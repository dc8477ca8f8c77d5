"""The Profiling Buffer: where a record goes, when the buffer is full, and what becomes of faults."""

# Ref: DDI0487 M.a, D17.7, D24.7 (PMBSR_EL1); D17.5.5 for Discard mode. `end`, `abandon`, `abort`, `stop_if_full` and
# `collide` also run over z3 values: nothing but `if`, comparisons, sums, bit operations and shifts by constants.

from dataclasses import dataclass
from enum import IntEnum, unique

from spurtle.arch import BSC, EC, FSC_ASYNCHRONOUS, PMBLIMITR_EL1, PMBSR_EL1
from spurtle.config import SPUConfig

from .control import buffer_enabled, discard_mode
from .registers import PMBSR_COLL, PMBSR_S, Registers

__all__ = ["Buffer", "Fault", "FaultKind", "fault_kinds"]

_EA = PMBSR_EL1.fields["EA"].mask
_DL = PMBSR_EL1.fields["DL"].mask
# What a buffer management event leaves as it was.
_STICKY = PMBSR_COLL | _EA | _DL


@unique
class FaultKind(IntEnum):
    """Why a write to the Profiling Buffer could not be made: what PMBSR_EL1.EC says of it."""

    NOT_ALLOWED = EC.OTHER
    """The owner may not access memory there."""
    GRANULE_PROTECTION = EC.GRANULE_PROTECTION
    STAGE_1 = EC.STAGE_1
    STAGE_2 = EC.STAGE_2


def fault_kinds(config: SPUConfig) -> list[FaultKind]:
    """Those that there are: Granule Protection Checks come with FEAT_RME."""
    return [kind for kind in FaultKind if config.rme or kind != FaultKind.GRANULE_PROTECTION]


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What the write of a record met.

    Attributes
    ----------
    kind : FaultKind
    written : int
        Bytes of the record that were written before it.
    fsc : int
        Fault status code of a Data Abort, at stage 1 or at stage 2.
    flags : int
        Bits of PMBSR_EL1.MSS2 of a Data Abort, in their places in PMBSR_EL1.
    external : bool
        It is a synchronous External abort.
    """

    kind: FaultKind
    written: int = 0
    fsc: int = 0
    flags: int = 0
    external: bool = False


class Buffer:
    """The Profiling Buffer behind PMBPTR_EL1, PMBLIMITR_EL1 and PMBSR_EL1.

    Parameters
    ----------
    config : SPUConfig
    registers : Registers
        The registers that it reads and writes.

    Attributes
    ----------
    memory : dict of int to bytes
        What was written: the record at each address, the last if there were several. Where records differ in size, one
        that others have overwritten in part is still here.
    """

    def __init__(self, config: SPUConfig, registers: Registers):
        self._config = config
        self._registers = registers
        self.memory: dict[int, bytes] = {}

    def write(self, record: bytes, fault: Fault | None = None) -> bool:
        """Write one record at PMBPTR_EL1, and stop if it was the last that fits, or met a fault. False if it is not in
        the buffer as a whole.

        It is discarded if the buffer is disabled or stopped (D17.4), and in Discard mode.
        """
        if not self._fills():
            self.abandon(fault)
            return False
        written = record if fault is None else record[: fault.written]
        if written:
            self.memory[self._registers.PMBPTR_EL1] = written
        self.end(len(record), fault)
        self.stop_if_full()
        return fault is None

    def end(self, length: int, fault: Fault | None = None) -> None:
        """A record of so many bytes, which was begun at PMBPTR_EL1, is in memory, or has met a fault.

        PMBPTR_EL1 is then the first address that was not written, and DL says whether that is within a record.
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
        """A record that was begun ends when the buffer has stopped, or PMBPTR_EL1 or PMBLIMITR_EL1 were written since:
        nothing is heard of it but an External abort.
        """
        if fault is not None and fault.external:
            self._registers.PMBSR_EL1 |= _EA

    def abort(self) -> None:
        """An asynchronous External abort on some write. Which one is not known: data may be lost."""
        self._stop(EC.STAGE_1, FSC_ASYNCHRONOUS)
        self._registers.PMBSR_EL1 |= _EA | _DL

    def stop_if_full(self) -> None:
        """Stop with BSC = 1 if the longest record does not fit: to be called after each record and each register write.

        R_PGGHS leaves open what a bad pointer does: it counts as a full buffer, and nothing is ever written outside.
        In Discard mode the pointer is ignored, and no buffer is full.
        """
        if self._fills() and not self._has_room():
            self._stop(EC.OTHER, BSC.BUFFER_FILLED)

    def collide(self) -> None:
        """A selected operation was not sampled, because too many were in flight (D17.3.7)."""
        self._registers.PMBSR_EL1 |= PMBSR_COLL

    def _stop(self, ec: int, syndrome: int) -> None:
        """A buffer management event. One that finds S set leaves the syndrome of the first.

        Parameters
        ----------
        syndrome : int
            MSS and MSS2, in their places.
        """
        status = self._registers.PMBSR_EL1
        if status & PMBSR_S == 0:
            self._registers.PMBSR_EL1 = (status & _STICKY) | PMBSR_S | ec << PMBSR_EL1.fields["EC"].lsb | syndrome

    def _fills(self) -> bool:
        """Records are written."""
        return buffer_enabled(self._registers) and not discard_mode(self._registers)

    def _has_room(self) -> bool:
        """PMBPTR_EL1 is as software must set it (D17.7), and the longest record fits below the limit. No sum wraps."""
        size = self._config.max_record_bytes
        pointer = self._registers.PMBPTR_EL1
        limit = self._registers.PMBLIMITR_EL1 & PMBLIMITR_EL1.fields["LIMIT"].mask
        aligned = pointer & self._config.layout.align - 1 == 0
        return aligned and pointer >> 56 == limit >> 56 and pointer + size <= limit
