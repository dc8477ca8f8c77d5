"""The profile of the program with three planted problems."""

from pathlib import Path

import pytest

from spurtle_sim.cli import main
from tests.support.paths import ROOT


@pytest.fixture(scope="session")
def profiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the perf.data file of a run with jitter and an interval of 256 operations."""
    path = tmp_path_factory.mktemp("planted") / "perf.data"
    program = ROOT / "examples" / "planted" / "planted.elf"
    assert main(["profile", "--jitter", "--interval", "256", "-o", str(path), str(program)]) == 0
    return path
