"""The compiled SPU with a small Profiling Buffer that is emptied when it is full, checked by the reference."""

import numpy as np
from numpy.typing import NDArray

from spurtle.arch import PMBLIMITR_EL1, PMBPTR_EL1, PMBSR_EL1, PMSCR_EL1, PMSIRR_EL1
from spurtle.config import SPUConfig
from spurtle_sim.model.buffer import Fault
from spurtle_sim.model.pe import PEState
from spurtle_sim.trace.dtypes import FINISH, SELECTION
from tests.support.checked_spu import CheckedSPU

__all__ = ["BASE", "PE", "SIZE", "Profile"]

BASE = 0xFFFF_0000_0040_0000
SIZE = 8192
PE = PEState(contextidr_el1=0xBEEF)


class Profile(CheckedSPU):
    """The compiled SPU and the reference model with the same inputs.

    The buffer has space for `records` records of the greatest length. It is emptied when it is full.
    """

    def __init__(self, config: SPUConfig, records: int, *, rnd: int = 0, pe: PEState = PE):
        super().__init__(config, pe)
        self.spu.set_buffer(BASE, SIZE)
        self.spu.set_pe(pe)
        self.first = BASE + SIZE - records * config.max_record_bytes
        self.data = b""
        self.interrupts = 0
        self.selections = np.zeros(0, SELECTION)
        self.finishes = np.zeros(0, FINISH)
        self.responses: list[Fault | None] = []
        self.write(PMBPTR_EL1, self.first)
        self.write(PMBLIMITR_EL1, BASE + SIZE | 1)
        self.write(PMSIRR_EL1, PMSIRR_EL1.pack(INTERVAL=1, RND=rnd))
        self.write(PMSCR_EL1, PMSCR_EL1.pack(E0SPE=1, CX=1, PA=1, TS=1))

    def play(self, operations: NDArray[np.void], *, settle: bool) -> None:
        while True:
            passed = self.spu.play(operations, settle=settle)
            interrupt = self.spu.interrupt
            settled = interrupt or settle
            if settled:
                self.spu.drain()
            selections, finishes, responses = self.check_operations(operations[:passed], settled=settled)
            self.responses += responses
            self.selections = np.concatenate((self.selections, selections))
            self.finishes = np.concatenate((self.finishes, finishes))
            operations = operations[passed:]
            if interrupt:
                self.interrupts += 1
                self.take()
                self.write(PMBPTR_EL1, self.first)
                self.write(PMBSR_EL1, 0)
            elif len(operations) == 0:
                break
        if settle:
            self.take()
        assert not self.checker.mismatches

    def take(self) -> None:
        """Read the buffer and compare each byte with the reference."""
        self.spu.drain()
        self.read(PMBSR_EL1)
        end = self.read(PMBPTR_EL1)
        data = self.spu.memory[self.first - BASE : end - BASE].tobytes()
        self.checker.check_records(self.first, data)
        self.data += data

    @property
    def flights(self) -> dict[int, tuple[int, int]]:
        """Cycles in which each sampled operation passed and in which its finish was reported, by its number."""
        passed = {int(row["first"]): int(row["time"]) for row in self.selections if row["sampled"]}
        return {int(row): (passed[int(row)], passed[int(row)] + int(latency)) for row, latency in self.finishes}
