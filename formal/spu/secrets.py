"""Secrets of each theorem: inputs that may differ between the copies, and the packets that would show them."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from spurtle.arch import PMBIDR_EL1
from spurtle.config import SPUConfig
from spurtle.config.record_layouts import Packet
from spurtle.gateware.buffer import BufferState
from spurtle.gateware.completion import CompletionState
from spurtle.gateware.previous_target import previous_target_layout
from spurtle.gateware.sample import SampleLayout, StartLayout
from spurtle.interface.operation import LocationLayout, OperationLayout
from spurtle.interface.sysreg import AccessOutcome

from ..engine.induction import Invariant, unconstrained
from ..engine.noninterference import Secret
from ..engine.parts import Part
from .operations import (
    FINISH,
    SAMPLE,
    all_hold,
    any_holds,
    at_completion,
    finished,
    finishing,
    has_value,
    is_clear,
    is_set,
    passing,
    record_path,
    report_of,
    samples,
    start_of,
    used,
    without_sample,
)
from .permissions import branch_profiled, contextidr_collected, executed, profiling_enabled, state, time_tells

__all__ = [
    "Packets",
    "addresses",
    "contexts",
    "not_completed",
    "other_states",
    "packets_with_address",
    "packets_with_branch",
    "packets_with_context",
    "packets_with_operation",
    "stale",
]

Packets = Mapping[str, Invariant]
"""What holds of a sample whose record has a packet, by the packet's name."""


def addresses(config: SPUConfig) -> Iterator[Secret]:
    """Physical addresses, of an operation that passed while they could not be collected; and the virtual address of an
    access that FEAT_NV2 made, where that could not.
    """
    physical = [
        name for name in ("pa", "pa_ns", "pa_nse", "pa_checked", "pa_tag") if name in OperationLayout(config).members
    ]

    def of(operation: Part, there: Invariant, collected: Callable[[str], Invariant]) -> Iterator[Secret]:
        yield from (Secret(operation[name], all_hold(there, collected("pa"))) for name in physical)
        if config.nv2:
            yield Secret(
                operation["va"], all_hold(there, any_holds(is_clear(operation["facts"]["nv2"]), collected("nv2_va")))
            )

    yield from of(Part(FINISH, OperationLayout(config)), has_value("finish__valid", 1), partial(finishing, config))
    for slot in range(config.slots):
        collect = start_of(slot, config)["collect"]
        yield from of(report_of(slot, config)["operation"], finished(slot), lambda name, of=collect: is_set(of[name]))
    for sample in samples(config):
        collect = sample["start"]["collect"]
        yield from of(sample["operation"], unconstrained, lambda name, of=collect: is_set(of[name]))
    yield from record_path(config)


def packets_with_address(config: SPUConfig) -> Packets:
    sample = Part(SAMPLE, SampleLayout(config))
    collect, nv2 = sample["start"]["collect"], sample["operation"]["facts"]["nv2"]
    return {
        "pa": is_set(collect["pa"]),
        **({"va": any_holds(is_clear(nv2), is_set(collect["nv2_va"]))} if config.nv2 else {}),
    }


def _starts(config: SPUConfig) -> Iterator[Part]:
    """Wherever the state is kept that an operation passed in."""
    yield from (start for start, _ in passing(config))
    yield from (start_of(slot, config) for slot in range(config.slots))
    yield from (sample["start"] for sample in samples(config))


def contexts(config: SPUConfig) -> Iterator[Secret]:
    """CONTEXTIDR_EL1 and CONTEXTIDR_EL2 in a cycle in which they may not be collected; the system counter in one in
    which the timestamp may not; offsets of it, too, and where another time is collected.
    """
    yield Secret(Part("pe__contextidr_el1", 32), contextidr_collected(config, 1))
    yield Secret(Part("pe__physical_count", 64), time_tells(config, "pe__physical_count"))
    if config.el2:
        yield Secret(Part("pe__contextidr_el2", 32), contextidr_collected(config, 2))
        yield Secret(Part("pe__cntvoff_el2", 64), time_tells(config, "pe__cntvoff_el2"))
        first = Part("inflight.start_0", StartLayout(config))
        yield Secret(Part("inflight.offset_before", 64), is_set(first["collect"]["timestamp"]))
    if config.ecv_poff:
        yield Secret(Part("pe__cntpoff_el2", 64), time_tells(config, "pe__cntpoff_el2"))
    for start in _starts(config):
        collect = start["collect"]
        for name in ("el1", "el2"):
            yield Secret(start[f"contextidr_{name}"], is_set(collect[f"context_{name}"]))
        yield Secret(start["timestamp"], is_set(collect["timestamp"]))
    yield from record_path(config)


def packets_with_context(config: SPUConfig) -> Packets:
    collect = Part(SAMPLE, SampleLayout(config))["start"]["collect"]
    return {name: is_set(collect[name]) for name in ("context_el1", "context_el2", "timestamp")}


_OWNERS = ("pe__mdcr_el2_e2pb", "pe__mdcr_el3_nspb", "pe__mdcr_el3_nspbe", "pe__scr_el3_eel2")
"""What says whose the buffer is."""

_ACCESSES = (
    *("pe__hcr_el2_e2h", "pe__mdcr_el2_tpms", "pe__mdcr_el3_enpms"),
    *("pe__scr_el3_fgten", "pe__hdfgrtr", "pe__hdfgwtr"),
)
"""What says of a System register access what it comes to, or how that begins."""


def other_states(config: SPUConfig) -> Iterator[Secret]:
    """All of the PE and of the operations that pass, in a cycle in which profiling is not enabled: another Security
    state, an Exception level above the owner's, Debug state, AArch32. But who owns the buffer is the same in both, and
    so is who accesses a System register, and HCR_EL2.TGE when there is a taken branch. Of a branch that was executed
    where profiling is not enabled it is the same that there is one: it has the one before forgotten (D17.6.3.1).
    """
    enabled = profiling_enabled(config)
    accessed = any_holds(enabled, has_value("sysreg__valid", 1))
    branched = any_holds(enabled, has_value("branch__valid", 1)) if config.pbt else enabled
    yield Secret(Part("sampling__valid", config.ops_per_cycle), enabled)
    others = {part.wire: accessed for part in state(config) if part.wire.startswith(_ACCESSES)}
    others |= {f"pe__{name}": accessed for name in ("el", "ns", "nse")} | {"pe__hcr_el2_tge": branched}
    for part in state(config):
        if part.wire not in _OWNERS and (config.el3 or part.wire != "pe__ns"):
            yield Secret(part, others.get(part.wire, enabled))
    # Nothing but PMBIDR_EL1 has a value under its number.
    number = has_value("registers.number", (PMBIDR_EL1.crm & 1) << 3 | PMBIDR_EL1.op2)
    if config.several_owners:
        yield Secret(
            Part("registers.owned", 1), all_hold(number, has_value("registers.outcome", AccessOutcome.VALUE.value))
        )

    for start, passed in passing(config):
        yield Secret(start, passed)
        if config.el2 and start.wire == "inflight.start_0":
            yield Secret(Part("inflight.offset_before", 64), passed)
    for slot in range(config.slots):
        yield Secret(start_of(slot, config), used(slot))
    if config.slots == 1:
        yield from without_sample(config)
    yield from record_path(config)

    if config.pbt:
        profiled = all_hold(has_value("branch__valid", 1), branch_profiled(config))
        yield Secret(Part("branch__target", LocationLayout(config)), profiled)
        yield from (Secret(part, profiled) for part in executed(config))
        kept = [Part("previous_target.previous", previous_target_layout(config))]
        kept += [report_of(slot, config)["previous"] for slot in range(config.slots)]
        kept += [sample["previous"] for sample in samples(config)]
        yield from (Secret(previous["target"], is_set(previous["valid"])) for previous in kept)


def packets_with_branch(config: SPUConfig) -> Packets:
    if not config.pbt:
        return {}
    return {"previous_target": is_set(Part(SAMPLE, SampleLayout(config))["previous"]["valid"])}


_FILTERED = ("retired", "exception", "branch", "load", "store", "floating_point", "simd_fp", "vector")
"""What the filter and the PMU look at of each operation."""

_OF_COMPLETED = (
    *("target", "va", "pa", "pa_ns", "pa_nse", "pa_checked", "pa_tag", "data_source", "imp_counter", "imp_address"),
    *("va_valid", "pa_valid", "va_tagged", "data_source_valid", "imp_counter_valid", "imp_address_valid"),
)
"""What is told of an operation, and recorded if it completed without an exception."""


def not_completed(config: SPUConfig) -> Iterator[Secret]:
    """All of an operation that did not retire, but for its being one that the filter selects by type. Of one that
    generated an exception target, addresses and data source, whether there are any, and what is IMPLEMENTATION DEFINED.
    """

    def of(operation: Part) -> Iterator[Secret]:
        facts = operation["facts"]
        retired = is_set(facts["retired"])
        completed = all_hold(retired, is_clear(facts["exception"]))
        for name, part in (operation.fields() | facts.fields()).items():
            if name != "facts" and name not in _FILTERED:
                yield Secret(part, completed if name in _OF_COMPLETED else retired)

    yield from of(Part(FINISH, OperationLayout(config)))
    for slot in range(config.slots):
        yield from of(report_of(slot, config)["operation"])
    for sample in samples(config):
        yield from of(sample["operation"])
    if config.spe_sme:
        retired = is_set(Part(SAMPLE, SampleLayout(config))["operation"]["facts"]["retired"])
        yield Secret(Part("record_path.record.size", 19), all_hold(at_completion(CompletionState.DECIDE), retired))
        yield Secret(Part("record_path.record.packet_operation", 16), at_completion(CompletionState.RECORD))
    yield from record_path(config)


def packets_with_operation(config: SPUConfig) -> Packets:
    facts = Part(SAMPLE, SampleLayout(config))["operation"]["facts"]
    retired = is_set(facts["retired"])
    completed = all_hold(retired, is_clear(facts["exception"]))
    names = ("target", "va", "pa", "data_source", "imp_counter", "imp_address")
    return {"pc": retired, **dict.fromkeys(names, completed)}


def stale(config: SPUConfig) -> Iterator[Secret]:
    """All that is left of an earlier sample in a slot that is free, or whose sample has gone on, and on the way of a
    record; and what is told of an operation when none finishes, or one vanishes.
    """
    finishes = all_hold(has_value("finish__valid", 1), has_value("finish__vanished", 0))
    yield Secret(Part(FINISH, OperationLayout(config)), finishes)
    for slot in range(config.slots):
        yield Secret(report_of(slot, config), finished(slot))
        yield Secret(start_of(slot, config), used(slot))
        name = f"inflight.slot_{slot}"
        yield from (Secret(Part(f"{name}.{flag}", 1), used(slot)) for flag in ("executing", "waiting"))
        for latency in config.latencies:
            yield Secret(Part(f"{name}.{latency}", config.counter_bits), used(slot))
            yield Secret(Part(f"{name}.{latency}_saturated", 1), used(slot))
    yield from (Secret(sample, has_value("inflight.sample__valid", 1)) for sample in samples(config))

    yield Secret(
        Part("completion.rejections", len(config.filters)),
        has_value("completion.completion_state", CompletionState.DECIDE),
    )
    yield from without_sample(config)
    record = "record_path.record"
    yield Secret(
        Part(f"{record}.packet_events", 8 * config.packet_bytes[Packet.EVENTS]), at_completion(CompletionState.DECIDE)
    )
    yield Secret(
        Part(f"{record}.packet_operation", 16),
        at_completion(CompletionState.RECORD if config.spe_sme else CompletionState.DECIDE),
    )
    yield Secret(Part(f"{record}.size", 19), at_completion(CompletionState.DECIDE))
    if config.layout.align < config.bus_bytes:
        begun = all_hold(
            has_value("buffer.aligner.started", 1), lambda wires: wires["buffer.buffer_state"] != BufferState.IDLE
        )
        yield Secret(Part("buffer.aligner.previous", 8 * config.bus_bytes), begun)
    yield from record_path(config)
