"""Results of the long tier: a JSON Lines file, the oldest result first, and the table in docs/verification.md."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from docs.markdown import rows, with_table
from spurtle.support.errors import UserError

__all__ = ["RunResult", "append", "load", "next_tests", "with_results"]

_HEADINGS = ("test", "commit", "runs", "outcome", "seed", "figures", "seconds", "date")


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """Result of one test with one seed.

    Parameters
    ----------
    test : str
        Node id of pytest.
    commit : str
        Abbreviated hash, with `-dirty` if the working tree differs from the commit.
    seed : int
        Value of SPURTLE_SEED.
    date : str
        Time of the end of the test, in UTC.
    seconds : float
        Duration.
    outcome : str
        `passed`, `failed` or `skipped`.
    figures : dict of str to str
        Properties that the test has recorded.
    detail : str
        Reason of a failure or a skip, in one line.
    """

    test: str
    commit: str
    seed: int
    date: str
    seconds: float
    outcome: str
    figures: dict[str, str]
    detail: str


def load(path: Path) -> list[RunResult]:
    """Return all results in a file, the oldest first; none if there is no file.

    Raises
    ------
    UserError
        If a line is not a result.
    """
    if not path.exists():
        return []
    results: list[RunResult] = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        try:
            results.append(RunResult(**json.loads(line)))
        except (ValueError, TypeError) as error:
            raise UserError(f"line {number} of {path} must be a result: delete the line or the file") from error
    return results


def append(path: Path, result: RunResult) -> None:
    """Append a result to the file.

    Raises
    ------
    UserError
        If the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.write(json.dumps(asdict(result)) + "\n")
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from error


def next_tests(tests: Sequence[str], results: Sequence[RunResult]) -> list[str]:
    """Return the tests in the order in which they run: those without a result, then those with the oldest result."""
    last = {result.test: number for number, result in enumerate(results)}
    return sorted(tests, key=lambda test: last.get(test, -1))


def with_results(page: str, tests: Sequence[str], results: Iterable[RunResult]) -> str:
    """Return the page with a row for each of `tests` that has a result.

    A test without a result keeps the row that the page has. Rows of tests that are not in `tests` are removed.

    Raises
    ------
    ValueError
        If the page has no table of the long tier.
    """
    by_test: dict[str, list[RunResult]] = {}
    for result in results:
        by_test.setdefault(result.test, []).append(result)
    known = rows(page, "long") | {f"`{test}`": _row(several) for test, several in by_test.items()}
    return with_table(page, "long", _HEADINGS, (known[f"`{test}`"] for test in tests if f"`{test}`" in known))


def _row(results: Sequence[RunResult]) -> tuple[str, ...]:
    """Return the row of one test at the commit of its last result.

    If a run failed at that commit, the row shows the failure, even if a later run passed with another seed.
    """
    current = [result for result in results if result.commit == results[-1].commit]
    failed = [result for result in current if result.outcome == "failed"]
    shown = (failed or current)[-1]
    return (
        f"`{shown.test}`",
        shown.commit,
        f"{len(current)}",
        f"{shown.outcome} {len(failed)} times" if len(failed) > 1 else shown.outcome,
        f"{shown.seed}",
        ", ".join(f"{name} {value}" for name, value in shown.figures.items()),
        f"{shown.seconds:.0f}",
        shown.date.partition("T")[0],
    )
