"""Runs of cocotb_spu.py on the Verilog of each configuration, in Verilator and, if installed, in Icarus Verilog."""

import shutil
from collections.abc import Callable

import pytest

from configurations import FOR_SPUS
from spurtle.config import CONFIGS
from spurtle.export import verilog
from tests.support.simulator import run_icarus, run_verilator
from tests.support.tiers import tiers

CYCLES = {"minimal": 10_000}
"""Cycles of the runs of the full tier that must reach all coverage goals; the other runs are shorter."""

LARGE = (
    "lanes5_slots8", "lanes2_slots1_ernd", "lanes1_slots3_ernd", "unnamed", "unnamed_v1p1", "unnamed_packed",
    "lanes1_slots1_filters", "kunpeng_920", "hisilicon_mobile", "arm_model",
)  # fmt: skip
"""Configurations that only the long tier runs: they take longest to compile or to reach the coverage goals."""

MANY_CYCLES = 50_000
"""Cycles of the runs of the long tier, each of which must reach all coverage goals."""


@pytest.mark.parametrize(
    ("config", "cycles"),
    tiers(
        fast=[("neoverse_n1", 1_000)],
        full=[(config, CYCLES.get(config, 2_500)) for config in FOR_SPUS if config not in LARGE],
        long=[(config, MANY_CYCLES) for config in FOR_SPUS],
    ),
)
def test_verilator(config: str, cycles: int, record_property: Callable[[str, object], None]) -> None:
    settings = {"SPURTLE_CONFIG": config, "SPURTLE_CYCLES": str(cycles)}
    run_verilator(verilog.spu(FOR_SPUS[config]), "tests.support.cocotb_spu", settings)
    record_property("cycles", cycles)


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="Icarus Verilog (iverilog) is not installed")
@pytest.mark.parametrize("cycles", tiers(fast=[1_000], full=[8_000]))
def test_icarus(cycles: int) -> None:
    settings = {"SPURTLE_CONFIG": "minimal", "SPURTLE_CYCLES": str(cycles)}
    run_icarus(verilog.spu(CONFIGS["minimal"]), "tests.support.cocotb_spu", settings)
