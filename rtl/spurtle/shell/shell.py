"""Shells that give the SPU ports of AMBA: records leave by an AXI4 write manager, registers are reached by APB4."""

# Ref: IHI0022 (AXI4), IHI0024 (APB4); DDI0487 M.a, D17.7 and D24.7 (PMBSR_EL1) for what an External abort comes to.

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2, exact_log2

from .. import arch
from ..config import SHELLS, SPUConfig, check_config
from ..gateware.spu import SPU
from ..interface.memory import WriteFaultKind, WriteSignature
from ..interface.pe_state import owner_state
from ..interface.sysreg import AccessOutcome, SystemRegisterSignature

__all__ = ["APB4", "APB4Completer", "AXI4Write", "AXI4Writer", "Shell"]

_PAGE_BYTES = 4096
"""No burst of AXI crosses a multiple of it."""

_BURST_WORDS = 256
"""The longest burst of AXI4."""

_MOST_OUTSTANDING = 256
"""More than a memory system hides."""

_INCR = 0b01
"""AWBURST."""

_NON_CACHEABLE_NON_BUFFERABLE = 0b0010
"""AWCACHE of Normal memory."""


class AXI4Write(wiring.Signature):
    """The write channels of AXI4, seen from the manager. Names and meanings are AXI's.

    Members
    -------
    awid : Out(1)
        Always zero: writes, and their responses, are in order.
    awaddr : Out(64)
        What PMBPTR_EL1 counts: a virtual address, for who translates the Profiling Buffer's.
    awcache : Out(4)
        Normal, Non-cacheable, Non-bufferable: a response comes from where the data is, and tells whether it got there.
    awprot : Out(3)
        Privileged data of the Security state that owned the Profiling Buffer when the record was begun.
    awnse : Out(1)
        With `awprot[1]`: Realm state. Of a later AXI, and only there with FEAT_RME.
    """

    def __init__(self, config: SPUConfig):
        super().__init__(
            {
                "awid": Out(1),
                "awaddr": Out(64),
                "awlen": Out(8),
                "awsize": Out(3),
                "awburst": Out(2),
                "awcache": Out(4),
                "awprot": Out(3),
                **({"awnse": Out(1)} if config.rme else {}),
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


class AXI4Writer(wiring.Component):
    """Writes records to memory by AXI4. A record is taken whole, a beat in every cycle, and leaves as one INCR burst of
    whole words, or as several where it crosses 4 KB or is longer than a burst can be. A burst is sent without a gap, as
    fast as memory takes it.

    With `outstanding` = 1 a burst goes out when the one before has been answered, and `write.done` comes with the last
    answer. An error is a synchronous External abort on the first word of its burst, and what is left of the record is
    not sent. Otherwise writes are posted: `write.done` comes as soon as there is room for another record, and an error
    is an asynchronous External abort, `write.abort`. Where PMBSR_EL1 does not report External aborts, errors are
    ignored.

    Timing: a burst's address is offered three cycles after the record's last beat, or one cycle after the burst before
    it has left; its first word one cycle later. Posted, `write.done` comes one cycle after the last beat, or as soon
    as the words of the record before have left. Reset: nothing is valid, nothing is open.

    Parameters
    ----------
    outstanding : int
        Bursts that may be sent and not answered, from 1 to 256.

    Members
    -------
    write : In(WritePort)
    ns, nse : In(1)
        The Security state that a record belongs to, in the cycle of its first beat. The latter only with FEAT_RME.
    axi : Out(AXI4Write)
    busy : Out(1)
        Something that was taken is not in memory yet, nor known to have failed.
    """

    def __init__(self, config: SPUConfig, *, outstanding: int = 1):
        check_config(config)
        if not 1 <= outstanding <= _MOST_OUTSTANDING:
            raise ValueError(f"outstanding must be from 1 to {_MOST_OUTSTANDING}, not {outstanding!r}")
        self._config = config
        self._outstanding = outstanding
        super().__init__(
            {
                "write": In(WriteSignature(config)),
                "ns": In(1),
                **({"nse": In(1)} if config.rme else {}),
                "axi": Out(AXI4Write(config)),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()

        config, axi = self._config, self.axi
        posted = self._outstanding > 1
        # A record that begins within a word may take one more.
        longest = config.max_record_bytes // config.bus_bytes + (config.layout.align < config.bus_bytes)
        word = exact_log2(config.bus_bytes)
        place = exact_log2(_PAGE_BYTES if longest <= _BURST_WORDS else _BURST_WORDS * config.bus_bytes) - word
        # A stretch of memory: `more` words and one, the first of them word `first` of a page, and whose they are.
        stretch = data.StructLayout(
            {"first": place, "page": 64 - place - word, "more": range(longest), "ns": 1, "nse": int(config.rme)}
        )
        # The record that comes; and of the one that goes what is in no burst yet, if anything is left.
        coming = Signal(stretch)
        going = Signal(stretch)
        left = Signal()

        sending = Signal()
        open_ = Signal(range(self._outstanding + 1))
        failed = Signal()
        begins = Signal()
        m.d.comb += [
            axi.awid.eq(0),
            axi.bready.eq(1),
            failed.eq(axi.bvalid & axi.bresp[1]),
            begins.eq(left & ~sending & (~axi.awvalid | axi.awready) & (open_ != self._outstanding)),
        ]
        m.d.sync += open_.eq(open_ + begins - axi.bvalid)

        # Words leave in the order in which they came. Where a record goes alone its words have their own numbers here.
        m.submodules.words = words = Memory(
            shape=data.StructLayout({"data": 8 * config.bus_bytes, "strobe": config.bus_bytes}),
            depth=1 << ceil_log2((1 + posted) * longest),
            init=[],
        )
        stored = Signal(range(words.depth))
        loaded = Signal(range(words.depth))
        self._send(m, going, left, begins, sending, words.read_port(), loaded)

        whole = Signal()
        with m.FSM(name="writer"):
            with m.State("COLLECT"):
                self._collect(m, coming, words.write_port(), stored)
                with m.If(self.write.beat.valid & self.write.beat.p.last):
                    m.next = "WHOLE"

            with m.State("WHOLE"):
                m.d.comb += whole.eq(1)
                with m.If(~left & ~sending):
                    m.d.sync += [going.eq(coming), left.eq(1)]
                    m.d.comb += self.write.done.eq(posted)
                    m.next = "COLLECT" if posted else "RESPONSE"

            if not posted:
                with m.State("RESPONSE"):
                    first = Signal.like(loaded)
                    with m.If(begins):
                        m.d.sync += first.eq(loaded)
                    with m.If(axi.bvalid & (~left | (failed if config.external_aborts else 0))):
                        m.d.comb += self.write.done.eq(1)
                        m.d.sync += [left.eq(0), stored.eq(0), loaded.eq(0)]
                        m.next = "COLLECT"

        m.d.comb += self.busy.eq(whole | left | (open_ != 0))
        m.d.comb += self.write.fault.eq(0)
        if config.external_aborts:
            m.d.comb += self.write.abort.eq(failed if posted else 0)
            if not posted:
                with m.If(failed):
                    m.d.comb += [
                        self.write.fault.kind.eq(WriteFaultKind.STAGE_1),
                        self.write.fault.fsc.eq(arch.FSC_SYNCHRONOUS),
                        self.write.fault.external.eq(1),
                        self.write.fault.word.eq(first),
                    ]

        return m

    def _collect(self, m, coming, port, stored):
        """Keeps the beat that is offered."""
        beat = self.write.beat
        begun = Signal()
        m.d.comb += [
            beat.ready.eq(1),
            port.en.eq(beat.valid),
            port.addr.eq(stored),
            port.data.data.eq(beat.p.data),
            port.data.strobe.eq(beat.p.strobe),
        ]
        with m.If(beat.valid):
            m.d.sync += [stored.eq(stored + 1), coming.more.eq(coming.more + 1), begun.eq(~beat.p.last)]
            with m.If(~begun):
                m.d.sync += [
                    Cat(coming.first, coming.page).eq(beat.p.address >> exact_log2(self._config.bus_bytes)),
                    coming.more.eq(0),
                    coming.ns.eq(self.ns),
                ]
                if self._config.rme:
                    m.d.sync += coming.nse.eq(self.nse)

    def _send(self, m, going, left, begins, sending, port, loaded):
        """Makes a burst of what is left up to the end of the page when it `begins`, and sends its words."""
        axi = self.axi
        place = len(going.first)
        end = going.first + going.more
        crosses = end[place:].any()
        length = Signal.like(axi.awlen)  # without the last word, as AXI counts
        rest = Signal.like(axi.awlen)
        moves = Signal()
        m.d.comb += [
            axi.awsize.eq(exact_log2(self._config.bus_bytes)),
            axi.awburst.eq(_INCR),
            axi.awcache.eq(_NON_CACHEABLE_NON_BUFFERABLE),
            length.eq(Mux(crosses, ~going.first, going.more)),
            moves.eq(sending & (~axi.wvalid | axi.wready)),
            port.en.eq(moves),
            port.addr.eq(loaded),
            axi.wdata.eq(port.data.data),
            axi.wstrb.eq(port.data.strobe),
        ]

        with m.If(begins):
            m.d.sync += [
                axi.awvalid.eq(1),
                axi.awaddr.eq(Cat(going.first, going.page) << exact_log2(self._config.bus_bytes)),
                axi.awlen.eq(length),
                axi.awprot.eq(Cat(C(1), going.ns)),
                left.eq(crosses),
                going.first.eq(0),
                going.page.eq(going.page + 1),
                going.more.eq(Cat(end[:place], end[place:] - 1)),
            ]
            if self._config.rme:
                m.d.sync += axi.awnse.eq(going.nse)
        with m.Elif(axi.awready):
            m.d.sync += axi.awvalid.eq(0)

        with m.If(moves):
            m.d.sync += [axi.wvalid.eq(1), axi.wlast.eq(rest == 0), sending.eq(rest != 0)]
            m.d.sync += [rest.eq(rest - 1), loaded.eq(loaded + 1)]
        with m.Elif(axi.wready):
            m.d.sync += axi.wvalid.eq(0)
        with m.If(begins):
            m.d.sync += [sending.eq(1), rest.eq(length)]


class APB4(wiring.Signature):
    """APB4, seen from the requester. Names and meanings are APB's.

    There is no PPROT: `PEStateSignature` says who accesses.

    Members
    -------
    paddr : Out(17)
        Of a register's low half eight times its encoding, as in the SVD: op1 in bits [16:14], CRn in [13:10], CRm in
        [9:6], op2 in [5:3]. Of its high half four more. Bits [1:0] are not looked at.
    """

    def __init__(self):
        super().__init__(
            {
                "paddr": Out(17),
                "psel": Out(1),
                "penable": Out(1),
                "pwrite": Out(1),
                "pwdata": Out(32),
                "pstrb": Out(4),
                "pready": In(1),
                "prdata": In(32),
                "pslverr": In(1),
            }
        )


class APB4Completer(wiring.Component):
    """MRS and MSR by APB4. A register has 64 bits and a transfer 32, so that it takes two, the low half first.

    A read of the low half reads the register, and keeps the high half of that moment for the read of a high half, which
    accesses nothing. A write of a low half is kept for the write of a high half, which writes the register. What is not
    strobed keeps its value: then, and only then, the register is read before. Transfers that access nothing take one
    cycle in the access phase, others three, or five.

    PSLVERR says that the register has not been accessed: UNDEFINED, or trapped. Reset: nothing is kept.

    Members
    -------
    apb : In(APB4)
    sysreg : Out(SystemRegisterPort)
    """

    def __init__(self):
        super().__init__({"apb": In(APB4()), "sysreg": Out(SystemRegisterSignature())})

    def elaborate(self, platform):
        m = Module()

        apb, sysreg = self.apb, self.sysreg
        upper = apb.paddr[2]
        high = Signal(32)
        low = Signal(32)
        low_strobe = Signal(4)
        strobe = Cat(low_strobe, apb.pstrb)
        written = Cat(low, apb.pwdata)
        m.d.comb += [
            Cat(sysreg.op2, sysreg.crm, sysreg.crn, sysreg.op1).eq(apb.paddr[3:]),
            *(
                sysreg.wdata.word_select(byte, 8).eq(
                    Mux(strobe[byte], written.word_select(byte, 8), sysreg.rdata.word_select(byte, 8))
                )
                for byte in range(8)
            ),
            apb.prdata.eq(Mux(upper, high, sysreg.rdata)),
        ]

        merging = Signal()
        with m.FSM(name="completer"):
            with m.State("IDLE"):
                with m.If(apb.psel & apb.penable & (upper == apb.pwrite)):
                    m.d.comb += [sysreg.valid.eq(1), sysreg.write.eq(apb.pwrite & strobe.all())]
                    m.d.sync += merging.eq(apb.pwrite & ~strobe.all())
                    m.next = "ACCESS"
                with m.Elif(apb.psel & apb.penable):
                    m.d.comb += apb.pready.eq(1)
                    with m.If(apb.pwrite):
                        m.d.sync += [low.eq(apb.pwdata), low_strobe.eq(apb.pstrb)]

            with m.State("ACCESS"):
                m.next = "ANSWER"

            with m.State("ANSWER"):
                made = sysreg.outcome == AccessOutcome.VALUE
                with m.If(merging & made):
                    m.d.comb += [sysreg.valid.eq(1), sysreg.write.eq(1)]
                    m.d.sync += merging.eq(0)
                    m.next = "ACCESS"
                with m.Else():
                    m.d.comb += [apb.pready.eq(1), apb.pslverr.eq(~made)]
                    with m.If(apb.pwrite):
                        m.d.sync += low_strobe.eq(0)
                    with m.Else():
                        m.d.sync += high.eq(sysreg.rdata[32:])
                    m.next = "IDLE"

        return m


class Shell(wiring.Component):
    """An SPU whose records leave by AXI4 and, in the shell `axi4-apb`, whose registers are reached by APB4.

    Parameters
    ----------
    config : SPUConfig
    shell : str
        `axi4` or `axi4-apb`.
    outstanding : int
        As of `AXI4Writer`.

    Members
    -------
    m_axi_* : as in `AXI4Write`
        Instead of `SPU.write`.
    s_apb_* : as in `APB4`
        Instead of `SPU.sysreg`. Only in `axi4-apb`.
    others : as those of `SPU`
        PSB CSYNC waits for every response.
    """

    def __init__(self, config: SPUConfig, shell: str, *, outstanding: int = 1):
        check_config(config)
        if shell not in SHELLS:
            raise ValueError(f"shell must be {' or '.join(SHELLS)}, not {shell!r}")
        self._config = config
        self._writer = AXI4Writer(config, outstanding=outstanding)
        self._spu = SPU(config)
        self._completer = APB4Completer() if shell == "axi4-apb" else None
        replaced = ("write", "sysreg") if self._completer else ("write",)
        super().__init__(
            {
                **{name: member for name, member in self._spu.signature.members.items() if name not in replaced},
                **_prefixed("m_axi", self._writer.axi.signature),
                **(_prefixed("s_apb", self._completer.apb.signature) if self._completer else {}),
            }
        )

    def elaborate(self, platform):
        m = Module()

        m.submodules.spu = spu = self._spu
        m.submodules.writer = writer = self._writer
        connect(m, spu.write, writer.write)
        self._lead_out(m, "m_axi", writer.axi)
        if self._completer:
            m.submodules.completer = self._completer
            connect(m, self._completer.sysreg, spu.sysreg)
            self._lead_out(m, "s_apb", self._completer.apb)
        for name, member in spu.signature.members.items():
            if name in self.signature.members and member.is_signature and name != "drain":
                connect(m, flipped(getattr(self, name)), getattr(spu, name))
        m.d.comb += [
            self.pmbirq.eq(spu.pmbirq),
            spu.drain.request.eq(self.drain.request),
            self.drain.done.eq(spu.drain.done & ~writer.busy),
        ]
        self._own(m)

        return m

    def _lead_out(self, m, prefix, bus):
        for name, member in bus.signature.members.items():
            inner, outer = getattr(bus, name), getattr(self, f"{prefix}_{name}")
            m.d.comb += outer.eq(inner) if member.flow is Out else inner.eq(outer)

    def _own(self, m):
        """The first beat of a record comes one cycle after it was begun. It was for the owner of the cycle before that:
        nothing is begun in the cycle after another one came, and it is given up if another comes later.
        """
        for name, value in owner_state(self._config, self.pe).items():
            begun = Signal(name=f"begun_{name}")
            before = Signal(name=f"before_{name}")
            m.d.sync += [before.eq(value), begun.eq(before)]
            m.d.comb += getattr(self._writer, name).eq(begun)


def _prefixed(prefix, signature):
    return {f"{prefix}_{name}": member for name, member in signature.members.items()}
