"""Beats of records whose packets may be left out."""

# Ref: DDI0487 M.a, D18.1 (a record is its packets in order of ascending addresses, and padding).

from collections.abc import Iterator
from itertools import groupby, pairwise

from amaranth import *
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..config import SPUConfig, check_config
from ..config.record_layouts import Packet
from .beat import beat_layout
from .component import ConfiguredComponent
from .record import record_layout

__all__ = ["STEP_BYTES", "Packer"]


STEP_BYTES = 14
"""What a packed record grows by in one cycle, at most."""


class Packer(ConfiguredComponent):
    """Records whose elastic fields may be left out. One step of the record is laid down behind the other, on whichever
    byte that is, and leaves beat by beat.

    A step is what is there of a stretch of the record, moved together. `placed` is the one that comes next, where it
    belongs, and `laid` what has been laid down and has not left, `fill` bytes of it: where that is less than a beat, or
    becomes less in this cycle, there is room for another step. No two records share a beat.

    Timing: a step comes every cycle, also one of which nothing is there, unless one in front of it waits for room; the
    first of a record can be laid down three cycles after the record came, as the last beat of the one before leaves. No
    beat leaves in a cycle in which less than one is there and more is to come.

    Members
    -------
    i : In(stream of record_layout)
        A field that is left out is zero.
    o : Out(stream of beat_layout)
    """

    def __init__(self, config: SPUConfig):
        check_config(config)
        if not config.layout.packed:
            raise ValueError(f"layout must have an elastic field where records are packed, not none in {config.name}")
        super().__init__(
            config,
            {
                "i": In(stream.Signature(record_layout(config))),
                "o": Out(stream.Signature(beat_layout(config))),
            },
        )

    def elaborate(self, platform):
        m = Module()

        beat = self._config.bus_bytes
        step = Signal(
            data.StructLayout({"octets": 8 * STEP_BYTES, "size": range(STEP_BYTES + 1), "ends": 1, "valid": 1})
        )
        place = Signal(range(beat))
        placed = Signal(
            data.StructLayout(
                {"octets": 8 * (beat - 1 + STEP_BYTES), "fill": range(beat + STEP_BYTES), "ends": 1, "valid": 1}
            )
        )
        moves = Signal()
        self._select(m, step, place, moves)
        self._place(m, step, place, placed, moves)
        self._lay_down(m, placed, moves)

        return m

    def _select(self, m, step, place, moves):
        """`step` is one of the record after the other, a new one where it `moves`. `place` is the byte of a beat where
        it begins: behind those before it, the end of a record behind padding.

        Padding goes up to a multiple of the alignment: behind the end, or in front of it so far that the end's last
        byte comes there. The Timestamp and the End packet have one byte more than a multiple.
        """
        layout, present = self._config.layout, self.i.p.present
        steps = [self._step(pieces) for pieces in self._stretches()]
        chosen = Signal(len(steps), init=1)  # one bit, for the step that comes next
        ends = Signal()
        m.d.comb += [
            ends.eq(chosen[-1] | (chosen[-2] & ~present[-1] if layout.padding_last else 0)),
            self.i.ready.eq(moves & ends),
        ]
        before = Mux(step.valid, Mux(step.ends, 0, place + step.size), place)
        with m.If(moves):
            m.d.sync += [
                step.valid.eq(self.i.valid),
                place.eq(before | (0 if layout.padding_last else Mux(ends, layout.align - 1, 0))),
            ]
        with m.If(moves & self.i.valid):
            m.d.sync += [
                step.octets.eq(_chosen(chosen, [octets for octets, _ in steps])),
                step.size.eq(_chosen(chosen, [size for _, size in steps])),
                step.ends.eq(ends),
                chosen.eq(Mux(ends, 1, chosen << 1)),
            ]

    def _stretches(self) -> Iterator[list[tuple[Value, Value, int]]]:
        """The record, cut into what goes into one step each: pieces that are there or not. Their bytes, whether, and
        how many they are.

        The last step is the end of the record if there is to be padding in front of it, otherwise what a Timestamp
        packet has more than an End packet. All before it is cut from its end back; the first step has the rest.
        """
        layout, sizes, record = self._config.layout, self._config.packet_bytes, self.i.p
        bits = iter(record.present)
        present: list[Value] = []
        for field in layout.fields:
            present += field.size(sizes) * [next(bits) if field.elastic else C(1, 1)]
        last = len(present) + (sizes[Packet.END] if layout.padding_last else 0)
        present += sizes[Packet.END] * [C(1, 1)] + (sizes[Packet.TIMESTAMP] - sizes[Packet.END]) * [next(bits)]
        cuts = [0, *range(last % STEP_BYTES or STEP_BYTES, last, STEP_BYTES), last, len(present)]
        for start, stop in pairwise(cuts):
            runs = [[*run] for _, run in groupby(range(start, stop), key=lambda octet: id(present[octet]))]
            yield [(record.octets[8 * run[0] : 8 * (run[-1] + 1)], present[run[0]], len(run)) for run in runs]

    def _step(self, pieces):
        """Bytes and size of pieces without those that are not there, which are zero."""
        octets, size = C(0, 0), C(0, 1)
        for piece, present, part in reversed(pieces):
            octets = Mux(present, Cat(piece, octets), octets) if len(octets) else piece
            size = Mux(present, part, 0) + size
        return octets, size

    def _place(self, m, step, place, placed, moves):
        """`placed` is the step before, if anything is there of it, shifted to its place; `fill`, where it ends."""
        with m.If(moves):
            m.d.sync += [
                placed.octets.eq(step.octets << (place << 3)),
                placed.fill.eq(place + step.size),
                placed.ends.eq(step.ends),
                placed.valid.eq(step.valid & step.size.any()),
            ]

    def _lay_down(self, m, placed, moves):
        beat = self._config.bus_bytes
        laid = Signal.like(placed.octets)  # zero above `fill`
        fill = Signal.like(placed.fill)
        ending = Signal()  # what is laid down is all of its record
        full = Signal()  # a beat of it is there, or the last one
        room = Signal(init=1)  # for what is placed
        soon = Signal()  # there will be, when a beat leaves
        leaves = Signal()
        taken = Signal()

        def known(fill, ending):
            """What is registered of how much there is."""
            below = fill < beat
            return [
                full.eq(ending | ~below),
                room.eq(~ending & below),
                soon.eq(Mux(ending, fill <= beat, ~below & (fill < 2 * beat))),
            ]

        m.d.comb += [
            self.o.valid.eq(full),
            self.o.p.data.eq(laid[: 8 * beat]),
            self.o.p.last.eq(ending & soon),
            leaves.eq(self.o.valid & self.o.ready),
            taken.eq(placed.valid & (room | (soon & self.o.ready))),
            moves.eq(taken | ~placed.valid),
        ]
        if "end" in beat_layout(self._config).members:
            align = self._config.layout.align
            m.d.comb += self.o.p.end.eq((fill + align - 1)[exact_log2(align) : exact_log2(beat)])

        m.d.sync += laid.eq(Mux(leaves, laid[8 * beat :], laid) | Mux(taken, placed.octets, 0))
        with m.If(taken):
            m.d.sync += [fill.eq(placed.fill), ending.eq(placed.ends), *known(placed.fill, placed.ends)]
        with m.Elif(leaves & self.o.p.last):
            m.d.sync += [fill.eq(0), ending.eq(0), *known(C(0, 1), C(0, 1))]
        with m.Elif(leaves):
            m.d.sync += [fill.eq(fill - beat), *known(fill - beat, ending)]


def _chosen(one_hot, values):
    """The value at the place of the one bit that is set."""
    chosen = C(0, 1)
    for bit, value in zip(one_hot, values, strict=True):
        chosen = chosen | (value & bit.replicate(len(value)))
    return chosen
