"""Test files of the project for contributors and services: subjects of commits, CI, releases and hooks."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from spurtle.support.version import __version__
from tests.support.paths import ROOT

LONG = "buffer: " + "x" * 65


def subject(tmp_path: Path, text: str) -> subprocess.CompletedProcess[str]:
    message = tmp_path / "message"
    message.write_text(f"{text}\n\nWhy.\n")
    return subprocess.run([ROOT / ".ci" / "subject", message], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("text", ["buffer: a fault", "formal, tests: x", "CHANGELOG: y", LONG[:72]])
def test_a_subject_is_accepted(tmp_path: Path, text: str) -> None:
    assert subject(tmp_path, text).returncode == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LONG, "the subject of a commit must have at most 72 characters, not 73"),
        ("a fault", "the subject of a commit must begin with what it changes and a colon"),
        ("", "the subject of a commit must begin with what it changes and a colon"),
    ],
)
def test_a_subject_is_rejected(tmp_path: Path, text: str, message: str) -> None:
    run = subject(tmp_path, text)
    assert run.returncode == 1
    assert run.stderr.startswith(message)


def test_the_workflow_runs_the_script_of_maintainers() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    commands = [step["run"] for step in workflow["jobs"]["run"]["steps"] if "run" in step]
    assert commands == [".ci/run"]


@pytest.mark.parametrize("name", [".pre-commit-config.yaml", "CITATION.cff"])
def test_files_are_yaml(name: str) -> None:
    assert isinstance(yaml.safe_load((ROOT / name).read_text()), dict)


def test_files_of_a_release_agree() -> None:
    """The version and the date of the newest release are the same in each file that repeats them."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    heading = re.search(r"^## (\d+\.\d+\.\d+) - (\d{4}-\d\d-\d\d)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert heading
    assert heading[1] == citation["version"] == __version__
    assert heading[2] == str(citation["date-released"])


def test_unreleased_changes_are_first() -> None:
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == "Unreleased"


def test_hooks_are_configured() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][-1]["hooks"]
    assert {hook["entry"].split()[0] for hook in hooks} == {".venv/bin/ruff", ".ci/subject"}
    assert hooks[-1]["stages"] == ["commit-msg"]
    assert (ROOT / ".ci" / "subject").is_file()
