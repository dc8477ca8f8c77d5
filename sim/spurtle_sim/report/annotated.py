"""Annotated source in the page of a report: lines with their samples, and some lines around them."""

from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import NamedTuple

import numpy as np

from spurtle.arch import Event

from .lines import SourceLine
from .reading import Profile
from .tables import Unit, cell

__all__ = ["AnnotatedFile", "annotated_files", "annotation"]

_CONTEXT = 4  # lines of source that are shown before and after a line with samples
_FILES = 5  # most source files that are shown
_HEADINGS = ("samples", "cycles", "refills", "mispred")
_NOTE = (
    "Samples of each line, the sum of their total latencies in cycles, loads that missed the L1 data cache, and "
    "mispredicted branches. Lines with at least a tenth of the cycles of the most expensive line are marked with *."
)


class AnnotatedFile(NamedTuple):
    """Source file with samples.

    Members
    -------
    key : str
        Identifier in the page.
    path : str
    text : list of str
        Lines of the file.
    found : dict of int to tuple
        Samples, cycles, refills and mispredicted branches by the number of a line.
    """

    key: str
    path: str
    text: list[str]
    found: dict[int, tuple[int, ...]]

    def anchor(self, line: int) -> str:
        """Return the identifier of a line in the page."""
        return f"{self.key}-{line}"


def annotated_files(profile: Profile) -> list[AnnotatedFile]:
    """Return the source files with the most cycles, as far as they can be read."""
    keys = [place.source for place in profile.places]
    numbers: dict[SourceLine, int] = {}
    place_line = np.array([-1 if key is None else numbers.setdefault(key, len(numbers)) for key in keys])
    group = place_line[profile.place]
    known = group >= 0
    if not known.any():
        return []
    count = len(numbers)
    columns = [
        np.bincount(group[known], minlength=count),
        np.bincount(group[known], profile.columns.total[known], minlength=count),
        *(
            np.bincount(group[known & profile.has_event(event)], minlength=count)
            for event in (Event.L1D_REFILL, Event.MISPREDICTED)
        ),
    ]
    files: dict[str, dict[int, tuple[int, ...]]] = {}
    for source, n in numbers.items():
        files.setdefault(source.file, {})[source.line] = tuple(int(each[n]) for each in columns)
    ordered = sorted(files, key=lambda file: -sum(values[1] for values in files[file].values()))
    texts = [(file, _source_text(profile, file)) for file in ordered[:_FILES]]
    return [
        AnnotatedFile(f"source{number}", file, text, files[file])
        for number, (file, text) in enumerate(texts)
        if text is not None
    ]


def annotation(file: AnnotatedFile) -> Iterator[str]:
    """Yield the section of a source file. Columns without a value are left out."""
    found = file.found
    used = [n for n in range(len(_HEADINGS)) if any(values[n] for values in found.values())]
    yield f'<h2 id="{file.key}">Source {escape(file.path)}</h2>\n<p>{_NOTE}</p>'
    yield f'<div class="scroll" role="region" aria-labelledby="{file.key}" tabindex="0"><table class="source">'
    yield "<thead><tr>"
    yield "".join(f'<th scope="col">{heading}</th>' for heading in (*(_HEADINGS[n] for n in used), "line", "source"))
    yield "</tr></thead><tbody>"
    text = file.text
    shown = sorted({n for line in found for n in range(line - _CONTEXT, line + _CONTEXT + 1) if 1 <= n <= len(text)})
    most = max(values[1] for values in found.values())
    previous = 0
    for line in shown:
        if previous and line > previous + 1:
            yield f'<tr><td colspan="{len(used) + 1}"></td><td>...</td></tr>'
        previous = line
        values = found.get(line, (0,) * len(_HEADINGS))
        hot = values[1] >= most / 10
        cells = "".join(f"<td>{cell(Unit.COUNT, values[n]) if values[n] else ''}</td>" for n in used)
        mark = f' id="{file.anchor(line)}"' + (' class="hot"' if hot else "")
        number = f'<th scope="row">{"* " if hot else ""}{line}</th>'
        yield f"<tr{mark}>{cells}{number}<td>{escape(text[line - 1])}</td></tr>"
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
