"""Selection of the tests that import or start a file of the repository, nearest first."""

import ast
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath

__all__ = ["imports", "reachable", "tests_of"]

_ROOTS = ("", "rtl", "sim")
"""Folders in which Python looks for modules, in a run of the tests."""


def tests_of(file: str, imported: Mapping[str, set[str]]) -> list[str]:
    """Return the test modules that import a file, directly or not, in the order in which they are to run.

    Tests with the shortest chain of imports run first; among these, the tests that import the fewest files. Unit tests
    of the file therefore run before tests of the complete SPU.
    """
    importers: dict[str, set[str]] = defaultdict(set)
    for importer, files in imported.items():
        for each in files:
            importers[each].add(importer)
    steps = reachable(file, importers)
    tests = [each for each in steps if PurePath(each).name.startswith("test_")]
    return sorted(tests, key=lambda test: (steps[test], len(reachable(test, imported)), test))


def reachable(start: str, edges: Mapping[str, set[str]]) -> dict[str, int]:
    """Return the files that are reachable from `start`, including itself, with the number of steps to each."""
    steps = {start: 0}
    queue = [start]
    for each in queue:
        for following in edges.get(each, ()):
            if following not in steps:
                steps[following] = steps[each] + 1
                queue.append(following)
    return steps


def imports(root: Path, files: Iterable[str]) -> dict[str, set[str]]:
    """Return the files of the repository that each of its Python files imports, at any level of its code.

    In a test, a string that is the name of a module or of a command counts as an import, because the test may start it
    as a process.
    """
    python = [file for file in files if file.endswith(".py")]
    modules = dict(_modules(python))
    project = tomllib.loads((root / "pyproject.toml").read_text()).get("project", {})
    commands = {name: target.partition(":")[0] for name, target in project.get("scripts", {}).items()}
    found: dict[str, set[str]] = {}
    for file in python:
        tree = ast.parse((root / file).read_text())
        names = list(_imported(file, tree))
        if "tests" in PurePath(file).parts:
            strings = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
            names += [commands.get(text, text) for text in strings if isinstance(text, str)]
        found[file] = {modules[part] for name in names for part in _packages(name) if part in modules} - {file}
    return found


def _modules(files: Sequence[str]) -> Iterator[tuple[str, str]]:
    for file in files:
        path = PurePath(file)
        for root in _ROOTS:
            if path.is_relative_to(root):
                parts = path.relative_to(root).with_suffix("").parts
                yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), file


def _packages(name: str) -> list[str]:
    """Return the names of a module and of its packages."""
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts) + 1)]


def _imported(file: str, tree: ast.Module) -> Iterator[str]:
    """Yield the imported names: modules, and objects in modules."""
    path = PurePath(file)
    package = next(path.parent.relative_to(root).parts for root in reversed(_ROOTS) if path.parent.is_relative_to(root))
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                yield from (alias.name for alias in node.names)
            case ast.ImportFrom():
                above = package[: len(package) - node.level + 1] if node.level else ()
                module = ".".join((*above, *([node.module] if node.module else [])))
                yield module
                yield from (f"{module}.{alias.name}" for alias in node.names)
            case _:
                pass
