"""The pseudorandom numbers are `reference.sampling`'s, and the generator never comes to stand."""

from collections.abc import Iterator, Mapping
from functools import cache

from spurtle.config import LFSR_RESET
from spurtle.lfsr import LFSR
from spurtle_sim.reference import sampling

from ..induction import follows, inductive
from ..proof import Proof, Verdict
from ..transition import Transition, transition

__all__ = ["proofs", "prove"]


def cycle(rst: int, write: int, wdata: int, draw: int, state: int) -> Mapping[str, int]:
    """What is drawn is the random number of the state, whether or not software seeds the next."""
    told = {"random": sampling.random_byte(state)}
    if rst:
        return told | {"state": LFSR_RESET}
    if write:
        return told | {"state": sampling.seed(wdata)}
    return told | {"state": sampling.draw(state) if draw else state}


@cache
def _system() -> Transition:
    return transition(LFSR())


def prove(system: Transition) -> Verdict:
    """`system` is an `LFSR`."""
    return follows(system, cycle, latency={"random": 0, "state": 1})


def prove_running(system: Transition) -> Verdict:
    """From zero it would never move."""
    return inductive(system, lambda wires: wires["state"] != 0)


def proofs() -> Iterator[Proof]:
    """It is the same in all configurations."""
    yield Proof("state and random follow the reference", "lfsr", "-", "reference", lambda: prove(_system()))
    yield Proof("the state is never zero", "lfsr", "-", "induction", lambda: prove_running(_system()))
