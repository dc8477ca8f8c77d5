"""Names of the kernel and its modules, compared with those that Linux perf finds."""

import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from spurtle_sim.cli import main
from spurtle_sim.emulator.elf import read_headers
from spurtle_sim.perf.format import Misc, RecordType
from spurtle_sim.perf.reader import read_perf_data
from spurtle_sim.report.kernel import KernelNames
from spurtle_sim.report.reading import Names, Profile, read_profile
from tests.support.kernel_recording import KALLSYMS, LINKED, MODULE, MOVED, kernel_recording
from tests.support.perf_versions import VERSIONS, require_perf

FUNCTIONS = [LINKED + MOVED + 8, LINKED + MOVED + 0x104]
DATA = LINKED + MOVED + 0x204
ADDRESSES = [*FUNCTIONS, DATA, MODULE + 4, MODULE + 0x84, MODULE + 0x200_0000]
NO_NAMES = (
    "names of the kernel were not found by its build ID: --kallsyms names a copy of /proc/kallsyms of the recorded "
    "machine"
)
BUILD_ID = bytes(range(20))
COMPILER = "aarch64-linux-gnu-gcc"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty home."""
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def read(data: bytes, kallsyms: Path | None = None) -> Profile:
    return read_profile("file", data, None, Names(kallsyms=None if kallsyms is None else str(kallsyms)))


def names(profile: Profile) -> list[str]:
    """Return the places of the samples of the kernel."""
    return [profile.places[index].line for index in profile.place.tolist()][:-1]


def cache(home: Path, build_id: bytes) -> Path:
    """Return the folder of a build ID in the cache of perf."""
    folder = home / ".debug" / ".build-id" / build_id.hex()[:2] / build_id.hex()[2:]
    folder.mkdir(parents=True)
    return folder


EXPECTED = [
    "[k] memcpy+0x8",
    "[k] do_idle+0x4",
    f"[kernel]+{DATA:#x}",
    "[k] ext4_readpage [ext4]+0x4",
    "[k] foo::example_function [ext4]+0x4",
    f"[kernel]+{MODULE + 0x200_0000:#x}",
]


def test_a_copy_of_kallsyms(home: Path) -> None:
    (home / "kallsyms").write_text(KALLSYMS)
    found = read(kernel_recording(ADDRESSES), home / "kallsyms")
    assert names(found) == EXPECTED
    assert NO_NAMES not in found.notes


def test_kallsyms_in_the_cache_of_perf(home: Path) -> None:
    """With the build ID in the mapping, or in the section of build IDs."""
    (cache(home, BUILD_ID) / "kallsyms").write_text(KALLSYMS)
    data = kernel_recording(ADDRESSES, build_id=BUILD_ID)
    assert names(read(data)) == EXPECTED
    assert read_perf_data(data).sideband.build_ids["[kernel.kallsyms]_text"] == BUILD_ID
    assert NO_NAMES in read(kernel_recording(ADDRESSES, build_id=BUILD_ID[::-1])).notes


def test_the_build_id_of_the_kernel_in_a_record(home: Path) -> None:
    """As perf writes it: the name of the kernel is shorter than that of its mapping."""
    (cache(home, BUILD_ID) / "kallsyms").write_text(KALLSYMS)
    sideband = read_perf_data(kernel_recording(FUNCTIONS)).sideband
    body = struct.pack("<i20sB3x", -1, BUILD_ID, len(BUILD_ID)) + b"[kernel.kallsyms]\0"
    sideband.add_record(RecordType.HEADER_BUILD_ID, Misc.BUILD_ID_SIZE, body)
    addresses = [address & (1 << 56) - 1 for address in FUNCTIONS]
    assert [place.line for place in KernelNames(sideband, None).places(addresses).values()] == EXPECTED[:2]


def test_without_names() -> None:
    found = read(kernel_recording(ADDRESSES))
    assert names(found) == [
        *(f"[kernel]+{address:#x}" for address in ADDRESSES[:3]),
        "[ext4]+0x4",
        "[ext4]+0x84",
        EXPECTED[-1],
    ]
    assert NO_NAMES in found.notes


@pytest.mark.skipif(shutil.which(COMPILER) is None, reason=f"{COMPILER} is not installed")
def test_an_image_of_the_kernel(home: Path) -> None:
    """A vmlinux file with debug information has lines."""
    (home / "idle.c").write_text("int idle(int n)\n{\n    return n + 1;\n}\n")
    image = home / "vmlinux"
    command = [COMPILER, "-g", "-O1", "-fno-pic", "-nostdlib", "-static", f"-Wl,-Ttext={LINKED:#x}"]
    symbols = ["-Wl,--build-id", f"-Wl,--defsym=_text={LINKED - 0x10000:#x}", "-Wl,-e,idle"]
    subprocess.run([*command, *symbols, "-o", str(image), str(home / "idle.c")], check=True)
    build_id = read_headers(image).build_id
    shutil.copy(image, cache(home, build_id) / "elf")
    found = read(kernel_recording([LINKED + MOVED], build_id=build_id))
    assert names(found)[0].startswith("[k] idle idle.c:")


@pytest.mark.parametrize("version", VERSIONS)
def test_perf_finds_the_same_functions(version: str, home: Path) -> None:
    """Without modules: perf reads their names from other files.

    If the kernel was moved, perf 7 finds no function of the kernel after the first module in a copy of kallsyms.
    """
    perf = require_perf(version)
    (home / "kallsyms").write_text("".join(line for line in KALLSYMS.splitlines(True) if "[" not in line))
    (home / "perf.data").write_bytes(kernel_recording(FUNCTIONS))
    shown = perf.lines(
        *("script", "-i", home / "perf.data", "--kallsyms", home / "kallsyms", "--itrace=i1i", "-F", "ip,sym,symoff")
    )
    found = [re.sub(r"^\s*[0-9a-f]+ ", "[k] ", line) for line in shown]
    assert found[:2] == names(read((home / "perf.data").read_bytes(), home / "kallsyms")) == EXPECTED[:2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot read"),
        ("", "must be a copy of /proc/kallsyms with addresses, which root can read"),
        ("0000000000000000 T _text\n", "must be a copy of /proc/kallsyms with addresses"),
        ("\0\xff T T T T\nz T x\n" + "f" * 40 + " T _text\n", "must be a copy of /proc/kallsyms with addresses"),
        ("-5 T _text\n", "must be a copy of /proc/kallsyms with addresses"),
    ],
)
def test_files_that_are_not_kallsyms(
    text: str | None, message: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "perf.data").write_bytes(kernel_recording(FUNCTIONS))
    if text is not None:
        (home / "kallsyms").write_text(text)
    assert main(["report", "--kallsyms", str(home / "kallsyms"), str(home / "perf.data")]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
