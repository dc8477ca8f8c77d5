"""The timing model: its invariants on real programs, and each mechanism on a few operations made by hand."""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from spurtle.arch import Event
from spurtle_sim.classify import FACT, Instruction, Kind
from spurtle_sim.core import Cache, DataSource, Parameters, Predictor
from spurtle_sim.machine import Machine
from spurtle_sim.program import OPERATION, Program

WORKLOADS = Path(__file__).parents[1] / "sim" / "workloads"
P = Parameters()

ALU = Instruction(Kind.INTEGER, sources=(1,), destinations=(1,))
FREE = Instruction(Kind.INTEGER, destinations=(2,))
LOAD = Instruction(Kind.LOAD, FACT["load"], sources=(1,), destinations=(1,), traffic=8)
LOAD_FREE = Instruction(Kind.LOAD, FACT["load"], sources=(3,), destinations=(4,), traffic=8)
STORE = Instruction(Kind.STORE, FACT["store"], sources=(1, 3), traffic=8)
ATOMIC = Instruction(Kind.ATOMIC, FACT["load"] | FACT["store"] | FACT["atomic"], (3,), (4,), traffic=16)
BRANCH = Instruction(Kind.BRANCH, FACT["branch"] | FACT["conditional"])
ISB = Instruction(Kind.SYNCHRONIZE)
DMB = Instruction(Kind.MEMORY_BARRIER)

LINE, PAGE = 64, 4096


def play(steps: Sequence[tuple[Instruction, int]], parameters: Parameters = P) -> np.ndarray:
    """Time `steps`: an instruction each, and the address it accesses, or for a branch whether it is taken."""
    instructions = dict(enumerate((instruction for instruction, _ in steps), 1))
    operations = np.zeros(len(steps), OPERATION)
    for index, (instruction, argument) in enumerate(steps):
        facts = instruction.facts | FACT["retired"]
        if instruction.traffic:
            facts |= FACT["va_valid"]
            operations["va"][index] = argument
        if instruction.facts & FACT["branch"] and argument:
            facts |= FACT["taken"]
        operations["facts"][index] = facts
    operations["pc"] = list(instructions)
    return Machine(instructions, parameters).time(operations)


def events(row: np.void) -> set[Event]:
    return {event for event in Event if int(row["events"]) >> event & 1}


@pytest.mark.parametrize(("name", "ops_per_cycle"), [("sort", 1), ("chase", 1), ("simd", 1), ("sort", 8)])
def test_invariants(name: str, ops_per_cycle: int) -> None:
    program = Program(WORKLOADS / f"{name}.elf")
    machine = Machine(program.instructions, Parameters(ops_per_cycle=ops_per_cycle))
    timed = np.concatenate([machine.time(operations) for operations in islice(program.run(), 4)])
    assert (np.diff(timed["dispatch"].astype(np.int64)) >= 0).all()
    assert np.unique(timed["dispatch"], return_counts=True)[1].max() == ops_per_cycle
    assert (timed["issue"] >= 1).all()
    assert (timed["finish"] > timed["issue"]).all()
    assert (timed["translate_from"] <= timed["translate_to"]).all()
    assert (timed["translate_to"] <= timed["finish"]).all()
    assert timed["finish"].max() < 1000
    facts = timed["facts"]
    accesses, loads = (facts & FACT["va_valid"]) != 0, (facts & FACT["load"]) != 0
    assert (accesses == ((facts & FACT["pa_valid"]) != 0)).all()
    assert ((accesses & loads) == ((facts & FACT["data_source_valid"]) != 0)).all()
    assert (accesses == (timed["translate_to"] > timed["translate_from"])).all()
    for event, allowed in (
        (Event.TLB_ACCESS, accesses),
        (Event.TLB_WALK, accesses),
        (Event.L1D_ACCESS, accesses & loads),
        (Event.L1D_REFILL, accesses & loads),
        (Event.L2D_ACCESS, accesses & loads),
        (Event.RECENTLY_FETCHED, accesses & loads),
        (Event.MISPREDICTED, (facts & FACT["branch"]) != 0),
    ):
        assert not (timed["events"] & np.uint64(1 << event) != 0)[~allowed].any(), event.name


@pytest.mark.parametrize("ops_per_cycle", [1, 8])
def test_state_carries_over(ops_per_cycle: int) -> None:
    whole, pieces = Program(WORKLOADS / "sort.elf"), Program(WORKLOADS / "sort.elf")
    parameters = Parameters(ops_per_cycle=ops_per_cycle)
    expected = Machine(whole.instructions, parameters).time(next(whole.run()))
    machine = Machine(pieces.instructions, parameters)
    found = np.concatenate([machine.time(piece) for piece in islice(pieces.run(limit=1024), 60)])
    assert (found == expected[: len(found)]).all()


def test_dependent_operations_wait_and_others_do_not() -> None:
    timed = play([(LOAD, 0x1000), (ALU, 0), (FREE, 0)])
    assert timed["dispatch"].tolist() == [1, 2, 3]
    assert timed["issue"].tolist() == [1, timed["finish"][0] - 1, 1]
    assert timed["finish"].tolist()[1:] == [timed["issue"][1] + 1, 2]


def pages(count: int, apart: int) -> list[tuple[Instruction, int]]:
    """Loads from `count` pages in a row, so that frames are in a row. Each `apart`-th is from the page's first line."""
    return [(LOAD_FREE, index * PAGE + (LINE if index % apart else 0)) for index in range(count)]


def test_a_load_finds_its_data_further_and_further_away() -> None:
    first, _, again = play([(LOAD_FREE, 0), (ISB, 0), (LOAD_FREE, 0)])
    assert first["finish"] - first["issue"] == P.walk + P.dram
    assert first["translate_to"] - first["translate_from"] == 1 + P.walk
    assert first["data_source"] == DataSource.DRAM
    assert events(first) == {
        Event.L1D_ACCESS, Event.L1D_REFILL, Event.TLB_ACCESS, Event.TLB_WALK,
        Event.L2D_ACCESS, Event.L2D_MISS, Event.LLC_ACCESS, Event.LLC_MISS,
    }  # fmt: skip
    assert again["finish"] - again["issue"] == P.l1d
    assert again["translate_to"] - again["translate_from"] == 1
    assert again["data_source"] == DataSource.L1D
    assert events(again) == {Event.L1D_ACCESS, Event.TLB_ACCESS}

    # One line more than the ways of a set of L1.
    apart = P.l1d_bytes // P.l1d_ways // PAGE
    evicted = play([*pages(P.l1d_ways * apart + 1, apart), (ISB, 0), (LOAD_FREE, 0)])[-1]
    assert evicted["finish"] - evicted["issue"] == P.l2
    assert evicted["data_source"] == DataSource.L2
    assert events(evicted) == {Event.L1D_ACCESS, Event.L1D_REFILL, Event.TLB_ACCESS, Event.L2D_ACCESS}

    # And of L2: so many pages that the first-level TLB forgets, too.
    apart = P.l2_bytes // P.l2_ways // PAGE
    evicted = play([*pages(P.l2_ways * apart + 1, apart), (ISB, 0), (LOAD_FREE, 0)])[-1]
    assert evicted["finish"] - evicted["issue"] == P.l2_tlb + P.system_cache
    assert evicted["translate_to"] - evicted["translate_from"] == 1 + P.l2_tlb
    assert evicted["data_source"] == DataSource.SYSTEM_CACHE
    assert events(evicted) == {
        Event.L1D_ACCESS, Event.L1D_REFILL, Event.TLB_ACCESS, Event.L2D_ACCESS, Event.L2D_MISS, Event.LLC_ACCESS
    }  # fmt: skip


def test_a_hit_in_the_cache_still_waits_for_its_translation() -> None:
    spread = [(LOAD_FREE, index * (PAGE + LINE)) for index in range(P.tlb_entries + 1)]
    found = play([*spread, (ISB, 0), spread[0]])[-1]
    assert found["finish"] - found["issue"] == P.l2_tlb + P.l1d
    assert events(found) == {Event.L1D_ACCESS, Event.TLB_ACCESS}


def test_a_load_waits_for_its_line_that_is_on_its_way() -> None:
    first, second = play([(LOAD_FREE, 0x1000), (LOAD_FREE, 0x1008)])
    assert second["dispatch"] + second["finish"] == first["dispatch"] + first["finish"]
    assert events(second) == {Event.L1D_ACCESS, Event.TLB_ACCESS, Event.RECENTLY_FETCHED}


def test_stores_end_in_the_store_buffer_until_it_is_full() -> None:
    stores = [(STORE, index * LINE) for index in range(PAGE // LINE)]
    timed = play(stores)
    assert timed["finish"][1] - timed["issue"][1] == P.store
    assert events(timed[1]) == {Event.TLB_ACCESS}
    assert (timed["finish"][: P.store_buffer] <= P.store + P.walk + 1).all()
    assert timed["finish"][-1] > 2 * P.store + P.walk
    assert not timed["data_source"].any()


def test_an_atomic_operation_takes_longer_than_a_load() -> None:
    timed = play([(LOAD_FREE, 0x1000), (ISB, 0), (LOAD_FREE, 0x1000), (ATOMIC, 0x1000)])
    assert (timed["finish"] - timed["issue"])[2:].tolist() == [P.l1d, P.l1d + P.atomic]


def test_a_store_exclusive_that_failed_meets_nothing() -> None:
    instruction = Instruction(Kind.STORE, FACT["store"] | FACT["exclusive"], (1, 3), (2,))
    timed = play([(instruction, 0)])
    assert timed["events"].tolist() == [0]
    assert timed["finish"].tolist() == [1 + P.store]


def test_a_wide_core_dispatches_several_in_a_cycle() -> None:
    four = Parameters(ops_per_cycle=4)
    steps = [*[(FREE, 0)] * 6, (BRANCH, 0), *[(FREE, 0)] * 5]  # the branch is mispredicted
    timed = play(steps, four)
    behind = 2 + timed["finish"][6] + P.redirect
    assert timed["dispatch"].tolist() == [*[1] * 4, *[2] * 3, *[behind] * 4, behind + 1]
    chain = play([(ALU, 0)] * 60, four)
    issues = (chain["dispatch"] + chain["issue"]).tolist()
    assert issues == list(range(2, 62)), "one after the other"
    assert (chain["dispatch"][P.scheduler :] >= issues[: -P.scheduler]).all()


def test_a_misprediction_holds_dispatch_up() -> None:
    timed = play([(FREE, 0), (BRANCH, 0), (FREE, 0)])  # a new counter predicts taken
    assert events(timed[1]) == {Event.MISPREDICTED}
    assert timed["finish"][1] == timed["issue"][1] + 1
    assert timed["dispatch"][2] == timed["dispatch"][1] + timed["finish"][1] + P.redirect
    assert events(play([(FREE, 0), (BRANCH, 1)])[1]) == set()


def test_isb_issues_last_and_holds_dispatch_up() -> None:
    timed = play([(LOAD_FREE, 0x1000), (ISB, 0), (FREE, 0)])
    assert timed["dispatch"][1] + timed["issue"][1] == timed["dispatch"][0] + timed["finish"][0]
    assert timed["dispatch"][2] == timed["dispatch"][1] + timed["finish"][1] + P.redirect


def test_dmb_waits_for_stores() -> None:
    # 64 new lines from DRAM, eight at a time.
    timed = play([*[(STORE, index * LINE) for index in range(64)], (DMB, 0)])
    assert timed["dispatch"][-1] + timed["finish"][-1] >= 64 * P.dram // P.store_overlap


def test_a_full_scheduler_and_a_full_window_hold_dispatch_up() -> None:
    chain = play([(LOAD, index * PAGE) for index in range(100)])
    issues = chain["dispatch"] + chain["issue"]
    assert (chain["dispatch"][P.scheduler :] >= issues[: -P.scheduler]).all()
    behind = play([(LOAD_FREE, 0x1000), *[(FREE, 0)] * 200])
    assert behind["dispatch"][P.window] == behind["dispatch"][0] + behind["finish"][0]
    assert behind["dispatch"][P.window - 1] == behind["dispatch"][0] + P.window - 1


def test_pages_get_frames_in_the_order_of_their_first_touch() -> None:
    timed = play([(LOAD_FREE, va) for va in (0x7000_1008, 0x5000_0010, 0x7000_1FF8, 0x5000_1000)])
    assert timed["pa"].tolist() == [0x8000_0008, 0x8000_1010, 0x8000_0FF8, 0x8000_2000]


def test_cache_replaces_the_least_recently_used() -> None:
    cache = Cache(8, 2)
    assert [cache.access(number) for number in (0, 4, 0, 8, 0, 4, 1)] == [False, False, True, False, True, False, False]
    with pytest.raises(ValueError, match="must be a power of two, not 9 / 3"):
        Cache(9, 3)


def test_predictor_learns() -> None:
    predictor = Predictor(bits=4, return_stack=2)
    conditional, taken, indirect = (
        FACT["branch"] | FACT["conditional"],
        FACT["taken"],
        FACT["branch"] | FACT["indirect"],
    )
    always = [predictor.mispredicts(Kind.BRANCH, 0x100, 0x200, conditional | taken) for _ in range(20)]
    assert not any(always)
    alternating = [predictor.mispredicts(Kind.BRANCH, 0x100, 0x200, conditional | taken * (i & 1)) for i in range(200)]
    assert any(alternating) and not any(alternating[100:])
    jumps = [predictor.mispredicts(Kind.BRANCH, 0x300, target, indirect) for target in (0x400, 0x400, 0x500, 0x500)]
    assert jumps == [True, False, True, False]
    for pc in (0x10, 0x20, 0x30):  # one call more than the stack holds
        assert not predictor.mispredicts(Kind.CALL, pc, 0x1000, FACT["branch"])
    returns = [predictor.mispredicts(Kind.RETURN, 0x1000, pc + 4, indirect) for pc in (0x30, 0x20, 0x10)]
    assert returns == [False, False, True]
    assert not predictor.mispredicts(Kind.BRANCH, 0x600, 0x700, FACT["branch"])
