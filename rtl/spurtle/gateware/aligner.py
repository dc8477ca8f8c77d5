"""Alignment of the beats of a record to words of memory (D17.7).

Ref: DDI0487 M.a, D24.7 (PMBIDR_EL1.Align): a record can begin at any multiple of its alignment.
"""

from amaranth import *
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from ..config import SPUConfig, check_config
from ..interface.members import when
from .beat import beat_layout
from .component import ConfiguredComponent
from .fsm import FSMState

__all__ = ["Aligner", "AlignerState", "word_layout"]


def word_layout(config: SPUConfig) -> data.StructLayout:
    """Return the layout of a word of memory and of the bytes that are written to it. LSB first.

    Members
    -------
    data : unsigned(8 * bus_bytes)
    strobe : unsigned(bus_bytes)
        Byte enables.
    last, end : unsigned
        As in `beat_layout`.
    """
    members = beat_layout(config).members
    return data.StructLayout({"data": members["data"], "strobe": config.bus_bytes, **members})


class AlignerState(FSMState):
    """States of `Aligner`."""

    BEATS = 0
    REMAINDER = 1


class Aligner(ConfiguredComponent):
    """Shifter of the bytes of a record upward by `offset` units of its alignment.

    The shift can extend the record by one word. If the alignment is not less than the bus width, each beat is a word.
    Combinational, except for the register of the previous beat.

    Members
    -------
    offset : In(range(units of a beat))
        Constant from the first beat of a record to its last. Only if a record can begin within a word.
    i : In(stream of beat_layout)
    o : Out(stream of word_layout)
    """

    proof_signals = ("aligner_state", "started", "previous", "previous_end")

    def __init__(self, config: SPUConfig):
        check_config(config)
        self._units = max(1, config.bus_bytes // config.layout.align)
        super().__init__(
            config,
            {
                **when(self._units > 1, offset=In(range(self._units))),
                "i": In(stream.Signature(beat_layout(config))),
                "o": Out(stream.Signature(word_layout(config))),
            },
        )

    def elaborate(self, platform):
        m = Module()

        m.d.comb += [
            self.o.valid.eq(self.i.valid),
            self.o.p.data.eq(self.i.p.data),
            self.o.p.strobe.eq(~C(0, self._config.bus_bytes)),
            self.o.p.last.eq(self.i.p.last),
            self.i.ready.eq(self.o.ready),
        ]
        if self._units > 1:
            self._shift(m)

        return m

    def _shift(self, m):
        units = self._units
        unit = len(self.o.p.data) // units
        previous = Signal(len(self.i.p.data) - unit)  # the first unit always fits into the same word
        previous_end = Signal.like(self.i.p.end)
        started = Signal()  # the first word of the record has been accepted
        last = Signal()
        flushing = Signal()
        end = Signal.like(self.i.p.end)
        m.d.comb += [self.o.p.last.eq(last), self.o.p.end.eq(end)]

        with m.FSM(name="aligner"):
            with m.State(AlignerState.BEATS):
                # The last beat is the last word if it still ends within a word when it is shifted. The sum for `end`
                # wraps: zero stands for a full word.
                size = Mux(self.i.p.end == 0, units, self.i.p.end)
                m.d.comb += [last.eq(self.i.p.last & (self.offset + size <= units)), end.eq(self.offset + self.i.p.end)]
                m.d.sync += previous_end.eq(end)
                with m.If(self.o.valid & self.o.ready):
                    m.d.sync += [previous.eq(self.i.p.data[unit:]), started.eq(~last)]
                    with m.If(self.i.p.last & ~last):
                        m.next = AlignerState.REMAINDER

            with m.State(AlignerState.REMAINDER):
                # The units of the last beat that did not fit.
                m.d.comb += [flushing.eq(1), self.o.valid.eq(1), last.eq(1), end.eq(previous_end), self.i.ready.eq(0)]
                with m.If(self.o.ready):
                    m.d.sync += started.eq(0)
                    m.next = AlignerState.BEATS

        # The next record can be valid while the last word is stalled. The word must not change until it is accepted,
        # not even in bytes that are not written.
        beats = Cat(previous, Mux(flushing, 0, self.i.p.data))
        with m.Switch(self.offset):
            for offset in range(units):
                with m.Case(offset):
                    m.d.comb += self.o.p.data.eq(beats[(units - 1 - offset) * unit : (2 * units - 1 - offset) * unit])
        # Units from `offset` on in the first word, and below `end` in the last one, where zero stands for a full word.
        # The first word always has its last unit, and the last word its first unit.
        last_unit = Signal.like(end)
        m.d.comb += last_unit.eq(end - 1)
        from_first = Cat(*(started | (self.offset <= number) for number in range(units - 1)), C(1))
        to_last = Cat(C(1), *(~last | (last_unit >= number) for number in range(1, units)))
        strobe = from_first & to_last
        m.d.comb += self.o.p.strobe.eq(Cat(bit.replicate(self._config.layout.align) for bit in strobe))
