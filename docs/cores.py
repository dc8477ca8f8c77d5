"""Tables of the parameters of the timing model, and of their values in the named cores."""

from collections.abc import Iterator
from typing import Any

from docs.markdown import table
from spurtle_sim.timing.core import NAMED_CORES, Core, read_core
from spurtle_sim.timing.parameters import TABLE

__all__ = ["core_parameters", "core_values", "summaries"]


def summaries() -> str:
    """Return a table of the named cores."""
    return table(("core", "description"), *((f"`{name}`", read_core(name).summary) for name in NAMED_CORES))


def core_parameters() -> str:
    """Return a table of all parameters: unit, range and meaning."""
    rows = (
        (
            f"`{name}.KIND`" if item.kinds else f"`{name}`",
            item.unit,
            f"{item.minimum} to {item.maximum:,}",
            item.meaning,
        )
        for name, item in TABLE.items()
    )
    return table(("parameter", "unit", "range", "meaning"), *rows)


def core_values() -> str:
    """Return a table of the values of the named cores."""
    cores = [read_core(name) for name in NAMED_CORES]
    columns = [dict(_values(core)) for core in cores]
    rows = (
        (f"`{name}`", *(column[name] for column in columns))
        for name in columns[0]
        if any(column[name] != "-" for column in columns)
    )
    return table(("parameter", *(f"`{name}`" for name in NAMED_CORES)), *rows)


def _values(core: Core) -> Iterator[tuple[str, str]]:
    """Yield each parameter, as a file names it, with its value and its source."""
    for name, item in TABLE.items():
        value: Any = getattr(core.parameters, name)
        values = {f"{name}.{kind.name.lower()}": value.get(kind) for kind in item.kinds} or {name: value}
        for key, found in values.items():
            shown = ", ".join(found) if isinstance(found, tuple) else f"{found:,}" if found is not None else ""
            yield key, f"{shown} ({core.sources[key]})" if shown else "-"
