"""The three tiers of tests: markers, never folders, say which tier a test belongs to. One without a marker is fast."""

from collections import Counter
from collections.abc import Iterable, Sequence, Set
from typing import Any

import pytest

__all__ = ["TIERS", "not_run", "tier_of", "tiers"]

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


def tier_of(item: pytest.Item) -> str:
    """Return the tier of a test. Raises CollectError if its markers name two."""
    names = {marker.name for marker in item.iter_markers() if marker.name in TIERS}
    if len(names) > 1:
        raise pytest.Collector.CollectError(f"{item.nodeid} must be in one tier, not in {' and '.join(sorted(names))}")
    return names.pop() if names else "fast"


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
