"""Everything that is proved, block by block in the order in which an operation meets them."""

from collections.abc import Iterator

from ..proof import Proof
from . import (
    access,
    aligner,
    buffer,
    bus,
    completion,
    control,
    filter,
    inflight,
    interval,
    leak,
    lfsr,
    record,
    registers,
    serializer,
    spu,
)

__all__ = ["all_proofs"]


def all_proofs() -> Iterator[Proof]:
    """Each proof, none of them started."""
    rooms = (registers, control, interval, lfsr, access, inflight, completion, filter, record, serializer, aligner)
    for room in (*rooms, buffer, spu, bus, leak):
        yield from room.proofs()
