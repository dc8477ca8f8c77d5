"""A sample as the RTL holds it, as the reference's sample."""

from dataclasses import replace
from functools import cached_property, partial
from types import SimpleNamespace
from typing import Any

import z3
from amaranth.lib import data

from spurtle.config import CONFIGS, SPUConfig
from spurtle.inflight import Sample
from spurtle.pe import Facts
from spurtle_sim.reference import records

__all__ = ["WIDEST", "alike", "bit", "meaningless", "promised", "sample_of"]

WIDEST = replace(
    CONFIGS["v1p4"],
    name="widest",
    events=frozenset({*range(16), *range(19, 24), *range(48, 64)}),
    events_bytes=8,
)
"""All features at once, and every event that there can be."""


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


def _facts_lsb(config: SPUConfig) -> int:
    operation = Sample(config)["operation"]
    return operation.offset + operation.shape["facts"].offset


def _facts(config: SPUConfig, sample: z3.BitVecRef) -> z3.BitVecRef:
    lsb = _facts_lsb(config)
    return z3.Extract(lsb + Facts.as_shape().size - 1, lsb, sample)


def promised(config: SPUConfig, sample: z3.BitVecRef) -> z3.BoolRef:
    """What `pe.Facts` promises: a branch that completes is neither load nor store, but for an access to the Guarded
    control stack.
    """
    facts = partial(bit, Facts, _facts(config, sample))
    branch = z3.And(facts("branch"), z3.Not(facts("exception")))
    guarded = facts("gcs") if config.gcs else z3.BoolVal(False)
    return z3.Implies(z3.And(branch, z3.Or(facts("load"), facts("store"))), guarded)


_FACTS = {
    "eft": ("vector", "floating_point"),
    "mops": ("memory_copy", "memory_set"),
    "gcs": ("gcs", "link_or_return"),
    "two_accesses": ("destination",),
}


def meaningless(config: SPUConfig) -> tuple[str, ...]:
    """Facts for which `config` has no feature."""
    return tuple(name for feature, names in _FACTS.items() if not getattr(config, feature) for name in names)


def alike(config: SPUConfig, one: z3.BitVecRef, other: z3.BitVecRef) -> z3.BoolRef:
    """The samples differ in meaningless facts at the most."""
    ignored = sum(1 << _facts_lsb(config) + Facts.as_shape()[name].offset for name in meaningless(config))
    return (one ^ other) & ~ignored == 0


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
