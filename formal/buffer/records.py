"""Outcome of each record: what is written where, what is dropped, and that the buffer does not stay busy."""

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
from .history import WrittenRecord, has_room, limit_of, runs, writes_records
from .relation import promised_inputs, relation

__all__ = ["prove_beats", "prove_drains", "prove_fate", "prove_silence"]

_WORD = ("data", "strobe", "last")


def _aligned(record: WrittenRecord, wires: Wires) -> Iterator[Boolean]:
    """What the aligner is told, or where every beat is a word, what it says."""
    if record.units > 1:
        yield wires["aligner.offset"] == wires["within"]
        yield wires["aligner.i__payload"] == wires["i__payload"]
        return
    told = {"data": wires["i__payload.data"], "last": wires["i__payload.last"], "strobe": constant(-1, record.bus)}
    for name, value in told.items():
        yield wires[f"aligner.o__payload.{name}"] == value


def _promised(config: SPUConfig) -> Invariant:
    """Return the relation, with the inputs as the core and the memory promise them."""
    return lambda wires: all_of(relation(config)(wires), promised_inputs(config, wires, wires))


def prove_beats(config: SPUConfig, system: Transition) -> Verdict:
    """Nothing is written outside of the buffer as it was when the record was begun. `system` is a `watched` buffer."""

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
                # Word by word; a sum that wraps would not be above the first.
                address == record.first + record.words * record.bus,
                uge(address, record.first),
                address & record.bus - 1 == 0,
                # What is written is what the aligner makes of what comes.
                *(wires[f"write__beat__payload.{name}"] == wires[f"aligner.o__payload.{name}"] for name in _WORD),
                *_aligned(record, wires),
                *written,
            ),
        )

    return always(system, inside, cycles=1, assuming=_promised(config))


def prove_silence(config: SPUConfig, system: Transition) -> Verdict:
    """While the buffer is stopped, disabled or in discard mode, or where the longest record does not fit, no record is
    begun; and it is stopped until software says otherwise.
    """

    def silent(now: Wires, then: Wires) -> Boolean:
        begins = all_of(now["buffer_state"] != BufferState.WRITE, then["buffer_state"] == BufferState.WRITE)
        return all_of(
            now["running"] == as_bits(runs(now)),
            now["writing"] == as_bits(writes_records(now)),
            implies(
                begins,
                all_of(
                    now["accepted"] == 1,
                    writes_records(now),
                    now["drop"] == 0,
                    has_room(config, now["pmbptr"], limit_of(now)),
                    then["origin"] == now["pmbptr"],
                    then["limit"] == limit_of(now),
                    then["words_out"] == 0,
                ),
            ),
            implies(
                all_of(now["pmbsr.S"] == 1, now["pmbsr_write"] == 0, now["rst"] == 0),
                all_of(then["pmbsr.S"] == 1, not_(begins)),
            ),
        )

    return always(system, silent, assuming=relation(config))


def prove_fate(config: SPUConfig, system: Transition) -> Verdict:
    """What is taken at `i` is of a record that is being written, or dropped because the buffer is not filled or does
    not want it. A record that has been written moves the pointer over its bytes, unless it met a fault, or the buffer
    stopped, or software wrote pointer or limit in the meantime.
    """

    def told(now: Wires, then: Wires) -> Boolean:
        state, after = now["buffer_state"], then["buffer_state"]
        record = WrittenRecord(config, now)
        last = now["write__beat__payload.last"] == 1
        taken = all_of(now["i__valid"] == 1, now["i__ready"] == 1)
        done = all_of(state == BufferState.RESPONSE, now["write__done"] == 1)
        fault = now["write__fault.kind"] != WriteFaultKind.NONE.value
        ends = as_bits(all_of(record.leaves, last))
        return implies(
            now["rst"] == 0,
            all_of(
                implies(taken, any_of(state == BufferState.WRITE, state == BufferState.DROP)),
                implies(
                    all_of(state != BufferState.DROP, after == BufferState.DROP),
                    all_of(now["accepted"] == 1, any_of(not_(writes_records(now)), now["drop"] == 1)),
                ),
                (now["accepted"] == 1) == all_of(state == BufferState.IDLE, after != BufferState.IDLE),
                implies(
                    state == BufferState.WRITE, after == if_else(ends == 1, constant(BufferState.RESPONSE, 3), state)
                ),
                implies(all_of(state == BufferState.WRITE, taken), record.leaves),
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

    return always(system, told, assuming=relation(config))


def _left(config: SPUConfig, wires: Wires) -> BitVector:
    """Steps until the buffer is not busy, at most."""

    def number(value: int) -> BitVector:
        return constant(value, 16)

    beats = number(config.max_record_bytes // config.bus_bytes) - widened(wires["beats_in"], 16)
    # What the last beat has left over is a word of its own.
    words = beats
    if config.layout.align < config.bus_bytes:
        words = if_else(wires["aligner.aligner_state"] == AlignerState.REMAINDER, number(0), beats + 1)
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


def prove_drains(config: SPUConfig, system: Transition) -> Verdict:
    """As long as software writes nothing and no other record comes, `busy` falls: each cycle comes nearer to that, but
    those in which a record's next beat, memory or its answer is waited for.
    """

    def nearer(now: Wires, then: Wires) -> Boolean:
        state = now["buffer_state"]
        resting = (
            now["aligner.aligner_state"] == AlignerState.REMAINDER
            if config.layout.align < config.bus_bytes
            else boolean(False)
        )
        offered = any_of(now["i__valid"] == 1, resting)
        goes_on = if_else(
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
        left, after = _left(config, now), _left(config, then)
        # Of the next cycle: `full` is answered in it.
        steady = all_of(then["pmblimitr"] == now["pmblimitr"], then["new_owner"] == 0)
        return all_of(
            ule(left, config.max_record_bytes // config.bus_bytes + 8),
            implies(
                all_of(quiet, steady, now["busy"] == 1),
                all_of(ule(after, left), implies(goes_on, ult(after, left))),
            ),
            implies(all_of(left == 0, now["new_owner"] == 0), now["busy"] == 0),
            # It is not said to be idle while a record is on its way, or before the status says that it is full.
            implies(
                now["busy"] == 0,
                all_of(
                    state == BufferState.IDLE,
                    implies(writes_records(now), has_room(config, now["pmbptr"], limit_of(now))),
                ),
            ),
        )

    return always(system, nearer, assuming=_promised(config))
