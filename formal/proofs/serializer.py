"""The serializer's output: the bytes of its records, in order, none lost, none twice, without an idle beat."""

from collections.abc import Iterator
from functools import partial
from typing import Literal

from amaranth.hdl import Assert, Assume, Cover, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from spurtle.config import CONFIGS, SPUConfig
from spurtle.serializer import Serializer, beat_layout

from ..contracts import RecordBeats, StreamContract
from ..proof import Proof, Verdict
from ..sby import check

__all__ = ["SerializerSpec", "proofs"]


class SerializerSpec(wiring.Component):
    """The serializer between free surroundings that keep the stream contract; `rst` is free in every cycle.

    Members
    -------
    i, o : as the serializer's
    beat : In(range(beats))
        The serializer's register of that name, connected when the design is flat. Only the relation that makes the
        proof inductive looks at it.
    """

    def __init__(self, config: SPUConfig):
        self._config = config
        self._beats = config.record_bytes // config.bus_bytes
        super().__init__(
            {
                "i": In(stream.Signature(8 * config.record_bytes)),
                "o": Out(stream.Signature(beat_layout(config))),
                "beat": In(range(self._beats)),
            }
        )

    def elaborate(self, platform):
        m = Module()

        m.submodules.dut = dut = Serializer(self._config)
        connect(m, flipped(self.i), dut.i)
        connect(m, dut.o, flipped(self.o))
        m.submodules.i_rules = StreamContract(self.i, prop=Assume)
        m.submodules.o_rules = StreamContract(self.o, prop=Assert)
        m.submodules.o_beats = o_beats = RecordBeats(self.o, beats=self._beats, prop=Assert)

        # A record is taken with its last beat, which then stands at the output: what is taken is sent, once.
        taken = Signal.like(self.i.payload)
        owed = Signal()
        sent = self.o.valid & self.o.ready
        with m.If(sent & self.o.p.last):
            m.d.sync += owed.eq(0)
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [owed.eq(1), taken.eq(self.i.payload)]
        m.d.comb += Assert(owed == (self.o.valid & self.o.p.last))

        # Beat k holds the bytes from k * bus_bytes on, of the record taken last or of the one that is still offered.
        with m.If(self.o.valid):
            m.d.comb += Assert(self.o.p.last | self.i.valid)
            source = Mux(self.o.p.last, taken, self.i.payload)
            m.d.comb += Assert(self.o.p.data == source.word_select(o_beats.index, len(self.o.p.data)))

        # Never an idle beat: where there was a record and a free output, there is a beat one cycle later.
        willing = Signal()
        m.d.sync += willing.eq(self.i.valid & (~self.o.valid | self.o.ready))
        with m.If(willing):
            m.d.comb += Assert(self.o.valid)

        # The beat to cut next follows the one that is offered.
        m.d.comb += Assert(self.beat == (o_beats.index + self.o.valid)[: len(self.beat)])

        # Two records in twice as many cycles as one has beats; a stall in the middle of a record; a reset there.
        run = Signal(range(2 * self._beats + 1))
        m.d.sync += run.eq(Mux(sent, run + 1, 0))
        stalled = Signal()
        with m.If(self.o.valid & ~self.o.ready & (o_beats.index == self._beats // 2)):
            m.d.sync += stalled.eq(1)
        was_cut = Signal(reset_less=True)
        m.d.sync += was_cut.eq(self.beat == self._beats // 2)
        m.d.comb += Cover((run == 2 * self._beats) & (taken.word_select(1, 8) == 0xB0))
        m.d.comb += Cover(stalled & sent & self.o.p.last)
        m.d.comb += Cover(was_cut & (self.beat == 0))

        return m


def _check(config: SPUConfig, mode: Literal["prove", "cover"], depth: int) -> Verdict:
    name = f"serializer-{config.name}-{mode}"
    return check(SerializerSpec(config), name, mode=mode, depth=depth, inside={"beat": "dut.beat"})


def proofs() -> Iterator[Proof]:
    """The same for each configuration."""
    for config in CONFIGS.values():
        yield Proof(
            "beats are the record's bytes, in order, without a gap", "serializer", config.name, "sby prove",
            partial(_check, config, "prove", 2),
        )  # fmt: skip
        yield Proof(
            "cover: back to back, stalled, reset in the middle", "serializer", config.name, "sby cover",
            partial(_check, config, "cover", 20),
        )  # fmt: skip
