"""The seed of all random tests. It differs from release to release; SPURTLE_SEED in the environment overrides it."""

import os
import zlib

import pytest

from spurtle.support.version import __version__

__all__ = ["SEED"]


def _seed() -> int:
    text = os.environ.get("SPURTLE_SEED")
    if text is None:
        return zlib.crc32(f"spurtle {__version__}".encode())
    try:
        seed = int(text)
    except ValueError:
        seed = -1
    if seed < 0:
        raise pytest.UsageError(f"SPURTLE_SEED must be a number of at least 0, not {text!r}")
    return seed


SEED = _seed()
