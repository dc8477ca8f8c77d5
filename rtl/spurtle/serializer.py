"""The packet serializer: the packets of a record in, beats out (D18.2)."""

# Ref: DDI0487 M.a, D18.1 (a record is its packets in order of ascending addresses, and padding).

from collections.abc import Iterator

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from .config import SPUConfig
from .layout import Packet
from .record import record_layout

__all__ = ["Cutter", "Packer", "Serializer", "SkidBuffer", "beat_layout"]

_STEP_BYTES = 12
"""What a packed record grows by in one cycle, at most."""


def beat_layout(config: SPUConfig) -> data.StructLayout:
    """One beat of a record. LSB first.

    Members
    -------
    data : unsigned(8 * bus_bytes)
        The record's bytes in ascending order from bit 0.
    last : unsigned(1)
        The record's last beat.
    end : unsigned
        How much of the last beat is the record's, in units of its alignment; zero for all of it. Only there where the
        alignment is less than the bus.
    """
    units = config.bus_bytes // config.layout.align
    return data.StructLayout(
        {"data": 8 * config.bus_bytes, "last": 1, **({"end": range(units)} if units > 1 else {})},
    )


class Serializer(wiring.Component):
    """Cuts or packs records into beats of the bus width, record after record.

    A record is selected from, not shifted: it has to stand still while it is valid, as every stream payload does. What
    `i.ready` is in a cycle does not depend on what `o.ready` is in it.

    Timing: of records of one size a beat every cycle, the first one cycle after the record. Packed ones take as many
    cycles as they have beats, or steps of 12 bytes, whichever are more; the first beat comes four cycles after the
    record.

    Members
    -------
    i : In(stream of record_layout)
    o : Out(stream of beat_layout)
    """

    def __init__(self, config: SPUConfig):
        self._config = config
        super().__init__(
            {
                "i": In(stream.Signature(record_layout(config))),
                "o": Out(stream.Signature(beat_layout(config))),
            }
        )

    def elaborate(self, platform):
        m = Module()

        m.submodules.cutter = cutter = (Packer if self._config.layout.packed else Cutter)(self._config)
        m.submodules.skid = skid = SkidBuffer(beat_layout(self._config))
        connect(m, flipped(self.i), cutter.i)
        connect(m, cutter.o, skid.i)
        connect(m, skid.o, flipped(self.o))

        return m


class SkidBuffer(wiring.Component):
    """A register stage of a stream that cuts the path from `o.ready` to `i.ready`, with a second place for what comes
    in the cycle in which the output stalls. It lets a transfer pass every cycle.

    Latency: one cycle. Reset: both places are empty.

    Members
    -------
    i, o : stream of `shape`
    """

    def __init__(self, shape):
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform):
        m = Module()

        spare = Signal.like(self.i.payload)
        spared = Signal()
        m.d.comb += self.i.ready.eq(~spared)
        with m.If(~spared):
            m.d.sync += spare.eq(self.i.payload)
        with m.If(~self.o.valid | self.o.ready):
            m.d.sync += [
                self.o.valid.eq(spared | self.i.valid),
                self.o.payload.eq(Mux(spared, Value.cast(spare), Value.cast(self.i.payload))),
                spared.eq(0),
            ]
        with m.Elif(self.i.valid):
            m.d.sync += spared.eq(1)

        return m


class Cutter(wiring.Component):
    """Records of one size: `max_size / bus_bytes` beats each, and the record is taken with its last. Combinational, but
    for the number of the beat.

    Members
    -------
    i : In(stream of record_layout)
    o : Out(stream of beat_layout)
    """

    def __init__(self, config: SPUConfig):
        self._beats = config.layout.max_size // config.bus_bytes
        super().__init__(
            {
                "i": In(stream.Signature(record_layout(config))),
                "o": Out(stream.Signature(beat_layout(config))),
            }
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


class Packer(wiring.Component):
    """Records whose elastic places may be left out. One step of the record is laid down behind the other, on whichever
    byte that is, and leaves beat by beat.

    A step is what the places in a stretch of 12 bytes hold, moved together; steps of which nothing is there are
    skipped. `laid` is what has been laid down and has not left, `fill` bytes of it: where that is less than a beat, or
    becomes less in this cycle, there is room for another step. No two records share a beat.

    Members
    -------
    i : In(stream of record_layout)
    o : Out(stream of beat_layout)
    """

    def __init__(self, config: SPUConfig):
        self._config = config
        super().__init__(
            {
                "i": In(stream.Signature(record_layout(config))),
                "o": Out(stream.Signature(beat_layout(config))),
            }
        )

    def elaborate(self, platform):
        m = Module()

        step = Signal(data.StructLayout({"octets": 8 * _STEP_BYTES, "size": range(_STEP_BYTES + 1), "ends": 1}))
        stepping = Signal()
        taken = Signal()
        self._select(m, step, stepping, taken)
        self._lay_down(m, step, stepping, taken)

        return m

    # From the record to its next step.

    def _select(self, m, step, stepping, taken):
        """`step` is the next one of the record until it is `taken`."""
        steps = [self._step(pieces) for pieces in self._stretches()]
        there = Cat(size.any() for _, size in steps)
        # One bit for the step that comes next, none between records; bits for those behind it.
        chosen = Signal(len(steps))
        left = Signal(len(steps))
        m.d.comb += self.i.ready.eq((taken | ~stepping) & chosen[-1])
        with m.If(~chosen.any()):
            m.d.sync += [chosen.eq(Mux(self.i.valid, there & -there, 0)), left.eq(there & (there - 1))]
        with m.Elif(taken | ~stepping):
            m.d.sync += [chosen.eq(left & -left), left.eq(left & (left - 1))]
        with m.If(taken | ~stepping):
            m.d.sync += [
                stepping.eq(chosen.any()),
                step.octets.eq(_chosen(chosen, [octets for octets, _ in steps])),
                step.size.eq(_chosen(chosen, [size for _, size in steps])),
                step.ends.eq(chosen[-1]),
            ]

    def _pieces(self) -> Iterator[tuple[Value, Value, int]]:
        """The record in pieces that are there or not: their bytes, whether, and how many they are. The last two are the
        end of the record.
        """
        record, sizes = self.i.p, self._config.packet_bytes
        place, offset = 0, 0
        for one in self._config.layout.places:
            size = one.size(sizes)
            present = C(1)
            if one.elastic:
                present, place = record.present[place], place + 1
            while size:
                part = min(size, _STEP_BYTES)
                yield record.octets[8 * offset : 8 * (offset + part)], present, part
                offset, size = offset + part, size - part
        ends = record.octets[8 * offset :]
        yield ends[:8], C(1), sizes[Packet.END]
        yield ends[8:], record.present[place], sizes[Packet.TIMESTAMP] - sizes[Packet.END]

    def _stretches(self) -> list[list[tuple[Value, Value, int]]]:
        """The pieces, as many as go into one step each. The end of the record has a step of its own if there is to be
        padding in front of it.
        """
        *pieces, end, timed = self._pieces()
        stretches: list[list[tuple[Value, Value, int]]] = [[]]
        for run in [*([piece] for piece in pieces), [end, timed]]:
            used = sum(size for *_, size in [*stretches[-1], *run])
            if used > _STEP_BYTES or (run[0] is end and not self._config.layout.padding_last):
                stretches.append([])
            stretches[-1] += run
        return stretches

    def _step(self, pieces):
        """Bytes and size of pieces without those that are not there."""
        octets, size = C(0, 0), C(0, 1)
        for piece, present, part in reversed(pieces):
            octets = Mux(present, Cat(piece, octets), octets)
            size = Mux(present, part, 0) + size
        return octets, size

    # From the steps to beats.

    def _lay_down(self, m, step, stepping, taken):
        layout = self._config.layout
        beat = self._config.bus_bytes
        padding = layout.align - 1
        laid = Signal(8 * (beat - 1 + _STEP_BYTES))  # zero above `fill`
        fill = Signal(range(beat + _STEP_BYTES + padding))
        ending = Signal()  # what is laid down is all of its record
        offset = Signal(range(beat))  # where the next step goes, when there is room
        leaves = Signal()
        done = Signal()

        # Padding goes up to a multiple of the alignment: behind the end, or in front of it so far that the end's last
        # byte comes there. The Timestamp and the End packet have one byte more than a multiple.
        in_front, behind = (0, padding) if layout.padding_last else (padding, 0)
        place = Signal.like(offset)
        end = Signal(range(beat + _STEP_BYTES + padding))
        padded = Cat(C(0, behind.bit_length()), (end + behind)[behind.bit_length() :])
        m.d.comb += [
            self.o.valid.eq((fill >= beat) | ending),
            self.o.p.data.eq(laid[: 8 * beat]),
            self.o.p.last.eq(ending & (fill <= beat)),
            leaves.eq(self.o.valid & self.o.ready),
            done.eq(leaves & self.o.p.last),
            taken.eq(stepping & Mux(ending, done, (fill < beat) | (leaves & (fill < 2 * beat)))),
            place.eq(offset | Mux(step.ends, in_front, 0)),
            end.eq(place + step.size),
        ]
        if "end" in beat_layout(self._config).members:
            unit = layout.align.bit_length() - 1
            m.d.comb += self.o.p.end.eq(fill[unit : len(offset)])

        moved = (step.octets & taken.replicate(len(step.octets))) << (place << 3)
        m.d.sync += laid.eq(Mux(leaves, laid[8 * beat :], laid) | moved)
        with m.If(taken):
            m.d.sync += [fill.eq(Mux(step.ends, padded, end)), offset.eq(Mux(step.ends, 0, end)), ending.eq(step.ends)]
        with m.Elif(done):
            m.d.sync += [fill.eq(0), ending.eq(0)]
        with m.Elif(leaves):
            m.d.sync += fill.eq(fill - beat)


def _chosen(one_hot, values):
    """The value at the place of the one bit that is set."""
    chosen = C(0, 1)
    for bit, value in zip(one_hot, values, strict=True):
        chosen = chosen | (value & bit.replicate(len(value)))
    return chosen
