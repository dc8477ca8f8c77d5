"""Beats of records of one size."""

from amaranth import *
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from ..config import SPUConfig, check_config
from .beat import beat_layout
from .component import ConfiguredComponent
from .record import record_layout

__all__ = ["Cutter"]


class Cutter(ConfiguredComponent):
    """Splitter of records of one size into `max_size / bus_bytes` beats each.

    The record is accepted with its last beat. Combinational, except for the number of the beat.

    Members
    -------
    i : In(stream of record_layout)
    o : Out(stream of beat_layout)
    """

    proof_signals = ("beat",)

    def __init__(self, config: SPUConfig):
        check_config(config)
        if config.layout.packed:
            raise ValueError(f"layout must have fields of fixed size only, not elastic ones as in {config.name}")
        self._beats = config.layout.max_size // config.bus_bytes
        super().__init__(
            config,
            {
                "i": In(stream.Signature(record_layout(config))),
                "o": Out(stream.Signature(beat_layout(config))),
            },
        )

    def elaborate(self, platform):
        m = Module()

        width = len(self.o.p.data)
        beats = [self.i.p.octets.word_select(number, width) for number in range(self._beats)]
        beat = Signal(range(self._beats))
        low = Signal(width, reset_less=True)
        high = Signal(width, reset_less=True)
        advance = Signal()
        m.d.comb += [
            advance.eq(~self.o.valid | self.o.ready),
            self.i.ready.eq(advance & beat.all()),
            self.o.p.data.eq(low | high),
        ]
        half = self._beats // 2
        with m.If(advance):
            m.d.sync += [
                self.o.valid.eq(self.i.valid),
                self.o.p.last.eq(beat.all()),
                low.eq(Mux(beat[-1], 0, self.i.p.octets[:half*width].word_select(beat[:-1], width))),
                high.eq(Mux(beat[-1], self.i.p.octets[half*width:].word_select(beat[:-1], width),0)),
            ]
        with m.If(advance & self.i.valid):
            m.d.sync += beat.eq(beat+1)

        return m


def _one_hot_mux(one_hot, values):
    """Return the value whose bit of `one_hot` is one."""
    result = C(0, 1)
    for bit, value in zip(one_hot, values, strict=True):
        result = result | (value & bit.replicate(len(value)))
    return result
