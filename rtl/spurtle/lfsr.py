"""Random numbers for sampling (D17.3.2)."""

# Ref: DDI0487 M.a, D17.3.2: the generator is IMPLEMENTATION DEFINED and must come out of reset usable.

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .config import LFSR_DELAYS, LFSR_RESET

__all__ = ["LFSR"]

_DRAWN = 8


class LFSR(wiring.Component):
    """A linear feedback shift register of maximal length that moves on by eight bits for each number that is used.

    No two numbers share a bit, and 2**32 - 1 of them pass before the first comes again.

    Latency: a draw or a write shows in the next cycle; a write comes after a draw of the same cycle. Reset:
    `LFSR_RESET`. The state is never zero.

    Members
    -------
    random : Out(8)
        The next number, uniform over 0 to 255.
    draw : In(1)
        `random` is used in this cycle.
    state : Out(32)
        Its last bits, the newest in bit 0, so that `random` is their lower end.
    write, wdata : In(1), In(32)
        Software seeds it. Zero is taken as one.
    """

    random: Out(_DRAWN)
    draw: In(1)
    state: Out(max(LFSR_DELAYS), init=LFSR_RESET)
    write: In(1)
    wdata: In(max(LFSR_DELAYS))

    def elaborate(self, platform):
        m = Module()

        # A bit so many places before the bit that comes k places after the newest is no new one: each delay is above k.
        new = [Cat(self.state[delay - 1 - k] for delay in LFSR_DELAYS).xor() for k in range(_DRAWN)]
        m.d.comb += self.random.eq(self.state[:_DRAWN])
        with m.If(self.write):
            m.d.sync += self.state.eq(self.wdata | (self.wdata == 0))
        with m.Elif(self.draw):
            m.d.sync += self.state.eq(Cat(*reversed(new), self.state))

        return m
