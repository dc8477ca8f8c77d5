"""Files of timed operations of a process: what `--save-ops` writes, and the converter from CSV."""

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from spurtle.support.errors import UserError
from spurtle.support.files import check_files, write_files

from ..emulator.loader import read_image
from ..perf.process import PID, Process
from ..perf.process import Mapping as ProcessMapping
from ..trace.csv_file import read_csv
from ..trace.file import OperationsWriter

__all__ = ["OperationsSaver", "convert", "saved_process"]

_CHUNK = 1 << 20
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

    def close(self) -> None:
        """Close the temporary file."""
        self._writer.discard()
        with suppress(OSError):
            self._file.close()

    def append(self, rows: NDArray[np.void]) -> None:
        """Append rows of `TIMED_OPERATION`. Raises UserError if they cannot be written."""
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
        self._writer.close({"process": description})
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
        start = tuple(_mapping(entry)[1] for entry in found["mappings"])
        later = [_mapping(entry) for entry in found["later_mappings"]]
        argv = tuple(str(word) for word in found["argv"])
        process = Process(Path(found["path"]), argv, PID, start, bytes.fromhex(found["build_id"]))
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"{name}: the description of the process is not valid: {error!r}") from error
    return process, later


def _mapping(entry: Sequence[Any]) -> tuple[int, ProcessMapping]:
    count, start, length, offset, protection, path = entry
    return int(count), ProcessMapping(int(start), int(length), int(offset), int(protection), str(path))


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
