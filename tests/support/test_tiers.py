"""Tiers and seed of the tests, in a copy of conftest.py with a test module of its own."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tests.support.tiers import IN_FULL, tiers

TESTS = """
import pytest
from hypothesis import given, strategies as st
from tests.support.tiers import tiers

def test_plain(): pass

@pytest.mark.full
def test_full(): pass

@pytest.mark.parametrize("a, b", tiers(fast=[(1, 2)], full=[(1, 2), (3, 4)], long=[(5, 6), (7, 8)]))
def test_cases(a, b): assert b == a + 1

@pytest.mark.long
@given(st.integers())
def test_random(number): assert number < 1_000, number
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tests" / "support").mkdir(parents=True)
    for name in ("conftest.py", *(f"{part}__init__.py" for part in ("", "support/"))):
        (tmp_path / "tests" / name).write_text((ROOT / "tests" / name).read_text())
    for name in ("perf_versions.py", "seeds.py", "tiers.py"):
        (tmp_path / "tests" / "support" / name).write_text((ROOT / "tests" / "support" / name).read_text())
    (tmp_path / "configurations.py").write_text((ROOT / "configurations.py").read_text())
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n fast:\n full:\n long:\n")
    (tmp_path / "tests" / "test_it.py").write_text(TESTS)
    return tmp_path


def run(folder: Path, *options: str, seed: str | None = None) -> tuple[int, list[str], str]:
    """Run pytest. Return the exit status, the lines of standard output, and standard error."""
    environment = {"PATH": "/nowhere", **({} if seed is None else {"SPURTLE_SEED": seed})}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout.splitlines(), done.stderr


@pytest.mark.parametrize("workers", tiers(fast=[["-n", "1"]], full=[[]]), ids=str)
@pytest.mark.parametrize(
    ("tier", "passed", "last"),
    [
        ("fast", 2, "tests not run: 2 of the full tier (make test-full), 3 of the long tier (make test-long)"),
        ("fast or full", 4, "tests not run: 3 of the long tier (make test-long)"),
    ],
    ids=["fast", "full"],
)
def test_the_last_line_counts_the_tests_that_were_not_run(
    folder: Path, workers: list[str], tier: str, passed: int, last: str
) -> None:
    status, lines, _ = run(folder, *workers, "-m", tier)
    assert status == 0
    assert f" {passed} passed" in lines[-2]
    assert lines[-1] == last


@pytest.mark.full
def test_deselected_tests_of_the_same_tier_are_not_counted(folder: Path) -> None:
    status, lines, _ = run(folder, "-k", "cases and not 7")
    assert status == 0
    assert re.search(r" 3 passed, 4 deselected", lines[-1])


@pytest.mark.full
def test_the_last_tier_of_the_parameters_applies(folder: Path) -> None:
    crossed = """
import pytest
from tests.support.tiers import configurations, tiers

@pytest.mark.parametrize("count", tiers(fast=[1], long=[2]))
@pytest.mark.parametrize("name", configurations(["minimal", "own"]))
def test_crossed(name, count): pass
"""
    (folder / "tests" / "test_it.py").write_text(crossed)
    for tier, names in {"fast": ["minimal-1"], "full": ["own-1"], "long": ["minimal-2", "own-2"]}.items():
        _, lines, _ = run(folder, "--collect-only", "-q", "-m", tier)
        assert re.findall(r"test_crossed\[(.*)\]", "\n".join(lines)) == names


def collected(tier: str) -> list[str]:
    """Return the tests of `IN_FULL` that belong to a tier, or to one of several."""
    files = sorted({f"tests/{test.partition('::')[0]}" for test in IN_FULL})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n", "0", "-m", tier, *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [line.removeprefix("tests/") for line in done.stdout.splitlines()]


def test_tests_with_a_part_in_the_full_tier_exist() -> None:
    for test in IN_FULL:
        file, name = test.split("::")
        assert f"def {name}(" in (ROOT / "tests" / file).read_text()


@pytest.mark.long
def test_a_part_of_the_cases_remains_in_the_full_tier() -> None:
    full, smaller, long = collected("full"), collected("fast or full"), collected("long")
    for test, pattern in IN_FULL.items():
        assert any(case.partition("[")[0] == test for case in smaller), test
        assert any(case.partition("[")[0] == test for case in long), test
        cases = [case.removeprefix(f"{test}[").removesuffix("]") for case in full if case.partition("[")[0] == test]
        assert all(re.fullmatch(pattern, case) for case in cases) and bool(cases) == bool(pattern), test


def test_a_failure_prints_the_seed_that_repeats_it(folder: Path) -> None:
    def falsifying(seed: str) -> list[str]:
        status, lines, _ = run(folder, "-m", "long", "-k", "random", "--hypothesis-verbosity=verbose", seed=seed)
        assert status == 1
        assert f"seed: {seed} (SPURTLE_SEED in the environment sets another)" in lines
        at = next(number for number, line in enumerate(lines) if re.fullmatch(r"-+ seed -+", line))
        assert lines[at + 1] == f"SPURTLE_SEED={seed}"
        return re.findall(r"number=(-?\d+)", "\n".join(lines))

    first = falsifying("1")
    assert falsifying("1") == first
    assert falsifying("2") != first


@pytest.mark.parametrize("seed", tiers(fast=["x", "-1"], full=["", "1.5"]))
def test_a_seed_that_is_not_a_whole_number_is_rejected(folder: Path, seed: str) -> None:
    status, _, errors = run(folder, seed=seed)
    assert status != 0
    assert f"SPURTLE_SEED must be a number of at least 0, not {seed!r}" in errors


def test_a_case_is_in_the_first_tier_that_has_it() -> None:
    cases = tiers(fast=["a"], full=["a", "b"], long=["b", ("c", "d")])
    assert [case.values for case in cases] == [("a",), ("b",), ("c", "d")]
    assert [[marker.name for marker in case.marks] for case in cases] == [["fast"], ["full"], ["long"]]
