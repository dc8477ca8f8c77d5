"""Invariant of the buffer while a record is written. The other proofs of the buffer assume it."""

from collections.abc import Iterator

from spurtle.arch import PMBSR_EL1
from spurtle.config import SPUConfig
from spurtle.gateware.aligner import AlignerState
from spurtle.gateware.buffer import BufferState
from spurtle.interface.memory import WriteFaultKind

from ..engine.induction import Invariant, inductive
from ..engine.proof import Verdict
from ..engine.terms import (
    BitVector,
    Boolean,
    all_of,
    any_of,
    as_bits,
    constant,
    if_else,
    implies,
    not_,
    shift_right,
    ugt,
    ule,
    ult,
    widened,
)
from ..engine.transition import Transition, Wires
from .history import WrittenRecord, in_state, limit_of, longest_fits

__all__ = ["input_contract", "limit_is_stable", "prove_relation", "relation"]


def limit_is_stable(now: Wires, then: Wires) -> Boolean:
    """Return whether PMBLIMITR_EL1 is unchanged, unless software writes it or `rst` is asserted."""
    return any_of(now["pmblimitr_write"] == 1, now["rst"] == 1, then["pmblimitr"] == now["pmblimitr"])


def _fitting(config: SPUConfig, wires: Wires) -> Boolean:
    """Return whether the full check, and each of its steps, is correct once it is marked as known."""
    pointer, limit = wires["pmbptr"], limit_of(wires)
    page, pages = shift_right(pointer, 12), shift_right(limit, 12)
    half = 26
    low = (1 << half) - 1

    def truth(name: str, condition: Boolean) -> Boolean:
        return wires[name] == as_bits(condition)

    first = all_of(
        truth("low_below", ult(page & low, pages & low)),
        truth("high_below", ult(shift_right(page, half), shift_right(pages, half))),
        truth("high_same", shift_right(page, half) == shift_right(pages, half)),
        truth(
            "in_place",
            all_of(shift_right(pointer, 56) == shift_right(limit, 56), pointer & (config.layout.align - 1) == 0),
        ),
    )
    if config.layout.align == config.max_record_bytes:
        return implies(wires["fits_known"] == 1, first)
    last = (pages - 1) & ((1 << 52) - 1)
    first = all_of(
        first,
        widened(wires["last_low"], 64) == (pages & low) - 1 & ((1 << half + 1) - 1),
        truth("crosses", ugt(pointer & 0xFFF, 4096 - config.max_record_bytes)),
    )
    second = all_of(
        widened(wires["last_high"], 64) == shift_right(last, half), truth("on_last_low", page & low == last & low)
    )
    third = truth("on_last_high", shift_right(page, half) == shift_right(last, half))
    ages = [wires["fits_known_1"] == 1, wires["fits_known_2"] == 1, wires["fits_known"] == 1]
    return all_of(
        implies(ages[2], ages[1]), implies(ages[1], ages[0]),
        implies(ages[0], first), implies(ages[1], second), implies(ages[2], third),
    )  # fmt: skip


def is_fault_kind(config: SPUConfig, kind: BitVector) -> Boolean:
    """Return whether this is a kind of fault that the configuration has."""
    kinds = [each for each in WriteFaultKind if config.rme or each != WriteFaultKind.GRANULE_PROTECTION]
    return any_of(*(kind == each.value for each in kinds))


def _fault_address(config: SPUConfig, wires: Wires) -> BitVector:
    """Return the address of the first byte that was not written."""
    record = WrittenRecord(config, wires)
    word = widened(wires["fault.word"], 64)
    return if_else(word == 0, record.origin, record.first + word * record.bus)


def relation(config: SPUConfig) -> Invariant:
    """Return the invariant of the buffer, over the wires of a `watched` one."""

    def holds(wires: Wires) -> Boolean:
        record = WrittenRecord(config, wires)
        aligned = _full_words if record.units == 1 else _aligner
        return all_of(
            ule(wires["buffer_state"], BufferState.FAULT),
            _fitting(config, wires),
            *_record(config, wires, record),
            *aligned(config, wires, record),
            ult(record.beats, config.max_record_bytes // record.bus),
            wires["pmbsr"] & ~config.writable(PMBSR_EL1) == 0,
        )

    return holds


def _record(config: SPUConfig, wires: Wires, record: WrittenRecord) -> Iterator[Boolean]:
    """Yield the conditions on pointer, limit, address and words of the record, in each state."""
    size = config.max_record_bytes
    low_bits = wires["next_low"].width - 1
    base = shift_right(record.origin, size.bit_length() - 1)
    next_low = widened(wires["next_low"], 64) == (base & ((1 << low_bits) - 1)) + 1
    next_high = widened(wires["next_high"], 64) == shift_right(base + 1, low_bits) & (
        (1 << wires["next_high"].width) - 1
    )
    words = (shift_right(record.origin, record.word) & (size // record.bus - 1)) + record.words
    yield implies(
        in_state(wires, BufferState.WRITE, BufferState.RESPONSE, BufferState.FAULT),
        all_of(
            longest_fits(config, record.origin, wires["limit"]),
            wires["keep"] == wires["undisturbed"],
            implies(wires["undisturbed"] == 1, wires["pmbptr"] == record.origin),
            widened(wires["base"], 64) == base,
            implies(record.words == 0, wires["buffer_state"] == BufferState.WRITE),
            ule(record.words, size // record.bus + 1),
            next_low,
            implies(record.words != 0, next_high),
        ),
    )
    yield implies(
        wires["buffer_state"] == BufferState.WRITE,
        all_of(widened(wires["words"], 64) == words, record.within == record.origin & record.bus - 1),
    )
    yield implies(
        wires["buffer_state"] == BufferState.RESPONSE,
        all_of(record.next_address == record.origin + record.length, ule(record.length, size)),
    )
    yield implies(
        wires["buffer_state"] == BufferState.FAULT,
        all_of(
            is_fault_kind(config, wires["fault.kind"]),
            wires["fault.kind"] != WriteFaultKind.NONE.value,
            ult(widened(wires["fault.word"], 64), record.words),
            implies(wires["undisturbed"] == 1, record.next_address == _fault_address(config, wires)),
        ),
    )
    yield implies(
        all_of(wires["buffer_state"] == BufferState.IDLE, wires["fits_known"] == 1),
        widened(wires["base"], 64) == shift_right(wires["pmbptr"], size.bit_length() - 1),
    )


def _full_words(config: SPUConfig, wires: Wires, record: WrittenRecord) -> Iterator[Boolean]:
    """Yield the conditions for a configuration in which every beat is a word."""
    yield implies(wires["buffer_state"] == BufferState.WRITE, record.length == record.words * record.bus)
    yield implies(wires["buffer_state"] == BufferState.WRITE, record.words == record.beats)
    yield implies(in_state(wires, BufferState.IDLE, BufferState.RESPONSE, BufferState.FAULT), record.beats == 0)


def _aligner(config: SPUConfig, wires: Wires, record: WrittenRecord) -> Iterator[Boolean]:
    """Yield the conditions with an aligner: the remainder of the last beat may be a separate word."""
    in_remainder = wires["aligner.aligner_state"] == AlignerState.REMAINDER
    started = wires["aligner.started"] == 1
    previous_end = widened(wires["aligner.previous_end"], 64) * record.align
    yield implies(in_remainder, started)
    yield implies(
        in_state(wires, BufferState.IDLE, BufferState.RESPONSE, BufferState.FAULT),
        all_of(not_(started), not_(in_remainder), record.beats == 0),
    )
    yield implies(in_remainder, record.beats == 0)
    yield implies(
        wires["buffer_state"] == BufferState.WRITE,
        all_of(
            started == (record.words != 0),
            record.length == if_else(started, record.words * record.bus - record.within, constant(0, 64)),
            implies(not_(in_remainder), record.words == record.beats),
            # Size of the remainder.
            implies(
                in_remainder,
                all_of(
                    previous_end != 0,
                    ule(previous_end, record.within),
                    ule(record.words, config.max_record_bytes // record.bus),
                ),
            ),
        ),
    )


def input_contract(config: SPUConfig, now: Wires, then: Wires) -> Boolean:
    """Return the contract of the inputs of the buffer.

    PMBLIMITR_EL1 changes only when software writes it, as is proved for the SPU. No record exceeds the maximum size, as
    is proved for the serializer. A fault has a kind that the configuration has, and refers to a word that was written.
    """
    record = WrittenRecord(config, now)
    last = config.max_record_bytes // config.bus_bytes - 1
    return all_of(
        limit_is_stable(now, then),
        implies(all_of(now["i__valid"] == 1, record.beats == last), now["i__payload.last"] == 1),
        implies(
            all_of(now["buffer_state"] == BufferState.RESPONSE, now["write__done"] == 1),
            all_of(
                is_fault_kind(config, now["write__fault.kind"]),
                ult(widened(now["write__fault.word"], 64), record.words),
            ),
        ),
    )


def prove_relation(config: SPUConfig, system: Transition) -> Verdict:
    """Prove the invariant `relation`. `system` is a `watched` buffer."""
    return inductive(system, relation(config), contract=lambda now, then: input_contract(config, now, then))
