"""C++ compiler, and commands that run it."""

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
"""Semaphore that is held while a command runs. It limits the number of parallel commands to the number of cores."""


def compiler() -> list[str]:
    """Return the command of the C++ compiler: the environment variable CXX, or g++.

    Raises
    ------
    UserError
        If the compiler is not installed, or CXX is not a valid shell command.
    """
    text = os.environ.get("CXX", "").strip() or "g++"
    try:
        program, *options = shlex.split(text)
    except ValueError as error:
        raise UserError(f"CXX must be a valid shell command, not {text!r}: {str(error).lower()}") from error
    path = shutil.which(program)
    if path is None:
        raise UserError(f"the C++ compiler {text!r} was not found: install g++, or set CXX to another compiler")
    if os.sep in program:  # a relative path refers to the current folder, and the compiler runs in another folder
        program = str(Path(path).absolute())
    return [program, *options, "-std=c++20"]


def link(folder: Path, objects: Iterable[str | Path], options: Sequence[str] = ()) -> Path:
    """Link object files and archives of `folder` to a shared library. Return its path.

    The library is loaded once, as a check.

    Raises
    ------
    UserError
        If the compiler fails, or the library cannot be loaded.
    """
    command = [*compiler(), "-shared", "-o", "out.so", *objects, *options]
    run(command, folder)
    library = folder / "out.so"
    if error := _load_error(library):
        # Clang calls libatomic in cases in which GCC does not. Neither compiler links libatomic by default.
        with suppress(UserError):  # libatomic is not installed on every machine
            run([*command, "-latomic"], folder)
        if _load_error(library):
            raise UserError(f"cannot load a library built by {shlex.join(compiler())}: {error}") from error
    return library


def _load_error(library: Path) -> OSError | None:
    """Load a library. Return the error, or None if it was loaded."""
    try:
        ctypes.CDLL(str(library))
    except OSError as error:
        return error
    return None


def run(command: Sequence[str | Path], folder: Path, environment: Mapping[str, str] | None = None) -> str:
    """Run a command in `folder`. Return its standard output.

    Raises
    ------
    UserError
        If the command fails. Its complete standard error is a note of the exception.
    """
    name = Path(command[0]).name
    try:
        with _RUNNING:
            process = subprocess.run(
                command, cwd=folder, env={**os.environ, **(environment or {})}, capture_output=True, text=True,
                errors="replace", check=False,
            )  # fmt: skip
    except OSError as error:
        raise UserError(f"cannot run {name}: {error.strerror}") from error
    if process.returncode:
        lines = [line.strip() for line in process.stderr.splitlines() if line.strip()]
        first = next((line for line in lines if "error" in line.lower()), lines[0] if lines else "")
        failure = UserError(f"{name} failed: {first or f'exit status {process.returncode}'}")
        failure.add_note(process.stderr)
        raise failure
    return process.stdout


def run_parallel(functions: Iterable[Callable[[], _Result]]) -> list[_Result]:
    """Call functions in parallel, at most one for each core at a time. Return their results in order."""
    with ThreadPoolExecutor(_CORES) as pool:
        return list(pool.map(lambda function: function(), functions))
