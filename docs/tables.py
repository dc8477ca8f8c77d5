"""Directives for what is not written twice: `members` shows what a docstring of `spurtle.pe` says of a port, or of what
is in one; `configurations` the named configurations side by side.
"""

import inspect
import re
from typing import TYPE_CHECKING

from amaranth.lib import wiring
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

from docs.markdown import table
from spurtle import config, pe
from spurtle_sim.about import FIGURES, side_by_side

if TYPE_CHECKING:
    from sphinx.application import Sphinx

__all__ = ["Configurations", "Members", "members", "setup"]

_FROM_THE_SPU = (pe.WritePort, pe.PMUEvents)
"""Signatures that are seen from the SPU; others are seen from the core."""


def setup(app: "Sphinx") -> dict[str, bool]:
    """Registers the extension: Sphinx calls this."""
    app.add_directive("members", Members)
    app.add_directive("configurations", Configurations)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class Members(SphinxDirective):
    """The docstring of the class of `spurtle.pe` that is named."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        return _parsed(self, members(self.arguments[0]), inspect.getfile(pe))


class Configurations(SphinxDirective):
    """What `spurtle configs` prints."""

    def run(self) -> list[nodes.Node]:
        return _parsed(self, table(*map(tuple, side_by_side())), inspect.getfile(config), str(FIGURES))


def _parsed(directive: SphinxDirective, markdown: str, *sources: str) -> list[nodes.Node]:
    """What to put in the place of the directive. If one of `sources` changes, Sphinx reads the page again."""
    for source in sources:
        directive.env.note_dependency(source)
    parent = nodes.Element()
    directive.state.nested_parse(StringList(markdown.splitlines(), source=sources[0]), 0, parent)
    return parent.children


def members(name: str) -> str:
    """The docstring of that class in Markdown: its text, then a table of its members."""
    kind = getattr(pe, name)
    text, _, listed = (inspect.getdoc(kind) or "").partition("\n\nMembers\n-------\n")
    entries = [_entry(entry) for entry in re.split(r"\n(?=\S)", listed) if entry]
    if not entries:
        return text
    if not issubclass(kind, wiring.Signature):
        head, rows = ("field", "bits", "meaning"), [(names, bits, said) for names, _, bits, said in entries]
    else:
        outward = "Out" if kind in _FROM_THE_SPU else "In"
        head = ("port", "of the SPU", "bits", "meaning")
        rows = [(names, "output" if flow == outward else "input", bits, said) for names, flow, bits, said in entries]
    return f"{text}\n\n{table(head, *rows)}"


def _entry(entry: str) -> tuple[str, str, str, str]:
    """Of an entry of a "Members" section: names, In or Out if it has one, bits, and what is said of it."""
    head, _, said = entry.partition("\n")
    names, _, types = head.partition(" : ")
    flow, _, _ = types.partition("(")
    bits = [
        re.sub(r"^(?:In|Out|unsigned)(?:\((.*)\))?", r"\1", each) for each in re.split(r", (?=Out|unsigned)", types)
    ]
    return ", ".join(f"`{name}`" for name in names.split(", ")), flow, ", ".join(bits), " ".join(said.split())
