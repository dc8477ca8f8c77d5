"""The slot's sample stands still from a cycle before it is valid: record and serializer rely on it."""

from collections.abc import Iterator
from functools import partial

import z3

from spurtle.config import CONFIGS, SPUConfig
from spurtle.inflight import InFlight

from ..induction import Wires, always, reach
from ..proof import Proof, Verdict
from ..transition import Transition, transition

__all__ = ["proofs", "prove"]


def _still(now: Wires, then: Wires) -> z3.BoolRef:
    """What is valid is what was there a cycle before; what was not taken stays."""
    refused = z3.And(now["sample__valid"] == 1, now["sample__ready"] == 0, now["rst"] == 0)
    return z3.And(
        z3.Implies(then["sample__valid"] == 1, then["sample__payload"] == now["sample__payload"]),
        z3.Implies(refused, then["sample__valid"] == 1),
    )


def prove(system: Transition) -> Verdict:
    """`system` is an `InFlight`."""
    return always(system, _still)


def _prove(config: SPUConfig) -> Verdict:
    return prove(transition(InFlight(config)))


def _cover(config: SPUConfig) -> Verdict:
    return reach(transition(InFlight(config)), lambda wires: wires["sample__valid"] == 1, cycles=8)


def proofs() -> Iterator[Proof]:
    """The same for each configuration."""
    for config in CONFIGS.values():
        yield Proof(
            "a sample stands still, from a cycle before it is offered", "inflight", config.name, "induction",
            partial(_prove, config),
        )  # fmt: skip
        yield Proof("cover: a sample is offered", "inflight", config.name, "bounded search", partial(_cover, config))
