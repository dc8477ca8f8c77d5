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
        skid_valid = Signal()
        m.d.comb += self.i.ready.eq(~skid_valid)
        # Captured in every cycle until it is valid, so that `o.ready` does not enable these flip-flops.
        with m.If(~skid_valid):
            m.d.sync += skid.eq(self.i.payload)
        with m.If(~self.o.valid | self.o.ready):
            m.d.sync += [
                self.o.valid.eq(skid_valid | self.i.valid),
                self.o.payload.eq(Mux(skid_valid, Value.cast(skid), Value.cast(self.i.payload))),
                skid_valid.eq(0),
            ]
        with m.Elif(self.i.valid):
            m.d.sync += skid_valid.eq(1)

        return m
