"""C++ declarations of what Python and C++ share: structs from numpy dtypes, and constants."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

__all__ = ["array", "constants", "enumeration", "struct"]


def struct(name: str, dtype: np.dtype[np.void]) -> str:
    """Return a struct with the members, offsets and size of `dtype`, whose numbers are unsigned."""
    fields: list[tuple[str, tuple[Any, ...]]] = list((dtype.fields or {}).items())
    lines: list[str] = []
    end = 0
    for member, (shape, offset, *_) in fields:
        lines += _padding(end, offset)
        dimensions = "".join(f"[{length}]" for length in shape.shape)
        lines.append(f"    uint{8 * shape.base.itemsize}_t {member}{dimensions};")
        end = offset + shape.itemsize
    lines += _padding(end, dtype.itemsize)
    return "\n".join([f"struct {name} {{", *lines, "};", f"static_assert(sizeof({name}) == {dtype.itemsize});"])


def enumeration(name: str, shape: str, values: Mapping[str, int]) -> str:
    """Return a scoped enumeration; `shape` is its C++ type."""
    return "\n".join([f"enum class {name} : {shape} {{", *(f"    {key} = {values[key]}," for key in values), "};"])


def constants(prefix: str, shape: str, values: Mapping[str, int]) -> str:
    """Return a constant of the C++ type `shape` for each of `values`, in upper case behind `prefix`."""
    return "\n".join(f"constexpr {shape} {prefix}{key.upper()} = {values[key]};" for key in values)


def array(name: str, shape: str, values: Sequence[int]) -> str:
    """Return a constant array of the C++ type `shape`."""
    return f"constexpr {shape} {name}[] = {{{', '.join(map(str, values))}}};"


def _padding(start: int, end: int) -> list[str]:
    """A named member: C++ then writes the padding, too, and a table is the same bytes each time."""
    return [f"    uint8_t padding_{start}[{end - start}];"] if start < end else []
