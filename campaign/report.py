"""The report on mutants, `build/mutants/report.json`, and its tables in `docs/verification.md`."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import date
from enum import StrEnum
from pathlib import Path, PurePath

from docs import markdown
from spurtle.support.files import write_file, write_json

from .faults import Mutant, is_model

__all__ = ["Difference", "Effect", "MutantResult", "MutantState", "Report", "publish", "table"]


class Effect(StrEnum):
    """Effect of the fault of a mutant, as far as it can be determined without tests."""

    ILLEGAL = "illegal"
    """The mutant cannot be imported, or cannot be elaborated in any configuration."""
    EQUIVALENT = "equivalent"
    DIFFERENT = "different"


@dataclass(frozen=True)
class Difference:
    """An effect with its reason."""

    effect: Effect
    reason: str

    def __str__(self) -> str:
        return f"{self.effect}: {self.reason}" if self.reason else self.effect


class MutantState(StrEnum):
    """Outcome of the tests of a mutant."""

    CAUGHT = "caught by the fast tier"
    OPEN = "not caught by the fast tier"
    """The full tier has not run on the mutant yet."""
    ONLY_FULL = "caught by the full tier alone"
    MISSED = "missed"


@dataclass(frozen=True)
class MutantResult:
    """Result of the tests of a mutant.

    Parameters
    ----------
    state : MutantState
    test : str
        Test that failed, if any.
    ended : bool
        False if that test did not end.
    """

    state: MutantState
    test: str = ""
    ended: bool = True

    def __str__(self) -> str:
        by = f": {self.test}" if self.test else ""
        return f"{self.state}{by}" if self.ended else f"{self.state}{by}, which does not end"


@dataclass
class Report:
    """Report on a run, which another run can resume.

    Attributes
    ----------
    code, tree : str
        Hashes of the files that decide whether a mutant is equivalent, and of all files.
    passed : list of str
        Tiers that passed without a fault.
    tests : dict of Mutant to str
        Test that caught the mutant in the last run. Its module runs first.
    """

    seed: int
    commit: str
    code: str
    tree: str
    day: str = field(default_factory=lambda: date.today().isoformat())
    passed: list[str] = field(default_factory=list)
    differences: dict[Mutant, Difference] = field(default_factory=dict)
    results: dict[Mutant, MutantResult] = field(default_factory=dict)
    tests: dict[Mutant, str] = field(default_factory=dict)

    def resume(self, path: Path) -> None:
        """Read the results of an earlier report that are valid for the current files."""
        if not path.exists():
            return
        before = json.loads(path.read_text())
        if before["code"] == self.code:
            for entry in before["differences"]:
                self.differences[Mutant(**entry["mutant"])] = Difference(Effect(entry["effect"]), entry["reason"])
        for entry in before["results"]:
            mutant = Mutant(**entry["mutant"])
            self.tests[mutant] = entry["test"]
            if before["tree"] == self.tree:
                self.results[mutant] = MutantResult(MutantState(entry["state"]), entry["test"], entry["ended"])
        if before["tree"] == self.tree:
            self.passed = before["passed"]

    def save(self, path: Path) -> None:
        """Write the report atomically.

        Raises
        ------
        UserError
            If it cannot be written.
        """
        content = {name: getattr(self, name) for name in ("seed", "commit", "code", "tree", "day", "passed")}
        for name in ("differences", "results"):
            content[name] = [
                {"mutant": asdict(mutant), **asdict(known)} for mutant, known in getattr(self, name).items()
            ]
        write_json(path, content)


_COLUMNS = (Effect.EQUIVALENT, MutantState.CAUGHT, MutantState.ONLY_FULL, MutantState.MISSED)
_HEAD = ("", "mutants", *_COLUMNS)
_RUN_HEAD = ("date", "commit", "seed", "mutants that differ", "caught by the fast tier")


def table(chosen: Iterable[Mutant], report: Report) -> str:
    """Return the table of a complete run, with a row for each gateware file and a row for the model."""
    return markdown.table(_HEAD, *_rows(chosen, report))


def publish(page: Path, chosen: Iterable[Mutant], report: Report) -> None:
    """Write the tables of a run to a page.

    Raises
    ------
    UserError
        If the page cannot be written.
    """
    rows = _rows(chosen, report)
    _, mutants, equivalent, caught, *_ = rows[-1]
    different = int(mutants) - int(equivalent)
    run = (
        report.day,
        f"`{report.commit}`",
        str(report.seed),
        str(different),
        f"{caught} ({int(caught) / different:.0%})",
    )
    text = markdown.with_table(page.read_text(), "mutants run", _RUN_HEAD, [run])
    write_file(page, markdown.with_table(text, "mutants", _HEAD, rows).encode())


def _rows(chosen: Iterable[Mutant], report: Report) -> list[tuple[str, ...]]:
    counts: dict[str, Counter[str]] = {}
    for mutant in chosen:
        known = report.results.get(mutant)
        outcome = report.differences[mutant].effect if known is None else known.state
        counts.setdefault(_group(mutant), Counter())[outcome] += 1
    named = [*sorted(counts.items()), ("**all**", sum(counts.values(), Counter()))]
    return [(name, str(each.total()), *(str(each[column]) for column in _COLUMNS)) for name, each in named]


def _group(mutant: Mutant) -> str:
    return "reference model" if is_model(mutant.file) else f"`{PurePath(mutant.file).name}`"
