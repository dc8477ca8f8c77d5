"""Numbers that are given as text, in ASCII digits alone: `int` takes other scripts, spaces and underscores."""

import argparse
import re

__all__ = ["decimal", "decimal_argument", "number"]

_DECIMAL = re.compile("[0-9]{1,20}")
_HEXADECIMAL = re.compile("0[xX][0-9a-fA-F]{1,16}")


def decimal(text: str) -> int | None:
    """Return the number that up to 20 decimal digits stand for, or None."""
    return int(text) if _DECIMAL.fullmatch(text) else None


def number(text: str) -> int | None:
    """Return the number that decimal digits, or up to 16 hexadecimal ones behind `0x`, stand for, or None."""
    return int(text, 16) if _HEXADECIMAL.fullmatch(text) else decimal(text)


def decimal_argument(text: str) -> int:
    """Return `decimal` for the `type` of an argument. Raises ArgumentTypeError."""
    value = decimal(text)
    if value is None:
        raise argparse.ArgumentTypeError(f"must be a number, not {text!r}")
    return value
