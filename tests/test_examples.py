"""The examples, run as their reader runs them."""

import os
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
from tiers import tiers

from spurtle_sim import decode
from spurtle_sim.records_json import to_json

NEOVERSE_N1 = Path(__file__).parents[1] / "examples" / "neoverse_n1"
START, LOAD, BRANCH = 0x400000, 0x400014, 0x400030
"""Of the loop of the core there, and in it."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy, so that what is built there is gone afterwards."""
    copy = tmp_path / "neoverse_n1"
    shutil.copytree(NEOVERSE_N1, copy, ignore=shutil.ignore_patterns("spurtle", "simulation*", "*.bin", "*.log"))
    return copy


@pytest.mark.parametrize("simulator", tiers(fast=["icarus"], full=["verilator"]))
def test_neoverse_n1_beside_a_core(simulator: str, folder: Path) -> None:
    if simulator == "icarus" and shutil.which("iverilog") is None:
        pytest.skip("Icarus Verilog (iverilog) is not installed")
    bin_ = NEOVERSE_N1.parents[1] / ".venv" / "bin"
    tools = [f"SPURTLE={bin_ / 'spurtle'}", f"VERILATOR={bin_ / 'verilator-cli'}"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    command = ["make", "-C", str(folder), f"SIMULATOR={simulator}", *tools]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "64 records, 0 collisions, in buffer.bin" in run.stdout
    check((folder / "buffer.bin").read_bytes())


def check(data: bytes) -> None:
    """The records are those of the core: 257 instructions apart in a loop of 13, with what each of them does."""
    records = list(decode.records(data))
    assert len(records) == 64 and not any(record.problems for record in records)
    addresses = [record.pc.address for record in records if record.pc]
    steps = {(later - earlier) // 4 % 13 for earlier, later in pairwise(addresses)}
    assert steps == {257 % 13}
    kinds = {LOAD: "load", BRANCH: "branch"}
    for record, address in zip(map(to_json, records), addresses, strict=True):
        assert record["operation"]["kind"] == kinds.get(address, "other")
        assert record["context_el1"] == 42
        if address == LOAD:
            assert (record["issue"], record["translation"]) == (5, 3) and 21 <= record["total"] <= 36
        else:
            assert (record["issue"], record["total"]) == (2, 7)
        if address == BRANCH:
            taken = 6 not in record["events"]
            assert int(record["target"]["address"], 0) == (START if taken else BRANCH + 4)
    times = [record.timestamp for record in records]
    assert times == sorted(times)
