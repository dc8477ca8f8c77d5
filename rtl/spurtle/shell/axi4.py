"""Writes of records to memory by AXI4.

Ref: IHI0022 (AXI4).
"""

from amaranth import *
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..config import SPUConfig, check_config
from ..gateware.component import ConfiguredComponent
from ..gateware.register_stage import RegisterStage
from ..interface.members import when
from ..interface.memory import WriteSignature
from ..interface.signature import StructuralSignature
from .bursts import BurstCollector, BurstLayout
from .responses import BurstResponses
from .words import WordQueue

__all__ = ["AXI4Write", "AXI4Writer"]

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


class AXI4Writer(ConfiguredComponent):
    """Writer of records to memory by AXI4.

    It stores the beats of a burst, and then sends them as one INCR burst of full words. A record that crosses a 4 KB
    boundary or is longer than the longest burst is sent as several bursts. The words of a burst have no gaps, as long
    as memory accepts them, and the next burst follows without a gap: a record of n words takes n cycles. With one
    outstanding record, a burst begins after the response to the previous one.

    `write.done` answers a record with its last response. An error response is a synchronous External abort on the first
    word of its burst (`BurstResponses`): no further burst begins, and words of open bursts that become valid after the
    response have no strobes. A word that is valid in the cycle of the response keeps its strobes, because a transfer
    that stalls must be stable.

    Timing: the address of a burst is valid two cycles after its last beat. Its first word is valid one cycle later, or
    after the words of the previous burst. Words do not wait for the address to be accepted. Reset: no output is valid,
    and no burst is open.

    Members
    -------
    write : In(WriteSignature)
    ns, nse : In(1)
        Security state that a record belongs to, while its first beat is valid. `nse` only with FEAT_RME.
    axi : Out(AXI4Write)
    """

    proof_signals = ("drop", "begin", "store")

    def __init__(self, config: SPUConfig):
        check_config(config)
        super().__init__(
            config,
            {
                "write": In(WriteSignature(config)),
                "ns": In(1),
                **when(config.rme, nse=In(1)),
                "axi": Out(AXI4Write(config)),
            },
        )

    def elaborate(self, platform):
        m = Module()

        m.submodules.collector = collector = BurstCollector(self._config)
        m.submodules.addresses = addresses = RegisterStage(BurstLayout(self._config))
        m.submodules.words = words = WordQueue(self._config)
        m.submodules.responses = responses = BurstResponses(self._config)
        beat, burst = self.write.beat, collector.burst
        transfer = Signal()
        drop = Signal()
        begin = Signal()
        m.d.comb += [
            # From registers, without a path from AXI.
            beat.ready.eq(drop | (~words.full & (~burst.valid | burst.ready))),
            transfer.eq(beat.valid & beat.ready),
            drop.eq(responses.failed | responses.discard),
            collector.beat.eq(beat.payload),
            collector.transfer.eq(transfer),
            collector.ns.eq(self.ns),
            *([collector.nse.eq(self.nse)] if self._config.rme else []),
            collector.drop.eq(drop),
            burst.ready.eq(addresses.i.ready & ~responses.full),
            begin.eq(burst.valid & burst.ready),
            addresses.i.valid.eq(begin),
            addresses.i.payload.eq(burst.payload),
            words.word.data.eq(beat.p.data),
            words.word.strobe.eq(beat.p.strobe),
            words.word.last.eq(collector.ends),
            words.store.eq(transfer & ~drop),
            words.release.eq(begin),
            words.drop.eq(drop),
            words.mask.eq(responses.fails | responses.failed),
        ]
        self._connect_responses(m, responses, begin, burst.payload, transfer & beat.p.last)
        self._connect_channels(m, addresses.o, words.o)

        return m

    def _connect_responses(self, m, responses, begin, burst, complete):
        m.d.comb += [
            responses.begin.eq(begin),
            responses.burst.eq(burst),
            responses.complete.eq(complete),
            responses.valid.eq(self.axi.bvalid),
            responses.error.eq(self.axi.bresp[1]),  # SLVERR or DECERR
            self.axi.bready.eq(1),
            self.write.done.eq(responses.done),
            self.write.fault.eq(responses.fault),
        ]
        if self._config.external_aborts:
            m.d.comb += self.write.abort.eq(0)  # every error is reported with its record
        # Without a fault there is no `discard`.
        if self._config.outstanding > 1 and self._config.external_aborts:
            m.d.comb += responses.discard.eq(self.write.discard)

    def _connect_channels(self, m, address, word):
        axi = self.axi
        size = exact_log2(self._config.bus_bytes)
        m.d.comb += [
            axi.awid.eq(0),
            axi.awaddr.eq(address.p.address << size),
            axi.awlen.eq(address.p.more),
            axi.awsize.eq(size),
            axi.awburst.eq(_INCR),
            axi.awcache.eq(_NON_CACHEABLE_NON_BUFFERABLE),
            axi.awprot.eq(Cat(C(1), address.p.ns)),  # privileged, Security state; zero for data
            axi.awvalid.eq(address.valid),
            address.ready.eq(axi.awready),
            axi.wdata.eq(word.p.data),
            axi.wstrb.eq(word.p.strobe),
            axi.wlast.eq(word.p.last),
            axi.wvalid.eq(word.valid),
            word.ready.eq(axi.wready),
        ]
        if self._config.rme:
            m.d.comb += axi.awnse.eq(address.p.nse)
