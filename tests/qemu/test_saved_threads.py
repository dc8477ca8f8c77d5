"""Saved operations of several threads: they are played as they were, with and without fast-forward."""

from collections import Counter
from pathlib import Path

import pytest

from spurtle_sim.cli import main
from spurtle_sim.emulator.elf import read_headers
from spurtle_sim.perf.process import PID
from spurtle_sim.perf.reader import read_perf_data
from spurtle_sim.qemu.find import Qemu
from tests.support.profile_output import profile_records
from tests.support.qemu import THREADS, compiled, needs_compiler, qemu_versions
from tests.support.tiers import tiers


@needs_compiler
@pytest.mark.parametrize("qemu", qemu_versions())
@pytest.mark.parametrize(
    ("config", "threads"), tiers(full=[("v1p4", 4)], long=[("neoverse_n1", 4), ("v1p4", 16), ("arm_model", 16)])
)
def test_played_threads_have_the_same_records(qemu: Qemu, config: str, threads: int, tmp_path: Path) -> None:
    """The order of threads differs from run to run. A file has one order."""
    program = compiled(tmp_path, THREADS, "-static")
    saved = str(tmp_path / "operations.parquet")
    options = ["--config", config, "--interval", "256", "--jitter"]
    outputs = [tmp_path / name for name in ("direct", "played", "forwarded")]
    runs = (
        ["--qemu", qemu.path, "--save-ops", saved, "-o", str(outputs[0]), str(program), str(threads)],
        ["--check", "--ops", saved, "-o", str(outputs[1])],
        ["--check", "--fast-forward", "--ops", saved, "-o", str(outputs[2])],
    )
    for arguments in runs:
        assert main(["profile", *options, *arguments]) == 0
    direct, played, forwarded = (Path(f"{output}.spe").read_bytes() for output in outputs)
    assert direct == played == forwarded
    assert outputs[1].read_bytes() == outputs[2].read_bytes()
    build_ids = [read_perf_data(output.read_bytes()).sideband.build_ids for output in outputs]
    assert build_ids == 3 * [{str(program): read_headers(program).build_id}]
    contexts = Counter(record.context_el1 for record in profile_records(outputs[1]))
    assert {*range(PID, PID + threads + 1)} == contexts.keys()
