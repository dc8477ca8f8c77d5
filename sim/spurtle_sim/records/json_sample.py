"""A sample from a JSON object: docs/reference/records.md is the schema."""

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
from .json_fields import Fields
from .json_object import FORMAT, bit_numbers
from .operation_type import forms

__all__ = ["from_json"]


def from_json(config: SPUConfig, value: object) -> Sample:
    """The sample whose record, in `config`, says what `value` says.

    Raises
    ------
    UserError
        If a fact is missing or malformed, or if a record of `config` cannot hold it.
    """
    fields = Fields(value)
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
    lost = events & ~records.events(config, sample)
    if lost:
        raise UserError(f"events cannot hold {bit_numbers(lost)} for such an operation in a record of {config.name}")
    return sample


def _has(events: int, event: Event) -> int:
    return events >> event & 1


def _retired(config: SPUConfig, fields: Fields, events: int, timestamp: int | None) -> Sample:
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
            # Few packets have a bit for it: of the other operations event 6 alone can tell.
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
    """What only the record of an operation holds that generated no exception: facts and members of `Operation`, and of
    `Sample`.
    """

    facts: dict[str, int] = field(default_factory=dict[str, int])
    members: dict[str, Any] = field(default_factory=dict[str, Any])
    translation: int = 0
    previous_target: Location | None = None


def _completed(config: SPUConfig, fields: Fields, kind: "_Kind", *, taken: int) -> _Completed:
    found = _Completed()
    is_branch = "branch" in kind.facts
    if is_branch and (taken or config.not_taken_target):
        found.members["target"] = _instruction_address(config, fields.object("target"))
    if kind.accesses:
        _access(config, fields, found)
    if kind.reads and config.data_source_bytes:
        data_source = fields.optional("data_source", (1 << 8 * config.data_source_bytes) - 1)
        if data_source is not None:
            found.facts["data_source_valid"] = 1
            found.members["data_source"] = data_source
    if config.pbt and (config.pbt_of_all or is_branch):
        location = fields.optional_object("previous_target")
        if location is not None:
            found.previous_target = _instruction_address(config, location)
    _implementation_defined(config, fields, found)
    return found


def _access(config: SPUConfig, fields: Fields, found: _Completed) -> None:
    va = fields.optional("va", (1 << 64) - 1)
    if va is None:
        return
    found.members["va"] = va
    # A zero top byte says nothing: it is written without a tag too.
    found.facts |= {"va_valid": 1, "va_tagged": int(va >> ADDRESS_BITS != 0)}
    found.translation = fields.integer("translation", (1 << config.counter_bits) - 1)
    pa = fields.optional_object("pa")
    if pa is not None:
        found.facts["pa_valid"] = 1
        found.members |= _physical_address(config, pa)


def _implementation_defined(config: SPUConfig, fields: Fields, found: _Completed) -> None:
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
            found.facts[f"{name}_valid"] = 1
            found.members[name] = value


def _alternate_issue(config: SPUConfig, fields: Fields, events: int) -> tuple[int, int]:
    """Whether the operation is asynchronous, and the latency that is recorded if it is. Where event 25 tells the
    former, the two have to agree (D17.6.1).
    """
    largest = (1 << config.counter_bits) - 1
    if config.spe_sme and Event.SMCU in config.events:
        asynchronous = _has(events, Event.SMCU)
        recorded = fields.integer("alternate_issue", largest) if config.altclk and asynchronous else 0
        return asynchronous, recorded
    recorded = fields.optional("alternate_issue", largest) if config.altclk else None
    return int(recorded is not None), recorded or 0


class _Kind(NamedTuple):
    """A kind of operation, as far as `config` records it.

    Members
    -------
    name : str
        How messages call it.
    facts : dict of str to int
    vectors : Vectors
    accesses, reads : bool
        Its record can tell of an access to memory; of where the data came from.
    """

    name: str
    facts: dict[str, int]
    vectors: Vectors
    accesses: bool
    reads: bool


def _kind_of_operation(config: SPUConfig, fields: Fields, events: int) -> _Kind:
    kinds = ("other", "load", "store", "branch")
    # D17.6.3: a branch that generates an exception is recorded as another operation.
    kind = fields.choice("kind", kinds[:-1] if _has(events, Event.GENERATED_EXCEPTION) else kinds)
    # What outranks a vector's packet can still have been one: events 17 and 18 tell.
    predicate_events = _has(events, Event.PARTIAL_PREDICATE) | _has(events, Event.EMPTY_PREDICATE)
    vectors = Vectors(sve=predicate_events)
    # And what has no packet of its own without FEAT_SPE_SME one of SME.
    hidden = Vectors(sme=predicate_events) if config.sme and not config.spe_sme else Vectors()
    accesses, reads, name = kind in ("load", "store"), kind == "load", repr(kind)
    if kind == "branch":
        facts = _branch(config, fields)
        accesses = reads = bool(facts.get("gcs"))
    elif kind == "other":
        form = fields.choice("form", forms(config, kind), default="other")
        facts, vectors = _other(config, fields, form)
        if form == "other" and not facts["vector"]:
            vectors = hidden
    else:
        form = fields.choice("form", forms(config, kind))
        facts = _load_store(fields, kind, form)
        if form == "sve":
            vectors = _vectors(
                config,
                fields,
                # PRED of a load is FEAT_SPEv1p2's (D18.2.7).
                predicated=kind == "store" or config.version >= PMSVer.SPE_V1P2,
                gather_scatter=True,
            )
        elif form == "unspecified":
            vectors = hidden
        elif form in ("general", "simd_fp", "extended"):
            vectors = Vectors()
    fields.finish(f"the operation of kind {kind!r}")
    return _Kind(name, facts, vectors, accesses, reads)


def _branch(config: SPUConfig, fields: Fields) -> dict[str, int]:
    fields.choice("form", forms(config, "branch"), default="branch")
    facts = {"branch": 1, "conditional": fields.flag("conditional"), "indirect": fields.flag("indirect")}
    if _optional_flag(fields, "gcs", allowed=config.gcs):
        # The record does not say whether it loads or stores, unless it has what is recorded of loads alone.
        facts |= {"gcs": 1, "load": 1}
    if not config.crr:
        fields.choice("procedure", ("unknown",), default="unknown")
    else:
        procedure = fields.choice("procedure", ("call", "return", "neither"), default="neither")
        facts |= {"link": int(procedure == "call"), "procedure_return": int(procedure == "return")}
    return facts


def _other(config: SPUConfig, fields: Fields, form: str) -> tuple[dict[str, int], Vectors]:
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


def _vectors(config: SPUConfig, fields: Fields, *, predicated: bool, gather_scatter: bool) -> Vectors:
    """What an operation on SVE registers works on."""
    bits = fields.choice("bits", (*_VECTOR_BITS, "more") if config.spe_sme else _VECTOR_BITS)
    return Vectors(
        sve=1,
        bits=_VECTOR_BITS[-1] if bits == "more" else int(bits),
        count=2 if bits == "more" else 1,
        predicated=_optional_flag(fields, "predicated", allowed=predicated),
        gather_scatter=fields.flag("gather_scatter") if gather_scatter else 0,
    )


def _load_store(fields: Fields, kind: str, form: str) -> dict[str, int]:
    facts = {kind: 1}
    if form in ("simd_fp", "unspecified", "nv2", "memory_set"):
        facts[form] = 1
    elif form == "tag":
        facts["allocation_tag"] = 1
    elif form in ("memory_copy", "gcs"):
        # Of GCSSS2, which is one of the latter, as of a copy, the record of the store can hold events of its load.
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
        if kind == "load" and facts["atomic"]:  # It returns a value, and writes memory like all atomics.
            facts["store"] = 1
    return facts


def _optional_flag(fields: Fields, name: str, *, allowed: bool) -> int:
    """A flag that has to be false where it is not allowed."""
    return int(fields.choice(name, (False, True) if allowed else (False,), default=False))


def _instruction_address(config: SPUConfig, fields: Fields) -> Location:
    location = Location(
        fields.integer("address", (1 << ADDRESS_BITS) - 1),
        fields.integer("el", 3),
        fields.integer("ns", 1),
        fields.optional("nse", int(config.rme)) or 0,
    )
    fields.finish("an instruction address")
    return location


def _physical_address(config: SPUConfig, fields: Fields) -> dict[str, int]:
    """Members of `Operation`."""
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


def _context(config: SPUConfig, fields: Fields, packet: Packet) -> int | None:
    if packet not in config.layout.packets:
        return None
    return fields.optional(packet.value.lower(), (1 << 32) - 1)
