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

    A step is what is there of a stretch of the record, moved together. `shifted` is the one that comes next, where it
    belongs, and `assembled` what has been laid down and has not left, `fill` bytes of it: where that is less than a
    beat, or becomes less in this cycle, there is room for another step. No two records share a beat.

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
        position = Signal(range(beat))
        shifted = Signal(
            data.StructLayout(
                {"octets": 8 * (beat - 1 + STEP_BYTES), "fill": range(beat + STEP_BYTES), "ends": 1, "valid": 1}
            )
        )
        advance = Signal()
        self._select(m, step, position, advance)
        self._shift(m, step, position, shifted, advance)
        self._assemble(m, shifted, advance)

        return m

    def _select(self, m, step, position, advance):
        """`step` is one of the record after the other, a new one with `advance`. `position` is the byte of a beat where
        it begins: behind those before it, the end of a record behind padding.

        Padding goes up to a multiple of the alignment: behind the end, or in front of it so far that the end's last
        byte comes there. The Timestamp and the End packet have one byte more than a multiple.
        """
        layout, present = self._config.layout, self.i.p.present
        steps = [self._step(pieces) for pieces in self._stretches()]
        selected_step = Signal(len(steps), init=1)  # one bit, for the step that comes next
        ends = Signal()
        m.d.comb += [
            ends.eq(selected_step[-1] | (selected_step[-2] & ~present[-1] if layout.padding_last else 0)),
            self.i.ready.eq(advance & ends),
        ]
        before = Mux(step.valid, Mux(step.ends, 0, position + step.size), position)
        with m.If(advance):
            m.d.sync += [
                step.valid.eq(self.i.valid),
                position.eq(before | (0 if layout.padding_last else Mux(ends, layout.align - 1, 0))),
            ]
        with m.If(advance & self.i.valid):
            m.d.sync += [
                step.octets.eq(_one_hot_mux(selected_step, [octets for octets, _ in steps])),
                step.size.eq(_one_hot_mux(selected_step, [size for _, size in steps])),
                step.ends.eq(ends),
                selected_step.eq(Mux(ends, 1, selected_step << 1)),
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

    def _shift(self, m, step, position, shifted, advance):
        """`shifted` is the step before, if anything is there of it, shifted to its place; `fill`, where it ends."""
        with m.If(advance):
            m.d.sync += [
                shifted.octets.eq(step.octets << (position << 3)),
                shifted.fill.eq(position + step.size),
                shifted.ends.eq(step.ends),
                shifted.valid.eq(step.valid & step.size.any()),
            ]

    def _assemble(self, m, shifted, advance):
        beat = self._config.bus_bytes
        assembled = Signal.like(shifted.octets)  # zero above `fill`
        fill = Signal.like(shifted.fill)
        complete = Signal()  # what is laid down is all of its record
        beat_ready = Signal()  # a beat of it is there, or the last one
        has_room = Signal(init=1)  # for what is placed
        has_room_after_beat = Signal()  # there will be, when a beat leaves
        beat_sent = Signal()
        append = Signal()

        def status(fill, complete):
            """What is registered of how much there is."""
            below = fill < beat
            return [
                beat_ready.eq(complete | ~below),
                has_room.eq(~complete & below),
                has_room_after_beat.eq(Mux(complete, fill <= beat, ~below & (fill < 2 * beat))),
            ]

        m.d.comb += [
            self.o.valid.eq(beat_ready),
            self.o.p.data.eq(assembled[: 8 * beat]),
            self.o.p.last.eq(complete & has_room_after_beat),
            beat_sent.eq(self.o.valid & self.o.ready),
            append.eq(shifted.valid & (has_room | (has_room_after_beat & self.o.ready))),
            advance.eq(append | ~shifted.valid),
        ]
        if "end" in beat_layout(self._config).members:
            align = self._config.layout.align
            m.d.comb += self.o.p.end.eq((fill + align - 1)[exact_log2(align) : exact_log2(beat)])

        m.d.sync += assembled.eq(Mux(beat_sent, assembled[8 * beat :], assembled) | Mux(append, shifted.octets, 0))
        with m.If(append):
            m.d.sync += [fill.eq(shifted.fill), complete.eq(shifted.ends), *status(shifted.fill, shifted.ends)]
        with m.Elif(beat_sent & self.o.p.last):
            m.d.sync += [fill.eq(0), complete.eq(0), *status(C(0, 1), C(0, 1))]
        with m.Elif(beat_sent):
            m.d.sync += [fill.eq(fill - beat), *status(fill - beat, complete)]


def _one_hot_mux(one_hot, values):
    """The value at the place of the one bit that is set."""
    selected_step = C(0, 1)
    for bit, value in zip(one_hot, values, strict=True):
        selected_step = selected_step | (value & bit.replicate(len(value)))
    return selected_step
