"""PMBPTR_EL1, the write pointer of the Profiling Buffer (D17.7)."""

from amaranth import *
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..config import SPUConfig, check_config
from ..interface.members import when
from ..interface.memory import FaultLayout, WriteFaultKind
from .component import ConfiguredComponent
from .issue_page import PAGE_BITS

__all__ = ["WritePointer", "position_bits"]


def position_bits(config: SPUConfig) -> range:
    """Return the bits of an address at which a record can begin, up to the lowest bit of the page.

    All outstanding records together are not longer than a page, so that bit distinguishes their pages.
    """
    return range(exact_log2(min(config.layout.align, config.bus_bytes)), PAGE_BITS + 1)


class WritePointer(ConfiguredComponent):
    """PMBPTR_EL1. It advances over a record that is in memory, or up to the first byte that was not written.

    Timing: the answer of memory is registered, and `advance` is asserted in the cycle after it. PMBPTR_EL1 changes in
    the next cycle, all of its bits at once. A write by software has priority. Reset: zero.

    Members
    -------
    fault : In(FaultLayout)
        Answer of memory to the record that begins at PMBPTR_EL1, or a value that is ignored.
    end : In(len(position_bits))
        Low bits of the address after that record. Only with records of several sizes.
    advance : In(1)
        Strobe in the cycle after the answer: the record was not abandoned.
    page : In(64 - PAGE_BITS)
        Page of the last word that memory has accepted, or the next one if that word was the last of its page.
    write : In(1)
        Software writes the register in this cycle.
    wdata : In(64)
    pmbptr : Out(64)
    """

    proof_signals = ("word", "complete", "record_end")

    def __init__(self, config: SPUConfig):
        check_config(config)
        super().__init__(
            config,
            {
                "fault": In(FaultLayout(config)),
                **when(config.layout.packed, end=In(len(position_bits(config)))),
                "advance": In(1),
                "page": In(64 - PAGE_BITS),
                "write": In(1),
                "wdata": In(64),
                "pmbptr": Out(64),
            },
        )

    def elaborate(self, platform):
        m = Module()

        word_bit = exact_log2(self._config.bus_bytes)
        first = position_bits(self._config).start
        complete_answer = self.fault.kind == WriteFaultKind.NONE
        words = self._config.max_record_bytes // self._config.bus_bytes
        # Address of the first byte that was not written, from bit `first` to the lowest bit of the page.
        word = Signal.like(self.fault.word)
        address = Signal(PAGE_BITS + 1 - first)
        within = Mux(word == 0, self.pmbptr[first:word_bit], C(0, word_bit - first))
        by_words = Cat(within, (self.pmbptr[word_bit : PAGE_BITS + 1] + word)[: PAGE_BITS + 1 - word_bit])
        if self._config.layout.packed:
            complete = Signal()
            record_end = Signal.like(self.end)
            m.d.sync += [word.eq(self.fault.word), complete.eq(complete_answer), record_end.eq(self.end)]
            m.d.comb += address.eq(Mux(complete, record_end, by_words))
        else:
            m.d.sync += word.eq(Mux(complete_answer, words, self.fault.word))
            m.d.comb += address.eq(by_words)

        with m.If(self.write):
            m.d.sync += self.pmbptr.eq(self.wdata)
        with m.Elif(self.advance):
            m.d.sync += self.pmbptr[first:PAGE_BITS].eq(address)
            # The outstanding records are not longer than a page, so the page of their last word is the next one.
            with m.If(address[-1] != self.pmbptr[PAGE_BITS]):
                m.d.sync += self.pmbptr[PAGE_BITS:].eq(self.page)

        return m
