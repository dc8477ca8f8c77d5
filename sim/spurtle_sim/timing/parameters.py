"""Sizes and latencies of the timing model."""

from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any

from ..trace.instruction import InstructionKind

__all__ = ["LINE_SHIFT", "TABLE", "Parameter", "Parameters"]

LINE_SHIFT = 6
"""Log2 of the size of a cache line in bytes."""

# These limits bound the memory of the tables. They also bound the sum of the latencies that delay one operation, so
# that its cycles since dispatch fit in 32 bits.
_MAX = 1 << 14
_MAX_BYTES = 1 << 30
_MAX_BITS = 24
_MAX_OCCUPANCY = 128
_MAX_PORTS = 32

_ACCESSES = {InstructionKind.LOAD, InstructionKind.STORE, InstructionKind.ATOMIC}
"""Kinds whose latency depends on the access."""


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """Parameter of the timing model.

    Parameters
    ----------
    unit : str
        Unit of its values in `Parameters`.
    meaning : str
        Sentence for the documents.
    minimum, maximum : int
    kinds : tuple of InstructionKind
        Kinds that have a value of their own. Empty for a parameter with one value.
    optional : bool
        Whether a kind can be without a value.
    names : bool
        Whether a value is a tuple of names, and not a number.
    """

    unit: str
    meaning: str
    minimum: int = 1
    maximum: int = _MAX
    kinds: tuple[InstructionKind, ...] = ()
    optional: bool = False
    names: bool = False


def _number(unit: str, meaning: str, minimum: int = 1, maximum: int = _MAX) -> Any:
    """Return a field of `Parameters` with one number. A minimum of zero means that zero is a latency or disables."""
    return field(metadata={"": Parameter(unit=unit, meaning=meaning, minimum=minimum, maximum=maximum)})


def _size(meaning: str, minimum: int = 1) -> Any:
    return _number("bytes", meaning, minimum, _MAX_BYTES)


def _by_kind(parameter: Parameter) -> Any:
    return field(metadata={"": parameter})


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Sizes and latencies of the timing model. `core.read_core` reads them from a file.

    The metadata of each field describes it (`TABLE`). Sizes are in bytes if the name ends in `_bytes`. A line has 64
    bytes.

    Raises
    ------
    ValueError
        If a value is out of range, or the number of sets of a cache is not a power of two.
    """

    ops_per_cycle: int = _number(
        "operations", "Maximum number of operations that dispatch in a cycle, if the SPU has as many lanes."
    )
    window: int = _number(
        "operations", "Maximum number of operations between dispatch and retirement. Dispatch stalls at the maximum."
    )
    scheduler: int = _number(
        "operations", "Maximum number of operations between dispatch and issue. Dispatch stalls at the maximum."
    )
    in_order: int = _number("flag", "Whether operations issue in program order.", 0, 1)
    redirect: int = _number(
        "cycles",
        "Cycles from the end of a mispredicted branch, of an ISB or of an exception to the next dispatch.",
        0,
    )
    wrong_path: int = _number(
        "operations",
        "Maximum number of operations on the wrong path after a mispredicted branch that pass the sampling point. "
        "Zero: such operations do not pass it.",
        0,
    )
    predictor_bits: int = _number(
        "bits",
        "Log2 of the number of entries of the direction and target tables, and number of branches in the history.",
        0,
        _MAX_BITS,
    )
    return_stack: int = _number("entries", "Size of the stack of return addresses.")
    latencies: Mapping[InstructionKind, int] = _by_kind(
        Parameter(
            unit="cycles",
            meaning="Latency from issue to result.",
            kinds=tuple(kind for kind in InstructionKind if kind not in _ACCESSES),
        )
    )
    ports: Mapping[InstructionKind, tuple[str, ...]] = _by_kind(
        Parameter(
            unit="ports",
            meaning="Ports through which operations of a kind issue, one in a cycle through each port; the "
            "first one that is free is used. A kind without ports issues any number in a cycle.",
            maximum=_MAX_PORTS,
            kinds=tuple(InstructionKind),
            optional=True,
            names=True,
        )
    )
    occupancy: Mapping[InstructionKind, int] = _by_kind(
        Parameter(
            unit="cycles",
            meaning="Cycles for which an operation keeps its port busy; one without a value.",
            maximum=_MAX_OCCUPANCY,
            kinds=tuple(InstructionKind),
            optional=True,
        )
    )
    atomic: int = _number("cycles", "Additional latency of an atomic operation that returns a value.", 0)
    l1i_bytes: int = _size("Size of the L1 instruction cache. Zero: every fetch hits.", 0)
    l1i_ways: int = _number("ways", "Associativity of the L1 instruction cache.")
    itlb_entries: int = _number(
        "entries", "Size of the instruction TLB, which is fully associative. Zero: every fetch hits.", 0
    )
    l1d_bytes: int = _size("Size of the L1 data cache.")
    l1d_ways: int = _number("ways", "Associativity of the L1 data cache.")
    l1d: int = _number("cycles", "Latency of a load that hits L1, from issue to data, if it hits the first-level TLB.")
    l2_bytes: int = _size("Size of the L2 cache.")
    l2_ways: int = _number("ways", "Associativity of the L2 cache.")
    l2: int = _number("cycles", "Latency of a load whose data is in L2.")
    system_cache_bytes: int = _size("Size of the system cache.")
    system_cache_ways: int = _number("ways", "Associativity of the system cache.")
    system_cache: int = _number("cycles", "Latency of a load whose data is in the system cache.")
    dram: int = _number("cycles", "Latency of a load whose data is in no cache.")
    outstanding: int = _number(
        "lines", "Number of lines that loads and the prefetcher fetch into L1 at the same time. Zero: any number.", 0
    )
    l2_line: int = _number("cycles", "Cycles for each line that L2 delivers. Zero: no limit.", 0)
    system_cache_line: int = _number(
        "cycles", "Cycles for each line that the system cache delivers. Zero: no limit.", 0
    )
    dram_line: int = _number("cycles", "Cycles for each line that DRAM delivers. Zero: no limit.", 0)
    prefetch_streams: int = _number(
        "entries", "Number of loads whose stride the prefetcher remembers, a power of two. Zero: no prefetcher.", 0
    )
    prefetch_distance: int = _number("strides", "Distance of a prefetched address from the load.", 1, 64)
    tlb_entries: int = _number("entries", "Size of the first-level data TLB, which is fully associative.")
    l2_tlb_entries: int = _number("entries", "Size of the second-level TLB.")
    l2_tlb_ways: int = _number("ways", "Associativity of the second-level TLB.")
    l2_tlb: int = _number("cycles", "Additional latency of a translation that hits the second-level TLB only.", 0)
    walk: int = _number("cycles", "Additional latency of a translation that misses both TLBs.", 0)
    store: int = _number("cycles", "Latency from issue until a store is in the store buffer, if that is not full.")
    store_buffer: int = _number("entries", "Size of the store buffer: stores that can wait for their cache line.")
    forwarding: int = _number(
        "cycles",
        "Latency of a load whose bytes are in the store buffer, from issue to data. Zero: such a load reads L1.",
        0,
    )
    store_overlap: int = _number("refills", "Number of refills for stores that proceed in parallel.")

    def __post_init__(self) -> None:
        for name, parameter, value in self._numbers():
            minimum, maximum = parameter.minimum, parameter.maximum
            if not minimum <= value <= maximum:
                raise ValueError(f"{name} must be {minimum} to {maximum}, not {value}")
        if len(self.port_bits()) > _MAX_PORTS:
            raise ValueError(f"ports must have at most {_MAX_PORTS} names, not {len(self.port_bits())}")
        if self.prefetch_streams.bit_count() > 1:
            raise ValueError(f"prefetch_streams must be a power of two, not {self.prefetch_streams}")
        for name, entries, ways in (
            *([("l1i", self.l1i_bytes >> LINE_SHIFT, self.l1i_ways)] if self.l1i_bytes else []),
            ("l1d", self.l1d_bytes >> LINE_SHIFT, self.l1d_ways),
            ("l2", self.l2_bytes >> LINE_SHIFT, self.l2_ways),
            ("system_cache", self.system_cache_bytes >> LINE_SHIFT, self.system_cache_ways),
            ("l2_tlb", self.l2_tlb_entries, self.l2_tlb_ways),
        ):
            if entries % ways or (entries // ways).bit_count() != 1:
                raise ValueError(f"{name}: entries / ways must be a power of two, not {entries} / {ways}")

    def port_bits(self) -> dict[str, int]:
        """Return a bit for each port by its name, in the order in which they are named first."""
        names = dict.fromkeys(name for names in self.ports.values() for name in names)
        return {name: 1 << bit for bit, name in enumerate(names)}

    def _numbers(self) -> Iterator[tuple[str, Parameter, int]]:
        for name, parameter in TABLE.items():
            value = getattr(self, name)
            if parameter.kinds:
                for kind, number in value.items():
                    yield f"{name} of {kind.name}", parameter, len(number) if parameter.names else number
            else:
                yield name, parameter, value


def _described(item: Field[Any]) -> Parameter:
    return item.metadata[""]


TABLE: Mapping[str, Parameter] = {item.name: _described(item) for item in fields(Parameters)}
"""Description of each field of `Parameters`, by its name."""
