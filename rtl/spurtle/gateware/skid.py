"""A register stage of a stream."""

from amaranth import *
from amaranth.hdl import ShapeLike
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["SkidBuffer"]


class SkidBuffer(wiring.Component):
    """A register stage of a stream that cuts the path from `o.ready` to `i.ready`, with a second place for what comes
    in the cycle in which the output stalls. It lets a transfer pass every cycle.

    Latency: one cycle. Reset: both places are empty.

    Parameters
    ----------
    shape : ShapeLike
        Of the payload.

    Members
    -------
    i, o : stream of `shape`
    """

    def __init__(self, shape: ShapeLike):
        if not isinstance(shape, ShapeLike):
            raise TypeError(f"shape must be a shape, not {shape!r}")
        self._shape = shape
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    @property
    def shape(self) -> ShapeLike:
        """Shape of the payload."""
        return self._shape

    def elaborate(self, platform):
        m = Module()

        spare = Signal.like(self.i.payload)
        spared = Signal()
        m.d.comb += self.i.ready.eq(~spared)
        with m.If(~spared):
            m.d.sync += spare.eq(self.i.payload)
        with m.If(~self.o.valid | self.o.ready):
            m.d.sync += [
                self.o.valid.eq(spared | self.i.valid),
                self.o.payload.eq(Mux(spared, Value.cast(spare), Value.cast(self.i.payload))),
                spared.eq(0),
            ]
        with m.Elif(self.i.valid):
            m.d.sync += spared.eq(1)

        return m
