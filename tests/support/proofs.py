"""Wrong circuits for the tests of the proofs. A proof must fail for each of them."""

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


# Integers with a constant value.


def _decide(condition: Boolean) -> bool:
    value = simplify(condition).value
    assert value is not None, "a condition of constants must be a constant"
    return value


def known_integer(value: int) -> Integer:
    """Return an `Integer` with this constant value."""
    return Integer(constant(value, value.bit_length() + 1), _decide)


def integer_value(value: Integer | int) -> int:
    """Return the value of an `Integer` whose terms are all constants, after substitution."""
    if not isinstance(value, Integer):
        return value
    number = simplify(value.bits).signed
    assert number is not None
    return number


# Wrong circuits.


class FaultMixin:
    """Base class of a component with a fault. It precedes the correct component in the list of base classes.

    `add_fault` changes the module of the correct component.
    """

    def elaborate(self, platform: Any) -> Module:
        m = super().elaborate(platform)  # pyright: ignore[reportAttributeAccessIssue]
        self.add_fault(m)
        return m

    def add_fault(self, m: Any) -> None:
        """Add statements to the module. The last assignment to a signal takes precedence."""
        raise NotImplementedError


def unmodified(config: SPUConfig, system: Transition) -> Transition:
    """Return `system` without history registers."""
    return system


@dataclass(frozen=True)
class WrongCircuit:
    """Component with a fault, and the proof that must fail.

    Members
    -------
    component : callable
        The component with the fault.
    config : SPUConfig
        Configuration of the component.
    prove : callable
        The proof.
    evidence : str
        Text that the evidence of the verdict must contain.
    watched : callable
        Add the history registers that the proof needs.
    """

    component: Callable[[SPUConfig], wiring.Component]
    config: SPUConfig
    prove: Prove
    evidence: str = "a cycle violates it"
    watched: Callable[[SPUConfig, Transition], Transition] = unmodified

    def __str__(self) -> str:
        return getattr(self.component, "__name__", "")

    def check(self) -> None:
        """Check that the proof fails with this evidence."""
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
    """Check that a component passes the proofs, and that each of `count` seeded faults fails one of them.

    Parameters
    ----------
    component : callable
        Build the correct component.
    proofs : sequence of callable
        Proofs of the component.
    count : int
        Number of faults.
    assuming, relevant
        Parameters of `formal.engine.faults.differs`, which selects the faults that change the behavior.
    watched : callable
        Add the history registers that the proofs need.
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
