"""End of `spurtle profile`: the profile is written after every end of the program, which sets the exit status."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from signal import SIG_IGN, SIGABRT, SIGBUS, SIGILL, SIGINT, SIGSEGV, SIGTERM, SIGTRAP, Signals, signal
from typing import Any

import pytest

from spurtle_sim.cli import main
from spurtle_sim.profile.scoreboard import Checker
from tests.support.elf import EXIT, write_elf
from tests.support.profile_output import profile_records
from tests.support.tiers import tiers

COUNT = (0xD2A00042, 0xF1000442, 0x54FFFFE1)  # x2 = 0x20000; LOOP: subs x2, x2, #1; b.ne LOOP
SAMPLES = 2 * 0x20000 // 769
ENDLESS = 0x14000000  # b .
SAY = (0xD2800020, 0xD2A00821, 0xD2800022, 0xD2800808, 0xD4000001)  # write(1, DATA, 1)
KILL = (0xD2800000, 0xD28000C1, 0xD2801028, 0xD4000001)  # kill(0, SIGABRT)


def check_profile(output: Path, samples: int) -> None:
    """Check that the two files exist, that there are no others, and that the records are complete."""
    found = profile_records(output)
    assert len(found) >= samples
    assert not any(record.problems for record in found)
    assert output.read_bytes().startswith(b"PERFILE2")
    assert {path.name for path in output.parent.iterdir()} == {"perf.data", "perf.data.spe", "perf.data.exact.json"}


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        (EXIT, 0, ""),
        ([0xD2800B20, *EXIT], 89, ""),
        ([0xD2800040, *EXIT], 2, ""),
        ([0xD2800021, 0xF9400020], 128 + SIGSEGV, "read from 0x1 (8 bytes) is not permitted (SIGSEGV)"),
        ([0xD2A00801, 0x91000821, 0xD61F0020], 128 + SIGBUS, "PC is not a multiple of 4 (SIGBUS)"),
        ([0xD4200000], 128 + SIGTRAP, "breakpoint (SIGTRAP)"),
        ([0x00000000], 128 + SIGILL, "unsupported instruction: "),
        ([0xA5400000], 128 + SIGILL, "unsupported instruction: "),
        (KILL, 128 + SIGABRT, ""),
    ],
)
def test_the_profile_is_written(
    words: Sequence[int], status: int, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = write_elf(tmp_path / "program", [*COUNT, *words])
    output = tmp_path / "out" / "perf.data"
    output.parent.mkdir()
    assert main(["profile", "--check", "-o", str(output), str(program)]) == status
    check_profile(output, SAMPLES)
    lines = capsys.readouterr().err.splitlines()
    assert any(line.startswith(f"{SAMPLES} sampled, ") for line in lines)
    assert any(", each one checked: " in line for line in lines)
    if sentence:
        assert lines[-1].startswith("spurtle: program crashed at PC 0x") and sentence in lines[-1]
    else:
        assert any(line.startswith("next: ") for line in lines)


def test_a_crash_before_the_first_sample(tmp_path: Path) -> None:
    output = tmp_path / "out" / "perf.data"
    output.parent.mkdir()
    assert main(["profile", "-o", str(output), str(write_elf(tmp_path / "program", [0]))]) == 128 + SIGILL
    check_profile(output, 0)


@pytest.mark.parametrize("option", ["--core", "--qemu", "SPURTLE_QEMU", "program"])
def test_no_output_replaces_an_input(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = write_elf(tmp_path / "program", EXIT)
    named = program if option == "program" else tmp_path / "input.vcd"
    named.touch()
    content = named.read_bytes()
    if option == "SPURTLE_QEMU":
        monkeypatch.setenv(option, str(named))
    options = [option, str(named)] if option.startswith("--") else []
    (tmp_path / "link.vcd").symlink_to(named)
    output = str(tmp_path / "perf.data")
    for outputs in (["-o", str(named)], ["-o", output, "--waves", str(tmp_path / "link.vcd")]):
        assert main(["profile", *options, *outputs, str(program)]) == 125
        assert capsys.readouterr().err.endswith(f": it is the same file as the input {named}\n")
    assert named.read_bytes() == content
    assert not Path(output).exists()


def started(words: Sequence[int], folder: Path, *options: str, **streams: Any) -> tuple[subprocess.Popen[bytes], Path]:
    """Start the profile of a program in a new process. Return the process, and the name of the profile."""
    program = write_elf(folder / "program", words)
    output = folder / "out" / "perf.data"
    output.parent.mkdir()
    command = [Path(sys.executable).with_name("spurtle"), "profile", *options, "-o", output, program]
    return subprocess.Popen(command, stderr=subprocess.PIPE, **streams), output


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(
    ("number", "times"),
    tiers(fast=[(SIGINT, 1), (SIGTERM, 2)], full=[(SIGINT, 2), (SIGTERM, 1)]),  # `timeout` sends two signals
)
def test_a_signal_ends_an_endless_loop(number: Signals, times: int, tmp_path: Path) -> None:
    process, output = started([*COUNT, *SAY, ENDLESS], tmp_path, stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process:
        process.stdout.read(1)  # the program has executed COUNT
        for _ in range(times):
            process.send_signal(number)
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 128 + number, errors
    check_profile(output, SAMPLES)
    assert errors.decode().splitlines()[-1] == f"spurtle: {number.name} ended program"


@pytest.mark.full
def test_an_ignored_signal_stays_ignored(tmp_path: Path) -> None:
    """A shell ignores SIGINT for a command that it runs in the background."""
    words = [*SAY, 0xD2800000, 0xD2A00821, 0xD2800022, 0xD28007E8, 0xD4000001, 0xD2800000, *EXIT]  # read(0, DATA, 1)
    before = signal(SIGINT, SIG_IGN)  # inherited by the process
    process, _ = started(words, tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    signal(SIGINT, before)
    with process:
        assert process.stdout is not None
        process.stdout.read(1)
        process.send_signal(SIGINT)
        process.communicate(b"x", timeout=120)
    assert process.returncode == 0


def test_mismatches_set_the_exit_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Checker, "check_counts", lambda self, _: self._compare("value", 1, 2))
    output = tmp_path / "perf.data"
    assert main(["profile", "--check", "-o", str(output), str(write_elf(tmp_path / "program", [*COUNT, *EXIT]))]) == 125
    assert len(profile_records(output)) == SAMPLES
    assert capsys.readouterr().err.splitlines()[-1] == "spurtle: mismatches between RTL and reference: 1"


def test_an_output_that_is_the_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = write_elf(tmp_path / "p.spe", EXIT)
    content = program.read_bytes()
    for output, written in (program, program), (tmp_path / "p", program):
        assert main(["profile", "-o", str(output), str(program)]) == 125
        sentence = f"spurtle: cannot write {written}: it is the same file as the input {program}\n"
        assert capsys.readouterr().err == sentence
    assert program.read_bytes() == content and not (tmp_path / "p").exists()


def test_an_output_that_is_a_special_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "fifo")
    os.mkfifo(tmp_path / "data.spe")
    program = write_elf(tmp_path / "program", EXIT)
    for output, written in ("fifo", "fifo"), ("data", "data.spe"):
        assert main(["profile", "-o", str(tmp_path / output), str(program)]) == 125
        sentence = f"spurtle: cannot write {tmp_path / written}: it must be a regular file, not a special one\n"
        assert capsys.readouterr().err == sentence
    assert {path.name for path in tmp_path.iterdir()} == {"fifo", "data.spe", "program"}
