"""Part of a run that is profiled: its operations, its records, and the progress line."""

import io
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from spurtle.config import CONFIGS
from spurtle.support.errors import PROFILE_FAILED
from spurtle_sim.cli import main
from spurtle_sim.emulator.front_end import Batch
from spurtle_sim.profile.driver import Driver
from spurtle_sim.profile.options import Sampling
from spurtle_sim.profile.progress import Progress
from spurtle_sim.profile.window import Window
from tests.support.elf import EXIT, write_elf
from tests.support.paths import ROOT
from tests.support.profile_output import profile_records

LOOP = (0xD2900002, 0xF1000442, 0x54FFFFE1)  # x2 = 0x8000; LOOP: subs x2, x2, #1; b.ne LOOP
COUNT = 1 + 2 * 0x8000 + len(EXIT)


def profile(tmp_path: Path, *options: str) -> int:
    program = write_elf(tmp_path / "program", [*LOOP, *EXIT])
    return main(["profile", "--check", "-o", str(tmp_path / "perf.data"), *options, str(program)])


@pytest.mark.parametrize(
    ("options", "operations"),
    [
        ((), COUNT),
        (("--start-after", "50000"), COUNT - 50_000),
        (("--duration", "30000"), 30_000),
        (("--start-after", "30000", "--duration", "20000"), 20_000),
        (("--max-operations", "30001"), 30_001),
        (("--start-after", "20000", "--max-operations", "30000"), 10_000),
        (("--start-after", str(COUNT + 1)), 0),
    ],
)
def test_the_operations_of_the_window_are_profiled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], operations: int
) -> None:
    assert profile(tmp_path, *options) == 0
    assert f"\n{operations:,} operations in " in capsys.readouterr().err
    assert len(profile_records(tmp_path / "perf.data")) == operations // 769


def test_a_window_keeps_the_times_of_the_complete_run(tmp_path: Path) -> None:
    assert profile(tmp_path) == 0
    complete = {record.timestamp: record for record in profile_records(tmp_path / "perf.data")}
    start = 30 * 769
    assert profile(tmp_path, "--start-after", str(start), "--duration", str(20 * 769)) == 0
    records = profile_records(tmp_path / "perf.data")
    assert len(records) == 20
    times = [*complete]
    # The first sample of the window is operation 769 of it, which is sample 31 of the complete run.
    assert [record.timestamp for record in records] == times[30:50]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--start-after", "-1"), "--start-after must be a number of at least 0, not -1"),
        (("--duration", "0"), "--duration must be a number of at least 1, not 0"),
        (("--max-operations", "1e6"), "--max-operations must be a number of at least 1, not 1e6"),
        (("--start-after", "9", "--max-operations", "9"), "--start-after must be less than --max-operations, 9"),
    ],
)
def test_other_values_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], message: str
) -> None:
    assert profile(tmp_path, *options) == PROFILE_FAILED
    assert capsys.readouterr().err == f"spurtle: {message}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["program"]


def test_the_command_in_the_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs" / "howto" / "programs.md").read_text()
    block = re.search(r"```console\n\$ spurtle (profile --start-after .*)\n((?:.*\n)*?)```", page)
    assert block
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sim").symlink_to(ROOT / "sim")
    assert main(shlex.split(block[1])) == 0
    assert {*block[2].splitlines()} <= {*capsys.readouterr().err.splitlines()}


@pytest.mark.parametrize("field", ["start_after", "duration", "max_operations"])
def test_a_window_checks_its_arguments(field: str) -> None:
    with pytest.raises(ValueError, match=f"^{field} must be from "):
        Window(**{field: -1})


def test_windows_select_operations() -> None:
    window = Window(start_after=10, duration=5, max_operations=100)
    rows = np.arange(40)
    assert window.end == 15
    assert [part.tolist() for part in window.split(rows[:12], 0)] == [[*range(10)], [10, 11]]
    assert [part.tolist() for part in window.split(rows[12:], 12)] == [[], [12, 13, 14]]
    assert [part.tolist() for part in window.split(rows[20:], 20)] == [[], []]
    batches = window.batches(Batch(operations=rows + 40 * number) for number in range(9))
    assert [len(batch.operations) for batch in batches] == [40, 40, 20]


@pytest.mark.parametrize(
    ("total", "text"),
    [(None, "1,500,000 operations, 0.50 million/s, 0 samples, 3 s"), (3_000_000, "1,500,000 of 3,000,000 operations")],
)
def test_the_progress_has_the_rate(total: int | None, text: str) -> None:
    driver = Driver(CONFIGS["minimal"], Sampling(), context=0, check=False)
    progress = Progress(driver, total)
    progress.operations = 1_500_000
    console = Console(file=io.StringIO(), width=120, force_terminal=False)
    with console.capture() as shown:
        console.print(progress.line(3.0))
    assert text in shown.get()
    assert ("━" in shown.get()) == (total is not None)
