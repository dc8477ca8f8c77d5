"""Events that a record reports: events of the operation, under the conditions of its kind (D18.2.6)."""

from collections.abc import Sequence
from dataclasses import dataclass

from amaranth import *

from ..arch import Event
from ..config import SPUConfig
from ..interface.operation import OperationLayout, has_data_access, has_load, is_branch, is_scalable

__all__ = ["EventGroup", "event_groups"]

_MEMORY_EVENTS = frozenset(range(16)) - {Event.GENERATED_EXCEPTION, Event.RETIRED, Event.NOT_TAKEN, Event.MISPREDICTED}
_LOAD_EVENTS = frozenset(range(Event.L2D_ACCESS, Event.STREAMING_SVE))
_PREDICATE_EVENTS = frozenset({Event.PARTIAL_PREDICATE, Event.EMPTY_PREDICATE})


@dataclass(frozen=True)
class EventGroup:
    """Events that are reported under one condition.

    The condition is the late part: it depends on several facts. A comparison of the events combines it with the result
    for the group, and not with each event.

    Parameters
    ----------
    numbers : sequence of int
        Bits of the Events packet.
    values : sequence of Value
        The events.
    condition : Value
        They are reported; otherwise their bits are zero.
    """

    numbers: Sequence[int]
    values: Sequence[Value]
    condition: Value


def event_groups(config: SPUConfig, operation: OperationLayout) -> list[EventGroup]:
    """Return the events of the configuration, which each kind of operation can generate. Other bits are zero."""
    facts = operation.facts
    conditions = {
        "any": C(1),
        "branch": is_branch(facts),
        "access": has_data_access(config, facts),
        "load": has_load(config, facts),
        "predicate": is_scalable(config, operation) & ~is_branch(facts),
    }
    values = {
        Event.GENERATED_EXCEPTION: facts.exception,
        Event.RETIRED: C(1),
        Event.NOT_TAKEN: facts.conditional & ~facts.taken,
        **({Event.SMCU: facts.asynchronous} if config.spe_sme else {}),
    }
    numbers: dict[str, list[int]] = {name: [] for name in conditions}
    for event in sorted(config.events):
        numbers[_condition_of(event, event in values)].append(event)
    return [
        EventGroup(group, [values.get(event, operation.events[event]) for event in group], condition & facts.retired)
        for group, condition in zip(numbers.values(), conditions.values(), strict=True)
        if group
    ]


def _condition_of(event: int, is_fact: bool) -> str:
    if is_fact:
        return "any"
    if event == Event.MISPREDICTED:
        return "branch"
    if event in _MEMORY_EVENTS:
        return "access"
    if event in _LOAD_EVENTS:
        return "load"
    return "predicate" if event in _PREDICATE_EVENTS else "any"
