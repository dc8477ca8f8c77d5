"""A model of the SPE test c018 of Arm's SBSA architecture compliance suite, which checks that PMBIRQ arrives."""

from spurtle.arch import PMBLIMITR_EL1, PMBPTR_EL1, PMSCR_EL2, PMSFCR_EL1, PMSIDR_EL1, PMSIRR_EL1
from tests.support.cpu import CPU
from tests.support.drivers import disable_and_drain

__all__ = ["INTERVALS", "SIZE", "disable", "generate_pmbirq"]

SIZE = 0x10000
"""Size of the buffer in bytes."""

INTERVALS = {0: 256, 2: 512, 3: 768, 4: 1024, 5: 1536, 6: 2048, 7: 3072, 8: 4096}
"""Minimum intervals by PMSIDR_EL1.Interval."""


def generate_pmbirq(cpu: CPU, address: int, pmscr: int) -> int:
    """Enable profiling at EL2, which owns the buffer, with a buffer at an address without memory.

    Return the number of operations that the test executes then. It is the value that the test writes to
    PMSIRR_EL1.INTERVAL, although that field is in units of 256 operations.
    """
    interval = INTERVALS[PMSIDR_EL1.unpack(cpu.mrs(PMSIDR_EL1)).Interval]
    cpu.msr(PMSIRR_EL1, interval << PMSIRR_EL1.fields["INTERVAL"].lsb)
    cpu.msr(PMSCR_EL2, pmscr)
    cpu.msr(PMSFCR_EL1, 0)
    cpu.msr(PMBPTR_EL1, address)
    cpu.msr(PMBLIMITR_EL1, address + SIZE | PMBLIMITR_EL1.pack(E=1))
    return interval


def disable(cpu: CPU) -> None:
    """Disable profiling, as the interrupt handler does."""
    disable_and_drain(cpu, PMSCR_EL2)
