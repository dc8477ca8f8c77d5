"""Absence of leaks: data that must not be observable has no effect on any output of the complete SPU.

Two copies of the SPU have the same outputs in every cycle if their inputs differ only in such data (noninterference).

The observed signals are all outputs: what is written, where and when; PMU events; register reads; the interrupt; and
the outputs to the core. The payload of `write.beat` is observed while it is valid, and its data only in the bytes that
are written.

Each theorem states which inputs, and which registers that store them, may differ between the copies, and under which
conditions they must be equal. All other registers and inputs are equal: the times of all events, the values that
software writes, the owner of the buffer. The reference states the permissions in a cycle, by the System registers of
the previous cycle, which history registers hold. The permissions of an operation in flight are its
`StartLayout.collect`, which equals the permissions of the reference in the cycle in which the operation passed, as is
proved in `control` and `inflight`.

The only assumption on the core is that of `interface.pe_state`: without EL3, `ns` is equal in both copies. A finish of
an operation that is not in flight has no effect.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from spurtle.arch import PMSCR_EL1, PMSCR_EL2
from spurtle.config import CONFIGS, SPUConfig
from spurtle.gateware.aligner import AlignerState
from spurtle.gateware.completion import CompletionState
from spurtle.gateware.packer import shifted_layout
from spurtle.gateware.record_issue import IssueState
from spurtle.gateware.sample import SampleLayout
from spurtle.gateware.slots import SlotState
from spurtle.interface.memory import BeatLayout

from ..engine.induction import Invariant
from ..engine.noninterference import PairRelation, Secret, noninterference, pair_exists
from ..engine.parts import Part
from ..engine.proof import Proof, ProvedBlock, Verdict
from ..engine.terms import (
    BitVector,
    Boolean,
    all_of,
    any_of,
    concat,
    constant,
    extract,
    if_else,
    implies,
    not_,
    sign_extend,
    ule,
)
from ..engine.transition import Transition, Wires
from ..inflight.inflight import queue
from ..inflight.start_states import registers
from .operations import SAMPLE, at_completion, finished, is_set, report_of
from .permissions import permissions_match, remembered
from .secrets import (
    Packets,
    addresses,
    contexts,
    not_completed,
    other_states,
    packets_with_address,
    packets_with_branch,
    packets_with_context,
    packets_with_operation,
    stale,
)
from .spu import spu_transition

__all__ = ["THEOREMS", "Theorem", "proofs", "prove", "prove_differ"]


def _invariant(config: SPUConfig, packets: Packets) -> Invariant:
    """Return the invariant: packets that depend on secrets are present only if they are permitted.

    It includes the invariants of other proofs that are needed: unimplemented register bits are zero, the registers of
    the control permit no more than the reference, the queue is consistent, and the aligner is within a record only
    while one is written or dropped.
    """

    def holds(wires: Wires) -> Boolean:
        state = wires["completion.completion_state"]
        terms = [
            ule(state, CompletionState.RECORD),
            implies(state != CompletionState.FILTER, wires["inflight.sample__valid"] == 1),
        ]
        terms.append(permissions_match(config)(wires))
        terms += [ule(wires[f"inflight.slot_{slot}.slot_state"], SlotState.FINISHED) for slot in range(config.slots)]
        for packet, permitted in packets.items():
            if (has := f"record_path.record.has_{packet}") in wires:
                terms.append(
                    implies(all_of(at_completion(CompletionState.DECIDE)(wires), wires[has] == 1), permitted(wires))
                )
        for wire, register in (("pmscr", PMSCR_EL1), ("pmscr_el2", PMSCR_EL2)):
            if register in config.registers:
                terms.append(wires[f"registers.{wire}"] & ~config.writable(register) == 0)
        if config.slots > 1:
            names = ["order.present", *(f"order.entry_{position}" for position in range(config.slots))]
            names += [*(f"slot_{slot}.slot_state" for slot in range(config.slots)), *registers(config)]
            terms.append(queue(config)({name: wires[f"inflight.{name}"] for name in names}))
        if config.layout.packed:
            terms.append(_steps(config, wires))
        if config.layout.align < config.bus_bytes:
            writes = any_of(
                wires["buffer.issue.issue_state"] == IssueState.DROP,
                wires["buffer.issue.issue_state"] == IssueState.WRITE,
            )
            started, in_remainder = (
                wires["buffer.issue.aligner.started"] == 1,
                wires["buffer.issue.aligner.aligner_state"] == AlignerState.REMAINDER,
            )
            terms.append(implies(any_of(started, in_remainder), writes))
        return all_of(*terms)

    return holds


def _steps(config: SPUConfig, wires: Wires) -> Boolean:
    """Return whether a step after the first one is selected only while a record is requested.

    The bytes of a step are appended only if it is valid.
    """
    selected = wires["record_path.serializer.cutter.selected_step"]
    shifted = Part("record_path.serializer.cutter.shifted", shifted_layout(config))
    requested = all_of(
        wires["completion.completion_state"] == CompletionState.RECORD, wires["record_path.serialized"] == 0
    )
    return all_of(
        selected != 0,
        selected & (selected - 1) == 0,
        implies(selected != 1, requested),
        implies(shifted["lanes"](wires) != 0, shifted["valid"](wires) == 1),
    )


def _observed(config: SPUConfig, system: Transition, wires: Wires) -> Mapping[str, BitVector]:
    """Return every output, with the bytes of the write port that are written."""
    beat = Part("write__beat__payload", BeatLayout(config))
    strobe = beat["strobe"](wires)
    strobes = (extract(byte, byte, strobe) for byte in reversed(range(strobe.width)))
    written = beat["data"](wires) & concat(*(sign_extend(7, bit) for bit in strobes))
    offered = concat(beat["last"](wires), strobe, written, beat["address"](wires))
    valid = wires["write__beat__valid"] == 1
    outputs = {name: wires[name] for name in system.outputs}
    return outputs | {beat.wire: if_else(valid, offered, constant(0, offered.width))}


@dataclass(frozen=True)
class Theorem:
    """Noninterference theorem. The callables take a configuration.

    Members
    -------
    name : str
        Name of the property.
    secrets : callable
        Return what may differ between the copies.
    packets : callable
        Return the packets that contain it, each with the condition under which a record has the packet.
    differ : callable
        Return the condition that it does differ while a record is written, for the cover check.
    """

    name: str
    secrets: Callable[[SPUConfig], Iterable[Secret]]
    packets: Callable[[SPUConfig], Packets]
    differ: Callable[[SPUConfig], PairRelation]


def _differs(part: Part, *where: Invariant) -> PairRelation:
    """Return the condition that a part differs while a record is written."""
    return lambda one, other: all_of(
        one["write__beat__valid"] == 1, *(condition(one) for condition in where), part(one) != part(other)
    )


def _of_sample(*path: str, where: Callable[[Part], Invariant]) -> Callable[[SPUConfig], PairRelation]:
    """Return the condition that a part of the sample whose record is written differs."""

    def differ(config: SPUConfig) -> PairRelation:
        part = sample = Part(SAMPLE, SampleLayout(config))
        for name in path:
            part = part[name]
        return _differs(part, at_completion(CompletionState.RECORD), where(sample))

    return differ


THEOREMS = {
    "addresses": Theorem(
        "physical addresses that must not be collected affect no output",
        addresses,
        packets_with_address,
        _of_sample("operation", "pa", where=lambda sample: is_set(sample["operation"]["facts"]["pa_valid"])),
    ),
    "contexts": Theorem(
        "contexts and times that must not be collected affect no output",
        contexts,
        packets_with_context,
        _of_sample("start", "timestamp", where=lambda sample: is_set(sample["operation"]["facts"]["retired"])),
    ),
    "other states": Theorem(
        "operations that pass while profiling is disabled affect no output",
        other_states,
        packets_with_branch,
        lambda config: _differs(Part("sampling__valid", config.ops_per_cycle), at_completion(CompletionState.RECORD)),
    ),
    "not completed": Theorem(
        "data of operations that did not complete affect no output",
        not_completed,
        packets_with_operation,
        _of_sample("operation", "va", where=lambda sample: is_set(sample["operation"]["facts"]["va_valid"])),
    ),
    "stale": Theorem(
        "data of earlier samples affect no output",
        stale,
        lambda _: {},
        lambda config: _differs(report_of(0, config)["operation"]["pc"], lambda wires: not_(finished(0)(wires))),
    ),
}


def prove(theorem: Theorem, config: SPUConfig, system: Transition) -> Verdict:
    """Prove a theorem. `system` is an `SPU` of `config`."""
    observed, invariant = partial(_observed, config, system), _invariant(config, theorem.packets(config))
    return noninterference(remembered(config, system), theorem.secrets(config), observed, invariant=invariant)


def prove_differ(theorem: Theorem, config: SPUConfig, system: Transition) -> Verdict:
    """Find two copies that differ in the secrets of a theorem. `system` is an `SPU` of `config`."""
    invariant = _invariant(config, theorem.packets(config))
    return pair_exists(remembered(config, system), theorem.secrets(config), theorem.differ(config), invariant=invariant)


def proofs() -> Iterator[Proof]:
    """Yield the proofs, for each named configuration."""
    for config in CONFIGS.values():
        proof, slow = ProvedBlock("leak", config, spu_transition).proof, config.ops_per_cycle > 2
        for name, theorem in THEOREMS.items():
            cover = f"cover: the copies differ ({name})"
            yield proof(theorem.name, "two copies, induction", partial(prove, theorem), slow=slow)
            yield proof(cover, "two copies", partial(prove_differ, theorem), slow=slow)
