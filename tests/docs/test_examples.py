"""The examples, run with the documented commands."""

import os
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from spurtle_sim.records.decode import decode_records
from spurtle_sim.records.json_object import to_json
from tests.support import verilator_releases
from tests.support.paths import ROOT
from tests.support.tiers import tiers

NEOVERSE_N1 = ROOT / "examples" / "neoverse_n1"
START, LOAD, BRANCH = 0x400000, 0x400014, 0x400030
"""Addresses of the first instruction, the load and the branch in the loop of the example core."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a copy of the example, so that its build is temporary."""
    copy = tmp_path / "neoverse_n1"
    shutil.copytree(NEOVERSE_N1, copy, ignore=shutil.ignore_patterns("spurtle", "simulation*", "*.bin", "*.log"))
    return copy


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Return a PATH with the commands of this machine, without those that README does not require.

    Python is only `python3`.
    """
    narrow = tmp_path / "bin"
    narrow.mkdir()
    for directory in os.environ["PATH"].split(os.pathsep):
        for command in Path(directory).glob("*"):
            link = narrow / command.name
            if command.name not in ("python", "perl", "verilator") and not link.is_symlink():
                link.symlink_to(command)
    return str(narrow)


@pytest.mark.parametrize(
    ("simulator", "release"),
    tiers(
        fast=[("icarus", None)],
        long=[("verilator", version) for version in (None, *verilator_releases.OLDER)],
    ),
)
def test_neoverse_n1_beside_a_core(simulator: str, release: str | None, folder: Path, path: str) -> None:
    if simulator == "icarus" and shutil.which("iverilog") is None:
        pytest.skip("Icarus Verilog (iverilog) is not installed")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "VERILATOR"))}
    environment["PATH"] = path
    command = ["make", "-C", folder, f"SIMULATOR={simulator}", f"VENV={NEOVERSE_N1.parents[1] / '.venv'}"]
    if release is not None:
        other = verilator_releases.require_release(release)
        environment |= other.environment
        command.append(f"VERILATOR={other.path}")
    result = folder / "buffer.bin"
    result.touch()
    os.utime(result, (2**31, 2**31))  # as if another simulator had just written it
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "64 records, 0 collisions, in buffer.bin" in run.stdout
    check(result.read_bytes())


def check(data: bytes) -> None:
    """Check that the records are 257 instructions apart in a loop of 13, with the facts of each instruction."""
    records = list(decode_records(data))
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
