"""Temporary file for the data of a long run, so that it does not fill memory."""

import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from spurtle.support.errors import UserError

__all__ = ["Data", "Spool", "Stored"]


@dataclass(frozen=True, slots=True)
class Stored:
    """Byte string in a file. `len` returns its length, and `bytes` reads it.

    Parameters
    ----------
    file : binary file
        Seekable file.
    offset, length : int
        Position and length in bytes.
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
"""Byte string in memory or in a file."""


class Spool:
    """Temporary file of byte strings. It has no name, so the operating system removes it when it is closed.

    Parameters
    ----------
    folder : Path
        Folder with space for the data. The default folder for temporary files is often in memory.

    Raises
    ------
    UserError
        If no file can be created in the folder.
    """

    def __init__(self, folder: Path):
        self._folder = folder
        self._length = 0
        try:
            self._file: IO[bytes] = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115, `close` closes it
        except OSError as error:
            raise UserError(f"cannot write into {folder}: {error.strerror}") from error

    def close(self) -> None:
        """Close the file. Its data can no longer be read."""
        with suppress(OSError):  # after a failed `append`, closing writes the rest of the data and fails again
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
