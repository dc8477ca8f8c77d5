"""Skid buffer of a stream."""

from typing import ClassVar

from amaranth import *
from amaranth.hdl import ShapeLike
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["SkidBuffer"]


class SkidBuffer(wiring.Component):
    """Connection of two streams without a path from `o.ready` to `i.ready`.

    A payload that the output does not accept in the cycle in which it arrives is stored in a register, the skid
    register. `i.ready` is the inverse of a register. There can be a transfer in every cycle.

    Latency: none, `o.valid` and `o.payload` depend combinationally on the input. Reset: the skid register is empty.

    Parameters
    ----------
    shape : ShapeLike
        Shape of the payload.

    Members
    -------
    i, o : stream of `shape`
    """

    proof_signals: ClassVar[tuple[str, ...]] = ("skid", "stalled")
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
        stalled = Signal()  # the skid register holds the payload at the output
        m.d.comb += [
            self.i.ready.eq(~stalled),
            self.o.valid.eq(stalled | self.i.valid),
            self.o.payload.eq(Mux(stalled, Value.cast(skid), Value.cast(self.i.payload))),
        ]
        # Captured in every cycle, so that `o.ready` enables no flip-flop and the multiplexer serves the register too.
        m.d.sync += [skid.eq(self.o.payload), stalled.eq(self.o.valid & ~self.o.ready)]

        return m
