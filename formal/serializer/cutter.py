"""Spec component of the cutter, for sby: the beats of records of a fixed size."""

from amaranth.hdl import Assert, Assume, Cover, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from spurtle.config import SPUConfig
from spurtle.gateware.beat import beat_layout
from spurtle.gateware.cutter import Cutter
from spurtle.gateware.record import record_layout

from ..engine.contracts import RecordBeats, StreamContract

__all__ = ["CutterSpec"]


class CutterSpec(wiring.Component):
    """The cutter with unconstrained inputs that keep the stream contract. `rst` is unconstrained in every cycle.

    Members
    -------
    i, o : In, Out
        Ports of the cutter.
    beat : In(range(beats))
        Register `beat` of the cutter, connected in the flattened design. Only the invariant of the induction reads it.
    """

    def __init__(self, config: SPUConfig):
        self._config = config
        self._beats = config.layout.max_size // config.bus_bytes
        super().__init__(
            {
                "i": In(stream.Signature(record_layout(config))),
                "o": Out(stream.Signature(beat_layout(config))),
                "beat": In(range(self._beats)),
            }
        )

    def elaborate(self, platform):
        m = Module()

        m.submodules.dut = dut = Cutter(self._config)
        connect(m, flipped(self.i), dut.i)
        connect(m, dut.o, flipped(self.o))
        m.submodules.i_rules = StreamContract(self.i, prop=Assume)
        m.submodules.o_rules = StreamContract(self.o, prop=Assert)
        m.submodules.o_beats = o_beats = RecordBeats(self.o, beats=self._beats, prop=Assert)

        # A beat is offered in every cycle in which a record is. Beat k contains the bytes from k * bus_bytes on. The
        # record is accepted with its last beat.
        m.d.comb += Assert(self.o.valid == self.i.valid)
        with m.If(self.i.valid):
            m.d.comb += Assert(self.o.p.data == self.i.p.octets.word_select(o_beats.index, len(self.o.p.data)))
            m.d.comb += Assert(self.i.ready == (self.o.ready & self.o.p.last))

        m.d.comb += Assert(self.beat == o_beats.index)

        # Covers: two records back to back; a stall in the middle of a record; a reset there.
        sent = self.o.valid & self.o.ready
        run = Signal(range(2 * self._beats + 1))
        m.d.sync += run.eq(Mux(sent, run + 1, 0))
        stalled = Signal()
        with m.If(self.o.valid & ~self.o.ready & (o_beats.index == self._beats // 2)):
            m.d.sync += stalled.eq(1)
        in_middle = Signal(reset_less=True)
        m.d.sync += in_middle.eq(self.beat == self._beats // 2)
        m.d.comb += Cover((run == 2 * self._beats) & (self.i.p.octets[8:16] == 0xB0))
        m.d.comb += Cover(stalled & sent & self.o.p.last)
        m.d.comb += Cover(in_middle & (self.beat == 0))

        return m
