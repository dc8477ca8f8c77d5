"""Bare circuits: each does the one thing that bounds a block of the SPU, and nothing else."""

from amaranth.hdl import Array, Elaboratable, Module, Signal, unsigned
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from spurtle.support.arguments import check_minimum

__all__ = ["Counter", "EventCompare", "Gate", "Multiplexer", "Pointer", "SaturatingCounter", "ShiftRegister"]


class Gate(wiring.Component):
    """A word that three conditions let through: one LUT deep.

    One bit of it is the fabric's own limit, and so the harness's. A wide one bounds the record's multiplexers, where a
    condition fans out to a whole packet.

    Parameters
    ----------
    width : int

    Members
    -------
    conditions : In(3)
    word, gated : In(width), Out(width)
    """

    def __init__(self, width: int):
        check_minimum("width", width, 1)
        self._width = width
        super().__init__({"conditions": In(3), "word": In(width), "gated": Out(width)})

    @property
    def width(self) -> int:
        """Bits of a word."""
        return self._width

    def elaborate(self, platform: object) -> Elaboratable:
        """Builds the gate."""
        m = Module()
        m.d.comb += self.gated.eq(self.word & self.conditions.all().replicate(len(self.word)))
        return m


class Counter(wiring.Component):
    """A 32-bit down-counter that reloads from zero: the bound of interval counting.

    Members
    -------
    enable : In(1)
    load : In(32)
        Reloaded when an enabled cycle finds zero.
    hit : Out(1)
        High one cycle after each reload.
    """

    def __init__(self):
        super().__init__({"enable": In(1), "load": In(32), "hit": Out(1)})

    def elaborate(self, platform: object) -> Elaboratable:
        """Builds the counter."""
        m = Module()
        count = Signal(32)
        m.d.sync += self.hit.eq(self.enable & (count == 0))
        with m.If(self.enable):
            m.d.sync += count.eq(count - 1)
            with m.If(count == 0):
                m.d.sync += count.eq(self.load)
        return m


class EventCompare(wiring.Component):
    """Are all selected events set, and no forbidden one? Combinational: the bound of the record filter.

    Parameters
    ----------
    width : int
        Events.

    Members
    -------
    events, mask, inverted_mask : In(width)
    passed : Out(1)
    """

    def __init__(self, width: int):
        check_minimum("width", width, 1)
        self._width = width
        super().__init__({"events": In(width), "mask": In(width), "inverted_mask": In(width), "passed": Out(1)})

    @property
    def width(self) -> int:
        """Number of events."""
        return self._width

    def elaborate(self, platform: object) -> Elaboratable:
        """Builds the comparison."""
        m = Module()
        m.d.comb += self.passed.eq(~((~self.events & self.mask) | (self.events & self.inverted_mask)).any())
        return m


class ShiftRegister(wiring.Component):
    """Takes a record whole, gives it out bus word by bus word, one a cycle without a gap: the bound of the serializer.

    Parameters
    ----------
    record_bytes, bus_bytes : int
        A multiple of the other.

    Members
    -------
    record : In(8 * record_bytes)
    valid, take : In(1), Out(1)
        The record is taken in a cycle with both.
    word : Out(8 * bus_bytes)
    word_valid, ready, last : Out(1), In(1), Out(1)
        A word leaves in a cycle with `word_valid` and `ready`; `last` is its record's last.
    """

    def __init__(self, *, record_bytes: int, bus_bytes: int):
        check_minimum("record_bytes", record_bytes, 1)
        check_minimum("bus_bytes", bus_bytes, 1)
        if record_bytes % bus_bytes:
            raise ValueError(f"record_bytes must be a multiple of bus_bytes, {bus_bytes}, not {record_bytes}")
        self._record_bytes = record_bytes
        self._bus_bytes = bus_bytes
        self._beats = record_bytes // bus_bytes
        super().__init__(
            {
                "record": In(8 * record_bytes),
                "valid": In(1),
                "take": Out(1),
                "word": Out(8 * bus_bytes),
                "word_valid": Out(1),
                "ready": In(1),
                "last": Out(1),
            }
        )

    @property
    def record_bytes(self) -> int:
        """Bytes of a record."""
        return self._record_bytes

    @property
    def bus_bytes(self) -> int:
        """Bytes of a word of the bus."""
        return self._bus_bytes

    def elaborate(self, platform: object) -> Elaboratable:
        """Builds the shift register and a count of the words that are left, with its two tests kept as registers."""
        m = Module()
        words = Signal(len(self.record), reset_less=True)
        left = Signal(unsigned(self._beats.bit_length()))
        advance = Signal()
        m.d.comb += [
            advance.eq(self.ready | ~self.word_valid),
            self.take.eq(~self.word_valid | (self.ready & self.last)),
            self.word.eq(words),
        ]
        with m.If(advance):
            m.d.sync += [
                words.eq(words >> len(self.word)),
                left.eq(left - 1),
                self.word_valid.eq(self.word_valid & ~self.last),
                self.last.eq(left == 2),
            ]
            with m.If(self.take & self.valid):
                m.d.sync += [
                    words.eq(self.record),
                    left.eq(self._beats),
                    self.word_valid.eq(1),
                    self.last.eq(self._beats == 1),
                ]
        return m


class SaturatingCounter(wiring.Component):
    """An up-counter that stays at its greatest value: the bound of the latency counters.

    Parameters
    ----------
    width : int

    Members
    -------
    clear, enable : In(1)
        `clear` comes first.
    count : Out(width)
    """

    def __init__(self, width: int):
        check_minimum("width", width, 1)
        self._width = width
        super().__init__({"clear": In(1), "enable": In(1), "count": Out(width)})

    @property
    def width(self) -> int:
        """Bits of the counter."""
        return self._width

    def elaborate(self, platform: object) -> Elaboratable:
        """Builds the counter."""
        m = Module()
        with m.If(self.clear):
            m.d.sync += self.count.eq(0)
        with m.Elif(self.enable):
            m.d.sync += self.count.eq(self.count + ~self.count.all())
        return m


class Pointer(wiring.Component):
    """A 64-bit write pointer that software sets and records move, compared with a limit: the bound of the buffer.

    Parameters
    ----------
    step : int
        Bytes of a record, a power of two.

    Members
    -------
    write, wdata : In(1), In(64)
    advance : In(1)
        A record was written.
    limit : In(52)
        First page that may not be written.
    pointer : Out(64)
    fits : Out(1)
        Combinational: the pointer is below the limit.
    """

    def __init__(self, step: int):
        check_minimum("step", step, 1)
        if step & step - 1:
            raise ValueError(f"step must be a power of two, not {step}")
        self._step = step
        super().__init__(
            {"write": In(1), "wdata": In(64), "advance": In(1), "limit": In(52), "pointer": Out(64), "fits": Out(1)}
        )

    @property
    def step(self) -> int:
        """Bytes of a record."""
        return self._step

    def elaborate(self, platform: object) -> Elaboratable:
        """Builds pointer and comparison."""
        m = Module()
        m.d.comb += self.fits.eq(self.pointer[12:] < self.limit)
        with m.If(self.write):
            m.d.sync += self.pointer.eq(self.wdata)
        with m.Elif(self.advance):
            m.d.sync += self.pointer.eq(self.pointer + self._step)
        return m


class Multiplexer(wiring.Component):
    """One of several words, by number: the bound of reading a register. Combinational.

    Parameters
    ----------
    ways, width : int

    Members
    -------
    index : In(range(ways))
    words : In(width) each
    chosen : Out(width)
    """

    def __init__(self, *, ways: int, width: int):
        check_minimum("ways", ways, 1)
        check_minimum("width", width, 1)
        self._ways = ways
        self._width = width
        super().__init__({"index": In(range(ways)), "words": In(width).array(ways), "chosen": Out(width)})

    @property
    def ways(self) -> int:
        """Words to choose from."""
        return self._ways

    @property
    def width(self) -> int:
        """Bits of a word."""
        return self._width

    def elaborate(self, platform: object) -> Elaboratable:
        """Builds the multiplexer."""
        m = Module()
        m.d.comb += self.chosen.eq(Array(self.words)[self.index])
        return m
