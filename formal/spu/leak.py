"""No leak: two copies of the whole SPU show the same for ever if their inputs differ in nothing but what is forbidden.

What is seen is every output in every cycle: what is written, where and when, PMU events, what registers read as, the
interrupt, and what the core is told. Of `write.beat` it is the payload while it is valid, and of the data the bytes
that are written.

Each theorem says what may differ from copy to copy, and where it may not: of the inputs, and of the registers that it
comes by. All other registers are the same in both, and so are all other inputs: when something happens, what software
writes, whose the buffer is. What is permitted in a cycle is the reference's to say; what of an operation in flight, its
own `StartLayout.collect`, which is proved to be the reference's of the cycle in which it passed (`control`
`inflight`).

Of the core nothing is assumed but what `interface.pe_state` says: without EL3, `ns` is the same in both. An operation
that finishes without being in flight changes nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from spurtle.arch import PMSCR_EL1, PMSCR_EL2
from spurtle.config import CONFIGS, SPUConfig
from spurtle.gateware.aligner import AlignerState
from spurtle.gateware.buffer import BufferState
from spurtle.gateware.completion import CompletionState
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
from .operations import SAMPLE, at_completion, finished, is_set, report_of
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
from .spu import whole

__all__ = ["THEOREMS", "Theorem", "proofs", "prove", "prove_differ"]


def _invariant(config: SPUConfig, packets: Packets) -> Invariant:
    """A record that is asked for is its sample's. And what is taken for granted besides: register bits that are not
    implemented are zero, the queue is one, and the aligner is in the middle of a record only while there is one.
    """

    def holds(wires: Wires) -> Boolean:
        state = wires["completion.completion_state"]
        terms = [
            ule(state, CompletionState.RECORD),
            implies(state != CompletionState.FILTER, wires["inflight.sample__valid"] == 1),
        ]
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
            names = [*(f"order.storage[{slot}]" for slot in range(config.slots)), "order.level"]
            names += [f"order.{port}_port__addr" for port in "rw"]
            names += [f"slot_{slot}.slot_state" for slot in range(config.slots)]
            terms.append(queue(config)({name: wires[f"inflight.{name}"] for name in names}))
        if config.layout.packed:
            terms.append(_steps(wires))
        if config.layout.align < config.bus_bytes:
            writes = any_of(
                wires["buffer.buffer_state"] == BufferState.DROP, wires["buffer.buffer_state"] == BufferState.WRITE
            )
            begun, rests = (
                wires["buffer.aligner.started"] == 1,
                wires["buffer.aligner.aligner_state"] == AlignerState.REMAINDER,
            )
            terms.append(implies(any_of(begun, rests), writes))
        return all_of(*terms)

    return holds


def _steps(wires: Wires) -> Boolean:
    """A step behind the first one is chosen only of a record that is asked for."""
    chosen = wires["record_path.serializer.cutter.selected_step"]
    asked = all_of(wires["completion.completion_state"] == CompletionState.RECORD, wires["record_path.serialized"] == 0)
    return all_of(chosen != 0, chosen & (chosen - 1) == 0, implies(chosen != 1, asked))


def _observed(config: SPUConfig, system: Transition, wires: Wires) -> Mapping[str, BitVector]:
    """Every output; of the write port's data what is written."""
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
    """Whatever two copies differ in of some things, they show the same. Each member is asked for a configuration.

    Members
    -------
    name : str
    secrets : callable
        What may differ.
    packets : callable
        Which samples have the packets in their records that would show it.
    differ : callable
        Something of it does differ, while a record is written.
    """

    name: str
    secrets: Callable[[SPUConfig], Iterable[Secret]]
    packets: Callable[[SPUConfig], Packets]
    differ: Callable[[SPUConfig], PairRelation]


def _differs(part: Part, *where: Invariant) -> PairRelation:
    """A part is not the same while a record is written."""
    return lambda one, other: all_of(
        one["write__beat__valid"] == 1, *(condition(one) for condition in where), part(one) != part(other)
    )


def _of_sample(*path: str, where: Callable[[Part], Invariant]) -> Callable[[SPUConfig], PairRelation]:
    """A part of the sample whose record is written differs."""

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
    """`system` is an `SPU` of `config`."""
    seen, invariant = partial(_observed, config, system), _invariant(config, theorem.packets(config))
    return noninterference(system, theorem.secrets(config), seen, invariant=invariant)


def prove_differ(theorem: Theorem, config: SPUConfig, system: Transition) -> Verdict:
    """The theorem speaks of something. `system` is an `SPU` of `config`."""
    invariant = _invariant(config, theorem.packets(config))
    return pair_exists(system, theorem.secrets(config), theorem.differ(config), invariant=invariant)


def proofs() -> Iterator[Proof]:
    """The same for each configuration."""
    for config in CONFIGS.values():
        proof = ProvedBlock("leak", config, whole).proof
        for name, theorem in THEOREMS.items():
            yield proof(theorem.name, "two copies, induction", partial(prove, theorem))
            yield proof(f"cover: the copies differ ({name})", "two copies", partial(prove_differ, theorem))
