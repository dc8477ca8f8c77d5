"""Register stage of a stream."""

from amaranth import *
from amaranth.hdl import ShapeLike
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from .skid import SkidBuffer

__all__ = ["RegisterStage"]


class RegisterStage(wiring.Component):
    """Register stage of a stream, without a path from `o.ready` to `i.ready`.

    There can be a transfer in every cycle. Latency: one cycle. Reset: the stage is empty.

    Parameters
    ----------
    shape : ShapeLike
        Shape of the payload.

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

        m.submodules.skid = skid = SkidBuffer(self._shape)
        connect(m, flipped(self.i), skid.i)
        m.d.comb += skid.o.ready.eq(~self.o.valid | self.o.ready)
        with m.If(skid.o.ready):
            m.d.sync += [self.o.valid.eq(skid.o.valid), self.o.payload.eq(skid.o.payload)]

        return m
