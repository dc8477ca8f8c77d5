"""Faults in the responses of memory behind the write port."""

from spurtle.arch import FSC_ASYNCHRONOUS, FSC_SYNCHRONOUS
from spurtle.config import SPUConfig

from ..model.buffer import Fault, FaultKind, fault_kinds

__all__ = ["ABORT", "TRANSLATION", "memory_faults"]

TRANSLATION = 0b000111
"""PMBSR_EL1.FSC: translation fault, level 3."""

ABORT = Fault(kind=FaultKind.STAGE_1, fsc=FSC_ASYNCHRONOUS, external=True)
"""Asynchronous External abort (strobe `abort` of `interface.memory.WriteSignature`), which has no record."""


def memory_faults(config: SPUConfig) -> list[Fault]:
    """Return the faults that a record can have: one of each kind, and External aborts if the SPU reports them."""
    external = (FaultKind.STAGE_1, FaultKind.STAGE_2) if config.external_aborts else ()
    return [
        *(Fault(kind=kind, fsc=TRANSLATION) for kind in fault_kinds(config)),
        *(Fault(kind=kind, fsc=FSC_SYNCHRONOUS, external=True) for kind in external),
    ]
