"""Profile in the format of pprof, which `go tool pprof` and many viewers read: a compressed protocol buffer.

Ref: https://github.com/google/pprof/blob/main/proto/profile.proto; Protocol Buffers, encoding.
"""

import gzip
from collections.abc import Sequence

import numpy as np

from .reading import Profile
from .tables import utf8

__all__ = ["pprof"]

_VARINT, _BYTES = 0, 2
# Numbers of the fields of Profile, ValueType, Sample, Location, Line and Function.
_SAMPLE_TYPE, _SAMPLE, _LOCATION, _FUNCTION, _STRINGS, _DEFAULT = 1, 2, 4, 5, 6, 14
_TYPE, _UNIT = 1, 2
_LOCATION_IDS, _VALUES = 1, 2
_ID, _ADDRESS, _LINE = 1, 3, 4
_FUNCTION_ID, _LINE_NUMBER = 1, 2
_NAME, _SYSTEM_NAME, _FILE = 2, 3, 4


class _Strings:
    """Table of strings. The first one is empty."""

    def __init__(self) -> None:
        self._numbers = {"": 0}

    def number(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers))

    def encoded(self) -> bytes:
        return b"".join(_bytes(_STRINGS, utf8(text).encode()) for text in self._numbers)


def pprof(profile: Profile) -> bytes:
    """Return the samples and their total latencies by instruction, with functions and lines."""
    strings = _Strings()
    types = [("samples", "count"), ("latency", "cycles")]
    content = b"".join(
        _bytes(_SAMPLE_TYPE, _integer(_TYPE, strings.number(name)) + _integer(_UNIT, strings.number(unit)))
        for name, unit in types
    )
    counts = np.bincount(profile.place, minlength=len(profile.places)).tolist()
    cycles = np.bincount(profile.place, profile.columns.total, minlength=len(profile.places)).astype(int).tolist()
    functions: dict[tuple[str, str, str], int] = {}
    for number, place in enumerate(profile.places, 1):
        file, line = place.source or ("", 0)
        function = functions.setdefault((place.function, place.symbol, file), len(functions) + 1)
        values = [counts[number - 1], cycles[number - 1]]
        content += _bytes(_SAMPLE, _packed(_LOCATION_IDS, [number]) + _packed(_VALUES, values))
        at = _integer(_FUNCTION_ID, function) + _integer(_LINE_NUMBER, line)
        content += _bytes(_LOCATION, _integer(_ID, number) + _integer(_ADDRESS, place.address) + _bytes(_LINE, at))
    for (name, symbol, file), number in functions.items():
        named = _integer(_NAME, strings.number(name)) + _integer(_SYSTEM_NAME, strings.number(symbol))
        content += _bytes(_FUNCTION, _integer(_ID, number) + named + _integer(_FILE, strings.number(file)))
    content += _integer(_DEFAULT, strings.number("samples"))
    return gzip.compress(content + strings.encoded(), mtime=0)


def _varint(value: int) -> bytes:
    octets = bytearray()
    while value > 0x7F:
        octets.append(value & 0x7F | 0x80)
        value >>= 7
    octets.append(value)
    return bytes(octets)


def _integer(field: int, value: int) -> bytes:
    return _varint(field << 3 | _VARINT) + _varint(value)


def _bytes(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | _BYTES) + _varint(len(content)) + content


def _packed(field: int, values: Sequence[int]) -> bytes:
    return _bytes(field, b"".join(map(_varint, values)))
