"""Plain circuits: each has only the function that bounds the clock frequency of a block of the SPU."""

from amaranth.hdl import Array, Elaboratable, Module, Signal, unsigned
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from spurtle.support.arguments import check_minimum

__all__ = ["Counter", "EventCompare", "Gate", "Multiplexer", "Pointer", "SaturatingCounter", "ShiftRegister"]


class Gate(wiring.Component):
    """AND of a word with three conditions, one LUT deep. Combinational.

    With one bit it has the maximum frequency of the device, and therefore of the harness. With a word it bounds the
    multiplexers of the record builder, where a condition fans out to a complete packet.

    Parameters
    ----------
    width : int
        Bits of a word, at least 1.

    Members
    -------
    conditions : In(3)
    word : In(width)
    gated : Out(width)
        `word` if all conditions are set, else zero.
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
        """Build the gate."""
        m = Module()
        m.d.comb += self.gated.eq(self.word & self.conditions.all().replicate(len(self.word)))
        return m


class Counter(wiring.Component):
    """32-bit down counter with reload: the bound of the interval counter.

    Timing: `hit` is a register. It is asserted one cycle after an enabled cycle in which the count is zero.
    Reset: the count is zero.

    Members
    -------
    enable : In(1)
    load : In(32)
        Value to which the counter is reloaded when it is zero and enabled.
    hit : Out(1)
        Asserted for one cycle after each reload.
    """

    def __init__(self):
        super().__init__({"enable": In(1), "load": In(32), "hit": Out(1)})

    def elaborate(self, platform: object) -> Elaboratable:
        """Build the counter."""
        m = Module()
        count = Signal(32)
        m.d.sync += self.hit.eq(self.enable & (count == 0))
        with m.If(self.enable):
            m.d.sync += count.eq(count - 1)
            with m.If(count == 0):
                m.d.sync += count.eq(self.load)
        return m


class EventCompare(wiring.Component):
    """Comparison of events with two masks: the bound of the filter. Combinational.

    Parameters
    ----------
    width : int
        Number of events, at least 1.

    Members
    -------
    events, mask, inverted_mask : In(width)
    passed : Out(1)
        All events in `mask` are set, and none in `inverted_mask`.
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
        """Build the comparison."""
        m = Module()
        m.d.comb += self.passed.eq(~((~self.events & self.mask) | (self.events & self.inverted_mask)).any())
        return m


class ShiftRegister(wiring.Component):
    """Shift register from a complete record to bus words: the bound of the serializer.

    Timing: the first word is valid one cycle after the record is accepted; one word in each cycle without a gap.
    Reset: empty.

    Parameters
    ----------
    record_bytes : int
        Size of a record, a multiple of `bus_bytes`.
    bus_bytes : int
        Size of a bus word.

    Members
    -------
    record : In(8 * record_bytes)
    valid : In(1)
    take : Out(1)
        The record is accepted in a cycle in which `valid` and `take` are asserted.
    word : Out(8 * bus_bytes)
    word_valid : Out(1)
    ready : In(1)
        A word is transferred in a cycle in which `word_valid` and `ready` are asserted.
    last : Out(1)
        `word` is the last one of its record.
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
        """Size of a record, in bytes."""
        return self._record_bytes

    @property
    def bus_bytes(self) -> int:
        """Size of a bus word, in bytes."""
        return self._bus_bytes

    def elaborate(self, platform: object) -> Elaboratable:
        """Build the shift register with a counter of the remaining words.

        `word_valid` and `last` are registers instead of comparisons of the count, to keep them off the longest path.
        """
        m = Module()
        words = Signal(len(self.record), reset_less=True)
        remaining = Signal(unsigned(self._beats.bit_length()))
        advance = Signal()
        m.d.comb += [
            advance.eq(self.ready | ~self.word_valid),
            self.take.eq(~self.word_valid | (self.ready & self.last)),
            self.word.eq(words),
        ]
        with m.If(advance):
            m.d.sync += [
                words.eq(words >> len(self.word)),
                remaining.eq(remaining - 1),
                self.word_valid.eq(self.word_valid & ~self.last),
                self.last.eq(remaining == 2),
            ]
            with m.If(self.take & self.valid):
                m.d.sync += [
                    words.eq(self.record),
                    remaining.eq(self._beats),
                    self.word_valid.eq(1),
                    self.last.eq(self._beats == 1),
                ]
        return m


class SaturatingCounter(wiring.Component):
    """Up counter that saturates: the bound of the latency counters.

    Timing: `count` changes one cycle after `clear` or `enable`.
    Reset: the count is zero.

    Parameters
    ----------
    width : int
        Bits of the counter, at least 1.

    Members
    -------
    clear, enable : In(1)
        `clear` has priority.
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
        """Build the counter."""
        m = Module()
        with m.If(self.clear):
            m.d.sync += self.count.eq(0)
        with m.Elif(self.enable):
            m.d.sync += self.count.eq(self.count + ~self.count.all())
        return m


class Pointer(wiring.Component):
    """64-bit write pointer with a comparison to a limit: the bound of the Profiling Buffer.

    Timing: `pointer` changes one cycle after `write` or `advance`; `fits` is combinational.
    Reset: the pointer is zero.

    Parameters
    ----------
    step : int
        Size of a record in bytes, a power of two.

    Members
    -------
    write : In(1)
        Write `wdata` to the pointer; has priority over `advance`.
    wdata : In(64)
    advance : In(1)
        Add `step` to the pointer.
    limit : In(52)
        Number of the first page after the buffer: bits [63:12] of its address.
    pointer : Out(64)
    fits : Out(1)
        The pointer is below the limit.
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
        """Size of a record, in bytes."""
        return self._step

    def elaborate(self, platform: object) -> Elaboratable:
        """Build the pointer and the comparison."""
        m = Module()
        m.d.comb += self.fits.eq(self.pointer[12:] < self.limit)
        with m.If(self.write):
            m.d.sync += self.pointer.eq(self.wdata)
        with m.Elif(self.advance):
            m.d.sync += self.pointer.eq(self.pointer + self._step)
        return m


class Multiplexer(wiring.Component):
    """Multiplexer of words: the bound of the read of a register. Combinational.

    Parameters
    ----------
    ways : int
        Number of words, at least 1.
    width : int
        Bits of a word, at least 1.

    Members
    -------
    index : In(range(ways))
    words : In(width).array(ways)
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
        """Number of words."""
        return self._ways

    @property
    def width(self) -> int:
        """Bits of a word."""
        return self._width

    def elaborate(self, platform: object) -> Elaboratable:
        """Build the multiplexer."""
        m = Module()
        m.d.comb += self.chosen.eq(Array(self.words)[self.index])
        return m
