"""Signals that proofs can name: ports of components, and the signals that components list as `proof_signals`."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from amaranth.hdl import Fragment
from amaranth.lib import wiring

__all__ = ["SignalNames", "UnlistedSignal", "signal_names"]


class UnlistedSignal(Exception):
    """Error of a proof that names a signal which its component does not list."""


@dataclass(frozen=True)
class _Instance:
    component: str
    ports: frozenset[str]
    listed: tuple[str, ...]


@dataclass(frozen=True)
class SignalNames:
    """Names of wires that proofs of a component can use.

    A name is the path of the submodule, the name of a port or a listed signal, and optionally a field, the index of a
    memory word, or the number with which Amaranth distinguishes equal names: `slot_0.start.el`, `operations[1]`.
    """

    _instances: Mapping[str, _Instance]
    _history: frozenset[str] = frozenset()

    def with_history(self, registers: Iterable[str]) -> "SignalNames":
        """Return the names with those of history registers."""
        return replace(self, _history=self._history.union(registers))

    def check(self, name: str) -> None:
        """Raise UnlistedSignal if a proof cannot use this name."""
        instance, stems = self._parts(name)
        if name not in self._history and instance.ports.isdisjoint(stems) and self.listing(name) is None:
            raise UnlistedSignal(
                f"{name} must be a port, a history register of the proof, or in {instance.component}.proof_signals"
            )

    def listing(self, name: str) -> tuple[str, str] | None:
        """Return the component that lists this name, and the entry of its list. Return None if none does."""
        instance, stems = self._parts(name)
        found = (entry for entry in instance.listed for stem in stems if fnmatchcase(stem, entry))
        return next(((instance.component, entry) for entry in found), None)

    def _parts(self, name: str) -> tuple[_Instance, list[str]]:
        """Return the innermost component that a name belongs to, and the local names that it can stand for."""
        path = max((path for path in self._instances if name.startswith(path)), key=len)
        local = name.removeprefix(path)
        return self._instances[path], [local[: end.start()] for end in re.finditer(r"[.$[]|$", local)]


def signal_names(component: wiring.Component, *, platform: Any = None) -> SignalNames:
    """Return the names that proofs of a component can use. The component is elaborated."""
    instances: dict[str, _Instance] = {}

    def add(fragment: Any, path: str) -> None:
        for origin in fragment.origins or ():
            if isinstance(origin, wiring.Component):
                ports = {"__".join(map(str, port)) for port, *_ in origin.signature.flatten(origin)}
                clock = () if path else ("clk", "rst")
                listed = getattr(origin, "proof_signals", ())
                instances[path] = _Instance(type(origin).__name__, frozenset(ports.union(clock)), listed)
        for submodule, name, _ in fragment.subfragments:
            add(submodule, f"{path}{name}.")

    add(Fragment.get(component, platform), "")
    return SignalNames(instances)
