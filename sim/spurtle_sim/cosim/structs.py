"""Structs that the compiled SPU shares with Python beside the tables of operations."""

from dataclasses import fields

import numpy as np

from spurtle.config import SPUConfig

from ..model.pe import PEState

__all__ = ["PE_STATE", "counts"]

PE_STATE = np.dtype([(field.name, "<u8") for field in fields(PEState)])
"""The members of `PEState`."""


def counts(config: SPUConfig) -> np.dtype[np.void]:
    """Return the struct of what is counted.

    Cycles simulated, program time and its delay in cycles, beats outside of the buffer, records written, and PMU
    events, by their names without SAMPLE.
    """
    names = ["cycles", "time", "delay", "strays", "records", "pop", "feed", "filtrate", "collision", "buffer_full"]
    names += [f"feed_{event}" for event in config.feed_events]
    return np.dtype([(name, "<u8") for name in names])
