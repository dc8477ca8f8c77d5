"""Sending of records to memory, one after the other (D17.7)."""

from amaranth import *
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from ..config import SPUConfig, check_config
from ..interface.memory import BeatLayout
from .aligner import Aligner
from .beat import beat_layout
from .component import ConfiguredComponent
from .fsm import FSMState
from .issue_page import PAGE_BITS, IssuePage
from .write_pointer import position_bits

__all__ = ["IssueState", "RecordIssue"]


class IssueState(FSMState):
    """States of `RecordIssue`."""

    BEGIN = 0
    WRITE = 1
    DROP = 2


class RecordIssue(ConfiguredComponent):
    """Sender of records to consecutive addresses, from the loaded pointer upward.

    A record begins only if the longest record fits below the limit at its address. Whether it fits is known before the
    last beat of the previous record is sent, so that it can begin in the next cycle. The last two of the longest
    records below the limit wait for one cycle if records have several sizes: their address is compared exactly.

    Timing: a beat at `i` is valid at `beat` in the next cycle, and a beat can be transferred in every cycle. A dropped
    record takes one cycle in addition to its beats. `fits` or `exceeds` is asserted at most ten cycles after `load`.
    Reset: no beat is valid.

    Members
    -------
    i : In(stream of beat_layout)
    drop : In(1)
        The next record at `i` is dropped.
    writing : In(1)
        Records are written. Otherwise they are dropped.
    open : In(1)
        A record may begin. It has no effect on records that are dropped.
    accepted : Out(1)
        Strobe: the record at `i` is written, or dropped, from the next cycle on.
    begin : Out(1)
        Strobe: it is written.
    beat : Out(stream of BeatLayout)
    load : In(1)
        Strobe while `idle`, and while no beat is valid: the next record begins at `pointer`. `pointer` and `limit` are
        constant from then until `fits` or `exceeds` is asserted, or `load` is asserted again.
    pointer : In(64)
    limit : In(64 - PAGE_BITS)
        Page of the limit.
    idle : Out(1)
        No record is partly accepted.
    page, position : Out
        Page of the next word that is transferred; low bits, `position_bits`, of the address of the next one that is
        accepted at `i`.
    ends : Out(1)
        Strobe: the last beat of a written record is accepted. `position` is its end in the next cycle.
    fits, exceeds : Out(1)
        It is known that the longest record fits at `position`; that it does not.
    """

    proof_signals = ("issue_state", "word", "next_word", "within", "roomy", "tight", "unchanged", "send", "advance")

    def __init__(self, config: SPUConfig):
        check_config(config)
        page = 64 - PAGE_BITS
        super().__init__(
            config,
            {
                "i": In(stream.Signature(beat_layout(config))),
                "drop": In(1),
                "writing": In(1),
                "open": In(1),
                "accepted": Out(1),
                "begin": Out(1),
                "beat": Out(stream.Signature(BeatLayout(config))),
                "load": In(1),
                "pointer": In(64),
                "limit": In(page),
                "idle": Out(1),
                "page": Out(page),
                "position": Out(len(position_bits(config))),
                "ends": Out(1),
                "fits": Out(1),
                "exceeds": Out(1),
            },
        )

    def elaborate(self, platform):
        m = Module()

        m.submodules.page = page = IssuePage(self._config)
        m.submodules.aligner = aligner = Aligner(self._config)
        connect(m, flipped(self.i), aligner.i)
        send = Signal()  # a word is stored in the register of `beat`
        vacant = ~self.beat.valid | self.beat.ready
        may_begin = self.writing & ~self.drop & self.open & self.fits & vacant
        last = aligner.o.valid & aligner.o.ready & aligner.o.p.last

        with m.FSM(name="issue"):
            with m.State(IssueState.BEGIN):
                m.d.comb += [
                    self.idle.eq(1),
                    aligner.o.ready.eq(may_begin),
                    self.begin.eq(aligner.o.valid & may_begin),
                    send.eq(self.begin),
                    self.accepted.eq(aligner.o.valid & (may_begin | ~self.writing | self.drop)),
                ]
                with m.If(self.begin & ~aligner.o.p.last):
                    m.next = IssueState.WRITE
                with m.Elif(aligner.o.valid & (~self.writing | self.drop)):
                    m.next = IssueState.DROP

            with m.State(IssueState.WRITE):
                m.d.comb += [aligner.o.ready.eq(vacant), send.eq(aligner.o.valid & vacant)]
                with m.If(last):
                    m.next = IssueState.BEGIN

            with m.State(IssueState.DROP):
                m.d.comb += aligner.o.ready.eq(1)
                with m.If(last):
                    m.next = IssueState.BEGIN

        m.d.comb += self.ends.eq(send & aligner.o.p.last)
        crosses = self._send(m, send, aligner, page)
        self._compare(m, send, crosses, page)

        return m

    def _send(self, m, send, aligner, page):
        """Send the words to consecutive addresses. Return whether the next word is in another page than the one sent.

        `word` is the number of the word that is sent, and `next_word` that of the next one, up to the lowest bit of the
        page. A record can begin `within` a word.
        """
        word_bit = exact_log2(self._config.bus_bytes)
        first = position_bits(self._config).start
        word = Signal(PAGE_BITS + 1 - word_bit)
        next_word = Signal.like(word)
        within = Signal(word_bit - first)
        end = C(0, 0)
        if len(within):
            end = aligner.o.p.end
            m.d.comb += aligner.offset.eq(within)
        crosses = self.beat.valid & (word[-1] != next_word[-1])
        m.d.comb += [
            self.position.eq(Cat(within, next_word)),
            self.page.eq(page.page),
            page.load.eq(self.load),
            page.pointer.eq(self.pointer),
            page.limit.eq(self.limit),
            page.advance.eq(crosses & self.beat.ready),
            self.beat.p.address.eq(Cat(C(0, word_bit), word[:-1], page.page)),
        ]

        with m.If(send):
            m.d.sync += [
                self.beat.valid.eq(1),
                *(self.beat.p[name].eq(aligner.o.p[name]) for name in ("data", "strobe", "last")),
                word.eq(next_word),
                next_word.eq(next_word + (~aligner.o.p.last | (end == 0))),
                within.eq(Mux(aligner.o.p.last, end, within)),
            ]
        with m.Elif(self.beat.ready):
            m.d.sync += self.beat.valid.eq(0)
        with m.If(self.load):
            m.d.sync += Cat(within, next_word).eq(self.pointer[first : PAGE_BITS + 1])
        return crosses

    def _compare(self, m, send, crosses, page):
        """Find out whether the longest record fits at `position`.

        It fits if its page is below the limit and, if records are aligned to less than the longest one, the next page
        is below the limit too or the record ends within its page.
        """
        layout = self._config.layout
        below = Mux(crosses, page.next_fits, page.fits)
        if layout.align == layout.max_size:
            m.d.comb += [self.fits.eq(page.known & below), self.exceeds.eq(page.known & ~below)]
            return
        size = exact_log2(layout.max_size)
        offset = self.position[: PAGE_BITS - position_bits(self._config).start]
        start = position_bits(self._config).start
        # After the record that began last, another one fits, because two longest ones fit at its address.
        roomy = Signal()
        # The record extends into the next page. Valid for `position` of the previous cycle.
        tight = Signal()
        unchanged = Signal()
        last_two = offset[size + 1 - start :].all() if size + 1 < PAGE_BITS else C(1)
        m.d.sync += [
            tight.eq(offset[size - start :].all() & offset[: size - start].any()),
            unchanged.eq(~send & ~self.load),
        ]
        with m.If(self.load):
            m.d.sync += roomy.eq(0)
        with m.Elif(self.begin):
            m.d.sync += roomy.eq(~last_two | (page.next_fits & ~crosses))
        too_long = tight & ~page.next_fits
        m.d.comb += [
            self.fits.eq(page.known & below & (roomy | (unchanged & ~too_long))),
            self.exceeds.eq(page.known & (~below | (~roomy & unchanged & page.settled & too_long))),
        ]
