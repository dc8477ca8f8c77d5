"""Conversion of JSON objects to samples. docs/reference/records.md describes the schema."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from spurtle.arch import ADDRESS_BITS, ETS, EVL, Event, PMSVer
from spurtle.arch.operation_types import ETS_UNIT, EVL_UNIT
from spurtle.arch.packets import PHYSICAL_TOP
from spurtle.config import SPUConfig
from spurtle.config.record_layouts import Packet
from spurtle.support.errors import UserError

from ..model import records
from ..model.operation import Facts, Location, Operation, Sample, Start, Vectors
from .json_fields import JSONFields
from .json_object import FORMAT, bit_numbers
from .operation_type import forms

__all__ = ["from_json"]


def from_json(config: SPUConfig, value: object) -> Sample:
    """Return the sample whose record has the contents of a JSON object.

    Raises
    ------
    UserError
        If a member of the object is missing or malformed, or if a record of `config` cannot hold it.
    """
    fields = JSONFields(value)
    fields.choice("format", (FORMAT,), default=FORMAT)
    fields.ignore("cpu", "tid", "buffer", "offset", "size")
    fields.choice("complete", (True,), default=True)
    events = fields.numbers("events", config.events)
    timestamp = fields.optional("timestamp", (1 << 64) - 1)
    if not _has(events, Event.RETIRED):
        fields.finish("the record of an operation that did not retire (no event 1)")
        sample = Sample(start=Start(timestamp=timestamp), operation=Operation(events=events))
    else:
        sample = _retired(config, fields, events, timestamp)
    not_recorded = events & ~records.events(config, sample)
    if not_recorded:
        raise UserError(
            f"events cannot hold {bit_numbers(not_recorded)} for such an operation in a record of {config.name}"
        )
    return sample


def _has(events: int, event: Event) -> int:
    """Return the bit of an event."""
    return events >> event & 1


def _retired(config: SPUConfig, fields: JSONFields, events: int, timestamp: int | None) -> Sample:
    """Return the sample of an operation that retired."""
    largest = (1 << config.counter_bits) - 1
    exception, not_taken = _has(events, Event.GENERATED_EXCEPTION), _has(events, Event.NOT_TAKEN)
    pc = _instruction_address(config, fields.object("pc"))
    kind = _kind_of_operation(config, fields.object("operation"), events)
    asynchronous, alternate_issue = _alternate_issue(config, fields, events)
    completed = _Completed() if exception else _completed(config, fields, kind, taken=1 - not_taken)
    start = Start(
        el=pc.el,
        ns=pc.ns,
        nse=pc.nse,
        contextidr_el1=_context(config, fields, Packet.CONTEXT_EL1),
        contextidr_el2=_context(config, fields, Packet.CONTEXT_EL2),
        timestamp=timestamp,
        collect_pa="pa" in completed.members,
        collect_nv2_va="va" in completed.members,
    )
    total = fields.integer("total", largest)
    issue = fields.integer("issue", largest) if Packet.ISSUE in config.layout.packets else 0
    exceptional = " that generated an exception" if exception else ""
    fields.finish(f"in {config.name}, the record of an operation of kind {kind.name}{exceptional}")
    facts = Facts(
        **{
            # Few Operation Type packets have COND. For other operations only event 6 shows that they are conditional.
            "conditional": not_taken,
            **kind.facts,
            **completed.facts,
            "taken": 1 - not_taken,
            "retired": 1,
            "exception": exception,
            "asynchronous": asynchronous,
        }
    )
    return Sample(
        start=start,
        operation=Operation(facts=facts, events=events, pc=pc.address, vectors=kind.vectors, **completed.members),
        total=total,
        issue=issue,
        translation=completed.translation,
        alternate_issue=alternate_issue,
        previous_target=completed.previous_target,
    )


@dataclass
class _Completed:
    """Contents that only the record of an operation that generated no exception can have.

    `facts` and `members` are those of `Facts` and `Operation`; the other attributes are those of `Sample`.
    """

    facts: dict[str, int] = field(default_factory=dict[str, int])
    members: dict[str, Any] = field(default_factory=dict[str, Any])
    translation: int = 0
    previous_target: Location | None = None


def _completed(config: SPUConfig, fields: JSONFields, kind: "_Kind", *, taken: int) -> _Completed:
    """Read the members that only an operation without an exception can have."""
    completed = _Completed()
    is_branch = "branch" in kind.facts
    if is_branch and (taken or config.not_taken_target):
        completed.members["target"] = _instruction_address(config, fields.object("target"))
    if kind.accesses:
        _access(config, fields, completed)
    if kind.reads and config.data_source_bytes:
        data_source = fields.optional("data_source", (1 << 8 * config.data_source_bytes) - 1)
        if data_source is not None:
            completed.facts["data_source_valid"] = 1
            completed.members["data_source"] = data_source
    if config.pbt and (config.pbt_of_all or is_branch):
        location = fields.optional_object("previous_target")
        if location is not None:
            completed.previous_target = _instruction_address(config, location)
    _implementation_defined(config, fields, completed)
    return completed


def _access(config: SPUConfig, fields: JSONFields, completed: _Completed) -> None:
    """Read the members of a data access."""
    va = fields.optional("va", (1 << 64) - 1)
    if va is None:
        return
    completed.members["va"] = va
    # The top byte of an untagged address is recorded as zero, so an address with a zero top byte is taken as untagged.
    completed.facts |= {"va_valid": 1, "va_tagged": int(va >> ADDRESS_BITS != 0)}
    completed.translation = fields.integer("translation", (1 << config.counter_bits) - 1)
    pa = fields.optional_object("pa")
    if pa is not None:
        completed.facts["pa_valid"] = 1
        completed.members |= _physical_address(config, pa)


def _implementation_defined(config: SPUConfig, fields: JSONFields, completed: _Completed) -> None:
    """Read the values of IMPLEMENTATION DEFINED packets."""
    for name, index, plural, bits in (
        ("imp_address", config.imp_address, "addresses", 64),
        ("imp_counter", config.imp_counter, "counters", config.counter_bits),
    ):
        by_index = fields.optional_object(plural) if index else None
        if by_index is None:
            continue
        value = by_index.optional(str(index), (1 << bits) - 1)
        by_index.finish(f"a record of {config.name}")
        if value is not None:
            completed.facts[f"{name}_valid"] = 1
            completed.members[name] = value


def _alternate_issue(config: SPUConfig, fields: JSONFields, events: int) -> tuple[int, int]:
    """Return whether the operation is asynchronous, and its alternate clock issue latency, or 0 if it has none.

    If event 25 is SMCU, the operation is asynchronous if the event is set (D17.6.1), and the record then has the
    latency. Otherwise the operation is asynchronous if the record has the latency.
    """
    largest = (1 << config.counter_bits) - 1
    if config.spe_sme and Event.SMCU in config.events:
        asynchronous = _has(events, Event.SMCU)
        recorded = fields.integer("alternate_issue", largest) if config.altclk and asynchronous else 0
        return asynchronous, recorded
    recorded = fields.optional("alternate_issue", largest) if config.altclk else None
    return int(recorded is not None), recorded or 0


class _Kind(NamedTuple):
    """Kind of operation, as a configuration records it.

    Members
    -------
    name : str
        Name in messages.
    facts : dict of str to int
        Facts of the operation.
    vectors : Vectors
        Vectors or tiles of the operation.
    accesses, reads : bool
        Whether the record can have the addresses of an access, and a data source.
    """

    name: str
    facts: dict[str, int]
    vectors: Vectors
    accesses: bool
    reads: bool


def _kind_of_operation(config: SPUConfig, fields: JSONFields, events: int) -> _Kind:
    """Read the member `operation`."""
    kinds = ("other", "load", "store", "branch")
    # A branch that generates an exception is recorded as another kind of operation (D17.6.3).
    kind = fields.choice("kind", kinds[:-1] if _has(events, Event.GENERATED_EXCEPTION) else kinds)
    # A format with priority, such as that of Memory Copy, hides that an operation is an SVE operation. Events 17 and 18
    # show it.
    predicate_events = _has(events, Event.PARTIAL_PREDICATE) | _has(events, Event.EMPTY_PREDICATE)
    vectors = Vectors(sve=predicate_events)
    # Without FEAT_SPE_SME an SME operation has no format of its own.
    sme_vectors = Vectors(sme=predicate_events) if config.sme and not config.spe_sme else Vectors()
    accesses, reads, name = kind in ("load", "store"), kind == "load", repr(kind)
    if kind == "branch":
        facts = _branch(config, fields)
        accesses = reads = bool(facts.get("gcs"))
    elif kind == "other":
        form = fields.choice("form", forms(config, kind), default="other")
        facts, vectors = _other(config, fields, form)
        if form == "other" and not facts["vector"]:
            vectors = sme_vectors
    else:
        form = fields.choice("form", forms(config, kind))
        facts = _load_store(fields, kind, form)
        if form == "sve":
            vectors = _vectors(
                config,
                fields,
                # PRED of a load is defined from FEAT_SPEv1p2 (D18.2.7).
                predicated=kind == "store" or config.version >= PMSVer.SPE_V1P2,
                gather_scatter=True,
            )
        elif form == "unspecified":
            vectors = sme_vectors
        elif form in ("general", "simd_fp", "extended"):
            vectors = Vectors()
    fields.finish(f"the operation of kind {kind!r}")
    return _Kind(name, facts, vectors, accesses, reads)


def _branch(config: SPUConfig, fields: JSONFields) -> dict[str, int]:
    """Read the attributes of a branch and return its facts."""
    fields.choice("form", forms(config, "branch"), default="branch")
    facts = {"branch": 1, "conditional": fields.flag("conditional"), "indirect": fields.flag("indirect")}
    if _optional_flag(fields, "gcs", allowed=config.gcs):
        # The record does not show whether the branch loads or stores. A load can have every packet that a store can.
        facts |= {"gcs": 1, "load": 1}
    if not config.crr:
        fields.choice("procedure", ("unknown",), default="unknown")
    else:
        procedure = fields.choice("procedure", ("call", "return", "neither"), default="neither")
        facts |= {"link": int(procedure == "call"), "procedure_return": int(procedure == "return")}
    return facts


def _other(config: SPUConfig, fields: JSONFields, form: str) -> tuple[dict[str, int], Vectors]:
    """Read the attributes of an operation of kind "other" and return its facts and vectors."""
    if form == "other":
        facts = {
            "conditional": fields.flag("conditional"),
            "floating_point": _optional_flag(fields, "fp", allowed=config.fpf),
            "vector": _optional_flag(fields, "simd", allowed=config.fpf),
        }
        return facts, Vectors()
    facts = {"floating_point": fields.flag("fp")}
    if form == "sve":
        return facts, _vectors(config, fields, predicated=True, gather_scatter=False)
    bits = fields.choice("bits", (*_TILE_BITS, "all"))
    return facts, Vectors(sme=1, tile=1, **({"whole_array": 1} if bits == "all" else {"bits": int(bits)}))


_VECTOR_BITS = tuple(EVL_UNIT << code for code in range(EVL.BITS_2048 + 1))
_TILE_BITS = tuple(ETS_UNIT << code for code in range(ETS.BITS_262144 + 1))


def _vectors(config: SPUConfig, fields: JSONFields, *, predicated: bool, gather_scatter: bool) -> Vectors:
    """Return the vectors of an SVE operation."""
    bits = fields.choice("bits", (*_VECTOR_BITS, "more") if config.spe_sme else _VECTOR_BITS)
    return Vectors(
        sve=1,
        bits=_VECTOR_BITS[-1] if bits == "more" else int(bits),
        count=2 if bits == "more" else 1,
        predicated=_optional_flag(fields, "predicated", allowed=predicated),
        gather_scatter=fields.flag("gather_scatter") if gather_scatter else 0,
    )


def _load_store(fields: JSONFields, kind: str, form: str) -> dict[str, int]:
    """Read the attributes of a load or store and return its facts."""
    facts = {kind: 1}
    if form in ("simd_fp", "unspecified", "nv2", "memory_set"):
        facts[form] = 1
    elif form == "tag":
        facts["allocation_tag"] = 1
    elif form in ("memory_copy", "gcs"):
        # The record of the store of a Memory Copy or of GCSSS2, whose form is "gcs", can hold events of the load.
        facts |= {form: 1, "load": 1, "store": 1, "destination": int(kind == "store")}
        if form == "gcs":
            facts["link"] = 1 - fields.flag("common")
    elif form == "extended":
        names = ("atomic", "exclusive", "acquire_release")
        facts |= {name: fields.flag(name) for name in names}
        if not any(facts[name] for name in names):
            raise UserError(
                "operation.atomic, exclusive or acquire_release must be true in the form 'extended', not all false"
            )
        if kind == "load" and facts["atomic"]:  # An atomic operation that returns a value also writes memory.
            facts["store"] = 1
    return facts


def _optional_flag(fields: JSONFields, name: str, *, allowed: bool) -> int:
    """Return a flag, which must be false or absent unless it is allowed."""
    return int(fields.choice(name, (False, True) if allowed else (False,), default=False))


def _instruction_address(config: SPUConfig, fields: JSONFields) -> Location:
    """Read an instruction address."""
    location = Location(
        fields.integer("address", (1 << ADDRESS_BITS) - 1),
        fields.integer("el", 3),
        fields.integer("ns", 1),
        fields.optional("nse", int(config.rme)) or 0,
    )
    fields.finish("an instruction address")
    return location


def _physical_address(config: SPUConfig, fields: JSONFields) -> dict[str, int]:
    """Return the members of `Operation` for a physical address."""
    checked = fields.optional("ch", int(config.mte)) or 0
    members = {
        "pa": fields.integer("address", (1 << ADDRESS_BITS) - 1),
        "pa_ns": fields.integer("ns", 1),
        "pa_nse": fields.optional("nse", int(config.rme)) or 0,
        "pa_checked": checked,
        "pa_tag": fields.optional("pat", PHYSICAL_TOP["PAT"].max_value if checked else 0) or 0,
    }
    fields.finish("a physical address")
    return members


def _context(config: SPUConfig, fields: JSONFields, packet: Packet) -> int | None:
    """Read a context, if the record layout has a field for it."""
    if packet not in config.layout.packets:
        return None
    return fields.optional(packet.value.lower(), (1 << 32) - 1)
