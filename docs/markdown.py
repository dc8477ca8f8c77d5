"""Markdown tables, and generated parts of a page.

A generated part is between the lines `<!-- NAME -->` and `<!-- end -->`.
"""

import re
from collections.abc import Iterable, Sequence

__all__ = ["marked_names", "rows", "table", "with_marked", "with_table"]


def table(head: Sequence[str], *rows: Sequence[str]) -> str:
    """Return a table in Markdown."""
    lines = (head, ("---",) * len(head), *rows)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def rows(page: str, name: str) -> dict[str, tuple[str, ...]]:
    """Return the cells of each row of a marked table, by the first cell. Raise ValueError if there is no such table."""
    _, _, *lines = _marked(page, name)[1].splitlines() or ("", "")
    found = (tuple(line.removeprefix("| ").removesuffix(" |").split(" | ")) for line in lines)
    return {cells[0]: cells for cells in found}


def with_table(page: str, name: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return the page with this table between the marks. Raise ValueError if the page does not have them."""
    return with_marked(page, name, table(head, *rows))


def with_marked(page: str, name: str, text: str) -> str:
    """Return the page with this text between the marks. Raise ValueError if the page does not have them."""
    marked = _marked(page, name)
    return f"{page[: marked.start(1)]}{text}\n{page[marked.end(1) :]}"


def marked_names(page: str) -> list[str]:
    """Return the names of the marked parts of a page, in order."""
    return re.findall(r"^<!-- (.*) -->\n(?:.*\n)*?<!-- end -->$", page, re.MULTILINE)


def _marked(page: str, name: str) -> re.Match[str]:
    marked = re.search(rf"^<!-- {re.escape(name)} -->\n(.*?)^<!-- end -->$", page, re.DOTALL | re.MULTILINE)
    if marked is None:
        raise ValueError(f"the page must have a line `<!-- {name} -->`, and `<!-- end -->` below it")
    return marked
