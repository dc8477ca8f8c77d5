"""Numbers as text, in ASCII digits. `int` also accepts the digits of other scripts, spaces and underscores."""

import argparse
import re

from .errors import UserError

__all__ = ["counted", "decimal", "decimal_argument", "decimal_option", "number"]

_DECIMAL = re.compile("[0-9]{1,20}")
_HEXADECIMAL = re.compile("0[xX][0-9a-fA-F]{1,16}")


def decimal(text: str) -> int | None:
    """Return the value of up to 20 decimal digits, or None if `text` is anything else."""
    return int(text) if _DECIMAL.fullmatch(text) else None


def number(text: str) -> int | None:
    """Return the value of up to 20 decimal digits, or of `0x` and up to 16 hexadecimal digits, or None."""
    return int(text, 16) if _HEXADECIMAL.fullmatch(text) else decimal(text)


def decimal_argument(text: str) -> int:
    """Return the value of decimal digits, for the `type` of an argument of argparse.

    Raises
    ------
    ArgumentTypeError
        If `text` is not such a number.
    """
    value = decimal(text)
    if value is None:
        raise argparse.ArgumentTypeError(f"must be a number, not {text!r}")
    return value


def decimal_option(option: str, text: str, minimum: int, maximum: int) -> int:
    """Return the value of decimal digits that an option has.

    Raises
    ------
    UserError
        If `text` is not a number from `minimum` to `maximum`, which is larger than any sensible value.
    """
    value = decimal(text)
    if value is None or not minimum <= value <= maximum:
        raise UserError(f"{option} must be a number of at least {minimum}, not {text}")
    return value


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, such as `1 record`, `2,000 records` and `0 accesses`."""
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{count:,} {noun if count == 1 else plural}"
