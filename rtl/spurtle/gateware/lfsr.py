"""Random number generator (D17.3.2).

Ref: DDI0487 M.a, D17.3.2: the generator is IMPLEMENTATION DEFINED and must be usable after reset.
"""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..config import LFSR_DELAYS
from ..support.arguments import check_range, check_type

__all__ = ["LFSR"]


class LFSR(wiring.Component):
    """Linear feedback shift register of maximal length that advances by as many bits as are used.

    No two numbers share a bit. Latency: a draw or a write takes effect in the next cycle. A write takes precedence over
    a draw in the same cycle. The state is never zero.

    Parameters
    ----------
    bits : int
        Width of a number, from 1 to 11. Bits of a wider number would depend on each other.
    draws : int
        Numbers that can be used in one cycle, from 1 to 32.
    reset : int
        State after reset: any value of 32 bits except zero, which the generator would never leave.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Members
    -------
    random : Out(bits) for each of draws
        Next numbers, uniformly distributed, in the order in which they are used.
    draw : In(range(draws + 1))
        Count of numbers used in this cycle.
    state : Out(32)
        Last bits of the sequence, the newest in bit 0, so that the first number is in the lowest bits.
    write, wdata : In(1), In(32)
        Software seeds the generator. Zero is replaced by one.
    """

    def __init__(self, *, bits: int, draws: int, reset: int):
        width = max(LFSR_DELAYS)
        ranges = {"bits": (bits, min(LFSR_DELAYS)), "draws": (draws, width), "reset": (reset, (1 << width) - 1)}
        for name, (value, maximum) in ranges.items():
            check_type(name, value, int)
            check_range(name, value, 1, maximum)
        self._bits, self._draws, self._reset = bits, draws, reset
        super().__init__(
            {
                "random": Out(bits).array(draws),
                "draw": In(range(draws + 1)),
                "state": Out(width, init=reset),
                "write": In(1),
                "wdata": In(width),
            }
        )

    @property
    def bits(self) -> int:
        """Width of a number."""
        return self._bits

    @property
    def draws(self) -> int:
        """Numbers that can be used in one cycle."""
        return self._draws

    @property
    def reset(self) -> int:
        """State after reset."""
        return self._reset

    def elaborate(self, platform):
        m = Module()

        # Oldest bit first. A new bit depends on bits at least 11 positions before it. The bits of a number, at most 11,
        # therefore do not depend on each other.
        sequence = [*reversed(self.state)]
        max_bits = self._bits * self._draws
        for _ in range(max_bits):
            sequence.append(Cat(sequence[-delay] for delay in LFSR_DELAYS).xor())
        newest_first = Cat(*reversed(sequence))
        states = [newest_first[max_bits - used :][: len(self.state)] for used in range(0, max_bits + 1, self._bits)]
        m.d.comb += [number.eq(state) for number, state in zip(self.random, states, strict=False)]
        with m.If(self.write):
            m.d.sync += self.state.eq(self.wdata | (self.wdata == 0))
        with m.Else():
            with m.Switch(self.draw):
                for count, state in enumerate(states[1:], 1):
                    with m.Case(count):
                        m.d.sync += self.state.eq(state)

        return m
