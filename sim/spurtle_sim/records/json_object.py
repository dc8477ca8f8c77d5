"""Conversion of records to JSON objects. docs/reference/records.md describes the schema."""

from collections.abc import Callable, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Any

from spurtle.arch import AddressIndex, ContextIndex, CounterIndex

from .decode import InstructionAddress, PhysicalAddress, Record

__all__ = ["FORMAT", "bit_numbers", "to_json"]

FORMAT = 1
"""Version of the schema. It changes if the meaning of a key changes or a key is removed, but not if a key is added."""


def to_json(record: Record, source: Mapping[str, int] = MappingProxyType({})) -> dict[str, Any]:
    """Return the JSON object of a record. Values that the record does not hold have no key.

    The keys of `source`, for example CPU and buffer, are added to the object.
    """
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
        "unknown": [
            {"offset": packet.offset, "size": packet.size, "header": f"{packet.value:#04x}"}
            for packet in record.unknown
        ]
        or None,
        "problems": [problem._asdict() for problem in record.problems] or None,
    }
    facts = {name: fact for name, fact in named.items() if fact is not None}
    return {
        "format": FORMAT,
        **source,
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
    """Return the indices of the bits that are 1."""
    return None if value is None else [bit for bit in range(value.bit_length()) if value >> bit & 1]


def _by_index(
    payloads: dict[int, int], named: type[IntEnum], show: Callable[[int], object]
) -> dict[str, object] | None:
    """Return the payloads whose INDEX is IMPLEMENTATION DEFINED or reserved, or None."""
    known = {int(index) for index in named}
    return {str(index): show(value) for index, value in payloads.items() if index not in known} or None
