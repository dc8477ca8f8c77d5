"""PMBSR_EL1, the status of the Profiling Buffer (D17.7, D24.7)."""

from amaranth import *
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from .. import arch
from ..config import SPUConfig, check_config
from ..interface.members import when
from ..interface.memory import FaultLayout, WriteFaultKind
from ..interface.register_layout import register_layout
from .component import ConfiguredComponent

__all__ = ["BufferStatus"]


class BufferStatus(ConfiguredComponent):
    """PMBSR_EL1. A buffer management event is recorded only while PMBSR_EL1.S is zero.

    Events of one cycle take effect in this order: a write by software, a collision, a fault or a full buffer, an
    asynchronous External abort.

    Timing: the answer of memory is decoded and registered, so that PMBSR_EL1 changes two cycles after it. It changes in
    the cycle after other events. Reset: zero.

    Members
    -------
    answered : In(1)
        Strobe: memory answers a record.
    fault : In(FaultLayout)
        Its fault, in that cycle.
    kept : In(1)
        The record was not abandoned, so a fault is reported. In that cycle too.
    exhausted : In(1)
        Strobe: the buffer is full. Never in the cycle after `answered`.
    blocked : In(1)
        In this cycle neither `exhausted` nor a fault of the previous cycle is recorded.
    abort : In(1)
        Strobe: asynchronous External abort. Only if PMBSR_EL1 reports External aborts.
    collision : In(1)
        Sets PMBSR_EL1.COLL.
    write : In(1)
        Software writes the register in this cycle.
    wdata : In(64)
    pmbsr : Out(PMBSR_EL1)
    """

    proof_signals = ("syndrome", "not_at_end", "external", "failed", "faulted")

    def __init__(self, config: SPUConfig):
        check_config(config)
        super().__init__(
            config,
            {
                "answered": In(1),
                "fault": In(FaultLayout(config)),
                "kept": In(1),
                "exhausted": In(1),
                "blocked": In(1),
                **when(config.external_aborts, abort=In(1)),
                "collision": In(1),
                "write": In(1),
                "wdata": In(64),
                "pmbsr": Out(register_layout(arch.PMBSR_EL1)),
            },
        )

    def elaborate(self, platform):
        m = Module()

        # What an event records: registered before it is, because the events are at the end of long paths.
        syndrome = Signal(
            data.StructLayout({"EC": 6, "MSS": 16, **dict.fromkeys(self._config.fault_flags, 1)}),
            init={"EC": arch.EC.OTHER, "MSS": arch.BSC.BUFFER_FILLED},
        )
        not_at_end = Signal()
        failed = Signal()
        self._decode(m, syndrome, not_at_end, failed)
        faulted = Signal()
        recorded = Signal()
        open_ = ~self.pmbsr.S & ~self.blocked
        m.d.comb += [faulted.eq(failed & open_), recorded.eq((failed | self.exhausted) & open_)]

        with m.If(self.write):
            m.d.sync += self.pmbsr.eq(self.wdata & self._config.writable(arch.PMBSR_EL1))
        with m.If(self.collision):
            m.d.sync += self.pmbsr.COLL.eq(1)
        stopped = Signal()
        m.d.comb += stopped.eq(Mux(self.write, self.wdata[arch.PMBSR_EL1.fields["S"].lsb], self.pmbsr.S))

        if self._config.external_aborts:
            external = Signal()
            m.d.sync += external.eq(self.answered & self.fault.external & self._is_fault())
            with m.If(self.abort & ~stopped):
                m.d.sync += [self.pmbsr.S.eq(1), self.pmbsr.MSS2.eq(0)]
                m.d.sync += [self.pmbsr.EC.eq(arch.EC.STAGE_1), self.pmbsr.MSS.eq(arch.FSC_ASYNCHRONOUS)]
            with m.If(self.abort):
                m.d.sync += self.pmbsr.DL.eq(1)
            # EA is set even if the record was abandoned.
            with m.If(self.abort | external):
                m.d.sync += self.pmbsr.EA.eq(1)
        with m.If(recorded & ~stopped):
            m.d.sync += [self.pmbsr.S.eq(1), self.pmbsr.EC.eq(syndrome.EC), self.pmbsr.MSS.eq(syndrome.MSS)]
            m.d.sync += self.pmbsr.MSS2.eq(0)
            m.d.sync += [self.pmbsr[flag].eq(syndrome[flag]) for flag in self._config.fault_flags]
        with m.If(faulted & not_at_end):
            m.d.sync += self.pmbsr.DL.eq(1)

        return m

    def _is_fault(self):
        return self.fault.kind != WriteFaultKind.NONE

    def _decode(self, m, syndrome, not_at_end, failed):
        """Register the syndrome of a fault, or that of a full buffer in the cycles in which memory does not answer.

        MSS and MSS2 describe a Data Abort. `not_at_end`: the first byte that was not written is within a record, or
        access was not allowed.
        """
        fault = self.fault
        m.d.sync += [
            failed.eq(self.answered & self._is_fault() & self.kept),
            not_at_end.eq((fault.word != 0) | (fault.kind == WriteFaultKind.NOT_ALLOWED)),
            syndrome.eq(syndrome.shape().const({"EC": arch.EC.OTHER, "MSS": arch.BSC.BUFFER_FILLED})),
        ]
        with m.If(self.answered):
            ec, data_abort = self._fault_class(m)
            m.d.sync += [syndrome.EC.eq(ec), syndrome.MSS.eq(Mux(data_abort, fault.fsc, 0))]
            m.d.sync += [syndrome[flag].eq(data_abort & fault[flag]) for flag in self._config.fault_flags]

    def _fault_class(self, m):
        """Return EC of the fault, and whether it is a Data Abort."""
        ec = Signal(arch.EC)
        kind = self.fault.kind
        with m.Switch(kind):
            with m.Case(WriteFaultKind.STAGE_1):
                m.d.comb += ec.eq(arch.EC.STAGE_1)
            with m.Case(WriteFaultKind.STAGE_2):
                m.d.comb += ec.eq(arch.EC.STAGE_2)
            if self._config.rme:
                with m.Case(WriteFaultKind.GRANULE_PROTECTION):
                    m.d.comb += ec.eq(arch.EC.GRANULE_PROTECTION)
        return ec, (kind == WriteFaultKind.STAGE_1) | (kind == WriteFaultKind.STAGE_2)
