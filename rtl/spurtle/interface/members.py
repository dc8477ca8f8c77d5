"""Members of signatures and layouts that depend on the configuration."""

from typing import TypeVar

__all__ = ["when"]

_Member = TypeVar("_Member")


def when(condition: object, **members: _Member) -> dict[str, _Member]:
    """Return `members` if `condition` is true, and no member otherwise.

    The members of a feature are written in their place: `{"ns": 1, **when(config.rme, nse=1)}`. They are evaluated even
    if the condition is false.
    """
    return members if condition else {}
