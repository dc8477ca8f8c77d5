"""Variations of a configuration, from settings on a command line."""

from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from enum import Enum
from typing import Any

from ..support.numerals import number
from . import CONFIGS, SPUConfig

__all__ = ["vary"]

_EVENTS = 64
"""Bits of the Events packet. A range of larger numbers would take memory before `SPUConfig` refuses it."""


def vary(config: SPUConfig, settings: Iterable[str]) -> SPUConfig:
    """Return a variation of `config` with each `field=value` of `settings`.

    The name must be among the settings, because two variations are two Verilog modules.

    A value is `true` or `false`, a number, or the name of a member of an enumeration. A set of numbers is written as
    numbers and ranges, such as `0-7,11`. The value of `layout` is the name of the configuration that has it.

    Raises
    ------
    ValueError
        If there is no such field, a field is set twice, its value cannot be parsed, two choices exclude each other, or
        the name is missing or that of a named configuration.
    """
    names = [field.name for field in fields(SPUConfig)]
    values = dict[str, Any]()
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals:
            raise ValueError(f"a setting must be field=value, not {setting!r}")
        if name not in names:
            raise ValueError(f"a setting must be of one of the fields {', '.join(names)}, not of {name!r}")
        if name in values:
            raise ValueError(f"{name} must be set once, not again to {text!r}")
        values[name] = _value(name, getattr(config, name), text)
    if "name" not in values:
        raise ValueError("name must be set, because it names the Verilog module of the variation: --set name=NAME")
    if values["name"] in CONFIGS:
        raise ValueError(f"name must be a new one, not that of the named configuration {values['name']}")
    return replace(config, **values)


def _value(name: str, present: Any, text: str) -> Any:
    """Return the value that `text` stands for. `present` is the current value of the field."""
    parse, allowed = _parser(name, present)
    try:
        return parse(text)
    except (KeyError, ValueError) as error:
        raise ValueError(f"{name} must be {allowed}, not {text!r}") from error


def _parser(name: str, present: Any) -> tuple[Callable[[str], Any], str]:
    """Return the function that parses values of a field, and a description of the values that it accepts."""
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
        return _numbers, f"numbers below {_EVENTS} and ranges of them, separated by commas"
    return str, "a name"


def _number(text: str) -> int:
    value = number(text)
    if value is None:
        raise ValueError
    return value


def _numbers(text: str) -> frozenset[int]:
    numbers = set[int]()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        low, high = _number(first), _number(last if dash else first)
        if not low <= high < _EVENTS:
            raise ValueError
        numbers |= {*range(low, high + 1)}
    return frozenset(numbers)
