"""Records out of the FPGA: the buffer's write port as bytes, and bytes on a UART."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from spurtle.config import SPUConfig
from spurtle.pe import WritePort

__all__ = ["BITS_PER_BYTE", "RecordBytes", "UARTTransmitter"]

BITS_PER_BYTE = 10
"""On the line: a start bit, eight data bits, a stop bit."""


class RecordBytes(wiring.Component):
    """Stands where memory would: the bytes that each beat writes, in order of ascending addresses, without these.

    Timing: a beat is taken with its last byte, and a byte that it does not write takes a cycle; `done` comes one cycle
    after the last beat of a record.
    Reset: a beat begins.

    Members
    -------
    i : In(WritePort)
    o : Out(stream of 8)
    """

    def __init__(self, config: SPUConfig):
        self._bytes = config.bus_bytes
        super().__init__({"i": In(WritePort(config)), "o": Out(stream.Signature(8))})

    def elaborate(self, platform):
        m = Module()

        beat = self.i.beat
        index = Signal(range(self._bytes))
        writes = beat.p.strobe.bit_select(index, 1)
        m.d.comb += [
            self.o.valid.eq(beat.valid & writes),
            self.o.payload.eq(beat.p.data.word_select(index, 8)),
            beat.ready.eq((self.o.ready | ~writes) & (index == self._bytes - 1)),
        ]
        with m.If(beat.valid & (self.o.ready | ~writes)):
            # The bus width is a power of two: the index wraps by itself.
            m.d.sync += index.eq(index + 1)
        m.d.sync += self.i.done.eq(beat.valid & beat.ready & beat.p.last)

        return m


class UARTTransmitter(wiring.Component):
    """8N1: a start bit, eight data bits from the least significant one, a stop bit. Byte after byte without a gap.

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
        if divisor < 1:
            raise ValueError(f"divisor must be at least 1, not {divisor}")
        self._divisor = divisor
        super().__init__({"i": In(stream.Signature(8)), "tx": Out(1, init=1)})

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
