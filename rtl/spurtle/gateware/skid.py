"""Register stage of a stream."""

from typing import ClassVar

from amaranth import *
from amaranth.hdl import ShapeLike
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["SkidBuffer"]


class SkidBuffer(wiring.Component):
    """Register stage of a stream, without a path from `o.ready` to `i.ready`.

    A second register, the skid register, stores the payload that arrives in the cycle in which the output stalls. There
    can be a transfer in every cycle.

    Latency: one cycle. Reset: both registers are empty.

    Parameters
    ----------
    shape : ShapeLike
        Shape of the payload.

    Members
    -------
    i, o : stream of `shape`
    """

    proof_signals: ClassVar[tuple[str, ...]] = ("skid", "skid_valid")
    """Names of internal signals that proofs in `formal/` read."""

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

        skid = Signal.like(self.i.payload)
        stalled = Signal()
        m.d.comb += [
            self.i.ready.eq(~stalled),
            self.o.valid.eq(stalled | self.i.valid),
            self.o.payload.eq(Mux(stalled, Value.cast(skid), Value.cast(self.i.payload))),
        ]
        m.d.sync += [stalled.eq(self.o.valid & ~self.o.ready), skid.eq(self.o.payload)]

        return m
