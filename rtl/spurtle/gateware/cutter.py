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

    The record is accepted when its last beat is selected. `i.ready` depends combinationally on `o.ready`.

    Latency: a beat is valid one cycle after it was selected, the first one after the cycle in which the record became
    valid. There is a beat in every cycle if the next record is valid in the cycle after the previous one was accepted.
    Reset: no beat is valid.

    Members
    -------
    i : In(stream of record_layout)
    o : Out(stream of beat_layout)
    """

    proof_signals = ("beat", "at_last", "low", "high")

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
        # The number of beats is a power of two: the counter wraps by itself.
        beat = Signal(range(self._beats))
        # A multiplexer of all beats is too slow for one cycle after the gates of the record. Each register has a beat
        # of its half of the record, or zero.
        half = -(-self._beats // 2)
        low = Signal(width)
        high = Signal(width)
        in_high = beat >= half
        last = Signal()
        advance = Signal()
        # `beat` is the last one. Registered, because `i.ready` is at the start of a long path.
        at_last = Signal(init=self._beats == 1)
        m.d.comb += [
            advance.eq(~self.o.valid | self.o.ready),
            self.o.p.data.eq(low | high),
            self.o.p.last.eq(last),
            self.i.ready.eq(advance & at_last),
        ]
        with m.If(advance):
            m.d.sync += [
                self.o.valid.eq(self.i.valid),
                last.eq(at_last),
                low.eq(self.i.p.octets[: half * width].word_select(beat % half, width)),
                high.eq(self.i.p.octets[half * width :].word_select(beat % half, width)),
            ]
        # Assignments of their own, which Yosys maps to the reset of the flip-flops, together with `rst`.
        with m.If(advance & in_high):
            m.d.sync += low.eq(0)
        with m.If(advance & ~in_high):
            m.d.sync += high.eq(0)
        with m.If(advance & self.i.valid):
            m.d.sync += [beat.eq(beat + 1), at_last.eq(beat == (self._beats - 2) % self._beats)]

        return m
