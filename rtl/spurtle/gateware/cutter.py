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

        beat = Signal(range(self._beats))
        m.d.comb += [
            self.o.valid.eq(self.i.valid),
            self.o.p.data.eq(self.i.p.octets.word_select(beat, len(self.o.p.data))),
            self.o.p.last.eq(beat == self._beats - 1),
            self.i.ready.eq(self.o.ready & self.o.p.last),
        ]
        with m.If(self.o.valid & self.o.ready):
            # The number of beats is a power of two: the counter wraps by itself.
            m.d.sync += beat.eq(beat + 1)

        return m
