"""Profiling Buffer: write pointer, limit, full check, status and interrupt (D17.7).

Ref: DDI0487 M.a, D17.7 (R_PGGHS for an invalid pointer), D17.4 (disabled and stopped), D24.7 (PMBPTR_EL1, PMBSR_EL1).
"""

from amaranth import *
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from .. import arch
from ..config import SPUConfig, check_config
from ..interface.memory import WriteFaultKind, WriteSignature
from ..interface.register_layout import register_layout
from .aligner import Aligner
from .beat import beat_layout
from .component import ConfiguredComponent
from .fsm import FSMState

__all__ = ["BufferState", "ProfilingBuffer"]


class BufferState(FSMState):
    """States of `ProfilingBuffer`."""

    IDLE = 0
    DROP = 1
    WRITE = 2
    RESPONSE = 3
    FAULT = 4


class ProfilingBuffer(ConfiguredComponent):
    """Writer of records to memory from PMBPTR_EL1 upward, one record at a time.

    The pointer advances when the complete record is in memory. A record is written only if it fits below LIMIT. If the
    buffer is disabled or stopped, or software writes the pointer or the limit, while a record is being written, the
    record is abandoned: its remaining beats are still written, to consecutive addresses, and the pointer does not
    advance. A record that arrives while the buffer is not running is accepted and dropped. The buffer does not run in
    the cycle after its owner changed, so that a new owner finds no data in it that only the previous one was permitted
    to see.

    A fault stops the buffer with PMBPTR_EL1 at the first byte that was not written. PMBSR_EL1.DL is set only if that
    byte is within a record, or if access was not allowed. A fault on an abandoned record is not reported, but an
    External abort sets PMBSR_EL1.EA.

    The buffer is full, which sets PMBSR_EL1.S with BSC = 1, as soon as the longest record does not fit: PMBPTR_EL1 >
    LIMIT - max_size. A pointer that is not aligned as records are, or whose top byte differs from that of LIMIT, counts
    as full.

    In Discard mode (D17.5.5) no record is written and the buffer is never full, for any pointer and limit. Records that
    wait are dropped.

    A write by software takes effect in the next cycle. If software and the SPU write PMBSR_EL1 in one cycle, the write
    by software is applied first, then a fault or a full buffer, then an asynchronous External abort. Reset: pointer and
    status are zero, no beat is valid.

    Members
    -------
    i : In(stream of beat_layout)
    drop : In(1)
        The buffer did not run in some cycle since the operation of the next record at `i` passed the sampling point:
        the record is dropped.
    accepted : Out(1)
        Strobe: the record at `i` is written, or dropped, from the next cycle on.
    write : Out(WriteSignature)
    pmblimitr : In(PMBLIMITR_EL1)
    pmblimitr_write : In(1)
        Software writes PMBLIMITR_EL1 in this cycle.
    new_owner : In(1)
        See `control.ProfilingControl`.
    pmbptr, pmbsr : Out
        PMBPTR_EL1; PMBSR_EL1.
    pmbptr_write, pmbsr_write : In(1)
        Software writes the register in this cycle.
    wdata : In(64)
        Value that software writes.
    collision : In(1)
        Sets PMBSR_EL1.COLL.
    running : Out(1)
        The buffer is enabled and not stopped, and its owner did not change in the previous cycle.
    writing : Out(1)
        The buffer is running and not in Discard mode.
    busy : Out(1)
        A record is being written or dropped, or `pmbsr` does not show yet whether the buffer is full.
    full : Out(1)
        Strobe: buffer full event.
    """

    proof_signals = (
        "buffer_state",
        "keep",
        "base",
        "words",
        "within",
        "next_low",
        "next_high",
        "fault",
        "faulted",
        "fits_known",
        "fits_known_*",
        "low_below",
        "high_below",
        "high_same",
        "in_place",
        "crosses",
        "last_low",
        "last_high",
        "on_last_low",
        "on_last_high",
    )

    def __init__(self, config: SPUConfig):
        check_config(config)
        super().__init__(
            config,
            {
                "i": In(stream.Signature(beat_layout(config))),
                "drop": In(1),
                "accepted": Out(1),
                "write": Out(WriteSignature(config)),
                "pmblimitr": In(register_layout(arch.PMBLIMITR_EL1)),
                "pmblimitr_write": In(1),
                "new_owner": In(1),
                "pmbptr": Out(64),
                "pmbptr_write": In(1),
                "pmbsr": Out(register_layout(arch.PMBSR_EL1)),
                "pmbsr_write": In(1),
                "wdata": In(64),
                "collision": In(1),
                "running": Out(1),
                "writing": Out(1),
                "busy": Out(1),
                "full": Out(1),
            },
        )

    def elaborate(self, platform):
        m = Module()

        layout = self._config.layout
        align, size, word = (exact_log2(number) for number in (layout.align, layout.max_size, self._config.bus_bytes))
        idle = Signal()
        keep = Signal()
        commit = Signal()
        fault = Signal.like(self.write.fault)
        faulted = Signal()

        m.d.comb += [
            self.running.eq(self.pmblimitr.E & ~self.pmbsr.S & ~self.new_owner),
            self.writing.eq(self.running & (self.pmblimitr.FM != arch.FM.DISCARD)),
        ]
        fits, fits_known = self._fits(m, align, idle)

        base = Signal(64 - size)
        words = Signal(size - word + 1)
        upper = self._upper(m, base, words)

        m.submodules.aligner = aligner = Aligner(self._config)
        connect(m, flipped(self.i), aligner.i)
        m.d.comb += [
            self.write.beat.p.address.eq(Cat(C(0, word), words[:-1], upper)),
            *(self.write.beat.p[name].eq(aligner.o.p[name]) for name in ("data", "strobe", "last")),
        ]
        # A record can begin and end within a word.
        within = Signal(max(word - align, 0))
        within_pointer = self.pmbptr[align:word] if align < word else C(0, 0)
        end = Signal.like(within)
        if len(within):
            m.d.comb += [aligner.offset.eq(within), end.eq(aligner.o.p.end)]

        with m.If(self.pmbptr_write):
            m.d.sync += self.pmbptr.eq(self.wdata)
        with m.Elif(commit):
            m.d.sync += self.pmbptr.eq(Cat(C(0, min(align, word)), within, words[:-1], upper))
        self._report(m, fault, faulted)

        with m.FSM(name="buffer"):
            with m.State(BufferState.IDLE):
                m.d.comb += idle.eq(1)
                m.d.sync += [
                    base.eq(self.pmbptr[size:]),
                    words.eq(self.pmbptr[word:size]),
                    within.eq(within_pointer),
                    keep.eq(1),
                ]
                self._begin(m, aligner.o.valid, fits, fits_known)

            with m.State(BufferState.WRITE):
                self._write(m, aligner.o, words, within, end)

            with m.State(BufferState.RESPONSE):
                self._take_response(m, words, within, within_pointer, fault, commit, keep)

            with m.State(BufferState.FAULT):
                m.d.comb += [faulted.eq(keep & self.running), commit.eq(faulted)]
                if self._config.external_aborts:
                    # EA is set even if the record was abandoned.
                    with m.If(fault.external):
                        m.d.sync += self.pmbsr.EA.eq(1)
                m.next = BufferState.IDLE

            with m.State(BufferState.DROP):
                m.d.comb += aligner.o.ready.eq(1)
                with m.If(aligner.o.valid & aligner.o.p.last):
                    m.next = BufferState.IDLE

        with m.If(self.pmbptr_write | self.pmblimitr_write | (~self.running & ~idle)):
            m.d.sync += keep.eq(0)
        m.d.comb += self.busy.eq(~idle | ~fits_known | self.full | self.new_owner)

        return m

    def _upper(self, m, base, words):
        """Return the address bits above `words`, with the carry from it.

        `words` is a number of words from `base` on. The sum is valid two cycles after the cycle in which `base` is
        captured. They have passed when a record is known to fit.
        """
        half = len(base) // 2
        next_low = Signal(half + 1)
        next_high = Signal(len(base) - half)
        m.d.sync += [next_low.eq(base[:half] + 1), next_high.eq(base[half:] + next_low[-1])]
        return Mux(words[-1], Cat(next_low[:-1], next_high), base)

    def _begin(self, m, valid, fits, fits_known):
        """Accept a waiting record, to write or to drop it, unless the buffer is full."""
        with m.If(fits_known & self.writing & ~fits):
            m.d.comb += self.full.eq(1)
        with m.Elif(valid & (~self.writing | self.drop)):
            m.d.comb += self.accepted.eq(1)
            m.next = BufferState.DROP
        with m.Elif(valid & fits_known):
            m.d.comb += self.accepted.eq(1)
            m.next = BufferState.WRITE

    def _write(self, m, words_out, words, within, end):
        """Write the words of the record, and count them."""
        m.d.comb += [self.write.beat.valid.eq(words_out.valid), words_out.ready.eq(self.write.beat.ready)]
        with m.If(words_out.valid & words_out.ready):
            m.d.sync += words.eq(words + (~words_out.p.last | (end == 0)))
            with m.If(words_out.p.last):
                m.d.sync += within.eq(end)
                m.next = BufferState.RESPONSE

    def _take_response(self, m, words, within, within_pointer, fault, commit, keep):
        """Advance the pointer past the record, or find the first byte that was not written."""
        word, size = exact_log2(self._config.bus_bytes), exact_log2(self._config.layout.max_size)
        complete = self.write.fault.kind == WriteFaultKind.NONE
        m.d.comb += commit.eq(self.write.done & complete & keep & self.running)
        with m.If(self.write.done):
            m.d.sync += fault.eq(self.write.fault)
            m.next = BufferState.IDLE
            with m.If(~complete):
                first = self.write.fault.word == 0
                m.d.sync += [
                    words.eq(self.pmbptr[word:size] + self.write.fault.word),
                    within.eq(Mux(first, within_pointer, 0)),
                ]
                m.next = BufferState.FAULT

    def _report(self, m, fault, faulted):
        """Update PMBSR_EL1. A buffer management event is recorded only while PMBSR_EL1.S is zero."""
        with m.If(self.pmbsr_write):
            m.d.sync += self.pmbsr.eq(self.wdata & self._config.writable(arch.PMBSR_EL1))
        with m.If(self.collision):
            m.d.sync += self.pmbsr.COLL.eq(1)
        stopped = Signal()
        m.d.comb += stopped.eq(Mux(self.pmbsr_write, self.wdata[arch.PMBSR_EL1.fields["S"].lsb], self.pmbsr.S))

        def record(ec, mss):
            m.d.sync += [self.pmbsr.S.eq(1), self.pmbsr.EC.eq(ec), self.pmbsr.MSS.eq(mss), self.pmbsr.MSS2.eq(0)]

        if self._config.external_aborts:
            with m.If(self.write.abort & ~stopped):
                record(arch.EC.STAGE_1, arch.FSC_ASYNCHRONOUS)
            with m.If(self.write.abort):
                m.d.sync += [self.pmbsr.DL.eq(1), self.pmbsr.EA.eq(1)]
        with m.If(self.full & ~stopped):
            record(arch.EC.OTHER, arch.BSC.BUFFER_FILLED)
        with m.If(faulted & ~stopped):
            ec, data_abort = self._fault_class(m, fault)
            record(ec, Mux(data_abort, fault.fsc, 0))
            m.d.sync += [self.pmbsr[flag].eq(data_abort & fault[flag]) for flag in self._config.fault_flags]
        with m.If(faulted & ((fault.word != 0) | (fault.kind == WriteFaultKind.NOT_ALLOWED))):
            m.d.sync += self.pmbsr.DL.eq(1)

    def _fault_class(self, m, fault):
        """Return EC of a fault, and whether it is a Data Abort, which MSS and MSS2 describe."""
        ec = Signal(arch.EC)
        with m.Switch(fault.kind):
            with m.Case(WriteFaultKind.STAGE_1):
                m.d.comb += ec.eq(arch.EC.STAGE_1)
            with m.Case(WriteFaultKind.STAGE_2):
                m.d.comb += ec.eq(arch.EC.STAGE_2)
            if self._config.rme:
                with m.Case(WriteFaultKind.GRANULE_PROTECTION):
                    m.d.comb += ec.eq(arch.EC.GRANULE_PROTECTION)
        return ec, (fault.kind == WriteFaultKind.STAGE_1) | (fault.kind == WriteFaultKind.STAGE_2)

    def _fits(self, m, align, idle):
        """Return whether the longest record fits at the pointer, and whether that is known.

        The comparison is made in stages, and its result is some cycles late. An aligned pointer and a limit, which is
        the start of a page, are compared by their pages. If records are aligned to less than the longest one, that one
        can extend into the page after the pointer's page.
        """
        layout = self._config.layout
        page_bits = exact_log2(arch.PAGE_BYTES)
        page, limit = self.pmbptr[page_bits:], self.pmblimitr.LIMIT
        top = arch.ADDRESS_BITS - page_bits
        half = len(limit) // 2
        low_below, high_below, high_same, in_place = (
            Signal(name=name) for name in ("low_below", "high_below", "high_same", "in_place")
        )
        m.d.sync += [
            low_below.eq(page[:half] < limit[:half]),
            high_below.eq(page[half:] < limit[half:]),
            high_same.eq(page[half:] == limit[half:]),
            in_place.eq((page[top:] == limit[top:]) & (self.pmbptr[:align] == 0)),
        ]
        fits = in_place & (high_below | (high_same & low_below))
        known = [idle & ~(self.pmbptr_write | self.pmblimitr_write)]
        if layout.align < layout.max_size:
            # On the last page below the limit, the longest record must end before the page does.
            last_low = Signal(half + 1)
            last_high = Signal(len(limit) - half)
            on_last_low, on_last_high, crosses = (
                Signal(name=name) for name in ("on_last_low", "on_last_high", "crosses")
            )
            m.d.sync += [
                last_low.eq(limit[:half] - 1),
                last_high.eq(limit[half:] - last_low[-1]),
                on_last_low.eq(page[:half] == last_low[:-1]),
                on_last_high.eq(page[half:] == last_high),
                crosses.eq(self.pmbptr[:page_bits] > arch.PAGE_BYTES - layout.max_size),
            ]
            fits &= ~(on_last_low & on_last_high & crosses)
            known += [Signal(name=f"fits_known_{age}") for age in (1, 2)]
            m.d.sync += [known[age].eq(known[age - 1] & known[0]) for age in (1, 2)]
        fits_known = Signal()
        m.d.sync += fits_known.eq(Cat(known).all())
        return fits, fits_known
