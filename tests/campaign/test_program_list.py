"""Programs of `campaign/programs.toml`: `spurtle profile` runs them as QEMU does, and every record is checked."""

import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from campaign.program_list import COMPILERS, FOLDER, Listed, ProgramOutcome, compile_source, listed, run_in
from spurtle_sim.native.cache import cache_folder
from spurtle_sim.qemu.find import Qemu
from tests.support.qemu import SYSROOT, every_qemu
from tests.support.tiers import tiers

SPURTLE = str(Path(sys.executable).with_name("spurtle"))
PROGRAMS = cache_folder() / "tools" / "programs"
"""Sysroot that `.ci/programs` unpacks."""

GROUPS = [*dict.fromkeys(program.group for program in listed())]

FULL = (
    *("wc words.txt data.bin", "cut -d , -f 2-3 table.csv", "ls -l tree", "cmp -l words.txt numbers.txt"),
    *("crc32 data.bin", "expr 17 '*' '(' 4 + 9 ')'", "date -u -d @1700000000"),
    *("signals.c -static", "gather.c -static -march=armv8.2-a+sve", "first_fault.c -static -march=armv8.2-a+sve"),
)
"""Ends of the names of ten programs that need only the busybox and the C compiler that the CI has."""


UNSUPPORTED = tuple(f"busybox {start}" for start in ("cp ", "mv ", "ln ", "mkdir ", "rm ", "ash -c 'f"))
"""Starts of the names of programs that change files, or start processes. Unicorn supports neither."""


def required_qemu() -> Qemu:
    """Return the QEMU that `make qemu` builds."""
    qemu = every_qemu()["built"]
    if qemu is None:
        pytest.skip("QEMU is absent: make qemu")
    return qemu


def executable(program: Listed, folder: Path) -> Path:
    """Return the executable of a program, which is compiled in `folder`. Skip the test if it cannot be had."""
    if program.language:
        compiler = COMPILERS[program.language]
        if shutil.which(compiler) is None:
            pytest.skip(f"{compiler} is not installed")
        return compile_source(program, folder)
    path = PROGRAMS / program.file
    if not path.exists() and program.group.startswith("busybox"):
        path = Path(os.environ.get("SPURTLE_BUSYBOX", path))
    if not path.exists():
        pytest.skip(f"{path} does not exist: .ci/programs")
    return path


def outcomes(program: Listed, qemu: Qemu, folder: Path, *emulator: str | Path) -> tuple[ProgramOutcome, ProgramOutcome]:
    """Return what a program does in QEMU, and under `spurtle profile`. Both use the same working directory.

    `emulator` holds options of `spurtle profile`. By default they name the QEMU.
    """
    path = executable(program, folder)
    sysroot = SYSROOT if program.language else PROGRAMS
    arguments: Sequence[str] = () if program.language else program.arguments
    options = ["--sysroot", sysroot] if sysroot.exists() else []
    work = folder / "work"
    plain = [qemu.path, "-cpu", "neoverse-n2", *(["-L", sysroot] if options else [])]
    emulator = emulator or ("--qemu", qemu.path, *options)
    profile = [SPURTLE, "profile", "--check", *emulator, "-o", folder / "perf.data"]
    expected = run_in(work, program, [*plain, path, *arguments])
    shutil.rmtree(work)
    return expected, run_in(work, program, [*profile, path, *arguments])


def check(program: Listed, qemu: Qemu, folder: Path) -> int:
    """Check one program. Return the number of its operations."""
    expected, found = outcomes(program, qemu, folder)
    # Spurtle reports the signal that ends a program as a shell does.
    status = 128 - expected.status if expected.status < 0 else expected.status
    assert (found.status, found.out, found.files) == (status, expected.out, expected.files), (program.name, found.err)
    assert b", each one checked: " in found.err, program.name
    # Standard error has lines of Spurtle too.
    lines = found.err.splitlines()
    assert [line for line in expected.err.splitlines() if line not in lines] == [], program.name
    count = re.search(rb"([0-9,]+) operations? in", found.err)
    assert count, found.err
    return int(count[1].replace(b",", b""))


@pytest.mark.parametrize("group", tiers(long=GROUPS))
def test_programs_run_as_in_qemu(group: str, tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    qemu = required_qemu()
    count = operations = 0
    for number, program in enumerate(program for program in listed() if program.group == group):
        (tmp_path / f"{number}").mkdir()
        operations += check(program, qemu, tmp_path / f"{number}")
        count += 1
    record_property("programs", count)
    record_property("operations", operations)


@pytest.mark.parametrize("group", tiers(long=[group for group in GROUPS if group.startswith("busybox")]))
def test_applets_run_in_unicorn(group: str, tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """All that neither change a file nor start a process. The others are reported, and change nothing."""
    qemu, count = required_qemu(), 0
    for number, program in enumerate(program for program in listed() if program.group == group):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        expected, found = outcomes(program, qemu, folder, "--emulator", "unicorn")
        before = run_in(folder / "input", program, ["true"]).files
        if b" is not emulated: " in found.err:
            assert program.name.startswith(UNSUPPORTED), program.name
            assert found.files == before, program.name
        else:
            assert (found.status, found.out, found.files) == (expected.status, expected.out, before), program.name
            count += 1
    record_property("programs", count)


@pytest.mark.full
@pytest.mark.parametrize("end", FULL)
def test_short_programs_run_as_in_qemu(end: str, tmp_path: Path) -> None:
    (program,) = (program for program in listed() if program.name.endswith(end))
    check(program, required_qemu(), tmp_path)


def test_list() -> None:
    """The list has as many programs as the documents say, each once, and the sources of all that are compiled."""
    assert len(listed()) == len(set(listed())) == 120
    assert sum(program.group.startswith("busybox") for program in listed()) == 51
    compiled = {program.file for program in listed() if program.language}

    assert compiled == {path.name for path in FOLDER.iterdir()}
