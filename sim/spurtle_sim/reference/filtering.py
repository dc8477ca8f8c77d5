"""Which sample records are kept: PMSFCR_EL1, PMSEVFR_EL1 and PMSLATFR_EL1."""

# Ref: DDI0487 M.a, D17.5. This also runs over z3 values: nothing but `if`, comparisons and bit operations.

from spurtle.arch import PMSFCR_EL1, PMSLATFR_EL1
from spurtle.config import SPUConfig

from .records import Facts, Sample, events, saturate
from .registers import Registers

__all__ = ["collect", "flags"]


def flags(facts: Facts) -> int:
    """{ST, LD, B}, with B in bit 0: an operation may be more than one of them (D17.5.1)."""
    branch = facts.branch if facts.exception == 0 else 0
    return facts.store << 2 | facts.load << 1 | branch


def collect(config: SPUConfig, registers: Registers, sample: Sample) -> bool:
    """Keep the record: no enabled filter rejects it. A filter that selects nothing has no effect (docs/choices.md)."""
    control = PMSFCR_EL1.unpack(registers.PMSFCR_EL1)
    if control.FE == 1 and events(config, sample) & registers.PMSEVFR_EL1 != registers.PMSEVFR_EL1:
        return False
    selected = control.ST << 2 | control.LD << 1 | control.B
    if control.FT == 1 and selected != 0 and flags(sample.operation.facts) & selected == 0:
        return False
    minimum = PMSLATFR_EL1.unpack(registers.PMSLATFR_EL1).MINLAT
    return not (control.FL == 1 and saturate(config, sample.total) < minimum)
