"""Part of a run that is profiled, and the end of a run, counted in operations."""

import argparse
import sys
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from spurtle.support.arguments import check_range
from spurtle.support.errors import UserError
from spurtle.support.numerals import decimal_option

if TYPE_CHECKING:  # the command line is also used without numpy
    from numpy.typing import NDArray

    from ..emulator.front_end import Batch

__all__ = ["Window", "add_window_arguments", "parse_window"]

_MAX = sys.maxsize
_OPTIONS = ("start_after", "duration", "max_operations")
"""Fields of `Window`, with the names of their options."""


@dataclass(frozen=True, kw_only=True)
class Window:
    """Part of a run that is profiled. The default is the complete run.

    Operations are counted from the start of the program. Those before the window are timed, so that caches and
    predictors are in use when it begins. They do not pass the SPU.

    Parameters
    ----------
    start_after : int
        Number of operations before the window.
    duration : int
        Maximum number of operations in the window. The program continues after it.
    max_operations : int
        Number of operations after which the program is ended.

    Raises
    ------
    ValueError
        If `start_after` is negative, or another argument is not positive.
    """

    start_after: int = 0
    duration: int = _MAX
    max_operations: int = _MAX

    def __post_init__(self) -> None:
        check_range("start_after", self.start_after, 0, _MAX)
        check_range("duration", self.duration, 1, _MAX)
        check_range("max_operations", self.max_operations, 1, _MAX)

    @property
    def end(self) -> int:
        """Number of operations before the end of the window."""
        return min(self.start_after + self.duration, self.max_operations)

    @property
    def total(self) -> int | None:
        """Number of operations of the run, or None if it is not known."""
        return None if self.max_operations == _MAX else self.max_operations

    def batches(self, source: "Generator[Batch]") -> "Generator[Batch]":
        """Yield the batches that `source` yields, up to `max_operations` operations. Then close it."""
        left = self.max_operations
        with closing(source):
            for batch in source:
                excess = len(batch.operations) - left
                yield replace(batch, operations=batch.operations[:left], events=()) if excess > 0 else batch
                left -= len(batch.operations)
                if left <= 0:
                    break

    def split(self, operations: "NDArray[Any]", first: int) -> "tuple[NDArray[Any], NDArray[Any]]":
        """Return the operations before the window and those in it. `first` is the number of the first operation."""
        begin, end = (max(0, edge - first) for edge in (self.start_after, self.end))
        return operations[:begin], operations[begin:end]


def add_window_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options for `parse_window`."""
    for option, help_ in (
        ("start-after", "begin to profile after N operations"),
        ("duration", "profile at most N operations; the program continues after them"),
        ("max-operations", "end the program after N operations"),
    ):
        parser.add_argument(f"--{option}", metavar="N", help=help_)


def parse_window(options: argparse.Namespace) -> Window:
    """Return the window that the options of `add_window_arguments` select.

    Raises
    ------
    UserError
        If the value of an option is not allowed.
    """
    values: dict[str, int] = {}
    for name in _OPTIONS:
        text = getattr(options, name)
        if text is not None:
            minimum = 0 if name == "start_after" else 1
            values[name] = decimal_option(f"--{name.replace('_', '-')}", text, minimum, _MAX)
    window = Window(**values)
    if window.start_after >= window.end:
        raise UserError(f"--start-after must be less than --max-operations, {window.max_operations}")
    return window
