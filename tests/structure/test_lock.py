"""Test the lock of tool versions against the dependencies in pyproject.toml."""

import re
import tomllib
from collections import defaultdict

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.support.paths import ROOT

LOCK = ROOT / "requirements.lock"


def pins(text: str) -> dict[str, set[Version]]:
    """Return the pinned versions of each package, which may have one for each environment marker."""
    found: dict[str, set[Version]] = defaultdict(set)
    for line in text.splitlines():
        if requirement := line.partition("#")[0].strip():
            match = re.fullmatch(r"([\w.-]+)==([\w.!+]+)( ;.*)?", requirement)
            assert match, f"a line of {LOCK.name} must be NAME==VERSION, not {requirement}"
            found[canonicalize_name(match[1])].add(Version(match[2]))
    return found


def direct_dependencies() -> list[Requirement]:
    """Return the requirements of pyproject.toml and its extras, without those that refer to other extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    requirements = [Requirement(text) for group in groups for text in group]
    return [requirement for requirement in requirements if requirement.name != project["name"]]


def faults(locked: dict[str, set[Version]], requirements: list[Requirement]) -> list[str]:
    """Return a message for each requirement that the lock does not satisfy."""
    found: list[str] = []
    for requirement in requirements:
        versions = locked.get(canonicalize_name(requirement.name), set())
        if not versions:
            found.append(f"{requirement.name} must be pinned: run `make update`")
        found += [
            f"{requirement.name} must be {requirement.specifier}, not {version}: run `make update`"
            for version in sorted(versions)
            if not requirement.specifier.contains(version, prereleases=True)
        ]
    return found


def test_the_lock_satisfies_pyproject():
    requirements = direct_dependencies()
    assert len(requirements) > 20
    assert faults(pins(LOCK.read_text(encoding="utf-8")), requirements) == []


def test_the_lock_names_no_package_index():
    text = LOCK.read_text(encoding="utf-8")
    assert "://" not in text
    assert not [line for line in text.splitlines() if line.startswith("-")]


def test_missing_and_outdated_pins_are_reported():
    requirements = [Requirement("Example.One>=2,<3"), Requirement("two>=1")]
    assert faults(pins("example-one==2.5  # via spurtle\ntwo==1.0 ; python_version < '3.12'\n"), requirements) == []
    assert faults(pins("example-one==3.0\n"), requirements) == [
        "Example.One must be <3,>=2, not 3.0: run `make update`",
        "two must be pinned: run `make update`",
    ]
