"""Profiling Buffer in Discard mode (D17.5.5) and on a change of owner.

In Discard mode no record is written, the buffer is never full, and collisions are reported. On a change of owner no
record is accepted for writing, and a record of the previous owner does not advance the pointer.
"""

from collections.abc import Iterator

from spurtle.arch import FM, PMBLIMITR_EL1, PMBSR_EL1
from spurtle.config import SPUConfig
from spurtle.gateware.aligner import AlignerState, word_layout
from spurtle.gateware.record_issue import IssueState

from ..engine.cover import reach
from ..engine.induction import always, inductive
from ..engine.proof import Proof, ProvedBlock, Result, Verdict
from ..engine.terms import BitVector, Boolean, all_of, any_of, boolean, constant, extract, if_else, implies, uge
from ..engine.transition import Transition, Wires
from .history import circuit
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
    return all_of(wires["issue.aligner.o__valid"] == 1, extract(last, last, wires["issue.aligner.o__payload"]) == 1)


def discarding(wires: Wires) -> Boolean:
    """Return whether the buffer is enabled and in Discard mode."""
    return all_of(_field(wires["pmblimitr"], "E") == 1, _field(wires["pmblimitr"], "FM") == FM.DISCARD)


def _loads_when_idle(wires: Wires) -> Boolean:
    """Return whether the issue pointer is loaded only while it is stale and nothing is outstanding."""
    return all_of(
        implies(wires["may_begin"] == 1, wires["stale"] == 0),
        (wires["records.none"] == 1) == (wires["records.count"] == 0),
        implies(
            wires["issue.issue_state"] == IssueState.LOAD,
            all_of(wires["stale"] == 1, wires["answered"] == 0, wires["records.count"] == 0),
        ),
    )


def no_commit_while_discarding(wires: Wires) -> Boolean:
    """Return whether no record that will advance the pointer is outstanding in Discard mode, and none can begin.

    `stale` is set when PMBLIMITR_EL1 is written, so such a record would belong to the current PMBLIMITR_EL1.
    After that, the page is compared with the limit, and no page fits in Discard mode.
    """
    page = {
        name: wires[f"issue.issue_page.{name}"] for name in ("age", "ahead", "known", "fits", "next_fits", "in_place")
    }
    loaded = all_of(
        wires["issue.issue_state"] != IssueState.WRITE,
        page["fits"] == 0,
        wires["records.count"] == 0,
        implies(uge(page["age"], 3), page["in_place"] == 0),
        implies(any_of(page["ahead"] == 1, page["known"] == 1), page["next_fits"] == 0),
    )
    events = ("kept", "exhausted", "buffer_status.failed")
    return all_of(
        _loads_when_idle(wires),
        implies(all_of(wires["stale"] == 0, discarding(wires)), loaded),
        implies(discarding(wires), all_of(*(wires[name] == 0 for name in events))),
    )


def prove_no_commit(system: Transition) -> Verdict:
    """Prove `no_commit_while_discarding`. `system` is a `ProfilingBuffer`.

    PMBLIMITR_EL1 changes only when `pmblimitr_write` is asserted, as is proved for the SPU. Memory answers only
    outstanding records.
    """

    def contract(now: Wires, then: Wires) -> Boolean:
        return all_of(limit_is_stable(now, then), implies(now["write__done"] == 1, now["records.count"] != 0))

    return inductive(system, no_commit_while_discarding, contract=contract)


def prove_discards(config: SPUConfig, system: Transition) -> Verdict:
    """Prove each cycle of Discard mode, for all register writes in it. `system` is a `ProfilingBuffer` of `config`."""

    def discards(now: Wires, then: Wires) -> Boolean:
        state, after = now["issue.issue_state"], then["issue.issue_state"]
        ends = _ends(config, now)
        # If a record can start within a word, the remainder of its last beat may be a separate word.
        remainder = (
            now["issue.aligner.aligner_state"] == AlignerState.REMAINDER
            if config.layout.align < config.bus_bytes
            else boolean(False)
        )
        events = [(now["collision"] == 1, "COLL")]
        quiet = now["pmbsr_write"] == 0
        if config.external_aborts:
            events.append((now["buffer_status.external"] == 1, "EA"))
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
                # No record begins. The words of one that began before are written.
                now["issue.begin"] == 0,
                implies(now["issue.send"] == 1, state == IssueState.WRITE),
                # Each record is dropped up to its last word. It waits only for the end of a record that began before,
                # or for the cycle in which the issue pointer is loaded.
                implies(
                    all_of(state == IssueState.BEGIN, now["issue.aligner.o__valid"] == 1), after == IssueState.DROP
                ),
                implies(
                    state == IssueState.DROP,
                    all_of(now["issue.aligner.o__ready"] == 1, any_of(remainder, now["i__ready"] == 1)),
                ),
                implies(
                    state == IssueState.DROP,
                    after == if_else(ends, constant(IssueState.BEGIN, 2), constant(IssueState.DROP, 2)),
                ),
                implies(state == IssueState.LOAD, after == IssueState.BEGIN),
            ),
        )

    return always(system, discards, assuming=no_commit_while_discarding)


def prove_new_owner(config: SPUConfig, system: Transition) -> Verdict:
    """Prove the cycle in which `new_owner` is asserted. `system` is a `ProfilingBuffer` of `config`."""

    def abandons(now: Wires, then: Wires) -> Boolean:
        state, after = now["issue.issue_state"], then["issue.issue_state"]
        return implies(
            all_of(now["new_owner"] == 1, now["rst"] == 0),
            all_of(
                # The buffer does not run, is not full, and its pointer is stable.
                now["running"] == 0,
                now["issue.writing"] == 0,
                now["full"] == 0,
                implies(now["pmbptr_write"] == 0, then["pmbptr"] == now["pmbptr"]),
                # A record is accepted only to be dropped. Those that began before will not advance the pointer.
                now["issue.begin"] == 0,
                implies(
                    all_of(state == IssueState.BEGIN, now["issue.aligner.o__valid"] == 1), after == IssueState.DROP
                ),
                then["stale"] == 1,
                then["kept"] == 0,
            ),
        )

    return always(system, abandons)


def prove_abandoned(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that abandoned records stay abandoned and do not advance the pointer. `system` is a `ProfilingBuffer`.

    Outstanding records are abandoned while `stale` is set, until memory has answered all of them. A record that was
    answered in the previous cycle is abandoned if `kept` is zero.
    """

    def stays_abandoned(now: Wires, then: Wires) -> Boolean:
        none = all_of(now["records.count"] == 0, now["answered"] == 0)
        return implies(
            all_of(now["stale"] == 1, now["kept"] == 0, now["rst"] == 0),
            all_of(
                now["issue.begin"] == 0,
                then["kept"] == 0,
                any_of(then["stale"] == 1, none),
                implies(now["pmbptr_write"] == 0, then["pmbptr"] == now["pmbptr"]),
            ),
        )

    def answers_outstanding(now: Wires, then: Wires) -> Boolean:
        return implies(now["write__done"] == 1, now["records.count"] != 0)

    verdict = inductive(system, _loads_when_idle, contract=answers_outstanding)
    if verdict.result is not Result.PASS:
        return verdict
    return always(system, stays_abandoned, assuming=_loads_when_idle)


def _abandoned(wires: Wires) -> Boolean:
    """Return whether the owner changes while a record is being written that would have advanced the pointer."""
    return all_of(wires["issue.issue_state"] == IssueState.WRITE, wires["stale"] == 0, wires["new_owner"] == 1)


def _dropped(config: SPUConfig, wires: Wires) -> Boolean:
    """Return whether the last word of a record is accepted and not written, while the buffer runs."""
    return all_of(wires["issue.issue_state"] == IssueState.DROP, _ends(config, wires), wires["running"] == 1)


def proofs(config: SPUConfig) -> Iterator[Proof]:
    """Yield the proofs of a configuration."""
    proof = ProvedBlock("buffer", config, circuit).proof
    yield proof(
        "on a change of owner the buffer does not run, accept a record or move the pointer",
        "one cycle",
        prove_new_owner,
    )
    yield proof("a record of the previous owner does not advance the pointer", "induction", prove_abandoned)
    yield proof(
        "cover: a change of owner while a record is written",
        "bounded search",
        lambda _, system: reach(system, _abandoned, cycles=16),
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
