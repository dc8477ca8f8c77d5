"""Storage of an operation in the SPU, from the cycle in which it passes to its record."""

from collections.abc import Iterator
from functools import partial

from amaranth.lib import data

from spurtle.config import SPUConfig
from spurtle.gateware.beat import beat_layout
from spurtle.gateware.completion import CompletionState
from spurtle.gateware.packer import shifted_layout, step_layout
from spurtle.gateware.previous_target import previous_target_layout
from spurtle.gateware.sample import SampleLayout, StartLayout
from spurtle.gateware.slots import SlotState
from spurtle.interface.operation import OperationLayout

from ..engine.induction import Invariant
from ..engine.noninterference import Secret
from ..engine.parts import Part
from ..engine.terms import Boolean, all_of, any_of, extract, uge
from ..engine.transition import Wires
from ..inflight.start_states import held_by, passed, words

__all__ = [
    "FINISH",
    "SAMPLE",
    "all_hold",
    "any_holds",
    "at_completion",
    "finished",
    "finishing",
    "has_bit",
    "has_value",
    "is_clear",
    "is_set",
    "passing",
    "permits",
    "record_path",
    "report_of",
    "samples",
    "starts",
    "used",
    "without_sample",
]


def has_value(wire: str, value: int) -> Invariant:
    """Return the condition that a wire has this value."""
    return lambda wires: wires[wire] == value


def has_bit(wire: str, index: int) -> Invariant:
    """Return the condition that a bit of a wire is one."""
    return lambda wires: extract(index, index, wires[wire]) == 1


def all_hold(*conditions: Invariant) -> Invariant:
    """Return the condition that all conditions hold."""
    return lambda wires: all_of(*(condition(wires) for condition in conditions))


def any_holds(*conditions: Invariant) -> Invariant:
    """Return the condition that at least one condition holds."""
    return lambda wires: any_of(*(condition(wires) for condition in conditions))


def is_set(part: Part) -> Invariant:
    """Return the condition that a part of one bit is one."""
    return lambda wires: part(wires) == 1


def is_clear(part: Part) -> Invariant:
    """Return the condition that a part of one bit is zero."""
    return lambda wires: part(wires) == 0


FINISH, SAMPLE = "finish__operation", "inflight.sample__payload"
"""Operation at the input `finish`, and sample at the output of `InFlight`."""


def starts(config: SPUConfig) -> list[tuple[Part, Invariant]]:
    """Return the registers and memory words with the start states of the slots.

    Each is paired with the condition that it holds the state of an operation in flight.
    """
    found: dict[str, list[Invariant]] = {}
    for slot in range(config.slots):
        for wire, holds in _starts_of(slot, config):
            found.setdefault(wire, []).append(holds)
    return [(Part(wire, StartLayout(config)), any_holds(*holds)) for wire, holds in found.items()]


def _starts_of(slot: int, config: SPUConfig) -> Iterator[tuple[str, Invariant]]:
    """Yield where the start state of this slot can be, each with the condition that it is there."""
    if config.slots == 1:
        yield "inflight.start", used(slot)
        return
    for number, word in enumerate(words(config)):
        yield f"inflight.{word}", all_hold(used(slot), has_bit(f"inflight.{held_by(slot)}", number))


def permits(slot: int, config: SPUConfig, name: str) -> Invariant:
    """Return the condition that `name` may be collected for the operation in this slot."""
    return any_holds(
        *(
            all_hold(holds, is_set(Part(wire, StartLayout(config))["collect"][name]))
            for wire, holds in _starts_of(slot, config)
        )
    )


def report_of(slot: int, config: SPUConfig) -> Part:
    """Return the stored operation that finished in this slot, with the previous branch target."""
    shape = data.StructLayout(
        {"operation": OperationLayout(config), **({"previous": previous_target_layout(config)} if config.pbt else {})}
    )
    return Part("inflight.known_at_finish" if config.slots == 1 else f"inflight.operations[{slot}]", shape)


def finished(slot: int) -> Invariant:
    """Return the condition that the operation in this slot has finished."""
    return has_value(f"inflight.slot_{slot}.slot_state", SlotState.FINISHED)


def used(slot: int) -> Invariant:
    """Return the condition that this slot is in use."""
    return lambda wires: wires[f"inflight.slot_{slot}.slot_state"] != SlotState.FREE


def samples(config: SPUConfig) -> list[Part]:
    """Return the registers in which a sample waits for its record. With one slot it waits in the slot."""
    return [Part(SAMPLE, SampleLayout(config))] if config.slots > 1 else []


def passing(config: SPUConfig) -> list[tuple[Part, Invariant]]:
    """Return the registers and memory words with the PE's state of past cycles, the latest first.

    Each is paired with the condition that an operation passed in its cycle that is counted.
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
    first, *later = counted
    start = partial(Part, shape=StartLayout(config))
    found: list[tuple[Part, Invariant]] = [(start("inflight.start_0"), first)]
    for age, condition in enumerate(later, 1):
        if config.slots == 1:
            found.append((start(f"inflight.start_{age}"), condition))
        for number, word in enumerate(words(config)):
            passing_word = has_bit(f"inflight.{passed(age)}", number)
            found.append((start(f"inflight.{word}"), all_hold(passing_word, condition)))
    return found


def finishing(config: SPUConfig, name: str) -> Invariant:
    """Return the condition that `name` may be collected for the operation that finishes."""

    def collected(wires: Wires) -> Boolean:
        slots = [permits(slot, config, name)(wires) for slot in range(config.slots)]
        if config.slots > 1:
            slots = [all_of(wires["finish__slot"] == slot, permitted) for slot, permitted in enumerate(slots)]
        return any_of(*slots)

    return collected


def record_path(config: SPUConfig) -> Iterator[Secret]:
    """Yield the data registers from the serializer on, which may hold bytes of no record while they are not valid.

    They are captured also while there is no record. The last register holds a word, of which the strobed bytes belong
    to a record.
    """
    cutter, skid = "record_path.serializer.cutter", "record_path.serializer.skid"
    if config.layout.packed:
        for stage, layout, count in (("step", step_layout(), "size"), ("shifted", shifted_layout(config), "fill")):
            part = Part(f"{cutter}.{stage}", layout)
            yield from (Secret(part[name], is_set(part["valid"])) for name in ("octets", count))
    else:
        for half in ("low", "high"):
            yield Secret(Part(f"{cutter}.{half}", 8 * config.bus_bytes), has_value(f"{cutter}.o__valid", 1))
        yield Secret(Part(f"{skid}.skid", beat_layout(config))["data"], has_value(f"{skid}.stalled", 1))
    units = config.layout.align < config.bus_bytes
    octets = {f"octet_{byte}": 8 for byte in range(config.bus_bytes)}
    word = Part(
        "buffer.issue.stored", data.StructLayout({**octets, "last": 1, "strobe": config.bus_bytes if units else 0})
    )
    for byte in range(config.bus_bytes):
        yield Secret(word[f"octet_{byte}"], partial(_writes, byte))


def _writes(byte: int, wires: Wires) -> Boolean:
    """Return whether this byte of the word at the write port is written."""
    strobe = wires["write__beat__payload.strobe"]
    return all_of(wires["write__beat__valid"] == 1, extract(byte, byte, strobe) == 1)


def without_sample(config: SPUConfig) -> Iterator[Secret]:
    """Yield the registers that are computed from a sample while none is offered, or one has just arrived."""
    packets = [packet.name.lower() for packet in config.layout.packets]
    yield from (
        Secret(Part(f"record_path.record.has_{packet}", 1), at_completion(CompletionState.DECIDE)) for packet in packets
    )


def at_completion(state: int) -> Invariant:
    """Return the condition that `Completion` is in this state or a later one.

    DECIDE: the sample has been offered for a cycle. RECORD: its record has been requested.
    """
    return lambda wires: uge(wires["completion.completion_state"], state)
