"""Structs that the compiled SPU shares with Python, in addition to the tables of `trace.dtypes`."""

from dataclasses import fields

import numpy as np

from spurtle.config import SPUConfig

from ..model.pe import PEState

__all__ = ["PE_STATE", "counts"]

PE_STATE = np.dtype([(field.name, "<u8") for field in fields(PEState)])
"""Members of `PEState`."""


def counts(config: SPUConfig) -> np.dtype[np.void]:
    """Return the struct of the counters.

    ``cycles``
        Cycles simulated.
    ``time``
        Program time in cycles. It holds its value while software serves an interrupt.
    ``delay``
        Cycles by which interrupts delay the operations that follow.
    ``strays``
        Beats outside of the Profiling Buffer's memory.
    ``records``
        Records written without a fault.
    ``pop`` to ``feed_...``
        PMU events, by their names without SAMPLE.
    """
    names = ["cycles", "time", "delay", "strays", "records", "pop", "feed", "filtrate", "collision", "buffer_full"]
    names += [f"feed_{event}" for event in config.feed_events]
    return np.dtype([(name, "<u8") for name in names])
