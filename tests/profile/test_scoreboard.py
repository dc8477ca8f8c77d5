"""The checker of `spurtle profile --check`: each way in which an SPU can be wrong is told."""

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
"""Operations that are selected."""


def checker(config: SPUConfig = CONFIG) -> Checker:
    it = Checker(config, PEState(contextidr_el1=1))
    it.write(PMBPTR_EL1, BASE)
    it.write(PMBLIMITR_EL1, BASE + 4096 | 1)
    it.write(PMSIRR_EL1, PMSIRR_EL1.pack(INTERVAL=1))
    it.write(PMSCR_EL1, PMSCR_EL1.pack(E0SPE=1))
    return it


def passed(
    it: Checker,
    selections: list[tuple[int, int, int, int]],
    finishes: list[tuple[int, int]],
    *,
    answers: Sequence[Fault | None] | None = None,
    count: int = 600,
    destination: int = 0,
) -> None:
    """Each record is in memory unless `answers` say otherwise."""
    operations = np.zeros(count, TIMED_OPERATION)
    operations["issue"] = 1
    operations["finish"] = 7
    operations["pc"] = 4 * np.arange(count)
    rows = [(*selection, destination) for selection in selections]
    answers = [None] * len(finishes) if answers is None else answers
    it.check_operations(operations, np.array(rows, SELECTION), np.array(finishes, FINISH), answers, settled=True)


def right(it: Checker) -> None:
    """The first is sampled; the second, one of eight in its cycle, collides."""
    passed(it, [(FIRST, 1, 1, 99), (SECOND - 3, 8, 0, 200)], [(FIRST, 7)])


def test_correct_results() -> None:
    it = checker()
    right(it)
    it.read(PMBSR_EL1, PMBSR_EL1.pack(COLL=1))
    it.read(PMBPTR_EL1, BASE + 64)
    assert it.mismatches == []


@pytest.mark.parametrize(
    ("act", "mismatch"),
    [
        (lambda it: passed(it, [], []), "selected operations without an answer: the SPU has 0, the reference has 2"),
        (
            lambda it: passed(it, [(FIRST + 1, 1, 1, 99)], [], count=300),
            "selected operation, at 99: the SPU has [257], the reference has 256",
        ),
        (
            lambda it: passed(it, [(FIRST - 2, 2, 0, 99)], [], count=300),
            "selected operation, at 99: the SPU has [254, 255], the reference has 256",
        ),
        (
            lambda it: passed(it, [(FIRST, 1, 1, 99)], [], count=200),
            "selected operation, at 99: the SPU has [256], the reference has None",
        ),
        (
            lambda it: passed(it, [(FIRST, 1, 1, 99)], [], count=300),
            "sampled operations without a finish: the SPU has 0, the reference has 1",
        ),
        (
            lambda it: passed(it, [(FIRST, 1, 1, 99)], [(FIRST, 7)], answers=[], count=300),
            "record of the operation at 0x400 in memory: the SPU has False, the reference has True",
        ),
        (
            lambda it: passed(it, [(FIRST, 1, 1, 99)], [(FIRST, 7)], answers=[None, None], count=300),
            "records that the reference does not have: the SPU has 1, the reference has 0",
        ),
        (lambda it: it.read(PMBSR_EL1, 1), "PMBSR_EL1: the SPU has 1, the reference has 0"),
        (lambda it: it.check_records(BASE, b"\x01"), "record at 0x100000: the SPU has 01, the reference has "),
    ],
)
def test_each_mismatch_is_reported(act: Callable[[Checker], None], mismatch: str) -> None:
    it = checker()
    act(it)
    assert it.mismatches == [mismatch]
    assert it.count == 1


FAULT = Fault(kind=FaultKind.STAGE_2, fsc=0b000111, written=8)
STOPPED = PMBSR_EL1.pack(S=1, EC=EC.STAGE_2, MSS=0b000111, DL=1)
ABORTED = PMBSR_EL1.pack(S=1, EC=EC.STAGE_1, MSS=FSC_ASYNCHRONOUS, EA=1, DL=1)


@pytest.mark.parametrize(
    ("answers", "pmbsr", "written"),
    [
        ([None, FAULT], STOPPED, 64 + 8),
        # The buffer has stopped then.
        ([FAULT, ABORT], STOPPED | PMBSR_EL1.pack(EA=1), 8),
        ([FAULT], STOPPED, 8),
        ([None, ABORT], ABORTED, 64),
        ([ABORT], ABORTED, 0),
        # Of what was on its way only an External abort is told.
        ([ABORT, None], ABORTED, 0),
        ([None, ABORT, FAULT], ABORTED, 64),
        ([FAULT, replace(FAULT, external=True)], STOPPED | PMBSR_EL1.pack(EA=1), 8),
        ([None, None, ABORT], ABORTED, 128),
    ],
)
def test_responses_of_memory(answers: list[Fault | None], pmbsr: int, written: int) -> None:
    it = checker()
    passed(it, [(FIRST, 1, 1, 99), (SECOND, 1, 1, 200)], [(FIRST, 7), (SECOND, 7)], answers=answers)
    it.read(PMBSR_EL1, pmbsr)
    it.read(PMBPTR_EL1, BASE + written)
    assert it.mismatches == []


def test_the_state_of_the_program() -> None:
    """EL2 owns the buffer: its program is profiled, and not at EL0 below it."""
    for el, selections in ((2, [(FIRST, 1, 1, 99)]), (0, [])):
        it = Checker(CONFIGS["neoverse_n1"], PEState(el=el, mdcr_el2_e2pb=0))
        it.write(PMBLIMITR_EL1, BASE + 4096 | 1)
        it.write(PMSCR_EL2, PMSCR_EL2.pack(E2SPE=1))
        it.write(PMSIRR_EL1, PMSIRR_EL1.pack(INTERVAL=1))
        passed(it, selections, [(FIRST, 7)] if selections else [], count=300)
        it.read(PMBIDR_EL1, CONFIGS["neoverse_n1"].pmbidr | PMBIDR_EL1.pack(P=el < 2))
        assert it.mismatches == []


def test_operations_are_counted_one_by_one() -> None:
    """Whatever counters there are, and however few pass at once: the number of selections is the reference's own."""
    config = CONFIGS["v1p4"]
    random = Random(SEED)
    for ecount, count in product([0, 1, 3], [0, 1, 2, 300]):
        values = (
            (PMSCR_EL1, PMSCR_EL1.pack(E0SPE=1)),
            (PMSICR_EL1, PMSICR_EL1.pack(ECOUNT=ecount, COUNT=count)),
            (PMSIRR_EL1, PMSIRR_EL1.pack(INTERVAL=1, RND=random.getrandbits(1))),
            (PMBLIMITR_EL1, PMBLIMITR_EL1.pack(E=1, FM=FM.DISCARD)),
        )
        it, reference = Checker(config, PEState()), ReferenceSPU(config)
        for register, value in values:
            it.write(register, value)
            reference.write(register, value)
        selected = []
        for first in range(0, 600, step := random.choice([1, 2, 200, 600])):
            rows = [row for row in range(first, first + step) if reference.count_operation()]
            selected += [(row, 1, 0, 0, 0) for row in rows]
            answers = np.array([(row, 1, 0, 0, 0) for row in rows], SELECTION)
            it.check_operations(np.zeros(step, TIMED_OPERATION), answers, np.zeros(0, FINISH), [], settled=True)
        assert it.mismatches == [], f"{ecount}, {count}"
        it.read(PMSICR_EL1, reference.read(PMSICR_EL1))
        assert it.mismatches == [] and len(selected) >= 1, f"{ecount}, {count}"


def test_which_of_two_accesses_is_sampled() -> None:
    """After reset the newest bit of the second generator is one: the first choice is the store."""
    for destination in (0, 1):
        it = checker(CONFIGS["v1p4"])
        passed(it, [(FIRST, 1, 1, 99)], [(FIRST, 7)], count=300, destination=destination)
        wrong = "access to sample of operation 256: the SPU has 0, the reference has 1"
        assert it.mismatches == ([] if destination else [wrong])


def test_events_that_did_not_occur() -> None:
    it = checker()
    nothing = dict.fromkeys((*EVENTS, *(f"feed_{name}" for name in CONFIG.feed_events)), 0)
    it.check_counts(nothing)
    assert it.mismatches == []
    for name in nothing:
        it.check_counts(nothing | {name: 1})
        assert it.mismatches.pop() == f"SAMPLE_{name.upper()} events: the SPU has 1, the reference has 0"


def test_pmu_events() -> None:
    it = checker()
    right(it)
    told = {"pop": 600, "feed": 1, "filtrate": 1, "collision": 1, "feed_event": 1, "feed_lat": 1}
    told |= dict.fromkeys(("feed_br", "feed_ld", "feed_st", "feed_op"), 0)
    it.check_counts(told)
    assert it.mismatches == []
    for name, count in told.items():
        it.check_counts(told | {name: count + 1})
        assert (
            it.mismatches.pop() == f"SAMPLE_{name.upper()} events: the SPU has {count + 1}, the reference has {count}"
        )


def test_records_have_the_previous_branch_target() -> None:
    """Of those that are older the last, in the same call or in one before."""
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
        it = checker(config)
        for played, number in ((operations[:300], FIRST), (operations[300:], SECOND)):
            selections, finishes = np.array([(number, 1, 1, 99, 0)], SELECTION), np.array([(number, 7)], FINISH)
            it.check_operations(played, selections, finishes, [None], settled=True)
        it.check_records(BASE, record(0x3000, previous) + record(0x5000, 0x4000))
        assert it.count == (previous != 0x2000)


def test_the_first_mismatches_are_listed_and_all_are_counted() -> None:
    it = checker()
    for _ in range(30):
        it.read(PMBSR_EL1, 1)
    assert (len(it.mismatches), it.count) == (10, 30)
