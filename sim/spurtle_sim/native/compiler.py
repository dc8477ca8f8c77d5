"""The C++ compiler, and the commands that it needs."""

import ctypes
import os
import shlex
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from spurtle.support.errors import UserError

__all__ = ["compiler", "link", "run", "run_parallel"]

_Result = TypeVar("_Result")


_CORES = len(os.sched_getaffinity(0))


_RUNNING = threading.BoundedSemaphore(_CORES)
"""Held while a command runs, so that no more run at a time than there are cores."""


def compiler() -> list[str]:
    """Return the command of the C++ compiler: CXX in the environment, or g++.

    Raises
    ------
    UserError
        If there is none, or CXX is no command of a shell.
    """
    text = os.environ.get("CXX", "").strip() or "g++"
    try:
        program, *options = shlex.split(text)
    except ValueError as error:
        raise UserError(f"CXX must be a command as a shell takes it, not {text!r}: {str(error).lower()}") from error
    path = shutil.which(program)
    if path is None:
        raise UserError(f"there is no C++ compiler {text!r}: install g++, or name another one in CXX")
    if os.sep in program:  # a path may be relative to this folder, and the compiler runs in another
        program = str(Path(path).absolute())
    return [program, *options, "-std=c++20"]


def link(folder: Path, objects: Iterable[str | Path], options: Sequence[str] = ()) -> Path:
    """Link object files and archives of `folder` into a shared library that can be loaded, and return it.

    Raises
    ------
    UserError
        If the compiler fails, or the library cannot be loaded.
    """
    command = [*compiler(), "-shared", "-o", "out.so", *objects, *options]
    run(command, folder)
    library = folder / "out.so"
    if error := _why_not_loaded(library):
        # Clang calls libatomic where GCC does not, and neither links it unasked.
        with suppress(UserError):  # it is not on every machine
            run([*command, "-latomic"], folder)
        if _why_not_loaded(library):
            raise UserError(f"cannot load a library that {shlex.join(compiler())} made: {error}") from error
    return library


def _why_not_loaded(library: Path) -> OSError | None:
    try:
        ctypes.CDLL(str(library))
    except OSError as error:
        return error
    return None


def run(command: Sequence[str | Path], folder: Path, environment: Mapping[str, str] | None = None) -> str:
    """Run a command in `folder` and return its standard output.

    Raises
    ------
    UserError
        If it fails. The whole of its error output is a note of the exception.
    """
    name = Path(command[0]).name
    try:
        with _RUNNING:
            done = subprocess.run(
                command, cwd=folder, env={**os.environ, **(environment or {})}, capture_output=True, text=True,
                errors="replace", check=False,
            )  # fmt: skip
    except OSError as error:
        raise UserError(f"cannot run {name}: {error.strerror}") from error
    if done.returncode:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        first = next((line for line in lines if "error" in line.lower()), lines[0] if lines else "")
        failure = UserError(f"{name} failed: {first or f'exit status {done.returncode}'}")
        failure.add_note(done.stderr)
        raise failure
    return done.stdout


def run_parallel(functions: Iterable[Callable[[], _Result]]) -> list[_Result]:
    """Call functions at the same time, as many as there are cores, and return their results in order."""
    with ThreadPoolExecutor(_CORES) as pool:
        return list(pool.map(lambda function: function(), functions))
