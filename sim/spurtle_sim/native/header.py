"""C++ declarations that Python and C++ share: structs of numpy dtypes, and constants."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

__all__ = ["array", "constants", "enumeration", "struct"]


def struct(name: str, dtype: np.dtype[np.void]) -> str:
    """Return a struct with the members, offsets and size of `dtype`. All members are unsigned integers."""
    fields: list[tuple[str, tuple[Any, ...]]] = list((dtype.fields or {}).items())
    lines: list[str] = []
    end = 0
    for member, (subtype, offset, *_) in fields:
        lines += _padding(end, offset)
        dimensions = "".join(f"[{length}]" for length in subtype.shape)
        lines.append(f"    uint{8 * subtype.base.itemsize}_t {member}{dimensions};")
        end = offset + subtype.itemsize
    lines += _padding(end, dtype.itemsize)
    return "\n".join([f"struct {name} {{", *lines, "};", f"static_assert(sizeof({name}) == {dtype.itemsize});"])


def enumeration(name: str, type_: str, values: Mapping[str, int]) -> str:
    """Return a scoped enumeration. `type_` is its underlying C++ type."""
    return "\n".join([f"enum class {name} : {type_} {{", *(f"    {key} = {values[key]}," for key in values), "};"])


def constants(prefix: str, type_: str, values: Mapping[str, int]) -> str:
    """Return a constant of the C++ type `type_` for each of `values`, named `prefix` and the key in upper case."""
    return "\n".join(f"constexpr {type_} {prefix}{key.upper()} = {values[key]};" for key in values)


def array(name: str, type_: str, values: Sequence[int]) -> str:
    """Return a constant array of the C++ type `type_`."""
    return f"constexpr {type_} {name}[] = {{{', '.join(map(str, values))}}};"


def _padding(start: int, end: int) -> list[str]:
    """Return a named padding member, which C++ initializes, so that the bytes of a table are reproducible."""
    return [f"    uint8_t padding_{start}[{end - start}];"] if start < end else []
