"""All proofs, block by block, in the order in which an operation passes the blocks."""

from collections.abc import Iterator

from .buffer import aligner, buffer
from .control import control
from .engine.proof import Proof
from .inflight import inflight
from .record import completion, filter, record
from .registers import registers
from .sampling import access, forward, interval, lfsr
from .serializer import serializer
from .shell import apb4, axi4, responses
from .spu import leak, spu

__all__ = ["all_proofs"]


def all_proofs() -> Iterator[Proof]:
    """Yield all proofs. None of them has been run."""
    blocks = (registers, control, interval, forward, lfsr, access, inflight, completion, filter, record, serializer)
    for block in (*blocks, aligner, buffer, spu, axi4, responses, apb4, leak):
        yield from block.proofs()
