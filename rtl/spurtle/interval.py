"""The sample interval counter: which operation is selected (D17.3)."""

# Ref: DDI0487 M.a, D17.3.4.1; the reload takes one operation that does not decrement (docs/choices.md).

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["IntervalCounter"]


class IntervalCounter(wiring.Component):
    """PMSICR_EL1.COUNT, counted down by one for each member of the sample population.

    An operation that meets COUNT = 0 reloads it with INTERVAL * 256. Any other decrements it, and is selected if that
    makes it zero. INTERVAL = 0 behaves as 1.

    COUNT is kept in two parts, so that the carry chain of an operation is eight bits long: `high` takes the borrow of
    `low` one cycle late, and its zero test follows one cycle later still. Neither is looked at before `low` has come
    down again, at least 254 operations later.

    Latency: `selected` answers one cycle after `operation`. A write takes effect in the next cycle; an operation in
    the cycle of a write is neither counted nor selected. Reset: COUNT is zero.

    Members
    -------
    operation : In(1)
        A member of the sample population passes while profiling is enabled.
    interval : In(24)
        PMSIRR_EL1.INTERVAL.
    write, wdata : In(1), In(32)
        Software writes COUNT.
    count : Out(32)
        COUNT, as software reads it.
    selected : Out(1)
        The operation of the cycle before is selected.
    """

    operation: In(1)
    interval: In(24)
    write: In(1)
    wdata: In(32)
    count: Out(32)
    selected: Out(1)

    def elaborate(self, platform):
        m = Module()

        low = Signal(8)
        high = Signal(24)
        high_zero = Signal(init=1)
        borrow = Signal()

        m.d.comb += self.count.eq(Cat(low, (high - borrow)[:24]))
        m.d.sync += [
            self.selected.eq(self.operation & ~self.write & high_zero & (low == 1)),
            borrow.eq(0),
            high_zero.eq(high == 0),
        ]
        with m.If(borrow):
            m.d.sync += high.eq(high - 1)
        with m.If(self.write):
            m.d.sync += [low.eq(self.wdata[:8]), high.eq(self.wdata[8:]), high_zero.eq(self.wdata[8:] == 0)]
        with m.Elif(self.operation):
            with m.If((low == 0) & high_zero):
                m.d.sync += [high.eq(self.interval | (self.interval == 0)), high_zero.eq(0)]
            with m.Else():
                m.d.sync += [low.eq(low - 1), borrow.eq(low == 0)]

        return m
