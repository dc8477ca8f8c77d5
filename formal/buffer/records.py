"""Outcome of each record: which bytes are written where, which records are dropped, and when `busy` is deasserted."""

from collections.abc import Iterator

from spurtle.config import SPUConfig
from spurtle.gateware.aligner import AlignerState
from spurtle.gateware.buffer import BufferState
from spurtle.interface.memory import WriteFaultKind

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
    zero_extend,
)
from ..engine.transition import Transition, Wires
from .history import WrittenRecord, limit_of, longest_fits, runs, writes_records
from .relation import input_contract, relation

__all__ = ["prove_acceptance", "prove_beats", "prove_busy", "prove_outcome"]

_WORD = ("data", "strobe", "last")


def _aligned(record: WrittenRecord, wires: Wires) -> Iterator[Boolean]:
    """Yield the connection of the aligner. If every beat is a word, its outputs are known instead."""
    if record.units > 1:
        yield wires["aligner.offset"] == wires["within"]
        yield wires["aligner.i__payload"] == wires["i__payload"]
        return
    word = {"data": wires["i__payload.data"], "last": wires["i__payload.last"], "strobe": constant(-1, record.bus)}
    for name, value in word.items():
        yield wires[f"aligner.o__payload.{name}"] == value


def _assumed(config: SPUConfig) -> Invariant:
    """Return the relation together with the contract of the inputs."""
    return lambda wires: all_of(relation(config)(wires), input_contract(config, wires, wires))


def prove_beats(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that no byte is written outside the buffer, as it was when the record was accepted.

    `system` is a `watched` buffer.
    """

    def inside(wires: Wires) -> Boolean:
        record = WrittenRecord(config, wires)
        address, limit = wires["write__beat__payload.address"], wires["limit"]
        written = (
            implies(
                record.strobed(byte),
                all_of(uge(address | byte, record.origin), ult(address | byte, limit)),
            )
            for byte in range(record.bus)
        )
        return implies(
            wires["write__beat__valid"] == 1,
            all_of(
                wires["buffer_state"] == BufferState.WRITE,
                # Words have ascending addresses. An address that wraps would be below the first one.
                address == record.first + record.words * record.bus,
                uge(address, record.first),
                address & record.bus - 1 == 0,
                # The aligner makes the written words.
                *(wires[f"write__beat__payload.{name}"] == wires[f"aligner.o__payload.{name}"] for name in _WORD),
                *_aligned(record, wires),
                *written,
            ),
        )

    return always(system, inside, cycles=1, assuming=_assumed(config))


def prove_acceptance(config: SPUConfig, system: Transition) -> Verdict:
    """Prove when a record is accepted for writing. `system` is a `watched` buffer.

    No record is, while the buffer is stopped, disabled or in Discard mode, or if the longest record does not fit. The
    buffer stays stopped until software clears PMBSR_EL1.S.
    """

    def accepts(now: Wires, then: Wires) -> Boolean:
        starts = all_of(now["buffer_state"] != BufferState.WRITE, then["buffer_state"] == BufferState.WRITE)
        return all_of(
            now["running"] == as_bits(runs(now)),
            now["writing"] == as_bits(writes_records(now)),
            implies(
                starts,
                all_of(
                    now["accepted"] == 1,
                    writes_records(now),
                    now["drop"] == 0,
                    longest_fits(config, now["pmbptr"], limit_of(now)),
                    then["origin"] == now["pmbptr"],
                    then["limit"] == limit_of(now),
                    then["words_out"] == 0,
                ),
            ),
            implies(
                all_of(now["pmbsr.S"] == 1, now["pmbsr_write"] == 0, now["rst"] == 0),
                all_of(then["pmbsr.S"] == 1, not_(starts)),
            ),
        )

    return always(system, accepts, assuming=relation(config))


def prove_outcome(config: SPUConfig, system: Transition) -> Verdict:
    """Prove the outcome of each record. `system` is a `watched` buffer.

    Beats are accepted at `i` only for a record that is written, or that is dropped because the buffer writes none or
    `drop` is asserted. A written record advances the pointer by its length, unless a fault occurred, the buffer
    stopped, or software wrote pointer or limit in the meantime.
    """

    def outcome(now: Wires, then: Wires) -> Boolean:
        state, after = now["buffer_state"], then["buffer_state"]
        record = WrittenRecord(config, now)
        last = now["write__beat__payload.last"] == 1
        received = all_of(now["i__valid"] == 1, now["i__ready"] == 1)
        done = all_of(state == BufferState.RESPONSE, now["write__done"] == 1)
        fault = now["write__fault.kind"] != WriteFaultKind.NONE.value
        ends = as_bits(all_of(record.sent, last))
        return implies(
            now["rst"] == 0,
            all_of(
                implies(received, any_of(state == BufferState.WRITE, state == BufferState.DROP)),
                implies(
                    all_of(state != BufferState.DROP, after == BufferState.DROP),
                    all_of(now["accepted"] == 1, any_of(not_(writes_records(now)), now["drop"] == 1)),
                ),
                (now["accepted"] == 1) == all_of(state == BufferState.IDLE, after != BufferState.IDLE),
                implies(
                    state == BufferState.WRITE, after == if_else(ends == 1, constant(BufferState.RESPONSE, 3), state)
                ),
                implies(all_of(state == BufferState.WRITE, received), record.sent),
                implies(all_of(state == BufferState.RESPONSE, not_(done)), after == BufferState.RESPONSE),
                implies(done, after == if_else(fault, constant(BufferState.FAULT, 3), constant(BufferState.IDLE, 3))),
                implies(state == BufferState.FAULT, after == BufferState.IDLE),
                implies(
                    now["pmbptr_write"] == 0,
                    if_else(
                        all_of(done, not_(fault), now["undisturbed"] == 1, runs(now)),
                        then["pmbptr"] == record.origin + record.length,
                        implies(state != BufferState.FAULT, then["pmbptr"] == now["pmbptr"]),
                    ),
                ),
            ),
        )

    return always(system, outcome, assuming=relation(config))


def _remaining(config: SPUConfig, wires: Wires) -> BitVector:
    """Return an upper bound for the cycles until `busy` is deasserted, stalls not counted."""

    def number(value: int) -> BitVector:
        return constant(value, 16)

    beats = number(config.max_record_bytes // config.bus_bytes) - widened(wires["beats_in"], 16)
    # The remainder of the last beat is a separate word.
    words = beats
    if config.layout.align < config.bus_bytes:
        words = if_else(wires["aligner.aligner_state"] == AlignerState.REMAINDER, number(0), beats + 1)
    # Without a record, the steps of the full check remain, and then one cycle in which `full` is asserted. Each state
    # of a record adds one cycle, and so does each word that remains.
    unknown = number(4)
    if config.layout.align < config.max_record_bytes:
        unknown = if_else(
            wires["fits_known_2"] == 1, number(2), if_else(wires["fits_known_1"] == 1, number(3), unknown)
        )
    idle = if_else(wires["fits_known"] == 1, zero_extend(15, wires["full"]), unknown)
    state = wires["buffer_state"]
    return if_else(
        state == BufferState.IDLE,
        idle,
        if_else(
            state == BufferState.FAULT, number(5), if_else(state == BufferState.RESPONSE, number(6), number(7) + words)
        ),
    )


def prove_busy(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that `busy` is deasserted if software writes no register and no other record arrives.

    The bound `_remaining` never increases. It decreases in each cycle that does not wait for the next beat of the
    record, for memory, or for the response of memory. `system` is a `watched` buffer.
    """

    def decreases(now: Wires, then: Wires) -> Boolean:
        state = now["buffer_state"]
        in_remainder = (
            now["aligner.aligner_state"] == AlignerState.REMAINDER
            if config.layout.align < config.bus_bytes
            else boolean(False)
        )
        offered = any_of(now["i__valid"] == 1, in_remainder)
        advances = if_else(
            state == BufferState.WRITE,
            all_of(offered, now["write__beat__ready"] == 1),
            if_else(
                state == BufferState.DROP, offered, implies(state == BufferState.RESPONSE, now["write__done"] == 1)
            ),
        )
        quiet = all_of(
            *(now[name] == 0 for name in ("rst", "pmbptr_write", "pmblimitr_write", "pmbsr_write", "new_owner")),
            implies(state == BufferState.IDLE, now["i__valid"] == 0),
        )
        remaining, after = _remaining(config, now), _remaining(config, then)
        # The bound of the next cycle depends on `full`, and so on these inputs in that cycle.
        stable_inputs = all_of(then["pmblimitr"] == now["pmblimitr"], then["new_owner"] == 0)
        return all_of(
            # At most 7 in addition to the words, which may be one more than the beats.
            ule(remaining, config.max_record_bytes // config.bus_bytes + 8),
            implies(
                all_of(quiet, stable_inputs, now["busy"] == 1),
                all_of(ule(after, remaining), implies(advances, ult(after, remaining))),
            ),
            implies(all_of(remaining == 0, now["new_owner"] == 0), now["busy"] == 0),
            # `busy` is asserted while a record is in progress, and until the status reports that the buffer is full.
            implies(
                now["busy"] == 0,
                all_of(
                    state == BufferState.IDLE,
                    implies(writes_records(now), longest_fits(config, now["pmbptr"], limit_of(now))),
                ),
            ),
        )

    return always(system, decreases, assuming=_assumed(config))
