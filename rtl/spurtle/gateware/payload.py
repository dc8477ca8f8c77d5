"""Payloads of packets, built from their fields."""

from collections.abc import Mapping
from itertools import groupby

from amaranth.hdl import C, Cat, Value

from ..arch.fields import BitField
from ..arch.operation_types import Form

__all__ = ["pack_fields", "payload_of"]


def payload_of(form: Form, *, short: bool = False, **fields: Value) -> Value:
    """Return the payload of an Operation Type packet with these fields and zero in all others. Combinational.

    It has 8 bits. With `short` it ends with the last of the fields, and all bits above must be zero in the format:
    multiplexers between short payloads are smaller.

    Raises
    ------
    KeyError
        If the format has no such field.
    ValueError
        If a bit above the last field is one, with `short`.
    """
    sources: list[tuple[str, int]] = [("", form.value >> bit & 1) for bit in range(len(form.subclass))]
    for name in fields:
        for index, bit in enumerate(form.fields[name]):
            sources[bit] = name, index
    if short:
        sources = sources[: 1 + max(bit for name in fields for bit in form.fields[name])]
        if form.value >> len(sources):
            raise ValueError(f"{form.name} must be 0 from bit {len(sources)} up to be short, not {form.subclass}")
    parts: list[Value] = []
    # Each slice of an expression repeats its logic, so adjacent bits form one slice.
    for name, group in groupby(enumerate(sources), key=_part_key):
        indices = [index for _, (_, index) in group]
        if name[0]:
            parts.append(Value.cast(fields[name[0]])[indices[0] : indices[-1] + 1])
        else:
            parts.append(C(sum(bit << position for position, bit in enumerate(indices)), len(indices)))
    return Cat(parts)


def _part_key(source: tuple[int, tuple[str, int]]) -> tuple[str, int]:
    """Return a key that is equal for the bits of one part: constants, or consecutive bits of one field."""
    position, (name, index) = source
    return name, index - position if name else 0


def pack_fields(fields: Mapping[str, BitField], **values: Value) -> Value:
    """Return a value with these fields and zero elsewhere, up to the last field. Combinational.

    Each value has the width of its field.
    """
    parts: list[Value] = []
    end = 0
    for name, value in sorted(values.items(), key=lambda item: fields[item[0]].lsb):
        if fields[name].lsb > end:
            parts.append(C(0, fields[name].lsb - end))
        parts.append(value)
        end = fields[name].lsb + fields[name].width
    return Cat(parts)
