"""Names of the kernel and its modules, compared with those that Linux perf finds."""

import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from spurtle_sim.cli import main
from spurtle_sim.emulator.elf import build_id_of, read_headers
from spurtle_sim.perf.format import Misc, RecordType
from spurtle_sim.perf.reader import read_perf_data
from spurtle_sim.perf.sideband import KernelFunction
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
needs_compiler = pytest.mark.skipif(shutil.which(COMPILER) is None, reason=f"{COMPILER} is not installed")


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


OF_THE_KERNEL = "".join(line for line in KALLSYMS.splitlines(True) if "[" not in line)
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


@needs_compiler
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


SECOND = "[k] writepage [ext4]+0x0"
PLT = ".plt 0 : { BYTE(0) }"
"""Empty section that the loader of modules enlarges. The linker puts it after the other code."""


def built_module(home: Path, sections: str = PLT) -> bytes:
    """Write a module into the cache of perf, and return its build ID. It has a function in another section, too."""
    (home / "ext4.c").write_text(
        "int other(void);\n"
        'int __attribute__((section(".init.text"))) once(void) { return other() * other() + other(); }\n'
        "int readpage(int n) { return n + other(); }\n"
        'int __attribute__((section(".text.unlikely"))) rare(void) { return 1; }\n'
        "__attribute__((aligned(64))) int writepage(int n) { return n - other(); }\n"
    )
    objects = home / "ext4.o"
    subprocess.run([COMPILER, "-O1", "-c", "-o", str(objects), str(home / "ext4.c")], check=True)
    (home / "module.lds").write_text(f"SECTIONS {{ {sections} }}")
    linker = ["-r", "-nostdlib", "-Wl,--build-id", f"-Wl,-T,{home / 'module.lds'}"]
    subprocess.run([COMPILER, *linker, "-o", str(home / "ext4.ko"), str(objects)], check=True)
    with (home / "ext4.ko").open("rb") as file:
        note = ELFFile(file).get_section_by_name(".note.gnu.build-id")
        assert note is not None
        build_id = build_id_of(note.data())
    shutil.copy(home / "ext4.ko", cache(home, build_id) / "elf")
    return build_id


@needs_compiler
def test_functions_of_a_module_file(home: Path) -> None:
    build_id = built_module(home)
    addresses = [MODULE + 4, MODULE + 0x40, MODULE + 0x800]
    found = names(read(kernel_recording(addresses, module_build_id=build_id)))
    assert found == ["[k] readpage [ext4]+0x4", SECOND, "[ext4]+0x800"]
    assert names(read(kernel_recording(addresses, module_build_id=build_id[::-1])))[0] == "[ext4]+0x4"
    assert names(read(kernel_recording(addresses)))[0] == "[ext4]+0x4"


@needs_compiler
def test_a_module_that_does_not_begin_with_text(home: Path) -> None:
    build_id = built_module(home, f".text.unlikely : {{ *(.text.unlikely) }} .text : {{ *(.text) }} {PLT}")
    assert names(read(kernel_recording([MODULE + 4], module_build_id=build_id))) == ["[ext4]+0x4"]


@needs_compiler
@pytest.mark.parametrize("version", VERSIONS)
def test_perf_finds_the_same_functions_of_a_module(version: str, home: Path) -> None:
    perf = require_perf(version)
    start = LINKED + MOVED + 0x100_0000  # perf takes an address below the kernel for one of a program
    (home / "perf.data").write_bytes(
        kernel_recording([start + 4, start + 0x40], module=start, module_build_id=built_module(home))
    )
    (home / "kallsyms").write_text(OF_THE_KERNEL)
    shown = perf.lines(
        *("script", "-i", home / "perf.data", "--kallsyms", home / "kallsyms", "--itrace=i1i", "-F", "ip,sym,symoff")
    )
    found = [re.sub(r"^\s*[0-9a-f]+ (\w+)", r"[k] \1 [ext4]", line) for line in shown[:2]]
    assert found == names(read((home / "perf.data").read_bytes())) == ["[k] readpage [ext4]+0x4", SECOND]


BPF = LINKED + MOVED + 0x100_0000  # perf takes an address below the kernel for one of a program
GENERATED = [
    (KernelFunction(BPF, 0x100, True, "bpf_prog_6deef7357e7b4530_sd_fw_egress"), True),
    (KernelFunction(BPF + 0x100, 0x40, False, "ftrace_trampoline"), True),
    # A function that was removed, in whose memory another one is added.
    (KernelFunction(BPF + 0x200, 0x80, True, "bpf_prog_0123456789abcdef_old"), False),
    (KernelFunction(BPF + 0x240, 0x80, True, "bpf_prog_fedcba9876543210_new"), True),
]
IN_GENERATED = {
    BPF + 4: "[k] bpf_prog_6deef7357e7b4530_sd_fw_egress [bpf]+0x4",
    BPF + 0x13C: "[k] ftrace_trampoline+0x3c",
    BPF + 0x140: f"[kernel]+{BPF + 0x140:#x}",
    BPF + 0x204: "[k] bpf_prog_0123456789abcdef_old [bpf]+0x4",
    BPF + 0x244: "[k] bpf_prog_fedcba9876543210_new [bpf]+0x4",
}


def test_functions_that_the_recording_names(home: Path) -> None:
    """BPF programs, and code that calls probes. /proc/kallsyms is not needed."""
    addresses = [*FUNCTIONS, *IN_GENERATED]
    found = read(kernel_recording(addresses, generated=GENERATED))
    assert names(found)[2:] == [*IN_GENERATED.values()]
    assert NO_NAMES in found.notes
    (home / "kallsyms").write_text(KALLSYMS)
    assert names(read(kernel_recording(addresses, generated=GENERATED), home / "kallsyms"))[:2] == EXPECTED[:2]
    assert NO_NAMES not in read(kernel_recording([BPF], generated=GENERATED)).notes


@pytest.mark.parametrize("version", VERSIONS)
def test_perf_finds_the_same_generated_functions(version: str, home: Path) -> None:
    perf = require_perf(version)
    present = [GENERATED[0], GENERATED[1], GENERATED[-1]]
    addresses = [BPF + 4, BPF + 0x13C, BPF + 0x244]
    (home / "perf.data").write_bytes(kernel_recording(addresses, generated=present))
    (home / "kallsyms").write_text(OF_THE_KERNEL)
    shown = perf.lines(
        *("script", "-i", home / "perf.data", "--kallsyms", home / "kallsyms", "--itrace=i1i", "-F", "ip,sym,symoff")
    )
    assert [" ".join(line.split()) for line in shown[:3]] == [
        f"{address:x} {IN_GENERATED[address].removeprefix('[k] ').replace(' [bpf]', '')}" for address in addresses
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_perf_finds_the_same_functions(version: str, home: Path) -> None:
    """Without modules: perf reads their names from other files.

    If the kernel was moved, perf 7 finds no function of the kernel after the first module in a copy of kallsyms.
    """
    perf = require_perf(version)
    (home / "kallsyms").write_text(OF_THE_KERNEL)
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
