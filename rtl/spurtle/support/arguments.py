"""Checks of the arguments of constructors. Each message describes the allowed values and names the actual one."""

from enum import IntEnum

__all__ = ["check_choice", "check_member", "check_minimum", "check_range", "check_type"]


def check_type(name: str, value: object, expected: type) -> None:
    """Check the type of an argument. A `bool` is not accepted as an `int`, although it is a subclass.

    Raises
    ------
    TypeError
        If `value` is not of the type `expected`.
    """
    if not isinstance(value, expected) or (expected is int and isinstance(value, bool)):
        raise TypeError(f"{name} must be of type {expected.__name__}, not {value!r}")


def check_choice(name: str, value: object, allowed: tuple[int, ...]) -> None:
    """Check that an argument is one of several numbers.

    Raises
    ------
    ValueError
        If `value` is not one of `allowed`.
    """
    # In Python, True and 1.0 equal 1.
    if not isinstance(value, int) or isinstance(value, bool) or value not in allowed:
        raise ValueError(f"{name} must be {' or '.join(str(int(choice)) for choice in allowed)}, not {value!r}")


def check_member(name: str, value: object, allowed: type[IntEnum]) -> None:
    """Check that an argument is a member of an enumeration, or the number of one.

    Raises
    ------
    ValueError
        If `value` is not one of the members.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value not in {*allowed}:
        raise ValueError(f"{name} must be {' or '.join(allowed.__members__)}, not {value!r}")


def check_minimum(name: str, value: int, minimum: int) -> None:
    """Check that an argument is a number and not less than `minimum`.

    Raises
    ------
    TypeError
        If `value` is not a number.
    ValueError
        If `value` is less than `minimum`.
    """
    check_type(name, value, int)
    if value < minimum:
        raise ValueError(f"{name} must be at least {minimum}, not {value!r}")


def check_range(name: str, value: int, minimum: int, maximum: int) -> None:
    """Check that an argument is from `minimum` to `maximum`.

    Raises
    ------
    ValueError
        If `value` is outside of this range.
    """
    if not minimum <= value <= maximum:
        raise ValueError(f"{name} must be from {minimum} to {maximum}, not {value!r}")
