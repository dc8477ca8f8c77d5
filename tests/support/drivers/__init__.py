"""Small models of software that drives a Statistical Profiling Unit, with the same accesses in the same order."""

from spurtle.arch import PMBLIMITR_EL1, PMSCR_EL1, Register
from tests.support.cpu import CPU

__all__ = ["disable_and_drain"]


def disable_and_drain(cpu: CPU, pmscr: Register = PMSCR_EL1) -> None:
    """Disable sampling, drain the SPU and disable the buffer, in the order that all these drivers use."""
    cpu.msr(pmscr, 0)
    cpu.isb()
    cpu.psb_csync()
    cpu.dsb()
    cpu.msr(PMBLIMITR_EL1, 0)
    cpu.isb()
