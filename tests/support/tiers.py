"""The three tiers of tests: markers, never folders, say which tier a test belongs to. One without a marker is fast."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from typing import Any

import pytest

from configurations import FAST

__all__ = ["TIERS", "configurations", "not_run", "tier_of", "tiers"]

TIERS = {"fast": "make test", "full": "make test-full", "long": "make test-long"}
"""What runs the tests of each tier; `make test-full` runs the fast ones as well."""


def tiers(*, fast: Iterable[Any] = (), full: Iterable[Any] = (), long: Iterable[Any] = ()) -> list[Any]:
    """Return the cases for `pytest.mark.parametrize`, each with the marker of its tier. A case of several arguments is
    a tuple. The fast cases may be given in the other tiers as well; they run once.
    """
    cases: list[Any] = []
    seen: list[Any] = []
    for name, values in zip(TIERS, (fast, full, long), strict=True):
        for value in values:
            if value not in seen:
                seen.append(value)
                arguments = value if isinstance(value, tuple) else (value,)
                cases.append(pytest.param(*arguments, marks=getattr(pytest.mark, name)))
    return cases


def configurations(every: Mapping[str, Any] | Iterable[str], *, fast: Collection[str] = FAST) -> list[Any]:
    """Return the cases for `pytest.mark.parametrize`, or the parameters of a fixture: those whose names are in `fast`
    are in the fast tier, the others in the full one. Without values the names are the values.
    """
    values = every if isinstance(every, Mapping) else {name: name for name in every}
    tier = {name: pytest.mark.fast if name in fast else pytest.mark.full for name in values}
    return [pytest.param(value, id=name, marks=tier[name]) for name, value in values.items()]


def tier_of(item: pytest.Item) -> str:
    """Return the tier of a test. With several parameters it is the last tier that one of them is in."""
    names = {marker.name for marker in item.iter_markers()}
    return next((name for name in reversed(TIERS) if name in names), "fast")


def not_run(deselected: Sequence[str], selected: Set[str]) -> str:
    """Return the line that says how many tests of the other tiers were not run, and how to run them: `deselected` holds
    the tier of each such test, `selected` the tiers of which tests run.
    """
    counts = Counter(deselected)
    parts = [
        f"{counts[name]:,} of the {name} tier ({command})"
        for name, command in TIERS.items()
        if counts[name] and name not in selected
    ]
    return f"tests not run: {', '.join(parts)}" if parts else ""
