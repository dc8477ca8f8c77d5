"""Sending of records to memory, one after the other (D17.7)."""

from amaranth import *
from amaranth.lib import data, stream
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
    LOAD = 3


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
        A record may begin. Only if `writing`.
    accepted : Out(1)
        Strobe: the record at `i` is written, or dropped, from the next cycle on.
    begin : Out(1)
        Strobe: it is written.
    beat : Out(stream of BeatLayout)
    reload : In(1)
        No beat is valid, and the next record begins at `pointer`. It is deasserted by `load`. Not while `open`.
    load : Out(1)
        Strobe: `pointer` is loaded. `pointer` and `limit` are constant from then until `fits` or `exceeds` is asserted,
        or until `load` is asserted again.
    pointer : In(64)
    limit : In(64 - PAGE_BITS)
        Page of the limit.
    enabled : In(1)
        Otherwise no record fits. Constant when `limit` is.
    idle : Out(1)
        No record is being written or dropped.
    page, position : Out
        Page of the next word that is transferred; low bits, `position_bits`, of the address of the next one that is
        accepted at `i`.
    ends : Out(1)
        Strobe: the last beat of a written record is accepted. `position` is its end in the next cycle.
    fits, exceeds : Out(1)
        It is known that the longest record fits at `position`; that it does not.
    """

    proof_signals = (
        "issue_state",
        "word",
        "next_word",
        "at_page_end",
        "within",
        "roomy",
        "exact",
        "compared",
        "send",
        "stored",
    )

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
                "reload": In(1),
                "load": Out(1),
                "pointer": In(64),
                "limit": In(page),
                "enabled": In(1),
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

        m.submodules.issue_page = page = IssuePage(self._config)
        m.submodules.aligner = aligner = Aligner(self._config)
        connect(m, flipped(self.i), aligner.i)
        send = Signal()  # a word is stored in the register of `beat`
        vacant = ~self.beat.valid | self.beat.ready
        may_begin = self.open & ~self.drop & self.fits & vacant
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
                with m.Elif(self.reload):
                    m.next = IssueState.LOAD

            with m.State(IssueState.WRITE):
                m.d.comb += [aligner.o.ready.eq(vacant), send.eq(aligner.o.valid & vacant)]
                with m.If(last):
                    m.next = IssueState.BEGIN

            with m.State(IssueState.DROP):
                m.d.comb += aligner.o.ready.eq(1)
                with m.If(last):
                    m.next = IssueState.BEGIN

            # A state of its own, because many registers are loaded, and because the aligner needs a constant offset
            # while a record is dropped.
            with m.State(IssueState.LOAD):
                m.d.comb += [self.idle.eq(1), self.load.eq(1)]
                m.next = IssueState.BEGIN

        m.d.comb += self.ends.eq(send & aligner.o.p.last)
        self._send(m, send, vacant, aligner, page)
        self._compare(m, send, page)

        return m

    def _send(self, m, send, vacant, aligner, page):
        """Send the words to consecutive addresses.

        `word` is the number of the word that is sent, and `next_word` of the next one, up to the lowest bit of the
        page. A record can begin `within` a word.
        """
        word_bit = exact_log2(self._config.bus_bytes)
        first = position_bits(self._config).start
        word = Signal(PAGE_BITS - word_bit)
        next_word = Signal(len(word) + 1)
        at_page_end = Signal()  # `next_word` is the last word of its page
        within = Signal(word_bit - first)
        complete = C(1)  # the next word is at another address than the one that is stored
        if len(within):
            complete = ~aligner.o.p.last | (aligner.o.p.end == 0)
            m.d.comb += aligner.offset.eq(within)
            with m.If(send & aligner.o.p.last):
                m.d.sync += within.eq(aligner.o.p.end)
        # The strobe of complete words is constant.
        stored = Signal(data.StructLayout({name: aligner.o.p[name].shape() for name in ("data", "last", "strobe")}))
        strobe = stored.strobe if len(within) else aligner.o.p.strobe
        m.d.comb += [
            self.beat.p.data.eq(stored.data),
            self.beat.p.last.eq(stored.last),
            self.beat.p.strobe.eq(strobe),
            self.position.eq(Cat(within, next_word)),
            self.page.eq(page.page),
            page.load.eq(self.load),
            page.pointer.eq(self.pointer),
            page.limit.eq(self.limit),
            page.enabled.eq(self.enabled),
            page.leave.eq(send & at_page_end & complete),
            page.transfer.eq(self.beat.ready),
            self.beat.p.address.eq(Cat(C(0, word_bit), word, page.page)),
        ]

        # The payload is stored even if the word is not sent, so that `send` does not enable these flip-flops.
        with m.If(vacant):
            m.d.sync += [
                self.beat.valid.eq(send),
                stored.data.eq(aligner.o.p.data),
                stored.last.eq(aligner.o.p.last),
                stored.strobe.eq(aligner.o.p.strobe),
                word.eq(next_word),
            ]
        # `send` and `complete` arrive late: the sum and the comparison do not depend on them.
        with m.If(send & complete):
            m.d.sync += [next_word.eq(next_word + 1), at_page_end.eq(next_word[1:-1].all() & ~next_word[0])]
        with m.If(self.load):
            position = self.pointer[first : PAGE_BITS + 1]
            m.d.sync += [Cat(within, next_word).eq(position), at_page_end.eq(position[len(within) : -1].all())]

    def _compare(self, m, send, page):
        """Find out whether the longest record fits at `position`.

        It fits if its page is below the limit and, if records are aligned to less than the longest one, the next page
        is below the limit too or the record ends within its page.
        """
        layout = self._config.layout
        if layout.align == layout.max_size:
            m.d.comb += [self.fits.eq(page.fits), self.exceeds.eq(page.known & ~page.fits)]
            return
        start = position_bits(self._config).start
        size = exact_log2(layout.max_size) - start
        offset = self.position[: PAGE_BITS - start]
        last_two = offset[size + 1 :].all() if size + 1 < len(offset) else C(1)
        last_one = offset[size:].all() & offset[:size].any()
        # Two of the longest records fit where the last record began, so one fits after it.
        roomy = Signal()
        # One fits at `position`, which has been compared.
        exact = Signal()
        compared = Signal()
        m.d.sync += [
            exact.eq(~send & page.known & ~(last_one & ~page.next_fits)),
            compared.eq(~send & page.settled),
        ]
        with m.If(self.load):
            m.d.sync += roomy.eq(0)
        with m.Elif(self.begin):
            m.d.sync += roomy.eq(~last_two | page.next_fits)
        m.d.comb += [
            self.fits.eq(page.fits & (roomy | exact)),
            self.exceeds.eq(page.known & (~page.fits | (~roomy & compared & ~exact))),
        ]
