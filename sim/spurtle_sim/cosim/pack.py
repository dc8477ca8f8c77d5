"""Values of the reference model as numbers on the SPU's ports, in the layouts of the gateware."""

from collections.abc import Callable, Iterator
from functools import cache
from operator import attrgetter
from typing import Any

from amaranth.hdl import Shape
from amaranth.lib import data

from spurtle.arch import PMBSR_EL1, REGISTERS
from spurtle.config import SPUConfig
from spurtle.gateware.sample import SampleLayout
from spurtle.interface.memory import FaultLayout, WriteFaultKind
from spurtle.interface.operation import OperationLayout
from spurtle.interface.pe_state import FineGrainedTrapsLayout, PEStateSignature

from ..model.buffer import Fault
from ..model.operation import Location, Operation, Sample
from ..model.pe import PEState
from ..model.records import saturate

__all__ = [
    "fault_bits",
    "operation_bits",
    "pe_bits",
    "pe_members",
    "sample_bits",
    "sample_words",
]

_Field = tuple[Callable[[Any], int | None], int, int]
"""Function that returns the value of a field of a layout, and the field's first bit and width."""


def operation_bits(config: SPUConfig, operation: Operation) -> int:
    """Return `operation` in `interface.operation.OperationLayout`.

    Raises
    ------
    ValueError
        If a number is too large for its field.
    """
    return _pack(_operation_fields(config), operation, 0)


def sample_bits(config: SPUConfig, sample: Sample, hidden: int = 0) -> int:
    """Return `sample` in `gateware.sample.SampleLayout`.

    Latencies saturate. Fields without a value, or with one that may not be collected, hold the low bits of `hidden`.

    Raises
    ------
    ValueError
        If a number is too large for its field.
    """
    return _pack(_sample_fields(config), sample, hidden)


def sample_words(config: SPUConfig) -> int:
    """Return the number of 32-bit words of a sample."""
    return -(-SampleLayout(config).size // 32)


def fault_bits(config: SPUConfig, address: int, fault: Fault | None) -> int:
    """Return `fault` of a record that begins at `address` in `interface.memory.FaultLayout`."""
    if fault is None:
        return 0
    flags = {flag: fault.flags >> PMBSR_EL1.fields[flag].lsb & 1 for flag in config.fault_flags}
    members = {
        "kind": WriteFaultKind[fault.kind.name],
        "fsc": fault.fsc,
        "word": (address % config.bus_bytes + fault.written) // config.bus_bytes,
        **({"external": fault.external} if config.external_aborts else {}),
        **flags,
    }
    return FaultLayout(config).const(members).as_bits()


def pe_members(config: SPUConfig, pe: PEState) -> dict[str, int]:
    """Return `pe` as the members of `interface.pe_state.PEStateSignature`.

    The member of a register of fine-grained traps has only the fields that the SPU uses.
    """
    members = {}
    for name, bits in pe_bits(config):
        value = getattr(pe, name)
        members[name] = value if bits is None else sum((value >> bit & 1) << index for index, bit in enumerate(bits))
    return members


@cache
def pe_bits(config: SPUConfig) -> list[tuple[str, list[int] | None]]:
    """Return the names of the members of `interface.pe_state.PEStateSignature`.

    A member of fine-grained traps also has the bit indices of its fields in their register; other members have None.
    """
    bits = {register.fine_grained.name: register.fine_grained.bit for register in REGISTERS if register.fine_grained}
    shapes = {name: member.shape for name, member in PEStateSignature(config).members.items()}
    return [
        (name, [bits[str(trap)] for trap, _ in shape] if isinstance(shape, FineGrainedTrapsLayout) else None)
        for name, shape in shapes.items()
    ]


def _pack(fields: list[_Field], value: Any, hidden: int) -> int:
    bits = 0
    for get, offset, width in fields:
        number = get(value)
        if number is None:
            number = hidden & (1 << width) - 1
        elif number >> width:
            raise ValueError(f"a field of {width} bits cannot hold {number!r}")
        bits |= number << offset
    return bits


def _numbers(shape: Any, path: tuple[str, ...] = (), offset: int = 0) -> Iterator[tuple[str, int, int]]:
    """Yield the dotted name, first bit and width of each number in a layout.

    The fields are computed once for each layout, because Amaranth's `const` would compute them again for each value.
    """
    try:
        members: Any = data.Layout.cast(shape)
    except TypeError:
        yield ".".join(path), offset, Shape.cast(shape).width
        return
    for name, field in members:
        yield from _numbers(field.shape, (*path, str(name)), offset + field.offset)


@cache
def _operation_fields(config: SPUConfig) -> list[_Field]:
    return [(attrgetter(name), offset, width) for name, offset, width in _numbers(OperationLayout(config))]


@cache
def _sample_fields(config: SPUConfig) -> list[_Field]:
    def get(name: str) -> Callable[[Sample], int | None]:
        if name in config.latencies:
            return lambda sample: saturate(config, getattr(sample, name))
        # The reference has None for a value that is absent or not collected. The ports have a bit that says so.
        if name == "previous.valid":
            return lambda sample: sample.previous_target is not None
        if name.startswith("previous."):
            part = name.removeprefix("previous.target.")
            return lambda sample: _part(sample.previous_target, part)
        if name.startswith("start.collect."):
            return _COLLECTED[name.removeprefix("start.collect.")]
        return attrgetter(name)

    return [(get(name), offset, width) for name, offset, width in _numbers(SampleLayout(config))]


def _part(location: Location | None, name: str) -> int | None:
    return None if location is None else getattr(location, name)


_COLLECTED: dict[str, Callable[[Sample], int]] = {
    "context_el1": lambda sample: sample.start.contextidr_el1 is not None,
    "context_el2": lambda sample: sample.start.contextidr_el2 is not None,
    "timestamp": lambda sample: sample.start.timestamp is not None,
    "pa": lambda sample: sample.start.collect_pa,
    "nv2_va": lambda sample: sample.start.collect_nv2_va,
}
