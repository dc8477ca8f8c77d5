"""Corrupt and truncated files."""

from collections.abc import Sequence
from random import Random

__all__ = ["corrupted"]


def corrupted(random: Random, complete: bytes, changes: Sequence[int]) -> bytes:
    """Return a file with some fields changed, after its first eight bytes, and perhaps cut off.

    `changes` has the possible numbers of changed fields.
    """
    data = bytearray(complete)
    for _ in range(random.choice(changes)):
        width = random.choice((1, 2, 8))
        offset = random.randrange(8, len(data) - width)
        data[offset : offset + width] = random.choice((random.randbytes(width), b"\xff" * width, bytes(width)))
    return bytes(data[: random.choice((len(data), random.randrange(len(data))))])
