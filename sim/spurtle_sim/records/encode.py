"""Samples -> bytes of a Profiling Buffer, by the reference model."""

from collections.abc import Iterable

from spurtle.config import SPUConfig

from ..model import records
from ..model.operation import Sample

__all__ = ["encode"]


def encode(config: SPUConfig, samples: Iterable[Sample]) -> bytes:
    """Return the records of samples, one after the other, as an SPU of `config` writes them.

    Raises
    ------
    ValueError
        If the layout of `config` has no place for a packet of a sample.
    """
    return b"".join(records.encode(config, sample) for sample in samples)
