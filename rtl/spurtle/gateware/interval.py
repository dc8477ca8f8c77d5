"""Sample interval counter: selection of operations (D17.3).

Ref: DDI0487 M.a, D17.3.3 to D17.3.5. The operation that reloads COUNT does not decrement it (docs/choices.md).
"""

from amaranth import *
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for, ceil_log2

from .. import arch
from ..config import SPUConfig, check_config
from ..interface.register_layout import register_layout
from .comparison import at_most, at_most_one_more
from .component import ConfiguredComponent
from .numbering import Numbering

__all__ = ["IntervalCounter"]

_LOW_BITS = 8
"""Width of the part of COUNT that operations decrement. A random number, which is loaded into it, is as wide."""


class IntervalCounter(ConfiguredComponent):
    """PMSICR_EL1: counter of the operations of the sample population, several in each cycle.

    Operations are counted in program order. An operation that finds COUNT = 0 reloads it. Any other operation
    decrements it. The operation that makes COUNT zero ends the interval and, unless a random number is first counted
    down in ECOUNT, is selected. INTERVAL = 0 behaves as 1.

    COUNT has two parts, so that the carry chain of an operation is eight bits long. `high` takes the borrow of `low`
    one cycle late, and the flags that describe its value follow within a few cycles. They are read only when `low` is
    near zero again, tens of cycles later.

    Latency: operations are counted `count_delay` cycles after they passed the sampling point, and `selected` reports
    them `answer_latency` cycles after they passed it. A read returns PMSICR_EL1 before the operations that are counted
    in that cycle. In the cycle of a write, operations are neither counted nor selected. PMSIRR_EL1 and the random
    number are used with the values of the cycle before an operation is counted or, with one lane, of the cycle in which
    it is. Reset: PMSICR_EL1 is zero.

    Members
    -------
    operations, enabled : In(ops_per_cycle), In(1)
        Lanes in which a member of the sample population passes; profiling is enabled, and they are counted. `enabled`
        arrives late in its cycle.
    interval, rnd : In(24), In(1)
        PMSIRR_EL1.
    random, draw : In(8), Out(1)
        Next random number; it is used in this cycle. `draw` is never asserted in two consecutive cycles.
    write, wdata : In(1), In(PMSICR_EL1)
        Software writes PMSICR_EL1.
    pmsicr : Out(PMSICR_EL1)
        Value that software reads.
    population : Out(range(ops_per_cycle + 1))
        Count of operations that are counted in this cycle.
    selected : Out(ops_per_cycle) for each of selections_per_cycle
        Lane of the selected operation, one-hot or zero; of the second one, if there are two.
    """

    proof_signals = (
        "low",
        "high",
        "borrow",
        "predecessor",
        "halves_zero",
        "high_zero",
        "close",
        "counted",
        "ecount_minus_1",
        "settled_interval",
        "settled_rnd",
        "restart",
        "reload",
    )

    def __init__(self, config: SPUConfig):
        check_config(config)
        self._width = config.ops_per_cycle
        super().__init__(
            config,
            {
                "operations": In(self._width),
                "enabled": In(1),
                "interval": In(arch.PMSIRR_EL1.fields["INTERVAL"].width),
                "rnd": In(1),
                "random": In(arch.PMSICR_EL1.fields["ECOUNT"].width),
                "draw": Out(1),
                "write": In(1),
                "wdata": In(register_layout(arch.PMSICR_EL1)),
                "pmsicr": Out(register_layout(arch.PMSICR_EL1)),
                "population": Out(range(self._width + 1)),
                "selected": Out(self._width).array(config.selections_per_cycle),
            },
        )

    def elaborate(self, platform):
        m = Module()

        m.submodules.numbering = numbering = Numbering(self._config)
        m.d.comb += [
            numbering.operations.eq(self.operations),
            numbering.enabled.eq(self.enabled),
            self.population.eq(numbering.count),
        ]

        # RND and INTERVAL are registered as the random number is in `_difference`, so that all are of one cycle.
        rnd = self._registered(m, self.rnd, "settled_rnd")
        reloads, reaches, remaining = self._build_count(m, numbering)
        # With FEAT_SPE_ERnd the number is loaded into ECOUNT when COUNT reaches zero, otherwise into COUNT by a reload.
        m.d.comb += self.draw.eq(rnd & (reaches if self._config.ernd else reloads) & ~self.write)
        if self._config.ernd:
            selections = self._build_ecount(m, numbering, rnd, reaches, remaining)
        else:
            selections = [
                (
                    self._registered(m, reaches, "reached"),
                    self._registered(m, (remaining - 1)[: ceil_log2(self._width)], "end"),
                )
            ]
        self._find_lanes(m, numbering, selections)

        return m

    def _registered(self, m, value, name):
        """Return `value` one cycle later or, with one lane, where no stage is needed, as it is."""
        if self._width == 1:
            return value
        registered = Signal.like(Value.cast(value), name=name)
        m.d.sync += registered.eq(value)
        return registered

    def _decremented(self, counter, count):
        """Return `counter` less `count`.

        With one lane, `count` arrives late, because it depends on the enable of profiling. It must not go through the
        carry chain.
        """
        return Mux(count, counter - 1, counter) if self._width == 1 else counter - count

    def _difference(self, m, numbering, number, bias, name):
        """Return `number` less `bias` and the operations of this cycle, computed in the previous cycle.

        One carry chain is in that cycle, and one where the result is used.
        """
        # A table instead of an adder. The count is at most the number of lanes, and the bias is 1 or -1.
        subtrahend = Signal(range(-1, self._width + 2), name=f"{name}_subtrahend")
        with m.Switch(numbering.next_count):
            for count in range(self._width + 1):
                with m.Case(count):
                    m.d.comb += subtrahend.eq(count + bias)
        # From -9 to 256: a number has eight bits, there are at most eight operations, and the bias is 1 or -1.
        difference = Signal(signed(10), name=name)
        m.d.sync += difference.eq(number - subtrahend)
        return difference

    def _build_count(self, m, numbering):
        """Build COUNT.

        Return whether an operation of this cycle reloads it, whether one makes it zero, and the low bits of COUNT,
        which are the number of that operation, counted from one.
        """
        low = Signal(_LOW_BITS)
        high = Signal(len(self.pmsicr.COUNT) - _LOW_BITS)
        borrow = Signal()
        borrowed = self._borrowed(m, high, borrow)
        m.d.comb += self.pmsicr.COUNT.eq(Cat(low, borrowed))

        # An operation of this cycle can find COUNT zero, or make it zero, only if COUNT has no more bits than these.
        # `close` is one cycle late. It covers one bit more, which is checked here: until `close` follows, COUNT exceeds
        # the number of lanes.
        bits = bits_for(self._width)
        remaining = low[:bits]
        close = Signal(init=1)  # COUNT is zero after reset
        near = Signal()
        reloads = Signal()
        reaches = Signal()
        m.d.comb += [
            near.eq(close & ~low[bits]),
            reloads.eq(near & (remaining < numbering.count)),
            reaches.eq(near & (remaining != 0) & at_most(remaining, numbering.count)),
        ]

        # `count_reloaded` has one bit more: without a reload the sum can exceed 255, because `remaining` is added.
        count_decremented = Signal(signed(_LOW_BITS + 1))
        count_reloaded = Signal(signed(_LOW_BITS + 2))
        # With FEAT_SPE_ERnd, a reload clears COUNT[7:0] (D17.3.4.3).
        random = C(0) if self._config.ernd else Mux(self.rnd, self.random, 0)
        # Operation `remaining` + 1 reloads COUNT, with the random number. Those after it decrement it, and can borrow.
        m.d.comb += [
            count_decremented.eq(self._decremented(low, numbering.count)),
            count_reloaded.eq(
                random if self._width == 1 else self._difference(m, numbering, random, -1, "restart") + remaining
            ),
        ]
        interval = self._registered(m, self.interval | (self.interval == 0), "settled_interval")
        m.d.sync += [
            low.eq(Mux(reloads, count_reloaded, count_decremented)),
            borrow.eq(Mux(reloads, count_reloaded < 0, count_decremented < 0)),
        ]
        # A reload replaces `high`, and with it the borrow of the earlier value.
        with m.If(borrow):
            m.d.sync += high.eq(borrowed)
        with m.If(reloads):
            m.d.sync += high.eq(interval)

        with m.If(self.write):
            m.d.sync += [Cat(low, high).eq(self.wdata.COUNT), borrow.eq(0)]
        self._find_close(m, close, low, high, bits, reloads)

        return reloads, reaches, remaining

    def _borrowed(self, m, high, borrow):
        """Return `high` less `borrow`.

        With one lane, without a carry chain in the path to the read data. One operation neither borrows in two
        consecutive cycles nor after a reload, so `high` has not changed since its predecessor was computed.
        """
        if self._width > 1:
            return (high - borrow)[: len(high)]
        predecessor = Signal.like(high, init=-1)
        m.d.sync += predecessor.eq(high - 1)
        return Mux(borrow, predecessor, high)

    def _find_close(self, m, close, low, high, bits, reloads):
        """Find whether COUNT has at most one bit more than `bits`, as `close`, one cycle late.

        A reload clears it. The comparisons are made in stages, so that none is in the path of `reloads`. A write sets
        all stages at once, because the new value can be close to zero.
        """
        half = len(high) // 2
        halves_zero = Signal(2, init=0b11)
        high_zero = Signal(init=1)
        m.d.sync += [
            halves_zero.eq(Cat((part == 0) & ~reloads for part in (high[:half], high[half:]))),
            high_zero.eq(halves_zero.all() & ~reloads),
            close.eq(high_zero & (low[bits + 1 :] == 0) & ~reloads),
        ]
        with m.If(self.write):
            written = self.wdata.COUNT
            m.d.sync += [
                halves_zero.eq(Cat(written[_LOW_BITS : _LOW_BITS + half] == 0, written[_LOW_BITS + half :] == 0)),
                high_zero.eq(written[_LOW_BITS:] == 0),
                close.eq(written[bits + 1 :] == 0),
            ]

    def _build_ecount(self, m, numbering, rnd, reaches, remaining):
        """Build ECOUNT (D17.3.4.3).

        Return the possible selections: whether each is made, and the number of operations before it in its cycle.
        """
        # Negative if ECOUNT is zero, so that the sign replaces a comparison.
        ecount_minus_1 = Signal(signed(9), init=-1)
        live = ~ecount_minus_1[-1]
        m.d.comb += self.pmsicr.ECOUNT.eq(Mux(live, ecount_minus_1 + 1, 0))

        # Operation `remaining` loads ECOUNT. Those after it decrement it.
        ecount_decremented = Signal(signed(9))
        loaded = Signal(signed(10))
        m.d.comb += [
            ecount_decremented.eq(self._decremented(ecount_minus_1, numbering.count)),
            loaded.eq(
                self.random - 1
                if self._width == 1
                else self._difference(m, numbering, self.random, 1, "reload") + remaining
            ),
        ]
        with m.If(rnd):
            m.d.sync += ecount_minus_1.eq(Mux(reaches, loaded, Mux(live, ecount_decremented, -1)))
        with m.If(self.write):
            m.d.sync += ecount_minus_1.eq(self.wdata.ECOUNT - 1)

        # The slices suffice: a selection in this cycle has fewer operations before it than there are lanes.
        ended = self._registered(m, rnd & live & (ecount_decremented < 0), "ended")
        ends_after = self._registered(m, at_most_one_more(remaining, ecount_minus_1[: len(remaining)]), "ends_after")
        reached = self._registered(m, reaches, "reached")
        random_ends = self._registered(m, ~rnd | (loaded < 0), "random_ends")
        random_offset = self._registered(m, Mux(self.rnd, self.random, 0), "random_offset")
        return [
            # If COUNT reaches zero no later than ECOUNT does, ECOUNT is overwritten and does not end.
            (ended & ~(reached & ends_after), self._registered(m, ecount_minus_1[: ceil_log2(self._width)], "end")),
            (
                reached & random_ends,
                self._registered(m, (remaining - 1 + random_offset)[: ceil_log2(self._width)], "pick"),
            ),
        ]

    def _find_lanes(self, m, numbering, selections):
        """Find the lanes of the selected operations.

        The first of two selections precedes the second in program order.
        """
        if self._width == 1:
            selected = Cat(selected for selected, _ in selections).any()
            m.d.sync += self.selected[0].eq(selected & ~self.write)
            return

        # The comparison with the number of each lane is a stage of its own.
        lanes = self._registered(m, Mux(self.write, 0, numbering.lanes), "counted")
        before = [self._registered(m, number, f"before_{lane}") for lane, number in enumerate(numbering.before)]
        valid = Signal(len(selections))
        found = []
        for index, (selected, preceding) in enumerate(selections):
            found.append(Signal(self._width, name=f"found_{index}"))
            m.d.comb += [
                valid[index].eq(selected),
                found[index].eq(Cat(lane & (number == preceding) for lane, number in zip(lanes, before, strict=True))),
            ]
        # If only the second selection is made, it is reported as the first.
        if len(found) == 1:
            m.d.sync += self.selected[0].eq(Mux(valid, found[0], 0))
        else:
            m.d.sync += [
                self.selected[0].eq(Mux(valid[0], found[0], Mux(valid[1], found[1], 0))),
                self.selected[1].eq(Mux(valid.all(), found[1], 0)),
            ]
