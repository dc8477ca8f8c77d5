"""Bits of the Events packet (D18.2.6).

Ref: DDI0487 M.a, D18.2.6.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum, IntEnum, unique

from .values import PMSVer, is_defined

__all__ = ["EVENTS", "Event", "EventRow", "Operations", "defined_events", "events_of", "mask", "required_events"]


@unique
class Event(IntEnum):
    """Bit number in the Events packet."""

    GENERATED_EXCEPTION = 0
    RETIRED = 1
    L1D_ACCESS = 2
    L1D_REFILL = 3
    TLB_ACCESS = 4
    TLB_WALK = 5
    NOT_TAKEN = 6
    MISPREDICTED = 7
    LLC_ACCESS = 8
    LLC_MISS = 9
    REMOTE_ACCESS = 10
    MISALIGNED = 11
    PARTIAL_PREDICATE = 17
    EMPTY_PREDICATE = 18
    L2D_ACCESS = 19
    L2D_MISS = 20
    CACHE_DATA_MODIFIED = 21
    RECENTLY_FETCHED = 22
    DATA_SNOOPED = 23
    STREAMING_SVE = 24
    SMCU = 25


@unique
class Operations(Enum):
    """Group of operations that can have an event. The value describes it."""

    ALL = "all"
    EXCEPTIONS = "all but branches"
    CONDITIONAL = "conditional operations"
    BRANCHES = "branches"
    ACCESSES = "loads and stores"
    LOADS = "loads"
    VECTORS = "SVE and SME operations"


@dataclass(frozen=True)
class EventRow:
    """Event, and the operations and SPUs that can have it.

    Parameters
    ----------
    event : Event
    title : str
        Meaning, in the words of the architecture.
    operations : Operations
    word : str
        Name of the event in the output of Linux perf.
    optional : bool
        An implementation can omit the event.
    version : PMSVer
        First version of FEAT_SPE that defines the event.
    features : tuple of str
        Names of fields of `SPUConfig`, of which at least one must be set. Empty if the event needs no feature.
    """

    event: Event
    title: str
    operations: Operations
    word: str
    optional: bool = False
    version: PMSVer = PMSVer.SPE
    features: tuple[str, ...] = ()


_VECTORS = ("sve", "sme")

EVENTS = (
    EventRow(Event.GENERATED_EXCEPTION, "generated exception", Operations.EXCEPTIONS, "EXCEPTION-GEN"),
    EventRow(Event.RETIRED, "architecturally retired", Operations.ALL, "RETIRED"),
    EventRow(Event.L1D_ACCESS, "level 1 data cache access", Operations.ACCESSES, "L1D-ACCESS"),
    EventRow(Event.L1D_REFILL, "level 1 data cache refill or miss", Operations.ACCESSES, "L1D-REFILL"),
    EventRow(Event.TLB_ACCESS, "TLB access", Operations.ACCESSES, "TLB-ACCESS"),
    EventRow(Event.TLB_WALK, "TLB walk", Operations.ACCESSES, "TLB-REFILL"),
    EventRow(Event.NOT_TAKEN, "not taken", Operations.CONDITIONAL, "NOT-TAKEN"),
    EventRow(Event.MISPREDICTED, "mispredicted", Operations.BRANCHES, "MISPRED"),
    EventRow(Event.LLC_ACCESS, "last level cache access", Operations.ACCESSES, "LLC-ACCESS", optional=True),
    EventRow(Event.LLC_MISS, "last level cache miss", Operations.ACCESSES, "LLC-REFILL", optional=True),
    EventRow(Event.REMOTE_ACCESS, "access to another socket", Operations.ACCESSES, "REMOTE-ACCESS", optional=True),
    EventRow(Event.MISALIGNED, "misalignment", Operations.ACCESSES, "ALIGNMENT", True, PMSVer.SPE_V1P1),
    EventRow(
        Event.PARTIAL_PREDICATE,
        "partial or empty predicate",
        Operations.VECTORS,
        "SVE-PARTIAL-PRED",
        version=PMSVer.SPE_V1P1,
        features=_VECTORS,
    ),
    EventRow(
        Event.EMPTY_PREDICATE,
        "empty predicate",
        Operations.VECTORS,
        "SVE-EMPTY-PRED",
        version=PMSVer.SPE_V1P1,
        features=_VECTORS,
    ),
    EventRow(Event.L2D_ACCESS, "level 2 data cache access", Operations.LOADS, "L2D-ACCESS", True, PMSVer.SPE_V1P4),
    EventRow(Event.L2D_MISS, "level 2 data cache miss", Operations.LOADS, "L2D-MISS", True, PMSVer.SPE_V1P4),
    EventRow(Event.CACHE_DATA_MODIFIED, "cache data modified", Operations.LOADS, "HITM", True, PMSVer.SPE_V1P4),
    EventRow(Event.RECENTLY_FETCHED, "recently fetched", Operations.LOADS, "LFB", True, PMSVer.SPE_V1P4),
    EventRow(Event.DATA_SNOOPED, "data snooped", Operations.LOADS, "SNOOPED", True, PMSVer.SPE_V1P4),
    EventRow(
        Event.STREAMING_SVE, "Streaming SVE mode", Operations.ALL, "STREAMING-SVE", False, PMSVer.SPE_V1P4, ("spe_sme",)
    ),
    EventRow(
        Event.SMCU,
        "SMCU or external coprocessor operation",
        Operations.ALL,
        "SMCU",
        False,
        PMSVer.SPE_V1P4,
        ("spe_sme",),
    ),
)
"""Events that the architecture defines. Other bits are zero or IMPLEMENTATION DEFINED."""

_IMP_OF_ACCESSES = range(12, 16)
"""IMPLEMENTATION DEFINED in every version. All known uses are for loads and stores (docs/choices.md)."""

_IMP = range(48, 64)
"""IMPLEMENTATION DEFINED in every version."""

_IMP_BEFORE_V1P4 = range(24, 32)
"""IMPLEMENTATION DEFINED before FEAT_SPEv1p4."""


def mask(events: Iterable[int]) -> int:
    """Return the payload of the Events packet for these events."""
    return sum(1 << event for event in events)


def events_of(operations: Operations) -> frozenset[int]:
    """Return the events that only these operations can have, including IMPLEMENTATION DEFINED events."""
    imp = _IMP_OF_ACCESSES if operations is Operations.ACCESSES else ()
    return frozenset({*imp, *(row.event for row in EVENTS if row.operations is operations)})


def required_events(version: PMSVer, features: Collection[str]) -> frozenset[int]:
    """Return the events that every SPU of this version with these features records."""
    return frozenset(row.event for row in EVENTS if not row.optional and is_defined(row, version, features))


def defined_events(version: PMSVer, features: Collection[str]) -> frozenset[int]:
    """Return the events that an SPU of this version with these features can record."""
    imp = {*_IMP_OF_ACCESSES, *_IMP, *(_IMP_BEFORE_V1P4 if version < PMSVer.SPE_V1P4 else ())}
    return frozenset(imp | {row.event for row in EVENTS if is_defined(row, version, features)})
