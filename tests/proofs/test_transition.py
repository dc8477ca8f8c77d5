"""Registers beside a component follow it."""

from formal.engine.cover import reach
from formal.engine.induction import inductive
from formal.engine.proof import Result
from formal.engine.terms import BitVector, Boolean, all_of, any_of, constant, if_else, uge
from formal.engine.transition import Transition, Wires, remembering
from tests.support.countdown import zero_flag_is_correct


def test_what_is_remembered_follows(subject: Transition) -> None:
    def follow(wires: Wires) -> dict[str, BitVector]:
        return {"before": if_else(wires["rst"] == 1, constant(0, 4), wires["value"])}

    system = remembering(subject, {"before": 4}, follow, {"before": 0})

    def falls(wires: Wires) -> Boolean:
        return any_of(wires["before"] == 0, uge(wires["before"], wires["value"]))

    # But for a load it does fall.
    loads = inductive(system, falls)
    assert "before = 0x" in loads.evidence
    assert (
        inductive(
            system,
            lambda wires: all_of(zero_flag_is_correct(wires), falls(wires)),
            contract=lambda now, _: now["load"] == 0,
        ).result
        is Result.PASS
    )
    assert reach(system, lambda wires: all_of(wires["before"] == 9, wires["value"] == 8), cycles=3).depth == 2
