"""Report as text. On a terminal, titles are bold, and the tables are as wide as the terminal, within limits."""

import textwrap
from collections.abc import Iterator, Sequence

from .findings import Finding
from .summary import ReportContents
from .tables import ReportTable, Unit, cell, printable, shortened

__all__ = ["COLUMNS", "highlights", "report_lines"]

COLUMNS = 100
"""Width of the report in a file or a pipe."""

_NARROWEST, _WIDEST = 40, 160
_SHORTEST_NAME = 16  # in a table, whose rows a narrow terminal wraps

_GAP = "  "
_LONGEST_PLACE = 60
_HIGHLIGHTS = 10
_FEWEST_ROWS = 3  # of the table in the highlights
_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"


def report_lines(contents: ReportContents, *, terminal: int | None = None) -> Iterator[str]:
    """Yield the lines of a report.

    Parameters
    ----------
    contents : ReportContents
    terminal : int or None
        Columns of the terminal, on which titles are bold. None for a file.
    """
    width = COLUMNS if terminal is None else min(max(terminal, _NARROWEST), _WIDEST)
    prose = min(width, COLUMNS)  # longer lines are hard to read

    def title(text: str) -> str:
        short = shortened(text, width)
        return f"{_BOLD}{short}{_PLAIN}" if terminal is not None else short

    yield title(contents.title)
    for sentence in contents.recording:
        yield from textwrap.wrap(printable(sentence), prose)
    if contents.findings:
        yield from ("", title("Findings"))
        yield from _findings(contents.findings, prose)
    for table in contents.tables:
        yield from ("", title(table.title))
        if table.note:
            yield from textwrap.wrap(printable(table.note), prose)
        yield from _table(table, width)


def highlights(contents: ReportContents) -> list[str]:
    """Return the most important lines of a report: a line for each finding, then the most expensive lines."""
    found = [textwrap.shorten(f"* {_sentences(finding)}", COLUMNS, placeholder=" ...") for finding in contents.findings]
    found = found[: _HIGHLIGHTS - _FEWEST_ROWS - 1]
    return [*found, *list(_table(contents.table("lines"), COLUMNS))[: _HIGHLIGHTS - len(found)]]


def _sentences(finding: Finding) -> str:
    """Return a finding whose place leaves room for its text: names of C++ and Rust can be long."""
    return f"{shortened(finding.place, _LONGEST_PLACE)}: {printable(finding.text)}"


def _findings(found: Sequence[Finding], width: int) -> Iterator[str]:
    for finding in found:
        yield from textwrap.wrap(_sentences(finding), width, initial_indent="* ", subsequent_indent="  ")


def _table(table: ReportTable, width: int) -> Iterator[str]:
    """Yield the heading and the rows of a table. Numbers are aligned to the right, and the name is last."""
    *columns, name = table.columns
    rows = [[cell(column.unit, value) for column, value in zip(table.columns, row, strict=True)] for row in table.rows]
    heading = [column.heading for column in table.columns]
    used = [n for n in range(len(columns)) if any(row[n] != "-" for row in rows)]
    widths = {n: max(len(row[n]) for row in [heading, *rows]) for n in used}
    remaining = max(width - sum(widths.values()) - len(_GAP) * len(used), _SHORTEST_NAME)
    assert name.unit is Unit.TEXT
    for row in [heading, *rows]:
        yield _GAP.join([*(row[n].rjust(widths[n]) for n in used), shortened(row[-1], remaining)]).rstrip()
