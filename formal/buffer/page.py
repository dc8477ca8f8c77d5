"""Conditions on the page that is written, and on its comparison with the limit. They are part of `relation`."""

from collections.abc import Iterator

from spurtle.arch import FM
from spurtle.config import SPUConfig

from ..engine.terms import (
    BitVector,
    Boolean,
    all_of,
    as_bits,
    extract,
    implies,
    not_,
    shift_right,
    uge,
    ule,
    ult,
    widened,
)
from ..engine.transition import Wires
from .history import SentRecords, limit_of

__all__ = ["conditions", "enabled"]

_BITS = 52
_HALF = 26
_TOP = 44
_COMPARED, _SETTLED = 3, 4


def enabled(wires: Wires) -> Boolean:
    """Return whether PMBLIMITR_EL1 permits that records are written."""
    return all_of(wires["pmblimitr.E"] == 1, wires["pmblimitr.FM"] != FM.DISCARD)


def _below(config: SPUConfig, wires: Wires, page: BitVector) -> Boolean:
    """Return whether a page is below the limit, for the present pointer and limit."""
    limit = extract(63, 12, limit_of(wires))
    return all_of(
        ult(extract(_TOP - 1, 0, page), extract(_TOP - 1, 0, limit)),
        extract(_BITS - 1, _TOP, page) == extract(_BITS - 1, _TOP, limit),
        wires["pmbptr"] & (config.layout.align - 1) == 0,
        enabled(wires),
    )


def conditions(config: SPUConfig, wires: Wires, records: SentRecords) -> Iterator[Boolean]:
    """Yield the conditions on `IssuePage`. Those on the comparison hold while the issue pointer is not stale."""
    state = {
        name: wires[f"issue.issue_page.{name}"] for name in ("age", "ahead", "known", "leaving", "fits", "next_fits")
    }
    age, leaving, known = state["age"], state["leaving"] == 1, state["known"] == 1
    page = wires["issue.page"]
    successor = page + widened(state["ahead"], _BITS)
    # Address of the next word, whose page is not known yet while the last word of a page waits.
    word_page = shift_right(records.next, 12)
    offset = extract(11, records.word_bit, records.next)
    yield ule(age, _SETTLED)
    yield widened(page, 64) == (word_page - widened(state["leaving"], 64)) & ((1 << _BITS) - 1)
    yield implies(leaving, all_of(known, age == _SETTLED, records.valid, offset == 0, state["next_fits"] == 0))
    yield implies(all_of(records.valid, extract(11, 0, records.next) == 0), leaving)
    yield implies(known, state["ahead"] == 1)
    yield implies(age == _SETTLED, known)
    yield implies(state["fits"] == 1, known)
    # A page has more words than the comparison takes cycles.
    yield implies(all_of(known, not_(leaving), age != _SETTLED), ule(widened(offset, 16), widened(age, 16) + 1))
    low, high = wires["issue.issue_page.next_low"], wires["issue.issue_page.next_high"]
    sum_low = widened(extract(_HALF - 1, 0, page), _HALF + 1) + widened(state["ahead"], _HALF + 1)
    yield implies(uge(age, 1), low == sum_low)
    yield implies(uge(age, 2), high == extract(_BITS - 1, _HALF, successor))
    fresh = wires["stale"] == 0
    yield from _compared(config, wires, all_of(fresh, uge(age, _COMPARED)), successor)
    first = all_of(fresh, not_(known), state["ahead"] == 1)
    yield implies(first, (state["next_fits"] == 1) == _below(config, wires, page))
    yield implies(all_of(fresh, known), (state["fits"] == 1) == _below(config, wires, extract(_BITS - 1, 0, word_page)))
    settled = all_of(fresh, known, not_(leaving), age == _SETTLED)
    yield implies(settled, (state["next_fits"] == 1) == _below(config, wires, successor))
    yield implies(all_of(known, age != _SETTLED), state["next_fits"] == 0)


def _compared(config: SPUConfig, wires: Wires, when: Boolean, page: BitVector) -> Iterator[Boolean]:
    """Yield the conditions on the registers of the comparison of `page` with the limit."""
    limit, half = extract(63, 12, limit_of(wires)), _TOP // 2

    def truth(name: str, condition: Boolean) -> Boolean:
        return implies(when, wires[f"issue.issue_page.{name}"] == as_bits(condition))

    yield truth("low_below", ult(extract(half - 1, 0, page), extract(half - 1, 0, limit)))
    yield truth("high_below", ult(extract(_TOP - 1, half, page), extract(_TOP - 1, half, limit)))
    yield truth("high_same", extract(_TOP - 1, half, page) == extract(_TOP - 1, half, limit))
    same_top = extract(_BITS - 1, _TOP, page) == extract(_BITS - 1, _TOP, limit)
    aligned = wires["pmbptr"] & (config.layout.align - 1) == 0
    yield truth("in_place", all_of(same_top, aligned, enabled(wires)))
