"""What a stream promises from one cycle to the next."""

from .terms import Boolean, all_of, implies
from .transition import Wires

__all__ = ["refused", "steady"]


def refused(name: str, wires: Wires) -> Boolean:
    """A payload is offered and not taken."""
    return all_of(wires[f"{name}__valid"] == 1, wires[f"{name}__ready"] == 0)


def steady(name: str, now: Wires, then: Wires) -> Boolean:
    """What was refused is offered again, unless a reset came between."""
    payload = f"{name}__payload"
    again = all_of(then[f"{name}__valid"] == 1, then[payload] == now[payload])
    return implies(all_of(refused(name, now), now["rst"] == 0), again)
