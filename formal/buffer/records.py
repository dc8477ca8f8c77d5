"""Outcome of each record: which bytes are written where, which records are dropped, and when `busy` is deasserted."""

from spurtle.config import SPUConfig
from spurtle.gateware.aligner import AlignerState
from spurtle.gateware.record_issue import IssueState

from ..engine.induction import Invariant, always
from ..engine.proof import Verdict
from ..engine.terms import (
    BitVector,
    Boolean,
    all_of,
    any_of,
    as_bits,
    boolean,
    constant,
    if_else,
    implies,
    not_,
    uge,
    ule,
    ult,
    widened,
)
from ..engine.transition import Transition, Wires
from .history import SentRecords, faults, limit_of, longest_fits, runs, writes_records
from .relation import input_contract, relation

__all__ = ["prove_acceptance", "prove_beats", "prove_busy", "prove_follows", "prove_outcome", "prove_roomy"]

_WORD = ("data", "strobe", "last")


def _assumed(config: SPUConfig) -> Invariant:
    """Return the relation together with the contract of the inputs."""
    return lambda wires: all_of(relation(config)(wires), input_contract(config, wires, wires))


def prove_beats(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that no byte is written outside the buffer, as it was when the record began, and that no word is lost.

    A word is stored with its address, and holds its value until memory accepts it. Words have ascending addresses: each
    contains the next byte. An address that wraps would be below the first one. `system` is a `watched` buffer.
    """

    def written(now: Wires, then: Wires) -> Boolean:
        records = SentRecords(config, now)
        first = if_else(records.begins, records.next, records.origin)
        limit = if_else(records.begins, limit_of(now), now["limit"])
        address = then["write__beat__payload.address"]
        inside = (
            implies(records.strobed(byte), all_of(uge(address | byte, first), ult(address | byte, limit)))
            for byte in range(records.bus)
        )
        stored = all_of(
            then["write__beat__valid"] == 1,
            address == records.next & -records.bus,
            *(then[f"write__beat__payload.{name}"] == now[f"issue.aligner.o__payload.{name}"] for name in _WORD),
            now["issue.aligner.i__payload"] == now["i__payload"],
            now["issue.aligner.offset"] == now["issue.within"] if records.units > 1 else boolean(True),
            *inside,
        )
        waits = all_of(records.valid, now["write__beat__ready"] == 0)
        held = all_of(then["write__beat__valid"] == 1, then["write__beat__payload"] == now["write__beat__payload"])
        return implies(
            now["rst"] == 0,
            all_of(
                implies(records.stores, all_of(not_(waits), stored)),
                implies(waits, held),
                implies(all_of(not_(records.stores), not_(waits)), then["write__beat__valid"] == 0),
            ),
        )

    return always(system, written, assuming=_assumed(config))


def prove_acceptance(config: SPUConfig, system: Transition) -> Verdict:
    """Prove when a record begins. `system` is a `watched` buffer.

    No record does, while the buffer is stopped, disabled or in Discard mode, while records are abandoned, if as many
    records as permitted are outstanding, or if the longest record does not fit. The buffer stays stopped until software
    clears PMBSR_EL1.S.
    """

    def accepts(now: Wires, then: Wires) -> Boolean:
        records = SentRecords(config, now)
        return all_of(
            now["running"] == as_bits(runs(now)),
            now["issue.writing"] == as_bits(writes_records(now)),
            implies(
                records.begins,
                all_of(
                    now["accepted"] == 1,
                    writes_records(now),
                    now["drop"] == 0,
                    now["stale"] == 0,
                    ult(records.complete, config.outstanding),
                    not_(records.writing),
                    longest_fits(config, records.next, limit_of(now)),
                    then["origin"] == records.next,
                    then["limit"] == limit_of(now),
                ),
            ),
            implies(
                all_of(now["pmbsr.S"] == 1, now["pmbsr_write"] == 0, now["rst"] == 0),
                all_of(then["pmbsr.S"] == 1, not_(records.begins)),
            ),
        )

    return always(system, accepts, assuming=relation(config))


def prove_follows(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that a record begins in the cycle in which the last word of the previous one is transferred, if it may.

    It may if fewer records than permitted are outstanding and none is abandoned, and the longest record fits, whether
    or not that has been found out: with records of several sizes, if two of the longest ones fit where the previous
    record began. Its first word is valid in the next cycle. `system` is a `watched` buffer.
    """

    def follows(now: Wires, then: Wires) -> Boolean:
        records = SentRecords(config, now)
        may = all_of(
            now["issue.issue_state"] == IssueState.BEGIN,
            now["stale"] == 0,
            records.complete != 0,
            ult(records.complete, config.outstanding),
            now["issue.aligner.o__valid"] == 1,
            writes_records(now),
            now["drop"] == 0,
            any_of(not_(records.valid), now["write__beat__ready"] == 1),
            longest_fits(config, records.next, limit_of(now)),
            now["issue.roomy"] == 1 if config.layout.align < config.max_record_bytes else boolean(True),
            now["rst"] == 0,
        )
        return implies(may, all_of(records.begins, then["write__beat__valid"] == 1))

    return always(system, follows, assuming=relation(config))


def prove_roomy(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that only the last two of the longest records below the limit wait for the exact comparison.

    The page after the present one must have been compared, which takes five cycles. `system` is a `watched` buffer.
    """

    def knows(now: Wires, then: Wires) -> Boolean:
        records = SentRecords(config, now)
        size = config.max_record_bytes
        room = ule(widened(records.next, 66) + 3 * size, widened(limit_of(now), 66))
        compared = any_of(now["issue.issue_page.settled"] == 1, ult(records.next & 0xFFF, 4096 - 2 * size))
        return implies(all_of(records.begins, room, compared, now["rst"] == 0), then["issue.roomy"] == 1)

    return always(system, knows, assuming=relation(config))


def prove_outcome(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that each record is written or dropped, and that complete ones that are not abandoned advance the pointer.

    With several outstanding records, `discard` is asserted from the cycle after a fault until memory has answered all
    of them. `system` is a `watched` buffer.
    """

    def outcome(now: Wires, then: Wires) -> Boolean:
        records = SentRecords(config, now)
        state, after = now["issue.issue_state"], then["issue.issue_state"]
        received = all_of(now["i__valid"] == 1, now["i__ready"] == 1)
        last = all_of(
            now["issue.aligner.o__valid"] == 1,
            now["issue.aligner.o__ready"] == 1,
            now["issue.aligner.o__payload.last"] == 1,
        )
        dropping = all_of(state == IssueState.BEGIN, after == IssueState.DROP)
        answered_now = all_of(now["answered_undisturbed"] == 1, runs(now))
        complete = now["fault_kind"] == 0
        terms = [
            implies(received, any_of(records.stores, state == IssueState.DROP)),
            implies(dropping, all_of(now["accepted"] == 1, any_of(not_(writes_records(now)), now["drop"] == 1))),
            (now["accepted"] == 1) == any_of(records.begins, dropping),
            implies(
                state == IssueState.WRITE,
                after == if_else(records.ends, constant(IssueState.BEGIN, 2), constant(IssueState.WRITE, 2)),
            ),
            implies(state == IssueState.DROP, after == if_else(last, constant(IssueState.BEGIN, 2), state)),
            implies(
                now["pmbptr_write"] == 0,
                if_else(
                    answered_now,
                    implies(complete, then["pmbptr"] == now["pmbptr"] + widened(now["answered_length"], 64)),
                    then["pmbptr"] == now["pmbptr"],
                ),
            ),
        ]
        if config.outstanding > 1:
            failed = any_of(now["write__discard"] == 1, faults(now))
            terms.append((then["write__discard"] == 1) == all_of(failed, then["records.count"] != 0))
        return implies(now["rst"] == 0, all_of(*terms))

    return always(system, outcome, assuming=_assumed(config))


def _remaining(config: SPUConfig, wires: Wires) -> BitVector:
    """Return a number that decreases until `busy` is deasserted: the steps that remain, with weights.

    Storing a word makes it wait for its transfer. An answer of memory with a fault makes the issue pointer stale.
    """

    def number(value: int) -> BitVector:
        return constant(value, 20)

    records = SentRecords(config, wires)
    words = number(config.max_record_bytes // config.bus_bytes) - widened(wires["beats_in"], 20)
    # The remainder of the last beat is a separate word.
    if config.layout.align < config.bus_bytes:
        in_remainder = wires["issue.aligner.aligner_state"] == AlignerState.REMAINDER
        words = if_else(in_remainder, number(1), words + 1)
    sends = any_of(records.writing, wires["issue.issue_state"] == IssueState.DROP)
    words = if_else(sends, words + 1, number(0))
    steps = _steps(config, wires)
    return (
        (words << 6) + (widened(wires["write__beat__valid"], 20) << 5)
        + (widened(wires["records.count"], 20) << 5) + widened(wires["answered"], 20) + steps
    )  # fmt: skip


def _steps(config: SPUConfig, wires: Wires) -> BitVector:
    """Return the steps until it is known whether the longest record fits, or until the status reports that it does not.

    There are at most 16.
    """

    def number(value: int) -> BitVector:
        return constant(value, 20)

    age = widened(wires["issue.issue_page.age"], 20)
    unknown = if_else(wires["issue.issue_page.ahead"] == 1, number(8), number(12)) - age
    if config.layout.align < config.max_record_bytes:
        later = wires["issue.compared"] == 0
        unsettled = all_of(later, wires["issue.issue_page.settled"] == 0)
        decided = if_else(unsettled, number(8) - age, if_else(later, number(4), number(2)))
        leaving = wires["issue.issue_page.leaving"] == 1
        decided = if_else(leaving, number(9), decided)
        decided = if_else(wires["issue.issue_page.fits"] == 1, decided, number(2))
    else:
        decided = number(2)
    known = if_else(
        wires["issue.fits"] == 1,
        number(0),
        if_else(wires["full"] == 1, number(1), if_else(wires["exhausted"] == 1, number(0), decided)),
    )
    loaded = if_else(wires["issue.issue_page.known"] == 1, known, unknown)
    loads = wires["issue.issue_state"] == IssueState.LOAD
    steps = if_else(loads, number(15), if_else(wires["stale"] == 1, number(16), loaded))
    return if_else(writes_records(wires), steps, number(0))


def prove_busy(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that `busy` is deasserted if software writes no register and no other record arrives.

    The number `_remaining` decreases in each cycle in which a word is stored, transferred or dropped, or memory answers
    a record, and in each cycle in which none of them is waited for. It never increases. `system` is a `watched` buffer.
    """

    def decreases(now: Wires, then: Wires) -> Boolean:
        records = SentRecords(config, now)
        state = now["issue.issue_state"]
        drops = all_of(state == IssueState.DROP, now["issue.aligner.o__valid"] == 1, now["issue.aligner.o__ready"] == 1)
        transfers = all_of(records.valid, now["write__beat__ready"] == 1)
        waits = any_of(records.writing, state == IssueState.DROP, now["records.count"] != 0)
        advances = any_of(records.stores, drops, transfers, now["write__done"] == 1, not_(waits))
        abort = [now["write__abort"] == 0] if config.external_aborts else []
        quiet = all_of(
            *(now[name] == 0 for name in ("rst", "pmbptr_write", "pmblimitr_write", "pmbsr_write", "new_owner")),
            *abort,
            implies(state == IssueState.BEGIN, now["i__valid"] == 0),
        )
        remaining, after = _remaining(config, now), _remaining(config, then)
        stable_inputs = all_of(then["pmblimitr"] == now["pmblimitr"], then["new_owner"] == 0)
        return all_of(
            implies(
                all_of(quiet, stable_inputs, now["busy"] == 1),
                all_of(ule(after, remaining), implies(advances, ult(after, remaining))),
            ),
            implies(all_of(remaining == 0, now["new_owner"] == 0), now["busy"] == 0),
            # `busy` is asserted while a record is in progress, and until the registers show everything.
            implies(
                now["busy"] == 0,
                all_of(
                    any_of(state == IssueState.BEGIN, state == IssueState.LOAD),
                    records.complete == 0,
                    now["answered"] == 0,
                    implies(writes_records(now), longest_fits(config, now["pmbptr"], limit_of(now))),
                ),
            ),
        )

    return always(system, decreases, assuming=_assumed(config))
