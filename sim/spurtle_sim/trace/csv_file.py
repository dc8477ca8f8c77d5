"""Timed operations in CSV, which other simulators can write."""

import csv
from collections.abc import Generator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spurtle.support.errors import UserError
from spurtle.support.numerals import number

from .dtypes import TIMED_OPERATION
from .instruction import FACT

__all__ = ["read_csv"]

_NAMES = TIMED_OPERATION.names or ()
_REQUIRED = ("dispatch", "pc", "issue", "finish")
_BATCH = 1 << 16


def read_csv(path: str | Path) -> Generator[NDArray[np.void]]:
    """Yield the operations of a CSV file as rows of `TIMED_OPERATION`.

    The first line has the names of the columns. A column that is absent is zero, except `facts`: the operations have
    retired. Facts are a number, or names with spaces between them.

    Raises
    ------
    UserError
        If the file cannot be read, or a cell is not valid.
    """
    try:
        with Path(path).open(newline="", encoding="utf-8") as file:
            lines = csv.reader(file, strict=True)
            head = next(lines, [])
            _check_head(path, head)
            rows: list[tuple[int, ...]] = []
            for cells in lines:
                if cells:
                    rows.append(_row(f"{path}: line {lines.line_num}", head, cells))
                if len(rows) == _BATCH:
                    yield np.array(rows, TIMED_OPERATION)
                    rows = []
            yield np.array(rows, TIMED_OPERATION)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not a CSV file: {error}") from error


def _check_head(path: str | Path, head: Sequence[str]) -> None:
    for name in head:
        if name not in _NAMES:
            raise UserError(f"{path}: a column must be {', '.join(_NAMES)}, not {name!r}")
        if head.count(name) > 1:
            raise UserError(f"{path}: the column {name} must be there once")
    for name in _REQUIRED:
        if name not in head:
            raise UserError(f"{path}: the column {name} is missing in line 1")


def _row(line: str, head: Sequence[str], cells: Sequence[str]) -> tuple[int, ...]:
    if len(cells) != len(head):
        raise UserError(f"{line} must have {len(head)} cells, not {len(cells)}")
    values = {**dict.fromkeys(_NAMES, 0), "facts": FACT["retired"]}
    for name, cell in zip(head, cells, strict=True):
        value = number(cell.strip())
        if value is None and name == "facts":
            words = cell.split()
            if unknown := [word for word in words if word not in FACT]:
                raise UserError(f"{line}: a fact must be {', '.join(FACT)}, not {unknown[0]!r}")
            value = sum(FACT[word] for word in {*words})
        limit = 1 << 8 * TIMED_OPERATION[name].itemsize
        if value is None or value >= limit:
            raise UserError(f"{line}: {name} must be a number less than {limit:#x}, not {cell!r}")
        values[name] = value
    return tuple(values.values())
