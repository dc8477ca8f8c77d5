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
    late_draw : bool
        `draw` arrives late in its cycle: it is registered, and the state advances after the register. The outputs are
        the same. It takes one more LUT for each bit.

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

    def __init__(self, *, bits: int, draws: int, reset: int, late_draw: bool = False):
        width = max(LFSR_DELAYS)
        ranges = {"bits": (bits, min(LFSR_DELAYS)), "draws": (draws, width), "reset": (reset, (1 << width) - 1)}
        for name, (value, maximum) in ranges.items():
            check_type(name, value, int)
            check_range(name, value, 1, maximum)
        check_type("late_draw", late_draw, bool)
        self._bits, self._draws, self._reset, self._late_draw = bits, draws, reset, late_draw
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

    @property
    def late_draw(self) -> bool:
        """Whether `draw` is registered."""
        return self._late_draw

    def elaborate(self, platform):
        m = Module()

        seed = self.wdata | (self.wdata == 0)
        if self._late_draw:
            stored = Signal.like(self.state, init=self._reset)
            drawn = Signal.like(self.draw)
            m.d.comb += self.state.eq(stored)
            self._advance(m, m.d.comb, stored, drawn)
            m.d.sync += [stored.eq(Mux(self.write, seed, self.state)), drawn.eq(Mux(self.write, 0, self.draw))]
        else:
            with m.If(self.write):
                m.d.sync += self.state.eq(seed)
            with m.Else():
                self._advance(m, m.d.sync, self.state, self.draw)
        m.d.comb += [number.eq(state) for number, state in zip(self.random, self._states(self.state), strict=False)]

        return m

    def _advance(self, m, domain, state, draw):
        """Assign the state after `draw` draws to `self.state`, in a domain, if there are any."""
        with m.Switch(draw):
            for count, advanced in enumerate(self._states(state)[1:], 1):
                with m.Case(count):
                    domain += self.state.eq(advanced)

    def _states(self, state):
        """Return the state after each number of draws from 0 on."""
        # Oldest bit first. A new bit depends on bits at least 11 positions before it. The bits of a number, at most 11,
        # therefore do not depend on each other.
        sequence = [*reversed(state)]
        max_bits = self._bits * self._draws
        for _ in range(max_bits):
            sequence.append(Cat(sequence[-delay] for delay in LFSR_DELAYS).xor())
        newest_first = Cat(*reversed(sequence))
        return [newest_first[max_bits - used :][: len(state)] for used in range(0, max_bits + 1, self._bits)]
