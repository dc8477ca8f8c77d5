"""Test the layout of the repository: sizes of files and functions, unique class names, folders of the tests."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from campaign.selection import imports
from tests.support.paths import ROOT

PACKAGES = ("rtl/spurtle", "sim/spurtle_sim")
"""Packages whose subpackages have folders of tests with the same names."""
TOOLS = ("bench", "boards", "campaign", "docs")
"""Folders of the repository that have folders of tests with the same names."""
OTHER_TESTS = {
    "files": "spurtle.support, because tests/support holds the helpers of the tests",
    "proofs": "the folder formal",
    "structure": "the repository",
    "support": "the helpers of the tests",
    "system": "several packages",
}
"""Folders of tests whose names differ from those of what they test."""
TESTED_BY_USERS = {"interface", "support", "trace"}
"""Packages without a folder of tests. They hold tables and types, tested with the components and records that use
them.
"""

SOURCES = ("rtl", "sim", "formal", "boards", "bench", "campaign", "docs", "fusesoc", "configurations.py")
SUFFIXES = {".py", ".cpp", ".h", ".c"}
LINES = {"source": 400, "tests": 600}
"""Maximum lines of a file."""
FUNCTION, ELABORATE = 60, 80
"""Maximum lines of a function, and of the method `elaborate`."""


@cache
def files(*folders: str) -> list[str]:
    """Return the source files in some folders of the repository. A folder may be a single file."""
    paths = (path for folder in folders for path in ((ROOT / folder), *(ROOT / folder).rglob("*")))
    return sorted(str(path.relative_to(ROOT)) for path in paths if path.suffix in SUFFIXES)


@cache
def tree(file: str) -> ast.Module:
    return ast.parse((ROOT / file).read_text())


def excesses(file: str) -> Iterator[str]:
    """Yield the name of the file, and of each of its functions, that exceeds the maximum."""
    if len((ROOT / file).read_text().splitlines()) > LINES["tests" if file.startswith("tests/") else "source"]:
        yield file
    for node in ast.walk(tree(file)) if file.endswith(".py") else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            bound = ELABORATE if node.name == "elaborate" else FUNCTION
            if node.end_lineno is not None and node.end_lineno - node.lineno >= bound:
                yield f"{file}: {node.name}"


def test_files_and_functions_are_within_the_bounds() -> None:
    found = [excess for file in files(*SOURCES, "tests") for excess in excesses(file)]
    assert found == [], "longer than the bounds"


def test_the_name_of_a_public_class_is_unique() -> None:
    files_of: dict[str, list[str]] = defaultdict(list)
    for file in files(*SOURCES):
        for node in ast.walk(tree(file)) if file.endswith(".py") else ():
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                files_of[node.name].append(file)
    assert {name: where for name, where in files_of.items() if len(where) > 1} == {}


def test_no_test_module_imports_another() -> None:
    python = [file for file in files("tests") if file.endswith(".py")]
    tests = {file for file in python if Path(file).name.startswith("test_")}
    imported = imports(ROOT, python)
    assert {(test, other) for test in tests for other in imported[test] & tests} == set()


def test_tests_mirror_the_packages() -> None:
    packages = {path.parent.name for root in PACKAGES for path in (ROOT / root).glob("*/__init__.py")}
    folders = {Path(file).parts[1] for file in files("tests") if Path(file).name.startswith("test_")}
    assert folders == packages - TESTED_BY_USERS | {*TOOLS, *OTHER_TESTS}


def test_tests_are_directly_in_the_folder_of_their_package() -> None:
    """docs/rules.toml names tests by folder, file and function."""
    tests = [Path(file) for file in files("tests") if Path(file).name.startswith("test_") and file.endswith(".py")]
    assert [str(test) for test in tests if len(test.parts) != 3] == []
    assert {test.parts[1] for test in tests if not (ROOT / test).with_name("__init__.py").exists()} == set()
