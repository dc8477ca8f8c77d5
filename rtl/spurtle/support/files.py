"""Output files, each written completely or not at all.

A regular file is replaced by an atomic rename. A symbolic link remains, and its target is replaced. A special file,
such as a FIFO or a device, is never replaced. Verbs that write one stream write into it; the other verbs refuse it.
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
    "replace_file",
    "write_file",
    "write_files",
    "write_folder",
    "write_json",
    "write_stream",
]

STANDARD_INPUT = "-"
"""File name that stands for standard input."""

_STREAMS = {1: "output", 2: "error"}


def check_files(names: Iterable[str | Path], inputs: Iterable[str | Path] = ()) -> None:
    """Check that regular files of these names can be written, and that none is one of `inputs`. Leave no files behind.

    Raises
    ------
    UserError
        If a file cannot be written, is named twice, or is an input, a directory, a special file or an open standard
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
    """Check as `check_files` does, but also accept the files that only `write_stream` can write.

    Raises
    ------
    UserError
        If the file cannot be written, or is an input or a directory.
    """
    if _is_stream(name):
        _check_inputs(name, inputs)
    else:
        check_files([name], inputs)


def check_folder(name: str | Path) -> None:
    """Check that a folder of this name can be created or written into. Do not create it.

    Raises
    ------
    UserError
        If the folder cannot be created or written into.
    """
    _check_name(name)
    path = Path(name)
    try:
        existing = next(folder for folder in (path, *path.parents) if os.path.lexists(folder))
        if not existing.is_dir():
            raise UserError(f"cannot write into {name}: {existing} is not a directory")
    except (OSError, ValueError) as error:
        raise UserError(f"cannot write into {name}: {_reason(error)}") from error
    if not os.access(existing, os.W_OK | os.X_OK):
        raise UserError(f"cannot write into {name}: {existing} is not writable")


def write_files(contents: Mapping[Path, bytes | Iterable[bytes]]) -> None:
    """Write regular files, each from a byte string or from several byte strings.

    The files get their names, by renaming, when all of them are complete.

    Raises
    ------
    UserError
        If a file cannot be written. No file has changed then, unless a rename failed.
    """
    targets = _targets(contents)
    unfinished = {name: _unfinished(target) for name, target in targets.items()}
    name = None
    try:
        for name, target in targets.items():
            with unfinished[name].open("xb") as file:
                content = contents[name]
                file.writelines([content] if isinstance(content, bytes) else content)
            _keep_mode(target, unfinished[name])
        for name, target in targets.items():
            unfinished[name].replace(target)
    except OSError as error:
        raise UserError(f"cannot write {name}: {error.strerror}") from error
    finally:
        for path in unfinished.values():
            with suppress(OSError):  # its folder is absent or no longer writable
                path.unlink(missing_ok=True)


def write_folder(folder: Path, contents: Mapping[str, str | bytes]) -> None:
    """Write files into a folder as `write_files` does. Create the folder if it is absent.

    Raises
    ------
    UserError
        If a file cannot be written.
    """
    _create(folder)
    write_files(
        {folder / name: content.encode() if isinstance(content, str) else content for name, content in contents.items()}
    )


def write_file(name: str | Path, data: bytes) -> None:
    """Write one regular file as `write_files` does.

    Raises
    ------
    UserError
        If the file cannot be written.
    """
    write_files({Path(name): data})


def replace_file(name: str | Path, complete: Path) -> None:
    """Give a complete file, in the same file system, the name of a regular file, and its mode if there is one.

    Raises
    ------
    UserError
        If the file cannot get the name.
    """
    target = _target(name)
    try:
        _keep_mode(target, complete)
        complete.replace(target)
    except OSError as error:
        raise UserError(f"cannot write {name}: {error.strerror}") from error


def write_stream(name: str | Path, data: bytes) -> None:
    """Write a regular file as `write_files` does, or write into a special file or an open standard stream.

    Raises
    ------
    UserError
        If the file cannot be written.
    BrokenPipeError
        If the reader of a pipe has closed it.
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
    """Write a JSON file as `write_files` does. Create its folder if it is absent.

    Raises
    ------
    UserError
        If the file cannot be written.
    """
    _create(path.parent)
    write_file(path, (json.dumps(content, indent=1) + "\n").encode())


def _create(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot write into {folder}: {error.strerror}") from error


def _targets(names: Iterable[_Name]) -> dict[_Name, Path]:
    """Return the regular file of each name. Raise UserError for other files, and for a file with two names."""
    targets: dict[_Name, Path] = {}
    for name in names:
        target = _target(name)
        for other, known in targets.items():
            if known == target:
                raise UserError(f"cannot write {name}: it is the same file as {other}, which is written as well")
        targets[name] = target
    return targets


def _target(name: str | Path) -> Path:
    """Return the regular file of `name`, which can be absent. Raise UserError for other files."""
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
    """Return the status of the file of `name`, or None if it is absent. Raise UserError if it cannot be read."""
    _check_name(name)
    try:
        return Path(name).stat()
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise UserError(f"cannot write {name}: {_reason(error)}") from error


def _check_name(name: str | Path) -> None:
    """Raise UserError if the name is empty. `Path` takes it as the current folder."""
    if name == "":
        raise UserError("the name of an output must not be empty")


def _check_inputs(name: str | Path, inputs: Iterable[str | Path]) -> None:
    """Raise UserError if `name` is the same file as one of `inputs`, under the same name or another one."""
    output = _stat(name)
    if output is None or not stat.S_ISREG(output.st_mode):
        return
    for path in inputs:
        with suppress(OSError):  # the reader of the input reports that it is absent
            if os.path.samestat(output, os.fstat(0) if path == STANDARD_INPUT else Path(path).stat()):
                read = "standard input" if path == STANDARD_INPUT else f"the input {path}"
                raise UserError(f"cannot write {name}: it is the same file as {read}")


def _is_stream(name: str | Path) -> bool:
    """Return whether the file is written into instead of replaced."""
    found = _stat(name)
    if found is None or stat.S_ISDIR(found.st_mode):
        return False
    return not stat.S_ISREG(found.st_mode) or _standard_stream(name) is not None


def _standard_stream(name: str | Path) -> int | None:
    """Return the descriptor of standard output or standard error if it is open on this file.

    Other processes can have it open too. If the file were replaced, they would continue to write to a file without a
    name.
    """
    found = _stat(name)
    for descriptor in _STREAMS:
        with suppress(OSError):  # the stream is closed
            if found and os.path.samestat(found, os.fstat(descriptor)):
                return descriptor
    return None


def _unfinished(target: Path) -> Path:
    """Return the name of a new file in the same file system."""
    return target.with_name(f".unfinished-{secrets.token_hex(8)}")


def _keep_mode(target: Path, complete: Path) -> None:
    """Give a file the mode of the file that it will replace, if there is one."""
    if target.exists():
        shutil.copymode(target, complete)


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
