"""Properties of one cycle: what holds is proved, and what does not is shown."""

from configurations import FEATURES
from formal.engine.induction import always, independent, inductive
from formal.engine.proof import Result
from formal.engine.terms import Boolean, any_of, ule
from formal.engine.transition import Transition, Wires, transition
from spurtle.gateware.access_choice import AccessChoice


def test_a_wrong_invariant_is_found(subject: Transition) -> None:
    assert "after power-up" in inductive(subject, lambda wires: wires["value"] != 0).evidence
    assert "a cycle breaks it" in inductive(subject, lambda wires: wires["value"] != 9).evidence


def test_a_relation_that_a_cycle_breaks_is_shown(subject: Transition) -> None:
    def falls(now: Wires, then: Wires) -> Boolean:
        return any_of(now["load"] == 1, now["rst"] == 1, ule(then["value"], now["value"]))

    # A zero that `zero` does not know of wraps, in a state that is never reached.
    assert "a cycle breaks it" in always(subject, falls).evidence


def test_what_an_output_depends_on_is_told(subject: Transition) -> None:
    assert independent(subject, ["value"], of=["load", "start"]).result is Result.PASS
    through = transition(AccessChoice(FEATURES["minimal_mops"]))
    assert "they differ" in independent(through, ["destination"], of=["pmsfcr"]).evidence
