"""Software that drives a Statistical Profiling Unit, as small models: the accesses of the originals, in their order."""

from spurtle.arch import PMBLIMITR_EL1, PMSCR_EL1, Register
from tests.support.cpu import CPU

__all__ = ["disable_and_drain"]


def disable_and_drain(cpu: CPU, pmscr: Register = PMSCR_EL1) -> None:
    """Sampling before the buffer, as all of them do it: what has been sampled is in memory, nothing comes after it."""
    cpu.msr(pmscr, 0)
    cpu.isb()
    cpu.psb_csync()
    cpu.dsb()
    cpu.msr(PMBLIMITR_EL1, 0)
    cpu.isb()
