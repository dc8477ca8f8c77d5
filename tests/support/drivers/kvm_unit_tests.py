"""A model of the code that the SPE tests of kvm-unit-tests share."""

from spurtle.arch import PMBLIMITR_EL1, PMBPTR_EL1, PMBSR_EL1, PMSCR_EL1, PMSFCR_EL1, PMSICR_EL1, PMSIRR_EL1
from tests.support.cpu import CPU
from tests.support.drivers import disable_and_drain

__all__ = ["Profiler"]


class Profiler:
    """A profiler that executes at EL1 and profiles EL1, in a buffer of one page."""

    def __init__(self, cpu: CPU):
        self._cpu = cpu

    def reset(self) -> None:
        """Disable everything and clear pending status."""
        cpu = self._cpu
        self.stop()
        for register in (PMBPTR_EL1, PMSIRR_EL1, PMSFCR_EL1, PMBSR_EL1):
            cpu.msr(register, 0)
        cpu.isb()

    def start(self, pointer: int, limit: int, interval: int) -> None:
        """Start profiling into the buffer from `pointer` to `limit`."""
        cpu = self._cpu
        cpu.msr(PMBPTR_EL1, pointer)
        cpu.msr(PMSIRR_EL1, PMSIRR_EL1.pack(INTERVAL=interval))
        cpu.msr(PMSICR_EL1, 0)
        cpu.msr(PMSFCR_EL1, 0)
        cpu.msr(PMSCR_EL1, PMSCR_EL1.pack(E1SPE=1, PA=1, TS=1))
        cpu.isb()
        cpu.msr(PMBLIMITR_EL1, limit | PMBLIMITR_EL1.pack(E=1))
        cpu.isb()

    def stop(self) -> None:
        """Stop profiling."""
        disable_and_drain(self._cpu)
