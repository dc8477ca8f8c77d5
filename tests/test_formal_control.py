"""The proofs of what is permitted find what is wrong."""

import pytest
import z3

from formal.faults import differs, faulty
from formal.induction import Wires
from formal.proof import Result
from formal.proofs import control as proofs
from formal.transition import Transition, transition
from spurtle.config import CONFIGS
from spurtle.control import Control
from spurtle.previous import PreviousTarget
from spurtle_sim.reference import control
from spurtle_sim.reference.spu import SPU

EVERY = CONFIGS["v1p4"]


def any_state(wires: Wires) -> z3.BoolRef:
    return z3.BoolVal(True)


def holds(system: Transition) -> bool:
    return all(
        prove(EVERY, system).result is Result.PASS for prove in (proofs.prove_permissions, proofs.prove_branches)
    )


def test_faults_of_the_permissions_are_found() -> None:
    right = transition(Control(EVERY))
    assert holds(right)
    faults = [
        (fault, system)
        for fault, system in faulty(Control(EVERY), count=12, seed=1)
        if differs(right, system, assuming=any_state)
    ]
    assert len(faults) > 8
    assert [fault for fault, system in faults if holds(system)] == []


@pytest.mark.parametrize("name", ["profiling_enabled", "collect_contextidr_el1", "collect_timestamp"])
def test_other_permissions_are_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, name, lambda *_: True)
    assert proofs.prove_permissions(EVERY, transition(Control(EVERY))).result is Result.FAIL


def test_faults_of_the_previous_target_are_found() -> None:
    right = transition(PreviousTarget(EVERY))
    assert proofs.prove_previous(EVERY, right).result is Result.PASS
    # Of a target that is none nothing is asked.
    faults = [
        (fault, system)
        for fault, system in faulty(PreviousTarget(EVERY), count=10, seed=1)
        if differs(
            right,
            system,
            assuming=lambda wires: z3.And(wires["previous.valid"] == 1, wires["enabled"] == 1, wires["rst"] == 0),
        )
    ]
    assert len(faults) > 4
    assert [fault for fault, system in faults if proofs.prove_previous(EVERY, system).result is Result.PASS] == []


def test_a_target_that_is_kept_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SPU, "take_branch", lambda *_, **__: None)
    assert proofs.prove_previous(EVERY, transition(PreviousTarget(EVERY))).result is Result.FAIL
