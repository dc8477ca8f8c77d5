"""What a stream promises from one cycle to the next."""

import z3

from .induction import Wires

__all__ = ["refused", "steady"]


def refused(name: str, wires: Wires) -> z3.BoolRef:
    """A payload is offered and not taken."""
    return z3.And(wires[f"{name}__valid"] == 1, wires[f"{name}__ready"] == 0)


def steady(name: str, now: Wires, then: Wires) -> z3.BoolRef:
    """What was refused is offered again, unless a reset came between."""
    payload = f"{name}__payload"
    again = z3.And(then[f"{name}__valid"] == 1, then[payload] == now[payload])
    return z3.Implies(z3.And(refused(name, now), now["rst"] == 0), again)
