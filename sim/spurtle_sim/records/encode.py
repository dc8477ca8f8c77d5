"""Encoder of samples as the bytes of a Profiling Buffer, by the reference model."""

from collections.abc import Iterable

from spurtle.config import SPUConfig, check_config
from spurtle.support.arguments import check_type

from ..model import records
from ..model.operation import Sample

__all__ = ["encode"]


def encode(config: SPUConfig, samples: Iterable[Sample]) -> bytes:
    """Return the bytes of the records that an SPU of `config` writes for samples, in order.

    Raises
    ------
    TypeError
        If `config` is not an `SPUConfig`, or one of the samples is not a `Sample`.
    ValueError
        If the record layout of `config` has no field for a packet of a sample.
    """
    check_config(config)
    encoded = bytearray()
    for sample in samples:
        check_type("a sample", sample, Sample)
        encoded += records.encode(config, sample)
    return bytes(encoded)
