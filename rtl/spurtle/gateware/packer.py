"""Beats of packed records, which have elastic fields.

Ref: DDI0487 M.a, D18.1 (a record is its packets in order of ascending addresses, and padding).
"""

from collections.abc import Iterator
from itertools import groupby, islice

from amaranth import *
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..config import SPUConfig, check_config
from ..config.record_layouts import Packet
from .beat import beat_layout
from .component import ConfiguredComponent
from .record import record_layout

__all__ = ["STEP_BYTES", "Packer", "shifted_layout", "step_layout"]


STEP_BYTES = 10
"""Bytes that a packed record grows by in one cycle, at most.

With this number, loads and branches of the named configurations take at most 1.25 cycles for each beat of 8 bytes.
More bytes are not always faster, because a step ends where the next packets do not fit.
"""


def step_layout() -> data.StructLayout:
    """Return the layout of a step of a record. LSB first.

    Members
    -------
    octets : unsigned(8 * STEP_BYTES)
        Bytes of the step, zero from `size` on.
    size : range(STEP_BYTES + 1)
    ends : unsigned(1)
        Last step of the record.
    valid : unsigned(1)
    """
    return data.StructLayout({"octets": 8 * STEP_BYTES, "size": range(STEP_BYTES + 1), "ends": 1, "valid": 1})


def shifted_layout(config: SPUConfig) -> data.StructLayout:
    """Return the layout of a step that is shifted to its position in a beat. LSB first.

    Members
    -------
    octets : unsigned
        Bytes of the step at its position, with zeros below and above. It begins at the last byte of a beat at the
        latest.
    fill : unsigned
        Number of bytes up to the end of the step.
    ends : unsigned(1)
        Last step of the record.
    lanes : unsigned(bus_bytes)
        Bytes of a beat from the position on; zero if the step is not valid.
    valid : unsigned(1)
        The step has bytes.
    """
    beat = config.bus_bytes
    return data.StructLayout(
        {
            "octets": 8 * (beat - 1 + STEP_BYTES),
            "fill": range(beat + STEP_BYTES),
            "ends": 1,
            "lanes": beat,
            "valid": 1,
        }
    )


class Packer(ConfiguredComponent):
    """Packer of records with elastic fields into beats.

    It appends one step of the record after the other, at any byte, and sends the record beat by beat. A step is the
    present bytes of a section of the record, shifted together. Steps without bytes are omitted, but the first one of a
    record can be empty. `shifted` is the next step, at its byte position. `assembled` holds the bytes that have been
    appended and not sent, `fill` of them. A step can be appended if `fill` is less than a beat, or becomes less in this
    cycle. No two records share a beat. `i.ready` depends combinationally on `o.ready`.

    Latency: the first beat of a record is valid three cycles after the record at the earliest. There is a step in every
    cycle, unless an earlier one waits for space, also from one record to the next if that is valid in the cycle after
    the previous one was accepted. The first step of a record can be appended in the cycle in which the last beat of the
    previous record is sent. The next beat follows immediately if this step has a beat or more. No beat is sent in a
    cycle in which less than a beat is assembled and more steps of the record follow. Reset: no beat is valid.

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
        "last",
        "end",
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

        step = Signal(step_layout())
        position = Signal(range(self._config.bus_bytes))
        shifted = Signal(shifted_layout(self._config))
        advance = Signal()
        # Three stages, because one cycle is too short for more: a multiplexer, a shifter, and the assembly of beats.
        self._select(m, step, position, advance)
        self._shift(m, step, position, shifted, advance)
        self._assemble(m, shifted, advance)

        return m

    def _select(self, m, step, position, advance):
        """Select the steps of the record into `step`, the next one with `advance`, which is valid if the record is.

        `position` is the byte of a beat at which the step begins: after the steps before it or, for the end of a
        record, after the padding.

        Padding extends the record to a multiple of the alignment. It follows the end, or precedes it, so that the last
        byte of the end is the last byte of the record. The Timestamp and the End packet have one byte more than a
        multiple of the alignment.
        """
        layout, present = self._config.layout, self.i.p.present
        sections = list(self._sections())
        steps = [self._step(section) for section in sections]
        has_bytes = [Cat(present for _, present, _ in section).any() for section in sections]
        # One-hot: the next step. A record begins with the first step or, if that has no bytes, with the second one. To
        # search for the first step with bytes would be too slow, because the multiplexer follows.
        selected_step = Signal(len(steps), init=1)
        empty_first = selected_step[0] & ~has_bytes[0]
        selected = Cat(selected_step[0] & has_bytes[0], selected_step[1] | empty_first, selected_step[2:])
        # The first step is zero if it has no bytes.
        operands = Cat(selected_step[0], selected[1:])
        # With padding after the end, the last step is the excess of a Timestamp packet over an End packet. A record
        # with an End packet ends one step earlier.
        ends = Signal()
        m.d.comb += [
            ends.eq(self.i.valid & (selected[-1] | (selected[-2] & ~present[-1] if layout.padding_last else 0))),
            self.i.ready.eq(advance & ends),
        ]
        # A record begins at byte 0 of a beat, and the sum wraps at a beat. The alignment is a power of two, so that OR
        # moves the end of a record, which follows the padding, to the last byte of an aligned unit.
        before = Mux(step.ends, 0, Mux(step.valid, _sum(position, step.size)[: len(position)], position))
        # Captured even if there is no record, so that `advance` alone enables these flip-flops.
        with m.If(advance):
            m.d.sync += [
                step.octets.eq(_one_hot_mux(operands, [octets for octets, _ in steps])),
                step.size.eq(_one_hot_mux(operands, [size for _, size in steps])),
                step.ends.eq(ends),
                step.valid.eq(self.i.valid),
                position.eq(before | (0 if layout.padding_last else Mux(ends, layout.align - 1, 0))),
            ]
        with m.If(advance & self.i.valid):
            m.d.sync += selected_step.eq(Cat(ends, _next(selected, has_bytes)))

    def _sections(self) -> Iterator[list[tuple[Value, Value, int]]]:
        """Yield the pieces of the record that form each step: bytes, presence, and number of bytes.

        A piece is bytes whose presence is one signal, so that they share a multiplexer. It is divided only if it is
        longer than a step. If padding precedes the end of the record, the last step is the end. Otherwise it is the
        part by which a Timestamp packet is longer than an End packet.
        """
        layout, sizes, record = self._config.layout, self._config.packet_bytes, self.i.p
        octets = iter(record.octets.word_select(index, 8) for index in range(len(record.octets) // 8))
        bits, always = iter(record.present), C(1, 1)

        def piece(size, present):
            return Cat(islice(octets, size)), present, size

        fields = [(field.size(sizes), next(bits) if field.elastic else always) for field in layout.fields]
        end, excess = (sizes[Packet.END], always), (sizes[Packet.TIMESTAMP] - sizes[Packet.END], next(bits))
        fields, last = ([*fields, end], [excess]) if layout.padding_last else (fields, [end, excess])
        section, space = [], STEP_BYTES
        for _, run in groupby(fields, key=lambda field: id(field[1])):
            run_sizes, (present, *_) = zip(*run, strict=True)
            remaining = sum(run_sizes)
            while remaining:
                if remaining > space and section:
                    yield section
                    section, space = [], STEP_BYTES
                size = min(remaining, space)
                section.append(piece(size, present))
                remaining, space = remaining - size, space - size
        yield section
        yield [piece(*field) for field in last]

    def _step(self, pieces):
        """Return the bytes and the size of the present pieces. The bytes of absent pieces are zero."""
        octets, size = C(0, 0), C(0, 1)
        for piece, present, part in reversed(pieces):
            octets = Mux(present, Cat(piece, octets), octets) if len(octets) else piece
            size = Mux(present, part, 0) + size
        return octets, size

    def _shift(self, m, step, position, shifted, advance):
        """Shift the previous step, if it has any bytes, to its position as `shifted`.

        A step without bytes is never the end of a record.
        """
        valid = step.valid & step.size.any()
        # A position is never above the last byte of a beat.
        starts = (valid & (position <= lane) for lane in range(self._config.bus_bytes - 1))
        with m.If(advance):
            m.d.sync += [
                shifted.octets.eq(step.octets << (position << 3)),
                shifted.lanes.eq(Cat(*starts, valid)),
                shifted.fill.eq(_sum(position, step.size)),
                shifted.ends.eq(step.ends),
                shifted.valid.eq(valid),
            ]

    def _assemble(self, m, shifted, advance):
        """Append the shifted steps to `assembled`, and send its beats."""
        beat, align = self._config.bus_bytes, self._config.layout.align
        assembled = Signal.like(shifted.octets)  # zero above `fill`
        fill = Signal.like(shifted.fill)
        complete = Signal()  # `assembled` holds the end of its record
        beat_ready = Signal()  # it holds a full beat, or the last one
        has_space = Signal(init=1)  # for another step
        has_space_after_beat = Signal()  # for another step, if a beat is sent in this cycle
        last = Signal()  # it holds the last beat of its record, and no other
        end = Signal(exact_log2(beat // align) if align < beat else 0)  # size of that beat, padding included
        beat_sent = Signal()
        space = Signal()  # for another step, in this cycle
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
                last.eq(complete & (fill <= beat)),
                *([end.eq((fill + align - 1)[exact_log2(align) : exact_log2(beat)])] if align < beat else []),
            ]

        m.d.comb += [
            self.o.valid.eq(beat_ready),
            self.o.p.data.eq(assembled[: 8 * beat]),
            self.o.p.last.eq(last),
            beat_sent.eq(self.o.valid & self.o.ready),
            space.eq(has_space | (has_space_after_beat & self.o.ready)),
            append.eq(shifted.valid & space),
            advance.eq(append | ~shifted.valid),
        ]
        if align < beat:
            m.d.comb += self.o.p.end.eq(end)

        # A step replaces all bytes from its position on, because those above `fill` have no value. An enable for each
        # byte takes less area than a third input of its multiplexer.
        octets, count = assembled.word_select, len(assembled) // 8
        for lane in range(count):
            replaced = Signal(name=f"replaced_{lane}")
            m.d.comb += replaced.eq(space & shifted.lanes[min(lane, beat - 1)])
            with m.If(replaced):
                m.d.sync += octets(lane, 8).eq(shifted.octets.word_select(lane, 8))
            with m.If(beat_sent & ~replaced):
                m.d.sync += octets(lane, 8).eq(octets(lane + beat, 8) if lane + beat < count else 0)
        with m.If(append):
            m.d.sync += [fill.eq(shifted.fill), complete.eq(shifted.ends), *status(shifted.fill, shifted.ends)]
        with m.Elif(beat_sent & self.o.p.last):
            m.d.sync += [fill.eq(0), complete.eq(0), *status(C(0, 1), C(0, 1))]
        with m.Elif(beat_sent):
            m.d.sync += [fill.eq(fill - beat), *status(fill - beat, complete)]


def _next(one_hot, conditions):
    """Yield, without bit 0, a one-hot value: the first condition that is true after the bit of `one_hot`."""
    before = C(0, 1)
    for bit, condition in zip(one_hot, conditions[1:], strict=False):
        before |= bit
        yield before & condition
        before &= ~condition


def _sum(first, second):
    """Return the sum of two numbers of a few bits, without a carry chain, which is slower than LUTs for them."""
    carry, total = C(0, 1), []
    for index in range(max(len(first), len(second))):
        one, other = first[index : index + 1], second[index : index + 1]
        total.append(one ^ other ^ carry)
        carry = (one & other) | (carry & (one ^ other))
    return Cat(*total, carry)


def _one_hot_mux(one_hot, values):
    """Return the value whose bit of `one_hot` is one."""
    result = C(0, 1)
    for bit, value in zip(one_hot, values, strict=True):
        result = result | (value & bit.replicate(len(value)))
    return result
