"""Bits of the Events packet (D18.2.6)."""

# Ref: DDI0487 M.a, D18.2.6.

from enum import IntEnum, unique

__all__ = ["Event"]


@unique
class Event(IntEnum):
    """Bit numbers of the Events packet (D18.2.6)."""

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
