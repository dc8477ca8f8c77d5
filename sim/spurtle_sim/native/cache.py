"""Cache of compiled files. The name of each file contains a hash of everything that it depends on."""

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
"""Name of an entry of the cache. Other tools store files with other names in the same folder."""

_MONTH = 30 * 24 * 3600.0
"""Seconds after its last use until an entry is removed."""


def find(name: str, key: object) -> Path | None:
    """Return the file or folder that `find_or_build` has stored, or None if it is absent."""
    path = _path(name, key)
    # Path.exists raises PermissionError if the folder cannot be searched.
    if not os.access(path, os.F_OK):
        return None
    with suppress(OSError):  # the cache can be read-only
        os.utime(path)
    return path


def find_or_build(name: str, key: object, build: Callable[[Path], Path]) -> Path:
    """Return a file or folder of the cache. Build it if it is absent.

    Other processes that need the same file wait until it is built.

    Parameters
    ----------
    name : str
        Name of the file or folder in the cache. A hash is inserted before the suffix.
    key : object
        Everything that the file depends on, except the release of the C++ compiler. The `repr` of `key` is hashed.
    build : callable
        Builds the file or folder in the empty folder that is its argument, and returns its path.

    Raises
    ------
    UserError
        If the cache cannot be written, or `build` raises it. Nothing is stored then.
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
            f"cannot write the cache {path.parent}: {error.strerror or error}; set XDG_CACHE_HOME to another folder"
        ) from error
    return path


@contextmanager
def _build_folder(folder: Path) -> Generator[Path]:
    """Create an empty folder, and remove it afterwards.

    The folder is locked. Another process that builds in it waits until it is removed.
    """
    while True:
        folder.mkdir(exist_ok=True)
        try:
            descriptor = os.open(folder, os.O_RDONLY)
        except FileNotFoundError:
            continue
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        # The previous holder of the lock has removed the folder. If the name refers to a new folder by now, the lock of
        # that folder is required.
        if folder.exists() and folder.stat().st_ino == os.fstat(descriptor).st_ino:
            break
        os.close(descriptor)
    try:
        # Remove the files of a process that was killed. Its lock was released when it ended.
        for path in folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def _prune(folder: Path) -> None:
    """Remove entries that have not been used for a month. Each edit of a source file creates new entries."""
    for path in folder.iterdir():
        with suppress(OSError):  # another process can have removed the entry
            if _ENTRY.fullmatch(path.name) and path.stat().st_mtime < time.time() - _MONTH:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def _path(name: str, key: object) -> Path:
    text = repr((_release(tuple(compiler())), key))
    return cache_folder() / f"{Path(name).stem}-{hashlib.sha256(text.encode()).hexdigest()[:16]}{Path(name).suffix}"


@cache
def _release(command: Sequence[str]) -> str:
    return run([*command, "--version"], Path("/"))


def cache_folder() -> Path:
    """Return the folder of the cache. It does not have to exist.

    Raises
    ------
    UserError
        If the user has no home folder, and XDG_CACHE_HOME is not an absolute path.
    """
    folder = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not folder.is_absolute():  # the XDG Base Directory Specification requires that relative paths are ignored
        try:
            home = Path.home()
        except RuntimeError:  # HOME is not set, and the user database has no entry for the user
            home = Path("~")
        if not os.access(home, os.F_OK):
            raise UserError(f"the home folder {home} does not exist: set XDG_CACHE_HOME to a folder for the cache")
        folder = home / ".cache"
    return folder / "spurtle"
