"""D17.5: which records are kept."""

import pytest

from spurtle.arch import PMSFCR_EL1
from spurtle.config import CONFIGS
from spurtle_sim.reference import filtering
from spurtle_sim.reference.records import Facts, Operation, Sample, Start
from spurtle_sim.reference.registers import Registers

CONFIG = CONFIGS["neoverse_n1"]

LOAD = Facts(load=1, retired=1)
STORE = Facts(store=1, retired=1)
ATOMIC = Facts(load=1, store=1, atomic=1, retired=1)
BRANCH = Facts(branch=1, taken=1, retired=1)
OTHER = Facts(retired=1)


def collect(
    facts: Facts = LOAD, events: int = 0, total: int = 0, pmsevfr: int = 0, minlat: int = 0, **pmsfcr: int
) -> bool:
    registers = Registers(
        PMSFCR_EL1=PMSFCR_EL1.pack(**pmsfcr), PMSEVFR_EL1=pmsevfr & CONFIG.filter_events, PMSLATFR_EL1=minlat
    )
    sample = Sample(start=Start(), operation=Operation(facts=facts, events=events), total=total)
    return filtering.collect(CONFIG, registers, sample)


def test_without_a_filter_everything_is_kept():
    assert all(collect(facts) for facts in (LOAD, STORE, ATOMIC, BRANCH, OTHER, Facts()))


@pytest.mark.parametrize(
    ("selected", "kept"),
    [
        ({"LD": 1}, [LOAD, ATOMIC]),
        ({"ST": 1}, [STORE, ATOMIC]),
        ({"B": 1}, [BRANCH]),
        ({"LD": 1, "ST": 1}, [LOAD, STORE, ATOMIC]),
        ({"LD": 1, "B": 1}, [LOAD, ATOMIC, BRANCH]),
        ({"LD": 1, "ST": 1, "B": 1}, [LOAD, STORE, ATOMIC, BRANCH]),
        ({}, [LOAD, STORE, ATOMIC, BRANCH, OTHER]),  # no type selected: no effect
    ],
)
def test_operation_types(selected: dict[str, int], kept: list[Facts]):
    assert [facts for facts in (LOAD, STORE, ATOMIC, BRANCH, OTHER) if collect(facts, FT=1, **selected)] == kept
    assert all(collect(facts, FT=0, **selected) for facts in (LOAD, STORE, ATOMIC, BRANCH, OTHER))


def test_a_branch_that_generated_an_exception_is_none():
    assert not collect(Facts(branch=1, retired=1, exception=1), FT=1, B=1)


def test_a_load_that_generated_an_exception_is_one():
    assert collect(Facts(load=1, retired=1, exception=1), FT=1, LD=1)


@pytest.mark.parametrize(
    ("events", "pmsevfr", "kept"),
    [
        (0b0000_0100, 0b0000_0100, True),
        (0b0000_0100, 0b0000_1100, False),  # all of them, not one of them
        (0b0000_1100, 0b0000_1100, True),
        (0b0011_1100, 0b0000_1100, True),
        (0, 0b0000_0010, True),  # E[1] comes from the facts
        (0, 0, True),  # no event selected: no effect
        (0, 0b0100_0001, True),  # E[6] and E[0] cannot be selected
        (1 << 12, 1 << 12, True),
        (0, 1 << 12, False),
    ],
)
def test_events(events: int, pmsevfr: int, kept: bool):
    assert collect(LOAD, events, pmsevfr=pmsevfr, FE=1) is kept
    assert collect(LOAD, events, pmsevfr=pmsevfr, FE=0)


def test_events_are_those_that_are_recorded():
    assert not collect(OTHER, 1 << 2, pmsevfr=1 << 2, FE=1)  # no load or store, no access to the L1 data cache
    assert not collect(LOAD, 1 << 7, pmsevfr=1 << 7, FE=1)  # no branch, no misprediction
    assert not collect(Facts(load=1), 1 << 2, pmsevfr=1 << 2, FE=1)  # not retired


@pytest.mark.parametrize(
    ("total", "minlat", "kept"),
    [
        (99, 100, False),
        (100, 100, True),
        (101, 100, True),
        (0, 0, True),  # no latency selected: no effect
        (5000, 4095, True),
        (4094, 4095, False),
    ],
)
def test_latency(total: int, minlat: int, kept: bool):
    assert collect(total=total, minlat=minlat, FL=1) is kept
    assert collect(total=total, minlat=minlat, FL=0)


def test_latency_is_the_recorded_saturated_count():
    assert not collect(total=5000, minlat=4500, FL=1)


@pytest.mark.parametrize(("load", "event", "latency"), [(a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1)])
def test_any_filter_rejects(load: int, event: int, latency: int):
    facts = LOAD if load else STORE
    kept = collect(facts, event << 5, 10 * latency, pmsevfr=1 << 5, minlat=10, FT=1, LD=1, FE=1, FL=1)
    assert kept is (load == event == latency == 1)
