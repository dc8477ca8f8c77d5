"""Linux perf reads back what was put into the buffer."""

import shutil
import subprocess
from pathlib import Path

import pytest

from spurtle.arch import Event, Header
from spurtle_sim import perfdata
from spurtle_sim.errors import UserError
from spurtle_sim.program import Program

SORT = Path(__file__).parents[1] / "sim" / "workloads" / "sort.elf"
PID = 4242
EL0 = 0b1000_0000 << 56  # top byte of an address: Non-secure EL0, or the Non-secure physical address space

needs_perf = pytest.mark.skipif(shutil.which("perf") is None, reason="perf is not here: apt-get install linux-perf")


def record(pc: int, operation: int, events: int, total: int, time: int | None, *addresses: bytes) -> bytes:
    """A record in the packet order of Neoverse N1, packed: perf does not mind."""
    packets = [
        bytes([Header.ADDRESS]) + (pc | EL0).to_bytes(8, "little"),
        bytes([Header.CONTEXT]) + PID.to_bytes(4, "little"),
        operation.to_bytes(2, "big"),
        bytes([Header.EVENTS | Header.size_field(2)]) + events.to_bytes(2, "little"),
        bytes([Header.COUNTER | 1, 1, 0]),
        bytes([Header.COUNTER]) + total.to_bytes(2, "little"),
        *addresses,
        bytes([Header.END]) if time is None else bytes([Header.TIMESTAMP]) + time.to_bytes(8, "little"),
    ]
    content = b"".join(packets)
    return bytes(64 - len(content)) + content


def load(pc: int, va: int, pa: int, total: int, time: int | None, source: int) -> bytes:
    events = 1 << Event.RETIRED | 1 << Event.L1D_ACCESS | 1 << Event.TLB_ACCESS
    return record(
        pc, 0x4900, events, total, time,
        bytes([Header.ADDRESS | 2]) + va.to_bytes(8, "little"),
        bytes([Header.COUNTER | 2, 1, 0]),
        bytes([Header.ADDRESS | 3]) + (pa | EL0).to_bytes(8, "little"),
        bytes([Header.DATA_SOURCE, source]),
    )  # fmt: skip


def branch(pc: int, target: int, total: int, time: int | None) -> bytes:
    packet = bytes([Header.ADDRESS | 1]) + (target | EL0).to_bytes(8, "little")
    return record(pc, 0x4A01, 1 << Event.RETIRED | 1 << Event.MISPREDICTED, total, time, packet)


@pytest.fixture
def process() -> perfdata.Process:
    program = Program(SORT)
    return perfdata.Process(program.path, program.argv, PID, program.image.mappings)


@pytest.fixture
def sift() -> int:
    """Address of the hot function."""
    return next(address for address, name in Program(SORT).image.functions if name == "sift")


def perf(verb: str, file: Path, *arguments: str) -> str:
    command = ["perf", verb, "-i", str(file), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL).stdout


@needs_perf
def test_report_dumps_each_packet(tmp_path: Path, process: perfdata.Process, sift: int) -> None:
    file = tmp_path / "perf.data"
    perfdata.write(file, buffer=load(sift, 0x402000, 0x8000_1000, 7, 100, 8), process=process)
    dump = [line.split(maxsplit=1)[1] for line in perf("report", file, "-D").splitlines() if line.startswith(".  0000")]
    packets = "\n".join(dump)
    for shown in (f"PC 0x{sift:x} el0 ns=1", f"CONTEXT 0x{PID:x} el1", "LD GP-REG", "EV RETIRED L1D-ACCESS TLB-ACCESS",
                  "LAT 7 TOT", "VA 0x402000", "PA 0x80001000 ns=1", "DATA-SOURCE 8", "TS 100"):  # fmt: skip
        assert shown in packets, shown


@needs_perf
@pytest.mark.parametrize("timed", [True, False])
def test_script_gives_each_record(tmp_path: Path, process: perfdata.Process, sift: int, timed: bool) -> None:
    file = tmp_path / "perf.data"
    times = (100, 230) if timed else (None, None)
    buffer = load(sift + 16, 0x402010, 0x8000_1010, 7, times[0], 8) + branch(sift + 24, sift + 64, 9, times[1])
    perfdata.write(file, buffer=buffer, process=process, timed=timed)
    fields = "comm,tid,ip,sym,addr,phys_addr,weight,data_src" + (",time" if timed else "")
    lines = [line.split() for line in perf("script", file, "--itrace=i1i", "-F", fields).splitlines()]
    # Timeless, perf 6.1 begins with a sample of nothing.
    lines = [words for words in lines if "[unknown]" not in words]
    assert len(lines) == 2
    for words, pc, address, total in zip(lines, (sift + 16, sift + 24), (0x402010, 0), (7, 9), strict=True):
        assert words[:2] == ["sort.elf", str(PID)]
        assert f"{pc:x}" in words and "sift" in words
        assert f"{address:x}" in words
        assert str(total) in words
    assert "80001010" in lines[0]
    assert "L2 or L2 hit" in " ".join(lines[0])
    missed = perf("script", file, "--itrace=b", "-F", "event,ip,sym,addr").split()
    assert missed == ["branch-miss:", f"{sift + 64:x}", f"{sift + 24:x}", "sift"]
    if timed:
        assert [words[2] for words in lines] == ["0.000000:", "0.000000:"]
        shown = perf("script", file, "--itrace=i1i", "--ns", "-F", "time").split()
        assert shown == ["0.000000100:", "0.000000230:"]


@needs_perf
def test_report_names_the_functions(tmp_path: Path, process: perfdata.Process, sift: int) -> None:
    file = tmp_path / "perf.data"
    main = next(address for address, name in Program(SORT).image.functions if name == "main")
    buffer = b"".join(branch(pc, pc + 8, 2, time) for time, pc in enumerate([sift, sift + 4, sift + 8, main]))
    perfdata.write(file, buffer=buffer, process=process)
    # perf ends its report with a tip drawn at random, which may have a percentage too.
    printed = [line for line in perf("report", file, "--stdio", "--itrace=i1i").splitlines() if line[:1] != "#"]
    lines = [line.split() for line in printed if line]
    assert lines == [
        ["75.00%", "sort.elf", "sort.elf", "[.]", "sift"],
        ["25.00%", "sort.elf", "sort.elf", "[.]", "main"],
    ]


def test_same_bytes_each_time(tmp_path: Path, process: perfdata.Process) -> None:
    for name in ("a", "b"):
        perfdata.write(tmp_path / name, buffer=bytes(64), process=process)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (tmp_path / "a").read_bytes().startswith(b"PERFILE2")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_unwritable_path_is_the_users_error(tmp_path: Path, process: perfdata.Process) -> None:
    with pytest.raises(UserError, match="absent"):
        perfdata.write(tmp_path / "absent" / "perf.data", buffer=b"", process=process)
