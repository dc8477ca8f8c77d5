"""The SPE driver of FreeBSD."""

from spurtle.arch import (
    PMBLIMITR_EL1,
    PMBPTR_EL1,
    PMBSR_EL1,
    PMSCR_EL1,
    PMSEVFR_EL1,
    PMSFCR_EL1,
    PMSICR_EL1,
    PMSIRR_EL1,
    PMSLATFR_EL1,
)
from tests.support.cpu import CPU
from tests.support.drivers import disable_and_drain

__all__ = ["FreeBSD"]

_ALL = (1 << 64) - 1


class FreeBSD:
    """The buffer is one half of memory, then the other. They are changed with E = 1, while the SPU is stopped; what
    starts it again is PMBSR_EL1.

    Attributes
    ----------
    buffers : list of bytes
        What has been read, each time.
    partial : int
        How many of them end in the middle of a record.
    """

    def __init__(self, cpu: CPU):
        self._cpu = cpu
        middle = cpu.memory.start + len(cpu.memory) // 2
        self._halves = [range(cpu.memory.start, middle), range(middle, cpu.memory.stop)]
        self.buffers: list[bytes] = []
        self.partial = 0

    def enable(self, interval: int) -> None:
        cpu = self._cpu
        cpu.msr(PMSFCR_EL1, 0)
        cpu.msr(PMSEVFR_EL1, _ALL)
        cpu.msr(PMSLATFR_EL1, 0)
        cpu.msr(PMSIRR_EL1, PMSIRR_EL1.pack(INTERVAL=interval, RND=1))
        cpu.isb()
        cpu.msr(PMSICR_EL1, 0)
        cpu.isb()
        self._give()
        cpu.isb()
        cpu.msr(PMSCR_EL1, PMSCR_EL1.pack(TS=1, PA=1, CX=1, E1SPE=1, E0SPE=1))

    def _give(self) -> None:
        """The SPU gets the first half."""
        cpu = self._cpu
        cpu.msr(PMBPTR_EL1, self._halves[0].start)
        cpu.msr(PMBLIMITR_EL1, self._halves[0].stop | PMBLIMITR_EL1.pack(E=1))

    def interrupt(self) -> None:
        cpu = self._cpu
        cpu.psb_csync()
        cpu.dsb()
        cpu.isb()
        self.partial += PMBSR_EL1.unpack(cpu.mrs(PMBSR_EL1)).DL
        self._take()
        self._halves.reverse()
        self._give()
        cpu.isb()
        cpu.msr(PMBSR_EL1, 0)
        cpu.isb()

    def disable(self) -> None:
        cpu = self._cpu
        disable_and_drain(cpu)
        cpu.msr(PMBSR_EL1, 0)
        self._take()

    def _take(self) -> None:
        self.buffers.append(self._cpu.load(self._halves[0].start, self._cpu.mrs(PMBPTR_EL1)))
