"""Files that `spurtle report` cannot use, and files that it can use in part."""

import gzip
import io
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from pyarrow import parquet

from spurtle_sim.cli import main
from spurtle_sim.perf.events import NOTHING_LOST, Aux, process_events
from spurtle_sim.perf.format import AuxFlag
from spurtle_sim.perf.process import Mapping, Process
from spurtle_sim.perf.writer import Recording, content
from tests.support.corruption import corrupted
from tests.support.paths import ROOT
from tests.support.perf_records import PID, branch, load
from tests.support.seeds import SEED
from tests.support.tiers import tiers

CODE = Mapping(0x40_0000, 0x2000, 0, 5, "/nowhere/program")
PROCESS = Process(Path("/nowhere/program"), ["program"], PID, (CODE,))


def recording(*data: bytes, flags: AuxFlag = NOTHING_LOST, path: str = CODE.path) -> bytes:
    """Return a recording with the records of several CPUs."""
    process = replace(PROCESS, mappings=(replace(CODE, path=path),))
    aux = [Aux(time=100, pid=PID, tid=PID, cpu=cpu, data=each, flags=flags) for cpu, each in enumerate(data)]
    return content(Recording(argv=["program"], events=process_events(process, aux, end=400), midr=0x410F_D0C1))


BUFFER = "the contents of a Profiling Buffer"
LOADS = [load(0x40_0000 + 4 * n, 0x41_0000 + n, 0x8000_0000, 5 + n, 10 * n + 1, 0xB) for n in range(3)]
BRANCHES = [branch(0x40_1000, 0x40_2000, 7, 60)] * 2


def reported(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Return the exit status of `spurtle report`, standard output and standard error."""
    status = main(["report", *map(str, arguments)])
    return status, *capsys.readouterr()


def test_records_of_several_cpus_and_losses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "perf.data"
    flags = AuxFlag.COLLISION | AuxFlag.TRUNCATED
    file.write_bytes(recording(b"".join(LOADS), b"".join(BRANCHES), flags=flags))
    status, text, error = reported(capsys, file)
    assert (status, error) == (0, "")
    assert "5 samples." in text
    assert "In 2 of 2 AUX records a full buffer lost data." in text
    assert "In 2 of 2 AUX records samples were lost in collisions." in text
    assert "/nowhere/program cannot be read as an ELF file: its functions have no names." in text
    assert "With 5 samples the intervals are those of independent samples." in " ".join(text.split())
    lines = [line.split() for line in text.splitlines()]
    assert ["3", "100.0", "±28.1", "6/7/7", "1/1/1", "1/1/1", "system", "cache"] in lines
    assert ["2", "2", "100.0", "100.0", "[program]+0x1000"] in lines


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is not a perf.data file; the contents of a Profiling Buffer need --config"),
        (b"PERFILE2", "the header of the perf.data file must have 104 bytes, and it is cut off"),
        (content(Recording(argv=["x"], events=[])), "must hold AUX data of Arm SPE, and it holds none"),
        (recording(bytes(64)), "must contain complete records of Arm SPE with a PC, and it contains none"),
        (recording(b"\xff" * 64), "must contain complete records of Arm SPE with a PC, and it contains none"),
    ],
)
def test_unusable_files(data: bytes, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_bytes(data)
    status, text, error = reported(capsys, tmp_path / "file")
    assert (status, text) == (2, "")
    assert message in error
    assert error.count("\n") == 1


def test_a_file_that_is_absent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert reported(capsys, tmp_path / "no") == (
        2,
        "",
        f"spurtle: cannot read {tmp_path}/no: No such file or directory\n",
    )
    assert "reads a file, not standard input" in reported(capsys, "-")[2]


@pytest.mark.parametrize(("option", "names"), [("--config", "core"), ("--program", "programs")])
def test_options_of_raw_buffers(option: str, names: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A perf.data file names these itself. In a comparison, the options are for the other file."""
    for name, content_ in (("perf.data", recording(*LOADS)), ("raw", b"".join(LOADS))):
        (tmp_path / name).write_bytes(content_)
    value = {"--config": "v1p4", "--program": ROOT / "examples" / "planted" / "planted.elf"}
    for files in (["perf.data"], ["perf.data", "perf.data"]):
        status, text, error = reported(capsys, option, value[option], *(tmp_path / name for name in files))
        assert (status, text) == (2, "")
        assert error == f"spurtle: {option} must come with {BUFFER}: a perf.data file names its {names}\n"
    both = [word for pair in value.items() for word in pair]
    status, text, error = reported(capsys, *both, tmp_path / "perf.data", tmp_path / "raw")
    assert (status, error) == (0, "")
    assert "A: " in text and "B: Raw buffers have no exact counts or settings." in text


def test_a_truncated_file_is_reported_in_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = recording(b"".join(LOADS), b"".join(BRANCHES))
    (tmp_path / "file").write_bytes(data[: data.index(BRANCHES[0]) + 100])
    status, text, _ = reported(capsys, tmp_path / "file")
    assert status == 0
    assert "4 samples." in text
    assert "Buffer 1 must have 128 bytes, and the file ends after 100 of them." in text
    assert "Incomplete records that were skipped: 1. Records with problems: 0." in " ".join(text.split())


def test_raw_buffers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "raw").write_bytes(b"".join(LOADS) + bytes(5))
    status, text, _ = reported(capsys, "--config", "neoverse_n1", tmp_path / "raw")
    assert status == 0
    assert "3 samples." in text
    assert "system cache" in text  # the data source of Neoverse N1
    assert "Raw buffers have no exact counts" in text


@pytest.mark.parametrize("kind", ["--kallsyms", "--program", "exact counts"])
def test_no_file_that_is_read_is_overwritten(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile = tmp_path / "perf.data"
    profile.write_bytes(recording(*LOADS))
    file = tmp_path / "perf.data.exact.json"
    file.write_text("content")
    arguments = (kind, file) if kind.startswith("-") else ()
    status, _, error = reported(capsys, *arguments, "-o", file, profile)
    assert (status, file.read_text()) == (2, "content")
    assert f"cannot write {file}: it is the same file as the input {file}" in error


def test_a_mapped_pipe_is_not_opened(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file of the machine of the report can have the name of a mapping. To open a pipe would wait forever."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    profile = tmp_path / "perf.data"
    profile.write_bytes(recording(*LOADS, path=str(pipe)))
    status, text, error = reported(capsys, profile)
    assert (status, error) == (0, "")
    assert "/pipe cannot be read as an ELF file" in " ".join(text.split())


def test_one_sample_is_counted_in_the_singular(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile = tmp_path / "raw"
    profile.write_bytes(LOADS[0])
    text = reported(capsys, "--config", "neoverse_n1", profile)[1]
    assert "\n1 sample.\n" in text and "\nWith 1 sample the intervals" in text


def test_control_characters_in_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile = tmp_path / "perf.data"
    profile.write_bytes(recording(*LOADS, path="/nowhere/a\n\x1b[31mb"))
    status, text, _ = reported(capsys, profile)
    assert status == 0
    assert "/nowhere/a??[31mb cannot be read" in text
    assert "\x1b" not in text
    assert reported(capsys, "-o", tmp_path / "out.folded", profile)[0] == 0
    rows = (tmp_path / "out.folded").read_text().splitlines()
    assert rows[0] == "[a??[31mb];[a??[31mb]+0x0 1"
    assert len(rows) == len(LOADS)


TEXTS = {
    ".json": lambda data: str(json.loads(data)),
    ".csv": bytes.decode,
    ".folded": bytes.decode,
    ".speedscope.json": lambda data: str(json.loads(data)),
    ".pb.gz": lambda data: gzip.decompress(data).decode(errors="ignore"),  # numbers are not UTF-8
    ".parquet": lambda data: str(parquet.read_table(io.BytesIO(data))["function"].to_pylist()),
    ".html": bytes.decode,
}


@pytest.mark.parametrize("suffix", TEXTS)
def test_names_that_are_not_utf8(suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each byte that is not UTF-8 is U+FFFD in every output, and each output is UTF-8."""
    profile = tmp_path / "\udce9.data"
    profile.write_bytes(recording(*LOADS, path="/nowhere/caf\udce9"))
    assert reported(capsys, "-o", tmp_path / f"out{suffix}", profile) == (0, "", "")
    text = TEXTS[suffix]((tmp_path / f"out{suffix}").read_bytes())
    assert "[caf\ufffd]" in text
    assert not re.search("[\ud800-\udfff]", text)


@pytest.mark.parametrize("kind", ["", "--json"])
def test_printed_names_that_are_not_utf8(kind: str, tmp_path: Path) -> None:
    """JSON is UTF-8 for each encoding of the terminal."""
    profile = tmp_path / "perf.data"
    profile.write_bytes(recording(*LOADS, path="/nowhere/caf\udce9-\u00e9"))
    command = [str(Path(sys.executable).with_name("spurtle")), "report", *filter(None, [kind]), str(profile)]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    printed = subprocess.run(command, capture_output=True, env=environment, check=True).stdout
    assert ("[caf\ufffd-\u00e9]".encode() if kind else rb"[caf\ufffd-\xe9]") in printed


@pytest.mark.parametrize("count", tiers(fast=[60], long=[3_000]))
def test_corrupt_files_are_reported_in_sentences(
    count: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Corrupt and truncated files are reported in sentences, and none of them is about an internal error."""
    random = Random(SEED)
    program = ROOT / "examples" / "planted" / "planted.elf"
    code = Mapping(0x40_0000, 0x2000, 0, 5, str(program))
    process = Process(program, ["program"], PID, (code,))
    aux = [Aux(time=100, pid=PID, tid=PID, data=b"".join(LOADS + BRANCHES) * 10, flags=AuxFlag.COLLISION)]
    complete = content(Recording(argv=["program"], events=process_events(process, aux, end=400), midr=0x410F_D0C1))
    file = tmp_path / "perf.data"
    statuses: set[int] = set()
    for _ in range(count):
        file.write_bytes(corrupted(random, complete, (1, 3, 30)))
        status, _, error = reported(capsys, file)
        statuses.add(status)
        assert status in (0, 2) and error.count("\n") == (status == 2), error
        assert "internal error" not in error, error
    assert statuses == {0, 2}
