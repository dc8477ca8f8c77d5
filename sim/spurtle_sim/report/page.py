"""Report as one HTML file. It needs no script and no network, and can be read on a phone, on paper and aloud."""

from base64 import b64encode
from collections.abc import Iterator, Sequence
from html import escape

from .analysis import functions
from .annotated import AnnotatedFile, annotated_files, annotation
from .findings import Finding
from .pictures import Picture, pictures
from .reading import Profile
from .summary import ReportContents
from .tables import ReportTable, TableColumn, cell, utf8

__all__ = ["report_page"]

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
"""Content Security Policy: a browser refuses any request of the page."""

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 sans-serif; max-width: 62rem; margin: 0 auto; padding: 0 1rem 3rem; }
h1 { font-size: 1.4rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin-top: 2rem; }
a { color: LinkText; }
.scroll { overflow-x: auto; }
ol.findings > li { margin-bottom: 0.8rem; }
ol.findings p { margin: 0; }
pre { margin: 0.2rem 0; padding: 0.2rem 0.5rem; white-space: pre-wrap; overflow-wrap: anywhere; background: #8882; }
table { border-collapse: collapse; font-size: 0.85rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.15rem 0.6rem; text-align: right; white-space: nowrap; border-bottom: 1px solid #8884; }
th:first-child { text-align: left; position: sticky; left: 0; background: Canvas; }
th a { color: inherit; text-decoration-style: dotted; }
tbody th { font-weight: normal; }
table.source th, table.source td { text-align: right; position: static; border: 0; background: none; min-width: 0; }
table.source th:last-child, table.source td:last-child { text-align: left; font-family: monospace; white-space: pre; }
tr.hot { background: #e69f0033; }
figure { margin: 1rem 0; }
img { max-width: 100%; height: auto; background: #fff; }
dt { font-weight: bold; }
@media (max-width: 40rem) {
  th, td { padding: 0.15rem 0.3rem; }
  tbody th:first-child { min-width: 8rem; overflow-wrap: anywhere; white-space: normal; }
  img { min-width: 34rem; }
}
@media print { body { max-width: none; font-size: 10pt; } h2, figure, tr, li { break-inside: avoid; }
  h2 { break-after: avoid; } .scroll { overflow: visible; } nav { display: none; } th:first-child { position: static; }
  td, tbody th:first-child, table.source td:last-child { white-space: pre-wrap; overflow-wrap: anywhere; }
}
"""
# On a phone, tables and pictures are wider than the screen, and can be moved. The names of a table stay at the left.


def report_page(contents: ReportContents, profile: Profile | None) -> bytes:
    """Return a report as an HTML file. With its profile, the page has pictures and source."""
    return utf8("\n".join(_page(profile, contents))).encode()


def _page(profile: Profile | None, contents: ReportContents) -> Iterator[str]:
    sources = annotated_files(profile) if profile else []
    drawn = pictures(profile, functions(profile)) if profile else []
    yield '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    yield '<link rel="icon" href="data:,">'  # browsers would request one
    yield f"<title>{escape(contents.title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>"
    yield f"<h1>Report on {escape(contents.title)}</h1>"
    yield from _findings(contents.findings, sources, known=profile is not None)
    yield from _navigation(contents, drawn, sources)
    yield '<h2 id="recording">Recording</h2>'
    yield from (f"<p>{_sentence(sentence)}</p>" for sentence in contents.recording)
    for number, picture in enumerate(drawn):
        data = b64encode(picture.svg).decode()
        yield f'<figure><h2 id="picture{number}">{escape(picture.title)}</h2>'
        yield f'<div class="scroll" role="region" aria-labelledby="picture{number}" tabindex="0">'
        yield f'<img src="data:image/svg+xml;base64,{data}" alt="{escape(picture.text)}"></div>'
        yield f"<figcaption>{_sentence(picture.caption)}</figcaption></figure>"
    columns = _explained(contents.tables)
    for table in contents.tables:
        yield from _table(table, columns)
    for file in sources:
        yield from annotation(file)
    yield from _glossary(columns)
    yield "</main>\n</body>\n</html>\n"


def _findings(found: Sequence[Finding], sources: Sequence[AnnotatedFile], *, known: bool) -> Iterator[str]:
    """Yield the problems, each with its source line. They are the first thing on the page."""
    if not known:
        return
    yield '<h2 id="findings">Findings</h2>'
    if not found:
        yield "<p>No line has a known problem of memory accesses or branches. The tables show where the cycles are.</p>"
        return
    yield "<p>Lines with problems, the most expensive first. The link of a line leads to its annotated source.</p>"
    yield '<ol class="findings">'
    for finding in found:
        place, text = escape(finding.place), ""
        for file in sources:
            if finding.source is not None and file.path == finding.source.file:
                line = finding.source.line
                place = f'<a href="#{file.anchor(line)}">{place}</a>'
                text = file.text[line - 1].strip() if line <= len(file.text) else ""
        yield f"<li><p><strong>{escape(finding.kind)}</strong> in {place}: {_sentence(finding.cost)}</p>"
        yield f"<pre>{escape(text)}</pre>" if text else ""
        yield f"<p>{_sentence(finding.text[:1].upper() + finding.text[1:])}</p></li>"
    yield "</ol>"


def _navigation(contents: ReportContents, drawn: Sequence[Picture], sources: Sequence[AnnotatedFile]) -> Iterator[str]:
    sections = [
        ("recording", "Recording"),
        *((f"picture{number}", picture.title) for number, picture in enumerate(drawn)),
        *((table.key, table.title) for table in contents.tables),
        *((file.key, f"Source {file.path}") for file in sources),
        ("columns", "Columns of the tables"),
    ]
    links = ", ".join(f'<a href="#{key}">{escape(title)}</a>' for key, title in sections)
    yield f'<nav aria-label="Sections"><p>Sections: {links}</p></nav>'


def _sentence(text: str) -> str:
    """Return escaped text in which no line begins with the sign of a percentage."""
    return escape(text).replace(" %", "\N{NO-BREAK SPACE}%")


def _explained(tables: Sequence[ReportTable]) -> dict[tuple[str, str], str]:
    """Return the identifiers of the columns with a meaning, by heading and meaning."""
    found: dict[tuple[str, str], str] = {}
    for column in (column for table in tables for column in table.columns):
        if column.meaning:
            found.setdefault((column.heading, column.meaning), f"column{len(found)}")
    return found


def _table(table: ReportTable, columns: dict[tuple[str, str], str]) -> Iterator[str]:
    """Yield a table. Its names, the last column, are the first one here."""
    yield f'<h2 id="{table.key}">{escape(table.title)}</h2>'
    if table.note:
        yield f"<p>{_sentence(table.note)}</p>"
    yield f'<div class="scroll" role="region" aria-labelledby="{table.key}" tabindex="0"><table><thead><tr>'
    cells = [[cell(column.unit, value) for column, value in zip(table.columns, row, strict=True)] for row in table.rows]
    name = len(table.columns) - 1
    order = [name, *(n for n in range(name) if any(row[n] != "-" for row in cells))]
    for n in order:
        yield _heading(table.columns[n], columns)
    yield "</tr></thead><tbody>"
    for row in cells:
        rest = "".join(f"<td>{escape(row[n])}</td>" for n in order[1:])
        yield f'<tr><th scope="row">{escape(row[order[0]])}</th>{rest}</tr>'
    yield "</tbody></table></div>"


def _heading(column: TableColumn, columns: dict[tuple[str, str], str]) -> str:
    key = columns.get((column.heading, column.meaning))
    text = escape(column.heading)
    link = text if key is None else f'<a href="#{key}" title="{escape(column.meaning)}">{text}</a>'
    return f'<th scope="col">{link}</th>'


def _glossary(columns: dict[tuple[str, str], str]) -> Iterator[str]:
    yield '<h2 id="columns">Columns of the tables</h2>\n<dl>'
    for (heading, meaning), key in columns.items():
        yield f'<dt id="{key}">{escape(heading)}</dt><dd>{escape(meaning)}</dd>'
    yield "</dl>"
