"""Comparison with a reference: a fault in the circuit or in the reference fails the proof."""

from formal.engine.induction import inductive, resets
from formal.engine.proof import Result
from formal.engine.reference import follows
from formal.engine.terms import all_of
from formal.engine.transition import Transition, transition
from tests.support.countdown import Countdown, countdown, zero_flag_is_correct


def test_a_correct_circuit_matches_the_reference(subject: Transition) -> None:
    assert inductive(subject, zero_flag_is_correct).result is Result.PASS
    verdict = follows(subject, countdown, assuming=zero_flag_is_correct)
    assert (verdict.result, verdict.method) == (Result.PASS, "reference, all 4 paths")
    assert resets(subject).result is Result.PASS


def test_the_proof_fails_without_the_invariant(subject: Transition) -> None:
    assert follows(subject, countdown).result is Result.FAIL


def test_a_mismatch_is_reported_with_state_inputs_and_values(subject: Transition) -> None:
    def wrong(rst: int, load: int, start: int, value: int) -> dict[str, int]:
        return countdown(rst, load, start, value) if value != 11 else {"value": 3}

    verdict = follows(subject, wrong, assuming=zero_flag_is_correct)
    assert verdict.result is Result.FAIL
    for part in ("state   value = 0xb, zero = 0x0", "inputs  ", "expected  value = 0x3", "got       value = "):
        assert part in verdict.evidence


def test_a_wrong_circuit_fails() -> None:
    assert follows(transition(Countdown(wraps=True)), countdown, assuming=zero_flag_is_correct).result is Result.FAIL
    verdict = resets(transition(Countdown(reset_less=True)))
    assert verdict.result is Result.FAIL
    assert "is not reset" in verdict.evidence


def test_contradicting_assumptions_fail(subject: Transition) -> None:
    verdict = follows(subject, countdown, assuming=lambda wires: all_of(wires["value"] == 1, wires["value"] == 2))
    assert verdict.result is Result.FAIL
