"""Operations and samples: what the core reports of an operation, and what is captured with it."""

# Ref: DDI0487 M.a, D17.6.

from dataclasses import dataclass

__all__ = ["Facts", "Location", "Operation", "Sample", "Start", "Vectors"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """What an operation is and did, 0 or 1 each: the members of `interface.operation.FactsLayout`, in its order."""

    load: int = 0
    store: int = 0
    branch: int = 0
    atomic: int = 0
    acquire_release: int = 0
    exclusive: int = 0
    simd_fp: int = 0
    unspecified: int = 0
    allocation_tag: int = 0
    nv2: int = 0
    memory_copy: int = 0
    memory_set: int = 0
    gcs: int = 0
    vector: int = 0
    floating_point: int = 0
    conditional: int = 0
    taken: int = 0
    indirect: int = 0
    link: int = 0
    procedure_return: int = 0
    asynchronous: int = 0
    retired: int = 0
    exception: int = 0
    va_valid: int = 0
    pa_valid: int = 0
    va_tagged: int = 0
    data_source_valid: int = 0
    destination: int = 0
    imp_counter_valid: int = 0
    imp_address_valid: int = 0

    def pack(self) -> int:
        """The facts as one number, `load` in bit 0."""
        return sum(getattr(self, name) << bit for bit, name in enumerate(self.__slots__))

    @classmethod
    def unpack(cls, value: int) -> "Facts":
        """Inverse of `pack`."""
        return cls(**{name: (value >> bit) & 1 for bit, name in enumerate(cls.__slots__)})


@dataclass(frozen=True, kw_only=True, slots=True)
class Vectors:
    """What an SVE or SME operation works on (D17.6.6): the members of `interface.operation.VectorsLayout`.

    `bits` has 12 bits, of a tile operation 19, and `count` 5; all others are 0 or 1.
    """

    sve: int = 0
    predicated: int = 0
    gather_scatter: int = 0
    bits: int = 0
    sme: int = 0
    tile: int = 0
    whole_array: int = 0
    count: int = 0


@dataclass(frozen=True, slots=True)
class Location:
    """An instruction address (56 bits) with the Exception level and Security state that it belongs to. Realm where both
    `ns` and `nse` are 1.
    """

    address: int = 0
    el: int = 0
    ns: int = 0
    nse: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation:
    """A finished operation, as the core tells it.

    It has the members of `interface.operation.OperationLayout`, and their widths. What belongs to a feature is nothing
    without it.

    A branch is neither load nor store, but for an access to the Guarded control stack.
    """

    facts: Facts = Facts()
    events: int = 0
    pc: int = 0
    target: Location = Location()
    va: int = 0
    pa: int = 0
    pa_ns: int = 0
    pa_nse: int = 0
    pa_checked: int = 0
    pa_tag: int = 0
    data_source: int = 0
    vectors: Vectors = Vectors()
    imp_counter: int = 0
    imp_address: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Start:
    """What is captured when the operation passes the sampling point; None is what may not be collected.

    `collect_nv2_va` permits the address of a System register that FEAT_NV2 keeps in memory (D17.6.4.2).
    """

    el: int = 0
    ns: int = 1
    nse: int = 0
    contextidr_el1: int | None = None
    contextidr_el2: int | None = None
    timestamp: int | None = None
    collect_pa: bool = False
    collect_nv2_va: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """A sampled operation that has finished.

    Parameters
    ----------
    start : Start
        What was captured at the sampling point.
    operation : Operation
        What the core told at the end.
    previous_target : Location or None
        Where the last taken branch before it went, None if that may not be collected (D17.6.3.1).
    total, issue, translation : int
        Latencies in cycles, not saturated.
    alternate_issue : int
        Issue latency in cycles of the alternate clock, not saturated (D17.6.1).
    """

    start: Start
    operation: Operation
    previous_target: Location | None = None
    total: int = 0
    issue: int = 0
    translation: int = 0
    alternate_issue: int = 0
