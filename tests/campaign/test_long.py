"""Runner of the long tier, on a project with a few tests."""

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from campaign import long
from campaign.results import RunResult, append, load, next_tests, with_results
from docs.markdown import rows
from spurtle.support.errors import UserError
from tests.support import tiers
from tests.support.paths import ROOT

MARKED = (
    "import os, pathlib, time\nimport pytest\npytestmark = pytest.mark.long\nHERE = pathlib.Path(__file__).parent\n"
)
PASSES = """
def test_passes(record_property):
    record_property("records", 1_000)
    record_property("seed", os.environ["SPURTLE_SEED"])
"""
FAILS = """
def test_fails():
    assert os.environ["SPURTLE_SEED"] == "none", "the seed"
"""
SKIPPED = """
def test_skipped():
    pytest.skip("no tool")
"""
WAITS = """
def test_waits():
    (HERE / "waits").touch()
    time.sleep(600)
"""
CRASHES = """
def test_crashes():
    os.abort()
"""
FAST = "def test_fast(): assert False\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Return a function that creates a repository with some tests as its long tier, and makes the runner use it."""

    def create(*tests: str) -> Path:
        (tmp_path / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\nmarkers =\n long:\n")
        (tmp_path / "test_toy.py").write_text(MARKED + "".join(tests))
        (tmp_path / "test_other.py").write_text(FAST)
        (tmp_path / "docs").mkdir()
        (tmp_path / "docs" / "verification.md").write_text("before\n\n<!-- long -->\n<!-- end -->\n")
        (tmp_path / ".gitignore").write_text("build\n__pycache__\n")
        author = ("-c", "user.name=toy", "-c", "user.email=toy@example.com")
        for command in (("init", "-q"), ("add", "."), (*author, "commit", "-q", "-m", "toy")):
            subprocess.run(["git", *command], cwd=tmp_path, check=True)
        monkeypatch.setattr(long, "ROOT", tmp_path)
        monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # reduces the time to a quarter
        return tmp_path

    return create


@pytest.fixture
def until(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], bool]], None]:
    """Return a function that ends the session as soon as a condition holds, however long that takes."""

    def set_clock(is_over: Callable[[], bool]) -> None:
        monkeypatch.setattr(long, "monotonic", lambda: float("inf") if is_over() else 0.0)

    return set_clock


def results(root: Path) -> list[RunResult]:
    return load(root / "build" / "long" / "results.jsonl")


def files(root: Path) -> list[str]:
    return sorted(path.name for path in (root / "build" / "long").iterdir())


def test_tests_run_in_turn_with_fresh_seeds(project, until, capsys: pytest.CaptureFixture[str]) -> None:
    root = project(PASSES)
    until(lambda: len(results(root)) >= 2)
    assert long.main(["--time", "1s"]) == 0
    first, second = results(root)
    assert (first.test, first.outcome, first.detail) == ("test_toy.py::test_passes", "passed", "")
    assert first.seed != second.seed
    for result in (first, second):
        assert result.figures == {"records": "1000", "seed": str(result.seed)}
        commit = subprocess.run(["git", "describe", "--always"], cwd=root, capture_output=True, text=True, check=True)
        assert result.commit == commit.stdout.strip()
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "1 test of the long tier, 2 at a time, for 1s"
    assert out[1].startswith(f"passed: test_toy.py::test_passes, SPURTLE_SEED={first.seed}, ")
    assert out[1].endswith(f" s, records 1000, seed {first.seed}")
    assert out[-1] == "2 passed, 0 failed, 0 skipped; results: build/long/results.jsonl"
    assert files(root) == ["results.jsonl"]


def test_run_continues_after_a_failure(project, until, capsys: pytest.CaptureFixture[str]) -> None:
    root = project(FAILS, CRASHES, PASSES, SKIPPED)
    until(lambda: len(results(root)) >= 5)
    assert long.main(["--time", "1m"]) == 1
    by_test = {result.test.partition("::")[2]: result for result in results(root)}
    failed, crashed = by_test["test_fails"], by_test["test_crashes"]
    assert [by_test[name].outcome for name in ("test_passes", "test_fails", "test_crashes", "test_skipped")] == [
        "passed", "failed", "failed", "skipped",
    ]  # fmt: skip
    assert failed.detail == f"AssertionError: the seed; see build/long/{failed.seed}.log"
    assert "AssertionError: the seed" in (root / "build" / "long" / f"{failed.seed}.log").read_text()
    assert crashed.detail.startswith("pytest exited with status -6; see ")
    assert by_test["test_skipped"].detail == "no tool"
    out = capsys.readouterr().out
    repeat = f"  repeat: SPURTLE_SEED={failed.seed} .venv/bin/python -m pytest test_toy.py::test_fails\n"
    assert f"failed: test_toy.py::test_fails: {failed.detail}\n{repeat}" in out


def test_only_passed_tests_run_again(project, until) -> None:
    root = project(SKIPPED, FAILS, PASSES)
    until(lambda: len(results(root)) >= 5)
    assert long.main([]) == 1
    outcomes = [result.outcome for result in results(root)]
    assert (outcomes.count("skipped"), outcomes.count("failed")) == (1, 1)


def test_session_of_skipped_tests_ends(project, until) -> None:
    root = project(SKIPPED)
    until(lambda: False)
    assert long.main([]) == 0
    assert [result.outcome for result in results(root)] == ["skipped"]


def test_terminated_test_is_the_first_of_the_next_run(project, until, monkeypatch: pytest.MonkeyPatch) -> None:
    root = project(WAITS, PASSES, FAILS)
    until(lambda: (root / "waits").exists() and len(results(root)) >= 1)
    long.main([])
    done = {result.test for result in results(root)}
    assert "test_toy.py::test_waits" not in done
    logs = {f"{result.seed}.log" for result in results(root) if result.outcome == "failed"}
    assert {*files(root)} == {"results.jsonl", *logs}

    started: list[str] = []
    monkeypatch.setattr(long, "Run", lambda root, folder, test: started.append(test) or pytest.exit("enough"))
    until(lambda: False)
    with pytest.raises(pytest.exit.Exception):
        long.main([])
    assert started == ["test_toy.py::test_waits"]


def test_too_short_time_is_refused(project, until, capsys: pytest.CaptureFixture[str]) -> None:
    root = project(WAITS)
    until(lambda: (root / "waits").exists())
    assert long.main(["--time", "2s", "--publish"]) == 2
    assert capsys.readouterr().err == "long: TIME must be long enough for a test, not 2s\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_results_before_an_interrupt_are_kept(
    project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], interruptible: None, number: int
) -> None:
    root = project(PASSES, WAITS)

    def interrupt() -> float:
        if (root / "waits").exists() and results(root):
            signal.raise_signal(number)
        return 0.0

    monkeypatch.setattr(long, "monotonic", interrupt)
    assert long.main(["--publish"]) == 130
    assert {result.outcome for result in results(root)} == {"passed"}
    assert files(root) == ["results.jsonl"]
    captured = capsys.readouterr()
    assert captured.err.splitlines()[-1] == "long: interrupted"
    assert captured.out.splitlines()[-1].startswith(f"{len(results(root))} passed, 0 failed, 0 skipped; ")
    assert [*rows((root / "docs" / "verification.md").read_text(), "long")] == ["`test_toy.py::test_passes`"]


# The order and the table.


def result(test: str, **members: Any) -> RunResult:
    defaults: dict[str, Any] = {
        "commit": "abc",
        "seed": 1,
        "seconds": 2.5,
        "outcome": "passed",
        "figures": {},
        "detail": "",
    }
    return RunResult(test=test, date="2026-01-02T03:04:05+00:00", **{**defaults, **members})


def test_new_tests_run_first_then_those_with_the_oldest_result() -> None:
    before = [result("a"), result("b"), result("removed"), result("a")]
    assert next_tests(["a", "b", "new"], before) == ["new", "b", "a"]


def test_table_shows_the_last_results() -> None:
    page = "<!-- long -->\n| test |\n|---|\n| `kept` | old |\n| `removed` | old |\n<!-- end -->\n"
    figures = {"cycles": "1000", "samples": "3"}
    later = [result("a", commit="old", outcome="failed"), result("a", seed=7, figures=figures), result("a", seed=8)]
    found = rows(with_results(page, ["a", "kept", "none"], later), "long")
    assert found == {
        "`a`": ("`a`", "abc", "2", "passed", "8", "", "2", "2026-01-02"),
        "`kept`": ("`kept`", "old"),
    }
    found = rows(with_results(page, ["a"], [result("a", seed=7, figures=figures)]), "long")
    assert found["`a`"][5] == "cycles 1000, samples 3"


def test_failure_is_not_hidden_by_a_later_pass() -> None:
    page = "<!-- long -->\n<!-- end -->\n"
    runs = [result("a", seed=seed, outcome=outcome) for seed, outcome in enumerate(("failed", "failed", "passed"))]
    assert rows(with_results(page, ["a"], runs), "long")["`a`"][2:5] == ("3", "failed 2 times", "1")


def test_page_names_existing_tests() -> None:
    root = ROOT
    for name in rows((root / "docs" / "verification.md").read_text(), "long"):
        file, _, function = name.strip("`").partition("::")
        assert f"\ndef {function.partition('[')[0]}(" in (root / file).read_text()


# Invalid input.


@pytest.mark.parametrize("time", ["", "5", "0s", "m", "-1m", "1.5h", "1d", "60 m", "²s"])
def test_invalid_time_is_refused(time: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert long.main([f"--time={time}"]) == 2
    assert capsys.readouterr().err == (
        f"long: TIME must be a number and s, m or h, such as 90s, 60m or 2h, not {time!r}\n"
    )


def test_project_without_long_tests_is_refused(project, capsys: pytest.CaptureFixture[str]) -> None:
    root = project()
    assert long.main([]) == 2
    assert capsys.readouterr().err == "long: no test is marked `long`\n"
    (root / "test_toy.py").write_text("import nothing_of_that_name\n")
    assert long.main([]) == 2
    error = capsys.readouterr().err
    assert error.startswith("long: pytest cannot collect the tests:\n")
    assert "No module named 'nothing_of_that_name'" in error


def test_folder_without_a_commit_is_refused(project, capsys: pytest.CaptureFixture[str]) -> None:
    root = project(PASSES)
    (root / ".git").rename(root / "git")
    assert long.main([]) == 2
    assert f"long: {root} must have a Git commit, which each result names: " in capsys.readouterr().err


def test_invalid_file_of_results_is_refused(project, capsys: pytest.CaptureFixture[str]) -> None:
    root = project(PASSES)
    file = root / "build" / "long" / "results.jsonl"
    append(file, result("a"))
    for line in ("{", "[]", json.dumps({"test": "a"})):
        file.write_text(file.read_text().splitlines()[0] + f"\n{line}\n")
        assert long.main([]) == 2
        assert capsys.readouterr().err == f"long: line 2 of {file} must be a result: delete the line or the file\n"


def test_unwritable_file_of_results_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"^cannot write .*/file/results.jsonl: "):
        append(tmp_path / "file" / "results.jsonl", result("a"))


def test_tier_has_the_command_of_the_runner() -> None:
    assert "long" in tiers.TIERS
    assert tiers.TIERS["long"] == "make test-long"
