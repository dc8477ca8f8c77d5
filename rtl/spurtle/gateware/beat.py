"""The payload of a beat of a record."""

from amaranth.lib import data

from ..config import SPUConfig
from ..interface.members import when

__all__ = ["beat_layout"]


def beat_layout(config: SPUConfig) -> data.StructLayout:
    """One beat of a record. LSB first.

    Members
    -------
    data : unsigned(8 * bus_bytes)
        The record's bytes in ascending order from bit 0.
    last : unsigned(1)
        The record's last beat.
    end : unsigned
        How much of the last beat is the record's, in units of its alignment; zero for all of it. Only there where the
        alignment is less than the bus.
    """
    units = config.bus_bytes // config.layout.align
    return data.StructLayout(
        {"data": 8 * config.bus_bytes, "last": 1, **when(units > 1, end=range(units))},
    )
