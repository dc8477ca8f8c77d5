"""Pseudorandom number generators: state and numbers match `model.sampling`, and the state is never zero."""

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

__all__ = ["GENERATORS", "Generator", "proofs", "prove", "prove_nonzero"]


@dataclass(frozen=True)
class Generator:
    """Use of the `LFSR`, and its reference in `model.sampling`.

    Members
    -------
    bits, draws, reset : int
        Parameters of the `LFSR`.
    number, next : str
        Names of the functions that return the random number and the next state. They are looked up at each call, so
        that a test can replace them.
    size : tuple of int
        Further arguments of these functions.
    late_draw : bool
        Parameter of the `LFSR`.
    """

    bits: int
    draws: int
    reset: int
    number: str
    next: str
    size: tuple[int, ...] = ()
    late_draw: bool = False

    def build(self) -> LFSR:
        return LFSR(bits=self.bits, draws=self.draws, reset=self.reset, late_draw=self.late_draw)


GENERATORS: Mapping[str, Generator] = {
    "intervals": Generator(8, 1, LFSR_RESET, "random_byte", "draw"),
    "intervals, one lane": Generator(8, 1, LFSR_RESET, "random_byte", "draw", late_draw=True),
    # Selection of one of two accesses, of an element, of both.
    **{
        f"access by {bits}, {draws} a cycle": Generator(
            bits, draws, LFSR_ACCESS_RESET, "access_number", "draw_access", (bits,)
        )
        for bits in (1, ELEMENT_BITS, 1 + ELEMENT_BITS)
        for draws in (1, 2)
    },
}
"""Generators by their name in the report."""


def cycle(generator: Generator) -> Reference:
    """Return the reference of one cycle: the next numbers of the state, also if software writes the state."""

    def step(rst: int, write: int, wdata: int, draw: int, state: int) -> Mapping[str, int]:
        number: Callable[..., int] = getattr(sampling, generator.number)
        move: Callable[..., int] = getattr(sampling, generator.next)
        states = [state]
        for _ in range(generator.draws):
            states.append(move(states[-1], *generator.size))
        numbers: dict[str, Any] = {
            f"random__{index}": number(states[index], *generator.size) for index in range(generator.draws)
        }
        if rst:
            return numbers | {"state": generator.reset}
        if write:
            return numbers | {"state": sampling.seed(wdata)}
        return numbers | {"state": _state_after(states, draw)}

    return step


def _state_after(states: Sequence[int], draw: int) -> int:
    """Return the state after `draw` draws."""
    for used, state in enumerate(states[:-1]):
        if draw == used:
            return state
    return states[-1]


def prove(generator: Generator, system: Transition) -> Verdict:
    """Prove that state and numbers match the reference, if `draw` is at most `draws`. `system` is the generator."""
    latency = {"state": 1} | {f"random__{index}": 0 for index in range(generator.draws)}

    def drawn(wires: Wires) -> Boolean:
        return ule(wires["draw"], generator.draws)

    return follows(system, cycle(generator), assuming=drawn, latency=latency)


def prove_nonzero(system: Transition) -> Verdict:
    """Prove that the state is never zero: the successor of zero is zero."""
    return inductive(system, lambda wires: wires["state"] != 0)


@cache
def _system(generator: Generator) -> Transition:
    return transition(generator.build())


def proofs() -> Iterator[Proof]:
    """Yield the proofs, for each generator. They are the same in all configurations."""
    for name, generator in GENERATORS.items():
        yield Proof(
            "state and random numbers match the reference", "lfsr", name, "reference",
            lambda generator=generator: prove(generator, _system(generator)),
        )  # fmt: skip
        yield Proof(
            "the state is never zero", "lfsr", name, "induction",
            lambda generator=generator: prove_nonzero(_system(generator)),
        )  # fmt: skip
