"""Operations as the core reports them, and samples of operations.

Ref: DDI0487 M.a, D17.6.
"""

from dataclasses import dataclass

__all__ = ["Facts", "Location", "Operation", "Sample", "Start", "Vectors"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """Properties of an operation, each 0 or 1: the members of `interface.operation.FactsLayout`, in the same order."""

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
        """Return the facts as an integer, with `load` in bit 0."""
        return sum(getattr(self, name) << bit for bit, name in enumerate(self.__slots__))

    @classmethod
    def unpack(cls, value: int) -> "Facts":
        """Return the facts that `pack` has packed into an integer."""
        return cls(**{name: (value >> bit) & 1 for bit, name in enumerate(cls.__slots__)})


@dataclass(frozen=True, kw_only=True, slots=True)
class Vectors:
    """Vectors or tiles of an SVE or SME operation (D17.6.6): the members of `interface.operation.VectorsLayout`.

    `bits` has 12 bits (19 bits for a tile operation), `count` has 5 bits, and each other member is 0 or 1.
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
    """Instruction address, 56 bits, with its Exception level and Security state.

    The Security state is Realm if both `ns` and `nse` are 1.
    """

    address: int = 0
    el: int = 0
    ns: int = 0
    nse: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation:
    """Finished operation, as the core reports it.

    The members and their widths are those of `interface.operation.OperationLayout`. Members of an unimplemented feature
    are ignored.

    A branch is a load or store only if it accesses the Guarded control stack.
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
    """Values captured when the operation passes the sampling point. A value that must not be collected is None.

    `collect_pa` permits collection of the physical address of a data access. `collect_nv2_va` permits collection of the
    virtual address of a System register access that FEAT_NV2 redirects to memory (D17.6.4.2).
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
    """Finished sampled operation.

    Parameters
    ----------
    start : Start
        Values captured at the sampling point.
    operation : Operation
        Operation as the core reported it when it finished.
    previous_target : Location or None
        Target of the previous taken branch, or None if it must not be collected (D17.6.3.1).
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
