"""Profiling Buffer: records are written to memory, and software controls where (D17.7).

Ref: DDI0487 M.a, D17.7 (R_PGGHS for an invalid pointer), D17.4 (disabled and stopped), D24.7 (PMBPTR_EL1, PMBSR_EL1).
"""

from amaranth import *
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from .. import arch
from ..config import SPUConfig, check_config
from ..interface.memory import WriteFaultKind, WriteSignature
from ..interface.register_layout import register_layout
from .beat import beat_layout
from .buffer_status import BufferStatus
from .component import ConfiguredComponent
from .outstanding import OutstandingRecords
from .record_issue import RecordIssue
from .write_pointer import WritePointer

__all__ = ["ProfilingBuffer"]


class ProfilingBuffer(ConfiguredComponent):
    """Writer of records to memory from PMBPTR_EL1 upward.

    Several records can be outstanding. The next record begins at the issue pointer, which is ahead of PMBPTR_EL1, and
    PMBPTR_EL1 advances when a complete record is in memory. A record is written only if the longest record fits below
    LIMIT at its address.

    If the buffer is disabled or stopped, its owner changes, or software writes the pointer or the limit, all
    outstanding records are abandoned: the remaining beats of the record that is being sent are still written, to
    consecutive addresses, and the pointer does not advance. The next record begins when memory has answered all of
    them and the issue pointer has been loaded from PMBPTR_EL1. A record that arrives while the buffer is not running is
    accepted and dropped. The buffer does not run in the cycle after its owner changed, so that a new owner finds no
    data in it that only the previous one was permitted to see.

    A fault stops the buffer with PMBPTR_EL1 at the first byte that was not written, and abandons the later records.
    PMBSR_EL1.DL is set only if that byte is within a record, or if access was not allowed. A fault on an abandoned
    record is not reported, but an External abort sets PMBSR_EL1.EA.

    The buffer is full, which sets PMBSR_EL1.S with BSC = 1, when the longest record does not fit and no record is
    outstanding: PMBPTR_EL1 > LIMIT - max_size. A pointer that is not aligned as records are, or whose top byte differs
    from that of LIMIT, counts as full.

    In Discard mode (D17.5.5) no record is written and the buffer is never full, for any pointer and limit. Records that
    wait are dropped.

    Timing: a beat at `i` is valid at `write` in the next cycle. `write.done` takes effect in PMBPTR_EL1 and PMBSR_EL1
    two cycles later. A write by software takes effect in the next cycle. After a write of the pointer or the limit, and
    when the buffer starts to run, a record begins 11 cycles later at the earliest, because the pointer is compared with
    the limit. If software and the SPU write PMBSR_EL1 in one cycle, the write by software is applied first, then a
    fault or a full buffer, then an asynchronous External abort. Reset: pointer and status are zero, no beat is valid.

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
    active : Out(1)
        The buffer is enabled and not stopped.
    running : Out(1)
        It is active, and its owner did not change in the previous cycle.
    busy : Out(1)
        A record is outstanding or is being dropped, or `pmbptr` and `pmbsr` do not show yet what memory answered, or
        whether the buffer is full.
    full : Out(1)
        Strobe: buffer full event.
    """

    proof_signals = ("stale", "answered", "kept", "may_begin", "exhausted")

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
                "active": Out(1),
                "running": Out(1),
                "busy": Out(1),
                "full": Out(1),
            },
        )

    def elaborate(self, platform):
        m = Module()

        m.submodules.issue = issue = RecordIssue(self._config)
        m.submodules.records = records = OutstandingRecords(self._config)
        m.submodules.write_pointer = pointer = WritePointer(self._config)
        m.submodules.buffer_status = status = BufferStatus(self._config)

        # The outstanding records are abandoned, and the issue pointer has to be loaded.
        stale = Signal(init=1)
        # Memory answered a record in the previous cycle; it had not been abandoned.
        answered = Signal()
        kept = Signal()
        commit = Signal()
        next_stale = Signal()
        may_begin = Signal()
        exhausted = Signal()
        fill_mode = self.pmblimitr.FM != arch.FM.DISCARD
        disturbed = self.pmbptr_write | self.pmblimitr_write | ~self.running
        quiet = records.none & ~answered
        fault = self.write.done & (self.write.fault.kind != WriteFaultKind.NONE)
        m.d.comb += [
            self.active.eq(self.pmblimitr.E & ~self.pmbsr.S),
            self.running.eq(self.active & ~self.new_owner),
            issue.writing.eq(self.running & fill_mode),
            issue.reload.eq(stale & quiet & self.running),
            issue.open.eq(may_begin & ~self.pmbsr.S & ~self.new_owner),
            next_stale.eq(disturbed | fault | (stale & ~issue.load)),
            commit.eq(kept & ~self.pmbsr.S & ~self.new_owner),
            self.full.eq(exhausted & ~self.pmbsr.S & ~self.new_owner),
            status.kept.eq(~stale & ~disturbed),
            status.exhausted.eq(exhausted),
            status.blocked.eq(self.new_owner),
            self.busy.eq(~quiet | ~issue.idle | self.new_owner | (issue.writing & (stale | ~issue.fits))),
        ]
        m.d.sync += [
            stale.eq(next_stale),
            answered.eq(self.write.done),
            # Registered, because they are in long paths. `running` of the next cycle is that of this one except for S
            # and the owner: PMBLIMITR_EL1 changes only after a write.
            kept.eq(status.kept & self.write.done),
            may_begin.eq(~next_stale & records.vacant),
            exhausted.eq(issue.exceeds & quiet & ~stale & ~disturbed & fill_mode),
        ]
        self._connect_issue(m, issue, fill_mode)
        self._connect_records(m, issue, records, pointer, fault)
        self._connect_registers(m, issue, pointer, status, commit)

        return m

    def _connect_issue(self, m, issue, fill_mode):
        connect(m, flipped(self.i), issue.i)
        connect(m, issue.beat, flipped(self.write.beat))
        m.d.comb += [
            issue.drop.eq(self.drop),
            issue.pointer.eq(self.pmbptr),
            issue.limit.eq(self.pmblimitr.LIMIT),
            issue.enabled.eq(fill_mode),
            self.accepted.eq(issue.accepted),
        ]

    def _connect_records(self, m, issue, records, pointer, fault):
        """Connect the outstanding records. With only one, the issue pointer is the end of it."""
        m.d.comb += [records.begin.eq(issue.begin), records.done.eq(self.write.done)]
        if self._config.outstanding > 1:
            m.d.comb += [records.failed.eq(fault), self.write.discard.eq(records.discard)]
        if self._config.layout.packed:
            end = issue.position
            if self._config.outstanding > 1:
                m.d.comb += [records.ends.eq(issue.ends), records.end.eq(issue.position)]
                end = records.oldest_end
            m.d.comb += pointer.end.eq(end)

    def _connect_registers(self, m, issue, pointer, status, commit):
        """Connect PMBPTR_EL1 and PMBSR_EL1, which memory's answer and software change."""
        m.d.comb += [
            pointer.load.eq(issue.load),
            pointer.answered.eq(self.write.done),
            pointer.fault.eq(self.write.fault),
            pointer.advance.eq(commit),
            pointer.page.eq(issue.page),
            pointer.write.eq(self.pmbptr_write),
            pointer.wdata.eq(self.wdata),
            self.pmbptr.eq(pointer.pmbptr),
            status.answered.eq(self.write.done),
            status.fault.eq(self.write.fault),
            status.collision.eq(self.collision),
            status.write.eq(self.pmbsr_write),
            status.wdata.eq(self.wdata),
            self.pmbsr.eq(status.pmbsr),
        ]
        if self._config.external_aborts:
            m.d.comb += status.abort.eq(self.write.abort)
