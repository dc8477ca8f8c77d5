"""Optional members of signatures and layouts."""

from typing import TypeVar

__all__ = ["when"]

_Member = TypeVar("_Member")


def when(condition: object, **members: _Member) -> dict[str, _Member]:
    """Return `members` if `condition` is true, and an empty dict otherwise.

    It is unpacked among the other members, so that optional members keep their order: `{"ns": 1, **when(config.rme,
    nse=1)}`. The members are evaluated even if the condition is false.
    """
    return members if condition else {}
