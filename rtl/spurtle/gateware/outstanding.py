"""Records at the write port that memory has not answered (D17.7)."""

from amaranth import *
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..config import SPUConfig, check_config
from ..interface.members import when
from .component import ConfiguredComponent
from .write_pointer import position_bits

__all__ = ["OutstandingRecords"]


class OutstandingRecords(ConfiguredComponent):
    """Count of the outstanding records and, if records have several sizes, a FIFO of their ends.

    Reset: no record is outstanding.

    Members
    -------
    begin, done : In(1)
        Strobes: a record begins; memory answers the oldest one. There is no more than `outstanding` of them.
    ends : In(1)
        Strobe, two cycles or more before `done` of the record that began last.
    end : In(len(position_bits))
        In the next cycle: low bits of the address after that record.
    oldest_end : Out(len(position_bits))
        End of the oldest record. These three only with records of several sizes and more than one outstanding record.
    failed : In(1)
        `done` reports a fault.
    discard : Out(1)
        See `WriteSignature`. It and `failed` only with more than one outstanding record.
    vacant : Out(1)
        Another record may begin in the next cycle.
    none : Out(1)
        No record is outstanding.
    """

    proof_signals = ("count", "ended", "pushed", "popped", "ends_*")

    def __init__(self, config: SPUConfig):
        check_config(config)
        self._several = config.outstanding > 1
        end = len(position_bits(config))
        self._stores_ends = self._several and config.layout.packed
        super().__init__(
            config,
            {
                "begin": In(1),
                "done": In(1),
                **when(self._stores_ends, ends=In(1), end=In(end), oldest_end=Out(end)),
                **when(self._several, failed=In(1), discard=Out(1)),
                "vacant": Out(1),
                "none": Out(1, init=1),
            },
        )

    def elaborate(self, platform):
        m = Module()

        limit = self._config.outstanding
        count = Signal(range(limit + 1))
        after = Signal.like(count)
        m.d.comb += after.eq(count + self.begin - self.done)
        m.d.comb += self.vacant.eq(after != limit)
        m.d.sync += [count.eq(after), self.none.eq(after == 0)]
        if self._several:
            last = count == 1
            with m.If(self.done & self.failed):
                m.d.sync += self.discard.eq(~last | self.begin)
            # No record begins while it is asserted.
            with m.Elif(self.done & last):
                m.d.sync += self.discard.eq(0)
        if self._stores_ends:
            self._store_ends(m)

        return m

    def _store_ends(self, m):
        # The indices wrap, so the depth is a power of two.
        pushed, popped = (Signal(ceil_log2(self._config.outstanding), name=name) for name in ("pushed", "popped"))
        ends = Array(Signal.like(self.end, name=f"ends_{index}") for index in range(1 << len(pushed)))
        ended = Signal()
        m.d.sync += ended.eq(self.ends)
        m.d.comb += self.oldest_end.eq(ends[popped])
        with m.If(ended):
            m.d.sync += [ends[pushed].eq(self.end), pushed.eq(pushed + 1)]
        with m.If(self.done):
            m.d.sync += popped.eq(popped + 1)
