"""The pseudorandom numbers are `model.sampling`'s, and no generator comes to stand."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from spurtle.config import ELEMENT_BITS, LFSR_ACCESS_RESET, LFSR_RESET
from spurtle.gateware.lfsr import LFSR
from spurtle_sim.model import sampling

from ..engine.induction import inductive
from ..engine.proof import Proof, Verdict
from ..engine.reference import Reference, follows
from ..engine.terms import Boolean, ule
from ..engine.transition import Transition, Wires, transition

__all__ = ["GENERATORS", "Generator", "proofs", "prove", "prove_running"]


@dataclass(frozen=True)
class Generator:
    """One use of the `LFSR`, and what `model.sampling` says of it: functions of the state, and of the number's bits
    where they differ.

    They are called by name, so that a test can put others in their place.
    """

    bits: int
    draws: int
    reset: int
    number: str
    next: str
    size: tuple[int, ...] = ()

    def build(self) -> LFSR:
        return LFSR(bits=self.bits, draws=self.draws, reset=self.reset)


GENERATORS: Mapping[str, Generator] = {
    "intervals": Generator(8, 1, LFSR_RESET, "random_byte", "draw"),
    # Of two accesses, of elements, of both.
    **{
        f"access by {bits}, {draws} a cycle": Generator(
            bits, draws, LFSR_ACCESS_RESET, "access_number", "draw_access", (bits,)
        )
        for bits in (1, ELEMENT_BITS, 1 + ELEMENT_BITS)
        for draws in (1, 2)
    },
}
"""By the name under which the report has them."""


def cycle(generator: Generator) -> Reference:
    """What is drawn are the numbers of the state, one after the other, whether or not software seeds the next."""

    def step(rst: int, write: int, wdata: int, draw: int, state: int) -> Mapping[str, int]:
        number: Callable[..., int] = getattr(sampling, generator.number)
        move: Callable[..., int] = getattr(sampling, generator.next)
        states = [state]
        for _ in range(generator.draws):
            states.append(move(states[-1], *generator.size))
        told: dict[str, Any] = {
            f"random__{index}": number(states[index], *generator.size) for index in range(generator.draws)
        }
        if rst:
            return told | {"state": generator.reset}
        if write:
            return told | {"state": sampling.seed(wdata)}
        return told | {"state": _chosen(states, draw)}

    return step


def _chosen(states: Sequence[int], draw: int) -> int:
    """The state after so many draws."""
    for used, state in enumerate(states[:-1]):
        if draw == used:
            return state
    return states[-1]


def prove(generator: Generator, system: Transition) -> Verdict:
    """`system` is an `LFSR`, built as `generator` says. No more is drawn than it has ports for."""
    latency = {"state": 1} | {f"random__{index}": 0 for index in range(generator.draws)}

    def drawn(wires: Wires) -> Boolean:
        return ule(wires["draw"], generator.draws)

    return follows(system, cycle(generator), assuming=drawn, latency=latency)


def prove_running(system: Transition) -> Verdict:
    """From zero it would never move."""
    return inductive(system, lambda wires: wires["state"] != 0)


@cache
def _system(generator: Generator) -> Transition:
    return transition(generator.build())


def proofs() -> Iterator[Proof]:
    """For each generator. They are the same in all configurations."""
    for name, generator in GENERATORS.items():
        yield Proof(
            "state and random numbers match the reference", "lfsr", name, "reference",
            lambda generator=generator: prove(generator, _system(generator)),
        )  # fmt: skip
        yield Proof(
            "the state is never zero", "lfsr", name, "induction",
            lambda generator=generator: prove_running(_system(generator)),
        )  # fmt: skip
