"""Where the SPU keeps what is known of an operation, from the cycle in which it passes to its record, and when."""

from collections.abc import Iterator

from amaranth.lib import data

from spurtle.config import SPUConfig
from spurtle.gateware.beat import beat_layout
from spurtle.gateware.completion import CompletionState
from spurtle.gateware.previous_target import previous_target_layout
from spurtle.gateware.sample import SampleLayout, StartLayout
from spurtle.gateware.slots import SlotState
from spurtle.interface.operation import OperationLayout

from ..engine.induction import Invariant
from ..engine.noninterference import Secret
from ..engine.parts import Part
from ..engine.terms import Boolean, all_of, any_of, uge
from ..engine.transition import Wires

__all__ = [
    "FINISH",
    "SAMPLE",
    "all_hold",
    "any_holds",
    "at_completion",
    "finished",
    "finishing",
    "has_value",
    "is_clear",
    "is_set",
    "passing",
    "record_path",
    "report_of",
    "samples",
    "start_of",
    "used",
    "without_sample",
]


def has_value(wire: str, value: int) -> Invariant:
    return lambda wires: wires[wire] == value


def all_hold(*conditions: Invariant) -> Invariant:
    return lambda wires: all_of(*(condition(wires) for condition in conditions))


def any_holds(*conditions: Invariant) -> Invariant:
    return lambda wires: any_of(*(condition(wires) for condition in conditions))


def is_set(part: Part) -> Invariant:
    """A part that is one bit is one."""
    return lambda wires: part(wires) == 1


def is_clear(part: Part) -> Invariant:
    """A part that is one bit is zero."""
    return lambda wires: part(wires) == 0


FINISH, SAMPLE = "finish__operation", "inflight.sample__payload"


def start_of(slot: int, config: SPUConfig) -> Part:
    """State of the PE when the operation in this slot passed the sampling point."""
    return Part(f"inflight.slot_{slot}.start", StartLayout(config))


def report_of(slot: int, config: SPUConfig) -> Part:
    """What was told of the operation that is finished in this slot."""
    shape = data.StructLayout(
        {"operation": OperationLayout(config), **({"previous": previous_target_layout(config)} if config.pbt else {})}
    )
    return Part("inflight.known_at_finish" if config.slots == 1 else f"inflight.operations[{slot}]", shape)


def finished(slot: int) -> Invariant:
    return has_value(f"inflight.slot_{slot}.slot_state", SlotState.FINISHED)


def used(slot: int) -> Invariant:
    return lambda wires: wires[f"inflight.slot_{slot}.slot_state"] != SlotState.FREE


def samples(config: SPUConfig) -> list[Part]:
    """Where a sample waits for its record, if that is not its slot."""
    return [Part(SAMPLE, SampleLayout(config))] if config.slots > 1 else []


def passing(config: SPUConfig) -> list[tuple[Part, Invariant]]:
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
    counted: list[Invariant] = [lambda wires, stage=stage: wires[stage] != 0 for stage in stages]
    selected = [f"interval_counter.selected__{index}" for index in range(config.selections_per_cycle)]
    counted.append(lambda wires: any_of(*(wires[one] != 0 for one in selected)))
    starts = [Part(f"inflight.start_{age}", StartLayout(config)) for age in range(config.answer_latency)]
    return list(zip(starts, counted, strict=True))


def finishing(config: SPUConfig, name: str) -> Invariant:
    """The operation that finishes may show `name`."""

    def shown(wires: Wires) -> Boolean:
        slots = [start_of(slot, config)["collect"][name](wires) == 1 for slot in range(config.slots)]
        if config.slots > 1:
            slots = [all_of(wires["finish__slot"] == slot, collected) for slot, collected in enumerate(slots)]
        return any_of(*slots)

    return shown


def record_path(config: SPUConfig) -> Iterator[Secret]:
    """Bytes that are nobody's: a record is cut while it is none yet. A packed one is not: nothing is laid down."""
    if not config.layout.packed:
        skid = "record_path.serializer.skid"
        yield Secret(Part(f"{skid}.o__payload", beat_layout(config))["data"], has_value(f"{skid}.o__valid", 1))
        yield Secret(Part(f"{skid}.skid", beat_layout(config))["data"], has_value(f"{skid}.skid_valid", 1))


def without_sample(config: SPUConfig) -> Iterator[Secret]:
    """What was worked out of a sample that is not there, or has just come."""
    packets = [packet.name.lower() for packet in config.layout.packets]
    yield from (
        Secret(Part(f"record_path.record.has_{packet}", 1), at_completion(CompletionState.DECIDE)) for packet in packets
    )


def at_completion(state: int) -> Invariant:
    """A sample stands at `Completion`, at least since its record was asked for or, with VERDICT, a cycle before."""
    return lambda wires: uge(wires["completion.completion_state"], state)
