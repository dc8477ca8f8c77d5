"""Writes to the Profiling Buffer, and PSB CSYNC."""

from amaranth.lib import data, enum, stream
from amaranth.lib.wiring import In, Out

from ..arch import VIRTUAL_ADDRESS_BITS
from ..config import SPUConfig, check_config
from .members import when
from .signature import StructuralSignature

__all__ = ["BeatLayout", "DrainSignature", "FaultLayout", "WriteFaultKind", "WriteSignature"]


class BeatLayout(data.StructLayout):
    """One write to memory. LSB first.

    Members
    -------
    address : unsigned(64)
        Byte address, a multiple of the bus width.
    data : unsigned(8 * bus_bytes)
        Bytes in order of ascending addresses.
    strobe : unsigned(bus_bytes)
        Byte enables, bit 0 for the lowest address. All ones, except in the first and the last beat of a record whose
        alignment is less than the bus width.
    last : unsigned(1)
        Last beat of the record.
    """

    def __init__(self, config: SPUConfig):
        check_config(config)
        super().__init__(
            {"address": VIRTUAL_ADDRESS_BITS, "data": 8 * config.bus_bytes, "strobe": config.bus_bytes, "last": 1}
        )


class WriteFaultKind(enum.Enum, shape=3):
    """Kind of fault on a write to the Profiling Buffer."""

    NONE = 0
    STAGE_1 = 1
    """Stage 1 Data Abort."""
    STAGE_2 = 2
    """Stage 2 Data Abort."""
    GRANULE_PROTECTION = 3
    """Granule Protection Check fault other than a Granule Protection Fault. Only with FEAT_RME."""
    NOT_ALLOWED = 4
    """Access not allowed: the owner of the Profiling Buffer may not access memory at this address."""


class FaultLayout(data.StructLayout):
    """Outcome of a write to the Profiling Buffer. LSB first.

    Members
    -------
    kind : WriteFaultKind
    fsc : unsigned(6)
        Fault status code (D24.7, PMBSR_EL1) of a stage 1 or stage 2 Data Abort.
    word : range(words of the longest record + 1)
        Number of the first beat of the record that was not written, counted from zero.
    external : unsigned(1)
        Synchronous External abort. Only if PMBSR_EL1 reports External aborts.
    DirtyBit, Overlay, AssuredOnly, TopLevel : unsigned(1)
        Bits of PMBSR_EL1.MSS2 for a Data Abort. Only those that the configuration has (`fault_flags`).
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
    """Writes to the Profiling Buffer, seen from the SPU.

    The beats of a record have consecutive ascending addresses. The first beat of a record can follow the last beat of
    the previous one in the next cycle. At most `outstanding` records (`config.Choices`) are outstanding: a record is
    from the cycle in which its first beat is valid to the cycle of its `done`.

    Memory answers the records in order. A fault ends the acceptance of data: PMBPTR_EL1 is the first byte that was not
    written of the record with the fault, and the later outstanding records are abandoned.

    Members
    -------
    beat : Out(stream of BeatLayout)
    done : In(1)
        Strobe, once for each record, in any cycle after the transfer of its last beat: the record is in memory, or a
        fault occurred. The strobes of several records can be in consecutive cycles, and in cycles in which beats of
        other records are transferred.
    fault : In(FaultLayout)
        Fault of that record, in the cycle of `done`. The first beat that faults is not written. Later beats of the
        record are not written either after memory has reported the fault. Where several records can be outstanding,
        memory may have written some of them before (`shell.axi4`: a second burst).
    discard : Out(1)
        Level, from the cycle after `done` with a fault to the cycle of `done` of the last outstanding record. It is
        not asserted if no record is outstanding after that fault. While it is asserted, memory accepts beats and writes
        none of them, and writes nothing of the beats that it accepted before and has not written yet. It answers each
        record with `done` as usual. The SPU ignores the faults of these records, except for an External abort, which
        sets PMBSR_EL1.EA. Beats of later records that memory had written before it reported the fault keep their data.
        Only if `outstanding` > 1.
    abort : In(1)
        Strobe, in any cycle: asynchronous External abort on an earlier write. Only if PMBSR_EL1 reports External
        aborts.
    """

    def __init__(self, config: SPUConfig):
        check_config(config)
        super().__init__(
            {
                "beat": Out(stream.Signature(BeatLayout(config))),  # pyright: ignore[reportArgumentType]: it is a shape
                "done": In(1),
                "fault": In(FaultLayout(config)),
                **when(config.outstanding > 1, discard=Out(1)),
                **when(config.external_aborts, abort=In(1)),
            }
        )


class DrainSignature(StructuralSignature):
    """PSB CSYNC, seen from the core.

    Members
    -------
    request : Out(1)
        Level, held until `done`. The core reports no finished operation while it is asserted.
    done : In(1)
        Each record of a finished operation is in memory or was discarded, and PMBPTR_EL1 and PMBSR_EL1 show it.
    """

    def __init__(self):
        super().__init__({"request": Out(1), "done": In(1)})
