"""Sizes and latencies of the timing model."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import IntEnum, unique

from ..trace.instruction import InstructionKind

__all__ = ["LINE_SHIFT", "DataSource", "Parameters"]

LINE_SHIFT = 6
"""Log2 of the size of a cache line in bytes."""


@unique
class DataSource(IntEnum):
    """Data source of a load, with the codes of Arm Neoverse N1."""

    L1D = 0x0
    L2 = 0x8
    SYSTEM_CACHE = 0xB
    DRAM = 0xE


_CAN_BE_ZERO = {"redirect", "predictor_bits", "atomic", "l2_tlb", "walk"}


def _latencies() -> dict[InstructionKind, int]:
    return {
        InstructionKind.INTEGER: 1,
        InstructionKind.SHIFTED: 2,
        InstructionKind.MULTIPLY: 3,
        InstructionKind.DIVIDE: 12,
        InstructionKind.SIMD: 2,
        InstructionKind.SIMD_MULTIPLY: 4,
        InstructionKind.FP_ADD: 2,
        InstructionKind.FP_MULTIPLY: 3,
        InstructionKind.FP_FUSED: 4,
        InstructionKind.FP_DIVIDE: 10,
        InstructionKind.TRANSFER: 3,
        InstructionKind.BRANCH: 1,
        InstructionKind.CALL: 1,
        InstructionKind.RETURN: 1,
        InstructionKind.SYSTEM: 4,
        InstructionKind.MEMORY_BARRIER: 1,
        InstructionKind.SYNCHRONIZE: 1,
    }


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Sizes and latencies of the timing model. The defaults resemble a Neoverse N1.

    Latencies are in cycles. Sizes are in bytes if the name ends in `_bytes`, and otherwise in entries.

    Parameters
    ----------
    ops_per_cycle : int
        Maximum number of operations that dispatch in a cycle.
    latencies : dict of InstructionKind to int
        Latency from issue to result of each kind of instruction, except loads, stores and atomic operations.
    window, scheduler : int
        Maximum number of operations between dispatch and retirement, and between dispatch and issue. Dispatch stalls
        at the maximum.
    redirect : int
        Cycles from the end of a mispredicted branch, or of a SYNCHRONIZE operation, to the next dispatch.
    predictor_bits : int
        Log2 of the number of entries of the direction and target tables. It is also the number of bits of history.
    return_stack : int
        Number of entries of the stack of return addresses.
    l1d_bytes, l1d_ways, l2_bytes, l2_ways, system_cache_bytes, system_cache_ways : int
        Size and associativity of the caches. A line has 64 bytes.
    l1d, l2, system_cache, dram : int
        Latency of a load from issue to data, by data source, for a load that hits the first-level TLB.
    atomic : int
        Additional latency of an atomic operation that returns a value, compared with a load.
    tlb_entries, l2_tlb_entries, l2_tlb_ways : int
        Size of the first-level TLB, which is fully associative, and size and associativity of the second-level TLB.
    l2_tlb, walk : int
        Additional translation latency of an access that misses the first-level TLB and hits the second, and of an
        access that misses both (table walk).
    store : int
        Latency from issue until a store enters the store buffer, if the store buffer is not full.
    store_buffer : int
        Number of entries of the store buffer: stores that can wait for their cache line.
    store_overlap : int
        Number of refills for stores that proceed in parallel.

    Raises
    ------
    ValueError
        If a value is out of range, or the number of sets of a cache is not a power of two.
    """

    ops_per_cycle: int = 1
    latencies: Mapping[InstructionKind, int] = field(default_factory=_latencies)
    window: int = 128
    scheduler: int = 24
    redirect: int = 9
    predictor_bits: int = 12
    return_stack: int = 16
    l1d_bytes: int = 64 << 10
    l1d_ways: int = 4
    l2_bytes: int = 1 << 20
    l2_ways: int = 8
    system_cache_bytes: int = 8 << 20
    system_cache_ways: int = 16
    l1d: int = 4
    l2: int = 11
    system_cache: int = 38
    dram: int = 160
    atomic: int = 3
    tlb_entries: int = 48
    l2_tlb_entries: int = 1280
    l2_tlb_ways: int = 5
    l2_tlb: int = 5
    walk: int = 30
    store: int = 3
    store_buffer: int = 32
    store_overlap: int = 8

    def __post_init__(self) -> None:
        for name, value in self._numbers():
            minimum = 0 if name in _CAN_BE_ZERO else 1
            # These limits bound the memory of the tables. They also bound the sum of the latencies that delay one
            # operation, so that its cycles since dispatch fit in 32 bits.
            maximum = 24 if name == "predictor_bits" else 1 << 30 if name.endswith("_bytes") else 1 << 14
            if not minimum <= value <= maximum:
                raise ValueError(f"{name} must be {minimum} to {maximum}, not {value}")
        for name, entries, ways in (
            ("l1d", self.l1d_bytes >> LINE_SHIFT, self.l1d_ways),
            ("l2", self.l2_bytes >> LINE_SHIFT, self.l2_ways),
            ("system_cache", self.system_cache_bytes >> LINE_SHIFT, self.system_cache_ways),
            ("l2_tlb", self.l2_tlb_entries, self.l2_tlb_ways),
        ):
            if entries % ways or (entries // ways).bit_count() != 1:
                raise ValueError(f"{name}: entries / ways must be a power of two, not {entries} / {ways}")

    def _numbers(self) -> Iterator[tuple[str, int]]:
        yield from ((f"latency of {kind.name}", latency) for kind, latency in self.latencies.items())
        yield from ((item.name, getattr(self, item.name)) for item in fields(self) if item.name != "latencies")
