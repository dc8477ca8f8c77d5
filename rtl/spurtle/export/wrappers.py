"""Module without contents, and wrappers in Verilog and VHDL with a port for each field."""

from collections.abc import Iterable

from .banner import comment, title
from .macros import macro
from .pins import assignments, is_packed, pins, plain_name, structs
from .ports import Port, PortField
from .verilog import Verilog

__all__ = ["stub", "unpacked_verilog", "unpacked_vhdl"]


def stub(design: Verilog) -> str:
    """Return the module without contents, for synthesis as a black box."""
    lines = [
        *comment("//", title(design, "black box")),
        "(* blackbox, syn_black_box, black_box *)",
        f"module {design.module} (",
        *_verilog_ports((port.name, port.direction, port.width) for port in design.ports),
        ");",
        "endmodule",
    ]
    return "\n".join([*lines, ""])


def unpacked_verilog(design: Verilog) -> str:
    """Return a Verilog wrapper with a port for each field. It can be used directly or as an example."""
    lines = [
        *comment("//", title(design, "a wrapper with a port for each field")),
        f'`include "{design.module}.vh"',
        f"module {design.module}_unpacked (",
        *_verilog_ports((pin.name, pin.port.direction, pin.width) for pin in pins(design)),
        ");",
        *(f"    wire {_bits(port.width)}{port.name};" for port in structs(design)),
        *(
            f"    assign {target} = {source};"
            for target, source in assignments(design, lambda port, field: f"{port.name}[`{macro(design, port, field)}]")
        ),
        f"    {design.module} spu (",
        ",\n".join(f"        .{p.name}({p.name if is_packed(p) else plain_name(p.name)})" for p in design.ports),
        "    );",
        "endmodule",
    ]
    return "\n".join([*lines, ""])


def _verilog_ports(pins: Iterable[tuple[str, str, int]]) -> list[str]:
    """Return declarations of ports from names, directions and widths."""
    lines = [f"    {f'{direction}put':6} wire {_bits(width)}{name}," for name, direction, width in pins]
    return [*lines[:-1], lines[-1].removesuffix(",")]


def _bits(width: int) -> str:
    return f"[{width - 1}:0] " if width > 1 else ""


def unpacked_vhdl(design: Verilog) -> str:
    """Return a VHDL wrapper with a port for each field, a component declaration and a package of field ranges."""
    module = design.module
    connections = ((_extended(p.name), _extended(p.name) if is_packed(p) else plain_name(p.name)) for p in design.ports)
    uses = ["library ieee;", "use ieee.std_logic_1164.all;"]
    lines = [
        *comment("--", title(design, "a wrapper with a port for each field")),
        *uses,
        f"package {module}_fields is",
        *(f"    {_vhdl_field(port, field)}" for port in structs(design) for field in port.fields),
        f"    component {module} is",
        "        port (",
        *_vhdl_ports("            ", ((_extended(p.name), p.direction, p.width) for p in design.ports)),
        "        );",
        "    end component;",
        "end package;",
        "",
        *uses,
        f"use work.{module}_fields.all;",
        f"entity {module}_unpacked is",
        "    port (",
        *_vhdl_ports("        ", ((pin.name, pin.port.direction, pin.width) for pin in pins(design))),
        "    );",
        "end entity;",
        "",
        f"architecture wrapper of {module}_unpacked is",
        *(f"    signal {_extended(port.name)} : {_vhdl_type(port.width)};" for port in structs(design)),
        "begin",
        *(
            f"    {target} <= {source};"
            for target, source in assignments(
                design, lambda port, field: f"{_extended(port.name)}({_vhdl_name(port, field)})"
            )
        ),
        f"    spu : {module}",
        "        port map (",
        ",\n".join(f"            {port} => {signal}" for port, signal in connections),
        "        );",
        "end architecture;",
    ]
    return "\n".join([*lines, ""])


def _vhdl_name(port: Port, field: PortField) -> str:
    return f"{plain_name(port.name)}_{field.name}_bits"


def _vhdl_field(port: Port, field: PortField) -> str:
    name = _vhdl_name(port, field)
    if field.width == 1:
        return f"constant {name} : natural := {field.lsb};"
    return f"subtype {name} is natural range {field.lsb + field.width - 1} downto {field.lsb};"


def _vhdl_ports(indent: str, pins: Iterable[tuple[str, str, int]]) -> list[str]:
    lines = [f"{indent}{name} : {direction} {_vhdl_type(width)};" for name, direction, width in pins]
    return [*lines[:-1], lines[-1].removesuffix(";")]


def _vhdl_type(width: int) -> str:
    return f"std_logic_vector({width - 1} downto 0)" if width > 1 else "std_logic"


def _extended(name: str) -> str:
    return f"\\{name}\\" if "__" in name else name
