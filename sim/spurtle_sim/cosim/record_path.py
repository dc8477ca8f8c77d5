"""Compiled record path: encodes samples as records, without a Python call per cycle."""

import ctypes
from collections.abc import Sequence

from spurtle.config import SPUConfig

from ..model.operation import Sample
from ..native.library import load
from .compiled import GeneratedModel
from .pack import sample_bits, sample_words

__all__ = ["CompiledRecordPath"]


class CompiledRecordPath:
    """Compiled record path: the part of the SPU between its slots and its buffer.

    Parameters
    ----------
    config : SPUConfig

    Raises
    ------
    UserError
        If there is no C++ compiler, if it fails, or if the cache cannot be written.
    """

    def __init__(self, config: SPUConfig):
        self._config = config
        model = GeneratedModel(f"{config.module}_record_path", "record_path.cpp", "record_path", config)
        [self._library] = load([model])

    def encode(self, samples: Sequence[Sample]) -> list[bytes]:
        """Return the record of each sample."""
        size = 4 * sample_words(self._config)
        packed = b"".join(sample_bits(self._config, sample).to_bytes(size, "little") for sample in samples)
        space = self._config.max_record_bytes
        out = ctypes.create_string_buffer(space * len(samples))
        sizes = (ctypes.c_uint32 * len(samples))()
        self._library.record_path_encode(packed, ctypes.c_uint64(len(samples)), out, sizes)
        records = out.raw
        return [records[space * number : space * number + size] for number, size in enumerate(sizes)]
