"""Python names in the documents and docstrings exist."""

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from tests.support.paths import ROOT

PACKAGES = ("spurtle", "spurtle_sim", "formal", "bench", "boards", "campaign", "configurations", "docs", "tests")
NAME = re.compile(rf"`((?:{'|'.join(PACKAGES)})(?:\.\w+)+)(?:\([^`]*\))?`")


def exists(name: str) -> bool:
    """Return whether a dotted name is a module or an attribute of one."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            found = getattr(found, part, None)
        return found is not None
    return False


def pages() -> Iterator[Path]:
    """Yield the documents and the Python files of the repository."""
    yield from ROOT.glob("*.md")
    yield from ROOT.glob("docs/**/*.md")
    for folder in ("rtl", "sim", "formal", "bench", "boards", "campaign", "docs", "tests"):
        yield from (ROOT / folder).rglob("*.py")


def test_names_exist() -> None:
    names = {
        (path.relative_to(ROOT), name)
        for path in pages()
        for name in NAME.findall(path.read_text())
        # Tests are cited without `tests`; files have a suffix.
        if ".test_" not in name and not name.endswith(".py")
    }
    assert len(names) > 50
    assert [f"{path}: {name}" for path, name in sorted(names) if not exists(name)] == []


@pytest.mark.parametrize("name", ["spurtle.arch.absent", "spurtle.absent", "spurtle_sim.records.decode.absent.name"])
def test_absent_names_are_found(name: str) -> None:
    assert not exists(name)
