"""Names of functions and variables: C++ and Rust, files by build ID, variables of relocated programs, raw buffers."""

import csv
import gzip
import io
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from spurtle_sim.cli import main
from spurtle_sim.emulator.elf import read_headers
from spurtle_sim.perf.events import Aux, process_events
from spurtle_sim.perf.process import Mapping, Process
from spurtle_sim.perf.writer import Recording, content
from spurtle_sim.report.demangle import source_name
from spurtle_sim.report.reading import Profile, read_profile
from spurtle_sim.report.tables import shortened
from tests.support.paths import ROOT
from tests.support.perf_records import PID, branch, load

TOOL = "aarch64-linux-gnu-"
needs_cxx = pytest.mark.skipif(
    shutil.which(f"{TOOL}g++") is None, reason=f"{TOOL}g++ is not installed: apt-get install g++-aarch64-linux-gnu"
)
BASE = 0xAAAA_0000_0000  # of a position-independent executable
SOURCE = """
namespace shop {
int filled[300] = {1};
int empty[50000];
template<class T> struct Box {
    T value;
    __attribute__((noinline)) T twice() const { return value + filled[value] + empty[value]; }
};
}
int main(int count, char **) { return shop::Box<int>{count}.twice(); }
"""
NAMES = {
    "_ZNK4shop3BoxIiE5twiceEv": "shop::Box<int>::twice() const",
    "_ZN4shopL5emptyE": "shop::empty",
    "_Z3foov.cold": "foo() (.cold)",
    "_RNvXCs66qv5BOQzbG_1lINtB2_1StENtB2_2Tr2goB2_": "<l::S<u16> as l::Tr>::go",
    "_RNvMsF_NtCslNYArtu3iFV_5alloc3vecINtB5_3VecmE4pushCs66qv5BOQzbG_1l": "<alloc::vec::Vec<u32>>::push",
    "_ZN39_$LT$l..S$LT$T$GT$$u20$as$u20$l..Tr$GT$2go17h79564ddeba93bc5bE": "<l::S<T> as l::Tr>::go",
    "main": "main",
    "_Z": "_Z",
    "_ZNNN": "_ZNNN",
    "?foo@@YAXXZ": "?foo@@YAXXZ",
    f"_Z1f{'P' * 100_000}i": f"_Z1f{'P' * 100_000}i",
}
TWICE = "shop::Box<int>::twice() const"


@pytest.mark.parametrize("symbol", NAMES, ids=lambda symbol: symbol[:30])
def test_names_of_the_source(symbol: str) -> None:
    assert source_name(symbol) == NAMES[symbol]


def test_long_names_keep_their_end() -> None:
    assert shortened("std::vector<int>::push_back(int&&) sort.cpp:12", 30) == "std::vector<i...&) sort.cpp:12"
    assert [len(shortened("x" * 50, width)) for width in (49, 30, 7)] == [49, 30, 7]
    assert shortened("x\n", 9) == "x?"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a position-independent executable of C++."""
    folder = tmp_path_factory.mktemp("cxx")
    (folder / "box.cpp").write_text(SOURCE)
    command = [f"{TOOL}g++", "-O1", "-g", "-pie", "-Wl,--build-id", "-o", str(folder / "box"), str(folder / "box.cpp")]
    subprocess.run(command, check=True)
    return folder / "box"


def symbol(program: Path, name: str) -> int:
    """Return the address of a symbol in the file."""
    lines = subprocess.run([f"{TOOL}nm", str(program)], capture_output=True, text=True, check=True).stdout.splitlines()
    return next(int(line.split()[0], 16) for line in lines if line.split()[-1] == name)


def recorded(program: Path, file: Path, path: Path | None = None) -> Path:
    """Write a recording of a program that the kernel has loaded at BASE, with the name `path` in it."""
    headers = read_headers(program)
    mappings: list[Mapping] = []
    for each in headers.mappings(BASE, str(path or program)):
        header = next(found for found in headers.loaded if BASE + found.vaddr // 4096 * 4096 == each.start)
        # The kernel maps the content of the file, and then anonymous memory for zeros.
        size = -(-(header.vaddr % 4096 + header.filesz) // 4096) * 4096
        mappings.append(Mapping(each.start, size, each.offset, each.protection, each.path))
        if each.length > size:
            mappings.append(Mapping(each.start + size, each.length - size, 0, 3, "//anon"))
    function = BASE + symbol(program, "_ZNK4shop3BoxIiE5twiceEv")
    data = [
        branch(function, function + 4, 7, 10),
        load(function + 4, BASE + symbol(program, "_ZN4shop6filledE") + 8, 0x8000_0000, 5, 20, 0),
        # The second half of the variable is in anonymous memory.
        load(function + 8, BASE + symbol(program, "_ZN4shop5emptyE") + 199_999, 0x8000_1000, 5, 30, 0),
        load(function + 8, BASE + symbol(program, "_ZN4shop5emptyE") + 8, 0x8000_1000, 5, 40, 0),
        load(function + 8, BASE + 0x900_0000, 0x8000_1000, 5, 50, 0),
    ]
    process = Process(path or program, ["box"], PID, mappings, headers.build_id)
    events = process_events(process, [Aux(time=100, pid=PID, tid=PID, data=b"".join(data))])
    file.write_bytes(content(Recording(argv=["box"], events=events)))
    return file


def read(file: Path) -> Profile:
    return read_profile(str(file), file.read_bytes(), None)


@needs_cxx
def test_variables_of_a_relocated_program(program: Path, tmp_path: Path) -> None:
    """`.data` and `.bss` move with the program. `.bss` continues in anonymous memory."""
    profile = read(recorded(program, tmp_path / "perf.data"))
    index, names = profile.variables
    assert [names[n] for n in index[1:].tolist()] == ["shop::filled", "shop::empty", "shop::empty", "[unknown]"]
    assert profile.notes == []
    assert {place.line for place in profile.places} == {f"{TWICE} box.cpp:7"}


@needs_cxx
def test_exports_have_the_names_of_the_source(program: Path, tmp_path: Path) -> None:
    file = recorded(program, tmp_path / "perf.data")
    for name in ("x.folded", "x.speedscope.json", "x.pb.gz", "x.csv", "x.html"):
        assert main(["report", "-o", str(tmp_path / name), str(file)]) == 0
    assert (tmp_path / "x.folded").read_text() == f"{TWICE};{TWICE} box.cpp:7 5\n"
    frames = json.loads((tmp_path / "x.speedscope.json").read_text())["shared"]["frames"]
    assert [frame["name"] for frame in frames] == [TWICE, f"{TWICE} box.cpp:7"]
    # A function in pprof has two names: in the source, and in the symbol table.
    strings = gzip.decompress((tmp_path / "x.pb.gz").read_bytes())
    assert (strings.count(TWICE.encode()), strings.count(b"_ZNK4shop3BoxIiE5twiceEv")) == (1, 1)
    assert next(csv.DictReader(io.StringIO((tmp_path / "x.csv").read_text())))["name"] == f"{TWICE} box.cpp:7"
    assert "shop::Box&lt;int&gt;::twice() const box.cpp:7" in (tmp_path / "x.html").read_text()


@needs_cxx
def test_files_are_found_by_their_build_ids(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`perf archive` is unpacked into ~/.debug. Debug information of a stripped program is there as well."""
    monkeypatch.setenv("HOME", str(tmp_path))
    absent = tmp_path / "bin" / "box"
    file = recorded(program, tmp_path / "perf.data", absent)
    assert read(file).notes == [f"{absent} cannot be read as an ELF file: its functions have no names"]
    digits = read_headers(program).build_id.hex()
    folder = tmp_path / ".debug" / ".build-id" / digits[:2] / digits[2:]
    folder.mkdir(parents=True)
    (folder / "elf").write_bytes(program.read_bytes())
    found = read(file)
    assert (found.notes, {place.function for place in found.places}) == ([], {TWICE})
    absent.parent.mkdir()
    subprocess.run([f"{TOOL}strip", "-o", str(absent), str(program)], check=True)
    assert {place.function for place in read(file).places} == {"[box]"}
    subprocess.run([f"{TOOL}objcopy", "--only-keep-debug", str(program), str(folder / "debug")], check=True)
    assert {place.line for place in read(file).places} == {f"{TWICE} box.cpp:7"}
    # Another program at the path, with its own build ID.
    (folder / "debug").unlink()
    other = tmp_path / "other.cpp"
    other.write_text(SOURCE + "int other;")
    subprocess.run([f"{TOOL}g++", "-pie", "-Wl,--build-id", "-o", str(absent), str(other)], check=True)
    assert {place.function for place in read(file).places} == {TWICE}
    shutil.rmtree(folder)
    assert read(file).notes == [
        f"{absent} is not the file that was profiled (other build ID): its symbols are not used"
    ]


def test_raw_buffers_with_their_program(profiled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The report has the same names and lines as that on the perf.data file with the same records."""
    raw, elf = Path(f"{profiled}.spe"), ROOT / "examples" / "planted" / "planted.elf"
    found: list[dict[str, list[dict[str, object]]]] = []
    for arguments in ([str(profiled)], ["--config", "neoverse_n1", "--program", str(elf), str(raw)]):
        assert main(["report", "--json", *arguments]) == 0
        found.append(json.loads(capsys.readouterr().out))
    for table in ("functions", "lines", "variables"):
        names = [{row["name"]: row["samples"] for row in report[table]} for report in found]
        assert names[0] == names[1]
    assert found[0]["findings"] == found[1]["findings"]


def test_programs_that_cannot_be_used(profiled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raw = f"{profiled}.spe"
    relocatable = bytearray((ROOT / "examples" / "planted" / "planted.elf").read_bytes())
    relocatable[16] = 3  # ET_DYN
    (tmp_path / "pie").write_bytes(relocatable)
    for arguments, message in (
        (["--config", "v1p4", "--program", str(tmp_path / "pie"), raw], "must be linked at fixed addresses (-no-pie)"),
        (["--config", "v1p4", "--program", raw, raw], "AArch64"),
        (["--config", "v1p4", "--program", str(tmp_path / "no"), raw], "cannot be read: No such file or directory"),
    ):
        assert main(["report", *arguments]) == 2
        error = capsys.readouterr().err
        assert message in error and error.count("\n") == 1
