"""Ports of a component in Verilog: names, widths, and fields of structs."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import EnumMeta
from typing import Any

from amaranth.hdl import Shape
from amaranth.lib import data, wiring

__all__ = ["SYNCHRONOUS", "Port", "PortField", "Reset", "pin_name", "ports"]


@dataclass(frozen=True)
class Reset:
    """Reset of a module.

    Parameters
    ----------
    asynchronous : bool
        The reset takes effect without a clock edge. The integrator deasserts it synchronously to the clock.
    active_low : bool
    """

    asynchronous: bool = False
    active_low: bool = False

    @property
    def port(self) -> str:
        """Name of the port."""
        return "rst_n" if self.active_low else "rst"


SYNCHRONOUS = Reset()
"""Synchronous reset, active high, as on the boards and in the tests."""


@dataclass(frozen=True)
class PortField:
    """Field of a port.

    Parameters
    ----------
    name : str
        Name of the field. The names of the structs that contain it precede it, separated by underscores.
    lsb, width : int
    values : tuple of tuple of str and int
        Named values.
    struct : bool
        The field is a struct. Its fields follow in `Port.fields`.
    """

    name: str
    lsb: int
    width: int
    values: tuple[tuple[str, int], ...] = ()
    struct: bool = False


@dataclass(frozen=True)
class Port:
    """Port of a module.

    Parameters
    ----------
    name : str
    direction : str
        "in" or "out".
    width : int
    fields : tuple of PortField
        Fields of a struct, LSB first. A nested struct precedes its fields.
    values : tuple of tuple of str and int
        Named values.
    """

    name: str
    direction: str
    width: int
    fields: tuple[PortField, ...] = ()
    values: tuple[tuple[str, int], ...] = ()


def ports(component: wiring.Component, reset: Reset = SYNCHRONOUS) -> tuple[Port, ...]:
    """Return the ports of `component` in Verilog: clock and reset, then those of its signature, sorted by name."""
    clock = (Port("clk", "in", 1), Port(reset.port, "in", 1))
    members = component.signature.flatten(component)
    return clock + tuple(sorted((_port(path, member) for path, member, _ in members), key=lambda port: port.name))


def pin_name(path: tuple[str | int, ...]) -> str:
    """Return the name of a member of a signature in Verilog."""
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
