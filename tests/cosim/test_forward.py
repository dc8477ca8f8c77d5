"""Fast-forward of the compiled SPU: everything that it reports equals a complete simulation."""

from dataclasses import replace
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray

from spurtle.arch import IMP_PMSRNDR_EL1, PMBSR_EL1, PMSCR_EL1, PMSICR_EL1, PMSIRR_EL1
from spurtle.config import CONFIGS, SPUConfig
from tests.support.profiled_spu import PE, Profile
from tests.support.seeds import SEED
from tests.support.tiers import configurations, tiers
from tests.support.timed_operations import table

CONFIGURED = configurations(CONFIGS)


def operations_of(config: SPUConfig, seed: int) -> NDArray[np.void]:
    """Return operations in full and in sparse cycles, of which some are in flight for long."""
    parts = [
        table(4_000, seed=seed + index, lanes=config.ops_per_cycle, gap=gap, longest=longest)
        for index, (gap, longest) in enumerate([(1, 30), (20, 100), (3, 2_000), (1, 30)])
    ]
    parts[-1]["dispatch"] = parts[-1]["dispatch"][0] + np.arange(len(parts[-1])) // config.ops_per_cycle
    for before, part in pairwise(parts):
        part["dispatch"] += before["dispatch"][-1]
    return np.concatenate(parts)


def outcome(profile: Profile) -> tuple[object, ...]:
    """Return what the SPU has reported, without the number of simulated cycles."""
    counts = {name: count for name, count in profile.spu.counts().items() if name != "cycles"}
    registers = [profile.read(register) for register in (PMSICR_EL1, IMP_PMSRNDR_EL1, PMBSR_EL1)]
    assert not profile.checker.mismatches
    reports = profile.selections.tolist(), profile.finishes.tolist(), profile.responses
    return profile.data, *reports, profile.interrupts, counts, registers


@pytest.mark.parametrize(
    ("interval", "rnd"), tiers(fast=[(2, 1)], full=[(rows, rnd) for rows in (1, 2, 5) for rnd in (0, 1)])
)
@pytest.mark.parametrize("config", CONFIGURED)
def test_the_outcome_is_that_of_a_complete_simulation(config: SPUConfig, interval: int, rnd: int) -> None:
    """The operations are played in calls of any length, and the records fill a small buffer."""
    operations = operations_of(config, seed=31 + interval)
    random = Random(f"{SEED} {interval} {rnd}")
    cuts = sorted(random.sample(range(len(operations)), 12))
    outcomes, cycles = [], []
    for enabled in False, True:
        profile = Profile(config, records=3)
        profile.spu.set_forwarding(enabled)
        profile.write(PMSIRR_EL1, PMSIRR_EL1.pack(INTERVAL=interval, RND=rnd))
        profile.write(PMSICR_EL1, 0)
        for number, piece in enumerate(np.split(operations, cuts)):
            profile.play(piece, settle=number % 3 == 2)
        profile.play(operations[:0], settle=True)
        outcomes.append(outcome(profile))
        cycles.append(profile.spu.counts()["cycles"])
    complete, forwarded = outcomes
    assert forwarded == complete
    assert complete[4], "the buffer becomes full"
    assert cycles[1] < (0.9 if interval == 1 else 0.6) * cycles[0]


@pytest.mark.parametrize("config", CONFIGURED)
def test_operations_that_are_not_counted(config: SPUConfig) -> None:
    """While profiling is disabled, or after PMSICR_EL1 was written, the counters are not derived from operations."""
    found: list[tuple[object, ...]] = []
    for enabled in False, True:
        profile = Profile(config, records=64)
        profile.spu.set_forwarding(enabled)
        operations = table(2_000, seed=5, lanes=config.ops_per_cycle, gap=2, longest=9)
        for control, count in ((1, 700), (0, 40), (1, 40), (1, 3)):
            profile.write(PMSCR_EL1, PMSCR_EL1.pack(E0SPE=control))
            profile.write(PMSICR_EL1, count)
            profile.spu.play(operations, settle=True)
            operations["dispatch"] += profile.spu.counts()["time"]
        counts = {name: count for name, count in profile.spu.counts().items() if name != "cycles"}
        found.append((counts, profile.spu.selections().tolist(), profile.spu.read(PMSICR_EL1)))
    assert found[0] == found[1]


def test_trapped_registers_are_simulated() -> None:
    """If an access to PMSICR_EL1 traps to EL2, no operation is skipped."""
    config = CONFIGS["v1p4"]
    cycles = []
    for trap in 0, 1:
        profile = Profile(config, records=64)
        profile.spu.set_forwarding(True)
        profile.spu.set_pe(replace(PE, mdcr_el2_tpms=trap))
        profile.spu.play(table(4_000, seed=6, lanes=config.ops_per_cycle, longest=9), settle=True)
        assert profile.spu.counts()["pop"] == 4_000
        assert profile.spu.selections()["first"].tolist() == list(range(256, 4_000, 257))
        cycles.append(profile.spu.counts()["cycles"])
    assert cycles[0] < cycles[1] / 2
