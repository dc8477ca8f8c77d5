"""Thread that plays operations: an exception in it or in the main thread ends a profile with one sentence."""

from pathlib import Path

import numpy as np
import pytest

from spurtle.config import CONFIGS
from spurtle.support.errors import UserError
from spurtle_sim.cli import main
from spurtle_sim.perf.events import Comm
from spurtle_sim.perf.spool import Spool
from spurtle_sim.profile.driver import Driver
from spurtle_sim.profile.options import Sampling
from spurtle_sim.profile.player import Player
from spurtle_sim.qemu.find import Qemu
from spurtle_sim.trace.dtypes import TIMED_OPERATION
from tests.support.elf import write_elf
from tests.support.qemu import qemu_versions

FULL = "the folder is full"
LOOP = (0xD1000400, 0x17FFFFFF)  # LOOP: sub x0, x0, #1; b LOOP


def new_driver() -> Driver:
    return Driver(CONFIGS["neoverse_n1"], Sampling(), context=1000, check=False)


def operations(count: int, first: int = 0) -> np.ndarray:
    """Return operations, one in a cycle, from cycle `first` on."""
    rows = np.zeros(count, TIMED_OPERATION)
    rows["dispatch"] = np.arange(first, first + count)
    rows["issue"], rows["finish"] = 1, 3
    return rows


def fail(*_: object) -> None:
    raise UserError(FULL)


def test_events_have_the_time_of_the_operations_before_them() -> None:
    driver = new_driver()
    with Player(driver, None) as player:
        for first in range(0, 30_000, 1000):
            player.play(operations(1000, first), 1000)
            player.add([Comm(time=0, pid=1000, tid=1000, name=str(first), executed=False)])
    names = [event.name for event in player.events if isinstance(event, Comm)]
    times = [event.time for event in player.events]
    assert names == [str(first) for first in range(0, 30_000, 1000)]
    assert times == sorted(times) and times[0] >= 999 and times[-1] >= 29_999
    assert driver.sampled > 30


@pytest.mark.parametrize("batches", [1, 100])
def test_a_failure_of_the_thread_is_raised(batches: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next call or the end of the context raises it, and the main thread does not wait for a full queue."""
    monkeypatch.setattr(Driver, "run", fail)
    with pytest.raises(UserError, match=FULL), Player(new_driver(), None) as player:
        for _ in range(batches):
            player.play(operations(1 << 14), 1000)


def test_a_failure_of_the_main_thread_ends_the_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Operations that wait for the thread are not played."""
    played: list[int] = []
    monkeypatch.setattr(Driver, "run", lambda self, rows: played.append(len(rows)))
    with pytest.raises(KeyError), Player(new_driver(), None) as player:
        player.play(operations(10), 1000)
        raise KeyError
    assert not played


@pytest.mark.parametrize("qemu", [None, *qemu_versions()])
def test_a_full_disk_ends_an_endless_program(
    qemu: Qemu | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Spool, "append", fail)
    program = write_elf(tmp_path / "program", LOOP)
    program.chmod(0o755)
    output = tmp_path / "out" / "perf.data"
    output.parent.mkdir()
    emulator = ["--qemu", qemu.path] if qemu else ["--emulator", "unicorn"]
    assert main(["profile", *emulator, "-o", str(output), str(program)]) == 125
    assert capsys.readouterr().err.splitlines()[-1] == f"spurtle: {FULL}"
    assert not list(output.parent.iterdir())
