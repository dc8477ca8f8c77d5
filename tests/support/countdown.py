"""A small component with known behavior, for the tests of the proof engine."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from formal.engine.terms import Boolean
from formal.engine.transition import Wires

__all__ = ["Countdown", "countdown", "zero_flag_is_correct"]


class Countdown(wiring.Component):
    """A counter that counts down to zero and stays at zero.

    `zero` is a separate register, like the flag of the interval counter.

    Parameters
    ----------
    wraps : bool
        A fault: the counter decrements from zero while `start` is 7.
    reset_less : bool
        A fault: reset does not change the value.
    """

    load: In(1)
    start: In(4)
    value: Out(4)

    proof_signals = ("zero",)

    def __init__(self, *, wraps: bool = False, reset_less: bool = False):
        self._wraps = wraps
        self._reset_less = reset_less
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        value = Signal(4, reset_less=self._reset_less)
        zero = Signal(init=1)
        m.d.comb += self.value.eq(value)
        with m.If(self.load):
            m.d.sync += [value.eq(self.start), zero.eq(self.start == 0)]
        with m.Elif(~zero | (self._wraps & (self.start == 7))):
            m.d.sync += [value.eq(value - 1), zero.eq(value == 1)]
        return m


def countdown(rst: int, load: int, start: int, value: int) -> dict[str, int]:
    """Return the next state of the correct counter."""
    if rst:
        return {"value": 0}
    if load:
        return {"value": start}
    return {"value": max(value - 1, 0)}


def zero_flag_is_correct(wires: Wires) -> Boolean:
    """Return whether the register `zero` says whether the value is zero."""
    return (wires["zero"] == 1) == (wires["value"] == 0)
