"""Beats of packed records, which have elastic fields.

Ref: DDI0487 M.a, D18.1 (a record is its packets in order of ascending addresses, and padding).
"""

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
"""Bytes that a packed record grows by in one cycle, at most.

With this number, loads and branches of the named configurations take at most 1.25 cycles for each beat of 8 bytes.
"""


class Packer(ConfiguredComponent):
    """Packer of records with elastic fields into beats.

    It appends one step of the record after the other, at any byte, and sends the record beat by beat. A step is the
    present bytes of a section of the record, shifted together. `shifted` is the next step, at its byte position.
    `assembled` holds the bytes that have been appended and not sent, `fill` of them. A step can be appended if `fill`
    is less than a beat, or becomes less in this cycle. No two records share a beat.

    Timing: there is a step in every cycle, even one without bytes, unless an earlier one waits for space. The first
    step of a record can be appended three cycles after the record became valid, as early as in the cycle in which the
    last beat of the previous record is sent. No beat is sent in a cycle in which less than a beat is assembled and more
    steps of the record follow.

    Members
    -------
    i : In(stream of record_layout)
        An absent field is zero.
    o : Out(stream of beat_layout)
    """

    proof_signals = (
        "selected_step",
        "step",
        "position",
        "shifted",
        "advance",
        "append",
        "assembled",
        "fill",
        "complete",
        "beat_ready",
        "has_space",
        "has_space_after_beat",
    )

    def __init__(self, config: SPUConfig):
        check_config(config)
        if not config.layout.packed:
            raise ValueError(f"layout must have an elastic field, not fields of fixed size only as in {config.name}")
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
        # A step begins at the last byte of a beat at the latest.
        shifted = Signal(
            data.StructLayout(
                {"octets": 8 * (beat - 1 + STEP_BYTES), "fill": range(beat + STEP_BYTES), "ends": 1, "valid": 1}
            )
        )
        advance = Signal()
        # Three stages, because one cycle is too short for more: a multiplexer, a shifter, and the assembly of beats.
        self._select(m, step, position, advance)
        self._shift(m, step, position, shifted, advance)
        self._assemble(m, shifted, advance)

        return m

    def _select(self, m, step, position, advance):
        """Select the steps of the record into `step`, the next one with `advance`.

        `position` is the byte of a beat at which the step begins: after the steps before it or, for the end of a
        record, after the padding.

        Padding extends the record to a multiple of the alignment. It follows the end, or precedes it, so that the last
        byte of the end is the last byte of the record. The Timestamp and the End packet have one byte more than a
        multiple of the alignment.
        """
        layout, present = self._config.layout, self.i.p.present
        steps = [self._step(pieces) for pieces in self._sections()]
        selected_step = Signal(len(steps), init=1)  # one-hot: the next step
        # With padding after the end, the last step is the excess of a Timestamp packet over an End packet. A record
        # with an End packet ends one step earlier.
        ends = Signal()
        m.d.comb += [
            ends.eq(selected_step[-1] | (selected_step[-2] & ~present[-1] if layout.padding_last else 0)),
            self.i.ready.eq(advance & ends),
        ]
        # A record begins at byte 0 of a beat, and the sum wraps at a beat. The alignment is a power of two, so that OR
        # moves the end of a record, which follows the padding, to the last byte of an aligned unit.
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

    def _sections(self) -> Iterator[list[tuple[Value, Value, int]]]:
        """Yield the pieces of the record that form each step: bytes, presence, and number of bytes.

        If padding precedes the end of the record, the last step is the end. Otherwise it is the part by which a
        Timestamp packet is longer than an End packet. The bytes before it are divided backward from it; the first step
        has the remainder.
        """
        layout, sizes, record = self._config.layout, self._config.packet_bytes, self.i.p
        bits = iter(record.present)
        present: list[Value] = []
        for field in layout.fields:
            present += field.size(sizes) * [next(bits) if field.elastic else C(1, 1)]
        last = len(present) + (sizes[Packet.END] if layout.padding_last else 0)
        present += sizes[Packet.END] * [C(1, 1)] + (sizes[Packet.TIMESTAMP] - sizes[Packet.END]) * [next(bits)]
        cuts = [0, *range(last % STEP_BYTES or STEP_BYTES, last, STEP_BYTES), last, len(present)]
        # Bytes whose presence is one signal form one piece, so that they share a multiplexer.
        for start, stop in pairwise(cuts):
            runs = [[*run] for _, run in groupby(range(start, stop), key=lambda octet: id(present[octet]))]
            yield [(record.octets[8 * run[0] : 8 * (run[-1] + 1)], present[run[0]], len(run)) for run in runs]

    def _step(self, pieces):
        """Return the bytes and the size of the present pieces. The bytes of absent pieces are zero."""
        octets, size = C(0, 0), C(0, 1)
        for piece, present, part in reversed(pieces):
            octets = Mux(present, Cat(piece, octets), octets) if len(octets) else piece
            size = Mux(present, part, 0) + size
        return octets, size

    def _shift(self, m, step, position, shifted, advance):
        """Shift the previous step, if it has any bytes, to its position as `shifted`. `fill` is its end.

        A step without bytes is never the end of a record.
        """
        with m.If(advance):
            m.d.sync += [
                shifted.octets.eq(step.octets << (position << 3)),
                shifted.fill.eq(position + step.size),
                shifted.ends.eq(step.ends),
                shifted.valid.eq(step.valid & step.size.any()),
            ]

    def _assemble(self, m, shifted, advance):
        """Append the shifted steps to `assembled`, and send its beats."""
        beat = self._config.bus_bytes
        assembled = Signal.like(shifted.octets)  # zero above `fill`
        fill = Signal.like(shifted.fill)
        complete = Signal()  # `assembled` holds the end of its record
        beat_ready = Signal()  # it holds a full beat, or the last one
        has_space = Signal(init=1)  # for another step
        has_space_after_beat = Signal()  # for another step, if a beat is sent in this cycle
        beat_sent = Signal()
        append = Signal()

        def status(fill, complete):
            """Return assignments to the flags about `fill`.

            They are registered, so that no comparison is in the path to `advance`. A complete record leaves no room
            until its last beat is sent, because no two records share a beat.
            """
            below = fill < beat
            return [
                beat_ready.eq(complete | ~below),
                has_space.eq(~complete & below),
                has_space_after_beat.eq(Mux(complete, fill <= beat, ~below & (fill < 2 * beat))),
            ]

        m.d.comb += [
            self.o.valid.eq(beat_ready),
            self.o.p.data.eq(assembled[: 8 * beat]),
            self.o.p.last.eq(complete & has_space_after_beat),
            beat_sent.eq(self.o.valid & self.o.ready),
            append.eq(shifted.valid & (has_space | (has_space_after_beat & self.o.ready))),
            advance.eq(append | ~shifted.valid),
        ]
        if "end" in beat_layout(self._config).members:
            align = self._config.layout.align
            # Padding is part of the record.
            m.d.comb += self.o.p.end.eq((fill + align - 1)[exact_log2(align) : exact_log2(beat)])

        # Both values are zero where the other is not. `shifted.fill` includes the bytes before the step: a step is
        # appended to less than a beat.
        m.d.sync += assembled.eq(Mux(beat_sent, assembled[8 * beat :], assembled) | Mux(append, shifted.octets, 0))
        with m.If(append):
            m.d.sync += [fill.eq(shifted.fill), complete.eq(shifted.ends), *status(shifted.fill, shifted.ends)]
        with m.Elif(beat_sent & self.o.p.last):
            m.d.sync += [fill.eq(0), complete.eq(0), *status(C(0, 1), C(0, 1))]
        with m.Elif(beat_sent):
            m.d.sync += [fill.eq(fill - beat), *status(fill - beat, complete)]


def _one_hot_mux(one_hot, values):
    """Return the value whose bit of `one_hot` is one."""
    result = C(0, 1)
    for bit, value in zip(one_hot, values, strict=True):
        result = result | (value & bit.replicate(len(value)))
    return result
