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

    Timing: `known` is asserted nine cycles after `load`. `next_fits` is valid five cycles after the page advances, and
    zero before. Reset: nothing is known.

    Members
    -------
    load : In(1)
        Strobe: the page becomes that of PMBPTR_EL1. Until `known`, the other inputs are constant, or `load` is asserted
        again.
    pointer : In(64)
        PMBPTR_EL1.
    limit : In(64 - PAGE_BITS)
        Page of the limit.
    enabled : In(1)
        Otherwise nothing fits.
    leave : In(1)
        Strobe: the last word of the page is stored for its transfer. The next word is in the next page. Not before
        `next_fits` is valid.
    transfer : In(1)
        That word is transferred, or no word is.
    page : Out(64 - PAGE_BITS)
        Page of the next word that is transferred.
    known : Out(1)
        The loaded page and the page after it have been compared.
    settled : Out(1)
        `next_fits` is valid.
    fits, next_fits : Out(1)
        The page of the next word that is stored is known to be below the limit and to have the same top byte, and the
        loaded pointer is aligned; for the page after that one too.
    """

    proof_signals = (
        "ahead",
        "age",
        "leaving",
        "next_low",
        "next_high",
        "low_below",
        "high_below",
        "high_same",
        "in_place",
    )

    def __init__(self, config: SPUConfig):
        check_config(config)
        page = 64 - PAGE_BITS
        super().__init__(
            config,
            {
                "load": In(1),
                "pointer": In(64),
                "limit": In(page),
                "enabled": In(1),
                "leave": In(1),
                "transfer": In(1),
                "page": Out(page),
                "known": Out(1),
                "settled": Out(1),
                "fits": Out(1),
                "next_fits": Out(1),
            },
        )

    def elaborate(self, platform):
        m = Module()

        half = len(self.page) // 2
        # The successor is incremented in two steps. It is the loaded page itself until that page has been compared.
        ahead = Signal()
        next_low = Signal(half + 1)
        next_high = Signal(len(self.page) - half)
        m.d.sync += [
            next_low.eq(self.page[:half] + ahead),
            next_high.eq(self.page[half:] + next_low[-1]),
        ]
        successor = Cat(next_low[:-1], next_high)
        below = self._compare(m, successor)

        # `leave` arrives late, so it is registered, and changes the flags in the next cycle without a register.
        left, fits, next_fits, still_leaving = (
            Signal(name=name) for name in ("left", "fits_before", "next_fits_before", "leaving_before")
        )
        leaving = Signal()
        age = Signal(range(_SETTLED + 1))
        m.d.comb += [
            self.fits.eq(Mux(left, next_fits, fits)),
            self.next_fits.eq(next_fits & ~left),
            leaving.eq(still_leaving | left),
            self.settled.eq(ahead & ~leaving & (age == _SETTLED)),
        ]
        m.d.sync += [
            left.eq(self.leave),
            fits.eq(self.fits),
            next_fits.eq(self.next_fits),
            still_leaving.eq(leaving),
        ]
        with m.If(self.load):
            m.d.sync += [self.page.eq(self.pointer[PAGE_BITS:]), age.eq(0), ahead.eq(0)]
            m.d.sync += [self.known.eq(0), fits.eq(0)]
        with m.Elif(leaving):
            with m.If(self.transfer):
                m.d.sync += [self.page.eq(successor), still_leaving.eq(0), age.eq(0)]
        with m.Elif(age < _COMPARED):
            m.d.sync += age.eq(age + 1)
        with m.Else():
            m.d.sync += [next_fits.eq(below), age.eq(_SETTLED)]
            with m.If(~self.known):
                m.d.sync += [fits.eq(ahead & next_fits), self.known.eq(ahead), ahead.eq(1)]
                m.d.sync += age.eq(Mux(ahead, _SETTLED, 0))

        return m

    def _compare(self, m, page):
        """Return whether `page` was below the limit in the previous cycle."""
        top = arch.ADDRESS_BITS - PAGE_BITS  # the bits above it must equal the top bits of the limit
        half = top // 2
        low_below, high_below, high_same, in_place = (
            Signal(name=name) for name in ("low_below", "high_below", "high_same", "in_place")
        )
        aligned = self.pointer[: exact_log2(self._config.layout.align)] == 0
        m.d.sync += [
            low_below.eq(page[:half] < self.limit[:half]),
            high_below.eq(page[half:top] < self.limit[half:top]),
            high_same.eq(page[half:top] == self.limit[half:top]),
            in_place.eq((page[top:] == self.limit[top:]) & aligned & self.enabled),
        ]
        return in_place & (high_below | (high_same & low_below))
