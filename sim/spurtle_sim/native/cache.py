"""A cache in which each file is kept under a hash of what it was made from."""

import fcntl
import hashlib
import os
import re
import shutil
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from spurtle.support.errors import UserError

from .compiler import compiler, run

__all__ = ["cache_folder", "find", "find_or_build"]

_ENTRY = re.compile(r".+-[0-9a-f]{16}(\.\w+)?")
"""Name of an entry of the cache. Other tools keep theirs in the same folder."""


_MONTH = 30 * 24 * 3600.0


def find(name: str, key: object) -> Path | None:
    """Return the file or folder that `kept` has kept, or None."""
    path = _path(name, key)
    # Path.exists would raise in a folder that may not be searched.
    if not os.access(path, os.F_OK):
        return None
    with suppress(OSError):  # in a cache that may only be read
        os.utime(path)
    return path


def find_or_build(name: str, key: object, build: Callable[[Path], Path]) -> Path:
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
    if path := find(name, key):
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
