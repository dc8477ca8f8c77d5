"""The Profiling Buffer in discard mode: nothing is written, nothing is full, and collisions are told of (D17.5.5).
And when it has another owner: nothing is begun, and nothing of the one before is completed.
"""

from collections.abc import Callable, Iterator
from functools import cache

import z3

from spurtle.arch import FM, PMBLIMITR_EL1, PMBSR_EL1
from spurtle.config import CONFIGS, SPUConfig
from spurtle.gateware.aligner import AlignerState, word_layout
from spurtle.gateware.buffer import BufferState, ProfilingBuffer

from ..engine.features import FEATURES, distinct
from ..engine.induction import Wires, always, inductive, reach
from ..engine.proof import Proof, Verdict
from ..engine.transition import Transition, transition
from . import filling
from .filling import CHANGING

__all__ = [
    "discarding",
    "kept",
    "proofs",
    "prove_discards",
    "prove_kept",
    "prove_new_owner",
    "prove_unkept",
]


def _field(register: z3.BitVecRef, name: str) -> z3.BitVecRef:
    field = PMBLIMITR_EL1.fields[name]
    return z3.Extract(field.lsb + field.width - 1, field.lsb, register)


def _ends(config: SPUConfig, wires: Wires) -> z3.BoolRef:
    """The last word of a record is offered."""
    last = word_layout(config)["last"].offset
    return z3.And(wires["aligner.o__valid"] == 1, z3.Extract(last, last, wires["aligner.o__payload"]) == 1)


def discarding(wires: Wires) -> z3.BoolRef:
    """The buffer is enabled, and in discard mode."""
    return z3.And(_field(wires["pmblimitr"], "E") == 1, _field(wires["pmblimitr"], "FM") == FM.DISCARD)


def kept(wires: Wires) -> z3.BoolRef:
    """A record whose end will move the pointer was begun under the PMBLIMITR_EL1 of this cycle."""
    writing = (wires["buffer_state"] == state for state in (BufferState.WRITE, BufferState.RESPONSE, BufferState.FAULT))
    return z3.Implies(z3.And(z3.Or(*writing), wires["keep"] == 1), z3.Not(discarding(wires)))


def prove_kept(system: Transition) -> Verdict:
    """`system` is a `ProfilingBuffer`. That PMBLIMITR_EL1 stands is proved of the SPU."""
    return inductive(system, kept, contract=filling.limit_stands)


def prove_discards(config: SPUConfig, system: Transition) -> Verdict:
    """Each cycle of discard mode, whatever software writes in it. `system` is a `ProfilingBuffer` of `config`."""

    def discards(now: Wires, then: Wires) -> z3.BoolRef:
        state, after = now["buffer_state"], then["buffer_state"]
        ends = _ends(config, now)
        # Where a record can begin within a word, its last beat may have left over a word of its own.
        rests = (
            now["aligner.aligner_state"] == AlignerState.REST
            if config.layout.align < config.bus_bytes
            else z3.BoolVal(False)
        )
        told = [(now["collision"] == 1, "COLL")]
        quiet = now["pmbsr_write"] == 0
        if config.external_aborts:
            told.append((z3.And(state == BufferState.FAULT, now["fault.external"] == 1), "EA"))
            quiet = z3.And(quiet, now["write__abort"] == 0)
        status = now["pmbsr"]
        for happens, name in told:
            status |= z3.If(happens, z3.BitVecVal(PMBSR_EL1.fields[name].mask, 64), z3.BitVecVal(0, 64))
        return z3.Implies(
            z3.And(discarding(now), now["rst"] == 0),
            z3.And(
                # Nothing is full, the pointer stands, and the status changes by collisions and External aborts alone.
                now["full"] == 0,
                z3.Implies(now["pmbptr_write"] == 0, then["pmbptr"] == now["pmbptr"]),
                z3.Implies(quiet, then["pmbsr"] == status),
                # Words are those of a record that was begun before, and none is begun.
                z3.Implies(now["write__beat__valid"] == 1, state == BufferState.WRITE),
                z3.Implies(after == BufferState.WRITE, state == BufferState.WRITE),
                # What comes is taken to its last word. It waits for no more than the end of a record begun before.
                z3.Implies(z3.And(state == BufferState.IDLE, now["aligner.o__valid"] == 1), after == BufferState.DROP),
                z3.Implies(
                    state == BufferState.DROP, z3.And(now["aligner.o__ready"] == 1, z3.Or(rests, now["i__ready"] == 1))
                ),
                z3.Implies(
                    state == BufferState.DROP,
                    after == z3.If(ends, z3.BitVecVal(BufferState.IDLE, 3), z3.BitVecVal(BufferState.DROP, 3)),
                ),
                z3.Implies(
                    z3.And(state == BufferState.RESPONSE, now["write__done"] == 1),
                    z3.Or(after == BufferState.IDLE, after == BufferState.FAULT),
                ),
                z3.Implies(state == BufferState.FAULT, after == BufferState.IDLE),
                z3.Implies(state == BufferState.WRITE, now["aligner.o__ready"] == now["write__beat__ready"]),
            ),
        )

    return always(system, discards, assuming=kept)


def prove_new_owner(config: SPUConfig, system: Transition) -> Verdict:
    """The cycle in which the buffer is told of another owner. `system` is a `ProfilingBuffer` of `config`."""

    def passes(now: Wires, then: Wires) -> z3.BoolRef:
        state, after = now["buffer_state"], then["buffer_state"]
        return z3.Implies(
            z3.And(now["new_owner"] == 1, now["rst"] == 0),
            z3.And(
                # It does not run, is not found full, and its pointer is not moved.
                now["running"] == 0,
                now["writing"] == 0,
                now["full"] == 0,
                z3.Implies(now["pmbptr_write"] == 0, then["pmbptr"] == now["pmbptr"]),
                # No record is begun but to be dropped, and the end of one begun before will move no pointer.
                z3.Implies(after == BufferState.WRITE, state == BufferState.WRITE),
                z3.Implies(z3.And(state == BufferState.IDLE, now["aligner.o__valid"] == 1), after == BufferState.DROP),
                z3.Implies(
                    z3.Or(after == BufferState.WRITE, after == BufferState.RESPONSE, after == BufferState.FAULT),
                    then["keep"] == 0,
                ),
            ),
        )

    return always(system, passes)


def prove_unkept(config: SPUConfig, system: Transition) -> Verdict:
    """A record whose end will not move the pointer stays so: of its end the pointer is not heard."""

    def stays(now: Wires, then: Wires) -> z3.BoolRef:
        state, after = now["buffer_state"], then["buffer_state"]
        begun = z3.Or(state == BufferState.WRITE, state == BufferState.RESPONSE, state == BufferState.FAULT)
        return z3.Implies(
            z3.And(begun, now["keep"] == 0, now["rst"] == 0),
            z3.And(
                z3.Implies(after != BufferState.IDLE, then["keep"] == 0),
                z3.Implies(now["pmbptr_write"] == 0, then["pmbptr"] == now["pmbptr"]),
            ),
        )

    return always(system, stays)


def _begun(wires: Wires) -> z3.BoolRef:
    """The buffer has another owner while a record is being written that would have moved the pointer."""
    return z3.And(wires["buffer_state"] == BufferState.WRITE, wires["keep"] == 1, wires["new_owner"] == 1)


def _dropped(config: SPUConfig, wires: Wires) -> z3.BoolRef:
    """The last word of a record is taken and not written, while the buffer runs."""
    return z3.And(wires["buffer_state"] == BufferState.DROP, _ends(config, wires), wires["running"] == 1)


@cache
def _system(config: SPUConfig) -> Transition:
    return transition(ProfilingBuffer(config))


def proofs() -> Iterator[Proof]:
    """For each configuration that has a buffer that is not another's."""
    yield from filling.proofs()
    for config in distinct((*CONFIGS.values(), *FEATURES.values()), CHANGING):

        def proof(
            name: str, method: str, prove: Callable[[SPUConfig, Transition], Verdict], config: SPUConfig = config
        ) -> Proof:
            return Proof(name, "buffer", config.name, method, lambda: prove(config, _system(config)))

        yield proof(
            "another owner: the buffer does not run, begins nothing, moves no pointer", "one cycle", prove_new_owner
        )
        yield proof("what began under another owner moves no pointer", "induction", prove_unkept)
        yield proof(
            "cover: another owner while a record is written",
            "bounded search",
            lambda _, system: reach(system, _begun, cycles=8),
        )
        if not config.discard_mode:
            continue
        yield proof(
            "what is written in discard mode moves no pointer", "induction", lambda _, system: prove_kept(system)
        )
        yield proof("discard mode: nothing is begun, full or moved; what comes is dropped", "one cycle", prove_discards)
        yield proof(
            "cover: a record is dropped in discard mode",
            "bounded search",
            lambda config, system: reach(system, lambda wires: _dropped(config, wires), cycles=4, given=discarding),
        )
        yield proof(
            "cover: a collision is told of in discard mode",
            "bounded search",
            lambda _, system: reach(
                system,
                lambda wires: wires["pmbsr"] == PMBSR_EL1.fields["COLL"].mask,
                cycles=4,
                # Software could write it, too.
                given=lambda wires: z3.And(discarding(wires), wires["pmbsr_write"] == 0),
            ),
        )
