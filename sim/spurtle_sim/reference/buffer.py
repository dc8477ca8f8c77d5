"""The Profiling Buffer: where a record goes, and when the buffer is full."""

# Ref: DDI0487 M.a, D17.7; D17.5.5 for Discard mode.

from spurtle.arch import BSC, PMBLIMITR_EL1, PMBSR_EL1
from spurtle.config import SPUConfig

from .control import buffer_enabled, discard_mode
from .registers import PMBSR_COLL, Registers

__all__ = ["Buffer"]

# What a buffer management event leaves as it was.
_STICKY = sum(PMBSR_EL1.fields[name].mask for name in ("COLL", "EA", "DL"))


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

    def write(self, record: bytes) -> bool:
        """Write one record at PMBPTR_EL1, and stop if it was the last that fits. False if it is discarded.

        It is discarded if the buffer is disabled or stopped (D17.4), and in Discard mode.
        """
        if not self._fills():
            return False
        self.memory[self._registers.PMBPTR_EL1] = record
        self._registers.PMBPTR_EL1 += len(record)
        self.stop_if_full()
        return True

    def stop_if_full(self) -> None:
        """Stop with BSC = 1 if the longest record does not fit: to be called after each record and each register write.

        R_PGGHS leaves open what a bad pointer does: it counts as a full buffer, and nothing is ever written outside.
        In Discard mode the pointer is ignored, and no buffer is full.
        """
        if self._fills() and not self._has_room():
            sticky = self._registers.PMBSR_EL1 & _STICKY
            self._registers.PMBSR_EL1 = sticky | PMBSR_EL1.pack(S=1, EC=0, MSS=BSC.BUFFER_FILLED)

    def collide(self) -> None:
        """A selected operation was not sampled, because too many were in flight (D17.3.7)."""
        self._registers.PMBSR_EL1 |= PMBSR_COLL

    def _fills(self) -> bool:
        """Records are written."""
        return buffer_enabled(self._registers) and not discard_mode(self._registers)

    def _has_room(self) -> bool:
        """PMBPTR_EL1 is as software must set it (D17.7), and the longest record fits below the limit. No sum wraps."""
        size = self._config.max_record_bytes
        pointer = self._registers.PMBPTR_EL1
        limit = self._registers.PMBLIMITR_EL1 & PMBLIMITR_EL1.fields["LIMIT"].mask
        aligned = pointer % self._config.layout.align == 0
        return aligned and pointer >> 56 == limit >> 56 and pointer + size <= limit
