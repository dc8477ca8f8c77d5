"""Files of timed operations of a process: what `--save-ops` writes, and the converter from CSV."""

import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple
from mmap import PROT_EXEC, PROT_READ, PROT_WRITE
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from spurtle.support.errors import UserError
from spurtle.support.files import check_files, write_files

from ..emulator.loader import read_image
from ..perf.process import PID, Process
from ..perf.process import Mapping as ProcessMapping
from ..trace.csv_file import read_csv
from ..trace.file import OperationsWriter

__all__ = ["OperationsSaver", "convert", "saved_process", "saved_threads"]

_CHUNK = 1 << 20
_KEYS = ("path", "argv", "build_id", "mappings", "later_mappings")
"""Keys of the description of a process."""

_ADDRESSES = 1 << 63
_THREADS = 1 << 31  # the numbers in perf.data are signed
_PROTECTION = PROT_READ | PROT_WRITE | PROT_EXEC
_BUILD_ID = re.compile("([0-9a-fA-F]{2}){0,20}")
_LONGEST_PATH = 1 << 15  # the size of a record of perf.data has 16 bits
_UNKNOWN = Process(Path("/unknown"), ("unknown",), PID, ())
"""Process of operations whose program is not known."""


class OperationsSaver:
    """Writer of the timed operations of a process. The file gets its name when it is complete.

    Parameters
    ----------
    path : str
        Name of the file.

    Raises
    ------
    UserError
        If no file can be created in its folder.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        folder = Path(os.path.realpath(path)).parent
        try:
            # The default folder for temporary files is often in memory.
            self._file: IO[bytes] = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115, `close` closes it
        except OSError as error:
            raise UserError(f"cannot write into {folder}: {error.strerror}") from error
        self._writer = OperationsWriter(self._file)
        self._mappings: list[tuple[int, ProcessMapping]] = []
        self._threads: list[tuple[int, int]] = []

    def close(self) -> None:
        """Close the temporary file."""
        self._writer.discard()
        with suppress(OSError):
            self._file.close()

    def append(self, rows: NDArray[np.void], thread: int = PID) -> None:
        """Append rows of `TIMED_OPERATION` of a thread. Raises UserError if they cannot be written."""
        if thread != (self._threads[-1][1] if self._threads else PID):
            self._threads.append((self._writer.count, thread))
        self._writer.append(rows)

    def map(self, mapping: ProcessMapping) -> None:
        """Store a mapping that the process makes after the operations so far."""
        self._mappings.append((self._writer.count, mapping))

    def save(self, process: Process) -> None:
        """Write the file. Raises UserError if it cannot be written."""
        description = {
            "path": str(process.path),
            "argv": [*process.argv],
            "build_id": process.build_id.hex(),
            "mappings": [[0, *astuple(mapping)] for mapping in process.mappings],
            "later_mappings": [[count, *astuple(mapping)] for count, mapping in self._mappings],
        }
        self._writer.close({"process": description, "threads": self._threads})
        write_files({Path(self._path): self._content()})

    def _content(self) -> Iterator[bytes]:
        self._file.seek(0)
        while data := self._file.read(_CHUNK):
            yield data


def saved_process(name: str, description: Mapping[str, Any]) -> tuple[Process, Sequence[tuple[int, ProcessMapping]]]:
    """Return the process of a file of operations, and its later mappings with the number of operations before each.

    Raises
    ------
    UserError
        If the description of the process is not valid.
    """
    found = description.get("process")
    if found is None:
        return _UNKNOWN, ()
    try:
        return _process(found)
    except ValueError as error:
        raise UserError(f"{name}: the description of the process is not valid: {error}") from error


def saved_threads(name: str, description: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Return the thread changes of a file of operations: the number of operations before each, and the thread after it.

    Raises
    ------
    UserError
        If they are not valid.
    """
    found: Any = description.get("threads", [])
    changes: list[Any] = cast("list[Any]", found) if isinstance(found, list) else [None]
    for change in changes:
        numbers = cast("list[Any]", change) if isinstance(change, list) else []
        if len(numbers) != 2 or not all(type(number) is int and 0 <= number < _ADDRESSES for number in numbers):
            raise UserError(f"{name}: threads must be a list of pairs of numbers below 2^63")
        if not 0 < numbers[1] < _THREADS:
            raise UserError(f"{name}: the number of a thread must be 1 to {_THREADS - 1}, not {numbers[1]}")
    counts = [count for count, _ in changes]
    if counts != sorted(counts):
        raise UserError(f"{name}: threads must be in the order of their numbers of operations")
    return [(count, thread) for count, thread in changes]


def _process(found: object) -> tuple[Process, Sequence[tuple[int, ProcessMapping]]]:
    """Return what the description of a process describes. Raise ValueError if perf.data could not represent it."""
    if not isinstance(found, dict):
        raise ValueError("it must be an object")
    content: dict[str, Any] = found
    if missing := [key for key in _KEYS if key not in content]:
        raise ValueError(f"it must have the key {missing[0]}")
    path, argv, build_id, *mappings = (content[key] for key in _KEYS)
    if not isinstance(argv, list) or not argv:
        raise ValueError("argv must be a list of words")
    words = [_text("each word of argv", word) for word in cast("list[Any]", argv)]
    if not isinstance(build_id, str) or not _BUILD_ID.fullmatch(build_id):
        raise ValueError("build_id must be at most 20 bytes in hexadecimal")
    start, later = (_mappings(key, entries) for key, entries in zip(_KEYS[3:], mappings, strict=True))
    process = Process(
        Path(_text("path", path)), words, PID, tuple(mapping for _, mapping in start), bytes.fromhex(build_id)
    )
    return process, later


def _mappings(name: str, entries: object) -> list[tuple[int, ProcessMapping]]:
    if not isinstance(entries, list):
        raise ValueError(f"{name} must be a list")
    found = [_mapping(name, entry) for entry in cast("list[object]", entries)]
    counts = [count for count, _ in found]
    if counts != sorted(counts):
        raise ValueError(f"{name} must be in the order of their numbers of operations")
    return found


def _mapping(name: str, entry: object) -> tuple[int, ProcessMapping]:
    values = cast("list[Any]", entry) if isinstance(entry, list) else []
    *numbers, path = values or [None]
    if len(numbers) != 5 or not all(type(number) is int and 0 <= number < _ADDRESSES for number in numbers):
        raise ValueError(f"an entry of {name} must be five numbers below 2^63 and a path")
    count, start, length, offset, protection = numbers
    if protection > _PROTECTION:
        raise ValueError(f"the protection of an entry of {name} must be 0 to {_PROTECTION}, not {protection}")
    path = _text(f"the path of an entry of {name}", path)
    if len(os.fsencode(path)) >= _LONGEST_PATH:
        raise ValueError(f"the path of an entry of {name} must have less than {_LONGEST_PATH} bytes")
    return count, ProcessMapping(start, length, offset, protection, path)


def _text(name: str, value: object) -> str:
    """Return `value`. Raise ValueError if it is not a string that a path or an argument can be."""
    with suppress(UnicodeEncodeError):  # a surrogate that no byte is decoded to
        if isinstance(value, str) and b"\0" not in os.fsencode(value):
            return value
    raise ValueError(f"{name} must be a string without null characters")


def convert(path: str, output: str, program: str | None) -> int:
    """Convert operations in CSV to a file of operations. Return their number.

    Parameters
    ----------
    path : str
        Name of the CSV file.
    output : str
    program : str or None
        Executable of the operations, at whose addresses they are.

    Raises
    ------
    UserError
        If a file cannot be read or written, or is not valid.
    """
    check_files([output], [path, *([program] if program else [])])
    process = _UNKNOWN
    if program:
        image = read_image(program)
        process = Process(Path(program).absolute(), (program,), PID, image.mappings, image.build_id)
    saver = OperationsSaver(output)
    count = 0
    try:
        for rows in read_csv(path):
            saver.append(rows)
            count += len(rows)
        saver.save(process)
    finally:
        saver.close()
    return count
