"""History registers of a transition relation."""

from formal.engine.cover import reach
from formal.engine.induction import inductive
from formal.engine.proof import Result
from formal.engine.terms import BitVector, Boolean, all_of, any_of, constant, if_else, uge
from formal.engine.transition import Transition, Wires, with_history
from tests.support.countdown import zero_flag_is_correct


def test_history_registers_follow_the_system(subject: Transition) -> None:
    def follow(wires: Wires) -> dict[str, BitVector]:
        return {"before": if_else(wires["rst"] == 1, constant(0, 4), wires["value"])}

    system = with_history(subject, {"before": 4}, follow, {"before": 0})

    def falls(wires: Wires) -> Boolean:
        return any_of(wires["before"] == 0, uge(wires["before"], wires["value"]))

    # Without a load the value never increases.
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
