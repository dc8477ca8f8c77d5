"""Stream contract between two successive cycles."""

from .terms import Boolean, all_of, implies
from .transition import Wires

__all__ = ["stable", "stalled"]


def stalled(name: str, wires: Wires) -> Boolean:
    """Return whether the stream offers a payload that is not accepted."""
    return all_of(wires[f"{name}__valid"] == 1, wires[f"{name}__ready"] == 0)


def stable(name: str, now: Wires, then: Wires) -> Boolean:
    """Return whether a stalled payload is offered again in the next cycle, unless `rst` is asserted."""
    payload = f"{name}__payload"
    again = all_of(then[f"{name}__valid"] == 1, then[payload] == now[payload])
    return implies(all_of(stalled(name, now), now["rst"] == 0), again)
