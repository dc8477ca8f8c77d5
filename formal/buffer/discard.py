"""Profiling Buffer in Discard mode (D17.5.5) and on a change of owner.

In Discard mode no record is written, the buffer is never full, and collisions are reported. On a change of owner no
record is accepted for writing, and a record of the previous owner does not advance the pointer.
"""

from collections.abc import Iterator
from functools import cache

from spurtle.arch import FM, PMBLIMITR_EL1, PMBSR_EL1
from spurtle.config import SPUConfig
from spurtle.gateware.aligner import AlignerState, word_layout
from spurtle.gateware.buffer import BufferState, ProfilingBuffer

from ..engine.cover import reach
from ..engine.induction import always, inductive
from ..engine.proof import Proof, ProvedBlock, Verdict
from ..engine.terms import BitVector, Boolean, all_of, any_of, boolean, constant, extract, if_else, implies, not_
from ..engine.transition import Transition, Wires, transition
from .relation import limit_is_stable

__all__ = [
    "discarding",
    "no_commit_while_discarding",
    "proofs",
    "prove_abandoned",
    "prove_discards",
    "prove_new_owner",
    "prove_no_commit",
]


def _field(register: BitVector, name: str) -> BitVector:
    field = PMBLIMITR_EL1.fields[name]
    return extract(field.lsb + field.width - 1, field.lsb, register)


def _ends(config: SPUConfig, wires: Wires) -> Boolean:
    """Return whether the last word of a record is offered."""
    last = word_layout(config)["last"].offset
    return all_of(wires["aligner.o__valid"] == 1, extract(last, last, wires["aligner.o__payload"]) == 1)


def discarding(wires: Wires) -> Boolean:
    """Return whether the buffer is enabled and in Discard mode."""
    return all_of(_field(wires["pmblimitr"], "E") == 1, _field(wires["pmblimitr"], "FM") == FM.DISCARD)


def no_commit_while_discarding(wires: Wires) -> Boolean:
    """Return whether no record that will advance the pointer is being written in Discard mode.

    `keep` is cleared when PMBLIMITR_EL1 is written, so such a record was accepted under the current PMBLIMITR_EL1.
    """
    writing = (wires["buffer_state"] == state for state in (BufferState.WRITE, BufferState.RESPONSE, BufferState.FAULT))
    return implies(all_of(any_of(*writing), wires["keep"] == 1), not_(discarding(wires)))


def prove_no_commit(system: Transition) -> Verdict:
    """Prove `no_commit_while_discarding`. `system` is a `ProfilingBuffer`.

    PMBLIMITR_EL1 changes only when `pmblimitr_write` is asserted, as is proved for the SPU.
    """
    return inductive(system, no_commit_while_discarding, contract=limit_is_stable)


def prove_discards(config: SPUConfig, system: Transition) -> Verdict:
    """Prove each cycle of Discard mode, for all register writes in it. `system` is a `ProfilingBuffer` of `config`."""

    def discards(now: Wires, then: Wires) -> Boolean:
        state, after = now["buffer_state"], then["buffer_state"]
        ends = _ends(config, now)
        # If a record can start within a word, the remainder of its last beat may be a separate word.
        remainder = (
            now["aligner.aligner_state"] == AlignerState.REMAINDER
            if config.layout.align < config.bus_bytes
            else boolean(False)
        )
        events = [(now["collision"] == 1, "COLL")]
        quiet = now["pmbsr_write"] == 0
        if config.external_aborts:
            events.append((all_of(state == BufferState.FAULT, now["fault.external"] == 1), "EA"))
            quiet = all_of(quiet, now["write__abort"] == 0)
        status = now["pmbsr"]
        for occurs, name in events:
            status |= if_else(occurs, constant(PMBSR_EL1.fields[name].mask, 64), constant(0, 64))
        return implies(
            all_of(discarding(now), now["rst"] == 0),
            all_of(
                # The buffer is not full, the pointer is stable, and only collisions and External aborts change the
                # status.
                now["full"] == 0,
                implies(now["pmbptr_write"] == 0, then["pmbptr"] == now["pmbptr"]),
                implies(quiet, then["pmbsr"] == status),
                # Words are written only for a record that was accepted before, and no record is accepted for writing.
                implies(now["write__beat__valid"] == 1, state == BufferState.WRITE),
                implies(after == BufferState.WRITE, state == BufferState.WRITE),
                # Each record is dropped up to its last word. It waits only for the end of a record accepted before.
                implies(all_of(state == BufferState.IDLE, now["aligner.o__valid"] == 1), after == BufferState.DROP),
                implies(
                    state == BufferState.DROP,
                    all_of(now["aligner.o__ready"] == 1, any_of(remainder, now["i__ready"] == 1)),
                ),
                implies(
                    state == BufferState.DROP,
                    after == if_else(ends, constant(BufferState.IDLE, 3), constant(BufferState.DROP, 3)),
                ),
                implies(
                    all_of(state == BufferState.RESPONSE, now["write__done"] == 1),
                    any_of(after == BufferState.IDLE, after == BufferState.FAULT),
                ),
                implies(state == BufferState.FAULT, after == BufferState.IDLE),
                implies(state == BufferState.WRITE, now["aligner.o__ready"] == now["write__beat__ready"]),
            ),
        )

    return always(system, discards, assuming=no_commit_while_discarding)


def prove_new_owner(config: SPUConfig, system: Transition) -> Verdict:
    """Prove the cycle in which `new_owner` is asserted. `system` is a `ProfilingBuffer` of `config`."""

    def abandons(now: Wires, then: Wires) -> Boolean:
        state, after = now["buffer_state"], then["buffer_state"]
        return implies(
            all_of(now["new_owner"] == 1, now["rst"] == 0),
            all_of(
                # The buffer does not run, is not full, and its pointer is stable.
                now["running"] == 0,
                now["writing"] == 0,
                now["full"] == 0,
                implies(now["pmbptr_write"] == 0, then["pmbptr"] == now["pmbptr"]),
                # A record is accepted only to be dropped. One accepted before will not advance the pointer.
                implies(after == BufferState.WRITE, state == BufferState.WRITE),
                implies(all_of(state == BufferState.IDLE, now["aligner.o__valid"] == 1), after == BufferState.DROP),
                implies(
                    any_of(after == BufferState.WRITE, after == BufferState.RESPONSE, after == BufferState.FAULT),
                    then["keep"] == 0,
                ),
            ),
        )

    return always(system, abandons)


def prove_abandoned(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that an abandoned record stays abandoned and does not advance the pointer. `system` is a `ProfilingBuffer`.

    A record is abandoned if `keep` is 0.
    """

    def stays_abandoned(now: Wires, then: Wires) -> Boolean:
        state, after = now["buffer_state"], then["buffer_state"]
        writing = any_of(state == BufferState.WRITE, state == BufferState.RESPONSE, state == BufferState.FAULT)
        return implies(
            all_of(writing, now["keep"] == 0, now["rst"] == 0),
            all_of(
                implies(after != BufferState.IDLE, then["keep"] == 0),
                implies(now["pmbptr_write"] == 0, then["pmbptr"] == now["pmbptr"]),
            ),
        )

    return always(system, stays_abandoned)


def _abandoned(wires: Wires) -> Boolean:
    """Return whether the owner changes while a record is being written that would have advanced the pointer."""
    return all_of(wires["buffer_state"] == BufferState.WRITE, wires["keep"] == 1, wires["new_owner"] == 1)


def _dropped(config: SPUConfig, wires: Wires) -> Boolean:
    """Return whether the last word of a record is accepted and not written, while the buffer runs."""
    return all_of(wires["buffer_state"] == BufferState.DROP, _ends(config, wires), wires["running"] == 1)


@cache
def _system(config: SPUConfig) -> Transition:
    return transition(ProfilingBuffer(config))


def proofs(config: SPUConfig) -> Iterator[Proof]:
    """Yield the proofs of a configuration."""
    proof = ProvedBlock("buffer", config, _system).proof
    yield proof(
        "on a change of owner the buffer does not run, accept a record or move the pointer",
        "one cycle",
        prove_new_owner,
    )
    yield proof("a record of the previous owner does not advance the pointer", "induction", prove_abandoned)
    yield proof(
        "cover: a change of owner while a record is written",
        "bounded search",
        lambda _, system: reach(system, _abandoned, cycles=8),
    )
    if not config.discard_mode:
        return
    yield proof(
        "a record that is still written in Discard mode does not advance the pointer",
        "induction",
        lambda _, system: prove_no_commit(system),
    )
    yield proof(
        "in Discard mode records are dropped, the pointer is stable, the buffer is never full",
        "one cycle",
        prove_discards,
    )
    yield proof(
        "cover: a record is dropped in Discard mode",
        "bounded search",
        lambda config, system: reach(system, lambda wires: _dropped(config, wires), cycles=4, assuming=discarding),
    )
    yield proof(
        "cover: a collision is reported in Discard mode",
        "bounded search",
        lambda _, system: reach(
            system,
            lambda wires: wires["pmbsr"] == PMBSR_EL1.fields["COLL"].mask,
            cycles=4,
            # Otherwise software could write COLL.
            assuming=lambda wires: all_of(discarding(wires), wires["pmbsr_write"] == 0),
        ),
    )
