"""The Profiling Buffer: outcome of each record, pointer, status, Discard mode, and a change of owner."""

from collections.abc import Iterator
from functools import cache

from configurations import FEATURES, OUTSTANDING, distinct
from spurtle.config import CONFIGS, SPUConfig
from spurtle.gateware.record_issue import IssueState
from spurtle.interface.memory import WriteFaultKind

from ..engine.cover import reach_all
from ..engine.induction import Invariant
from ..engine.proof import Proof, ProvedBlock, Verdict
from ..engine.terms import Boolean, all_of, ugt, ult
from ..engine.transition import Transition, Wires
from . import discard
from .history import circuit, watched
from .pointer_and_status import prove_full, prove_pointer, prove_status
from .records import prove_acceptance, prove_beats, prove_busy, prove_follows, prove_outcome, prove_roomy
from .relation import input_contract, prove_relation

__all__ = ["cover", "proofs"]


def _goals(config: SPUConfig) -> Iterator[tuple[str, Invariant, Invariant]]:
    def assumed(wires: Wires) -> Boolean:
        return all_of(wires["rst"] == 0, input_contract(config, wires, wires))

    def goal(name: str, reached: Invariant) -> tuple[str, Invariant, Invariant]:
        return name, reached, assumed

    yield goal(
        "a fault of a record that is not abandoned",
        lambda wires: all_of(wires["buffer_status.faulted"] == 1, wires["fault_kind"] == WriteFaultKind.STAGE_2.value),
    )
    yield goal(
        "a fault that is not reported",
        lambda wires: all_of(
            wires["answered"] == 1,
            wires["fault_kind"] != WriteFaultKind.NONE.value,
            wires["buffer_status.faulted"] == 0,
        ),
    )
    yield goal(
        "a buffer that is full after a record", lambda wires: all_of(wires["full"] == 1, wires["answered_length"] != 0)
    )
    yield goal(
        "a record that is dropped",
        lambda wires: all_of(wires["issue.issue_state"] == IssueState.DROP, wires["issue.aligner.o__ready"] == 1),
    )
    if config.outstanding > 1:
        yield goal(
            "a record that begins while the last word of the previous one is transferred",
            lambda wires: all_of(
                wires["issue.begin"] == 1, wires["write__beat__valid"] == 1, wires["write__beat__ready"] == 1
            ),
        )
        yield goal(
            "records that are discarded after a fault",
            lambda wires: all_of(wires["write__discard"] == 1, wires["write__done"] == 1),
        )
    if config.layout.packed:
        yield goal(
            "a record that crosses a multiple of the maximum record size",
            lambda wires: all_of(
                wires["write__beat__valid"] == 1,
                ult(wires["write__beat__payload.address"] & config.max_record_bytes - 1, config.bus_bytes),
                ugt(wires["words"], 1),
            ),
        )
    if config.external_aborts:
        yield goal(
            "an External abort in the cycle of a buffer full event",
            lambda wires: all_of(wires["full"] == 1, wires["write__abort"] == 1),
        )


def cover(config: SPUConfig, system: Transition) -> Verdict:
    """Reach every goal. `system` is a `watched` buffer."""
    return reach_all(system, _goals(config), cycles=32)


@cache
def _system(config: SPUConfig) -> Transition:
    return watched(config, circuit(config))


_CHANGING = (
    "layout.align layout.max_size layout.packed bus_bytes outstanding discard_mode external_aborts fault_flags rme"
)
"""Members of a configuration that change the buffer."""


def proofs() -> Iterator[Proof]:
    """Yield the proofs, for each configuration with a different buffer."""
    configs = (*CONFIGS.values(), *FEATURES.values(), *OUTSTANDING.values())
    # The status depends on the record layout only through the word of a fault, which the relation covers.
    of_status = {config.name for config in distinct(configs, "external_aborts fault_flags rme")}
    for config in distinct(configs, _CHANGING):
        proof = ProvedBlock("buffer", config, _system).proof
        slow = config.layout.packed and config.outstanding > 2
        yield proof("the state of a record being written is consistent", "induction", prove_relation, slow=slow)
        yield proof("no byte is written outside the buffer", "any cycle", prove_beats)
        yield proof(
            "no record is accepted for writing while stopped, disabled or without space", "one cycle", prove_acceptance
        )
        yield proof(
            "a record is written or dropped, and a written one advances the pointer",
            "one cycle",
            prove_outcome,
        )
        yield proof("a record begins in the cycle after the last beat of the previous one", "one cycle", prove_follows)
        if config.layout.align < config.max_record_bytes:
            yield proof("only the last two records below the limit are compared exactly", "one cycle", prove_roomy)
        yield proof("busy is deasserted, and not before the status is known", "one cycle", prove_busy)
        yield proof("full matches the reference", "reference", prove_full)
        yield proof("PMBPTR_EL1 matches the reference", "reference", prove_pointer)
        yield proof(
            "cover: faults, buffer full, dropped record, External abort, boundary crossing", "bounded search", cover
        )
        if config.name in of_status:
            yield proof("PMBSR_EL1 matches the reference", "reference", prove_status)
        yield from discard.proofs(config)
