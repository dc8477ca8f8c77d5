"""Output files, each written completely or not at all.

A regular file takes its name by an atomic rename. A symbolic link stays: its target is replaced. A special file, such
as a FIFO or a device, is never replaced. A verb that writes one stream writes into it; the others refuse it.
"""

import errno
import json
import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from .errors import UserError

_Name = TypeVar("_Name", bound=str | Path)

__all__ = [
    "STANDARD_INPUT",
    "check_files",
    "check_folder",
    "check_stream",
    "write_file",
    "write_files",
    "write_folder",
    "write_json",
    "write_stream",
]

STANDARD_INPUT = "-"
"""Name of standard input as an input."""

_STREAMS = {1: "output", 2: "error"}


def check_files(names: Iterable[str | Path], inputs: Iterable[str | Path] = ()) -> None:
    """Check that regular files of these names can be written, and that none is one of `inputs`. Leave nothing behind.

    Raises
    ------
    UserError
        If one cannot be written, is named twice, or is an input, a directory, a special file or an open standard
        stream.
    """
    targets = _targets(names)
    for name, target in targets.items():
        _check_inputs(name, inputs)
        if (descriptor := _standard_stream(name)) is not None:
            raise UserError(f"cannot write {name}: it is open as standard {_STREAMS[descriptor]}")
        unfinished = _unfinished(target)
        try:
            unfinished.touch(exist_ok=False)
            unfinished.unlink()
        except OSError as error:
            raise UserError(f"cannot write {name}: {error.strerror}") from error


def check_stream(name: str | Path, inputs: Iterable[str | Path] = ()) -> None:
    """Check as `check_files` does, but accept what `write_stream` alone can write.

    Raises
    ------
    UserError
        If it cannot be written, or is an input or a directory.
    """
    if _is_stream(name):
        _check_inputs(name, inputs)
    else:
        check_files([name], inputs)


def check_folder(name: str | Path) -> None:
    """Check that a folder of that name can be made, or written into. Make nothing.

    Raises
    ------
    UserError
        If it cannot.
    """
    path = Path(name)
    try:
        there = next(folder for folder in (path, *path.parents) if os.path.lexists(folder))
        if not there.is_dir():
            raise UserError(f"cannot write into {name}: {there} is not a directory")
    except (OSError, ValueError) as error:
        raise UserError(f"cannot write into {name}: {_reason(error)}") from error
    if not os.access(there, os.W_OK | os.X_OK):
        raise UserError(f"cannot write into {name}: {there} may not be written into")


def write_files(contents: Mapping[Path, bytes | Iterable[bytes]]) -> None:
    """Write regular files, each from a byte string or from one byte string after the other. They take their names when
    all of them are complete.

    Raises
    ------
    UserError
        If one cannot be written. No file has changed then, unless the last step of renaming failed.
    """
    targets = _targets(contents)
    unfinished = {name: _unfinished(target) for name, target in targets.items()}
    name = None
    try:
        for name, target in targets.items():
            with unfinished[name].open("xb") as file:
                content = contents[name]
                file.writelines([content] if isinstance(content, bytes) else content)
            if target.exists():
                shutil.copymode(target, unfinished[name])
        for name, target in targets.items():
            unfinished[name].replace(target)
    except OSError as error:
        raise UserError(f"cannot write {name}: {error.strerror}") from error
    finally:
        for path in unfinished.values():
            with suppress(OSError):  # its folder is absent, or may not be written into any more
                path.unlink(missing_ok=True)


def write_folder(folder: Path, contents: Mapping[str, str | bytes]) -> None:
    """Write files by their names in a folder, which is made if it is absent, as `write_files` does.

    Raises
    ------
    UserError
        If one cannot be written.
    """
    _make(folder)
    write_files(
        {folder / name: content.encode() if isinstance(content, str) else content for name, content in contents.items()}
    )


def write_file(name: str | Path, data: bytes) -> None:
    """Write one regular file, as `write_files` does.

    Raises
    ------
    UserError
        If it cannot be written.
    """
    write_files({Path(name): data})


def write_stream(name: str | Path, data: bytes) -> None:
    """Write a regular file as `write_files` does, or into a special file or an open standard stream.

    Raises
    ------
    UserError
        If it cannot be written.
    BrokenPipeError
        If the reader of a pipe is gone.
    """
    if not _is_stream(name):
        write_file(name, data)
        return
    descriptor = _standard_stream(name)
    try:
        with open(name if descriptor is None else descriptor, "wb", closefd=descriptor is None) as stream:
            stream.write(data)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UserError(f"cannot write {name}: {error.strerror}") from error


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file as `write_files` does. Its folder is made if it is absent.

    Raises
    ------
    UserError
        If it cannot be written.
    """
    _make(path.parent)
    write_file(path, (json.dumps(content, indent=1) + "\n").encode())


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot write into {folder}: {error.strerror}") from error


def _targets(names: Iterable[_Name]) -> dict[_Name, Path]:
    """Return the regular file that each name leads to. Raises UserError for any other, and for one with two names."""
    targets: dict[_Name, Path] = {}
    for name in names:
        target = _target(name)
        for other, known in targets.items():
            if known == target:
                raise UserError(f"cannot write {name}: it is the same file as {other}, which is written as well")
        targets[name] = target
    return targets


def _target(name: str | Path) -> Path:
    """Return the regular file that `name` leads to, which may be absent. Raises UserError for any other."""
    found = _stat(name)
    if found is not None:
        if stat.S_ISDIR(found.st_mode):
            raise UserError(f"cannot write {name}: it is a directory")
        if not stat.S_ISREG(found.st_mode):
            raise UserError(f"cannot write {name}: it must be a regular file, not a special one")
        if not os.access(name, os.W_OK):
            raise UserError(f"cannot write {name}: {os.strerror(errno.EACCES)}")
    return Path(os.path.realpath(name))


def _stat(name: str | Path) -> os.stat_result | None:
    """Return the status of the file that `name` leads to, or None if it is absent. Raises UserError."""
    try:
        return Path(name).stat()
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise UserError(f"cannot write {name}: {_reason(error)}") from error


def _check_inputs(name: str | Path, inputs: Iterable[str | Path]) -> None:
    """Raise UserError if `name` is one of the regular files that are read, under the same name or another."""
    output = _stat(name)
    if output is None or not stat.S_ISREG(output.st_mode):
        return
    for path in inputs:
        with suppress(OSError):  # its reader reports that it is absent
            if os.path.samestat(output, os.fstat(0) if path == STANDARD_INPUT else Path(path).stat()):
                read = "standard input" if path == STANDARD_INPUT else f"the input {path}"
                raise UserError(f"cannot write {name}: it is the same file as {read}")


def _is_stream(name: str | Path) -> bool:
    """Return whether the file is written into, and not replaced."""
    found = _stat(name)
    if found is None or stat.S_ISDIR(found.st_mode):
        return False
    return not stat.S_ISREG(found.st_mode) or _standard_stream(name) is not None


def _standard_stream(name: str | Path) -> int | None:
    """Return the descriptor of standard output or standard error if it is open on this file: it may be in use by other
    processes, which would go on writing to a file without a name.
    """
    found = _stat(name)
    for descriptor in _STREAMS:
        with suppress(OSError):  # it is closed
            if found and os.path.samestat(found, os.fstat(descriptor)):
                return descriptor
    return None


def _unfinished(target: Path) -> Path:
    """Return the name of a file that is absent, in the same file system."""
    return target.with_name(f".unfinished-{secrets.token_hex(8)}")


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
