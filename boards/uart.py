"""UART receiver and transmitter, 8N1: a start bit, eight data bits, least significant bit first, and a stop bit."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from spurtle.support.arguments import check_minimum

__all__ = ["BITS_PER_BYTE", "UARTReceiver", "UARTTransmitter"]

BITS_PER_BYTE = 10
"""Bits on the line for one byte: a start bit, eight data bits, a stop bit."""


class UARTReceiver(wiring.Component):
    """UART receiver, which samples each bit in its middle. A byte without a stop bit is dropped.

    Timing: `o.valid` is asserted for one cycle, in the middle of the stop bit.
    Reset: waits for a start bit.

    Parameters
    ----------
    divisor : int
        Clock cycles of a bit; at least 2, so that a bit has a middle.

    Members
    -------
    rx : In(1)
        Synchronous to the clock of this component.
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
        bits = Signal(range(BITS_PER_BYTE + 1))  # bits of this byte that are not sampled yet
        high = Signal()  # the line was high in the previous cycle: a byte begins with a falling edge
        m.d.sync += high.eq(self.rx)
        octet = Signal(8)
        m.d.comb += self.o.payload.eq(octet)

        with m.If(bits == 0):
            with m.If(high & ~self.rx):
                # This is the first cycle of the start bit. The bit is sampled again in its middle to reject a glitch.
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
    """UART transmitter, which can send bytes without a gap.

    Timing: the start bit begins one cycle after a byte is accepted.
    Reset: `tx` is high, which is idle.

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
        bits = Signal(range(BITS_PER_BYTE))  # bits that follow the one on the line
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
