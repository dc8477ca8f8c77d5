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
    beat, at_last : In(range(beats)), In(1)
        Registers of the cutter, connected in the flattened design. Only the invariant of the induction reads them.
    """

    def __init__(self, config: SPUConfig):
        self._config = config
        self._beats = config.layout.max_size // config.bus_bytes
        super().__init__(
            {
                "i": In(stream.Signature(record_layout(config))),
                "o": Out(stream.Signature(beat_layout(config))),
                "beat": In(range(self._beats)),
                "at_last": In(1),
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

        # A record is selected beat by beat while it is offered, and accepted with its last beat. A beat is selected in
        # every cycle in which the output is empty or accepted, also from one record to the next.
        octets = self.i.p.octets
        beats = Signal.like(self.beat)
        advance = Signal()
        m.d.comb += advance.eq(~self.o.valid | self.o.ready)
        with m.If(advance & self.i.valid):
            m.d.sync += beats.eq(beats + 1)
        m.d.comb += Assert(self.i.ready == (advance & (beats == self._beats - 1)))

        # A selected beat is offered in the next cycle, and only then. Beat k contains the bytes from k * bus_bytes on.
        record = Signal.like(octets)  # the record of the offered beat
        selected = Signal()
        with m.If(advance):
            m.d.sync += [selected.eq(self.i.valid), record.eq(octets)]
        m.d.comb += Assert(self.o.valid == selected)
        with m.If(self.o.valid):
            m.d.comb += Assert(self.o.p.data == record.word_select(o_beats.index, len(self.o.p.data)))

        # All beats are of one record: it is offered until its last beat is selected.
        with m.If(beats != 0):
            m.d.comb += Assert(self.i.valid & (octets == record))
        m.d.comb += [
            Assert(self.beat == beats),
            Assert(self.at_last == (beats == self._beats - 1)),
            Assert(beats == (o_beats.index + self.o.valid)[: len(beats)]),
        ]

        # Covers: two records back to back; a stall in the middle of a record; a reset there.
        sent = self.o.valid & self.o.ready
        run = Signal(range(2 * self._beats + 1))
        m.d.sync += run.eq(Mux(sent, run + 1, 0))
        stalled = Signal()
        with m.If(self.o.valid & ~self.o.ready & (o_beats.index == self._beats // 2)):
            m.d.sync += stalled.eq(1)
        in_middle = Signal(reset_less=True)
        m.d.sync += in_middle.eq(self.beat == self._beats // 2)
        m.d.comb += Cover((run == 2 * self._beats) & (record[8:16] == 0xB0))
        m.d.comb += Cover(stalled & sent & self.o.p.last)
        m.d.comb += Cover(in_middle & (self.beat == 0))

        return m
