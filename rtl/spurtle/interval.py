"""The sample interval counters: which operations are selected (D17.3)."""

# Ref: DDI0487 M.a, D17.3.3 to D17.3.5; the reload takes one operation that does not decrement (docs/choices.md).

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for, ceil_log2

from . import arch
from .config import SPUConfig

__all__ = ["IntervalCounter", "Numbering"]

_GROUP = 4
"""Lanes that are numbered in one cycle: what depends on four of them is a LUT."""


class Numbering(wiring.Component):
    """Numbers the operations of a cycle in program order.

    Latency: `count_delay` cycles; without one it is combinational.

    Members
    -------
    operations : In(ops_per_cycle)
        Lanes with an operation, bit 0 first.
    lanes : Out(ops_per_cycle)
        The same, `count_delay` cycles later.
    number : Out(range(ops_per_cycle + 1)) for each lane
        Operations up to and including this lane. The last is how many there are.
    """

    def __init__(self, config: SPUConfig):
        width = config.ops_per_cycle
        super().__init__({"operations": In(width), "lanes": Out(width), "number": Out(range(width + 1)).array(width)})

    def elaborate(self, platform):
        m = Module()

        width = len(self.operations)
        if width == 1:
            m.d.comb += [self.lanes.eq(self.operations), self.number[0].eq(self.operations)]
            return m

        groups = [range(start, min(start + _GROUP, width)) for start in range(0, width, _GROUP)]
        within = (
            self.number if len(groups) == 1 else [Signal(range(_GROUP + 1), name=f"within_{k}") for k in range(width)]
        )
        lanes = self.lanes if len(groups) == 1 else Signal(width, name="grouped")
        m.d.sync += lanes.eq(self.operations)
        for group in groups:
            with m.Switch(self.operations[group.start : group.stop]):
                for pattern in range(1 << len(group)):
                    with m.Case(pattern):
                        for lane in group:
                            so_far = pattern & (2 << (lane - group.start)) - 1
                            m.d.sync += within[lane].eq(so_far.bit_count())

        if len(groups) == 2:
            lower, upper = groups
            m.d.sync += self.lanes.eq(lanes)
            m.d.sync += [self.number[lane].eq(within[lane]) for lane in lower]
            m.d.sync += [self.number[lane].eq(within[lane] + within[lower.stop - 1]) for lane in upper]

        return m


class IntervalCounter(wiring.Component):
    """PMSICR_EL1, which takes the members of the sample population in program order, some in each cycle.

    An operation that meets COUNT = 0 reloads it. Any other decrements it; the one that makes it zero ends the interval
    and, unless a random number is yet to be counted in ECOUNT, is selected. INTERVAL = 0 behaves as 1.

    COUNT is kept in two parts, so that the carry chain of an operation is eight bits long: `high` takes the borrow of
    `low` one cycle late, and its zero test follows one cycle later still. Neither is looked at before `low` has come
    down again, tens of cycles later. `ecount` may run past zero: `live` says whether it still counts.

    Latency: operations are counted `count_delay` cycles after they passed, and `selected` tells of them
    `answer_latency` cycles after. A read shows PMSICR_EL1 before the operations that are counted in its cycle; a
    write comes after them. Reset: PMSICR_EL1 is zero.

    Members
    -------
    operations : In(ops_per_cycle)
        Lanes in which a member of the sample population passes while profiling is enabled.
    interval, rnd : In(24), In(1)
        PMSIRR_EL1.
    random, draw : In(8), Out(1)
        The next random number; it is used in this cycle.
    write, wdata : In(1), In(PMSICR_EL1)
        Software writes PMSICR_EL1.
    pmsicr : Out(PMSICR_EL1)
        As software reads it.
    population : Out(range(ops_per_cycle + 1))
        Operations that are counted in this cycle.
    selected : Out(ops_per_cycle) for each of selections_per_cycle
        Lane of the selected operation, one bit or none; of the second one, if there are two.
    """

    def __init__(self, config: SPUConfig):
        self._config = config
        super().__init__(
            {
                "operations": In(config.ops_per_cycle),
                "interval": In(24),
                "rnd": In(1),
                "random": In(8),
                "draw": Out(1),
                "write": In(1),
                "wdata": In(arch.PMSICR_EL1.layout()),
                "pmsicr": Out(arch.PMSICR_EL1.layout()),
                "population": Out(range(config.ops_per_cycle + 1)),
                "selected": Out(config.ops_per_cycle).array(config.selections_per_cycle),
            }
        )

    def elaborate(self, platform):
        m = Module()

        width = self._config.ops_per_cycle
        m.submodules.numbering = numbering = Numbering(self._config)
        count = numbering.number[-1]
        m.d.comb += [numbering.operations.eq(self.operations), self.population.eq(count)]

        low = Signal(8)
        high = Signal(24)
        high_zero = Signal(init=1)
        borrow = Signal()
        m.d.comb += self.pmsicr.COUNT.eq(Cat(low, (high - borrow)[:24]))

        # Only where COUNT is that small can an operation of this cycle make it zero, or find it so.
        near = Signal()
        place = low[: bits_for(width)]
        reloads = Signal()
        reaches = Signal()
        m.d.comb += [
            near.eq(high_zero & (low[len(place) :] == 0)),
            reloads.eq(near & (place < count)),
            reaches.eq(near & (place != 0) & (place <= count)),
        ]

        random = Signal(8)
        left = Signal(9)
        reloaded = Signal(9)
        m.d.comb += [
            random.eq(Mux(self.rnd, self.random, 0)),
            left.eq(low - count),
            # Less the operations that follow the one that reloads.
            reloaded.eq((0 if self._config.ernd else random) - (count - 1 - place)[: ceil_log2(width)]),
            self.draw.eq(self.rnd & (reaches if self._config.ernd else reloads)),
        ]

        m.d.sync += [Cat(low, borrow).eq(Mux(reloads, reloaded, left)), high_zero.eq(high == 0)]
        with m.If(borrow):
            m.d.sync += high.eq(high - 1)
        with m.If(reloads):
            m.d.sync += [high.eq(self.interval | (self.interval == 0)), high_zero.eq(0)]
        with m.If(self.write):
            m.d.sync += [
                Cat(low, high).eq(self.wdata.COUNT),
                borrow.eq(0),
                high_zero.eq(self.wdata.COUNT[8:] == 0),
            ]

        if self._config.ernd:
            selections = self._secondary(m, reaches, place, count, random)
        else:
            selections = [(reaches, place)]
        self._answer(m, numbering, selections)

        return m

    def _secondary(self, m, reaches, place, count, random):
        """ECOUNT (D17.3.4.3). Returns what may be selected: whether, and the number of the operation."""
        ecount = Signal(8)
        live = Signal()
        m.d.comb += self.pmsicr.ECOUNT.eq(Mux(live, ecount, 0))

        # Operations that follow the one that loads it, and decrement.
        behind = Signal(ceil_log2(self._config.ops_per_cycle))
        m.d.comb += behind.eq(count - place)
        with m.If(self.rnd):
            m.d.sync += [
                ecount.eq(Mux(reaches, random - behind, ecount - count)),
                live.eq(Mux(reaches, random > behind, live & (ecount > count))),
            ]
        with m.If(self.write):
            m.d.sync += [ecount.eq(self.wdata.ECOUNT), live.eq(self.wdata.ECOUNT != 0)]

        ends = Signal()
        picks = Signal()
        m.d.comb += [
            # It is overwritten before it ends if the primary counter comes first.
            ends.eq(self.rnd & live & (ecount <= count) & ~(reaches & (ecount[: len(place)] >= place))),
            picks.eq(reaches & (random <= behind)),
        ]
        return [(ends, ecount), (picks, place + random)]

    def _answer(self, m, numbering, selections):
        """From the number of an operation to its lane. The first of two selections comes first in program order."""
        width = self._config.ops_per_cycle
        if width == 1:
            m.d.sync += self.selected[0].eq(Cat(selected for selected, _ in selections).any())
            return

        # Numbers from 1 to `width` differ in these bits.
        bits = ceil_log2(width)
        lanes = Signal(width)
        m.d.sync += lanes.eq(numbering.lanes)
        numbers = [Signal(bits, name=f"number_{lane}") for lane in range(width)]
        m.d.sync += [mine.eq(number) for mine, number in zip(numbers, numbering.number, strict=True)]
        found = []
        for index, (selected, number) in enumerate(selections):
            here = Signal(name=f"here_{index}")
            which = Signal(bits, name=f"which_{index}")
            m.d.sync += [here.eq(selected), which.eq(number)]
            found.append(Signal(width, name=f"found_{index}"))
            m.d.comb += found[-1].eq(
                Cat(here & lane & (mine == which) for lane, mine in zip(lanes, numbers, strict=True))
            )
        if len(found) == 1:
            m.d.sync += self.selected[0].eq(found[0])
        else:
            here = found[0].any()
            m.d.sync += [
                self.selected[0].eq(Mux(here, found[0], found[1])),
                self.selected[1].eq(Mux(here, found[1], 0)),
            ]
