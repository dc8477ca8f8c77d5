"""Checker of `spurtle profile --check`: each kind of mismatch is reported."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from random import Random

import numpy as np
import pytest

from spurtle.arch import (
    EC,
    FM,
    FSC_ASYNCHRONOUS,
    PMBIDR_EL1,
    PMBLIMITR_EL1,
    PMBPTR_EL1,
    PMBSR_EL1,
    PMSCR_EL1,
    PMSCR_EL2,
    PMSICR_EL1,
    PMSIRR_EL1,
)
from spurtle.config import CONFIGS, SPUConfig
from spurtle_sim.cosim.faults import ABORT
from spurtle_sim.model import records
from spurtle_sim.model.buffer import Fault, FaultKind
from spurtle_sim.model.operation import Facts, Location, Operation, Sample, Start
from spurtle_sim.model.pe import PEState
from spurtle_sim.model.spu import ReferenceSPU
from spurtle_sim.profile.scoreboard import Checker
from spurtle_sim.trace.dtypes import FINISH, SELECTION, TIMED_OPERATION
from tests.support.seeds import SEED

CONFIG = CONFIGS["minimal"]
BASE = 0x10_0000
EVENTS = ("pop", "feed", "filtrate", "collision")
FIRST, SECOND = 256, 513
"""Numbers of the selected operations."""


def new_checker(config: SPUConfig = CONFIG) -> Checker:
    checker = Checker(config, PEState(contextidr_el1=1))
    checker.write(PMBPTR_EL1, BASE)
    checker.write(PMBLIMITR_EL1, BASE + 4096 | 1)
    checker.write(PMSIRR_EL1, PMSIRR_EL1.pack(INTERVAL=1))
    checker.write(PMSCR_EL1, PMSCR_EL1.pack(E0SPE=1))
    return checker


def let_pass(
    checker: Checker,
    selections: list[tuple[int, int, int, int]],
    finishes: list[tuple[int, int]],
    *,
    responses: Sequence[Fault | None] | None = None,
    count: int = 600,
    destination: int = 0,
) -> None:
    """Let `count` operations pass. Memory responds to each record without a fault, unless `responses` has others."""
    operations = np.zeros(count, TIMED_OPERATION)
    operations["issue"] = 1
    operations["finish"] = 7
    operations["pc"] = 4 * np.arange(count)
    rows = [(*selection, destination) for selection in selections]
    responses = [None] * len(finishes) if responses is None else responses
    checker.check_operations(operations, np.array(rows, SELECTION), np.array(finishes, FINISH), responses, settled=True)


def report_correct_results(checker: Checker) -> None:
    """Report the correct results: the first is sampled; the second, one of eight in its cycle, collides."""
    let_pass(checker, [(FIRST, 1, 1, 99), (SECOND - 3, 8, 0, 200)], [(FIRST, 7)])


def test_correct_results() -> None:
    checker = new_checker()
    report_correct_results(checker)
    checker.read(PMBSR_EL1, PMBSR_EL1.pack(COLL=1))
    checker.read(PMBPTR_EL1, BASE + 64)
    assert checker.mismatches == []


@pytest.mark.parametrize(
    ("act", "mismatch"),
    [
        (
            lambda checker: let_pass(checker, [], []),
            "selected operations without an answer: the SPU has 0, the reference has 2",
        ),
        (
            lambda checker: let_pass(checker, [(FIRST + 1, 1, 1, 99)], [], count=300),
            "selected operation, at 99: the SPU has [257], the reference has 256",
        ),
        (
            lambda checker: let_pass(checker, [(FIRST - 2, 2, 0, 99)], [], count=300),
            "selected operation, at 99: the SPU has [254, 255], the reference has 256",
        ),
        (
            lambda checker: let_pass(checker, [(FIRST, 1, 1, 99)], [], count=200),
            "selected operation, at 99: the SPU has [256], the reference has None",
        ),
        (
            lambda checker: let_pass(checker, [(FIRST, 1, 1, 99)], [], count=300),
            "sampled operations without a finish: the SPU has 0, the reference has 1",
        ),
        (
            lambda checker: let_pass(checker, [(FIRST, 1, 1, 99)], [(FIRST, 7)], responses=[], count=300),
            "record of the operation at 0x400 in memory: the SPU has False, the reference has True",
        ),
        (
            lambda checker: let_pass(checker, [(FIRST, 1, 1, 99)], [(FIRST, 7)], responses=[None, None], count=300),
            "records that the reference does not have: the SPU has 1, the reference has 0",
        ),
        (lambda checker: checker.read(PMBSR_EL1, 1), "PMBSR_EL1: the SPU has 1, the reference has 0"),
        (
            lambda checker: checker.check_records(BASE, b"\x01"),
            "record at 0x100000: the SPU has 01, the reference has ",
        ),
    ],
)
def test_each_mismatch_is_reported(act: Callable[[Checker], None], mismatch: str) -> None:
    checker = new_checker()
    act(checker)
    assert checker.mismatches == [mismatch]
    assert checker.count == 1


FAULT = Fault(kind=FaultKind.STAGE_2, fsc=0b000111, written=8)
STOPPED = PMBSR_EL1.pack(S=1, EC=EC.STAGE_2, MSS=0b000111, DL=1)
ABORTED = PMBSR_EL1.pack(S=1, EC=EC.STAGE_1, MSS=FSC_ASYNCHRONOUS, EA=1, DL=1)


@pytest.mark.parametrize(
    ("responses", "pmbsr", "written"),
    [
        ([None, FAULT], STOPPED, 64 + 8),
        # These responses arrive after the buffer has stopped.
        ([FAULT, ABORT], STOPPED | PMBSR_EL1.pack(EA=1), 8),
        ([FAULT], STOPPED, 8),
        ([None, ABORT], ABORTED, 64),
        ([ABORT], ABORTED, 0),
        # Of the records in flight, only an External abort is reported.
        ([ABORT, None], ABORTED, 0),
        ([None, ABORT, FAULT], ABORTED, 64),
        ([FAULT, replace(FAULT, external=True)], STOPPED | PMBSR_EL1.pack(EA=1), 8),
        ([None, None, ABORT], ABORTED, 128),
    ],
)
def test_responses_of_memory(responses: list[Fault | None], pmbsr: int, written: int) -> None:
    checker = new_checker()
    let_pass(checker, [(FIRST, 1, 1, 99), (SECOND, 1, 1, 200)], [(FIRST, 7), (SECOND, 7)], responses=responses)
    checker.read(PMBSR_EL1, pmbsr)
    checker.read(PMBPTR_EL1, BASE + written)
    assert checker.mismatches == []


def test_the_state_of_the_program() -> None:
    """EL2 owns the buffer, so a program at EL2 is profiled, and a program at EL0 is not."""
    for el, selections in ((2, [(FIRST, 1, 1, 99)]), (0, [])):
        checker = Checker(CONFIGS["neoverse_n1"], PEState(el=el, mdcr_el2_e2pb=0))
        checker.write(PMBLIMITR_EL1, BASE + 4096 | 1)
        checker.write(PMSCR_EL2, PMSCR_EL2.pack(E2SPE=1))
        checker.write(PMSIRR_EL1, PMSIRR_EL1.pack(INTERVAL=1))
        let_pass(checker, selections, [(FIRST, 7)] if selections else [], count=300)
        checker.read(PMBIDR_EL1, CONFIGS["neoverse_n1"].pmbidr | PMBIDR_EL1.pack(P=el < 2))
        assert checker.mismatches == []


def test_operations_are_counted_one_by_one() -> None:
    """Groups of any size and all values of the counters have the same selections as single operations."""
    config = CONFIGS["v1p4"]
    random = Random(SEED)
    for ecount, count in product([0, 1, 3], [0, 1, 2, 300]):
        values = (
            (PMSCR_EL1, PMSCR_EL1.pack(E0SPE=1)),
            (PMSICR_EL1, PMSICR_EL1.pack(ECOUNT=ecount, COUNT=count)),
            (PMSIRR_EL1, PMSIRR_EL1.pack(INTERVAL=1, RND=random.getrandbits(1))),
            (PMBLIMITR_EL1, PMBLIMITR_EL1.pack(E=1, FM=FM.DISCARD)),
        )
        checker, reference = Checker(config, PEState()), ReferenceSPU(config)
        for register, value in values:
            checker.write(register, value)
            reference.write(register, value)
        selected = []
        for first in range(0, 600, step := random.choice([1, 2, 200, 600])):
            rows = [row for row in range(first, first + step) if reference.count_operation()]
            selected += [(row, 1, 0, 0, 0) for row in rows]
            selections = np.array([(row, 1, 0, 0, 0) for row in rows], SELECTION)
            checker.check_operations(np.zeros(step, TIMED_OPERATION), selections, np.zeros(0, FINISH), [], settled=True)
        assert checker.mismatches == [], f"{ecount}, {count}"
        checker.read(PMSICR_EL1, reference.read(PMSICR_EL1))
        assert checker.mismatches == [] and len(selected) >= 1, f"{ecount}, {count}"


def test_which_of_two_accesses_is_sampled() -> None:
    """After reset the newest bit of the second generator is one, so the first choice is the store."""
    for destination in (0, 1):
        checker = new_checker(CONFIGS["v1p4"])
        let_pass(checker, [(FIRST, 1, 1, 99)], [(FIRST, 7)], count=300, destination=destination)
        mismatch = "access to sample of operation 256: the SPU has 0, the reference has 1"
        assert checker.mismatches == ([] if destination else [mismatch])


def test_events_that_did_not_occur() -> None:
    checker = new_checker()
    no_events = dict.fromkeys((*EVENTS, *(f"feed_{name}" for name in CONFIG.feed_events)), 0)
    checker.check_counts(no_events)
    assert checker.mismatches == []
    for name in no_events:
        checker.check_counts(no_events | {name: 1})
        assert checker.mismatches.pop() == f"SAMPLE_{name.upper()} events: the SPU has 1, the reference has 0"


def test_pmu_events() -> None:
    checker = new_checker()
    report_correct_results(checker)
    counts = {"pop": 600, "feed": 1, "filtrate": 1, "collision": 1, "feed_event": 1, "feed_lat": 1}
    counts |= dict.fromkeys(("feed_br", "feed_ld", "feed_st", "feed_op"), 0)
    checker.check_counts(counts)
    assert checker.mismatches == []
    for name, count in counts.items():
        checker.check_counts(counts | {name: count + 1})
        assert (
            checker.mismatches.pop()
            == f"SAMPLE_{name.upper()} events: the SPU has {count + 1}, the reference has {count}"
        )


def test_records_have_the_previous_branch_target() -> None:
    """The previous branch target belongs to the last older taken branch, in the same call or an earlier one."""
    config = CONFIGS["arm_model"]
    branch = Facts(branch=1, taken=1, retired=1)
    rows = [100, 200, FIRST, 299, SECOND]
    operations = np.zeros(600, TIMED_OPERATION)
    operations["issue"] = 1
    operations["finish"] = 7
    operations["facts"][rows] = branch.pack()
    operations["target"][rows] = 0x1000, 0x2000, 0x3000, 0x4000, 0x5000

    def record(target: int, previous: int) -> bytes:
        operation = Operation(facts=branch, target=Location(target, 0, 1), pa_ns=1)
        sample = Sample(start=Start(), operation=operation, previous_target=Location(previous, 0, 1), total=7, issue=1)
        return records.encode(config, sample)

    for previous in (0x1000, 0x2000, 0x3000):
        checker = new_checker(config)
        for played, number in ((operations[:300], FIRST), (operations[300:], SECOND)):
            selections, finishes = np.array([(number, 1, 1, 99, 0)], SELECTION), np.array([(number, 7)], FINISH)
            checker.check_operations(played, selections, finishes, [None], settled=True)
        checker.check_records(BASE, record(0x3000, previous) + record(0x5000, 0x4000))
        assert checker.count == (previous != 0x2000)


def test_the_first_mismatches_are_listed_and_all_are_counted() -> None:
    checker = new_checker()
    for _ in range(30):
        checker.read(PMBSR_EL1, 1)
    assert (len(checker.mismatches), checker.count) == (10, 30)
