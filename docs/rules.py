"""Rules of `rules.toml`, and their tables in `reference/rules.md`: each rule with its code, tests and proofs."""

import re
import textwrap
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from docs.markdown import table

__all__ = ["RULES", "Rule", "proofs", "rules", "tests"]

_PATH = Path(__file__).parent / "rules.toml"


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A row of `rules.toml`. The file describes the fields."""

    rule: str
    says: str
    code: Sequence[str]
    tests: Sequence[str] = ()
    proofs: Sequence[str] = ()
    note: str = ""


RULES = {chapter: [Rule(**row) for row in rows] for chapter, rows in tomllib.loads(_PATH.read_text()).items()}
"""Rows by chapter."""


def rules(chapter: str) -> str:
    """Return the table of a chapter, followed by its notes."""
    rows = RULES[chapter]
    notes = {note: f"{number}" for number, note in enumerate(dict.fromkeys(row.note for row in rows if row.note), 1)}
    cells = [
        (
            row.rule,
            row.says,
            ", ".join(f"`{name}`" for name in row.code),
            ", ".join(_TESTS[name] for name in row.tests) or "the core",
            ", ".join(_PROOFS[name] for name in row.proofs),
            notes.get(row.note, ""),
        )
        for row in rows
    ]
    return "\n".join([
        table(("rule", "requirement", "code", "tests", "proofs", "note"), *cells),
        "",
        *(
            textwrap.fill(f"{number}. {note}", 120, subsequent_indent="   ", break_on_hyphens=False)
            for note, number in notes.items()
        ),
    ]).rstrip()  # fmt: skip


def tests() -> str:
    """Return a table of the tests by module and number, which the tables of the chapters refer to."""
    return table(("test", "name"), *((number, f"`{name}`") for name, number in _TESTS.items()))


def proofs() -> str:
    """Return a table of the proofs by block and number, which the tables of the chapters refer to."""
    return table(("proof", "property"), *((number, name.partition(": ")[2]) for name, number in _PROOFS.items()))


def _numbered(names: Iterable[str]) -> Mapping[str, str]:
    """Return the module (without `test_`) or block of each name and a number, in the order of the names."""
    groups = groupby(sorted({*names}), lambda name: re.split(r"\.test_\w+$|:", name)[0].replace(".test_", "."))
    return {name: f"{group} {number}" for group, members in groups for number, name in enumerate(members, 1)}


_TESTS = _numbered(name for rows in RULES.values() for row in rows for name in row.tests)
_PROOFS = _numbered(name for rows in RULES.values() for row in rows for name in row.proofs)
