"""Pins of a wrapper: one for each field of a port that is not itself a struct."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .ports import Port, PortField
from .verilog import Verilog

__all__ = ["Pin", "assignments", "is_packed", "pins", "plain_name", "structs"]


@dataclass(frozen=True)
class Pin:
    """Pin of a wrapper: a port, or a field of a port."""

    name: str
    port: Port
    field: PortField | None

    @property
    def width(self) -> int:
        """Width in bits."""
        return self.port.width if self.field is None else self.field.width


def pins(design: Verilog) -> Iterator[Pin]:
    """Yield the pins of a wrapper in the order of the module's ports."""
    for port in design.ports:
        name = plain_name(port.name)
        if not is_packed(port):
            yield Pin(name, port, None)
            continue
        for field in port.fields:
            if not field.struct:
                yield Pin(f"{name}_{field.name}", port, field)


def is_packed(port: Port) -> bool:
    """Return whether a port is divided into pins. A port of one bit is not, because Verilog cannot select from it."""
    return bool(port.fields) and port.width > 1


def structs(design: Verilog) -> list[Port]:
    """Return the ports that are divided into pins."""
    return [port for port in design.ports if is_packed(port)]


def assignments(design: Verilog, part: Callable[[Port, PortField], str]) -> Iterator[tuple[str, str]]:
    """Yield target and source of each assignment between a pin and a field. `part` returns the select of a field."""
    for pin in pins(design):
        if pin.field is not None:
            inner = part(pin.port, pin.field)
            yield (pin.name, inner) if pin.port.direction == "out" else (inner, pin.name)


def plain_name(name: str) -> str:
    """Return a name that is also valid in VHDL, which allows no two adjacent underscores."""
    return name.replace("__", "_")
