"""Mutants that `faults.toml` lists."""

import tomllib
from pathlib import Path

from spurtle.support.errors import UserError

from .faults import Mutant, MutantError, apply

__all__ = ["listed_mutants"]

_TABLE = Path(__file__).with_name("faults.toml")


def listed_mutants(root: Path, section: str) -> dict[Mutant, str]:
    """Return the mutants of a section with the reason of each.

    Mutants of the section `named` are always tried, those of `equivalent` never.

    Raises
    ------
    UserError
        If the text of one does not occur exactly once in its file.
    """
    mutants: dict[Mutant, str] = {}
    for entry in tomllib.loads(_TABLE.read_text()).get(section, []):
        why = entry.pop("why")
        mutant = Mutant(**entry)
        try:
            apply(mutant, (root / mutant.file).read_text())
        except (MutantError, OSError) as error:
            raise UserError(f"campaign/faults.toml does not fit the code: {error}") from error
        mutants[mutant] = why
    return mutants
