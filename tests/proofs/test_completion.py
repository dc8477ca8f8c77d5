"""The proofs of completion fail for wrong circuits."""

import pytest

from formal.engine.terms import BitVector, Term
from formal.engine.transition import transition
from formal.record import completion
from spurtle.config import CONFIGS
from spurtle.gateware.completion import Completion
from tests.support.proofs import check_faults
from tests.support.tiers import tiers


@pytest.mark.parametrize("count", tiers(fast=[2], full=[4]))
def test_seeded_faults_of_completion_fail(count: int) -> None:
    config = CONFIGS["minimal"]

    def relevant(name: str, value: BitVector) -> Term:
        """Return the value. Of `rejections`, return whether it is nonzero: only that is used."""
        return value != 0 if name == "rejections" else value

    assert "rejections" in transition(Completion(config)).registers
    check_faults(
        lambda: Completion(config),
        [completion.prove_waiting, completion.prove],
        count=count,
        assuming=completion.waiting,
        relevant=relevant,
    )
