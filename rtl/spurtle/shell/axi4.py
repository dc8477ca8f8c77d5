"""Writes of records to memory by AXI4.

Ref: IHI0022 (AXI4); DDI0487 M.a, D17.7 and D24.7 (PMBSR_EL1, outcome of an External abort).
"""

from amaranth import *
from amaranth.lib import data
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2, exact_log2

from .. import arch
from ..config import SPUConfig, check_config
from ..gateware.component import ConfiguredComponent
from ..gateware.fsm import FSMState
from ..interface.members import when
from ..interface.memory import WriteFaultKind, WriteSignature
from ..interface.signature import StructuralSignature
from ..support.arguments import check_range, check_type

__all__ = ["AXI4Write", "AXI4Writer", "WriterState"]

_BOUNDARY_BYTES = 4096
"""Address boundary that no AXI burst crosses."""

_BURST_WORDS = 256
"""Length of the longest AXI4 burst."""

_MAX_OUTSTANDING = 256
"""More bursts than a memory system needs to hide its latency."""

_INCR = 0b01
"""AWBURST of an incrementing burst."""

_NON_CACHEABLE_NON_BUFFERABLE = 0b0010
"""AWCACHE of Normal Non-cacheable Non-bufferable memory."""


class AXI4Write(StructuralSignature):
    """Write channels of AXI4, seen from the manager. Signals have the names and meanings of IHI0022.

    Members
    -------
    awid : Out(1)
        Always zero: writes and their responses are in order.
    awaddr : Out(64)
        Address from PMBPTR_EL1, a virtual address of the Profiling Buffer. The system translates it.
    awcache : Out(4)
        Normal Non-cacheable Non-bufferable: the response comes from the final destination and reports whether the write
        succeeded.
    awprot : Out(3)
        Privileged data access, in the Security state that owned the Profiling Buffer when the record was accepted.
    awnse : Out(1)
        Realm state if `awprot[1]` is also one. From a later issue of AXI. Only with FEAT_RME.
    """

    def __init__(self, config: SPUConfig):
        check_config(config)
        super().__init__(
            {
                "awid": Out(1),
                "awaddr": Out(64),
                "awlen": Out(8),
                "awsize": Out(3),
                "awburst": Out(2),
                "awcache": Out(4),
                "awprot": Out(3),
                **when(config.rme, awnse=Out(1)),
                "awvalid": Out(1),
                "awready": In(1),
                "wdata": Out(8 * config.bus_bytes),
                "wstrb": Out(config.bus_bytes),
                "wlast": Out(1),
                "wvalid": Out(1),
                "wready": In(1),
                "bid": In(1),
                "bresp": In(2),
                "bvalid": In(1),
                "bready": Out(1),
            }
        )


class WriterState(FSMState):
    """States of `AXI4Writer`."""

    COLLECT = 0
    COMPLETE = 1
    RESPONSE = 2


class AXI4Writer(ConfiguredComponent):
    """Writer of records to memory by AXI4.

    It stores a complete record, one beat in every cycle, and then sends it as one INCR burst of full words. A record
    that crosses a 4 KB boundary or is longer than the longest burst is sent as several bursts. A burst is sent without
    gaps, as fast as memory accepts it.

    With `outstanding` = 1, a burst is sent after the response to the previous one, and `write.done` is asserted with
    the last response. An error response is a synchronous External abort on the first word of its burst, and the rest of
    the record is not sent. With more, writes are posted: `write.done` is asserted as soon as another record can be
    stored, and an error response is an asynchronous External abort, `write.abort`. If PMBSR_EL1 does not report
    External aborts, error responses are ignored.

    Timing: the address of a burst is valid three cycles after the last beat of the record, or one cycle after the last
    word of the previous burst was sent; its first word one cycle later. With posted writes, `write.done` is asserted
    one cycle after the last beat, or as soon as the words of the previous record have been sent. Reset: no output is
    valid and no burst is outstanding.

    Parameters
    ----------
    config : SPUConfig
    outstanding : int
        Bursts that can be sent without a response, from 1 to 256.

    Members
    -------
    write : In(WriteSignature)
    ns, nse : In(1)
        Security state that a record belongs to, in the cycle of its first beat. `nse` only with FEAT_RME.
    axi : Out(AXI4Write)
    busy : Out(1)
        A complete record waits to be sent, is being sent, or waits for a response.
    """

    proof_signals = (
        "writer_state",
        "incoming",
        "outgoing",
        "remaining",
        "sending",
        "started",
        "beats_left",
        "stored",
        "loaded",
        "open_bursts",
    )

    def __init__(self, config: SPUConfig, *, outstanding: int = 1):
        check_config(config)
        check_type("outstanding", outstanding, int)
        check_range("outstanding", outstanding, 1, _MAX_OUTSTANDING)
        self._outstanding = outstanding
        super().__init__(
            config,
            {
                "write": In(WriteSignature(config)),
                "ns": In(1),
                **when(config.rme, nse=In(1)),
                "axi": Out(AXI4Write(config)),
                "busy": Out(1),
            },
        )

    @property
    def outstanding(self) -> int:
        """Bursts that can be sent without a response."""
        return self._outstanding

    def elaborate(self, platform):
        m = Module()

        config, axi = self._config, self.axi
        posted = self._outstanding > 1
        # A record that begins within a word can extend over one word more.
        longest = config.max_record_bytes // config.bus_bytes + (config.layout.align < config.bus_bytes)
        word = exact_log2(config.bus_bytes)
        # No burst crosses a page: 4 KB, or the longest burst if a record can be longer than that.
        page_bits = exact_log2(_BOUNDARY_BYTES if longest <= _BURST_WORDS else _BURST_WORDS * config.bus_bytes) - word
        # Words of one record in memory, in one Security state: `more` + 1 words from word `first` of a page onward.
        segment = data.StructLayout(
            {"first": page_bits, "page": 64 - page_bits - word, "more": range(longest), "ns": 1, "nse": int(config.rme)}
        )
        incoming = Signal(segment)  # the record that is being stored
        outgoing = Signal(segment)  # words of the record being sent that are in no burst yet
        remaining = Signal()  # there are such words

        sending = Signal()
        open_bursts = Signal(range(self._outstanding + 1))
        failed = Signal()
        begin = Signal()
        m.d.comb += [
            axi.awid.eq(0),
            axi.bready.eq(1),
            failed.eq(axi.bvalid & axi.bresp[1]),  # SLVERR or DECERR
            begin.eq(remaining & ~sending & (~axi.awvalid | axi.awready) & (open_bursts != self._outstanding)),
        ]
        m.d.sync += open_bursts.eq(open_bursts + begin - axi.bvalid)

        # A FIFO. Without posted writes, each record starts at address 0: an address is the number of a word in its
        # record, which a fault reports. With posted writes, one record is stored while the previous one is sent.
        m.submodules.words = words = Memory(
            shape=data.StructLayout({"data": 8 * config.bus_bytes, "strobe": config.bus_bytes}),
            depth=1 << ceil_log2((1 + posted) * longest),
            init=[],
        )
        stored = Signal(range(words.depth))  # address of the next write
        loaded = Signal(range(words.depth))  # address of the next read
        self._send(m, outgoing, remaining, begin, sending, words.read_port(), loaded)

        complete = Signal()
        with m.FSM(name="writer"):
            with m.State(WriterState.COLLECT):
                self._collect(m, incoming, words.write_port(), stored)
                with m.If(self.write.beat.valid & self.write.beat.p.last):
                    m.next = WriterState.COMPLETE

            with m.State(WriterState.COMPLETE):
                m.d.comb += complete.eq(1)
                # The record before this one has been sent.
                with m.If(~remaining & ~sending):
                    m.d.sync += [outgoing.eq(incoming), remaining.eq(1)]
                    m.d.comb += self.write.done.eq(posted)
                    m.next = WriterState.COLLECT if posted else WriterState.RESPONSE

            if not posted:
                first = Signal.like(loaded)  # first word of the burst, which a fault reports
                with m.State(WriterState.RESPONSE):
                    with m.If(begin):
                        m.d.sync += first.eq(loaded)
                    # The response to the last burst, or an error, which ends the record.
                    with m.If(axi.bvalid & (~remaining | (failed if config.external_aborts else 0))):
                        m.d.comb += self.write.done.eq(1)
                        m.d.sync += [remaining.eq(0), stored.eq(0), loaded.eq(0)]
                        m.next = WriterState.COLLECT

        m.d.comb += self.busy.eq(complete | remaining | (open_bursts != 0))
        m.d.comb += self.write.fault.eq(0)
        if config.external_aborts:
            m.d.comb += self.write.abort.eq(failed if posted else 0)
            if not posted:
                self._report(m, failed, first)

        return m

    def _report(self, m, failed, first):
        """Report a failed burst as a synchronous External abort on `first`, its first word within the record."""
        with m.If(failed):
            m.d.comb += [
                self.write.fault.kind.eq(WriteFaultKind.STAGE_1),
                self.write.fault.fsc.eq(arch.FSC_SYNCHRONOUS),
                self.write.fault.external.eq(1),
                self.write.fault.word.eq(first),
            ]

    def _collect(self, m, incoming, port, stored):
        """Store the beat at `write.beat`, and with the first one the address and the Security state."""
        beat = self.write.beat
        started = Signal()
        m.d.comb += [
            beat.ready.eq(1),
            port.en.eq(beat.valid),
            port.addr.eq(stored),
            port.data.data.eq(beat.p.data),
            port.data.strobe.eq(beat.p.strobe),
        ]
        with m.If(beat.valid):
            m.d.sync += [stored.eq(stored + 1), incoming.more.eq(incoming.more + 1), started.eq(~beat.p.last)]
            with m.If(~started):
                m.d.sync += [
                    Cat(incoming.first, incoming.page).eq(beat.p.address >> exact_log2(self._config.bus_bytes)),
                    incoming.more.eq(0),
                    incoming.ns.eq(self.ns),
                ]
                if self._config.rme:
                    m.d.sync += incoming.nse.eq(self.nse)

    def _send(self, m, outgoing, remaining, begin, sending, port, loaded):
        """Send the outgoing record in bursts.

        A burst starts with `begin` and ends with the record or its page. `remaining` is set while words of the record
        are in no burst yet.
        """
        axi = self.axi
        page_bits = len(outgoing.first)
        end = outgoing.first + outgoing.more
        crosses = end[page_bits:].any()
        length = Signal.like(axi.awlen)  # words less one, as in AWLEN
        beats_left = Signal.like(axi.awlen)
        advance = Signal()
        m.d.comb += [
            axi.awsize.eq(exact_log2(self._config.bus_bytes)),
            axi.awburst.eq(_INCR),
            axi.awcache.eq(_NON_CACHEABLE_NON_BUFFERABLE),
            length.eq(Mux(crosses, ~outgoing.first, outgoing.more)),
            advance.eq(sending & (~axi.wvalid | axi.wready)),
            port.en.eq(advance),
            port.addr.eq(loaded),
            axi.wdata.eq(port.data.data),
            axi.wstrb.eq(port.data.strobe),
        ]

        # Registered, because an address must hold its value until it is accepted.
        with m.If(begin):
            m.d.sync += [
                axi.awvalid.eq(1),
                axi.awaddr.eq(Cat(outgoing.first, outgoing.page) << exact_log2(self._config.bus_bytes)),
                axi.awlen.eq(length),
                axi.awprot.eq(Cat(C(1), outgoing.ns)),  # privileged, Security state; zero for data
                # The rest of the record begins on the next page. Its words less one are what `end` exceeds the page by.
                remaining.eq(crosses),
                outgoing.first.eq(0),
                outgoing.page.eq(outgoing.page + 1),
                outgoing.more.eq(Cat(end[:page_bits], end[page_bits:] - 1)),
            ]
            if self._config.rme:
                m.d.sync += axi.awnse.eq(outgoing.nse)
        with m.Elif(axi.awready):
            m.d.sync += axi.awvalid.eq(0)

        with m.If(advance):
            m.d.sync += [axi.wvalid.eq(1), axi.wlast.eq(beats_left == 0), sending.eq(beats_left != 0)]
            m.d.sync += [beats_left.eq(beats_left - 1), loaded.eq(loaded + 1)]
        with m.Elif(axi.wready):
            m.d.sync += axi.wvalid.eq(0)
        # Never in the same cycle as `advance`, which requires `sending`: a burst begins when it is zero.
        with m.If(begin):
            m.d.sync += [sending.eq(1), beats_left.eq(length)]
