"""The packet serializer: a record in, full beats out (D18.2)."""

# Ref: DDI0487 M.a, D18.1 (a record is its packets in order of ascending addresses).

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from .config import SPUConfig

__all__ = ["Serializer", "beat_layout"]


def beat_layout(config: SPUConfig) -> data.StructLayout:
    """One beat of a record: `data` with its bytes in ascending order from bit 0, `last` in the record's last beat."""
    return data.StructLayout({"data": 8 * config.bus_bytes, "last": 1})


class Serializer(wiring.Component):
    """Cuts records into beats of the bus width, `record_bytes / bus_bytes` of them, record after record without an
    idle beat.

    A record is selected from, not shifted: it has to stand still while it is valid, as every stream payload does, and
    is taken together with its last beat.

    Latency: one cycle. Reset: no beat is valid; a record that was being cut starts again.

    Members
    -------
    i : In(stream of 8 * record_bytes)
        Byte 0 in bits [7:0].
    o : Out(stream of beats)
    """

    def __init__(self, config: SPUConfig):
        self._beats = config.record_bytes // config.bus_bytes
        super().__init__(
            {
                "i": In(stream.Signature(8 * config.record_bytes)),
                "o": Out(stream.Signature(beat_layout(config))),
            }
        )

    def elaborate(self, platform):
        m = Module()

        beat = Signal(range(self._beats))
        last = Signal()
        m.d.comb += last.eq(beat == self._beats - 1)

        with m.If(~self.o.valid | self.o.ready):
            m.d.comb += self.i.ready.eq(last)
            m.d.sync += [
                self.o.valid.eq(self.i.valid),
                self.o.p.data.eq(self.i.payload.word_select(beat, len(self.o.p.data))),
                self.o.p.last.eq(last),
            ]
            with m.If(self.i.valid):
                # The number of beats is a power of two: the counter wraps by itself.
                m.d.sync += beat.eq(beat + 1)

        return m
