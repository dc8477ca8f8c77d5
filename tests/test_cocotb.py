"""Run cocotb_spu.py on the Verilog of each configuration: in Verilator, and in Icarus Verilog where it is installed."""

import shutil

import pytest
from simulator import run_icarus, run_verilator
from spu_bench import VARIANTS

from spurtle import verilog
from spurtle.config import CONFIGS

LONG = ("minimal", "neoverse_n1", "kunpeng_920", "v1p4", "lanes1_slots1_filters")
"""Configurations whose run is long enough for all that it has to meet."""


@pytest.mark.parametrize("config", VARIANTS)
def test_verilator(config: str, pytestconfig: pytest.Config) -> None:
    cycles = 20_000 if config in LONG else 3_000
    settings = {"SPURTLE_CONFIG": config, "SPURTLE_CYCLES": str(cycles)}
    run_verilator(verilog.spu(VARIANTS[config]), "cocotb_spu", settings, pytestconfig)


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="Icarus Verilog (iverilog) is not installed")
def test_icarus(pytestconfig: pytest.Config) -> None:
    settings = {"SPURTLE_CONFIG": "minimal", "SPURTLE_CYCLES": "8000"}
    run_icarus(verilog.spu(CONFIGS["minimal"]), "cocotb_spu", settings, pytestconfig)
