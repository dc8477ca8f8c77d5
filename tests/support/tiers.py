"""The three tiers of tests. A marker says which tier a test belongs to; a test without a marker is fast."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from typing import Any

import pytest

from configurations import FAST

__all__ = ["TIERS", "configurations", "not_run", "tier_of", "tiers"]

TIERS = {"fast": "make test", "full": "make test-full", "long": "make test-long"}
"""The command that runs the tests of each tier. `make test-full` also runs the fast tests."""


def tiers(*, fast: Iterable[Any] = (), full: Iterable[Any] = (), long: Iterable[Any] = ()) -> list[Any]:
    """Return the cases for `pytest.mark.parametrize`, each with the marker of its tier.

    A case with several arguments is a tuple. A case that is listed in several tiers belongs to the first of them.
    """
    cases: list[Any] = []
    added: list[Any] = []
    for name, values in zip(TIERS, (fast, full, long), strict=True):
        for value in values:
            if value not in added:
                added.append(value)
                arguments = value if isinstance(value, tuple) else (value,)
                cases.append(pytest.param(*arguments, marks=getattr(pytest.mark, name)))
    return cases


def configurations(every: Mapping[str, Any] | Iterable[str], *, fast: Collection[str] = FAST) -> list[Any]:
    """Return cases for `pytest.mark.parametrize`, or parameters of a fixture, with names.

    Cases whose names are in `fast` are in the fast tier, the others in the full tier. If `every` is not a mapping, the
    value of a case is its name.
    """
    values = every if isinstance(every, Mapping) else {name: name for name in every}
    tier = {name: pytest.mark.fast if name in fast else pytest.mark.full for name in values}
    return [pytest.param(value, id=name, marks=tier[name]) for name, value in values.items()]


def tier_of(item: pytest.Item) -> str:
    """Return the tier of a test: the last of the tiers of its parameters."""
    names = {marker.name for marker in item.iter_markers()}
    return next((name for name in reversed(TIERS) if name in names), "fast")


def not_run(deselected: Sequence[str], selected: Set[str]) -> str:
    """Return a line that says how many tests of other tiers were not run, and how to run them.

    `deselected` holds the tier of each deselected test, `selected` the tiers of the tests that run.
    """
    counts = Counter(deselected)
    parts = [
        f"{counts[name]:,} of the {name} tier ({command})"
        for name, command in TIERS.items()
        if counts[name] and name not in selected
    ]
    return f"tests not run: {', '.join(parts)}" if parts else ""
