"""C++ compiled into shared libraries, and a cache in which each is kept under a hash of what it was compiled from."""

import ctypes
import fcntl
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Protocol, TypeVar

from spurtle.support.errors import UserError
from spurtle.support.streams import say

__all__ = [
    "Library",
    "Loadable",
    "cache_folder",
    "cached",
    "compiler",
    "declare",
    "kept",
    "link",
    "load",
    "package_files",
    "run",
    "together",
]

_Result = TypeVar("_Result")

_CORES = len(os.sched_getaffinity(0))

_RUNNING = threading.BoundedSemaphore(_CORES)
"""Held while a command runs, so that no more run at a time than there are cores."""


_ENTRY = re.compile(r".+-[0-9a-f]{16}(\.\w+)?")
"""Name of an entry of the cache. Other tools keep theirs in the same folder."""

_MONTH = 30 * 24 * 3600.0


class Loadable(Protocol):
    """A shared library for `load`."""

    @property
    def name(self) -> str:
        """Name that a line of progress shows."""
        ...

    def find(self) -> Path | None:
        """Return its file in the cache, or None if it must be compiled."""
        ...

    def make(self) -> Path:
        """Return its file in the cache; compile it if it is absent."""
        ...


@dataclass(frozen=True)
class Library:
    """A shared library of C++ files.

    Parameters
    ----------
    name : str
        Shown while it is compiled.
    sources : mapping of str to str
        Names and texts of its files. Each `.cpp` is a translation unit; the others are headers.
    options : sequence of str
        Further options of the compiler.
    link_options : sequence of str
        Further options of the linker.
    releases : mapping of str to str
        Release of each package whose headers or libraries the options name.
    """

    name: str
    sources: Mapping[str, str]
    options: Sequence[str] = ()
    link_options: Sequence[str] = ()
    releases: Mapping[str, str] = field(default_factory=dict[str, str])

    def find(self) -> Path | None:
        """Return its file in the cache, or None if it must be compiled."""
        return cached(self._file, self._key())

    def make(self) -> Path:
        """Return its file in the cache; compile it if it is absent.

        Raises
        ------
        UserError
            If there is no C++ compiler, it fails, or the cache cannot be written.
        """
        return kept(self._file, self._key(), self._build)

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
        together(lambda unit=unit: run([*self._compile(), "-c", unit, "-o", f"{unit}.o"], folder) for unit in units)
        return link(folder, [f"{unit}.o" for unit in units], self.link_options)


def package_files(package: str, *names: str) -> dict[str, str]:
    """Return the texts of files of a package, by their names."""
    return {name: resources.files(package).joinpath(name).read_text(encoding="utf-8") for name in names}


def load(libraries: Sequence[Loadable]) -> list[ctypes.CDLL]:
    """Load shared libraries; compile those that are not in the cache, one on each core, and show progress.

    Raises
    ------
    UserError
        If there is no C++ compiler, it fails, or the cache cannot be written.
    """
    found = [library.find() for library in libraries]
    missing = [library for library, path in zip(libraries, found, strict=True) if path is None]
    if missing:
        with _progress(len(missing)) as show:

            def make(library: Loadable) -> Path:
                with show(library.name):
                    return library.make()

            made = iter(together(lambda library=library: make(library) for library in missing))
        found = [path or next(made) for path in found]
    return [_open(library, path) for library, path in zip(libraries, found, strict=True) if path]


def declare(library: ctypes.CDLL, prefix: str, functions: Mapping[str, tuple[Any, Sequence[Any]]]) -> None:
    """Declare the C functions of a library: by name without `prefix`, the type of the result and of each argument."""
    for name, (result, arguments) in functions.items():
        function = getattr(library, f"{prefix}{name}")
        function.restype, function.argtypes = result, arguments


def _open(library: Loadable, path: Path) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(str(path))
    except OSError:  # damaged since it was compiled
        path.unlink(missing_ok=True)
        return ctypes.CDLL(str(library.make()))


@contextmanager
def _progress(total: int) -> Generator[Callable[[str], AbstractContextManager[None]]]:
    """Count on standard error what is compiled: a live line on a terminal, else a line for each."""
    # Imported here because a program that finds everything in the cache does not need it.
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
    changing = threading.Lock()

    @contextmanager
    def show(name: str) -> Generator[None]:
        with changing:
            started.append(name)
            running.append(name)
            count = f"{len(started)} of {total}: " if total > 1 else ""
            line = f"compiling {count}{', '.join(running)} ..."
            live.update(task, description=line)
            if not console.is_terminal:
                say(f"compiling {count}{name} ...")
        try:
            yield
        finally:
            with changing:
                running.remove(name)

    with live:
        task = live.add_task("compiling ...", total=None)
        yield show


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


def together(functions: Iterable[Callable[[], _Result]]) -> list[_Result]:
    """Call functions at the same time, as many as there are cores, and return their results in order."""
    with ThreadPoolExecutor(_CORES) as pool:
        return list(pool.map(lambda function: function(), functions))


def cached(name: str, key: object) -> Path | None:
    """Return the file or folder that `kept` has kept, or None."""
    path = _path(name, key)
    # Path.exists would raise in a folder that may not be searched.
    if not os.access(path, os.F_OK):
        return None
    with suppress(OSError):  # in a cache that may only be read
        os.utime(path)
    return path


def kept(name: str, key: object, build: Callable[[Path], Path]) -> Path:
    """Return a file or folder of the cache. If it is absent, `build` makes it in an empty folder and returns its
    path in it; other processes that want the same wait.

    Parameters
    ----------
    name : str
        Its name in the cache, where a hash stands before the suffix.
    key : object
        Everything that it depends on but the release of the C++ compiler. Its `repr` is hashed.
    build : function

    Raises
    ------
    UserError
        If the cache cannot be written, or `build` raises it. Nothing is kept then.
    """
    if path := cached(name, key):
        return path
    path = _path(name, key)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _build_folder(path.with_name(f"{path.name}.building")) as folder:
            if not path.exists():
                build(folder).replace(path)
                _prune(path.parent)
    except OSError as error:
        raise UserError(
            f"cannot write the cache {path.parent}: {error.strerror or error}; name another folder in XDG_CACHE_HOME"
        ) from error
    return path


@contextmanager
def _build_folder(folder: Path) -> Generator[Path]:
    """An empty folder that is removed in the end. It is locked: the next process that wants it waits until then."""
    while True:
        folder.mkdir(exist_ok=True)
        try:
            descriptor = os.open(folder, os.O_RDONLY)
        except FileNotFoundError:
            continue
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        # The previous holder of the lock has removed the folder, and another one may have its name by now.
        if folder.exists() and folder.stat().st_ino == os.fstat(descriptor).st_ino:
            break
        os.close(descriptor)
    try:
        # A process that was killed leaves its files and no lock.
        for path in folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def _prune(folder: Path) -> None:
    """Remove entries of the cache that have not been used for a month: each edit of a source file makes new ones."""
    for path in folder.iterdir():
        with suppress(OSError):  # another process has removed it
            if _ENTRY.fullmatch(path.name) and path.stat().st_mtime < time.time() - _MONTH:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def _path(name: str, key: object) -> Path:
    text = repr((_release(tuple(compiler())), key))
    return cache_folder() / f"{Path(name).stem}-{hashlib.sha256(text.encode()).hexdigest()[:16]}{Path(name).suffix}"


@cache
def _release(command: Sequence[str]) -> str:
    return run([*command, "--version"], Path("/"))


def cache_folder() -> Path:
    """Return the folder of the cache, which need not exist.

    Raises
    ------
    UserError
        If the user has no home folder, and XDG_CACHE_HOME names no other.
    """
    folder = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not folder.is_absolute():  # its specification has it ignored then
        try:
            home = Path.home()
        except RuntimeError:  # neither HOME nor an entry of the user
            home = Path("~")
        if not os.access(home, os.F_OK):
            raise UserError(f"the home folder {home} does not exist: name a folder for the cache in XDG_CACHE_HOME")
        folder = home / ".cache"
    return folder / "spurtle"
