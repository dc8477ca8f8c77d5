"""Report as one HTML file. It needs no script and no network, and can be read on a phone, on paper and aloud."""

from base64 import b64encode
from collections.abc import Iterator
from html import escape
from pathlib import Path

import numpy as np

from spurtle.arch import Event

from .analysis import functions
from .pictures import pictures
from .reading import Profile
from .summary import ReportContents
from .tables import ReportTable, Unit, cell

__all__ = ["report_page"]

_CONTEXT = 4  # lines of source that are shown before and after a line with samples
_FILES = 5  # most source files that are shown
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
"""Content Security Policy: a browser refuses any request of the page."""

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 sans-serif; max-width: 62rem; margin: 0 auto; padding: 0 1rem 3rem; }
h1 { font-size: 1.4rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin-top: 2rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.85rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; }
th, td { padding: 0.15rem 0.6rem; text-align: right; white-space: nowrap; border-bottom: 1px solid #8884; }
th:last-child, td:last-child { text-align: left; }
td.source { font-family: monospace; white-space: pre; }
tr.hot { background: #e69f0033; }
figure { margin: 1rem 0; }
img { max-width: 100%; height: auto; background: #fff; }
@media print { body { max-width: none; font-size: 10pt; } h2, figure, tr { break-inside: avoid; }
  .scroll { overflow: visible; } }
"""


def report_page(contents: ReportContents, profile: Profile | None) -> bytes:
    """Return a report as an HTML file. With its profile, the page has pictures and source."""
    return "\n".join(_page(profile, contents)).encode()


def _page(profile: Profile | None, contents: ReportContents) -> Iterator[str]:
    yield '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    yield '<link rel="icon" href="data:,">'  # browsers would request one
    yield f"<title>{escape(contents.title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>"
    yield f"<h1>{escape(contents.title)}</h1>"
    yield from (f"<p>{escape(sentence)}</p>" for sentence in contents.recording)
    if contents.findings:
        yield '<h2 id="findings">Findings</h2>\n<ol>'
        yield from (f"<li>{escape(sentence)}</li>" for sentence in contents.findings)
        yield "</ol>"
    for picture in pictures(profile, functions(profile)) if profile else ():
        data = b64encode(picture.svg).decode()
        yield f'<figure><h2>{escape(picture.title)}</h2><img src="data:image/svg+xml;base64,{data}"'
        yield f' alt="{escape(picture.text)}"><figcaption>{escape(picture.text)}</figcaption></figure>'
    for table in contents.tables:
        yield from _table(table)
    if profile is not None:
        yield from _sources(profile)
    yield "</main>\n</body>\n</html>\n"


def _table(table: ReportTable) -> Iterator[str]:
    yield f'<h2 id="{table.key}">{escape(table.title)}</h2>'
    if table.note:
        yield f"<p>{escape(table.note)}</p>"
    yield f'<div class="scroll" role="region" aria-labelledby="{table.key}" tabindex="0"><table><thead><tr>'
    for column in table.columns:
        title = f' title="{escape(column.meaning)}"' if column.meaning else ""
        yield f'<th scope="col"{title}>{escape(column.heading)}</th>'
    yield "</tr></thead><tbody>"
    for row in table.rows:
        cells = [cell(column.unit, value) for column, value in zip(table.columns, row, strict=True)]
        first = "".join(f"<td>{escape(text)}</td>" for text in cells[:-1])
        yield f'<tr>{first}<th scope="row">{escape(cells[-1])}</th></tr>'
    yield "</tbody></table></div>"


def _sources(profile: Profile) -> Iterator[str]:
    """Yield the source files with the most samples: their lines with samples and some lines around them."""
    keys = [(place.source.file, place.source.line) if place.source else None for place in profile.places]
    numbers: dict[tuple[str, int], int] = {}
    place_line = np.array([-1 if key is None else numbers.setdefault(key, len(numbers)) for key in keys])
    group = place_line[profile.place]
    known = group >= 0
    if not known.any():
        return
    count = len(numbers)
    samples = np.bincount(group[known], minlength=count)
    events = {
        name: np.bincount(group[known & profile.has_event(event)], minlength=count)
        for name, event in (("refills", Event.L1D_REFILL), ("mispredicted", Event.MISPREDICTED))
    }
    cycles = np.bincount(group[known], profile.columns.total[known], minlength=count)
    files: dict[str, dict[int, tuple[int, ...]]] = {}
    for (file, line), n in numbers.items():
        values = (int(samples[n]), int(cycles[n]), *(int(each[n]) for each in events.values()))
        files.setdefault(file, {})[line] = values
    ordered = sorted(files, key=lambda file: -sum(values[1] for values in files[file].values()))
    for number, file in enumerate(ordered[:_FILES]):
        text = _source_text(profile, file)
        if text is not None:
            yield from _source(f"source{number}", file, text, files[file])


def _source(key: str, file: str, text: list[str], found: dict[int, tuple[int, ...]]) -> Iterator[str]:
    yield f'<h2 id="{key}">Source {escape(file)}</h2>'
    yield f'<div class="scroll" role="region" aria-labelledby="{key}" tabindex="0"><table><thead><tr>'
    headings = ("samples", "cycles", "refills", "mispredicted", "line", "source")
    yield "".join(f'<th scope="col">{heading}</th>' for heading in headings)
    yield "</tr></thead><tbody>"
    shown = sorted({n for line in found for n in range(line - _CONTEXT, line + _CONTEXT + 1) if 1 <= n <= len(text)})
    most = max(values[1] for values in found.values())
    previous = 0
    for line in shown:
        if previous and line > previous + 1:
            yield '<tr><td colspan="5"></td><td class="source">...</td></tr>'
        previous = line
        values = found.get(line, ())
        hot = ' class="hot"' if values and values[1] >= most / 10 else ""
        cells = "".join(f"<td>{cell(Unit.COUNT, value) if value else ''}</td>" for value in values or ("",) * 4)
        yield f'<tr{hot}>{cells}<td>{line}</td><td class="source">{escape(text[line - 1])}</td></tr>'
    yield "</tbody></table></div>"


def _source_text(profile: Profile, file: str) -> list[str] | None:
    """Return the lines of a source file, which is found where the compiler read it, or next to the program."""
    folders = dict.fromkeys(
        Path(each.mapping.path).parent
        for each in profile.contents.sideband.mappings
        if each.mapping.path.startswith("/")
    )
    for path in (Path(file), *(folder / file for folder in folders), *(folder / Path(file).name for folder in folders)):
        try:
            if path.is_absolute() and path.is_file():
                return path.read_text(errors="replace").splitlines()
        except (OSError, ValueError):
            continue
    return None
