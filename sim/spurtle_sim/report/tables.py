"""Tables of a report: columns with a format, and rows of values. Every output shows the same tables."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, unique
from typing import Any, NamedTuple

from .statistics import Percentiles

__all__ = ["ReportTable", "TableColumn", "Unit", "cell", "printable", "shortened", "utf8"]

_SURROGATES = re.compile("[\ud800-\udfff]")


@unique
class Unit(Enum):
    """Unit of a column, which decides how a value is written."""

    TEXT = "text"
    COUNT = "count"
    PERCENT = "percent"  # a share from 0 to 1
    MARGIN = "margin"  # half of an interval of shares
    CHANGE = "change"  # difference of shares
    CYCLES = "cycles"  # percentiles of a latency


class TableColumn(NamedTuple):
    """Column of a table: key in JSON, heading, unit, and a sentence for readers of the HTML page."""

    key: str
    heading: str
    unit: Unit
    meaning: str = ""


@dataclass(frozen=True)
class ReportTable:
    """Table of a report.

    Parameters
    ----------
    key, title : str
    columns : sequence of TableColumn
        The name of a row is in the last column.
    rows : list of sequences
        Values of each row, None if a value is unknown.
    note : str
        Sentence below the title. Empty without one.
    """

    key: str
    title: str
    columns: Sequence[TableColumn]
    rows: list[Sequence[Any]] = field(default_factory=list[Sequence[Any]])
    note: str = ""

    def objects(self) -> list[dict[str, Any]]:
        """Return a dictionary for each row, for JSON."""
        keys = [column.key for column in self.columns]
        return [
            {
                key: value._asdict() if isinstance(value, Percentiles) else value
                for key, value in zip(keys, row, strict=True)
            }
            for row in self.rows
        ]


def cell(unit: Unit, value: Any) -> str:
    """Return the text of a value."""
    if value is None:
        return "-"
    match unit:
        case Unit.COUNT:
            return f"{value:,}"
        case Unit.PERCENT:
            return f"{100 * value:.1f}"
        case Unit.MARGIN:
            return f"±{100 * value:.1f}"
        case Unit.CHANGE:
            return f"{100 * value:+.1f}"
        case _:
            return str(value)


def utf8(text: str) -> str:
    """Return the text with U+FFFD for each byte of the name of a file that is not UTF-8.

    Python has such a byte as a surrogate, which no output can contain.
    """
    return _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text)


def printable(text: str) -> str:
    """Return the text with a question mark for each control character, which a terminal would obey."""
    return "".join(char if char.isprintable() else "?" for char in utf8(text))


def shortened(text: str, width: int) -> str:
    """Return the text with at most `width` characters, without its middle, and without control characters.

    The end of a name has the file and the line, and the name of a method.
    """
    plain = printable(text)
    tail = (width - 2) // 2
    return plain if len(plain) <= width else f"{plain[: width - 3 - tail]}...{plain[len(plain) - tail :]}"
