"""Numbers of the operations that pass in a cycle."""

from amaranth import *
from amaranth.lib.wiring import In, Out

from ..config import SPUConfig, check_config
from ..interface.members import when
from .component import ConfiguredComponent

__all__ = ["Numbering"]

_GROUP = 4
"""Lanes that are numbered in one cycle. A function of four lanes is one LUT."""


class Numbering(ConfiguredComponent):
    """Numbers of the operations of a cycle, in program order.

    Latency: `count_delay` cycles; combinational if that is zero.

    Members
    -------
    operations, enabled : In(ops_per_cycle), In(1)
        Lanes with an operation, bit 0 first; whether they are counted. `enabled` arrives late.
    lanes : Out(ops_per_cycle)
        `operations` that are counted, delayed by `count_delay` cycles.
    before : Out(range(ops_per_cycle)) for each lane
        Count of operations in lower lanes.
    count : Out(range(ops_per_cycle + 1))
        Count of operations in all lanes.
    next_count : Out(range(ops_per_cycle + 1))
        `count` of the next cycle. Only with a delay.
    """

    proof_signals = ("lanes_in_groups", "lower", "upper", "before_*_in_group")

    def __init__(self, config: SPUConfig):
        check_config(config)
        width = config.ops_per_cycle
        if width > 2 * _GROUP:
            raise ValueError(f"ops_per_cycle must be at most {2 * _GROUP}, two groups, not {width}")
        super().__init__(
            config,
            {
                "operations": In(width),
                "enabled": In(1),
                "lanes": Out(width),
                "before": Out(range(width)).array(width),
                "count": Out(range(width + 1)),
                **when(config.count_delay, next_count=Out(range(width + 1))),
            },
        )

    def elaborate(self, platform):
        m = Module()

        width = len(self.operations)
        if width == 1:
            m.d.comb += [self.lanes.eq(self._enabled(self.operations)), self.count.eq(self.lanes)]
        elif width <= _GROUP:
            self._number(m, range(width), self.lanes, self.before, self.next_count)
            m.d.sync += self.count.eq(self.next_count)
        else:
            # Each lane is numbered in its group. In the next cycle the upper group is numbered after the lower one.
            lanes = Signal(width, name="lanes_in_groups")
            before = [Signal(range(_GROUP), name=f"before_{lane}_in_group") for lane in range(width)]
            lower = Signal(range(_GROUP + 1))
            upper = Signal(range(_GROUP + 1))
            next_lower = Signal.like(lower)
            next_upper = Signal.like(upper)
            self._number(m, range(_GROUP), lanes, before, next_lower)
            self._number(m, range(_GROUP, width), lanes, before, next_upper)
            m.d.comb += self.next_count.eq(lower + upper)
            m.d.sync += [
                lower.eq(next_lower),
                upper.eq(next_upper),
                self.lanes.eq(lanes),
                self.count.eq(self.next_count),
            ]
            for lane, number in enumerate(self.before):
                m.d.sync += number.eq(before[lane] + (0 if lane < _GROUP else lower))

        return m

    def _number(self, m, group, lanes, before, count):
        """Assign numbers to the lanes of one group, with a table.

        `enabled` is not an operand of the table. It is combined with the results, because it arrives late.
        """
        operations = self.operations[group.start : group.stop]
        total = Signal.like(count, name=f"{count.name}_total")
        lower = [Signal.like(before[lane], name=f"lower_than_{lane}") for lane in group]
        m.d.sync += lanes[group.start : group.stop].eq(self._enabled(operations))
        m.d.comb += count.eq(self._enabled(total))
        m.d.sync += [before[lane].eq(self._enabled(number)) for lane, number in zip(group, lower, strict=True)]
        with m.Switch(operations):
            for pattern in range(1 << len(group)):
                with m.Case(pattern):
                    m.d.comb += total.eq(pattern.bit_count())
                    m.d.comb += [
                        number.eq((pattern & (1 << index) - 1).bit_count()) for index, number in enumerate(lower)
                    ]

    def _enabled(self, value):
        return value & self.enabled.replicate(len(value))
