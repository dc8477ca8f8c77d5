"""The proofs of the pseudorandom number generators fail for wrong circuits and wrong references."""

from functools import partial

import pytest

from formal.engine.proof import Result
from formal.engine.terms import Boolean, all_of, ule
from formal.engine.transition import Wires, transition
from formal.sampling import lfsr
from spurtle_sim.model import sampling
from tests.support.proofs import check_faults
from tests.support.tiers import tiers


@pytest.mark.parametrize(
    ("name", "count"),
    tiers(
        fast=[("intervals", 2)],
        full=[(name, 2) for name in lfsr.GENERATORS],
        long=[(name, 6) for name in lfsr.GENERATORS],
    ),
)
def test_seeded_faults_of_the_lfsr_fail(name: str, count: int) -> None:
    generator = lfsr.GENERATORS[name]

    def drawn(wires: Wires) -> Boolean:
        return all_of(wires["state"] != 0, ule(wires["draw"], generator.draws))

    check_faults(generator.build, [partial(lfsr.prove, generator)], count=count, assuming=drawn)
    assert lfsr.prove_nonzero(transition(generator.build())).result is Result.PASS


def test_random_numbers_that_share_bits_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = lfsr.GENERATORS["access by 9, 2 a cycle"]
    draw_access = sampling.draw_access
    monkeypatch.setattr(sampling, "draw_access", lambda state, bits: draw_access(state, bits - 1))
    assert lfsr.prove(generator, transition(generator.build())).result is Result.FAIL
