"""Words of AXI4 bursts.

Ref: IHI0022 (AXI4), A3.2.1 (a valid transfer is stable), A3.4.3 (write strobes).
"""

from amaranth import *
from amaranth.lib import data, stream
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..config import SPUConfig, check_config
from ..gateware.component import ConfiguredComponent
from .bursts import longest_record

__all__ = ["WordLayout", "WordQueue", "queue_depth"]


def queue_depth(config: SPUConfig) -> int:
    """Return the number of words in the FIFO, a power of two.

    The FIFO holds the longest record. With several outstanding records, two words of the next record are stored before
    the first word leaves the FIFO.
    """
    return 1 << ceil_log2(longest_record(config) + (2 if config.outstanding > 1 else 0))


class WordLayout(data.StructLayout):
    """One word of a burst. LSB first.

    Members
    -------
    data : unsigned(8 * bus_bytes)
    strobe : unsigned(bus_bytes)
        Byte enables, bit 0 for the lowest address.
    last : unsigned(1)
        Last word of the burst.
    """

    def __init__(self, config: SPUConfig):
        check_config(config)
        super().__init__({"data": 8 * config.bus_bytes, "strobe": config.bus_bytes, "last": 1})


class WordQueue(ConfiguredComponent):
    """FIFO of words, which are sent after their release.

    Latency: a word that is released while all words before it have been sent is valid at `o` two cycles later. Reset:
    empty.

    Members
    -------
    word : In(WordLayout)
    store : In(1)
        Strobe: store `word`. Only if `full` and `drop` are deasserted.
    release : In(1)
        Strobe: the words that are stored are to be sent. Only if `drop` is deasserted.
    drop : In(1)
        Level, held at least until the released words have been sent: words that are not released are dropped.
    mask : In(1)
        Words that become valid in the next cycle, or later while it is one, have no strobes.
    full : Out(1)
        No word can be stored.
    o : Out(stream of WordLayout)
    """

    proof_signals = ("stored", "loaded", "released", "level", "waiting", "advance", "masked", "words")

    def __init__(self, config: SPUConfig):
        check_config(config)
        super().__init__(
            config,
            {
                "word": In(WordLayout(config)),
                "store": In(1),
                "release": In(1),
                "drop": In(1),
                "mask": In(1),
                "full": Out(1),
                "o": Out(stream.Signature(WordLayout(config))),  # pyright: ignore[reportArgumentType]: it is a shape
            },
        )

    def elaborate(self, platform):
        m = Module()

        depth = queue_depth(self._config)
        m.submodules.words = words = Memory(shape=WordLayout(self._config), depth=depth, init=[])
        write, read = words.write_port(), words.read_port()
        # Positions in the FIFO, modulo twice its depth: all words of a full FIFO can have been released.
        stored, loaded, released = (Signal(range(2 * depth), name=name) for name in ("stored", "loaded", "released"))
        level = Signal(range(depth + 1))  # stored - loaded, so that `full` is a flip-flop
        waiting = Signal()
        advance = Signal()
        masked = Signal()
        m.d.comb += [
            write.en.eq(self.store),
            write.addr.eq(stored),
            write.data.eq(self.word),
            waiting.eq(loaded != released),
            advance.eq(waiting & (~self.o.valid | self.o.ready)),
            read.en.eq(advance),
            read.addr.eq(loaded),
            self.full.eq(level[-1]),
            self.o.payload.eq(read.data),
        ]
        with m.If(masked):
            m.d.comb += self.o.p.strobe.eq(0)

        m.d.sync += [
            stored.eq(stored + self.store),
            loaded.eq(loaded + advance),
            level.eq(level + self.store - advance),
        ]
        with m.If(self.release):
            m.d.sync += released.eq(stored)
        with m.If(advance):
            m.d.sync += [self.o.valid.eq(1), masked.eq(self.mask)]
        with m.Elif(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        with m.If(self.drop & ~waiting):
            m.d.sync += [stored.eq(released), level.eq(0)]

        return m
