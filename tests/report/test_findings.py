"""`spurtle profile` and `spurtle report` on a program with three planted problems, as a user runs them."""

import json
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from spurtle_sim.cli import main
from spurtle_sim.perf.events import Aux, process_events
from spurtle_sim.perf.format import ConfigBit, Settings
from spurtle_sim.perf.process import Mapping, Process
from spurtle_sim.perf.writer import Recording, content
from spurtle_sim.report.findings import Finding, findings
from spurtle_sim.report.reading import Profile, read_profile
from spurtle_sim.report.summary import ReportContents, build_report
from spurtle_sim.report.tables import ReportTable, TableColumn, Unit
from spurtle_sim.report.terminal import report_lines
from tests.support.cross_compiler import needs_compiler
from tests.support.paths import ROOT
from tests.support.perf_records import PID, REFILL, load
from tests.support.seeds import SEED

PLANTED = ROOT / "examples" / "planted"
EXECUTABLE = PLANTED / "planted.elf"


def line_with(text: str) -> int:
    """Return the number of the only line of the source that contains `text`."""
    [number] = [n for n, line in enumerate((PLANTED / "planted.c").read_text().splitlines(), 1) if text in line]
    return number


def read(path: Path) -> Profile:
    return read_profile(str(path), path.read_bytes(), None)


def test_the_three_problems_are_found_with_their_lines(profiled: Path) -> None:
    found = [str(finding) for finding in build_report(read(profiled)).findings]
    structure, stride, branch = (
        f"total_mass planted.c:{line_with('.mass;')}: 100 % of its loads miss",
        f"first_column planted.c:{line_with('volatile unsigned char')}: 100 % of its loads miss",
        f"count_odd planted.c:{line_with('seed) & 1')}: ",
    )
    assert [sum(sentence.startswith(name) for sentence in found) for name in (structure, stride, branch)] == [1, 1, 1]
    text = dict(zip((structure, stride, branch), found, strict=True))
    assert "1 of the 8 words of each cache line of particles" in text[structure]
    assert "12 cache lines of grid. The addresses differ by multiples of 16,384 bytes" in text[stride]
    assert re.search(r": [45]\d % of its branches are mispredicted", text[branch])


def test_a_profile_ends_with_the_most_important_lines(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], profiled: Path
) -> None:
    _ = profiled  # compiled
    assert main(["profile", "--jitter", "-o", str(tmp_path / "perf.data"), str(EXECUTABLE)]) == 0
    last = capfd.readouterr().err.splitlines()[-10:]
    assert [line[:2] for line in last[:4]] == ["* ", "* ", "* ", "sa"]
    assert all(len(line) <= 100 for line in last)


def test_shares_are_those_of_the_exact_counts(profiled: Path) -> None:
    rows = build_report(read(profiled)).table("lines").objects()
    assert sum(abs(row["share"] - row["exact"]) <= row["margin"] for row in rows) >= len(rows) - 1
    functions = build_report(read(profiled), limit=None).table("functions").objects()
    assert sum(row["exact"] for row in functions) == pytest.approx(1, abs=1e-4)  # _start has no sample


def test_text_has_100_columns_and_no_escape_sequences(profiled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(profiled)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 100
    assert "\x1b" not in "".join(lines)
    assert {"Findings", "Functions", "Lines by cycles", "Memory by variable", "Branches by mispredictions"} <= {*lines}


def test_exact_counts_of_another_profile_are_not_used(profiled: Path, tmp_path: Path) -> None:
    file = tmp_path / "perf.data"
    file.write_bytes(profiled.read_bytes())
    absent = build_report(read(file))
    assert f"{file}.exact.json is absent: no exact shares." in absent.recording
    assert all(row["exact"] is None for row in absent.table("lines").objects())
    exact = json.loads(Path(f"{profiled}.exact.json").read_text())
    for counts, reason in (
        (json.dumps({**exact, "sha256": "0" * 64}), "belongs to another profile (other hash)"),
        (json.dumps({**exact, "format": 2}), "has format 2, not 1"),
        ("{", "is not a file of exact counts"),
        ("[]", "is not a file of exact counts"),
    ):
        Path(f"{file}.exact.json").write_text(counts)
        assert f"{file}.exact.json {reason}: no exact shares." in build_report(read(file)).recording


@pytest.mark.full
def test_exact_counts_are_not_shown_with_a_filter(profiled: Path, tmp_path: Path) -> None:
    _ = profiled  # compiled
    file = tmp_path / "perf.data"
    assert main(["profile", "--filter", "load_filter=1,min_latency=10", "-o", str(file), str(EXECUTABLE)]) == 0
    recording = build_report(read(file)).recording
    assert "filter load_filter=1,min_latency=10" in recording[0]
    assert "The exact counts are of all operations, and the samples are filtered: no exact shares." in recording


def misses(addresses: Sequence[int], *, jitter: bool = True) -> list[Finding]:
    """Return the findings of loads at these addresses, which all miss."""
    code = Mapping(0x40_0000, 0x2000, 0, 5, "/nowhere/program")
    heap = Mapping(0x1000_0000, 0x1000_0000, 0, 3, "[heap]")
    process = Process(Path(code.path), ["program"], PID, (code, heap))
    loads = [
        load(code.start, heap.start + at, 0x8000_0000, 40, n + 1, 0, events=REFILL) for n, at in enumerate(addresses)
    ]
    events = process_events(process, [Aux(time=100, pid=PID, tid=PID, data=b"".join(loads))])
    settings = Settings(config=jitter << ConfigBit.JITTER)
    file = content(Recording(argv=["program"], events=events, settings=settings))
    return findings(read_profile("file", file, None))


def test_kinds_of_misses() -> None:
    random = Random(SEED)
    columns = [random.randrange(512) * 4096 + 8 * (n // 3) for n in range(200)]  # three samples for each column
    structures = [random.randrange(20_000) * 192 + random.choice((0, 48)) for _ in range(200)]
    anywhere = [random.randrange(1 << 20) * 8 for _ in range(200)]
    steps = [random.randrange(768, 1024) * 16 for _ in range(200)]
    in_order = [sum(steps[:n]) // 8 * 8 for n in range(200)]
    kinds = [misses(each)[0].kind for each in (columns, structures, anywhere, in_order)]
    assert kinds == ["Large stride", "Wasted cache lines", "Cache misses", "Cache misses"]
    assert "are about a multiple of 4,096 bytes apart" in misses(columns)[0].text
    assert "2 of the 8 words of each cache line of [heap]" in misses(structures)[0].text
    assert misses(columns)[0].cost == "100 % of the cycles of all latencies"
    # Without jitter, a loop over consecutive addresses has this distance by chance.
    assert misses([4100 * n for n in range(200)], jitter=False)[0].kind == "Cache misses"


@needs_compiler
def test_the_executable_rebuilds_byte_for_byte(tmp_path: Path) -> None:
    subprocess.run(["make", "-s", "-C", str(PLANTED), f"OUT={tmp_path}"], check=True)
    assert (tmp_path / "planted.elf").read_bytes() == EXECUTABLE.read_bytes()


def test_a_long_place_leaves_room_for_the_finding() -> None:
    finding = Finding("kind", "start" + 10_000 * "x" + "+0x4", "It is slow.\x1b", "", None)
    contents = ReportContents("title", [], [finding], [])
    assert list(report_lines(contents))[-1] == f"* start{23 * 'x'}...{25 * 'x'}+0x4: It is slow.?"


@pytest.mark.parametrize(
    ("terminal", "longest_sentence", "name"),
    [(None, 100, 81), (50, 50, 31), (20, 40, 21), (120, 100, 101), (999, 100, 141)],
)
def test_the_report_is_as_wide_as_the_terminal(terminal: int | None, longest_sentence: int, name: int) -> None:
    columns = (TableColumn("a", "a", Unit.TEXT), TableColumn("name", "name", Unit.TEXT))
    table = ReportTable("key", "title", columns, [("1" * 17, "x" * 500)])
    contents = ReportContents("title", ["word " * 100], [], [table])
    lines = list(report_lines(contents, terminal=terminal))
    assert max(map(len, lines[:-2])) in range(longest_sentence - 4, longest_sentence + 1)
    assert len(lines[-1].split()[1]) == name
    assert (lines[0] == "title") == (terminal is None)


def test_a_narrow_terminal_has_parts_of_names() -> None:
    columns = (TableColumn("a", "a", Unit.TEXT), TableColumn("name", "name", Unit.TEXT))
    table = ReportTable("key", "title", columns, [("1" * 60, "x" * 500)])
    assert len(list(report_lines(ReportContents("", [], [], [table]), terminal=50))[-1].split()[1]) == 16


def test_branches_are_sorted_by_mispredictions_and_then_by_number(profiled: Path) -> None:
    """A line without branches takes no row from the others."""
    rows = build_report(read(profiled)).table("branches").objects()
    assert len(rows) == min(12, len(build_report(read(profiled), limit=None).table("branches").objects()))
    order = [(row["missed"], row["samples"]) for row in rows]
    assert order == sorted(order, reverse=True)
