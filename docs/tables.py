"""Generated pages, and generated parts of other pages. `python -m docs` writes them.

A generated part is between the lines `<!-- MAKER ARGUMENT ... -->` and `<!-- end -->`. `MAKERS` has the makers.
"""

import inspect
import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path

from amaranth.lib import wiring

from docs.commands import command, summary
from docs.cores import core_parameters, core_values, summaries
from docs.markdown import marked_names, table, with_marked
from docs.register_pages import REGISTERS, listed
from docs.register_pages import page as register_page
from docs.rules import proofs, rules, tests
from spurtle.arch.events import EVENTS
from spurtle.interface import memory, operation, pe_state, pmu, sampling, sysreg
from spurtle.support.files import write_file
from spurtle_sim.cli.summary import side_by_side

__all__ = ["DOCS", "configurations", "excerpt", "main", "members", "stale", "up_to_date"]

DOCS = Path(__file__).parent
EXAMPLES = DOCS.parent / "examples"

_FROM_THE_SPU = (memory.WriteSignature, pmu.PMUEventsSignature)
"""Signatures whose directions are those of the SPU. The others have those of the core."""

_INTERFACE = {
    name: getattr(module, name)
    for module in (memory, operation, pe_state, pmu, sampling, sysreg)
    for name in module.__all__
}
"""Classes and functions of the interface, by name."""


def main() -> None:
    """Write the stale pages, and print their names."""
    for path, text in stale().items():
        write_file(path, text.encode())
        print(path.relative_to(DOCS.parent))


def stale() -> dict[Path, str]:
    """Return the stale pages by path, each with the text that it must have."""
    current = {path: up_to_date(path.read_text()) for path in sorted(DOCS.rglob("*.md"))}
    folder = DOCS / "reference" / "registers"
    current |= {folder / f"{register.name}.md": register_page(register) for register in REGISTERS}
    return {path: text for path, text in current.items() if not path.exists() or path.read_text() != text}


def up_to_date(page: str) -> str:
    """Return the page with each generated part up to date."""
    for name in marked_names(page):
        kind, *arguments = shlex.split(name)
        if kind in MAKERS:
            page = with_marked(page, name, MAKERS[kind](*arguments))
    return page


def configurations() -> str:
    """Return the table that `spurtle configs` prints."""
    return table(*map(tuple, side_by_side()))


def excerpt(file: str, start: str, end: str | None = None) -> str:
    """Return the lines of a file of an example, from the line with `start` up to and excluding the line with `end`.

    Raise ValueError if there is no such line.
    """
    lines = (EXAMPLES / file).read_text().splitlines()
    first = _line(lines, start)
    last = len(lines) if end is None else _line(lines, end)
    return "\n".join(["```verilog", *"\n".join(lines[first:last]).rstrip().splitlines(), "```"])


def _line(lines: list[str], text: str) -> int:
    for number, line in enumerate(lines):
        if text in line:
            return number
    raise ValueError(f"a line must have {text!r}")


def members(name: str) -> str:
    """Return the docstring of a class of `spurtle.interface` in Markdown: its text, and a table of its members."""
    kind = _INTERFACE[name]
    text, _, listed = (inspect.getdoc(kind) or "").partition("\n\nMembers\n-------\n")
    entries = [_entry(entry) for entry in re.split(r"\n(?=\S)", listed) if entry]
    if not entries:
        return text
    if not issubclass(kind, wiring.Signature):
        head, rows = ("field", "bits", "meaning"), [(names, bits, said) for names, _, bits, said in entries]
    else:
        outward = "Out" if kind in _FROM_THE_SPU else "In"
        head = ("port", "direction", "bits", "meaning")
        rows = [(names, "output" if flow == outward else "input", bits, said) for names, flow, bits, said in entries]
    return f"{text}\n\n{table(head, *rows)}"


def _entry(entry: str) -> tuple[str, str, str, str]:
    """Return names, direction (if any), bits and meaning of an entry in a "Members" section."""
    head, _, said = entry.partition("\n")
    names, _, types = head.partition(" : ")
    flow, _, _ = types.partition("(")
    bits = [
        re.sub(r"^(?:In|Out|unsigned)(?:\((.*)\))?", r"\1", each) for each in re.split(r", (?=Out|unsigned)", types)
    ]
    return ", ".join(f"`{name}`" for name in names.split(", ")), flow, ", ".join(bits), " ".join(said.split())


def events() -> str:
    """Return a table of the events that the architecture defines."""
    rows = [
        (
            f"{row.event:d}",
            row.title,
            row.operations.value,
            f"v1p{row.version - 1}",
            " or ".join(f"`{feature}`" for feature in row.features),
            "yes" if row.optional else "",
            f"`{row.word}`",
        )
        for row in EVENTS
    ]
    return table(("bit", "event", "operations", "since", "feature", "optional", "perf"), *rows)


MAKERS: Mapping[str, Callable[..., str]] = {
    "command": command,
    "commands": summary,
    "configurations": configurations,
    "core-parameters": core_parameters,
    "core-values": core_values,
    "cores": summaries,
    "events": events,
    "excerpt": excerpt,
    "members": members,
    "proofs": proofs,
    "registers": listed,
    "rules": rules,
    "tests": tests,
}
"""Functions that return a generated part, by the first word of its mark. The other words are their arguments."""

if __name__ == "__main__":
    main()
