"""Core files: the parameters of the timing model in TOML, each with its unit and its source.

`docs/reference/cores.md` describes the format. The folder `cores` has a file for each named core.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

from spurtle.support.errors import UserError

from ..trace.instruction import InstructionKind
from .parameters import TABLE, Parameter, Parameters

__all__ = ["DEFAULT_CORE", "NAMED_CORES", "Core", "read_core"]

NAMED_CORES = ("neoverse_n1", "little", "wide")
"""Names of the cores that are part of the package."""

DEFAULT_CORE = NAMED_CORES[0]

_FORMAT = 1
_PREFIXES = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20}
"""Units of a size, in bytes."""


@dataclass(frozen=True)
class Core:
    """Core whose operations the timing model computes.

    Parameters
    ----------
    name : str
        Name of the core, or path of its file.
    summary : str
        One sentence.
    parameters : Parameters
    sources : dict of str to str
        Source of each parameter, by its name in a file.
    """

    name: str
    summary: str
    parameters: Parameters
    sources: Mapping[str, str]

    def for_lanes(self, lanes: int) -> Parameters:
        """Return the parameters for an SPU with this number of lanes, through which the operations pass."""
        return replace(self.parameters, ops_per_cycle=min(self.parameters.ops_per_cycle, lanes))


def read_core(name: str = DEFAULT_CORE) -> Core:
    """Return a core by its name, or from a core file.

    Raises
    ------
    UserError
        If there is no such core, or the file is not a valid core file.
    """
    try:
        if name in NAMED_CORES:
            text = resources.files("spurtle_sim.timing").joinpath("cores", f"{name}.toml").read_text(encoding="utf-8")
        else:
            text = Path(name).read_text(encoding="utf-8")
        content = tomllib.loads(text)
    except FileNotFoundError as error:
        raise UserError(f"a core must be {', '.join(NAMED_CORES)} or a file, not {name!r}") from error
    except OSError as error:
        raise UserError(f"cannot read {name}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # not UTF-8, not TOML, or nested too deeply
        raise UserError(f"{name} is not a core file: {error}") from error
    try:
        return _core(name, content)
    except ValueError as error:
        raise UserError(f"{name}: {error}") from error


def _core(name: str, content: dict[str, Any]) -> Core:
    """Return the core that the content of a file describes. Raise ValueError if it is invalid."""
    if content.pop("format", None) != _FORMAT:
        raise ValueError(f"the key format must be {_FORMAT}")
    summary, base = content.pop("summary", None), content.pop("base", None)
    if not isinstance(summary, str):
        raise ValueError("the key summary must be a string")
    if base is not None and base not in NAMED_CORES:
        raise ValueError(f"base must be {', '.join(NAMED_CORES)}, not {base!r}")
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    if base is not None:
        inherited = read_core(base)
        values = {item: getattr(inherited.parameters, item) for item in TABLE}
        sources = dict(inherited.sources)
    for item, parameter in TABLE.items():
        values[item] = _value(item, parameter, content, values.get(item), sources)
    if content:
        raise ValueError(f"there is no parameter {next(iter(content))!r}")
    return Core(name, summary, Parameters(**values), sources)


def _value(name: str, parameter: Parameter, content: dict[str, Any], before: Any, sources: dict[str, str]) -> Any:
    """Remove a parameter from the content of a file, and return its value. Add its sources to `sources`."""
    if not parameter.kinds:
        return _single(name, parameter, content.pop(name), sources) if name in content else _required(name, before)
    entries = content.pop(name, {})
    if not isinstance(entries, dict):
        raise ValueError(f"{name} must be a table with a key for each kind of instruction")
    values: dict[InstructionKind, Any] = dict(before or {})
    for kind in parameter.kinds:
        key = kind.name.lower()
        full = f"{name}.{key}"
        if key in entries:
            values[kind] = _single(full, parameter, entries.pop(key), sources)
        elif not parameter.optional:
            _required(full, values.get(kind))
    if entries:
        raise ValueError(f"there is no parameter {f'{name}.{next(iter(entries))}'!r}")
    return values


def _required(name: str, value: Any) -> Any:
    if value is None:
        raise ValueError(f"the parameter {name} is missing, and there is no base that has it")
    return value


def _single(name: str, parameter: Parameter, entry: Any, sources: dict[str, str]) -> Any:
    if not isinstance(entry, dict) or entry.keys() != {"value", "unit", "source"}:
        raise ValueError(f"{name} must be a table with the keys value, unit and source")
    value: Any = entry["value"]
    unit, source = entry["unit"], entry["source"]
    if not isinstance(source, str) or not source:
        raise ValueError(f"the source of {name} must be a string")
    if not parameter.names and (not isinstance(value, int) or isinstance(value, bool)):
        raise ValueError(f"{name} must be an integer, not {value!r}")
    units = _PREFIXES if parameter.unit == "bytes" else {parameter.unit: 1}
    if not isinstance(unit, str) or unit not in units:
        raise ValueError(f"the unit of {name} must be {' or '.join(units)}, not {unit!r}")
    sources[name] = source
    return _names(name, value) if parameter.names else value * units[unit]


def _names(name: str, value: Any) -> tuple[str, ...]:
    names: list[Any] = value if isinstance(value, list) else [None]
    if not all(isinstance(item, str) for item in names):
        raise ValueError(f"{name} must be a list of names, not {value!r}")
    if len({*names}) < len(names):
        raise ValueError(f"{name} must name each port once, not {value!r}")
    return tuple(names)
