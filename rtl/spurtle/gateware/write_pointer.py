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
    load : In(1)
        Strobe: no record is outstanding, and the next one begins at PMBPTR_EL1. Required after a write by software and
        after a record that was abandoned.
    answered : In(1)
        Strobe: memory answers the oldest record.
    fault : In(FaultLayout)
        The answer, in that cycle.
    end : In(len(position_bits))
        Low bits of the address after that record, in that cycle. Only with records of several sizes.
    advance : In(1)
        Strobe in the cycle after the answer: the record was not abandoned.
    page : In(64 - PAGE_BITS)
        Page of the last word that memory has accepted, or the next one if that word was the last of its page.
    write : In(1)
        Software writes the register in this cycle.
    wdata : In(64)
    pmbptr : Out(64)
    """

    proof_signals = ("reached",)

    def __init__(self, config: SPUConfig):
        check_config(config)
        super().__init__(
            config,
            {
                "load": In(1),
                "answered": In(1),
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
        complete = self.fault.kind == WriteFaultKind.NONE
        # Address of the first byte that was not written, from bit `first` to the lowest bit of the page. It is ahead of
        # PMBPTR_EL1 by one cycle, so that a carry is known when PMBPTR_EL1 advances.
        reached = Signal(PAGE_BITS + 1 - first)
        within, words = reached[: word_bit - first], reached[word_bit - first :]
        word = self.fault.word
        if not self._config.layout.packed:
            word = Mux(complete, self._config.max_record_bytes // self._config.bus_bytes, word)
        after = Cat(Mux(word == 0, within, C(0, len(within))), (words + word)[: len(words)])
        if self._config.layout.packed:
            after = Mux(complete, self.end, after)
        with m.If(self.load):
            m.d.sync += reached.eq(self.pmbptr[first : PAGE_BITS + 1])
        with m.Elif(self.answered):
            m.d.sync += reached.eq(after)

        with m.If(self.write):
            m.d.sync += self.pmbptr.eq(self.wdata)
        with m.Elif(self.advance):
            m.d.sync += self.pmbptr[first:PAGE_BITS].eq(reached)
            # The outstanding records are not longer than a page, so the page of their last word is the next one.
            with m.If(reached[-1] != self.pmbptr[PAGE_BITS]):
                m.d.sync += self.pmbptr[PAGE_BITS:].eq(self.page)

        return m
