"""Data that a long run collects, kept in a file instead of memory."""

import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from spurtle.support.errors import UserError

__all__ = ["Data", "Spool", "Stored"]


@dataclass(frozen=True, slots=True)
class Stored:
    """A byte string in a file. `len` gives its length, `bytes` reads it.

    Parameters
    ----------
    file : binary file
        Can be read and positioned.
    offset, length : int
        Bytes.
    """

    file: IO[bytes]
    offset: int
    length: int

    def __len__(self) -> int:
        return self.length

    def __bytes__(self) -> bytes:
        self.file.seek(self.offset)
        return self.file.read(self.length)


Data = bytes | Stored
"""A byte string, in memory or in a file."""


class Spool:
    """A temporary file of byte strings. It has no name: the operating system removes it when it is closed.

    Parameters
    ----------
    folder : Path
        A folder with space for the data. The usual folder for temporary files is often in memory.

    Raises
    ------
    UserError
        If no file can be made in the folder.
    """

    def __init__(self, folder: Path):
        self._folder = folder
        self._length = 0
        try:
            self._file: IO[bytes] = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115, `close` closes it
        except OSError as error:
            raise UserError(f"cannot write into {folder}: {error.strerror}") from error

    def close(self) -> None:
        """Close the file. What it holds can no longer be read."""
        with suppress(OSError):  # after `append` has failed: it writes the rest of the data first
            self._file.close()

    def append(self, data: bytes) -> Stored:
        """Append `data` to the file. Raises UserError if it cannot be written."""
        stored = Stored(self._file, self._length, len(data))
        try:
            self._file.seek(self._length)
            self._file.write(data)
            self._file.flush()
        except OSError as error:
            raise UserError(f"cannot write into {self._folder}: {error.strerror}") from error
        self._length += len(data)
        return stored
