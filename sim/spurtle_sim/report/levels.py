"""Level of the memory system that served each load.

Ref: Linux tools/perf/util/arm-spe.c (cores with the codes of `DataSource`).
"""

import numpy as np

from spurtle.arch import DataSource, Event

from .columns import ABSENT, Array

__all__ = ["LEVELS", "levels"]

LEVELS = ("L1", "L2", "peer core", "local cluster", "system cache", "peer cluster", "remote", "DRAM", "unknown")
"""Levels in the order of their distance from the core, which is that of the codes of `DataSource`."""

_UNKNOWN = len(LEVELS) - 1
_ARM = 0x41
_PARTS = {
    0xD0C,
    0xD40,
    0xD49,
    0xD4F,
    0xD84,
    0xD8E,
    0xD80,
    0xD81,
    0xD87,
    0xD4D,
    0xD47,
    0xD4B,
    0xD4C,
    0xD4E,
    0xD82,
    0xD85,
}
"""Parts of Arm whose Data Source packets have the codes of Neoverse N1."""


def levels(source: Array, events: Array, midr: int) -> Array:
    """Return an index of LEVELS for each load.

    Without a Data Source packet that can be read, the events say whether the load missed.
    """
    result = _of_events(events)
    if midr >> 24 & 0xFF == _ARM and midr >> 4 & 0xFFF in _PARTS:
        table = np.full(ABSENT + 1, _UNKNOWN, np.int8)
        table[list(DataSource)] = range(len(DataSource))
        result = np.where(source == ABSENT, result, table[source])
    return result


def _of_events(events: Array) -> Array:
    def has(event: Event) -> Array:
        return (events >> int(event) & 1).astype(bool)

    beyond = [has(Event.LLC_MISS) | has(Event.REMOTE_ACCESS), has(Event.LLC_ACCESS), has(Event.L1D_REFILL)]
    choices = [LEVELS.index("DRAM"), LEVELS.index("system cache"), LEVELS.index("L2")]
    return np.select(beyond, choices, np.where(has(Event.L1D_ACCESS), 0, _UNKNOWN)).astype(np.int8)
