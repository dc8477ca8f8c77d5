"""Wrong circuits for the tests of the proofs, each of which some proof must find."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Module
from amaranth.lib import wiring

from formal.engine.faults import differs, faulty
from formal.engine.induction import Invariant
from formal.engine.integer import Integer
from formal.engine.proof import Result, Verdict
from formal.engine.terms import BitVector, Boolean, constant, simplify
from formal.engine.transition import Transition, transition
from spurtle.config import SPUConfig

from .seeds import SEED

__all__ = ["FaultMixin", "WrongCircuit", "check_faults", "integer_value", "known_integer"]

Prove = Callable[[SPUConfig, Transition], Verdict]


# Integers whose value the solver knows.


def _decide(condition: Boolean) -> bool:
    value = simplify(condition).value
    assert value is not None, "of known values nothing is open"
    return value


def known_integer(value: int) -> Integer:
    """Return an `Integer` with this value."""
    return Integer(constant(value, value.bit_length() + 1), _decide)


def integer_value(value: Integer | int) -> int:
    """Return the value of a known `Integer`, which may be of substituted terms."""
    if not isinstance(value, Integer):
        return value
    number = simplify(value.bits).signed
    assert number is not None
    return number


# Wrong circuits.


class FaultMixin:
    """The first base class of a component with a fault, before the right component: `add_fault` adds to its module."""

    def elaborate(self, platform: Any) -> Module:
        m = super().elaborate(platform)  # pyright: ignore[reportAttributeAccessIssue]
        self.add_fault(m)
        return m

    def add_fault(self, m: Any) -> None:
        """Add statements: the last assignment to a signal counts."""
        raise NotImplementedError


def unmodified(config: SPUConfig, system: Transition) -> Transition:
    """Return the circuit alone, without further registers."""
    return system


@dataclass(frozen=True)
class WrongCircuit:
    """A component with a fault, and the proof that finds it.

    Members
    -------
    evidence : str
        Text of the verdict.
    watched : callable
        Add the registers that the proof watches.
    """

    component: Callable[[SPUConfig], wiring.Component]
    config: SPUConfig
    prove: Prove
    evidence: str = "a cycle violates it"
    watched: Callable[[SPUConfig, Transition], Transition] = unmodified

    def __str__(self) -> str:
        return getattr(self.component, "__name__", "")

    def check(self) -> None:
        """Check that the proof fails, with its evidence."""
        verdict = self.prove(self.config, self.watched(self.config, transition(self.component(self.config))))
        assert verdict.result is Result.FAIL
        assert self.evidence in verdict.evidence


def check_faults(
    component: Callable[[], wiring.Component],
    proofs: Sequence[Callable[[Transition], Verdict]],
    *,
    count: int,
    assuming: Invariant,
    watched: Callable[[Transition], Transition] = lambda system: system,
    relevant: Callable[[str, BitVector], BitVector | Boolean] = lambda _, value: value,
) -> None:
    """Check that the proofs hold of a component, and that each of `count` seeded faults fails one of them.

    Parameters
    ----------
    assuming, relevant
        Which faults make a difference: see `differs`.
    watched : callable
        Add the registers that the proofs watch.
    """
    right = watched(transition(component()))
    assert [prove(right).result for prove in proofs] == [Result.PASS] * len(proofs)
    faults = faulty(
        component,
        count=count,
        seed=SEED,
        differs=lambda system: differs(right, watched(system), assuming=assuming, relevant=relevant),
    )
    assert [
        fault for fault, system in faults if all(prove(watched(system)).result is Result.PASS for prove in proofs)
    ] == []
