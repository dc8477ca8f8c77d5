"""Processes, mappings, losses, machine and event in perf.data files, compared with what each version of perf reads."""

import re
import struct
from pathlib import Path

import pytest

from spurtle.support.errors import UserError
from spurtle_sim.perf.events import Aux, Mmap, process_events
from spurtle_sim.perf.format import RecordType, Settings
from spurtle_sim.perf.process import Mapping, Process
from spurtle_sim.perf.reader import read_perf_data
from spurtle_sim.perf.writer import Recording, content
from tests.support.perf_records import PID, branch, load
from tests.support.perf_versions import Perf

CODE = Mapping(0x40_0000, 0x2000, 0, 5, "/nowhere/program")
HEAP = Mapping(0x50_0000, 0x1000, 0, 3, "[heap]")
PROCESS = Process(Path("/nowhere/program"), ["program", "x"], PID, (CODE,), b"\7" * 20)
SETTINGS = Settings(period=1024, config=1 << 16, config2=20, config3=4, config4=8)
SAMPLE = 9
SPE_HEAD, SPE_HEAD_OF_DESCRIPTION = (struct.pack("<2I", 1000, size) for size in (128, 144))
"""Type and size at the beginning of the attribute of the SPE event."""


def recording() -> bytes:
    """Return a recording of two CPUs."""
    data = [load(0x40_0000 + 4 * n, 0x41_0000 + n, 0x8000_0000, 5, 10 * n + 1, 0) for n in range(3)]
    aux = [
        Aux(time=100, pid=PID, tid=PID, cpu=0, data=b"".join(data)),
        Aux(time=110, pid=PID, tid=PID, cpu=1, data=branch(0x40_1000, 0x40_2000, 7, 60)),
    ]
    later = [Mmap(time=50, pid=PID, tid=PID, mapping=HEAP)]
    events = process_events(PROCESS, aux, later=later, end=400)
    return content(Recording(argv=PROCESS.argv, events=events, settings=SETTINGS, midr=0x410F_D0C1))


def with_records(data: bytes, *records: bytes) -> bytes:
    """Return the file with more records at the end of its data section."""
    added = b"".join(records)
    start, size = struct.unpack_from("<2Q", data, 40)
    end = start + size
    count = int.from_bytes(data[72:104], "little").bit_count()
    entries = [struct.unpack_from("<2Q", data, end + 16 * index) for index in range(count)]
    table = b"".join(struct.pack("<2Q", offset + len(added), length) for offset, length in entries)
    header = data[:48] + struct.pack("<Q", size + len(added)) + data[56:end]
    return header + added + table + data[end + 16 * count :]


def record(kind: int, body: bytes, misc: int = 0) -> bytes:
    """Return a record of the dummy event at the time 390."""
    trailer = b"" if kind == SAMPLE else struct.pack("<2IQ2IQ", PID, PID, 390, 1, 0, 2)
    return struct.pack("<I2H", kind, misc, 8 + len(body) + len(trailer)) + body + trailer


OTHERS = (
    record(RecordType.LOST, struct.pack("<2Q", 2, 7)),
    record(RecordType.FORK, struct.pack("<4IQ", PID + 1, PID, PID + 1, PID, 390)),
    record(RecordType.FORK, struct.pack("<4IQ", PID, PID, PID + 2, PID, 390)),
    record(RecordType.COMM, struct.pack("<2I8s", PID, PID + 2, b"worker\0\0")),
    # A sample of another PMU: identifier, IP, process, thread, time and CPU.
    record(SAMPLE, struct.pack("<2Q2IQ2I", 2, 0x40_0004, PID, PID, 390, 1, 0), misc=2),
)


def test_processes_and_the_event() -> None:
    sideband = read_perf_data(with_records(recording(), *OTHERS)).sideband
    assert [(each.pid, each.mapping.start, each.build_id) for each in sideband.mappings] == [
        (PID, CODE.start, PROCESS.build_id),
        (PID, HEAP.start, b""),
    ]
    assert [each.mapping.path for each in sideband.mappings] == [CODE.path, "[heap]"]
    assert sideband.settings == SETTINGS
    assert (sideband.architecture, sideband.cpuid) == ("aarch64", "0x00000000410fd0c1")
    assert sideband.command == ["program", "x"]
    assert (sideband.process_of(PID + 2), sideband.process_of(PID + 1), sideband.parents) == (
        PID,
        PID + 1,
        {PID + 1: PID},
    )
    assert sideband.names == {PID: "program", PID + 2: "worker"}


def test_losses_and_samples_of_other_pmus(perf: Perf, tmp_path: Path) -> None:
    file = tmp_path / "perf.data"
    file.write_bytes(with_records(recording(), *OTHERS))
    shown = perf.lines("script", "-i", file, "--itrace=i1i", "--show-lost-events", "-F", "event,ip,cpu")
    lost = [int(found[1]) for line in shown if (found := re.search(r"PERF_RECORD_LOST lost (\d+)", line))]
    contents = read_perf_data(file.read_bytes())
    assert contents.problems == []
    assert lost == [contents.sideband.lost] == [7]
    assert len([line for line in shown if "instructions" in line]) == 4
    assert len([line for line in shown if "dummy" in line and "LOST" not in line]) == 1
    assert [(buffer.cpu, len(buffer.data)) for buffer in contents.buffers] == [(0, 3 * 64), (1, 64)]


def test_attributes_that_are_too_short_are_ignored() -> None:
    """The first version of the attribute has 64 bytes, which do not contain the filters."""
    data = recording()
    attributes = [at for at in range(len(data) - 8) if data[at : at + 8] in (SPE_HEAD, SPE_HEAD_OF_DESCRIPTION)]
    assert len(attributes) == 2
    for at in attributes:
        data = data[: at + 4] + struct.pack("<I", 64) + data[at + 8 :]
    assert read_perf_data(data).sideband.settings is None


def test_a_file_of_another_architecture() -> None:
    data = content(Recording(argv=["x"], events=[]))
    name = struct.pack("<I", 64) + b"aarch64"
    assert data.count(name) == 1
    other = data.replace(name, struct.pack("<I", 64) + b"x86_64\0")
    with pytest.raises(UserError, match=r"must be of an AArch64 machine, and it is of x86_64$"):
        read_perf_data(other)
