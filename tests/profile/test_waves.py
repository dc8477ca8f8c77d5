"""Waveforms of the cycles around some samples."""

import re
import resource
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from spurtle.support.errors import PROFILE_FAILED
from spurtle_sim.cli import main
from spurtle_sim.cosim import waves
from tests.support.elf import EXIT, write_elf
from tests.support.profile_output import profile_records

LOOP = (0xD2820002, 0xF1000442, 0x54FFFFE1)  # x2 = 0x1000; LOOP: subs x2, x2, #1; b.ne LOOP
SAMPLES = (1 + 2 * 0x1000 + len(EXIT)) // 769


def profile(tmp_path: Path, *options: str, folder: str = "") -> int:
    program = write_elf(tmp_path / "program", [*LOOP, *EXIT])
    output = tmp_path / folder / "perf.data"
    return main(["profile", "--config", "minimal", "--check", "-o", str(output), *options, str(program)])


def changes(path: Path, name: str) -> Iterator[tuple[int, int]]:
    """Yield the times and the new values of a signal of one bit in a VCD file."""
    header, _, body = path.read_text().partition("$enddefinitions")
    found = re.search(rf"\$var wire +1 (\S+) {name} \$end", header)
    assert found, name
    time = 0
    for line in body.splitlines():
        if line.startswith("#"):
            time = int(line[1:])
        elif line[1:] == found[1]:
            yield time, int(line[0])


@pytest.mark.full
def test_the_cycles_of_the_samples_are_written(tmp_path: Path) -> None:
    path = tmp_path / "waves.vcd"
    assert profile(tmp_path) == 0
    plain = (tmp_path / "perf.data").read_bytes()
    path.touch(0o600)
    assert profile(tmp_path, "--waves", str(path), "--from", "3", "--to", "4") == 0
    assert path.stat().st_mode & 0o777 == 0o600, "a file that is replaced keeps its mode"
    assert (tmp_path / "perf.data").read_bytes() == plain, "the waveforms do not change the profile"
    clock = [*changes(path, "clk")]
    assert [time for time, _ in clock] == [*range(clock[0][0], clock[0][0] + len(clock))], "each half cycle is written"
    sampled = [time // 2 for time, value in changes(path, "sampling__sampled") if value]
    third, fourth = profile_records(tmp_path / "perf.data")[2:4]
    assert third.timestamp is not None and fourth.timestamp is not None
    assert len(sampled) == 2
    assert sampled[1] - sampled[0] == fourth.timestamp - third.timestamp
    # The file begins after the second sample was selected, about 769 cycles earlier, and ends with the fourth record.
    assert 700 < sampled[0] - clock[0][0] // 2 < 800
    assert 0 < clock[-1][0] // 2 - sampled[1] < 400
    written = [time // 2 for time, value in changes(path, "write__beat__valid") if value]
    assert len(written) == 3, "the records of the second, the third and the fourth sample"
    assert written[1] < sampled[1] < written[2]


@pytest.mark.full
def test_a_run_with_fewer_samples_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "waves.vcd"
    assert profile(tmp_path, "--waves", str(path), "--from", str(SAMPLES), "--to", "99") == 0
    assert f"spurtle: {path} ends with the run, which has {SAMPLES} samples\n" in capsys.readouterr().err
    assert sum(value for _, value in changes(path, "sampling__sampled")) == 1


@pytest.mark.full
def test_waveforms_that_cannot_be_written_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "waves.vcd"
    assert profile(tmp_path, "--waves", str(path)) == 0  # compiled before files are limited
    for each in tmp_path.iterdir():
        each.unlink()
    capsys.readouterr()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, before[1]))  # the file is longer
    try:
        assert profile(tmp_path, "--waves", str(path), "--to", str(SAMPLES)) == PROFILE_FAILED
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert capsys.readouterr().err.endswith("spurtle: cannot write the waveforms: File too large\n")
    assert [each.name for each in tmp_path.iterdir()] == ["program"]


@pytest.mark.full
def test_fst_files_are_written(tmp_path: Path) -> None:
    if not waves.can_compress():
        pytest.skip("the headers of zlib and LZ4 are not installed: apt-get install zlib1g-dev liblz4-dev")
    path = tmp_path / "waves.fst"
    assert profile(tmp_path, "--waves", str(path)) == 0
    assert path.stat().st_size > 1000


def test_fst_needs_two_libraries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(waves, "can_compress", lambda: False)
    assert profile(tmp_path, "--waves", str(tmp_path / "waves.fst")) == PROFILE_FAILED
    assert capsys.readouterr().err == (
        "spurtle: a file .fst needs the headers of zlib and LZ4, which are not installed: write .vcd, or install them "
        "(zlib1g-dev, liblz4-dev)\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["program"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--from", "2"), "--from must come with --waves, whose samples it selects"),
        (("--to", "2"), "--to must come with --waves, whose samples it selects"),
        (("--waves", "a.vcd", "--from", "0"), "--from must be a number of at least 1, not 0"),
        (("--waves", "a.vcd", "--from", "5", "--to", "4"), "--to must be a number of at least 5, not 4"),
        (("--waves", "a.wave"), "the name of a file of waveforms must end in .fst or .vcd, unlike a.wave"),
        (("--waves", "no/a.vcd"), "cannot write no/a.vcd: No such file or directory"),
    ],
)
def test_other_options_are_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tempfile.mkdtemp(dir=tmp_path))
    assert profile(tmp_path, *options) == PROFILE_FAILED
    assert capsys.readouterr().err == f"spurtle: {message}\n"
