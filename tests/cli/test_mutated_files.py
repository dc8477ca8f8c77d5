"""Mutated input files for the complete command, each in a child process.

There is no traceback, no crash and no endless command, and no result is lost or incomplete.
"""

import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from spurtle.config import CONFIGS
from spurtle_sim.model import records
from spurtle_sim.perf.events import Aux, process_events
from spurtle_sim.perf.process import PID, Process
from spurtle_sim.perf.writer import Recording, content
from spurtle_sim.records.json_sample import from_json
from tests.support import forked
from tests.support.example_records import random_branch
from tests.support.paths import WORKLOADS
from tests.support.seeds import SEED
from tests.support.tiers import tiers

SORT = WORKLOADS / "sort.elf"
FIELDS = (
    0,
    1,
    2,
    3,
    0x7F,
    0x1000,
    0x40_0000,
    1 << 31,
    (1 << 32) - 1,
    1 << 47,
    1 << 63,
    (1 << 64) - 0x1000,
    (1 << 64) - 1,
)
"""Boundary values of numbers and addresses."""


def mutated(content: bytes, source: random.Random, parts: Sequence[range]) -> bytes:
    """Return `content` with one to four mutations, most of them in one of `parts`."""
    found = bytearray(content)
    for _ in range(source.choice((1, 1, 2, 4))):
        part = source.choice((*parts, range(len(found))))
        at = min(source.choice(part), len(found) - 1)
        match source.randrange(8):
            case 0 | 1 | 2:
                found[at] = source.randrange(256)
            case 3 | 4:
                size = source.choice((2, 4, 8))
                at -= at % size
                field = source.choice((*FIELDS, len(content), source.getrandbits(64))) % (1 << 8 * size)
                found[at : at + size] = field.to_bytes(size, "little")
            case 5:
                found[at] ^= 1 << source.randrange(8)
            case 6:
                length = source.randrange(1, 64)
                other = source.randrange(len(found))
                found[at : at + length] = found[other : other + length]
            case _:
                del found[max(1, at) :]
    return bytes(found)


def executable(_: random.Random) -> tuple[bytes, Sequence[range]]:
    """Return a workload, and the ranges of its headers and of its section table."""
    content = SORT.read_bytes()
    sections = int.from_bytes(content[40:48], "little")
    return content, (range(64), range(64, 64 + 56 * 4), range(sections, len(content)), range(24, 64))


def buffer(source: random.Random) -> tuple[bytes, Sequence[range]]:
    """Return records of a random configuration."""
    config = CONFIGS[source.choice([*CONFIGS])]
    content = b"".join(
        records.encode(config, from_json(config, random_branch(source))) for _ in range(source.randrange(1, 6))
    )
    return content, ()


def perf_data(source: random.Random) -> tuple[bytes, Sequence[range]]:
    """Return a profile of two buffers, and the ranges of its header, attributes and records."""
    process = Process(Path("/program"), ["program"], PID, [])
    data, _ = buffer(source)
    events = process_events(process, [Aux(time=time, pid=PID, tid=PID, data=data) for time in (1, 2)])
    file = content(Recording(argv=process.argv, events=events))
    return file, (range(104), range(104, 500), range(len(file)))


def check_profile(outcome: forked.Outcome, output: Path) -> None:
    written = {path.name for path in output.parent.iterdir()}
    if outcome.status == 125:
        assert outcome.error.startswith("spurtle: ") and outcome.error.count("\n") == 1
        assert not written
    else:
        assert "next: perf report" in outcome.error
        assert written == {output.name, f"{output.name}.spe", f"{output.name}.exact.json"}
    if outcome.signals:
        assert (outcome.signals, outcome.status) == (("SIGTERM",), 143)


def check_text(outcome: forked.Outcome, _: Path) -> None:
    assert outcome.status in (0, 1)
    assert not outcome.signals
    assert all(line.startswith(".  ") for line in outcome.out.splitlines())


def check_json(outcome: forked.Outcome, _: Path) -> None:
    assert not outcome.signals
    if outcome.status == 2:  # a perf.data file without a buffer
        assert re.fullmatch("spurtle: [^\n]*perf.data[^\n]*\n", outcome.error)
        assert not outcome.out
        return
    assert outcome.status in (0, 1)
    assert all("offset" in json.loads(line) for line in outcome.out.splitlines())


@dataclass(frozen=True)
class Subject:
    """Kind of file.

    Parameters
    ----------
    original : function
        Returns the content of a file, and its ranges with most of the mutations.
    arguments : tuple of str
        Arguments of the command that reads the file. FILE stands for the file, OUT for the output.
    check : function
        Checks an outcome and the output.
    """

    original: Callable[[random.Random], tuple[bytes, Sequence[range]]]
    arguments: tuple[str, ...]
    check: Callable[[forked.Outcome, Path], None]


SUBJECTS = {
    "executable": Subject(executable, ("profile", "-o", "OUT", "FILE"), check_profile),
    "buffer": Subject(buffer, ("decode", "FILE"), check_text),
    "buffer as JSON": Subject(buffer, ("decode", "--json", "FILE"), check_json),
    "perf.data": Subject(perf_data, ("decode", "--json", "FILE"), check_json),
}


def cases(subject: Subject, name: str, count: int, folder: Path) -> Iterator[Sequence[str]]:
    """Write one file after the other, and yield the command that reads it."""
    for number in range(count):
        source = random.Random(f"{SEED} {name} {number}")
        content, parts = subject.original(source)
        (folder / "file").write_bytes(mutated(content, source, parts))
        for path in (folder / "out").iterdir():
            path.unlink()
        paths = {"FILE": str(folder / "file"), "OUT": str(folder / "out" / "perf.data")}
        yield [paths.get(word, word) for word in subject.arguments]


@pytest.mark.parametrize(
    ("name", "count"),
    tiers(
        fast=[("executable", 3), ("buffer", 3), ("perf.data", 3)],
        full=[(name, 12) for name in SUBJECTS],
        long=[(name, 2000) for name in SUBJECTS],
    ),
)
def test_mutated_files(name: str, count: int, tmp_path: Path) -> None:
    subject = SUBJECTS[name]
    (tmp_path / "out").mkdir()
    for number, outcome in enumerate(forked.run(cases(subject, name, count, tmp_path))):
        try:
            assert "Traceback" not in outcome.error
            subject.check(outcome, tmp_path / "out" / "perf.data")
        except AssertionError as failure:
            saved = (tmp_path / "file").rename(tmp_path / "failed")
            pytest.fail(f"case {number}, saved as {saved}: {failure}\n{outcome}")
