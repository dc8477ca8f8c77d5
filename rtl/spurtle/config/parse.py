"""A variation of a configuration, from settings as a command line has them."""

import re
from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from enum import Enum
from typing import Any

from . import CONFIGS, SPUConfig

__all__ = ["vary"]

_NUMBER = re.compile("[0-9]{1,4}|0[xX][0-9a-fA-F]{1,4}")
"""No number of a configuration has more digits."""


def vary(config: SPUConfig, settings: Iterable[str]) -> SPUConfig:
    """`config` with each `field=value` of `settings`. One of them is the name: two variations are two modules.

    A value is `true` or `false`; a number; the name of a member of an enumeration; numbers and ranges with commas in
    between, like `0-7,11`; of `layout` the name of the configuration that has it.

    Raises
    ------
    ValueError
        If there is no such field, its value cannot be understood, two choices exclude each other, or the name is absent
        or that of a configuration.
    """
    names = [field.name for field in fields(SPUConfig)]
    values = dict[str, Any]()
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals:
            raise ValueError(f"a setting must be field=value, not {setting!r}")
        if name not in names:
            raise ValueError(f"a setting must be of one of the fields {', '.join(names)}, not of {name!r}")
        values[name] = _value(name, getattr(config, name), text)
    if "name" not in values:
        raise ValueError("name must be set, because it names the Verilog module of the variation: --set name=NAME")
    if values["name"] in CONFIGS:
        raise ValueError(f"name must not be that of a configuration, {values['name']}: a variation is not that one")
    return replace(config, **values)


def _value(name: str, present: Any, text: str) -> Any:
    """A value of the kind that the field has at present."""
    understood, allowed = _kind(name, present)
    try:
        return understood(text)
    except (KeyError, ValueError) as error:
        raise ValueError(f"{name} must be {allowed}, not {text!r}") from error


def _kind(name: str, present: Any) -> tuple[Callable[[str], Any], str]:
    """What turns text into such a value, and what that can be."""
    if name == "layout":
        return lambda text: CONFIGS[text].layout, f"the name of the configuration that has it, {' or '.join(CONFIGS)}"
    if isinstance(present, bool):
        return {"true": True, "false": False}.__getitem__, "true or false"
    if isinstance(present, Enum):
        kind = type(present)
        return kind.__getitem__, " or ".join(kind.__members__)
    if isinstance(present, int):
        return _number, "a number"
    if isinstance(present, frozenset):
        return _numbers, "numbers and ranges with commas in between"
    return str, "a name"


def _number(text: str) -> int:
    if not _NUMBER.fullmatch(text):  # `int` takes more, such as the digits of other scripts
        raise ValueError
    return int(text, 16 if text[:2].lower() == "0x" else 10)


def _numbers(text: str) -> frozenset[int]:
    numbers = set[int]()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        between = range(_number(first), _number(last if dash else first) + 1)
        if not between:
            raise ValueError
        numbers |= {*between}
    return frozenset(numbers)
