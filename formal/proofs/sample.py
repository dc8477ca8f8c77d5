"""A sample as the RTL holds it, as the reference's sample."""

from functools import cached_property
from types import SimpleNamespace
from typing import Any

import z3
from amaranth.lib import data

from spurtle.config import SPUConfig
from spurtle.inflight import Sample
from spurtle_sim.reference import records

__all__ = ["bit", "sample_of"]


def _unpack(shape: Any, value: int) -> Any:
    """The fields of a packed structure, those that are structures themselves included."""
    if isinstance(shape, type) and issubclass(shape, data.Struct):
        shape = shape.as_shape()
    if not isinstance(shape, data.Layout):
        return value
    fields = {
        str(name): _unpack(field.shape, (value >> field.offset) & ((1 << field.width) - 1)) for name, field in shape
    }
    return SimpleNamespace(**fields)


class _Start:
    """`records.Start` for a function that may ask for some of it only: what it does not ask for forks no path."""

    def __init__(self, packed: Any):
        self._packed = packed
        self.el = packed.el
        self.ns = packed.ns
        self.collect_pa = packed.collect.pa

    @cached_property
    def contextidr_el1(self) -> int | None:
        return self._packed.contextidr_el1 if self._packed.collect.context_el1 else None

    @cached_property
    def contextidr_el2(self) -> int | None:
        return self._packed.contextidr_el2 if self._packed.collect.context_el2 else None

    @cached_property
    def timestamp(self) -> int | None:
        return self._packed.timestamp if self._packed.collect.timestamp else None


def bit(struct: type[data.Struct], packed: z3.BitVecRef, name: str) -> z3.BoolRef:
    """The member `name`, of one bit, is one."""
    offset = struct.as_shape()[name].offset
    return z3.Extract(offset, offset, packed) == 1


def sample_of(config: SPUConfig, packed: int, reference: Any = records) -> Any:
    """What `packed`, a `spurtle.inflight.Sample`, is to `reference`, an instance of `spurtle_sim.reference.records`."""
    sample = _unpack(Sample(config), packed)
    operation = vars(sample.operation) | {
        "facts": reference.Facts(**vars(sample.operation.facts)),
        "target": reference.Location(**vars(sample.operation.target)),
    }
    return reference.Sample(
        start=_Start(sample.start),
        operation=reference.Operation(**operation),
        total=sample.total,
        issue=sample.issue,
        translation=sample.translation,
    )
