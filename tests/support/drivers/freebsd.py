"""A model of the SPE driver of FreeBSD."""

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
    """The driver. Its buffer is one half of memory and then the other.

    It changes the half while E is 1 and the SPU is stopped. The write of PMBSR_EL1 starts the SPU again.

    Attributes
    ----------
    buffers : list of bytes
        Content of each half that has been read.
    partial : int
        Number of halves that end with a partial record.
    """

    def __init__(self, cpu: CPU):
        self._cpu = cpu
        middle = cpu.memory.start + len(cpu.memory) // 2
        self._halves = [range(cpu.memory.start, middle), range(middle, cpu.memory.stop)]
        self.buffers: list[bytes] = []
        self.partial = 0

    def enable(self, interval: int) -> None:
        """Start profiling."""
        cpu = self._cpu
        cpu.msr(PMSFCR_EL1, 0)
        cpu.msr(PMSEVFR_EL1, _ALL)
        cpu.msr(PMSLATFR_EL1, 0)
        cpu.msr(PMSIRR_EL1, PMSIRR_EL1.pack(INTERVAL=interval, RND=1))
        cpu.isb()
        cpu.msr(PMSICR_EL1, 0)
        cpu.isb()
        self._start_buffer()
        cpu.isb()
        cpu.msr(PMSCR_EL1, PMSCR_EL1.pack(TS=1, PA=1, CX=1, E1SPE=1, E0SPE=1))

    def _start_buffer(self) -> None:
        """Program the SPU with the first half."""
        cpu = self._cpu
        cpu.msr(PMBPTR_EL1, self._halves[0].start)
        cpu.msr(PMBLIMITR_EL1, self._halves[0].stop | PMBLIMITR_EL1.pack(E=1))

    def interrupt(self) -> None:
        """Serve the interrupt."""
        cpu = self._cpu
        cpu.psb_csync()
        cpu.dsb()
        cpu.isb()
        self.partial += PMBSR_EL1.unpack(cpu.mrs(PMBSR_EL1)).DL
        self._read_buffer()
        self._halves.reverse()
        self._start_buffer()
        cpu.isb()
        cpu.msr(PMBSR_EL1, 0)
        cpu.isb()

    def disable(self) -> None:
        """Stop profiling."""
        cpu = self._cpu
        disable_and_drain(cpu)
        cpu.msr(PMBSR_EL1, 0)
        self._read_buffer()

    def _read_buffer(self) -> None:
        self.buffers.append(self._cpu.load(self._halves[0].start, self._cpu.mrs(PMBPTR_EL1)))
