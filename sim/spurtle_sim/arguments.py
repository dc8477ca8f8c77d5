"""Values on a command line."""

import argparse
import re

__all__ = ["decimal", "decimal_argument"]

_DIGITS = re.compile("[0-9]{1,20}")


def decimal(text: str) -> int | None:
    """Return the number that up to 20 ASCII digits stand for, or None: `int` takes more than that for a number."""
    return int(text) if _DIGITS.fullmatch(text) else None


def decimal_argument(text: str) -> int:
    """Return the same for the `type` of an argument. Raises ArgumentTypeError."""
    number = decimal(text)
    if number is None:
        raise argparse.ArgumentTypeError(f"must be a number, not {text!r}")
    return number
