"""The proofs of completion find what is wrong."""

import pytest

from formal.engine.terms import BitVector, Term
from formal.engine.transition import transition
from formal.record import completion
from spurtle.config import CONFIGS
from spurtle.gateware.completion import Completion
from tests.support.proofs import check_faults
from tests.support.tiers import tiers


@pytest.mark.parametrize("count", tiers(fast=[2], full=[7]))
def test_seeded_faults_of_completion_fail(count: int) -> None:
    config = CONFIGS["minimal"]

    def relevant(name: str, value: BitVector) -> Term:
        """Which filters reject is kept, and nobody asks for more than whether one does."""
        return value != 0 if name == "rejections" else value

    assert "rejections" in transition(Completion(config)).registers
    check_faults(
        lambda: Completion(config),
        [completion.prove_waiting, completion.prove],
        count=count,
        assuming=completion.waiting,
        relevant=relevant,
    )
