"""Payload of a beat of a record."""

from amaranth.lib import data

from ..config import SPUConfig
from ..interface.members import when

__all__ = ["beat_layout"]


def beat_layout(config: SPUConfig) -> data.StructLayout:
    """Return the layout of one beat of a record. LSB first.

    Members
    -------
    data : unsigned(8 * bus_bytes)
        Bytes of the record in ascending order from bit 0.
    last : unsigned(1)
        Last beat of the record.
    end : unsigned
        Size of the last beat in units of the alignment; zero if it is full. Only if the alignment is less than the bus
        width.
    """
    units = config.bus_bytes // config.layout.align
    return data.StructLayout(
        {"data": 8 * config.bus_bytes, "last": 1, **when(units > 1, end=range(units))},
    )
