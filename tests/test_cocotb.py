"""Run cocotb_spu.py on the Verilog of each configuration: in Verilator, and in Icarus Verilog where it is installed."""

import shutil
from collections.abc import Callable

import pytest
from simulator import run_icarus, run_verilator
from spu_bench import VARIANTS

from spurtle import verilog
from spurtle.config import CONFIGS

CYCLES = {
    **dict.fromkeys(("minimal", "neoverse_n1", "v1p4"), 20_000),
    **dict.fromkeys(("kunpeng_920", "lanes1_slots1_filters"), 10_000),
}
"""Of the runs that must have met everything; others are shorter."""

MANY_CYCLES = 50_000
"""Of the long tier, in which each run must have met everything."""


@pytest.mark.parametrize("config", VARIANTS)
def test_verilator(config: str) -> None:
    settings = {"SPURTLE_CONFIG": config, "SPURTLE_CYCLES": str(CYCLES.get(config, 2_500))}
    run_verilator(verilog.spu(VARIANTS[config]), "cocotb_spu", settings)


@pytest.mark.long
@pytest.mark.parametrize("config", VARIANTS)
def test_verilator_in_volume(config: str, record_property: Callable[[str, object], None]) -> None:
    settings = {"SPURTLE_CONFIG": config, "SPURTLE_CYCLES": str(MANY_CYCLES)}
    run_verilator(verilog.spu(VARIANTS[config]), "cocotb_spu", settings)
    record_property("cycles", MANY_CYCLES)


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="Icarus Verilog (iverilog) is not installed")
def test_icarus() -> None:
    settings = {"SPURTLE_CONFIG": "minimal", "SPURTLE_CYCLES": "8000"}
    run_icarus(verilog.spu(CONFIGS["minimal"]), "cocotb_spu", settings)
