"""Everything that is proved, block by block in the order in which an operation meets them."""

from collections.abc import Iterator

from ..proof import Proof
from . import access, buffer, completion, filter, inflight, interval, lfsr, record, serializer, spu

__all__ = ["all_proofs"]


def all_proofs() -> Iterator[Proof]:
    """Each proof, none of them started."""
    for room in (interval, lfsr, access, inflight, completion, filter, record, serializer, buffer, spu):
        yield from room.proofs()
