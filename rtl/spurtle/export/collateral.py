"""What goes to a designer beside the Verilog: ports as data, names and waivers, a stub, wrappers in Verilog and VHDL
that have a port for each field, a FuseSoC core file, and what to constrain.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version

from ..config import SPUConfig
from . import ipxact, regmap
from .ports import Port, PortField
from .verilog import LINT_WAIVERS, Verilog

__all__ = ["files"]

PERIOD_NS = 10
"""Of the clock in the constraint files: an example, which any FPGA of the last ten years meets."""

_MESSAGES = {"PROCASSINIT": "Procedural assignment to declaration with initial value*"}
"""Messages of rules that older releases of Verilator do not know: these refuse a waiver with the name of the rule."""


def files(config: SPUConfig, design: Verilog) -> dict[str, str]:
    """The whole product of a configuration: texts by the names of their files."""
    name = design.module
    texts = {
        f"{name}.v": design.text,
        f"{name}.vh": macros(config, design),
        f"{name}.vlt": waivers(design),
        f"{name}_stub.v": stub(design),
        f"{name}_unpacked.v": unpacked_verilog(design),
        f"{name}_unpacked.vhd": unpacked_vhdl(design),
        f"{name}_ports.json": port_list(config, design),
        f"{name}.h": regmap.header(config),
        f"{name}.svd": regmap.svd(config),
        **{f"{name}.{suffix}": text for suffix, text in constraints(design).items()},
    }
    texts[f"{name}.xml"] = ipxact.component(config, design)
    texts[f"{name}.core"] = core(config, design)
    return texts


def _title(design: Verilog, what: str) -> list[str]:
    return [
        f"Spurtle {version('spurtle')}: {what} of {design.module}",
        "SPDX-License-Identifier: Apache-2.0",
        f"Generated. Options: {design.options}",
    ]


def _comment(mark: str, lines: Iterable[str]) -> list[str]:
    return [f"{mark} {line}".rstrip() for line in lines]


# What every file below is made of: the pins of a wrapper, one for each field that is not a struct itself.


@dataclass(frozen=True)
class _Pin:
    """A pin of a wrapper: a port, or a field of one."""

    name: str
    port: Port
    field: PortField | None

    @property
    def width(self) -> int:
        return self.port.width if self.field is None else self.field.width


def _pins(design: Verilog) -> Iterator[_Pin]:
    for port in design.ports:
        name = _plain(port.name)
        if not _is_packed(port):
            yield _Pin(name, port, None)
            continue
        for field in port.fields:
            if not field.struct:
                yield _Pin(f"{name}_{field.name}", port, field)


def _is_packed(port: Port) -> bool:
    """Of one bit nothing can be selected."""
    return bool(port.fields) and port.width > 1


def _structs(design: Verilog) -> list[Port]:
    return [port for port in design.ports if _is_packed(port)]


def _assignments(design: Verilog, part: Callable[[Port, PortField], str]) -> Iterator[tuple[str, str]]:
    """Target and source of each assignment between a pin and its `part` of a port."""
    for pin in _pins(design):
        if pin.field is not None:
            inner = part(pin.port, pin.field)
            yield (pin.name, inner) if pin.port.direction == "out" else (inner, pin.name)


def _plain(name: str) -> str:
    """A name that VHDL takes as well: no two underscores in a row."""
    return name.replace("__", "_")


def _macro(design: Verilog, port: Port, field: PortField | None = None) -> str:
    names = [design.module, _plain(port.name), *([field.name] if field else [])]
    return "_".join(names).upper()


# Verilog.


def macros(config: SPUConfig, design: Verilog) -> str:
    """A macro for each field of a struct port and of a register, for a part-select; for the values that have a name;
    and for the encoding of each register, {op1, CRn, CRm, op2}.
    """
    guard = f"{design.module}_vh".upper()
    lines = [*_comment("//", _title(design, "names")), f"`ifndef {guard}", f"`define {guard}"]
    for port in design.ports:
        lines += _named(_macro(design, port), port.width, port.values)
        for field in port.fields:
            macro = _macro(design, port, field)
            lines.append(_part(macro, field.lsb, field.width))
            lines += _named(macro, field.width, field.values)
    for register in config.accessors:
        macro = f"{design.module}_{register.name}".upper()
        lines.append(f"`define {macro} 14'h{register.encoding:04x}")
        for name, field in regmap.fields(config, register).items():
            lines.append(_part(f"{macro}_{name.upper()}", field.lsb, field.width))
            values = ((value.name, int(value)) for value in regmap.values(config, register, field))
            lines += _named(f"{macro}_{name.upper()}", field.width, values)
    return "\n".join([*lines, "`endif", ""])


def _part(macro: str, lsb: int, width: int) -> str:
    return f"`define {macro} {lsb + width - 1}:{lsb}"


def _named(macro: str, width: int, values: Iterable[tuple[str, int]]) -> list[str]:
    return [f"`define {macro}_IS_{name} {width}'d{value}" for name, value in values]


def waivers(design: Verilog) -> str:
    """What Verilator is not to say of the Verilog, and why, for a command line with -Wall."""
    lines = ["`verilator_config", *_comment("//", _title(design, "waivers for Verilator"))]
    for rule, reason in LINT_WAIVERS.items():
        lines.append(f"// {rule}: {reason}.")
        if message := _MESSAGES.get(rule):
            lines.append(f'lint_off -file "*{design.module}.v" -match "{message}"')
        else:
            lines.append(f'lint_off -rule {rule} -file "*{design.module}.v"')
    lines += ["// The wrapper.", f'lint_off -rule TIMESCALEMOD -file "*{design.module}_unpacked.v"']
    return "\n".join([*lines, ""])


def _verilog_ports(pins: Iterable[tuple[str, str, int]]) -> list[str]:
    """Declarations from names, directions and widths."""
    lines = [f"    {f'{direction}put':6} wire {_bits(width)}{name}," for name, direction, width in pins]
    return [*lines[:-1], lines[-1].removesuffix(",")]


def _bits(width: int) -> str:
    return f"[{width - 1}:0] " if width > 1 else ""


def stub(design: Verilog) -> str:
    """The module without its contents, for a synthesis that is to take it as a black box."""
    lines = [
        *_comment("//", _title(design, "black box")),
        "(* blackbox, syn_black_box, black_box *)",
        f"module {design.module} (",
        *_verilog_ports((port.name, port.direction, port.width) for port in design.ports),
        ");",
        "endmodule",
    ]
    return "\n".join([*lines, ""])


def unpacked_verilog(design: Verilog) -> str:
    """A wrapper with a port for each field: it can be used as it is, or read as an example."""
    lines = [
        *_comment("//", _title(design, "a wrapper with a port for each field")),
        f'`include "{design.module}.vh"',
        f"module {design.module}_unpacked (",
        *_verilog_ports((pin.name, pin.port.direction, pin.width) for pin in _pins(design)),
        ");",
        *(f"    wire {_bits(port.width)}{port.name};" for port in _structs(design)),
        *(
            f"    assign {target} = {source};"
            for target, source in _assignments(
                design, lambda port, field: f"{port.name}[`{_macro(design, port, field)}]"
            )
        ),
        f"    {design.module} spu (",
        ",\n".join(f"        .{p.name}({p.name if _is_packed(p) else _plain(p.name)})" for p in design.ports),
        "    );",
        "endmodule",
    ]
    return "\n".join([*lines, ""])


# VHDL, for which the module's own names are extended identifiers.


def unpacked_vhdl(design: Verilog) -> str:
    """The same wrapper in VHDL, with a component declaration and a package of where the fields are."""
    module = design.module
    connections = ((_extended(p.name), _extended(p.name) if _is_packed(p) else _plain(p.name)) for p in design.ports)
    uses = ["library ieee;", "use ieee.std_logic_1164.all;"]
    lines = [
        *_comment("--", _title(design, "a wrapper with a port for each field")),
        *uses,
        f"package {module}_fields is",
        *(f"    {_vhdl_field(port, field)}" for port in _structs(design) for field in port.fields),
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
        *_vhdl_ports("        ", ((pin.name, pin.port.direction, pin.width) for pin in _pins(design))),
        "    );",
        "end entity;",
        "",
        f"architecture wrapper of {module}_unpacked is",
        *(f"    signal {_extended(port.name)} : {_vhdl_type(port.width)};" for port in _structs(design)),
        "begin",
        *(
            f"    {target} <= {source};"
            for target, source in _assignments(
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
    return f"{_plain(port.name)}_{field.name}_bits"


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


# For tools.


def port_list(config: SPUConfig, design: Verilog) -> str:
    """Ports and the fields in them as JSON."""
    content = {
        "spurtle": version("spurtle"),
        "module": design.module,
        "configuration": config.name,
        "options": design.options,
        "clock": "clk",
        "reset": {"port": design.reset.port, **asdict(design.reset)},
        "ports": [_port(port) for port in design.ports],
    }
    return json.dumps(content, indent=1) + "\n"


def _port(port: Port) -> dict[str, object]:
    described: dict[str, object] = {"name": port.name, "direction": port.direction, "width": port.width}
    if port.values:
        described["values"] = dict(port.values)
    if port.fields:
        described["fields"] = [
            {"name": field.name, "lsb": field.lsb, "width": field.width}
            | ({"values": dict(field.values)} if field.values else {})
            for field in port.fields
        ]
    return described


def core(config: SPUConfig, design: Verilog) -> str:
    """A FuseSoC core file (CAPI2) for what is in the folder. Each tool picks the types that it knows: with the flow API
    no flag has the name of the tool.
    """
    name = design.module
    return f"""\
CAPI=2:
# {" ".join(_title(design, "FuseSoC core"))}
name: spurtle:spe:{name}:{version("spurtle")}
description: Arm Statistical Profiling Unit (FEAT_SPE), configuration {config.name}

filesets:
  rtl:
    files:
      - {name}.v
      - {name}.vh: {{is_include_file: true}}
    file_type: verilogSource
  waivers:
    files:
      - {name}.vlt: {{file_type: vlt}}
  unpacked:
    files:
      - {name}_unpacked.v
    file_type: verilogSource
  constraints:
    files:
      - {name}.xdc: {{file_type: xdc}}

targets:
  default: &default
    filesets: [rtl, waivers, constraints]
  lint:
    <<: *default
    filesets: [rtl, waivers, unpacked]
    toplevel: {name}_unpacked
    flow: lint
    flow_options:
      tool: verilator
      verilator_options: [-Wall]
"""


def constraints(design: Verilog) -> dict[str, str]:
    """What to constrain, by the suffix of the file: for Synopsys' and AMD's tools, and for nextpnr and Diamond."""
    reset = design.reset
    note = [
        *_title(design, "constraints"),
        "",
        f"clk is the only clock; a period of {PERIOD_NS} ns is an example, put yours. No path takes more than a cycle,",
        "and none is false: all ports belong to clk, and what comes from another clock is synchronized before.",
        "Inside a design the ports need no constraint. If the SPU is the top, give them what the circuits on the",
        "other side take of the period: some outputs depend on inputs of the same cycle.",
    ]
    if reset.asynchronous:
        note.append(f"{reset.port} may begin at any time, and ends with clk: recovery and removal are to be checked.")
    delay = PERIOD_NS * 4 // 10
    inputs = "[remove_from_collection [all_inputs] [get_ports clk]]"
    sdc = [
        f"create_clock -name clk -period {PERIOD_NS} [get_ports clk]",
        f"set_input_delay -clock clk {delay} {inputs}",
        f"set_output_delay -clock clk {delay} [all_outputs]",
    ]
    xdc = [
        f"create_clock -name clk -period {PERIOD_NS} [get_ports clk]",
        "# In a design of your own use -scoped_to_ref, or leave the clock to the module that makes it.",
    ]
    lpf = [f'FREQUENCY PORT "clk" {1000 // PERIOD_NS} MHZ;']
    return {
        suffix: "\n".join([*_comment(mark, note), *lines, ""])
        for suffix, mark, lines in (("sdc", "#", sdc), ("xdc", "#", xdc), ("lpf", "#", lpf))
    }
