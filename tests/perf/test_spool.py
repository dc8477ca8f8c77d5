"""Spool: data in a temporary file."""

import tempfile
import tracemalloc
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import IO

import pytest

from spurtle.support.errors import UserError
from spurtle_sim.perf.events import Aux, process_events
from spurtle_sim.perf.process import Process
from spurtle_sim.perf.spool import Data, Spool
from spurtle_sim.perf.writer import Recording, content
from spurtle_sim.profile import outputs

PIECE = 1 << 20
PIECES = 32


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    with closing(Spool(tmp_path)) as spool:
        yield spool


def test_data_is_read_in_any_order(spool: Spool, tmp_path: Path) -> None:
    pieces = [b"first", b"", bytes(100_000), b"last"]
    stored = [spool.append(piece) for piece in pieces]
    assert [*map(len, stored)] == [*map(len, pieces)]
    assert [*map(bytes, reversed(stored))] == pieces[::-1]
    assert bytes(spool.append(b"more")) == b"more"
    assert not [*tmp_path.iterdir()]


def recording(pieces: list[Data]) -> Recording:
    process = Process(path=Path("/program"), argv=["program"], pid=7, mappings=[])
    aux = [Aux(time=time, pid=7, tid=7, data=data) for time, data in enumerate(pieces, 1)]
    return Recording(argv=process.argv, events=process_events(process, aux))


def test_a_profile_of_any_size_needs_the_memory_of_one_buffer(spool: Spool, tmp_path: Path) -> None:
    pieces = [bytes([index]) * (PIECE + index) for index in range(PIECES)]
    made, same = recording([spool.append(piece) for piece in pieces]), recording([*pieces])
    tracemalloc.start()
    outputs.save(str(tmp_path / "perf.data"), made)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (tmp_path / "perf.data").read_bytes() == content(same)
    assert (tmp_path / "perf.data.spe").read_bytes() == b"".join(pieces)
    assert peak < 4 * PIECE


def test_a_folder_without_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(dir: Path) -> IO[bytes]:
        assert dir == tmp_path
        return Path("/dev/full").open("r+b")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with closing(Spool(tmp_path)) as spool, pytest.raises(UserError, match=r"^cannot write into .*: No space left"):
        spool.append(b"data")


def test_a_folder_that_is_absent(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^cannot write into .*absent: No such file or directory$"):
        Spool(tmp_path / "absent")
