"""Properties of one cycle: those that hold are proved, others fail with a counterexample."""

from configurations import FEATURES
from formal.engine.induction import always, independent, inductive
from formal.engine.proof import Result
from formal.engine.terms import Boolean, any_of, ule
from formal.engine.transition import Transition, Wires, transition
from spurtle.gateware.access_choice import AccessChoice


def test_wrong_invariants_fail(subject: Transition) -> None:
    assert "after power-up" in inductive(subject, lambda wires: wires["value"] != 0).evidence
    assert "a cycle violates it" in inductive(subject, lambda wires: wires["value"] != 9).evidence


def test_a_violated_relation_fails(subject: Transition) -> None:
    def falls(now: Wires, then: Wires) -> Boolean:
        return any_of(now["load"] == 1, now["rst"] == 1, ule(then["value"], now["value"]))

    # In an unreachable state, with `value` 0 and `zero` 0, the value wraps.
    assert "a cycle violates it" in always(subject, falls).evidence


def test_combinational_dependencies_are_found(subject: Transition) -> None:
    assert independent(subject, ["value"], inputs=["load", "start"]).result is Result.PASS
    through = transition(AccessChoice(FEATURES["minimal_mops"]))
    assert "the outputs differ" in independent(through, ["destination"], inputs=["pmsfcr"]).evidence
