"""Parts of the core that the timing model moves: its sizes and latencies, its caches, its branch predictor."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, unique

from .classify import FACT, Kind

__all__ = ["Cache", "DataSource", "Parameters", "Predictor"]


@unique
class DataSource(IntEnum):
    """Where a load found its data: the codes of Arm Neoverse N1."""

    L1D = 0x0
    L2 = 0x8
    SYSTEM_CACHE = 0xB
    DRAM = 0xE


def _latencies() -> dict[Kind, int]:
    return {
        Kind.INTEGER: 1,
        Kind.SHIFTED: 2,
        Kind.MULTIPLY: 3,
        Kind.DIVIDE: 12,
        Kind.SIMD: 2,
        Kind.SIMD_MULTIPLY: 4,
        Kind.FP_ADD: 2,
        Kind.FP_MULTIPLY: 3,
        Kind.FP_FUSED: 4,
        Kind.FP_DIVIDE: 10,
        Kind.TRANSFER: 3,
        Kind.BRANCH: 1,
        Kind.CALL: 1,
        Kind.RETURN: 1,
        Kind.SYSTEM: 4,
        Kind.MEMORY_BARRIER: 1,
        Kind.SYNCHRONIZE: 1,
    }


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Sizes and latencies in cycles, entries, or bytes where the name says so. The defaults resemble a Neoverse N1.

    Parameters
    ----------
    ops_per_cycle : int
        Operations that dispatch in a cycle.
    latencies : dict of Kind to int
        From issue to result, of all but memory accesses.
    window, scheduler : int
        Operations between dispatch and retirement, and between dispatch and issue: a full one stalls dispatch.
    redirect : int
        From the end of a mispredicted branch to the next dispatch.
    predictor_bits, return_stack : int
        Size of the direction and target tables (log2 of their entries, and bits of history), and of the stack of return
        addresses.
    l1d_bytes, l1d_ways, l2_bytes, l2_ways, system_cache_bytes, system_cache_ways : int
        Caches; a line has 64 bytes.
    l1d, l2, system_cache, dram : int
        From issue to data, for a load that hits the first-level TLB.
    atomic : int
        What an atomic operation that returns a value takes longer than a load.
    tlb_entries, l2_tlb_entries, l2_tlb_ways : int
        First level (fully associative) and second level.
    l2_tlb, walk : int
        Wait for a translation that misses the first level, and for one that misses both.
    store : int
        From issue to the end of a store that finds room in the store buffer.
    store_buffer : int
        Stores that may wait for their cache line.
    store_overlap : int
        Refills for stores that proceed at the same time.
    """

    ops_per_cycle: int = 1
    latencies: Mapping[Kind, int] = field(default_factory=_latencies)
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


class Cache:
    """Which numbers (of lines or of pages) are there: sets of ways, least recently used replaced.

    Parameters
    ----------
    entries, ways : int
        The quotient, the number of sets, is a power of two.
    """

    def __init__(self, entries: int, ways: int) -> None:
        sets = entries // ways
        if sets * ways != entries or sets & (sets - 1):
            raise ValueError(f"entries / ways must be a power of two, not {entries} / {ways}")
        self.mask = sets - 1
        self.recent = [-1] * sets
        """The last one accessed in each set: looking here first spares most calls of `access`."""
        self._sets = [dict.fromkeys(range(-ways, 0)) for _ in range(sets)]  # least recently used first

    def access(self, number: int) -> bool:
        """Whether `number` was there; it is now."""
        index = number & self.mask
        ways = self._sets[index]
        hit = number in ways
        del ways[number if hit else next(iter(ways))]
        ways[number] = None
        self.recent[index] = number
        return hit


class Predictor:
    """Directions of conditional branches from two-bit counters, indirect targets from a table, returns from a stack.

    Both tables are indexed by the PC and the directions of the last conditional branches. Targets of direct branches
    are always right.

    Parameters
    ----------
    bits : int
        Log2 of the entries of each table; directions in the history.
    return_stack : int
        Calls that it remembers.
    """

    def __init__(self, bits: int, return_stack: int) -> None:
        self._mask = (1 << bits) - 1
        self._directions = [2] * (1 << bits)  # 2 and 3 predict taken
        self._targets = [0] * (1 << bits)
        self._returns: deque[int] = deque(maxlen=return_stack)
        self._history = 0

    def mispredicts(self, kind: Kind, pc: int, target: int, facts: int) -> bool:
        """Predict a branch of `kind`, and learn from where it went and from its `facts`."""
        index = (pc >> 2 ^ self._history) & self._mask
        wrong = False
        if facts & FACT["conditional"]:
            taken = facts & FACT["taken"] != 0
            counter = self._directions[index]
            wrong = (counter >= 2) != taken
            self._directions[index] = min(counter + 1, 3) if taken else max(counter - 1, 0)
            self._history = (self._history << 1 | taken) & self._mask
        elif kind is Kind.RETURN:
            wrong = not self._returns or self._returns.pop() != target
        elif facts & FACT["indirect"]:
            wrong = self._targets[index] != target
            self._targets[index] = target
        if kind is Kind.CALL:
            self._returns.append(pc + 4)
        return wrong
