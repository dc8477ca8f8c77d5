"""`spurtle decode` of perf.data files, compared with what each version of perf reads."""

import json
import re
import struct
from pathlib import Path
from random import Random

import pytest

from spurtle.support.errors import UserError
from spurtle_sim.cli import main
from spurtle_sim.perf.events import Aux, TimedEvent, process_events
from spurtle_sim.perf.format import AuxFlag, RecordType
from spurtle_sim.perf.process import Process
from spurtle_sim.perf.reader import read_perf_data
from spurtle_sim.perf.writer import Recording, content
from tests.support.corruption import corrupted
from tests.support.perf_records import PID, branch, load
from tests.support.perf_versions import Perf, require_perf
from tests.support.seeds import SEED
from tests.support.tiers import tiers

PROCESS = Process(Path("/nowhere/program"), ["program"], PID, ())
TRUNCATED = AuxFlag.TRUNCATED | AuxFlag.PARTIAL


def several() -> list[TimedEvent]:
    """Return the AUX events of three CPUs, of which CPU 1 has no records. Three of them have losses."""
    records = {
        (0, 100): [load(0x40_0000 + 4 * n, 0x41_0000 + n, 0x8000_0000, 5, 10 * n + 1, 0) for n in range(3)],
        (2, 110): [branch(0x40_1000 + 4 * n, 0x40_2000, 7, 10 * n + 2) for n in range(5)],
        (0, 200): [branch(0x40_3000, 0x40_4000, 2, 150)],
        (2, 210): [],
        (2, 300): [load(0x40_5000 + 4 * n, 0x42_0000, 0x8000_0000, 9, 220 + n, 0)[n + 1 :] for n in range(3)],
    }
    flags = {(0, 200): AuxFlag.COLLISION, (2, 210): TRUNCATED, (2, 300): AuxFlag.COLLISION}
    return [
        Aux(time=time, pid=PID, tid=PID, cpu=cpu, data=b"".join(data), flags=flags.get((cpu, time), AuxFlag(0)))
        for (cpu, time), data in records.items()
    ]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    aux = [event for event in several() if isinstance(event, Aux)]
    path = tmp_path / "perf.data"
    path.write_bytes(content(Recording(argv=PROCESS.argv, events=process_events(PROCESS, aux, end=400))))
    return path


def decoded(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, list[str], list[str]]:
    """Return the exit status of `spurtle decode`, and its lines on standard output and on standard error."""
    status = main(["decode", *map(str, arguments)])
    out, err = capsys.readouterr()
    return status, out.splitlines(), err.splitlines()


def test_records_cpus_and_losses_are_those_of_perf(perf: Perf, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fields = ("-F", "cpu,time,ip", "--ns")
    expected = [line.split() for line in perf.lines("script", "-i", file, "--itrace=i1i", *fields)]
    _, complaints = perf.run("script", "-i", file, "--itrace=i1i")
    status, lines, losses = decoded(capsys, "--json", file)
    assert status == 0
    records = [json.loads(line) for line in lines]
    actual = sorted((each["timestamp"], each["cpu"], each["pc"]["address"]) for each in records)
    assert actual == sorted(
        (int(time.strip(":").partition(".")[2]), int(cpu.strip("[]")), f"0x{ip}") for cpu, time, ip in expected
    )
    assert [(each["cpu"], each["buffer"]) for each in records] == [(0, 0)] * 3 + [(0, 2)] + [(2, 1)] * 5 + [(2, 3)] * 3
    assert {each["format"] for each in records} == {1}

    def total(loss: str) -> int:
        return sum(int(match[1]) for line in losses if (match := re.search(rf"(\d+) of \d AUX records? {loss}", line)))

    counted = dict(re.findall(r"AUX data (lost|detected collision)  ?(\d+) times out of 5!", "\n".join(complaints)))
    assert counted == {"lost": "1", "detected collision": "2"}
    assert (total(r"lost data \(truncated\)"), total(r"lost samples \(collision\)")) == (1, 2)


def test_text_names_each_buffer(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, lines, losses = decoded(capsys, file)
    assert status == 0
    assert [line for line in lines if not line.startswith(".")] == [
        "CPU 0, buffer 0: 192 bytes",
        "CPU 0, buffer 2: 64 bytes",
        "CPU 2, buffer 1: 320 bytes",
        "CPU 2, buffer 3: 192 bytes",
    ]
    assert losses == [
        "spurtle: CPU 0: 1 of 2 AUX records lost samples (collision)",
        "spurtle: CPU 2: 1 of 3 AUX records lost data (truncated)",
        "spurtle: CPU 2: 1 of 3 AUX records lost data (partial)",
        "spurtle: CPU 2: 1 of 3 AUX records lost samples (collision)",
    ]


def test_a_recording_of_threads(perf: Perf, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Linux perf has a buffer for each thread of a timeless recording, and no CPU."""
    aux = [Aux(time=9, pid=PID, tid=PID, data=branch(0x40_1000, 0x40_2000, 7, None), flags=TRUNCATED)]
    file = tmp_path / "perf.data"
    file.write_bytes(content(Recording(argv=PROCESS.argv, events=process_events(PROCESS, aux), timed=False)))
    expected = [line.split()[-1] for line in perf.lines("script", "-i", file, "--itrace=i1i", "-F", "ip")]
    status, [line], losses = decoded(capsys, "--json", file)
    record = json.loads(line)
    assert status == 0
    assert (record["tid"], record["buffer"]) == (PID, 0) and "cpu" not in record
    assert f"{int(record['pc']['address'], 16):x}" == expected[-1]  # perf 6.1 begins with an empty sample
    assert losses[0] == "spurtle: 1 of 1 AUX record lost data (truncated)"


def piped(data: bytes) -> bytes:
    """Return a perf.data file in the format of `perf record -o -`: attributes are records, without sections."""
    _, attr_size, attrs, attrs_size, start, size = struct.unpack_from("<6Q", data, 8)
    records: list[bytes] = []
    for offset in range(attrs, attrs + attrs_size, attr_size):
        attribute = data[offset : offset + attr_size - 16]
        ids, ids_size = struct.unpack_from("<2Q", data, offset + attr_size - 16)
        body = attribute + data[ids : ids + ids_size]
        records.append(struct.pack("<I2H", RecordType.ATTR, 0, 8 + len(body)) + body)
    return b"".join([data[:8], struct.pack("<Q", 16), *records, data[start : start + size]])


def test_a_file_from_a_pipe(perf: Perf, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Linux perf 6.1 reads only the first buffer."""
    pipe = tmp_path / "pipe"
    pipe.write_bytes(piped(file.read_bytes()))
    fields = ("--itrace=i1i", "-F", "cpu,time,ip")
    expected, complete = perf.lines("script", "-i", "-", *fields, stdin=pipe), perf.lines("script", "-i", file, *fields)
    assert expected == ([line for line in complete if "[000]" in line][:3] if perf.version == "6.1" else complete)
    assert decoded(capsys, "--json", pipe) == decoded(capsys, "--json", file)


def test_newer_metadata(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Linux perf 6.14 and newer describe each CPU in AUXTRACE_INFO."""
    data = piped(file.read_bytes())
    start = data.index(struct.pack("<I2H", RecordType.AUXTRACE_INFO, 0, 32))
    pmu = struct.unpack_from("<Q", data, start + 16)[0]
    cpus = [(0x1010_1010_1010_1010, cpu, 4, 0x410F_D0C1, pmu, 256, 0) for cpu in range(3)]
    words = [2, 4, pmu, 3, *(word for cpu in cpus for word in cpu)]
    info = struct.pack("<I2H2I", RecordType.AUXTRACE_INFO, 0, 16 + 8 * len(words), 4, 0) + struct.pack(
        f"<{len(words)}Q", *words
    )
    newer = tmp_path / "newer"
    newer.write_bytes(data[:start] + info + data[start + 32 :])
    fields = ("--itrace=i1i", "-F", "cpu,time,ip")
    perf = require_perf("newest")
    assert perf.lines("script", "-i", "-", *fields, stdin=newer) == perf.lines("script", "-i", file, *fields)
    assert decoded(capsys, "--json", newer) == decoded(capsys, "--json", file)


def test_encode_accepts_the_output_of_decode(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, lines, _ = decoded(capsys, "--json", file)
    (tmp_path / "in").write_text("\n".join(lines))
    command = ["encode", "--config", "neoverse_n1", "--engine", "reference", str(tmp_path / "in")]
    assert main([*command, "-o", str(tmp_path / "out")]) == 0
    assert len((tmp_path / "out").read_bytes()) == 64 * len(lines)
    (tmp_path / "in").write_text(lines[0].replace('"format": 1', '"format": 2'))
    assert main([*command, "-o", str(tmp_path / "out")]) == 2
    assert "format must be 1, not 2" in capsys.readouterr().err


def check_rejected(data: bytes, words: str) -> None:
    with pytest.raises(UserError, match=words):
        read_perf_data(data)


def test_unreadable_files_are_reported_in_one_sentence(file: Path) -> None:
    data = file.read_bytes()
    check_rejected(b"", "must begin with b'PERFILE2', not b''")
    check_rejected(data[7::-1] + data[8:], "must be little-endian, and it is big-endian")
    check_rejected(data[:50], "must have 104 bytes, and it is cut off")
    check_rejected(content(Recording(argv=["x"], events=[])), "must hold AUX data of Arm SPE, and it holds none")
    info = data.index(struct.pack("<I2H", RecordType.AUXTRACE_INFO, 0, 32))
    check_rejected(data[: info + 8] + b"\3" + data[info + 9 :], "must be of Arm SPE, type 4, not 3")


def test_the_name_of_a_file_is_no_content(file: Path) -> None:
    with pytest.raises(TypeError, match=r"^data must be of type bytes, not "):
        read_perf_data(str(file))  # pyright: ignore[reportArgumentType]


def test_a_truncated_file_is_read_to_its_end(file: Path) -> None:
    data = file.read_bytes()
    complete = read_perf_data(data)
    assert complete.problems == []
    offset = data.index(complete.buffers[2].data)
    found = read_perf_data(data[: offset + 100])
    assert [len(buffer.data) for buffer in found.buffers] == [192, 100]
    assert found.problems == ["buffer 1 must have 320 bytes, and the file ends after 100 of them"]
    # The size of the data section is still zero: `perf record` was killed.
    killed = data[:48] + bytes(8) + data[56 : offset + 320]
    assert [len(buffer.data) for buffer in read_perf_data(killed).buffers] == [192, 320]


@pytest.mark.parametrize("count", tiers(fast=[100], long=[2_000]))
def test_corrupt_files_are_reported_in_sentences(count: int, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Corrupt and truncated files do not cause a traceback."""
    random = Random(SEED)
    complete = file.read_bytes()
    statuses: set[int] = set()
    for _ in range(count):
        file.write_bytes(corrupted(random, complete, (1, 1, 3, 30)))
        status, _, complaints = decoded(capsys, file)
        statuses.add(status)
        assert (status == 0) <= (all("lost" in line for line in complaints))
        assert all(line.startswith("spurtle: ") for line in complaints)
    assert statuses == {0, 1, 2}
