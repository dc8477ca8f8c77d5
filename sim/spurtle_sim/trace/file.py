"""Files of timed operations: Parquet with a column for each member of `TIMED_OPERATION`.

`docs/reference/formats.md` describes the format. Module `pyarrow` is imported when a file is opened, because only such
files need it.
"""

import json
from collections.abc import Generator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from spurtle.support.errors import UserError
from spurtle.support.numerals import counted

from .dtypes import TIMED_OPERATION
from .instruction import FACT
from .vectors import LENGTH_LIMIT, LENGTH_SHIFT, LENGTH_UNIT, VECTOR_LIMIT

__all__ = ["OperationsFile", "OperationsWriter", "check_order"]

_KEY = b"spurtle_operations"
"""Key of the metadata whose value is a JSON object with the version of the format."""

_FORMAT = 2
_ADDED = {"vectors": 2}
"""Columns that later versions of the format have added, with the version. In files of an earlier one they are zero."""
_MAGIC = b"PAR1"
_NAMES = TIMED_OPERATION.names or ()
_ROWS = 1 << 18  # of a row group: 19 MB in memory
_BATCH = 1 << 16  # rows that are read at once

_LIMITS = {
    **{"dispatch": 1 << 63, "pc": 1 << 56, "target": 1 << 56, "pa": 1 << 56},
    **{"facts": 1 << len(FACT), "vectors": VECTOR_LIMIT},
}
"""Values of these columns must be less."""


class OperationsWriter:
    """Writer of timed operations.

    Parameters
    ----------
    file : binary file
        Receives the content. `close` completes it and does not close it.
    """

    def __init__(self, file: IO[bytes]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._rows: list[NDArray[np.void]] = []
        self._pending = 0
        self.count = 0
        self._schema = pa.schema([pa.field(name, pa.from_numpy_dtype(_type(name)), nullable=False) for name in _NAMES])
        with_dictionary: Any = [name for name in _NAMES if name != "dispatch"]
        self._writer = pq.ParquetWriter(
            file,
            self._schema,
            compression="zstd",
            use_dictionary=with_dictionary,
            column_encoding={"dispatch": "DELTA_BINARY_PACKED"},  # a sequence that never decreases
            write_page_checksum=True,
        )

    def append(self, rows: NDArray[np.void]) -> None:
        """Append rows of `TIMED_OPERATION`. Raises UserError if they cannot be written."""
        if len(rows):
            self._rows.append(rows)
            self._pending += len(rows)
            self.count += len(rows)
        if self._pending >= _ROWS:
            self._flush()

    def discard(self) -> None:
        """End without a complete file."""
        with suppress(OSError):
            self._writer.close()

    def close(self, description: Mapping[str, Any]) -> None:
        """Write the rest. `description` is stored as JSON. Raises UserError if it cannot be written."""
        self._flush()
        try:
            self._writer.add_key_value_metadata({_KEY: json.dumps({"format": _FORMAT, **description})})
            self._writer.close()
        except OSError as error:
            raise UserError(f"cannot write the operations: {error.strerror or error}") from error

    def _flush(self) -> None:
        import pyarrow as pa

        if not self._rows:
            return
        rows = np.concatenate(self._rows)
        self._rows, self._pending = [], 0
        columns = [pa.array(np.ascontiguousarray(rows[name])) for name in _NAMES]
        try:
            self._writer.write_table(pa.Table.from_arrays(columns, schema=self._schema), row_group_size=_ROWS)
        except OSError as error:
            raise UserError(f"cannot write the operations: {error.strerror or error}") from error


class OperationsFile:
    """File of timed operations that can be read once.

    Parameters
    ----------
    path : str or Path

    Attributes
    ----------
    description : dict
        Object that the writer has stored.
    count : int
        Number of operations.

    Raises
    ------
    UserError
        If the file cannot be read, or is not a file of operations of this version or an earlier one.
    """

    def __init__(self, path: str | Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._path = path
        try:
            with Path(path).open("rb") as file:
                footer = self._check(file)
        except OSError as error:
            raise UserError(f"cannot read {path}: {error.strerror}") from error
        try:
            self._file = pq.ParquetFile(path, page_checksum_verification=True)
            schema = self._file.schema_arrow
        except (OSError, pa.ArrowException) as error:
            raise UserError(f"{path} is damaged: its footer at offset {footer:#x} cannot be read") from error
        metadata: dict[bytes, bytes] = self._file.metadata.metadata or {}
        self.description = self._describe(metadata.get(_KEY))
        self.count: int = self._file.metadata.num_rows
        for name in self._columns:
            if schema.names.count(name) > 1:
                raise UserError(f"{path}: the column {name} must be there once")
            found = schema.field(name).type if name in schema.names else None
            if found != pa.from_numpy_dtype(_type(name)):
                raise UserError(f"{path}: the column {name} must have the type {_type(name)}, not {found}")

    def _check(self, file: IO[bytes]) -> int:
        """Check the beginning and the end of the file. Return the offset of the footer."""
        start = file.read(len(_MAGIC))
        size = file.seek(0, 2)
        if start != _MAGIC:
            raise UserError(f"{self._path} is not a file of operations: there is no PAR1 at offset 0x0")
        file.seek(max(0, size - 8))
        end = file.read(8)
        footer = size - 8 - int.from_bytes(end[:4], "little")
        if size < 12 or end[4:] != _MAGIC or footer < len(_MAGIC):
            raise UserError(f"{self._path} is truncated: there is no footer before its end at offset {size:#x}")
        return footer

    def _describe(self, value: bytes | None) -> dict[str, Any]:
        try:
            found: Any = json.loads(value or b"")
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise UserError(f"{self._path} is not a file of operations: it has no metadata {_KEY.decode()}")
        description: dict[str, Any] = found
        version = description.pop("format", None)
        if version not in range(1, _FORMAT + 1):
            raise UserError(f"{self._path} must have version 1 to {_FORMAT} of the format of operations, not {version}")
        self._columns = [name for name in _NAMES if _ADDED.get(name, 1) <= version]
        return description

    def rows(self) -> Generator[NDArray[np.void]]:
        """Yield the operations as rows of `TIMED_OPERATION`.

        Raises
        ------
        UserError
            If a part of the file is damaged, or has an operation that no core reports.
        """
        import pyarrow as pa

        first = 0
        for group in range(self._file.num_row_groups):
            offset = min(
                _offset(self._file.metadata.row_group(group).column(index)) for index in range(len(self._columns))
            )
            batches = self._file.iter_batches(_BATCH, row_groups=[group], columns=self._columns)
            while True:
                try:
                    batch = next(batches, None)
                except (OSError, pa.ArrowException) as error:
                    raise UserError(
                        f"{self._path} is damaged: operations from number {first} on, in the row group at offset "
                        f"{offset:#x}, cannot be read"
                    ) from error
                if batch is None:
                    break
                rows = np.zeros(batch.num_rows, TIMED_OPERATION)
                for name in self._columns:
                    column = batch.column(batch.schema.get_field_index(name))
                    if column.null_count:
                        raise UserError(f"{self._path}: the column {name} must have no null, in the row group {group}")
                    rows[name] = column.to_numpy(zero_copy_only=False)
                _check_rows(str(self._path), rows, first)
                yield rows
                first += len(rows)


def check_order(name: str, rows: NDArray[np.void], first: int, before: NDArray[np.uint64], lanes: int) -> None:
    """Check that `dispatch` never decreases, and that at most `lanes` operations have the same.

    Parameters
    ----------
    name : str
        Name of the file.
    rows : numpy.ndarray
        Rows of `TIMED_OPERATION`, from number `first` on.
    first : int
    before : numpy.ndarray
        `dispatch` of the operations before them, at least of the last `lanes`.
    lanes : int

    Raises
    ------
    UserError
        If an operation is out of order.
    """
    dispatch = np.concatenate((before, rows["dispatch"]))
    start = first - len(before)
    for index in np.flatnonzero(dispatch[1:] < dispatch[:-1])[:1].tolist():
        raise UserError(f"{name}: operation {start + index + 1} must not dispatch before operation {start + index}")
    for index in np.flatnonzero(dispatch[lanes:] == dispatch[:-lanes])[:1].tolist():
        raise UserError(
            f"{name}: at most {counted(lanes, 'operation')} may dispatch in a cycle, one in each lane of the SPU, and "
            f"operation {start + index + lanes} is one more"
        )


def _check_rows(name: str, rows: NDArray[np.void], first: int) -> None:
    """Check each operation for itself."""
    conditions: dict[str, NDArray[np.bool]] = {
        f"{column} must be less than {limit:#x}": rows[column] >= limit for column, limit in _LIMITS.items()
    }
    conditions["issue must be at least 1"] = rows["issue"] < 1
    longest = rows["vectors"] >> LENGTH_SHIFT
    conditions[f"the length in vectors must be at most {LENGTH_LIMIT * LENGTH_UNIT} bits"] = longest > LENGTH_LIMIT
    conditions["finish must be more than issue"] = rows["finish"] <= rows["issue"]
    conditions["translate_from must be at most translate_to"] = rows["translate_from"] > rows["translate_to"]
    for sentence, wrong in conditions.items():
        for index in np.flatnonzero(wrong)[:1].tolist():
            raise UserError(f"{name}: operation {first + index}: {sentence}")


def _type(name: str) -> np.dtype[Any]:
    return TIMED_OPERATION[name]


def _offset(column: Any) -> int:
    """Return the offset of the first page of a column."""
    return column.dictionary_page_offset if column.has_dictionary_page else column.data_page_offset
