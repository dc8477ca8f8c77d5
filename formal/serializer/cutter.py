"""The cutter as a spec component, for sby: the beats of records of one size."""

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
    """The cutter between free surroundings that keep the stream contract; `rst` is free in every cycle.

    Members
    -------
    i, o : as the cutter's
    beat : In(range(beats))
        The cutter's register of that name, connected when the design is flat. Only the relation that makes the proof
        inductive looks at it.
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

        # Never an idle beat while there is a record. Beat k holds the bytes from k * bus_bytes on, and the record is
        # taken with its last.
        m.d.comb += Assert(self.o.valid == self.i.valid)
        with m.If(self.i.valid):
            m.d.comb += Assert(self.o.p.data == self.i.p.octets.word_select(o_beats.index, len(self.o.p.data)))
            m.d.comb += Assert(self.i.ready == (self.o.ready & self.o.p.last))

        m.d.comb += Assert(self.beat == o_beats.index)

        # Two records in twice as many cycles as one has beats; a stall in the middle of a record; a reset there.
        sent = self.o.valid & self.o.ready
        run = Signal(range(2 * self._beats + 1))
        m.d.sync += run.eq(Mux(sent, run + 1, 0))
        stalled = Signal()
        with m.If(self.o.valid & ~self.o.ready & (o_beats.index == self._beats // 2)):
            m.d.sync += stalled.eq(1)
        was_cut = Signal(reset_less=True)
        m.d.sync += was_cut.eq(self.beat == self._beats // 2)
        m.d.comb += Cover((run == 2 * self._beats) & (self.i.p.octets[8:16] == 0xB0))
        m.d.comb += Cover(stalled & sent & self.o.p.last)
        m.d.comb += Cover(was_cut & (self.beat == 0))

        return m
