"""Writes to the Profiling Buffer, and PSB CSYNC."""

from amaranth.lib import data, enum, stream
from amaranth.lib.wiring import In, Out

from ..config import SPUConfig, check_config
from .members import when
from .signature import StructuralSignature

__all__ = ["BeatLayout", "DrainSignature", "FaultLayout", "WriteFaultKind", "WriteSignature"]


class BeatLayout(data.StructLayout):
    """One write to memory. LSB first.

    Members
    -------
    address : unsigned(64)
        A multiple of the bus width.
    data : unsigned(8 * bus_bytes)
        Bytes in order of ascending addresses.
    strobe : unsigned(bus_bytes)
        Which of them are written, bit 0 for the first byte. All of them but for the first and last beat of a record in
        a packed layout that is aligned to less than the bus.
    last : unsigned(1)
        The last beat of its record.
    """

    def __init__(self, config: SPUConfig):
        check_config(config)
        super().__init__({"address": 64, "data": 8 * config.bus_bytes, "strobe": config.bus_bytes, "last": 1})


class WriteFaultKind(enum.Enum, shape=3):
    """Why a write to the Profiling Buffer could not be made."""

    NONE = 0
    STAGE_1 = 1
    """Stage 1 Data Abort."""
    STAGE_2 = 2
    """Stage 2 Data Abort."""
    GRANULE_PROTECTION = 3
    """Granule Protection Check fault other than a Granule Protection Fault. Only with FEAT_RME."""
    NOT_ALLOWED = 4
    """The Profiling Buffer's owner may not access memory there: access not allowed."""


class FaultLayout(data.StructLayout):
    """What a write to the Profiling Buffer met. LSB first.

    Members
    -------
    kind : WriteFaultKind
    fsc : unsigned(6)
        Fault status code (D24.7, PMBSR_EL1) of a stage 1 or stage 2 Data Abort.
    word : range(words of the longest record + 1)
        Which beat of the record, counted from zero, is the first that was not written.
    external : unsigned(1)
        It is a synchronous External abort. Only there if PMBSR_EL1 reports those.
    DirtyBit, Overlay, AssuredOnly, TopLevel : unsigned(1)
        What PMBSR_EL1.MSS2 tells of a Data Abort, as far as there are such (config: `fault_flags`).
    """

    def __init__(self, config: SPUConfig):
        check_config(config)
        super().__init__(
            {
                "kind": WriteFaultKind,
                "fsc": 6,
                "word": range(config.max_record_bytes // config.bus_bytes + 1),
                **when(config.external_aborts, external=1),
                **dict.fromkeys(config.fault_flags, 1),
            }
        )


class WriteSignature(StructuralSignature):
    """Writes to the Profiling Buffer, seen from the SPU. A record is a run of beats with ascending addresses.

    Members
    -------
    beat : Out(stream of BeatLayout)
    done : In(1)
        The record whose last beat was taken is in memory, or has met a fault. One strobe a record, in any cycle after
        its last beat's.
    fault : In(FaultLayout)
        Of that record, in the cycle of `done`. From the first beat that could not be written on none was.
    abort : In(1)
        Strobe, in any cycle: an asynchronous External abort on some write before. Only there if PMBSR_EL1 reports it.
    """

    def __init__(self, config: SPUConfig):
        check_config(config)
        super().__init__(
            {
                "beat": Out(stream.Signature(BeatLayout(config))),  # pyright: ignore[reportArgumentType]: it is a shape
                "done": In(1),
                "fault": In(FaultLayout(config)),
                **when(config.external_aborts, abort=In(1)),
            }
        )


class DrainSignature(StructuralSignature):
    """PSB CSYNC, seen from the core.

    Members
    -------
    request : Out(1)
        Level, held until `done`. No operation finishes in the meantime.
    done : In(1)
        Each record of a finished operation is in memory, or was discarded; PMBPTR_EL1 and PMBSR_EL1 say so.
    """

    def __init__(self):
        super().__init__({"request": Out(1), "done": In(1)})
