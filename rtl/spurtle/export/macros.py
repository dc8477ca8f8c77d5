"""Verilog macros for fields and values of ports and registers."""

from collections.abc import Iterable

from ..arch import ENCODING_BITS
from ..config import SPUConfig
from ..interface.sysreg import ACCESS_LATENCY
from ..support.version import INTERFACE_VERSION
from . import regmap
from .banner import comment, title
from .pins import plain_name
from .ports import Port, PortField
from .verilog import Verilog

__all__ = ["macro", "macros"]


def macros(config: SPUConfig, design: Verilog) -> str:
    """Return a Verilog header with macros.

    There is a macro for the interface version, for the part-select of each field of a struct port and of a register,
    for each named value, and for the encoding of each register, {op1, CRn, CRm, op2}. With the port `sysreg` there is
    one for its latency.
    """
    guard = f"{design.module}_vh".upper()
    lines = [*comment("//", title(design, "macros")), f"`ifndef {guard}", f"`define {guard}"]
    lines.append(f"`define {design.module.upper()}_INTERFACE_VERSION {INTERFACE_VERSION}")
    for port in design.ports:
        lines += _named(macro(design, port), port.width, port.values)
        for field in port.fields:
            name = macro(design, port, field)
            lines.append(_part(name, field.lsb, field.width))
            lines += _named(name, field.width, field.values)
    if any(port.name == "sysreg__valid" for port in design.ports):
        lines.append(f"`define {design.module.upper()}_SYSREG_LATENCY {ACCESS_LATENCY}")
    for register in config.accessors:
        prefix = f"{design.module}_{register.name}".upper()
        lines.append(f"`define {prefix} {ENCODING_BITS}'h{register.encoding:04x}")
        for field_name, field in regmap.fields(config, register).items():
            name = f"{prefix}_{field_name.upper()}"
            lines.append(_part(name, field.lsb, field.width))
            values = ((value.name, int(value)) for value in regmap.values(config, register, field))
            lines += _named(name, field.width, values)
    return "\n".join([*lines, "`endif", ""])


def macro(design: Verilog, port: Port, field: PortField | None = None) -> str:
    """Return the name of the macro for a port or for a field of the port."""
    names = [design.module, plain_name(port.name), *([field.name] if field else [])]
    return "_".join(names).upper()


def _part(macro: str, lsb: int, width: int) -> str:
    return f"`define {macro} {lsb + width - 1}:{lsb}"


def _named(macro: str, width: int, values: Iterable[tuple[str, int]]) -> list[str]:
    return [f"`define {macro}_IS_{name} {width}'d{value}" for name, value in values]
