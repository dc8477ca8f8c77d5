"""Conversion of the packed samples of the RTL to samples of the reference model."""

from dataclasses import replace
from functools import cached_property
from types import SimpleNamespace
from typing import Any

from amaranth.lib import data

from configurations import EVERY_EVENT
from spurtle.arch import PMSVer
from spurtle.config import CONFIGS, SPUConfig
from spurtle.config.record_layouts import V1P4, Packet, RecordField, RecordLayout
from spurtle.gateware.sample import SampleLayout
from spurtle.interface.operation import FactsLayout
from spurtle_sim.model.operation import Facts, Location, Operation, Vectors

from ..engine.parts import Part, layout_fields
from ..engine.terms import BitVector, Boolean, any_of

__all__ = ["WIDEST", "Samples", "equivalent", "sample_contract", "unimplemented_facts"]

_EVERY_PACKET = RecordLayout(
    (*V1P4.fields, RecordField(((Packet.IMP_COUNTER,),)), RecordField(((Packet.IMP_ADDRESS,),))),
    V1P4.align,
    V1P4.max_size,
)

WIDEST = replace(
    CONFIGS["v1p4"],
    name="widest",
    layout=_EVERY_PACKET,
    pbt_of_all=True,
    imp_counter=16,
    imp_address=7,
    events=EVERY_EVENT,
    events_bytes=8,
)
"""Configuration with all features, every packet, and every event."""


def _unpack(shape: Any, value: int) -> Any:
    """Return the fields of a packed structure, nested structures included."""
    if isinstance(shape, type) and issubclass(shape, data.Struct):
        shape = shape.as_shape()
    if not isinstance(shape, data.Layout):
        return value
    return SimpleNamespace(
        **{
            name: _unpack(field.shape, (value >> field.offset) & ((1 << field.width) - 1))
            for name, field in layout_fields(shape).items()
        }
    )


class _Start:
    """Lazy `operation.Start`: an optional member that is never read adds no path."""

    def __init__(self, packed: Any):
        self._packed = packed
        self.el = packed.el
        self.ns = packed.ns
        self.nse = getattr(packed, "nse", 0)
        self.collect_pa = packed.collect.pa
        self.collect_nv2_va = packed.collect.nv2_va

    @cached_property
    def contextidr_el1(self) -> int | None:
        return self._packed.contextidr_el1 if self._packed.collect.context_el1 else None

    @cached_property
    def contextidr_el2(self) -> int | None:
        return self._packed.contextidr_el2 if self._packed.collect.context_el2 else None

    @cached_property
    def timestamp(self) -> int | None:
        return self._packed.timestamp if self._packed.collect.timestamp else None


class _Sample:
    """Lazy `operation.Sample`."""

    def __init__(self, config: SPUConfig, packed: Any, operation: Any, location: Any):
        self.start = _Start(packed.start)
        self.operation = operation
        for name in config.latencies:
            setattr(self, name, getattr(packed, name))
        self._packed = packed
        self._location = location

    @cached_property
    def previous_target(self) -> Any:
        previous = self._packed.previous
        return self._location(**vars(previous.target)) if previous.valid else None


class Samples:
    """Conversion of a packed `SampleLayout` to a sample of the reference model.

    It is called on each path with the same sample, so the fields are unpacked once.
    """

    def __init__(self, config: SPUConfig):
        self._config = config
        self._packed: int | None = None
        self._unpacked: Any = None
        self._operation: Any = None

    def __call__(self, packed: int) -> Any:
        """Return a sample whose optional members have not been read."""
        if packed is not self._packed:
            self._packed = packed
            self._unpacked = _unpack(SampleLayout(self._config), packed)
            operation = vars(self._unpacked.operation)
            parts = {
                "facts": Facts,
                "target": Location,
                "vectors": Vectors,
            }
            parts = {name: part(**vars(operation[name])) for name, part in parts.items() if name in operation}
            self._operation = Operation(**operation | parts)
        return _Sample(self._config, self._unpacked, self._operation, Location)


def sample_contract(config: SPUConfig, sample: BitVector) -> Boolean:
    """Return the contract of a sample: CONTEXTIDR_EL2 is collected only if the record has a field for it.

    `ProfilingControl` guarantees it.
    """
    collected = Part("sample", SampleLayout(config))["start"]["collect"]["context_el2"]
    return any_of(
        Packet.CONTEXT_EL2 in config.layout.packets,
        collected({"sample": sample}) == 0,
    )


def unimplemented_facts(config: SPUConfig) -> tuple[str, ...]:
    """Return the names of the facts that belong to features which `config` does not implement."""
    implemented = {
        "unspecified": config.version >= PMSVer.SPE_V1P1 or config.fpf,
        "allocation_tag": config.mte and config.version >= PMSVer.SPE_V1P3,
        "nv2": config.nv2,
        "memory_copy": config.mops,
        "memory_set": config.mops,
        "gcs": config.gcs,
        "vector": config.eft or config.fpf,
        "floating_point": config.eft or config.fpf or config.scalable,
        "link": config.crr or config.gcs,
        "procedure_return": config.crr or config.gcs,
        "asynchronous": config.spe_sme or config.altclk,
        "data_source_valid": config.data_source_bytes,
        "destination": config.two_accesses,
        "imp_counter_valid": config.imp_counter,
        "imp_address_valid": config.imp_address,
    }
    return tuple(name for name, feature in implemented.items() if not feature)


def equivalent(config: SPUConfig, one: BitVector, other: BitVector) -> Boolean:
    """Return whether the samples differ at most in facts of unimplemented features."""
    operation = SampleLayout(config)["operation"]
    lsb = operation.offset + operation.shape["facts"].offset
    ignored = sum(1 << lsb + FactsLayout.as_shape()[name].offset for name in unimplemented_facts(config))
    return (one ^ other) & ~ignored == 0
