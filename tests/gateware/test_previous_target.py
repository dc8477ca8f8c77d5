"""Tests of the previous branch target against `take_branch` of the reference."""

from random import Random
from typing import Any

import pytest

from configurations import FOR_BLOCKS
from spurtle.gateware.previous_target import PreviousTarget
from spurtle_sim.model.operation import Location
from tests.support.gateware import Bench, random_location
from tests.support.seeds import SEED


@pytest.mark.parametrize("name", ["arm_model", "v1p4"])
def test_the_last_branch_that_may_be_recorded(name: str) -> None:
    config = FOR_BLOCKS[name]
    dut = PreviousTarget(config)
    outcomes = set()

    async def scenario(ctx: Any) -> None:
        random = Random(SEED)
        expected: Location | None = None
        for _ in range(2000):
            valid, enabled, target = random.getrandbits(1), random.random() < 0.7, random_location(random, config)
            new_owner = random.random() < 0.1
            ctx.set(dut.branch.valid, valid)
            ctx.set(dut.enabled, enabled)
            ctx.set(dut.new_owner, new_owner)
            members = {"address": target.address, "el": target.el, "ns": target.ns}
            ctx.set(dut.branch.target, members | ({"nse": target.nse} if config.rme else {}))
            await ctx.tick()
            if valid:
                expected = target if enabled else None
            if new_owner:
                expected = None
            previous = ctx.get(dut.previous)
            assert previous.valid == (expected is not None)
            if expected is not None:
                found = Location(*(previous.target[part] for part in members), previous.target.nse if config.rme else 0)
                assert found == expected
            outcomes.add((valid, enabled, new_owner, expected is None))

    Bench(dut).run(scenario)
    # Two outcomes with a branch and four without one. With a new owner there is one outcome for each input.
    assert len(outcomes) == 6 + 4
