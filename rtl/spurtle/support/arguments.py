"""Checks of the arguments of constructors. Each message says what the argument must be, and what it is."""

__all__ = ["check_choice", "check_least", "check_range", "check_type"]


def check_type(name: str, value: object, wanted: type) -> None:
    """Check the type of an argument. A truth value is not a number, although Python takes it for one.

    Raises
    ------
    TypeError
        If `value` is not of the type `wanted`.
    """
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        raise TypeError(f"{name} must be of type {wanted.__name__}, not {value!r}")


def check_choice(name: str, value: object, allowed: tuple[int, ...]) -> None:
    """Check that an argument is one of several numbers.

    Raises
    ------
    ValueError
        If it is not.
    """
    # To Python, True and 1.0 are 1.
    if not isinstance(value, int) or isinstance(value, bool) or value not in allowed:
        raise ValueError(f"{name} must be {' or '.join(str(int(choice)) for choice in allowed)}, not {value!r}")


def check_least(name: str, value: int, least: int) -> None:
    """Check that an argument is a number that is not less than `least`.

    Raises
    ------
    TypeError
        If `value` is no number.
    ValueError
        If it is less.
    """
    check_type(name, value, int)
    if value < least:
        raise ValueError(f"{name} must be at least {least}, not {value!r}")


def check_range(name: str, value: int, least: int, most: int) -> None:
    """Check that an argument is from `least` to `most`.

    Raises
    ------
    ValueError
        If it is not.
    """
    if not least <= value <= most:
        raise ValueError(f"{name} must be from {least} to {most}, not {value!r}")
