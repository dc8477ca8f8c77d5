"""A record as a JSON object: docs/reference/records.md is the schema."""

from collections.abc import Callable, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Any

from spurtle.arch import AddressIndex, ContextIndex, CounterIndex

from .decode import InstructionAddress, PhysicalAddress, Record

__all__ = ["FORMAT", "bit_numbers", "to_json"]

FORMAT = 1
"""Version of the schema. It changes when a key changes its meaning or disappears; a new key does not change it."""


def to_json(record: Record, place: Mapping[str, int] = MappingProxyType({})) -> dict[str, Any]:
    """Return the JSON object of a record: a fact that it does not hold has no key. `place` names CPU and buffer."""
    named: dict[str, object | None] = {
        "pc": _location(record.pc),
        "context_el1": record.context_el1,
        "context_el2": record.context_el2,
        "operation": _operation(record),
        "events": bit_numbers(record.events),
        "issue": record.issue,
        "total": record.total,
        "va": _hexadecimal(record.va),
        "target": _location(record.target),
        "previous_target": _location(record.previous_target),
        "translation": record.translation,
        "pa": _location(record.pa),
        "data_source": record.data_source,
        "alternate_issue": record.counters.get(CounterIndex.ALTERNATE_ISSUE),
        "addresses": _by_index(record.addresses, AddressIndex, hex),
        "counters": _by_index(record.counters, CounterIndex, int),
        "contexts": _by_index(record.contexts, ContextIndex, int),
        "timestamp": record.timestamp,
        "unknown": [{"offset": one.offset, "size": one.size, "header": f"{one.value:#04x}"} for one in record.unknown]
        or None,
        "problems": [problem._asdict() for problem in record.problems] or None,
    }
    facts = {name: fact for name, fact in named.items() if fact is not None}
    return {
        "format": FORMAT,
        **place,
        "offset": record.offset,
        "size": record.size,
        "complete": record.complete,
        **facts,
    }


def _hexadecimal(value: int | None) -> str | None:
    return None if value is None else hex(value)


def _location(location: InstructionAddress | PhysicalAddress | None) -> dict[str, Any] | None:
    if location is None:
        return None
    fields = location._asdict()
    return {**fields, "address": hex(fields["address"])}


def _operation(record: Record) -> dict[str, Any] | None:
    operation = record.operation
    if operation is None:
        return None
    return {"kind": operation.kind, "form": operation.form, **operation.attributes}


def bit_numbers(value: int | None) -> list[int] | None:
    """Return the numbers of the bits that are one."""
    return None if value is None else [bit for bit in range(value.bit_length()) if value >> bit & 1]


def _by_index(
    payloads: dict[int, int], named: type[IntEnum], show: Callable[[int], object]
) -> dict[str, object] | None:
    """The payloads whose INDEX has no name: IMPLEMENTATION DEFINED or reserved."""
    known = {int(index) for index in named}
    return {str(index): show(value) for index, value in payloads.items() if index not in known} or None
