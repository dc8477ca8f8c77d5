"""Register stage of a stream."""

from typing import ClassVar

from amaranth import *
from amaranth.lib.wiring import connect, flipped

from .skid import SkidBuffer

__all__ = ["RegisterStage"]


class RegisterStage(SkidBuffer):
    """Skid buffer with a register at its output, so that `o` depends on no input in the same cycle.

    Latency: one cycle. Reset: the stage is empty.

    Parameters
    ----------
    shape : ShapeLike
        Shape of the payload.

    Members
    -------
    i, o : stream of `shape`
    """

    proof_signals: ClassVar[tuple[str, ...]] = ()

    def elaborate(self, platform):
        m = Module()

        m.submodules.skid = skid = SkidBuffer(self.shape)
        connect(m, flipped(self.i), skid.i)
        m.d.comb += skid.o.ready.eq(~self.o.valid | self.o.ready)
        with m.If(skid.o.ready):
            m.d.sync += [self.o.valid.eq(skid.o.valid), self.o.payload.eq(skid.o.payload)]

        return m
