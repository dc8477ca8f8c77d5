"""Page of memory in which records are written, and whether pages are below the limit (D17.7).

Ref: DDI0487 M.a, D17.7, D24.7 (PMBLIMITR_EL1.LIMIT is the start of a page).
"""

from amaranth import *
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from .. import arch
from ..config import SPUConfig, check_config
from .component import ConfiguredComponent

__all__ = ["PAGE_BITS", "IssuePage"]

PAGE_BITS = exact_log2(arch.PAGE_BYTES)
"""Bits of an address within a page."""

_COMPARED = 3
"""Cycles after a change of the page until its successor has been incremented and compared with the limit."""

_SETTLED = 4
"""Cycles until the result is in a register."""


class IssuePage(ConfiguredComponent):
    """Page of the next word that is written, and its successor, both compared with the limit.

    An aligned record and the limit, which is the start of a page, are compared by their pages. One comparator serves
    both pages: it first compares the loaded page, and then the page after it, before a record can need that page. There
    are at least 64 words in a page, which is longer than increment and comparison take.

    Timing: `known` is asserted nine cycles after `load`. `next_fits` is valid five cycles after `load` or `advance`,
    counted from `known`, and zero before. Reset: nothing is known.

    Members
    -------
    load : In(1)
        Strobe: the page becomes that of PMBPTR_EL1. Until `known`, pointer and limit are constant, or `load` is
        asserted again.
    pointer : In(64)
        PMBPTR_EL1.
    limit : In(64 - PAGE_BITS)
        Page of the limit.
    advance : In(1)
        Strobe: the page becomes the next one. Not before `next_fits` is valid.
    page : Out(64 - PAGE_BITS)
    known : Out(1)
        The loaded page and the page after it have been compared.
    settled : Out(1)
        `next_fits` is valid.
    fits, next_fits : Out(1)
        The page is below the limit and has the same top byte, and the loaded pointer was aligned; the same of the next
        page.
    """

    proof_signals = ("ahead", "age", "next_low", "next_high", "low_below", "high_below", "high_same", "in_place")

    def __init__(self, config: SPUConfig):
        check_config(config)
        page = 64 - PAGE_BITS
        super().__init__(
            config,
            {
                "load": In(1),
                "pointer": In(64),
                "limit": In(page),
                "advance": In(1),
                "page": Out(page),
                "known": Out(1),
                "settled": Out(1),
                "fits": Out(1),
                "next_fits": Out(1),
            },
        )

    def elaborate(self, platform):
        m = Module()

        top = arch.ADDRESS_BITS - PAGE_BITS  # bits above it must equal those of the limit
        half = top // 2
        # The successor is incremented in two steps and compared in one more. `ahead` is zero while the loaded page
        # itself is compared.
        ahead = Signal()
        next_low = Signal(half + 1)
        next_high = Signal(len(self.page) - half)
        low_below, high_below, high_same, in_place = Signal(), Signal(), Signal(), Signal()
        align = exact_log2(self._config.layout.align)
        m.d.sync += [
            next_low.eq(self.page[:half] + ahead),
            next_high.eq(self.page[half:] + next_low[-1]),
            low_below.eq(next_low[:-1] < self.limit[:half]),
            high_below.eq(next_high[: top - half] < self.limit[half:top]),
            high_same.eq(next_high[: top - half] == self.limit[half:top]),
            in_place.eq((next_high[top - half :] == self.limit[top:]) & (self.pointer[:align] == 0)),
        ]
        below = Signal()
        m.d.comb += below.eq(in_place & (high_below | (high_same & low_below)))

        age = Signal(range(_SETTLED + 1))
        compared = Signal()
        m.d.comb += [compared.eq(age >= _COMPARED), self.settled.eq(ahead & (age == _SETTLED))]
        with m.If(self.load):
            m.d.sync += [self.page.eq(self.pointer[PAGE_BITS:]), ahead.eq(0), age.eq(0)]
            m.d.sync += [self.known.eq(0), self.next_fits.eq(0)]
        with m.Elif(self.advance):
            m.d.sync += [self.page.eq(Cat(next_low[:-1], next_high)), age.eq(0)]
            m.d.sync += [self.fits.eq(self.next_fits), self.next_fits.eq(0)]
        with m.Elif(compared & ~ahead):
            m.d.sync += [self.fits.eq(below), ahead.eq(1), age.eq(0)]
        with m.Elif(compared):
            m.d.sync += [self.next_fits.eq(below), self.known.eq(1), age.eq(_SETTLED)]
        with m.Else():
            m.d.sync += age.eq(age + 1)

        return m
