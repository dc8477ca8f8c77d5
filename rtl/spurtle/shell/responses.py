"""Responses to AXI4 bursts, and answers to the records that were sent in them.

Ref: IHI0022 (AXI4), A3.4.4 (response of a burst); DDI0487 M.a, D17.7 and D24.7 (PMBSR_EL1, outcome of an External
abort).
"""

from amaranth import *
from amaranth.lib import data
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from .. import arch
from ..config import SPUConfig, check_config
from ..gateware.component import ConfiguredComponent
from ..interface.memory import FaultLayout, WriteFaultKind
from .bursts import BurstLayout, can_divide

__all__ = ["BurstResponses", "max_open_bursts"]


def max_open_bursts(config: SPUConfig) -> int:
    """Return the maximum number of open bursts, a power of two.

    It is one with one outstanding record, so that nothing is written after a burst that failed. Otherwise it lets every
    outstanding record be open, each in two bursts if it can cross the boundary.
    """
    if config.outstanding == 1:
        return 1
    return 1 << ceil_log2(config.outstanding << can_divide(config))


class BurstResponses(ConfiguredComponent):
    """Open bursts, in order, and the answers to outstanding records.

    A burst is open from `begin` to its response. Responses arrive in the order of the bursts. A record is answered with
    `done` in the cycle of the response to its last burst.

    After an error response no burst begins. When every open burst has a response, and the last beat of the record has
    been transferred, `done` reports a synchronous External abort on the first word of the first burst that failed. So
    nothing is in flight to memory when the fault is reported. Each later record is answered while `discard` is
    asserted, one in each cycle. If PMBSR_EL1 does not report External aborts, error responses are ignored.

    Reset: no burst is open, and no record waits for its answer.

    Members
    -------
    begin : In(1)
        Strobe: `burst` begins. Only if `full` and `failed` are deasserted.
    burst : In(BurstLayout)
    complete : In(1)
        Strobe: the last beat of a record is transferred, before or with the `begin` of its last burst.
    valid, error : In(1)
        Response to the first open burst; it is an error response.
    discard : In(1)
        See `WriteSignature`. Zero with one outstanding record.
    full : Out(1)
        The maximum number of bursts is open.
    fails : Out(1)
        Strobe: the first error response of a record that is not answered yet.
    failed : Out(1)
        From the cycle after `fails` to the report of the fault.
    done : Out(1)
    fault : Out(FaultLayout)
        See `WriteSignature`.
    """

    proof_signals = ("answered", "unanswered", "open_bursts", "bursts", "word")

    def __init__(self, config: SPUConfig):
        check_config(config)
        super().__init__(
            config,
            {
                "begin": In(1),
                "burst": In(BurstLayout(config)),
                "complete": In(1),
                "valid": In(1),
                "error": In(1),
                "discard": In(1),
                "full": Out(1),
                "fails": Out(1),
                "failed": Out(1),
                "done": Out(1),
                "fault": Out(FaultLayout(config)),
            },
        )

    def elaborate(self, platform):
        m = Module()

        open_bursts = Signal(range(max_open_bursts(self._config) + 1))
        first, last = self._first_open(m, open_bursts) if can_divide(self._config) else (C(0, 1), C(1))
        m.d.sync += open_bursts.eq(open_bursts + self.begin - self.valid)
        m.d.comb += [self.full.eq(open_bursts[-1]), self.done.eq(self.valid & last)]
        if self._config.external_aborts:
            self._report_errors(m, open_bursts == 0, first)

        return m

    def _report_errors(self, m, none_open, first):
        """Report an error response with `done` when no burst is open, and answer the later records."""
        unanswered = Signal(range(self._config.outstanding + 1))  # complete records without `done`
        word = Signal.like(self.fault.word)
        report = Signal()
        m.d.sync += unanswered.eq(unanswered + self.complete - self.done)
        m.d.comb += [
            self.fails.eq(self.valid & self.error & ~self.failed),
            report.eq(self.failed & none_open & (unanswered != 0)),
        ]
        with m.If(self.failed):
            m.d.comb += self.done.eq(report)
            with m.If(report):
                m.d.sync += self.failed.eq(0)
                m.d.comb += [
                    self.fault.kind.eq(WriteFaultKind.STAGE_1),
                    self.fault.fsc.eq(arch.FSC_SYNCHRONOUS),
                    self.fault.external.eq(1),
                    self.fault.word.eq(word),
                ]
        with m.Elif(self.fails):
            m.d.comb += self.done.eq(0)
            m.d.sync += [self.failed.eq(1), word.eq(first)]
        with m.Elif(self.discard):
            m.d.comb += self.done.eq(unanswered != 0)

    def _first_open(self, m, open_bursts):
        """Store each burst that begins. Return `first` and `last` of the first open one."""
        layout = BurstLayout(self._config)
        numbers = data.StructLayout({name: layout.members[name] for name in ("first", "last")})
        depth = max(max_open_bursts(self._config), 2)  # synthesis tools expect an address
        m.submodules.bursts = bursts = Memory(shape=numbers, depth=depth, init=[])
        store, load = bursts.write_port(), bursts.read_port(domain="comb")
        answered = Signal(range(depth))  # position of the first open burst
        m.d.sync += answered.eq(answered + self.valid)
        m.d.comb += [
            store.en.eq(self.begin),
            store.addr.eq(answered + open_bursts),
            *(store.data[name].eq(self.burst[name]) for name in numbers.members),
            load.addr.eq(answered),
        ]
        return load.data.first, load.data.last
