"""A record as a JSON object, and back: docs/records.md is the schema."""

from collections.abc import Callable
from enum import IntEnum
from typing import Any, TypeVar, cast

from spurtle.arch import ADDRESS_BITS, AddressIndex, ContextIndex, CounterIndex, Event
from spurtle.config import SPUConfig
from spurtle.layout import Packet

from .decode import InstructionAddress, PhysicalAddress, Record
from .errors import UserError
from .reference import records
from .reference.records import Facts, Location, Operation, Sample, Start

__all__ = ["from_json", "to_json"]

T = TypeVar("T")


def to_json(record: Record) -> dict[str, Any]:
    """What a record says. A fact that it does not hold has no key."""
    named: dict[str, object | None] = {
        "pc": _location(record.pc),
        "context_el1": record.context_el1,
        "context_el2": record.context_el2,
        "operation": _operation(record),
        "events": _bit_numbers(record.events),
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
    return {"offset": record.offset, "size": record.size, "complete": record.complete, **facts}


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


def _bit_numbers(value: int | None) -> list[int] | None:
    return None if value is None else [bit for bit in range(value.bit_length()) if value >> bit & 1]


def _by_index(
    payloads: dict[int, int], named: type[IntEnum], show: Callable[[int], object]
) -> dict[str, object] | None:
    """The payloads whose INDEX has no name: IMPLEMENTATION DEFINED or reserved."""
    known = {int(index) for index in named}
    return {str(index): show(value) for index, value in payloads.items() if index not in known} or None


class _Object:
    """A JSON object of which each member is taken once, so that what is left is not allowed there.

    Each method raises UserError with the name of the member, its value and what is allowed.
    """

    def __init__(self, value: object, path: str = ""):
        if not isinstance(value, dict):
            raise UserError(f"{path or 'a record'} must be a JSON object, not {value!r}")
        members = cast("dict[str, object]", value)
        self._left = {name: member for name, member in members.items() if member is not None}
        self._path = path
        self._asked: list[str] = []

    def __contains__(self, name: str) -> bool:
        return name in self._left

    def _name(self, name: str) -> str:
        return f"{self._path}.{name}" if self._path else name

    def _take(self, name: str, allowed: str) -> object:
        self._asked.append(name)
        if name not in self._left:
            raise UserError(f"{self._name(name)} is missing: it must be {allowed}")
        return self._left.pop(name)

    def ignore(self, *names: str) -> None:
        for name in names:
            self._left.pop(name, None)

    def integer(self, name: str, maximum: int) -> int:
        allowed = f"a number from 0 to {maximum if maximum < 1 << 32 else hex(maximum)}"
        value = self._take(name, allowed)
        number = value
        if isinstance(value, str):
            try:
                number = int(value, 0)
            except ValueError:
                number = None
        if isinstance(number, int) and not isinstance(number, bool) and 0 <= number <= maximum:
            return number
        raise UserError(f"{self._name(name)} must be {allowed}, not {value!r}")

    def optional(self, name: str, maximum: int) -> int | None:
        if name in self:
            return self.integer(name, maximum)
        self._asked.append(name)
        return None

    def choice(self, name: str, allowed: tuple[T, ...], default: T | None = None) -> T:
        """One of `allowed`; `default` if there is none."""
        if default is not None and name not in self:
            self._asked.append(name)
            return default
        text = " or ".join(_json_word(one) for one in allowed)
        value = self._take(name, text)
        for one in allowed:
            if value == one and type(value) is type(one):
                return one
        raise UserError(f"{self._name(name)} must be {text}, not {_json_word(value)}")

    def flag(self, name: str) -> int:
        return int(self.choice(name, (False, True), default=False))

    def numbers(self, name: str, allowed: frozenset[int]) -> int:
        """A list of bit numbers, as a mask."""
        text = f"a list of {', '.join(str(number) for number in sorted(allowed))}"
        value = self._take(name, text)
        if not isinstance(value, list):
            raise UserError(f"{self._name(name)} must be {text}, not {value!r}")
        mask = 0
        for number in cast("list[object]", value):
            if not isinstance(number, int) or isinstance(number, bool) or number not in allowed:
                raise UserError(f"{self._name(name)} must be {text}, but holds {number!r}")
            mask |= 1 << number
        return mask

    def object(self, name: str) -> "_Object":
        return _Object(self._take(name, "a JSON object"), self._name(name))

    def finish(self, where: str) -> None:
        for name in self._left:
            raise UserError(f"{self._name(name)} cannot be encoded: {where} can hold {', '.join(self._asked)}")


def _json_word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


def from_json(config: SPUConfig, value: object) -> Sample:
    """The sample whose record, in `config`, says what `value` says.

    Raises
    ------
    UserError
        If a fact is missing or malformed, or if a record of `config` cannot hold it.
    """
    fields = _Object(value)
    fields.ignore("offset", "size")
    fields.choice("complete", (True,), default=True)
    events = fields.numbers("events", config.events)
    timestamp = fields.optional("timestamp", (1 << 64) - 1)
    if not events >> Event.RETIRED & 1:
        fields.finish("the record of an operation that did not retire (no event 1)")
        sample = Sample(start=Start(timestamp=timestamp), operation=Operation(events=events))
    else:
        sample = _retired(config, fields, events, timestamp)
    lost = events & ~records.events(config, sample)
    if lost:
        raise UserError(f"events cannot hold {_bit_numbers(lost)} for such an operation in a record of {config.name}")
    return sample


def _retired(config: SPUConfig, fields: _Object, events: int, timestamp: int | None) -> Sample:
    largest = (1 << config.counter_bits) - 1
    exception = events >> Event.GENERATED_EXCEPTION & 1
    pc = _instruction_address(fields.object("pc"))
    kind, operation_facts = _operation_facts(config, fields.object("operation"))
    not_taken = events >> Event.NOT_TAKEN & 1
    facts: dict[str, int] = {
        # The packet of a load or store has no bit for it, so event 6 alone can tell.
        "conditional": not_taken,
        **operation_facts,
        "taken": 1 - not_taken,
        "retired": 1,
        "exception": exception,
    }
    target, va, pa, pa_ns, translation, data_source = Location(), None, None, 0, 0, None
    if not exception and kind == "branch" and (facts["taken"] or config.not_taken_target):
        target = _instruction_address(fields.object("target"))
    if not exception and (kind in ("load", "store") or facts.get("gcs")):
        va = fields.optional("va", (1 << 64) - 1)
        if va is not None:
            translation = fields.integer("translation", largest)
            if "pa" in fields:
                pa, pa_ns = _physical_address(fields.object("pa"))
        if kind != "store" and config.data_source_bytes:
            data_source = fields.optional("data_source", (1 << 8 * config.data_source_bytes) - 1)
    start = Start(
        el=pc.el,
        ns=pc.ns,
        contextidr_el1=_context(config, fields, Packet.CONTEXT_EL1),
        contextidr_el2=_context(config, fields, Packet.CONTEXT_EL2),
        timestamp=timestamp,
        collect_pa=pa is not None,
    )
    total, issue = fields.integer("total", largest), fields.integer("issue", largest)
    exceptional = " that generated an exception" if exception else ""
    fields.finish(f"in {config.name}, the record of an operation of kind {kind!r}{exceptional}")
    operation = Operation(
        facts=Facts(
            **facts,
            va_valid=int(va is not None),
            # A zero top byte says nothing: it is written without a tag too.
            va_tagged=int(va is not None and va >> ADDRESS_BITS != 0),
            pa_valid=int(pa is not None),
            data_source_valid=int(data_source is not None),
        ),
        events=events,
        pc=pc.address,
        target=target,
        va=va or 0,
        pa=pa or 0,
        pa_ns=pa_ns,
        data_source=data_source or 0,
    )
    return Sample(start=start, operation=operation, total=total, issue=issue, translation=translation)


def _operation_facts(config: SPUConfig, fields: _Object) -> tuple[str, dict[str, int]]:
    """The kind of the operation, and what `config` records of it."""
    kind = fields.choice("kind", ("other", "load", "store", "branch"))
    facts: dict[str, int] = {}
    if kind == "other":
        fields.choice("form", ("other",), default="other")
        facts["conditional"] = fields.flag("conditional")
        for name in ("fp", "simd"):
            fields.choice(name, (False,), default=False)
    elif kind == "branch":
        fields.choice("form", ("branch",), default="branch")
        facts = {"branch": 1, "conditional": fields.flag("conditional"), "indirect": fields.flag("indirect")}
        if fields.choice("gcs", (False, True) if config.gcs else (False,), default=False):
            # The record does not say whether it loads or stores, unless it has what is recorded of loads alone.
            facts |= {"gcs": 1, "load": 1}
        fields.choice("procedure", ("unknown",), default="unknown")
    else:
        facts[kind] = 1
        form = fields.choice("form", ("general", "simd_fp", "extended", *_further_forms(config, kind)))
        facts["simd_fp"] = int(form == "simd_fp")
        if form == "memory_copy":
            facts |= {"memory_copy": 1, "load": 1, "store": 1, "destination": int(kind == "store")}
        elif form == "memory_set":
            facts["memory_set"] = 1
        elif form == "gcs":
            facts |= {"gcs": 1, "link_or_return": 1 - fields.flag("common")}
        elif form == "extended":
            for name in ("atomic", "exclusive", "acquire_release"):
                facts[name] = fields.flag(name)
            if not any(facts[name] for name in ("atomic", "exclusive", "acquire_release")):
                raise UserError(
                    "operation.atomic, exclusive or acquire_release must be true in the form 'extended', not all false"
                )
            if kind == "load" and facts["atomic"]:  # It returns a value, and writes memory like all atomics.
                facts["store"] = 1
    fields.finish(f"the operation of kind {kind!r}")
    return kind, facts


def _further_forms(config: SPUConfig, kind: str) -> tuple[str, ...]:
    """Of a load or a store, where the core has FEAT_MOPS or FEAT_GCS."""
    copy_and_set = ("memory_copy", "memory_set") if kind == "store" else ("memory_copy",)
    return (*(copy_and_set if config.mops else ()), *(("gcs",) if config.gcs else ()))


def _instruction_address(fields: _Object) -> Location:
    location = Location(
        fields.integer("address", (1 << ADDRESS_BITS) - 1), fields.integer("el", 3), fields.integer("ns", 1)
    )
    fields.choice("nse", (0,), default=0)
    fields.finish("an instruction address")
    return location


def _physical_address(fields: _Object) -> tuple[int, int]:
    address, ns = fields.integer("address", (1 << ADDRESS_BITS) - 1), fields.integer("ns", 1)
    for name in ("nse", "ch", "pat"):
        fields.choice(name, (0,), default=0)
    fields.finish("a physical address")
    return address, ns


def _context(config: SPUConfig, fields: _Object, packet: Packet) -> int | None:
    if packet not in config.packet_offsets:
        return None
    return fields.optional(packet.value.lower(), (1 << 32) - 1)
