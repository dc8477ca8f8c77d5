"""The Profiling Buffer in discard mode: nothing is written, nothing is full, and collisions are told of (D17.5.5).
And when it has another owner: nothing is begun, and nothing of the one before is completed.
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
from .relation import limit_stands

__all__ = [
    "discarding",
    "kept",
    "proofs",
    "prove_discards",
    "prove_kept",
    "prove_new_owner",
    "prove_unkept",
]


def _field(register: BitVector, name: str) -> BitVector:
    field = PMBLIMITR_EL1.fields[name]
    return extract(field.lsb + field.width - 1, field.lsb, register)


def _ends(config: SPUConfig, wires: Wires) -> Boolean:
    """The last word of a record is offered."""
    last = word_layout(config)["last"].offset
    return all_of(wires["aligner.o__valid"] == 1, extract(last, last, wires["aligner.o__payload"]) == 1)


def discarding(wires: Wires) -> Boolean:
    """The buffer is enabled, and in discard mode."""
    return all_of(_field(wires["pmblimitr"], "E") == 1, _field(wires["pmblimitr"], "FM") == FM.DISCARD)


def kept(wires: Wires) -> Boolean:
    """A record whose end will move the pointer was begun under the PMBLIMITR_EL1 of this cycle."""
    writing = (wires["buffer_state"] == state for state in (BufferState.WRITE, BufferState.RESPONSE, BufferState.FAULT))
    return implies(all_of(any_of(*writing), wires["keep"] == 1), not_(discarding(wires)))


def prove_kept(system: Transition) -> Verdict:
    """`system` is a `ProfilingBuffer`. That PMBLIMITR_EL1 stands is proved of the SPU."""
    return inductive(system, kept, contract=limit_stands)


def prove_discards(config: SPUConfig, system: Transition) -> Verdict:
    """Each cycle of discard mode, whatever software writes in it. `system` is a `ProfilingBuffer` of `config`."""

    def discards(now: Wires, then: Wires) -> Boolean:
        state, after = now["buffer_state"], then["buffer_state"]
        ends = _ends(config, now)
        # Where a record can begin within a word, its last beat may have left over a word of its own.
        rests = (
            now["aligner.aligner_state"] == AlignerState.REMAINDER
            if config.layout.align < config.bus_bytes
            else boolean(False)
        )
        told = [(now["collision"] == 1, "COLL")]
        quiet = now["pmbsr_write"] == 0
        if config.external_aborts:
            told.append((all_of(state == BufferState.FAULT, now["fault.external"] == 1), "EA"))
            quiet = all_of(quiet, now["write__abort"] == 0)
        status = now["pmbsr"]
        for happens, name in told:
            status |= if_else(happens, constant(PMBSR_EL1.fields[name].mask, 64), constant(0, 64))
        return implies(
            all_of(discarding(now), now["rst"] == 0),
            all_of(
                # Nothing is full, the pointer stands, and the status changes by collisions and External aborts alone.
                now["full"] == 0,
                implies(now["pmbptr_write"] == 0, then["pmbptr"] == now["pmbptr"]),
                implies(quiet, then["pmbsr"] == status),
                # Words are those of a record that was begun before, and none is begun.
                implies(now["write__beat__valid"] == 1, state == BufferState.WRITE),
                implies(after == BufferState.WRITE, state == BufferState.WRITE),
                # What comes is taken to its last word. It waits for no more than the end of a record begun before.
                implies(all_of(state == BufferState.IDLE, now["aligner.o__valid"] == 1), after == BufferState.DROP),
                implies(
                    state == BufferState.DROP, all_of(now["aligner.o__ready"] == 1, any_of(rests, now["i__ready"] == 1))
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

    return always(system, discards, assuming=kept)


def prove_new_owner(config: SPUConfig, system: Transition) -> Verdict:
    """The cycle in which the buffer is told of another owner. `system` is a `ProfilingBuffer` of `config`."""

    def passes(now: Wires, then: Wires) -> Boolean:
        state, after = now["buffer_state"], then["buffer_state"]
        return implies(
            all_of(now["new_owner"] == 1, now["rst"] == 0),
            all_of(
                # It does not run, is not found full, and its pointer is not moved.
                now["running"] == 0,
                now["writing"] == 0,
                now["full"] == 0,
                implies(now["pmbptr_write"] == 0, then["pmbptr"] == now["pmbptr"]),
                # No record is begun but to be dropped, and the end of one begun before will move no pointer.
                implies(after == BufferState.WRITE, state == BufferState.WRITE),
                implies(all_of(state == BufferState.IDLE, now["aligner.o__valid"] == 1), after == BufferState.DROP),
                implies(
                    any_of(after == BufferState.WRITE, after == BufferState.RESPONSE, after == BufferState.FAULT),
                    then["keep"] == 0,
                ),
            ),
        )

    return always(system, passes)


def prove_unkept(config: SPUConfig, system: Transition) -> Verdict:
    """A record whose end will not move the pointer stays so: of its end the pointer is not heard."""

    def stays(now: Wires, then: Wires) -> Boolean:
        state, after = now["buffer_state"], then["buffer_state"]
        begun = any_of(state == BufferState.WRITE, state == BufferState.RESPONSE, state == BufferState.FAULT)
        return implies(
            all_of(begun, now["keep"] == 0, now["rst"] == 0),
            all_of(
                implies(after != BufferState.IDLE, then["keep"] == 0),
                implies(now["pmbptr_write"] == 0, then["pmbptr"] == now["pmbptr"]),
            ),
        )

    return always(system, stays)


def _begun(wires: Wires) -> Boolean:
    """The buffer has another owner while a record is being written that would have moved the pointer."""
    return all_of(wires["buffer_state"] == BufferState.WRITE, wires["keep"] == 1, wires["new_owner"] == 1)


def _dropped(config: SPUConfig, wires: Wires) -> Boolean:
    """The last word of a record is taken and not written, while the buffer runs."""
    return all_of(wires["buffer_state"] == BufferState.DROP, _ends(config, wires), wires["running"] == 1)


@cache
def _system(config: SPUConfig) -> Transition:
    return transition(ProfilingBuffer(config))


def proofs(config: SPUConfig) -> Iterator[Proof]:
    """Of the buffer of a configuration."""
    proof = ProvedBlock("buffer", config, _system).proof
    yield proof(
        "on a change of owner the buffer does not run, accept a record or move the pointer",
        "one cycle",
        prove_new_owner,
    )
    yield proof("a record of the previous owner does not advance the pointer", "induction", prove_unkept)
    yield proof(
        "cover: a change of owner while a record is written",
        "bounded search",
        lambda _, system: reach(system, _begun, cycles=8),
    )
    if not config.discard_mode:
        return
    yield proof(
        "a record that is still written in discard mode does not advance the pointer",
        "induction",
        lambda _, system: prove_kept(system),
    )
    yield proof(
        "in discard mode records are dropped, the pointer is stable, the buffer is never full",
        "one cycle",
        prove_discards,
    )
    yield proof(
        "cover: a record is dropped in discard mode",
        "bounded search",
        lambda config, system: reach(system, lambda wires: _dropped(config, wires), cycles=4, assuming=discarding),
    )
    yield proof(
        "cover: a collision is reported in discard mode",
        "bounded search",
        lambda _, system: reach(
            system,
            lambda wires: wires["pmbsr"] == PMBSR_EL1.fields["COLL"].mask,
            cycles=4,
            # Software could write it, too.
            assuming=lambda wires: all_of(discarding(wires), wires["pmbsr_write"] == 0),
        ),
    )
