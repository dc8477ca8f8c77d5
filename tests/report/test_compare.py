"""Comparisons of two profiles, and the statistics behind them."""

import json
from pathlib import Path

import numpy as np
import pytest

from spurtle_sim.cli import main
from spurtle_sim.report.statistics import FEW, difference, percentiles, shares
from tests.support.paths import ROOT
from tests.support.seeds import SEED
from tests.support.tiers import tiers


@pytest.fixture(scope="module")
def loads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a profile of loads alone."""
    path = tmp_path_factory.mktemp("other") / "perf.data"
    program = ROOT / "examples" / "planted" / "planted.elf"
    terms = "load_filter=1"
    assert main(["profile", "--jitter", "--interval", "256", "--filter", terms, "-o", str(path), str(program)]) == 0
    return path


def test_a_profile_equals_itself(profiled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--json", str(profiled), str(profiled)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {row["change"] for row in found["functions"]} == {0}
    assert {row["significant"] for row in (*found["functions"], *found["lines"])} == {"no"}


@pytest.mark.full
def test_changes_are_significant(profiled: Path, loads: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A filter changes the shares: functions have different shares of loads."""
    assert main(["report", "--json", str(profiled), str(loads)]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["functions"]}
    assert rows["count_odd"]["significant"] == "yes" and rows["count_odd"]["change"] < -0.05
    assert rows["total_mass"]["cycles_b"] > rows["total_mass"]["cycles_a"]


@pytest.mark.full
def test_text_and_page(profiled: Path, loads: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(profiled), str(loads)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 100
    assert {"Functions by change", "Lines by change", "Rates of these lines"} <= {*lines}
    assert main(["report", "-o", str(tmp_path / "x.html"), str(profiled), str(loads)]) == 0
    assert "Lines by change" in (tmp_path / "x.html").read_text()
    assert main(["report", "--csv", str(profiled), str(loads)]) == 2
    assert "must be printed, or written as .html or .json" in capsys.readouterr().err


@pytest.mark.parametrize("count", tiers(fast=[FEW // 2], full=[4000]))
def test_intervals_contain_the_share(count: int) -> None:
    """Nearly all of 100 intervals of 95 % confidence contain the share from which the samples were drawn."""
    random = np.random.default_rng(SEED)
    hits = 0
    for _ in range(100):
        found = shares((random.random(count) < 0.3).astype(int), 2)
        hits += bool(found.low[1] <= 0.3 <= found.high[1])
    assert 85 <= hits <= 100
    assert found.bootstrap == (count >= FEW)


def test_phases_widen_the_interval() -> None:
    """Samples of a program with phases are not independent."""
    mixed = np.arange(4000) % 2
    phases = np.repeat([0, 1], 2000)
    width = [float((found.high - found.low)[0]) for found in (shares(mixed, 2), shares(phases, 2))]
    assert width[0] < 0.01 < 0.1 < width[1]


def test_differences_of_few_samples() -> None:
    delta, low, high = difference(np.zeros(50, int), np.repeat([0, 1], 25), 2)
    assert delta.tolist() == [-0.5, 0.5]
    assert (low[1] > 0.3, high[0] < -0.3) == (True, True)


def test_percentiles() -> None:
    assert percentiles(np.arange(1, 101)) == (50, 90, 99)
    assert percentiles(np.array([], int)) is None
