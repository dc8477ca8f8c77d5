"""No leak: two copies of the whole SPU show the same for ever if their inputs differ in nothing but what is forbidden.

What is seen is every output in every cycle: what is written, where and when, PMU events, what registers read as, the
interrupt, and what the core is told. Of `write.beat` it is the payload while it is valid, and of the data the bytes
that are written.

Each theorem says what may differ from copy to copy, and where it may not: of the inputs, and of the registers that it
comes by. All other registers are the same in both, and so are all other inputs: when something happens, what software
writes, whose the buffer is. What is permitted in a cycle is the reference's to say; what of an operation in flight, its
own `StartLayout.collect`, which is proved to be the reference's of the cycle in which it passed (`control`,
`inflight`).

Of the core nothing is assumed but what `interface.pe_state` says: without EL3, `ns` is the same in both. An operation
that finishes without being in flight changes nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import z3

from spurtle.arch import PMBIDR_EL1, PMSCR_EL1, PMSCR_EL2
from spurtle.config import CONFIGS, SPUConfig
from spurtle.config.record_layouts import Packet
from spurtle.gateware.aligner import AlignerState
from spurtle.gateware.beat import beat_layout
from spurtle.gateware.buffer import BufferState
from spurtle.gateware.completion import CompletionState
from spurtle.gateware.previous import previous_layout
from spurtle.gateware.sample import KnownAtFinishLayout, SampleLayout, StartLayout
from spurtle.gateware.slots import SlotState
from spurtle.interface.memory import BeatLayout
from spurtle.interface.operation import LocationLayout, OperationLayout
from spurtle.interface.sysreg import AccessOutcome

from ..engine.induction import Invariant, Wires
from ..engine.noninterference import Both, Part, Secret, coexist, noninterference
from ..engine.proof import Proof, Verdict
from ..engine.transition import Transition
from ..inflight.inflight import queue
from .permissions import branch_profiled, contextidr_collected, executed, profiling_enabled, state, time_tells
from .spu import whole

__all__ = ["THEOREMS", "Theorem", "proofs", "prove", "prove_differ"]

# Where things are.


def _is(wire: str, value: int) -> Invariant:
    return lambda wires: wires[wire] == value


def _all(*conditions: Invariant) -> Invariant:
    return lambda wires: z3.And(*(condition(wires) for condition in conditions))


def _set(part: Part) -> Invariant:
    """A part that is one bit is one."""
    return lambda wires: part(wires) == 1


def _clear(part: Part) -> Invariant:
    """A part that is one bit is zero."""
    return lambda wires: part(wires) == 0


def _any(*conditions: Invariant) -> Invariant:
    return lambda wires: z3.Or(*(condition(wires) for condition in conditions))


def _always(wires: Wires) -> z3.BoolRef:
    return z3.BoolVal(True)


_FINISH, _SAMPLE = "finish__operation", "inflight.sample__payload"


def _start(slot: int, config: SPUConfig) -> Part:
    """State of the PE when the operation in this slot passed the sampling point."""
    return Part(f"inflight.slot_{slot}.start", StartLayout(config))


def _told(slot: int, config: SPUConfig) -> Part:
    """What was told of the operation that is finished in this slot."""
    return Part("inflight.told" if config.slots == 1 else f"inflight.operations[{slot}]", KnownAtFinishLayout(config))


def _finished(slot: int) -> Invariant:
    return _is(f"inflight.slot_{slot}.slot_state", SlotState.FINISHED)


def _used(slot: int) -> Invariant:
    return lambda wires: wires[f"inflight.slot_{slot}.slot_state"] != SlotState.FREE


def _samples(config: SPUConfig) -> list[Part]:
    """Where a sample waits for its record, if that is not its slot."""
    return [Part(_SAMPLE, SampleLayout(config))] if config.slots > 1 else []


def _passing(config: SPUConfig) -> list[tuple[Part, Invariant]]:
    """State of the PE of the cycles that are to be answered for, the last one first; each with whether an operation
    passed in it that is counted.
    """
    stages = {
        0: [],
        1: ["interval_counter.numbering.lanes", "interval_counter.counted"],
        2: [
            "interval_counter.numbering.lanes_in_groups",
            "interval_counter.numbering.lanes",
            "interval_counter.counted",
        ],
    }[config.count_delay]
    counted = [lambda wires, stage=stage: wires[stage] != 0 for stage in stages]
    selected = [f"interval_counter.selected__{index}" for index in range(config.selections_per_cycle)]
    counted.append(lambda wires: z3.Or(*(wires[one] != 0 for one in selected)))
    starts = [Part(f"inflight.start_{age}", StartLayout(config)) for age in range(config.answer_latency)]
    return list(zip(starts, counted, strict=True))


def _finishing(config: SPUConfig, name: str) -> Invariant:
    """The operation that finishes may show `name`."""

    def shown(wires: Wires) -> z3.BoolRef:
        slots = [_start(slot, config)["collect"][name](wires) == 1 for slot in range(config.slots)]
        if config.slots > 1:
            slots = [z3.And(wires["finish__slot"] == slot, collected) for slot, collected in enumerate(slots)]
        return z3.Or(*slots)

    return shown


def _record_path(config: SPUConfig) -> Iterator[Secret]:
    """Bytes that are nobody's: a record is cut while it is none yet. A packed one is not: nothing is laid down."""
    if not config.layout.packed:
        skid = "record_path.serializer.skid"
        yield Secret(Part(f"{skid}.o__payload", beat_layout(config))["data"], _is(f"{skid}.o__valid", 1))
        yield Secret(Part(f"{skid}.spare", beat_layout(config))["data"], _is(f"{skid}.spared", 1))


def _of_no_sample(config: SPUConfig) -> Iterator[Secret]:
    """What was worked out of a sample that is not there, or has just come."""
    packets = [packet.name.lower() for packet in config.layout.packets]
    yield from (
        Secret(Part(f"record_path.record.has_{packet}", 1), _stands(CompletionState.VERDICT)) for packet in packets
    )


def _stands(state: int) -> Invariant:
    """A sample stands at `Completion`, at least since its record was asked for or, with VERDICT, a cycle before."""
    return lambda wires: z3.UGE(wires["completion.completion_state"], state)


# What is known of each copy.

Packets = Mapping[str, Invariant]
"""What holds of a sample whose record has a packet, by the packet's name."""


def _invariant(config: SPUConfig, packets: Packets) -> Invariant:
    """A record that is asked for is its sample's. And what is taken for granted besides: register bits that are not
    implemented are zero, the queue is one, and the aligner is in the middle of a record only while there is one.
    """

    def holds(wires: Wires) -> z3.BoolRef:
        state = wires["completion.completion_state"]
        terms = [
            z3.ULE(state, CompletionState.RECORD),
            z3.Implies(state != CompletionState.FILTER, wires["inflight.sample__valid"] == 1),
        ]
        terms += [z3.ULE(wires[f"inflight.slot_{slot}.slot_state"], SlotState.FINISHED) for slot in range(config.slots)]
        for packet, permitted in packets.items():
            if (has := f"record_path.record.has_{packet}") in wires:
                terms.append(
                    z3.Implies(z3.And(_stands(CompletionState.VERDICT)(wires), wires[has] == 1), permitted(wires))
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
            writes = z3.Or(
                wires["buffer.buffer_state"] == BufferState.DROP, wires["buffer.buffer_state"] == BufferState.WRITE
            )
            begun, rests = (
                wires["buffer.aligner.begun"] == 1,
                wires["buffer.aligner.aligner_state"] == AlignerState.REST,
            )
            terms.append(z3.Implies(z3.Or(begun, rests), writes))
        return z3.And(*terms)

    return holds


def _steps(wires: Wires) -> z3.BoolRef:
    """A step behind the first one is chosen only of a record that is asked for."""
    chosen = wires["record_path.serializer.cutter.chosen"]
    asked = z3.And(wires["completion.completion_state"] == CompletionState.RECORD, wires["record_path.serialized"] == 0)
    return z3.And(chosen != 0, chosen & (chosen - 1) == 0, z3.Implies(chosen != 1, asked))


# The theorems.


def _addresses(config: SPUConfig) -> Iterator[Secret]:
    """Physical addresses, of an operation that passed while they could not be collected; and the virtual address of an
    access that FEAT_NV2 made, where that could not.
    """
    physical = [
        name for name in ("pa", "pa_ns", "pa_nse", "pa_checked", "pa_tag") if name in OperationLayout(config).members
    ]

    def of(operation: Part, there: Invariant, collected: Callable[[str], Invariant]) -> Iterator[Secret]:
        yield from (Secret(operation[name], _all(there, collected("pa"))) for name in physical)
        if config.nv2:
            yield Secret(operation["va"], _all(there, _any(_clear(operation["facts"]["nv2"]), collected("nv2_va"))))

    yield from of(Part(_FINISH, OperationLayout(config)), _is("finish__valid", 1), partial(_finishing, config))
    for slot in range(config.slots):
        collect = _start(slot, config)["collect"]
        yield from of(_told(slot, config)["operation"], _finished(slot), lambda name, of=collect: _set(of[name]))
    for sample in _samples(config):
        collect = sample["start"]["collect"]
        yield from of(sample["operation"], _always, lambda name, of=collect: _set(of[name]))
    yield from _record_path(config)


def _with_address(config: SPUConfig) -> Packets:
    sample = Part(_SAMPLE, SampleLayout(config))
    collect, nv2 = sample["start"]["collect"], sample["operation"]["facts"]["nv2"]
    return {"pa": _set(collect["pa"]), **({"va": _any(_clear(nv2), _set(collect["nv2_va"]))} if config.nv2 else {})}


def _starts(config: SPUConfig) -> Iterator[Part]:
    """Wherever the state is kept that an operation passed in."""
    yield from (start for start, _ in _passing(config))
    yield from (_start(slot, config) for slot in range(config.slots))
    yield from (sample["start"] for sample in _samples(config))


def _contexts(config: SPUConfig) -> Iterator[Secret]:
    """CONTEXTIDR_EL1 and CONTEXTIDR_EL2 in a cycle in which they may not be collected; the system counter in one in
    which the timestamp may not; offsets of it, too, and where another time is collected.
    """
    yield Secret(Part("pe__contextidr_el1", 32), contextidr_collected(config, 1))
    yield Secret(Part("pe__physical_count", 64), time_tells(config, "pe__physical_count"))
    if config.el2:
        yield Secret(Part("pe__contextidr_el2", 32), contextidr_collected(config, 2))
        yield Secret(Part("pe__cntvoff_el2", 64), time_tells(config, "pe__cntvoff_el2"))
        first = Part("inflight.start_0", StartLayout(config))
        yield Secret(Part("inflight.offset_before", 64), _set(first["collect"]["timestamp"]))
    if config.ecv_poff:
        yield Secret(Part("pe__cntpoff_el2", 64), time_tells(config, "pe__cntpoff_el2"))
    for start in _starts(config):
        collect = start["collect"]
        for name in ("el1", "el2"):
            yield Secret(start[f"contextidr_{name}"], _set(collect[f"context_{name}"]))
        yield Secret(start["timestamp"], _set(collect["timestamp"]))
    yield from _record_path(config)


def _with_context(config: SPUConfig) -> Packets:
    collect = Part(_SAMPLE, SampleLayout(config))["start"]["collect"]
    return {name: _set(collect[name]) for name in ("context_el1", "context_el2", "timestamp")}


_OWNERS = ("pe__mdcr_el2_e2pb", "pe__mdcr_el3_nspb", "pe__mdcr_el3_nspbe", "pe__scr_el3_eel2")
"""What says whose the buffer is."""

_ACCESSES = (
    *("pe__hcr_el2_e2h", "pe__mdcr_el2_tpms", "pe__mdcr_el3_enpms"),
    *("pe__scr_el3_fgten", "pe__hdfgrtr", "pe__hdfgwtr"),
)
"""What says of a System register access what it comes to, or how that begins."""


def _other_states(config: SPUConfig) -> Iterator[Secret]:
    """All of the PE and of the operations that pass, in a cycle in which profiling is not enabled: another Security
    state, an Exception level above the owner's, Debug state, AArch32. But who owns the buffer is the same in both, and
    so is who accesses a System register, and HCR_EL2.TGE when there is a taken branch. Of a branch that was executed
    where profiling is not enabled it is the same that there is one: it has the one before forgotten (D17.6.3.1).
    """
    enabled = profiling_enabled(config)
    accessed = _any(enabled, _is("sysreg__valid", 1))
    branched = _any(enabled, _is("branch__valid", 1)) if config.pbt else enabled
    yield Secret(Part("sampling__valid", config.ops_per_cycle), enabled)
    others = {part.wire: accessed for part in state(config) if part.wire.startswith(_ACCESSES)}
    others |= {f"pe__{name}": accessed for name in ("el", "ns", "nse")} | {"pe__hcr_el2_tge": branched}
    for part in state(config):
        if part.wire not in _OWNERS and (config.el3 or part.wire != "pe__ns"):
            yield Secret(part, others.get(part.wire, enabled))
    # Nothing but PMBIDR_EL1 has a value under its number.
    number = _is("registers.number", (PMBIDR_EL1.crm & 1) << 3 | PMBIDR_EL1.op2)
    if config.several_owners:
        yield Secret(Part("registers.owned", 1), _all(number, _is("registers.outcome", AccessOutcome.VALUE.value)))

    for start, passed in _passing(config):
        yield Secret(start, passed)
        if config.el2 and start.wire == "inflight.start_0":
            yield Secret(Part("inflight.offset_before", 64), passed)
    for slot in range(config.slots):
        yield Secret(_start(slot, config), _used(slot))
    if config.slots == 1:
        yield from _of_no_sample(config)
    yield from _record_path(config)

    if config.pbt:
        profiled = _all(_is("branch__valid", 1), branch_profiled(config))
        yield Secret(Part("branch__target", LocationLayout(config)), profiled)
        yield from (Secret(part, profiled) for part in executed(config))
        kept = [Part("previous_target.previous", previous_layout(config))]
        kept += [_told(slot, config)["previous"] for slot in range(config.slots)]
        kept += [sample["previous"] for sample in _samples(config)]
        yield from (Secret(previous["target"], _set(previous["valid"])) for previous in kept)


def _with_branch(config: SPUConfig) -> Packets:
    if not config.pbt:
        return {}
    return {"previous_target": _set(Part(_SAMPLE, SampleLayout(config))["previous"]["valid"])}


_FILTERED = ("retired", "exception", "branch", "load", "store", "floating_point", "simd_fp", "vector")
"""What the filter and the PMU look at of each operation."""

_OF_COMPLETED = (
    *("target", "va", "pa", "pa_ns", "pa_nse", "pa_checked", "pa_tag", "data_source", "imp_counter", "imp_address"),
    *("va_valid", "pa_valid", "va_tagged", "data_source_valid", "imp_counter_valid", "imp_address_valid"),
)
"""What is told of an operation, and recorded if it completed without an exception."""


def _not_completed(config: SPUConfig) -> Iterator[Secret]:
    """All of an operation that did not retire, but for its being one that the filter selects by type. Of one that
    generated an exception target, addresses and data source, whether there are any, and what is IMPLEMENTATION DEFINED.
    """

    def of(operation: Part) -> Iterator[Secret]:
        facts = operation["facts"]
        retired = _set(facts["retired"])
        completed = _all(retired, _clear(facts["exception"]))
        for name, part in (operation.fields() | facts.fields()).items():
            if name != "facts" and name not in _FILTERED:
                yield Secret(part, completed if name in _OF_COMPLETED else retired)

    yield from of(Part(_FINISH, OperationLayout(config)))
    for slot in range(config.slots):
        yield from of(_told(slot, config)["operation"])
    for sample in _samples(config):
        yield from of(sample["operation"])
    if config.spe_sme:
        retired = _set(Part(_SAMPLE, SampleLayout(config))["operation"]["facts"]["retired"])
        yield Secret(Part("record_path.record.size", 19), _all(_stands(CompletionState.VERDICT), retired))
        yield Secret(Part("record_path.record.packet_operation", 16), _stands(CompletionState.RECORD))
    yield from _record_path(config)


def _with_operation(config: SPUConfig) -> Packets:
    facts = Part(_SAMPLE, SampleLayout(config))["operation"]["facts"]
    retired = _set(facts["retired"])
    completed = _all(retired, _clear(facts["exception"]))
    names = ("target", "va", "pa", "data_source", "imp_counter", "imp_address")
    return {"pc": retired, **dict.fromkeys(names, completed)}


def _stale(config: SPUConfig) -> Iterator[Secret]:
    """All that is left of an earlier sample in a slot that is free, or whose sample has gone on, and on the way of a
    record; and what is told of an operation when none finishes, or one vanishes.
    """
    finishes = _all(_is("finish__valid", 1), _is("finish__vanished", 0))
    yield Secret(Part(_FINISH, OperationLayout(config)), finishes)
    for slot in range(config.slots):
        yield Secret(_told(slot, config), _finished(slot))
        yield Secret(_start(slot, config), _used(slot))
        name = f"inflight.slot_{slot}"
        yield from (Secret(Part(f"{name}.{flag}", 1), _used(slot)) for flag in ("executing", "waiting"))
        for latency in config.latencies:
            yield Secret(Part(f"{name}.{latency}", config.counter_bits), _used(slot))
            yield Secret(Part(f"{name}.{latency}_saturated", 1), _used(slot))
    yield from (Secret(sample, _is("inflight.sample__valid", 1)) for sample in _samples(config))

    yield Secret(
        Part("completion.rejections", len(config.filters)), _is("completion.completion_state", CompletionState.VERDICT)
    )
    yield from _of_no_sample(config)
    record = "record_path.record"
    yield Secret(
        Part(f"{record}.packet_events", 8 * config.packet_bytes[Packet.EVENTS]), _stands(CompletionState.VERDICT)
    )
    yield Secret(
        Part(f"{record}.packet_operation", 16),
        _stands(CompletionState.RECORD if config.spe_sme else CompletionState.VERDICT),
    )
    yield Secret(Part(f"{record}.size", 19), _stands(CompletionState.VERDICT))
    if config.layout.align < config.bus_bytes:
        begun = _all(_is("buffer.aligner.begun", 1), lambda wires: wires["buffer.buffer_state"] != BufferState.IDLE)
        yield Secret(Part("buffer.aligner.before", 8 * config.bus_bytes), begun)
    yield from _record_path(config)


# What is seen.


def _observed(config: SPUConfig, system: Transition, wires: Wires) -> Mapping[str, z3.BitVecRef]:
    """Every output; of the write port's data what is written."""
    beat = Part("write__beat__payload", BeatLayout(config))
    strobe = beat["strobe"](wires)
    strobes = (z3.Extract(byte, byte, strobe) for byte in reversed(range(strobe.size())))
    written = beat["data"](wires) & z3.Concat(*(z3.SignExt(7, bit) for bit in strobes))
    offered = z3.Concat(beat["last"](wires), strobe, written, beat["address"](wires))
    valid = wires["write__beat__valid"] == 1
    outputs = {name: wires[name] for name in system.outputs}
    return outputs | {beat.wire: z3.If(valid, offered, z3.BitVecVal(0, offered.size()))}


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
    differ: Callable[[SPUConfig], Both]


def _differs(part: Part, *where: Invariant) -> Both:
    """A part is not the same while a record is written."""
    return lambda one, other: z3.And(
        one["write__beat__valid"] == 1, *(condition(one) for condition in where), part(one) != part(other)
    )


def _of_sample(*path: str, where: Callable[[Part], Invariant]) -> Callable[[SPUConfig], Both]:
    """A part of the sample whose record is written differs."""

    def differ(config: SPUConfig) -> Both:
        part = sample = Part(_SAMPLE, SampleLayout(config))
        for name in path:
            part = part[name]
        return _differs(part, _stands(CompletionState.RECORD), where(sample))

    return differ


THEOREMS = {
    "addresses": Theorem(
        "physical addresses that may not be collected show nowhere",
        _addresses,
        _with_address,
        _of_sample("operation", "pa", where=lambda sample: _set(sample["operation"]["facts"]["pa_valid"])),
    ),
    "contexts": Theorem(
        "contexts and times that may not be collected show nowhere",
        _contexts,
        _with_context,
        _of_sample("start", "timestamp", where=lambda sample: _set(sample["operation"]["facts"]["retired"])),
    ),
    "other states": Theorem(
        "what passes where profiling is not enabled shows nowhere",
        _other_states,
        _with_branch,
        lambda config: _differs(Part("sampling__valid", config.ops_per_cycle), _stands(CompletionState.RECORD)),
    ),
    "not completed": Theorem(
        "what an operation that did not complete would have told shows nowhere",
        _not_completed,
        _with_operation,
        _of_sample("operation", "va", where=lambda sample: _set(sample["operation"]["facts"]["va_valid"])),
    ),
    "stale": Theorem(
        "what an earlier sample left behind shows nowhere",
        _stale,
        lambda _: {},
        lambda config: _differs(_told(0, config)["operation"]["pc"], lambda wires: z3.Not(_finished(0)(wires))),
    ),
}


def prove(theorem: Theorem, config: SPUConfig, system: Transition) -> Verdict:
    """`system` is an `SPU` of `config`."""
    seen, invariant = partial(_observed, config, system), _invariant(config, theorem.packets(config))
    return noninterference(system, theorem.secrets(config), seen, invariant=invariant)


def prove_differ(theorem: Theorem, config: SPUConfig, system: Transition) -> Verdict:
    """The theorem speaks of something. `system` is an `SPU` of `config`."""
    invariant = _invariant(config, theorem.packets(config))
    return coexist(system, theorem.secrets(config), theorem.differ(config), invariant=invariant)


def proofs() -> Iterator[Proof]:
    """The same for each configuration."""
    for config in CONFIGS.values():

        def proof(name, method, prove, theorem, config=config):
            return Proof(name, "leak", config.name, method, lambda: prove(theorem, config, whole(config)))

        for name, theorem in THEOREMS.items():
            yield proof(theorem.name, "two copies, induction", prove, theorem)
            yield proof(f"cover: two copies differ, {name}", "two copies", prove_differ, theorem)
