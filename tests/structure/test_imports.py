"""Test the dependency rules of the repository, from the imports of each file."""

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.support.paths import ROOT

SOURCES = {"spurtle": ROOT / "rtl", "spurtle_sim": ROOT / "sim"}
"""The folder of each installed package."""

USERS = ("bench", "boards", "campaign", "configurations", "docs", "examples", "formal", "fusesoc", "tests")
"""Folders, and one module, that may import the two packages. Neither package may import them."""

USER_MAY_IMPORT = {
    "configurations": {"spurtle"},
    "formal": {"spurtle", "spurtle_sim", "configurations"},
}
"""Parts of the repository that a user may import, besides itself. Users that are not listed may import everything."""

MODEL = {"spurtle.arch", "spurtle.config", "spurtle.support"}
"""Packages that the reference model may import. It is independent of the gateware."""

MAY_IMPORT: dict[str, set[str]] = {
    "spurtle.support": set(),
    "spurtle.arch": set(),
    "spurtle.config": {"spurtle.arch", "spurtle.support"},
    "spurtle.interface": {"spurtle.arch", "spurtle.config", "spurtle.support"},
    "spurtle.gateware": {"spurtle.arch", "spurtle.config", "spurtle.support", "spurtle.interface"},
    "spurtle.shell": {"spurtle.arch", "spurtle.config", "spurtle.support", "spurtle.interface", "spurtle.gateware"},
    "spurtle.export": {
        *("spurtle.arch", "spurtle.config", "spurtle.support", "spurtle.interface", "spurtle.gateware"),
        "spurtle.shell",
    },
    "spurtle": {"spurtle.support", "spurtle.config", "spurtle.gateware"},
    "spurtle_sim.model": MODEL,
    "spurtle_sim.perf": MODEL,
    "spurtle_sim.records": MODEL | {"spurtle_sim.model"},
    "spurtle_sim.trace": MODEL | {"spurtle_sim.model"},
    "spurtle_sim.native": {"spurtle.support"},
    "spurtle_sim.emulator": {
        *("spurtle.support", "spurtle_sim.native", "spurtle_sim.perf", "spurtle_sim.trace"),
    },
    "spurtle_sim.qemu": {
        *("spurtle.support", "spurtle_sim.emulator", "spurtle_sim.native", "spurtle_sim.perf", "spurtle_sim.trace"),
    },
    "spurtle_sim.timing": {"spurtle.arch", "spurtle.support", "spurtle_sim.native", "spurtle_sim.trace"},
    "spurtle_sim.cosim": MODEL
    | {"spurtle.interface", "spurtle.gateware", "spurtle.export"}
    | {"spurtle_sim.model", "spurtle_sim.native", "spurtle_sim.trace"},
    "spurtle_sim.report": MODEL | {"spurtle_sim.emulator", "spurtle_sim.perf", "spurtle_sim.records"},
    "spurtle_sim.profile": MODEL
    | {"spurtle_sim.model", "spurtle_sim.native", "spurtle_sim.trace", "spurtle_sim.perf", "spurtle_sim.records"}
    | {"spurtle_sim.cosim", "spurtle_sim.emulator", "spurtle_sim.qemu", "spurtle_sim.timing", "spurtle_sim.report"},
    "spurtle_sim": {"spurtle.support", "spurtle_sim.perf", "spurtle_sim.records", "spurtle_sim.profile"},
    "spurtle_sim.cli": MODEL
    | {
        "spurtle_sim",
        "spurtle.export",
        "spurtle_sim.cosim",
        "spurtle_sim.model",
        "spurtle_sim.perf",
        "spurtle_sim.profile",
        "spurtle_sim.timing",
    }
    | {"spurtle_sim.records", "spurtle_sim.report"},
}
"""The packages that each package may import. A package may import only packages that precede it in this table.

`spurtle` and `spurtle_sim` stand for their `__init__` modules.
"""

EMULATORS = {"capstone", "unicorn"}
"""Third-party packages for the emulation of a program."""

THIRD_PARTY = {
    "amaranth": {"spurtle.interface", "spurtle.gateware", "spurtle.shell", "spurtle.export", "spurtle_sim.cosim"},
    **{name: {"spurtle_sim.emulator"} for name in EMULATORS},
    "pyarrow": {"spurtle_sim.trace", "spurtle_sim.report"},
    "matplotlib": {"spurtle_sim.report"},
}
"""The packages that may import each third-party package that takes long to load."""

WITHOUT_AMARANTH = ("model", "records", "perf", "trace", "native", "emulator", "qemu", "timing", "report")
WITHOUT_EMULATOR = ("model", "records", "perf", "trace", "native", "qemu", "timing", "cosim", "cli", "report")
"""Packages of `spurtle_sim` that do not load Amaranth, or an emulator, when they are imported."""

BOARDS = ("boards.top", "boards.softcore", "boards.build")
"""Modules of the gateware of the boards and of its build. Neither they nor their imports load an emulator."""

PUBLIC = {"_asdict", "_fields", "_field_defaults", "_make", "_replace", "_exit"}
"""Public names of the standard library that begin with an underscore."""

FOREIGN = {"sim/spurtle_sim/emulator/hooks.py": {"_uch"}}
"""Private names of third-party packages that a file requires."""


def files(*folders: Path) -> list[Path]:
    """Return the Python files in some folders, and the module with the name of each folder."""
    return sorted(
        path for folder in folders for path in (*folder.rglob("*.py"), folder.with_suffix(".py")) if path.is_file()
    )


def module_of(path: Path, root: Path) -> str:
    return ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


@cache
def modules() -> Mapping[str, Path]:
    """Return the files of the two packages, by the names of their modules."""
    return {module_of(path, root): path for name, root in SOURCES.items() for path in files(root / name)}


def package_of(module: str) -> str:
    """Return the package of a module: `spurtle.arch` for `spurtle.arch.events`, the first name of all others."""
    first, *others = module.split(".")
    if first not in SOURCES:
        return first
    return ".".join([first, *others[:1]])


def imported(module: str, path: Path, text: str) -> Iterator[str]:
    """Yield the imports of the file of `module`: modules of the two packages, and other packages.

    They include imports in functions, and those for type checkers only.
    """
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name if package_of(alias.name) in modules() else alias.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            source = ".".join([*parents, *([node.module] if node.module else [])])
            if package_of(source) not in modules():
                yield source.partition(".")[0]
                continue
            for alias in node.names:
                name = f"{source}.{alias.name}"
                yield name if name in modules() else source


@cache
def graph() -> Mapping[str, frozenset[str]]:
    """Return what each module of the two packages imports."""
    return {
        module: frozenset(imported(module, path, path.read_text(encoding="utf-8")))
        for module, path in modules().items()
    }


def forbidden(imports: Mapping[str, Iterable[str]]) -> list[str]:
    """Return a message for each import that the tables do not allow."""
    found: list[str] = []
    for module, targets in imports.items():
        package = package_of(module)
        for target in sorted(targets):
            other = package_of(target)
            allowed = MAY_IMPORT[package] if other in MAY_IMPORT else THIRD_PARTY.get(other, {package})
            right = other in allowed if other in MAY_IMPORT else package in allowed
            if other in USERS or (other != package and not right):
                found.append(f"{module} must not import {target}")
    return found


def forbidden_to_user(user: str, path: Path, text: str) -> list[str]:
    """Return a message for each import in a file of a user that `USER_MAY_IMPORT` does not allow."""
    forbidden = {*USERS, *SOURCES} - {user, *USER_MAY_IMPORT[user]}
    names = {target.partition(".")[0] for target in imported(module_of(path, ROOT), path, text)}
    return [f"{path.relative_to(ROOT)} must not import {name}" for name in sorted(names & forbidden)]


def import_cycle(imports: Mapping[str, Iterable[str]]) -> Sequence[str]:
    """Return the modules of an import cycle, or an empty sequence."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return error.args[1]
    return ()


def foreign_private_names(path: Path, text: str) -> list[str]:
    """Return a message for each private name that a file uses and does not define."""
    tree = ast.parse(text)
    own = FOREIGN.get(str(path.relative_to(ROOT)), set()) | PUBLIC
    used: dict[str, int] = {}
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                own.add(name)
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                own.add(name)
            case ast.Constant(value=str(name)):  # `__slots__`, names of members
                own.add(name)
            case ast.Attribute(value=ast.Name(id="self" | "cls")):  # a base class may be in another file
                pass
            case ast.Attribute(attr=name):
                used.setdefault(name, node.lineno)
            case ast.ImportFrom(names=names):
                used |= {alias.name: node.lineno for alias in names}
            case _:
                pass
    foreign = {name: line for name, line in used.items() if name.startswith("_") and not name.endswith("__")}
    return [f"{path.relative_to(ROOT)}:{line}: {name}" for name, line in foreign.items() if name not in own]


def loaded(*names: str) -> set[str]:
    """Return the packages that a process loads when it imports these modules."""
    text = f"import {', '.join(names)}, sys; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", text], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def modules_in(packages: Iterable[str]) -> list[str]:
    """Return all modules of some packages of `spurtle_sim`."""
    return [module for module in modules() if package_of(module) in {f"spurtle_sim.{name}" for name in packages}]


def test_the_table_has_every_package_below_those_that_it_imports() -> None:
    assert {package_of(module) for module in modules()} == MAY_IMPORT.keys()
    order = [*MAY_IMPORT]
    for index, (package, allowed) in enumerate(MAY_IMPORT.items()):
        assert allowed <= {*order[:index]}, package


def test_a_package_imports_only_what_the_table_allows() -> None:
    assert forbidden(graph()) == []


def test_a_user_imports_only_what_its_table_allows() -> None:
    found = [
        line
        for user in USER_MAY_IMPORT
        for path in files(ROOT / user)
        for line in forbidden_to_user(user, path, path.read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("formal/engine/proof.py", "from tests.support.seeds import SEED"),
        ("formal/engine/proof.py", "def f():\n    import campaign.draw"),
        ("configurations.py", "from spurtle_sim.model.pe import PEState"),
        ("configurations.py", "import formal"),
    ],
)
def test_a_forbidden_import_of_a_user_is_found(file: str, line: str) -> None:
    user = file.partition("/")[0].removesuffix(".py")
    assert len(forbidden_to_user(user, ROOT / file, line)) == 1


def test_there_is_no_import_cycle() -> None:
    assert import_cycle(graph()) == ()


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("spurtle.arch.events", "from ..support.errors import UserError"),
        ("spurtle.config.spu", "def f():\n    import amaranth.hdl"),
        ("spurtle.gateware.spu", "from ..export.ports import Port"),
        ("spurtle.shell.shell", "from spurtle_sim.model.pe import PEState"),
        ("spurtle.export.ports", "import tests.support.paths"),
        ("spurtle_sim.model.spu", "from spurtle.gateware.spu import SPU"),
        ("spurtle_sim.model.spu", "from ..records import decode"),
        ("spurtle_sim.model.spu", "if TYPE_CHECKING:\n    from ..trace.dtypes import TIMED_OPERATION"),
        ("spurtle_sim.perf.events", "from ..emulator.program import Program"),
        ("spurtle_sim.timing.model", "def f():\n    import unicorn"),
        ("spurtle_sim.records.text", "import boards"),
        ("spurtle_sim.model.spu", "import configurations"),
    ],
)
def test_a_forbidden_import_is_found(module: str, line: str) -> None:
    path = modules()[module]
    assert len(forbidden({module: list(imported(module, path, line))})) == 1


def test_a_cycle_is_found() -> None:
    path = modules()["spurtle.arch.packets"]
    added = {
        "spurtle.arch.packets": graph()["spurtle.arch.packets"]
        | {*imported("spurtle.arch.packets", path, "from . import FM")}
    }
    assert "spurtle.arch" in import_cycle({**graph(), **added})


def test_private_names_are_used_only_in_their_own_files() -> None:
    folders = [root / name for name, root in SOURCES.items()] + [ROOT / name for name in USERS if name != "tests"]
    found = [line for path in files(*folders) for line in foreign_private_names(path, path.read_text(encoding="utf-8"))]
    assert found == []


@pytest.mark.parametrize("text", ["from spurtle.arch.events import _x", "from spurtle.arch import events\nevents._x"])
def test_a_private_name_of_another_file_is_found(text: str) -> None:
    assert len(foreign_private_names(ROOT / "rtl" / "example.py", text)) == 1


@pytest.mark.parametrize(
    "text", ["class C:\n    _x: int\n    def f(self):\n        return self._x", "row._replace(x=1)"]
)
def test_own_private_names_are_allowed(text: str) -> None:
    assert foreign_private_names(ROOT / "rtl" / "example.py", text) == []


def test_packages_without_gateware_load_no_amaranth() -> None:
    assert "amaranth" not in loaded(*modules_in(WITHOUT_AMARANTH))


def test_packages_without_programs_load_no_emulator() -> None:
    assert not EMULATORS & loaded(*modules_in(WITHOUT_EMULATOR))


def test_the_gateware_of_the_boards_loads_no_emulator() -> None:
    assert not EMULATORS & loaded(*BOARDS)


def test_a_loaded_package_is_found() -> None:
    assert {"amaranth", "spurtle"} <= loaded("spurtle.gateware.spu")
    assert "unicorn" in loaded("spurtle_sim.emulator.program")
