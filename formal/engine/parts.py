"""Parts of wires, selected by the field names of their shape."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Shape
from amaranth.lib import data

from .terms import BitVector, extract
from .transition import Wires

__all__ = ["Part", "layout_fields"]


def layout_fields(shape: Any) -> Mapping[str, Any]:
    """Return the fields of a structure, by name, each with a `shape`, an `offset` and a `width`."""
    return {str(name): field for name, field in _items(data.Layout.cast(shape))}


def _items(layout: Any) -> Iterator[tuple[str | int, Any]]:
    # Amaranth's annotations do not say that a layout is iterable.
    return iter(layout)


@dataclass(frozen=True)
class Part:
    """Bits of a wire: `part["field"]` selects one of its fields, `part(wires)` is its value in a cycle."""

    wire: str
    shape: Any
    lsb: int = 0

    @property
    def width(self) -> int:
        """Width in bits."""
        return Shape.cast(self.shape).width

    def __getitem__(self, name: str) -> "Part":
        field = layout_fields(self.shape)[name]
        return Part(self.wire, field.shape, self.lsb + field.offset)

    def fields(self) -> dict[str, "Part"]:
        """Return the fields of the part, by name."""
        return {name: self[name] for name in layout_fields(self.shape)}

    def __call__(self, wires: Wires) -> BitVector:
        return extract(self.lsb + self.width - 1, self.lsb, wires[self.wire])
