"""Shared libraries that are compiled from C++ files and cached."""

import ctypes
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Protocol

from spurtle.support.streams import print_stderr

from .cache import find, find_or_build
from .compiler import compiler, link, run, run_parallel

__all__ = ["Library", "Loadable", "declare", "load", "package_files"]


class Loadable(Protocol):
    """Shared library that `load` accepts."""

    @property
    def name(self) -> str:
        """Name that the progress display shows."""
        ...

    def find(self) -> Path | None:
        """Return the file of the library in the cache, or None if it must be compiled."""
        ...

    def make(self) -> Path:
        """Return the file of the library in the cache. Compile it if it is absent."""
        ...


@dataclass(frozen=True)
class Library:
    """Shared library of C++ files.

    Parameters
    ----------
    name : str
        Name that the progress display shows.
    sources : mapping of str to str
        Texts of the files by name. Each `.cpp` file is a translation unit. The others are headers.
    options : sequence of str
        Additional options of the compiler.
    link_options : sequence of str
        Additional options of the linker.
    releases : mapping of str to str
        Releases of the packages whose headers or libraries the options name.
    """

    name: str
    sources: Mapping[str, str]
    options: Sequence[str] = ()
    link_options: Sequence[str] = ()
    releases: Mapping[str, str] = field(default_factory=dict[str, str])

    def find(self) -> Path | None:
        """Return the file of the library in the cache, or None if it must be compiled."""
        return find(self._file, self._key())

    def make(self) -> Path:
        """Return the file of the library in the cache. Compile it if it is absent.

        Raises
        ------
        UserError
            If there is no C++ compiler, the compilation fails, or the cache cannot be written.
        """
        return find_or_build(self._file, self._key(), self._build)

    @property
    def _file(self) -> str:
        return f"{self.name}.so"

    def _key(self) -> object:
        return sorted(self.sources.items()), self._compile(), self.link_options, sorted(self.releases.items())

    def _compile(self) -> list[str]:
        return [*compiler(), "-O3", "-fPIC", *self.options]

    def _build(self, folder: Path) -> Path:
        for name, text in self.sources.items():
            (folder / name).write_text(text, encoding="utf-8")
        units = [name for name in self.sources if name.endswith(".cpp")]
        run_parallel(lambda unit=unit: run([*self._compile(), "-c", unit, "-o", f"{unit}.o"], folder) for unit in units)
        return link(folder, [f"{unit}.o" for unit in units], self.link_options)


def package_files(package: str, *names: str) -> dict[str, str]:
    """Return the texts of files of a package by name."""
    return {name: resources.files(package).joinpath(name).read_text(encoding="utf-8") for name in names}


def load(libraries: Sequence[Loadable]) -> list[ctypes.CDLL]:
    """Load shared libraries. Compile those that are not in the cache in parallel, and show progress.

    Raises
    ------
    UserError
        If there is no C++ compiler, the compilation fails, or the cache cannot be written.
    """
    paths = [library.find() for library in libraries]
    missing = [library for library, path in zip(libraries, paths, strict=True) if path is None]
    if missing:
        with _progress(len(missing)) as show:

            def make(library: Loadable) -> Path:
                with show(library.name):
                    return library.make()

            built = iter(run_parallel(lambda library=library: make(library) for library in missing))
        paths = [path or next(built) for path in paths]
    return [_open(library, path) for library, path in zip(libraries, paths, strict=True) if path]


def declare(library: ctypes.CDLL, prefix: str, functions: Mapping[str, tuple[Any, Sequence[Any]]]) -> None:
    """Declare the C functions of a library.

    The keys of `functions` are names without `prefix`. The values are the types of the result and of the arguments.
    """
    for name, (result, arguments) in functions.items():
        function = getattr(library, f"{prefix}{name}")
        function.restype, function.argtypes = result, arguments


def _open(library: Loadable, path: Path) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(str(path))
    except OSError:  # the file was damaged after it was compiled
        path.unlink(missing_ok=True)
        return ctypes.CDLL(str(library.make()))


@contextmanager
def _progress(total: int) -> Generator[Callable[[str], AbstractContextManager[None]]]:
    """Show on standard error which libraries are compiled: one live line on a terminal, otherwise one line each."""
    # Imported here because a program that finds all libraries in the cache does not need it.
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    live = Progress(
        *columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False,
        disable=not console.is_terminal,
    )  # fmt: skip
    started: list[str] = []
    running: list[str] = []
    lock = threading.Lock()

    @contextmanager
    def show(name: str) -> Generator[None]:
        with lock:
            started.append(name)
            running.append(name)
            count = f"{len(started)} of {total}: " if total > 1 else ""
            line = f"compiling {count}{', '.join(running)} ..."
            live.update(task, description=line)
            if not console.is_terminal:
                print_stderr(f"compiling {count}{name} ...")
        try:
            yield
        finally:
            with lock:
                running.remove(name)

    with live:
        task = live.add_task("compiling ...", total=None)
        yield show
