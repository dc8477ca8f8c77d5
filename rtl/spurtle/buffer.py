"""The Profiling Buffer: write pointer, limit, full, status and interrupt (D17.7)."""

# Ref: DDI0487 M.a, D17.7 (R_PGGHS for a pointer that does not fit), D17.4 (disabled and stopped), D24.7 (PMBPTR_EL1,
# PMBSR_EL1).

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from . import arch
from .config import SPUConfig
from .pe import WritePort
from .serializer import beat_layout

__all__ = ["Buffer"]


class Buffer(wiring.Component):
    """Writes records to memory from PMBPTR_EL1 upward, one at a time, and moves the pointer when memory has a record
    whole.

    A record is begun only where it fits below LIMIT. If the buffer is disabled, stopped or given another pointer or
    limit while a record is being written, its beats go out where they were begun and the pointer does not move. A
    record that arrives while the buffer is not running is taken and dropped.

    Full, PMBSR_EL1.S with BSC = 1, is raised as soon as no further record fits: PMBPTR_EL1 > LIMIT - record size. A
    pointer that is not aligned to a record, or has another top byte than LIMIT, counts as full.

    In discard mode (D17.5.5) no record is begun and nothing is full, whatever pointer and limit are; records that wait
    are dropped.

    Software's writes take effect in the next cycle. Where software and the SPU write PMBSR_EL1 in one cycle,
    software's write comes first. Reset: pointer and status are zero, no beat is valid.

    Members
    -------
    i : In(stream of beats)
    unwanted : In(1)
        The buffer has not run since the operation at `i` passed the sampling point: its record is dropped.
    write : Out(WritePort)
    pmblimitr : In(PMBLIMITR_EL1)
    pmblimitr_write : In(1)
        Software writes PMBLIMITR_EL1 in this cycle.
    pmbptr, pmbsr : Out
    pmbptr_write, pmbsr_write : In(1)
    wdata : In(64)
        What software writes.
    collision : In(1)
        Sets PMBSR_EL1.COLL.
    running : Out(1)
        Enabled and not stopped.
    writing : Out(1)
        It is, and not in discard mode.
    busy : Out(1)
        A record is being written or dropped, or has been and `pmbsr` does not say yet whether it filled the buffer.
    full : Out(1)
        Strobe: a buffer full event.
    """

    def __init__(self, config: SPUConfig):
        self._config = config
        super().__init__(
            {
                "i": In(stream.Signature(beat_layout(config))),
                "unwanted": In(1),
                "write": Out(WritePort(config)),
                "pmblimitr": In(arch.PMBLIMITR_EL1.layout()),
                "pmblimitr_write": In(1),
                "pmbptr": Out(64),
                "pmbptr_write": In(1),
                "pmbsr": Out(arch.PMBSR_EL1.layout()),
                "pmbsr_write": In(1),
                "wdata": In(64),
                "collision": In(1),
                "running": Out(1),
                "writing": Out(1),
                "busy": Out(1),
                "full": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()

        align = self._config.record_bytes.bit_length() - 1
        limit = self.pmblimitr.LIMIT
        bus = self._config.bus_bytes.bit_length() - 1
        offset = Signal(align - bus)
        base = Signal(64 - align)
        keep = Signal()
        commit = Signal()

        m.d.comb += [
            self.running.eq(self.pmblimitr.E & ~self.pmbsr.S),
            self.writing.eq(self.running & (self.pmblimitr.FM != arch.FM.DISCARD)),
        ]

        # With an aligned pointer and a limit on a page, "one more record fits" is a comparison of pages. It is made in
        # two halves, and is one cycle late.
        page = self.pmbptr[12:]
        half = len(limit) // 2
        low_below = Signal()
        high_below = Signal()
        high_same = Signal()
        in_place = Signal()
        fits_known = Signal()
        m.d.sync += [
            low_below.eq(page[:half] < limit[:half]),
            high_below.eq(page[half:] < limit[half:]),
            high_same.eq(page[half:] == limit[half:]),
            in_place.eq((page[44:] == limit[44:]) & (self.pmbptr[:align] == 0)),
            fits_known.eq(~(self.pmbptr_write | self.pmblimitr_write | commit)),
        ]
        fits = in_place & (high_below | (high_same & low_below))

        # The pointer behind the record, in two halves as well: a record has more beats than this takes cycles.
        half = len(base) // 2
        next_low = Signal(half + 1)
        next_high = Signal(len(base) - half)
        m.d.sync += [next_low.eq(base[:half] + 1), next_high.eq(base[half:] + next_low[-1])]

        with m.If(self.pmbptr_write):
            m.d.sync += self.pmbptr.eq(self.wdata)
        with m.Elif(commit):
            m.d.sync += self.pmbptr[align:].eq(Cat(next_low[:-1], next_high))

        with m.If(self.pmbsr_write):
            m.d.sync += self.pmbsr.eq(self.wdata & self._config.writable(arch.PMBSR_EL1))
        with m.If(self.collision):
            m.d.sync += self.pmbsr.COLL.eq(1)
        with m.If(self.full):
            m.d.sync += [
                self.pmbsr.S.eq(1),
                self.pmbsr.EC.eq(arch.EC.OTHER),
                self.pmbsr.MSS.eq(arch.BSC.BUFFER_FILLED),
            ]

        m.d.comb += [
            self.write.beat.p.address.eq(Cat(C(0, bus), offset, base)),
            self.write.beat.p.data.eq(self.i.p.data),
            self.write.beat.p.last.eq(self.i.p.last),
        ]

        with m.FSM(name="buffer") as fsm:
            with m.State("IDLE"):
                m.d.sync += [base.eq(self.pmbptr[align:]), offset.eq(0), keep.eq(1)]
                with m.If(fits_known & self.writing & ~fits):
                    m.d.comb += self.full.eq(1)
                with m.Elif(self.i.valid & (~self.writing | self.unwanted)):
                    m.next = "DROP"
                with m.Elif(self.i.valid & fits_known):
                    m.next = "WRITE"

            with m.State("WRITE"):
                m.d.comb += [self.write.beat.valid.eq(self.i.valid), self.i.ready.eq(self.write.beat.ready)]
                with m.If(self.i.valid & self.i.ready):
                    m.d.sync += offset.eq(offset + 1)
                    with m.If(self.i.p.last):
                        m.next = "RESPONSE"

            with m.State("RESPONSE"):
                m.d.comb += commit.eq(self.write.done & keep & self.running)
                with m.If(self.write.done):
                    m.next = "IDLE"

            with m.State("DROP"):
                m.d.comb += self.i.ready.eq(1)
                with m.If(self.i.valid & self.i.p.last):
                    m.next = "IDLE"

        with m.If(self.pmbptr_write | self.pmblimitr_write | (~self.running & ~fsm.ongoing("IDLE"))):
            m.d.sync += keep.eq(0)
        m.d.comb += self.busy.eq(~fsm.ongoing("IDLE") | ~fits_known | self.full)

        return m
