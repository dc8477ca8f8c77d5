"""Invariant of the buffer. The other proofs of the buffer assume it."""

from collections.abc import Iterator

from spurtle.arch import PMBSR_EL1
from spurtle.config import SPUConfig
from spurtle.gateware.aligner import AlignerState
from spurtle.gateware.record_issue import IssueState

from ..engine.induction import Invariant, inductive
from ..engine.proof import Verdict
from ..engine.terms import (
    BitVector,
    Boolean,
    all_of,
    any_of,
    as_bits,
    boolean,
    constant,
    extract,
    if_else,
    implies,
    not_,
    shift_right,
    uge,
    ugt,
    ule,
    ult,
    widened,
)
from ..engine.transition import Transition, Wires
from . import page
from .answers import answered, is_fault_kind, syndrome
from .history import LENGTH_BITS, SentRecords, limit_of, longest_fits

__all__ = ["input_contract", "limit_is_stable", "prove_relation", "relation"]

_PAGE_BITS = 12


def limit_is_stable(now: Wires, then: Wires) -> Boolean:
    """Return whether PMBLIMITR_EL1 is unchanged, unless software writes it or `rst` is asserted."""
    return any_of(now["pmblimitr_write"] == 1, now["rst"] == 1, then["pmblimitr"] == now["pmblimitr"])


def relation(config: SPUConfig) -> Invariant:
    """Return the invariant of the buffer, over the wires of a `watched` one."""

    def holds(wires: Wires) -> Boolean:
        records = SentRecords(config, wires)
        return all_of(
            *_control(config, wires, records),
            *page.conditions(config, wires, records),
            *_position(wires, records),
            *_fitting(config, wires, records),
            *(_full_words if records.units == 1 else _aligner)(config, wires, records),
            *_outstanding(config, wires, records),
            *answered(config, wires, records),
            *syndrome(config, wires),
            ult(records.beats, config.max_record_bytes // records.bus),
            wires["pmbsr"] & ~config.writable(PMBSR_EL1) == 0,
        )

    return holds


def _control(config: SPUConfig, wires: Wires, records: SentRecords) -> Iterator[Boolean]:
    """Yield the conditions on counts and flags."""
    count, stale = widened(wires["records.count"], 4), wires["stale"] == 1
    yield count == records.complete + as_bits(records.writing, 4)
    yield ule(records.complete, config.outstanding)
    yield ule(count, config.outstanding)
    yield (wires["records.none"] == 1) == (count == 0)
    yield implies(records.valid, count != 0)
    if config.outstanding > 1:
        yield implies(wires["write__discard"] == 1, all_of(stale, count != 0))
    yield wires["may_begin"] == as_bits(all_of(not_(stale), count != config.outstanding))
    yield implies(count != 0, (wires["undisturbed"] == 1) == not_(stale))
    yield implies(count != 0, longest_fits(config, records.origin, wires["limit"]))
    quiet = all_of(count == 0, wires["answered"] == 0)
    yield implies(wires["issue.issue_state"] == IssueState.LOAD, all_of(stale, quiet))
    yield implies(count != 0, wires["issue.issue_page.known"] == 1)
    yield implies(any_of(not_(stale), wires["kept"] == 1), wires["pmblimitr.E"] == 1)
    full = not_(longest_fits(config, wires["pmbptr"], limit_of(wires)))
    exceeds = all_of(full, page.enabled(wires), wires["issue.exceeds"] == 1)
    yield implies(wires["exhausted"] == 1, all_of(not_(stale), quiet, exceeds))


def _position(wires: Wires, records: SentRecords) -> Iterator[Boolean]:
    """Yield the conditions on the address of the next word, and of the word that waits for its transfer."""
    bit, next_ = records.word_bit, records.next
    yield wires["issue.next_word"] == extract(_PAGE_BITS, bit, next_)
    last_word = extract(_PAGE_BITS - 1, bit, next_) == (1 << _PAGE_BITS - bit) - 1
    yield (wires["issue.at_page_end"] == 1) == last_word
    if records.units > 1:
        first = records.align.bit_length() - 1
        start = if_else(records.writing, records.origin, next_)
        yield wires["issue.within"] == extract(bit - 1, first, start)
        yield implies(records.writing, extract(bit - 1, 0, next_) == 0)
    address = (next_ - 1) & -records.bus
    yield implies(records.valid, wires["write__beat__payload.address"] == address)


def _fitting(config: SPUConfig, wires: Wires, records: SentRecords) -> Iterator[Boolean]:
    """Yield whether the result of the comparison with the limit is correct between two records."""
    size, limit = config.max_record_bytes, limit_of(wires)
    fits = longest_fits(config, records.next, limit)
    between = all_of(wires["stale"] == 0, not_(records.writing))
    if config.layout.align < size:
        wide = widened(records.origin, 66) + 2 * size
        yield implies(
            all_of(wires["stale"] == 0, wires["issue.roomy"] == 1),
            all_of(
                ule(wide, widened(limit, 66)),
                shift_right(records.origin, 56) == shift_right(limit, 56),
                wires["issue.issue_page.known"] == 1,
            ),
        )
        yield implies(
            all_of(records.complete == 0, wires["issue.roomy"] == 1, wires["stale"] == 0), _newest(config, records)
        )
        first = min(config.layout.align, records.bus).bit_length() - 1
        offset = extract(_PAGE_BITS - 1 - first, 0, wires["issue.position"])
        crosses = ugt(offset, (4096 - size) >> first)
        known = all_of(wires["stale"] == 0, wires["issue.issue_page.known"] == 1)
        next_fits = wires["issue.issue_page.next_fits"] == 1
        yield implies(all_of(known, wires["issue.exact"] == 1), any_of(not_(crosses), next_fits))
    yield implies(all_of(between, wires["issue.fits"] == 1), fits)
    yield implies(all_of(between, wires["issue.exceeds"] == 1), not_(all_of(fits, page.enabled(wires))))


def _newest(config: SPUConfig, records: SentRecords) -> Boolean:
    """Return whether the newest record is between `origin` and `next`, and not longer than the maximum."""
    length = records.next - records.origin
    return all_of(
        ule(length, config.max_record_bytes), length & (records.align - 1) == 0, uge(records.next, records.origin)
    )


def _full_words(config: SPUConfig, wires: Wires, records: SentRecords) -> Iterator[Boolean]:
    """Yield the conditions for a configuration in which every beat is a word."""
    yield implies(
        records.writing,
        all_of(
            records.words == records.beats,
            records.stored == records.words * records.bus,
            records.words != 0,
            extract(records.word_bit - 1, 0, records.origin) == 0,
        ),
    )
    between = any_of(*(wires["issue.issue_state"] == state for state in (IssueState.BEGIN, IssueState.LOAD)))
    yield implies(between, records.beats == 0)


def _aligner(config: SPUConfig, wires: Wires, records: SentRecords) -> Iterator[Boolean]:
    """Yield the conditions with an aligner: the remainder of the last beat may be a separate word."""
    in_remainder = wires["issue.aligner.aligner_state"] == AlignerState.REMAINDER
    started = wires["issue.aligner.started"] == 1
    previous_end = widened(wires["issue.aligner.previous_end"], 64) * records.align
    within = records.origin & (records.bus - 1)
    yield implies(in_remainder, all_of(started, records.beats == 0))
    between = any_of(*(wires["issue.issue_state"] == state for state in (IssueState.BEGIN, IssueState.LOAD)))
    yield implies(between, all_of(not_(started), not_(in_remainder), records.beats == 0))
    yield implies(
        records.writing,
        all_of(
            started,
            records.words != 0,
            records.origin & (records.align - 1) == 0,
            records.stored == records.words * records.bus - within,
            implies(not_(in_remainder), records.words == records.beats),
            # Size of the remainder.
            implies(
                in_remainder,
                all_of(
                    previous_end != 0,
                    ule(previous_end, within),
                    ule(records.words, config.max_record_bytes // records.bus),
                ),
            ),
        ),
    )


def _outstanding(config: SPUConfig, wires: Wires, records: SentRecords) -> Iterator[Boolean]:
    """Yield the conditions on the lengths of the outstanding records and on the FIFO of their ends.

    If they are not abandoned, they are between PMBPTR_EL1 and the next byte that is stored, one after the other.
    """
    kept = any_of(wires["stale"] == 0, wires["answered_undisturbed"] == 1)
    total = if_else(wires["answered"] == 1, wires["answered_length"], constant(0, LENGTH_BITS))
    total += extract(LENGTH_BITS - 1, 0, records.stored)
    yield wires["answered_undisturbed"] == wires["kept"]
    yield implies(wires["kept"] == 1, wires["answered"] == 1)
    yield implies(all_of(wires["stale"] == 0, wires["answered"] == 1), wires["kept"] == 1)
    for index, length in enumerate(records.lengths):
        present = ult(constant(index, 4), records.complete)
        yield implies(present, _is_length(config, length))
        newest = all_of(records.complete == index + 1, not_(records.writing))
        yield implies(newest, all_of(records.next - records.origin == widened(length, 64), _newest(config, records)))
    yield implies(wires["answered"] == 1, _is_length(config, wires["answered_length"]))
    yield implies(records.writing, all_of(_newest(config, records), records.stored != 0))
    yield ule(records.complete + as_bits(records.writing, 4) + widened(wires["answered"], 4), config.outstanding)
    yield implies(kept, records.next == wires["pmbptr"] + widened(wires["unanswered"], 64))
    # The sum is not truncated.
    yield implies(kept, uge(records.next, wires["pmbptr"]))
    outstanding = any_of(wires["kept"] == 1, all_of(wires["stale"] == 0, wires["records.count"] != 0))
    yield implies(outstanding, wires["pmbptr"] & (config.layout.align - 1) == 0)
    yield implies(all_of(kept, records.complete == 0), wires["unanswered"] == total)
    yield from _ends(config, wires, records)


def _is_length(config: SPUConfig, length: BitVector) -> Boolean:
    """Return whether this is the length of a record. If the layout is not packed, all records have the same."""
    if not config.layout.packed:
        return length == config.max_record_bytes
    return all_of(length != 0, ule(length, config.max_record_bytes), length & (config.layout.align - 1) == 0)


def _ends(config: SPUConfig, wires: Wires, records: SentRecords) -> Iterator[Boolean]:
    """Yield the conditions on the position that memory has reached, and on the ends in the FIFO."""
    shift = records.align.bit_length() - 1
    reached = wires["write_pointer.reached"]
    pending = if_else(wires["answered"] == 1, wires["answered_length"], constant(0, LENGTH_BITS))
    pointer = extract(LENGTH_BITS - 1, 0, wires["pmbptr"])

    def position(address: BitVector) -> BitVector:
        return extract(LENGTH_BITS - 1, shift, address)

    yield implies(wires["stale"] == 0, reached == position(pointer + pending))
    kept = any_of(wires["stale"] == 0, wires["kept"] == 1)
    # Each end is the previous one plus a length. The newest record, if it is not complete, begins at the last end.
    begins = extract(LENGTH_BITS - 1, 0, if_else(records.writing, records.origin, records.next))
    for index, (end, length) in enumerate(zip(records.ends_of, records.lengths, strict=True)):
        present = ult(constant(index, 4), records.complete)
        if index:
            yield implies(present, end == records.ends_of[index - 1] + length)
        else:
            yield implies(all_of(present, kept), end == pointer + pending + length)
        yield implies(records.complete == index + 1, begins == end)
    if config.layout.packed and config.outstanding > 1:
        yield from _stored_ends(config, wires, records)


def _stored_ends(config: SPUConfig, wires: Wires, records: SentRecords) -> Iterator[Boolean]:
    """Yield the conditions on the FIFO. The end of a record enters it in the cycle after its last word was stored."""
    index_bits = (config.outstanding - 1).bit_length()
    popped, pushed = wires["records.popped"], wires["records.pushed"]
    ended = wires["records.ended"] == 1
    stored = records.complete - as_bits(ended, 4)
    yield implies(ended, all_of(records.complete != 0, records.valid, not_(records.writing)))
    yield pushed - popped == extract(index_bits - 1, 0, stored)
    for index, end in enumerate(records.ends_of):
        for entry in range(1 << index_bits):
            here = all_of(ult(constant(index, 4), stored), popped + index == entry)
            position = extract(LENGTH_BITS - 1, records.align.bit_length() - 1, end)
            yield implies(here, wires[f"records.ends_{entry}"] == position)


def input_contract(config: SPUConfig, now: Wires, then: Wires) -> Boolean:
    """Return the contract of the inputs of the buffer.

    PMBLIMITR_EL1 changes only when software writes it, as is proved for the SPU. No record exceeds the maximum size,
    and all have it if the layout is not packed, as is proved for the serializer. Memory answers a record after the
    transfer of its last word; a fault has a kind that the configuration has, and refers to a word that was transferred.
    """
    records = SentRecords(config, now)
    last = config.max_record_bytes // config.bus_bytes - 1
    ends = now["i__payload.last"] == 1
    held = as_bits(all_of(records.valid, not_(records.writing)), 4)
    # Words of the oldest record, whose first word can begin with the end of another record.
    within = now["pmbptr"] & 0
    if records.units > 1:
        shift = records.align.bit_length() - 1
        within = widened(extract(records.word_bit - shift - 1, 0, now["write_pointer.reached"]), 64) << shift
    bytes_ = within + widened(records.lengths[0], 64)
    word = widened(now["write__fault.word"], 64)
    whole = (
        boolean(True) if config.layout.packed else implies(all_of(now["i__valid"] == 1, ends), records.beats == last)
    )
    return all_of(
        limit_is_stable(now, then),
        implies(all_of(now["i__valid"] == 1, records.beats == last), ends),
        whole,
        implies(
            now["write__done"] == 1,
            all_of(
                ult(held, records.complete),
                is_fault_kind(config, now["write__fault.kind"]),
                ult(word * records.bus, bytes_),
            ),
        ),
    )


def prove_relation(config: SPUConfig, system: Transition) -> Verdict:
    """Prove the invariant `relation`. `system` is a `watched` buffer."""
    return inductive(system, relation(config), contract=lambda now, then: input_contract(config, now, then), together=8)
