"""The ports of a component as its Verilog has them: names, widths, and where the fields of a struct are."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import EnumMeta
from typing import Any

from amaranth.hdl import Shape
from amaranth.lib import data, wiring

__all__ = ["SYNCHRONOUS", "Port", "PortField", "Reset", "pin_name", "ports"]


@dataclass(frozen=True)
class Reset:
    """How a module is reset. An asynchronous reset begins without a clock; that it ends in time for an edge is the
    integrator's part.
    """

    asynchronous: bool = False
    active_low: bool = False

    @property
    def port(self) -> str:
        """Name of its port."""
        return "rst_n" if self.active_low else "rst"


SYNCHRONOUS = Reset()
"""Synchronous and active high, as the boards and the tests have it."""


@dataclass(frozen=True)
class PortField:
    """Bits of a port. `name` has the names of the structs that the field is in before its own, with underscores in
    between; `values` are those that have a name; a `struct` has fields of its own, which follow.
    """

    name: str
    lsb: int
    width: int
    values: tuple[tuple[str, int], ...] = ()
    struct: bool = False


@dataclass(frozen=True)
class Port:
    """A port of the module. `direction` is "in" or "out"; `fields` are those of a struct, LSB first, each struct in it
    before its own.
    """

    name: str
    direction: str
    width: int
    fields: tuple[PortField, ...] = ()
    values: tuple[tuple[str, int], ...] = ()


def ports(component: wiring.Component, reset: Reset = SYNCHRONOUS) -> tuple[Port, ...]:
    """The ports that `component` will have in Verilog: clock and reset, then those of its signature, by name."""
    clock = (Port("clk", "in", 1), Port(reset.port, "in", 1))
    members = component.signature.flatten(component)
    return clock + tuple(sorted((_port(path, member) for path, member, _ in members), key=lambda port: port.name))


def pin_name(path: tuple[str | int, ...]) -> str:
    """What Verilog calls a member of a signature."""
    return "__".join(str(part) for part in path)


def _port(path: tuple[str | int, ...], member: wiring.Member) -> Port:
    name = pin_name(path)
    direction = "in" if member.flow is wiring.In else "out"
    shape = member.shape
    return Port(name, direction, Shape.cast(shape).width, tuple(_fields(shape)), _values(shape))


def _fields(shape: object, prefix: str = "", offset: int = 0) -> Iterator[PortField]:
    try:
        layout: Any = data.Layout.cast(shape)
    except TypeError:
        return
    for name, field in layout:
        lsb = offset + field.offset
        inner = list(_fields(field.shape, f"{prefix}{name}_", lsb))
        yield PortField(f"{prefix}{name}", lsb, Shape.cast(field.shape).width, _values(field.shape), bool(inner))
        yield from inner


def _values(shape: object) -> tuple[tuple[str, int], ...]:
    if not isinstance(shape, EnumMeta):
        return ()
    members: Any = shape
    return tuple((member.name, member.value) for member in members)
