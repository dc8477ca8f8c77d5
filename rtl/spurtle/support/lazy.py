"""Public names of a package that are imported when they are first used."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["lazy"]


def lazy(package: str, sources: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for the module of a package (PEP 562).

    Parameters
    ----------
    package : str
        Name of the package.
    sources : mapping of str to str
        For each public name: the module within the package, `:`, and the name in that module.
    """

    def getattr_(name: str) -> Any:
        if name not in sources:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, _, attribute = sources[name].partition(":")
        return getattr(import_module(f"{package}.{module}"), attribute)

    return getattr_, lambda: sorted(sources)
