"""Bytes on a UART, 8N1: a start bit, eight data bits from the least significant one, a stop bit."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from spurtle.support.arguments import check_minimum

__all__ = ["BITS_PER_BYTE", "UARTReceiver", "UARTTransmitter"]

BITS_PER_BYTE = 10
"""On the line: a start bit, eight data bits, a stop bit."""


class UARTReceiver(wiring.Component):
    """Bytes from the line, each read in the middle of its bits. What has no stop bit is not one.

    Timing: a byte is there in the middle of its stop bit, for one cycle.
    Reset: the line is idle.

    Parameters
    ----------
    divisor : int
        Clock cycles of a bit; at least 2, so that a bit has a middle.

    Members
    -------
    rx : In(1)
        Of this clock domain.
    o : Out(stream of 8)
        Always ready.
    """

    def __init__(self, divisor: int):
        check_minimum("divisor", divisor, 2)
        self._divisor = divisor
        super().__init__({"rx": In(1), "o": Out(stream.Signature(8, always_ready=True))})

    @property
    def divisor(self) -> int:
        """Clock cycles of a bit."""
        return self._divisor

    def elaborate(self, platform):
        m = Module()

        timer = Signal(range(self._divisor))
        bits = Signal(range(BITS_PER_BYTE + 1))  # still to be read of this byte
        high = Signal()  # the line was, in the cycle before: a byte begins when it falls
        m.d.sync += high.eq(self.rx)
        octet = Signal(8)
        m.d.comb += self.o.payload.eq(octet)

        with m.If(bits == 0):
            with m.If(high & ~self.rx):
                # In the middle of the start bit, this cycle being its first, it is read again: it might be a glitch.
                m.d.sync += [bits.eq(BITS_PER_BYTE), timer.eq((self._divisor - 1) // 2)]
        with m.Elif(timer != 0):
            m.d.sync += timer.eq(timer - 1)
        with m.Else():
            m.d.sync += [bits.eq(bits - 1), timer.eq(self._divisor - 1), octet.eq(Cat(octet, self.rx)[1:])]
            with m.If((bits == BITS_PER_BYTE) & self.rx):
                m.d.sync += bits.eq(0)
            with m.If(bits == 1):
                m.d.sync += octet.eq(octet)
                m.d.comb += self.o.valid.eq(self.rx)

        return m


class UARTTransmitter(wiring.Component):
    """Byte after byte to the line, without a gap.

    Reset: the line is idle.

    Parameters
    ----------
    divisor : int
        Clock cycles of a bit.

    Members
    -------
    i : In(stream of 8)
    tx : Out(1)
    """

    def __init__(self, divisor: int):
        check_minimum("divisor", divisor, 1)
        self._divisor = divisor
        super().__init__({"i": In(stream.Signature(8)), "tx": Out(1, init=1)})

    @property
    def divisor(self) -> int:
        """Clock cycles of a bit."""
        return self._divisor

    def elaborate(self, platform):
        m = Module()

        following = Signal(BITS_PER_BYTE - 1)
        bits = Signal(range(BITS_PER_BYTE))  # that follow the one on the line
        timer = Signal(range(self._divisor))

        with m.If(timer != 0):
            m.d.sync += timer.eq(timer - 1)
        with m.Elif(bits != 0):
            m.d.sync += [
                Cat(self.tx, following).eq(following),
                bits.eq(bits - 1),
                timer.eq(self._divisor - 1),
            ]
        with m.Else():
            m.d.comb += self.i.ready.eq(1)
            with m.If(self.i.valid):
                m.d.sync += [
                    Cat(self.tx, following).eq(Cat(C(0, 1), self.i.payload, C(1, 1))),
                    bits.eq(BITS_PER_BYTE - 1),
                    timer.eq(self._divisor - 1),
                ]

        return m
