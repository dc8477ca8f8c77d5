"""Tests of the timing model: invariants on real programs, and each mechanism on short sequences of operations."""

import re
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from spurtle.arch import DataSource, Event
from spurtle_sim.emulator.program import Program
from spurtle_sim.timing.model import TimingModel
from spurtle_sim.timing.parameters import TABLE, Parameters
from spurtle_sim.trace.dtypes import OPERATION
from spurtle_sim.trace.instruction import FACT, Instruction, InstructionKind
from tests.support.cores import core
from tests.support.paths import WORKLOADS
from tests.support.seeds import SEED
from tests.support.steps import (
    ALU,
    ATOMIC,
    BRANCH,
    DMB,
    INDEPENDENT,
    INDEPENDENT_LOAD,
    ISB,
    LINE,
    LOAD,
    PAGE,
    STORE,
    events,
    run_steps,
)

P = core()


@pytest.mark.parametrize(("name", "ops_per_cycle"), [("sort", 1), ("chase", 1), ("simd", 1), ("sort", 8)])
def test_invariants(name: str, ops_per_cycle: int) -> None:
    program = Program(WORKLOADS / f"{name}.elf")
    timing_model = TimingModel(program.instructions, core(ops_per_cycle=ops_per_cycle))
    timed = np.concatenate([timing_model.run(operations) for operations in islice(program.run(), 4)])
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
def test_state_continues_between_calls(ops_per_cycle: int) -> None:
    complete, pieces = Program(WORKLOADS / "sort.elf"), Program(WORKLOADS / "sort.elf")
    parameters = core(ops_per_cycle=ops_per_cycle)
    expected = TimingModel(complete.instructions, parameters).run(next(complete.run()))
    timing_model = TimingModel(pieces.instructions, parameters)
    actual = np.concatenate([timing_model.run(piece) for piece in islice(pieces.run(limit=1024), 60)])
    assert (actual == expected[: len(actual)]).all()


def test_only_dependent_operations_wait() -> None:
    timed = run_steps([(LOAD, 0x1000), (ALU, 0), (INDEPENDENT, 0)])
    assert timed["dispatch"].tolist() == [1, 2, 3]
    assert timed["issue"].tolist() == [1, timed["finish"][0] - 1, 1]
    assert timed["finish"].tolist()[1:] == [timed["issue"][1] + 1, 2]


def test_issue_waits_for_every_source_and_finish_sets_every_destination() -> None:
    slow, pair = (
        Instruction(InstructionKind.DIVIDE, destinations=(5,)),
        Instruction(InstructionKind.MULTIPLY, destinations=(6, 7, 8, 9)),
    )
    steps = [
        slow,
        pair,
        *(Instruction(InstructionKind.INTEGER, sources=(11, register)) for register in (5, 6, 7, 8, 9, 10)),
    ]
    timed = run_steps([(instruction, 0) for instruction in steps], core(ops_per_cycle=8))
    ends = timed["dispatch"] + timed["finish"]
    assert (timed["dispatch"] == 1).all()
    assert (timed["dispatch"] + timed["issue"])[2:].tolist() == [ends[0], *[ends[1]] * 4, 2]
    both = run_steps([(slow, 0), (pair, 0), (Instruction(InstructionKind.SIMD, sources=(0, 1, 2, 3, 6, 5)), 0)])
    assert both["dispatch"][2] + both["issue"][2] == both["dispatch"][0] + both["finish"][0]


def test_a_base_with_writeback_is_ready_one_cycle_after_issue() -> None:
    posted = Instruction(InstructionKind.LOAD, FACT["load"], (1,), (2,), (1,), traffic=8)
    steps = [(posted, 0), (posted, 8), (Instruction(InstructionKind.INTEGER, sources=(2,)), 0)]
    timed = run_steps(steps, core(ops_per_cycle=3))
    issues = timed["dispatch"] + timed["issue"]
    assert issues[1] == issues[0] + 1
    assert issues[2] == timed["dispatch"][1] + timed["finish"][1]


def test_rows_contain_the_operations() -> None:
    instructions, operations = random_operations(2000)
    timed = TimingModel(instructions, P).run(operations)
    for name in ("pc", "target", "va"):
        assert (timed[name] == operations[name]).all()
    added = FACT["pa_valid"] | FACT["data_source_valid"]
    assert (timed["facts"] & ~np.uint32(added) == operations["facts"]).all()


def pages(count: int, stride: int) -> list[tuple[Instruction, int]]:
    """Return loads from `count` contiguous pages, which have contiguous frames.

    One in `stride` loads is from the first line of its page, the others are from the second line.
    """
    return [(INDEPENDENT_LOAD, index * PAGE + (LINE if index % stride else 0)) for index in range(count)]


def test_latency_and_events_of_each_data_source() -> None:
    first, _, again = run_steps([(INDEPENDENT_LOAD, 0), (ISB, 0), (INDEPENDENT_LOAD, 0)])
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

    # One line more than a set of L1 has ways.
    stride = P.l1d_bytes // P.l1d_ways // PAGE
    evicted = run_steps([*pages(P.l1d_ways * stride + 1, stride), (ISB, 0), (INDEPENDENT_LOAD, 0)])[-1]
    assert evicted["finish"] - evicted["issue"] == P.l2
    assert evicted["data_source"] == DataSource.L2
    assert events(evicted) == {Event.L1D_ACCESS, Event.L1D_REFILL, Event.TLB_ACCESS, Event.L2D_ACCESS}

    # One line more than a set of L2 has ways. There are more pages than entries in the first-level TLB.
    stride = P.l2_bytes // P.l2_ways // PAGE
    evicted = run_steps([*pages(P.l2_ways * stride + 1, stride), (ISB, 0), (INDEPENDENT_LOAD, 0)])[-1]
    assert evicted["finish"] - evicted["issue"] == P.l2_tlb + P.system_cache
    assert evicted["translate_to"] - evicted["translate_from"] == 1 + P.l2_tlb
    assert evicted["data_source"] == DataSource.SYSTEM_CACHE
    assert events(evicted) == {
        Event.L1D_ACCESS, Event.L1D_REFILL, Event.TLB_ACCESS, Event.L2D_ACCESS, Event.L2D_MISS, Event.LLC_ACCESS
    }  # fmt: skip


def test_a_cache_hit_waits_for_its_translation() -> None:
    spread = [(INDEPENDENT_LOAD, index * (PAGE + LINE)) for index in range(P.tlb_entries + 1)]
    actual = run_steps([*spread, (ISB, 0), spread[0]])[-1]
    assert actual["finish"] - actual["issue"] == P.l2_tlb + P.l1d
    assert events(actual) == {Event.L1D_ACCESS, Event.TLB_ACCESS}


def test_a_load_waits_for_a_line_in_flight() -> None:
    first, second = run_steps([(INDEPENDENT_LOAD, 0x1000), (INDEPENDENT_LOAD, 0x1008)])
    assert second["dispatch"] + second["finish"] == first["dispatch"] + first["finish"]
    assert events(second) == {Event.L1D_ACCESS, Event.TLB_ACCESS, Event.RECENTLY_FETCHED}


def test_stores_finish_in_the_store_buffer_unless_it_is_full() -> None:
    stores = [(STORE, index * LINE) for index in range(PAGE // LINE)]
    timed = run_steps(stores)
    assert timed["finish"][1] - timed["issue"][1] == P.store
    assert events(timed[1]) == {Event.TLB_ACCESS}
    assert (timed["finish"][: P.store_buffer] <= P.store + P.walk + 1).all()
    assert timed["finish"][-1] > 2 * P.store + P.walk
    assert not timed["data_source"].any()


def test_an_atomic_operation_has_an_additional_latency() -> None:
    timed = run_steps([(INDEPENDENT_LOAD, 0x1000), (ISB, 0), (INDEPENDENT_LOAD, 0x1000), (ATOMIC, 0x1000)])
    assert (timed["finish"] - timed["issue"])[2:].tolist() == [P.l1d, P.l1d + P.atomic]


def test_an_atomic_operation_without_a_result_is_a_store() -> None:
    instruction = Instruction(InstructionKind.ATOMIC, FACT["store"] | FACT["atomic"], (3, 1), traffic=16)
    [timed] = run_steps([(instruction, 0x1000)])
    assert events(timed) == {Event.TLB_ACCESS, Event.TLB_WALK}
    assert timed["finish"] - timed["issue"] == P.walk + P.store
    assert not timed["facts"] & FACT["data_source_valid"]


def test_a_failed_store_exclusive_accesses_no_memory() -> None:
    instruction = Instruction(InstructionKind.STORE, FACT["store"] | FACT["exclusive"], (1, 3), (2,))
    timed = run_steps([(instruction, 0)])
    assert timed["events"].tolist() == [0]
    assert timed["finish"].tolist() == [1 + P.store]


def test_a_wide_core_dispatches_several_operations_per_cycle() -> None:
    four = core(ops_per_cycle=4)
    steps = [*[(INDEPENDENT, 0)] * 6, (BRANCH, 0), *[(INDEPENDENT, 0)] * 5]  # the branch is mispredicted
    timed = run_steps(steps, four)
    after = 2 + timed["finish"][6] + P.redirect
    assert timed["dispatch"].tolist() == [*[1] * 4, *[2] * 3, *[after] * 4, after + 1]
    chain = run_steps([(ALU, 0)] * 60, four)
    issues = (chain["dispatch"] + chain["issue"]).tolist()
    assert issues == list(range(2, 62)), "the chain issues one operation per cycle"
    assert (chain["dispatch"][P.scheduler :] >= issues[: -P.scheduler]).all()


def test_dispatch_stalls_after_a_misprediction() -> None:
    timed = run_steps([(INDEPENDENT, 0), (BRANCH, 0), (INDEPENDENT, 0)])  # a new counter predicts taken
    assert events(timed[1]) == {Event.MISPREDICTED}
    assert timed["finish"][1] == timed["issue"][1] + 1
    assert timed["dispatch"][2] == timed["dispatch"][1] + timed["finish"][1] + P.redirect
    assert events(run_steps([(INDEPENDENT, 0), (BRANCH, 1)])[1]) == set()


def test_isb_waits_for_earlier_operations_and_stalls_dispatch() -> None:
    timed = run_steps([(INDEPENDENT_LOAD, 0x1000), (ISB, 0), (INDEPENDENT, 0)])
    assert timed["dispatch"][1] + timed["issue"][1] == timed["dispatch"][0] + timed["finish"][0]
    assert timed["dispatch"][2] == timed["dispatch"][1] + timed["finish"][1] + P.redirect


def test_dmb_waits_for_stores() -> None:
    # 64 lines from DRAM, of which eight are fetched in parallel.
    timed = run_steps([*[(STORE, index * LINE) for index in range(64)], (DMB, 0)])
    assert timed["dispatch"][-1] + timed["finish"][-1] >= 64 * P.dram // P.store_overlap


def test_dmb_waits_for_loads() -> None:
    timed = run_steps([(INDEPENDENT_LOAD, 0), (INDEPENDENT, 0), (DMB, 0)])
    assert timed["dispatch"][2] + timed["issue"][2] == timed["dispatch"][0] + timed["finish"][0]


def test_one_store_that_hits_is_written_to_the_cache_per_cycle() -> None:
    parameters = core(ops_per_cycle=8)
    timed = run_steps([(INDEPENDENT_LOAD, 0), (ISB, 0), *[(STORE, 0)] * 32, (DMB, 0)], parameters)
    ends = timed["dispatch"] + timed["finish"]
    assert ends[-1] == ends[2] + 32


def test_dispatch_stalls_on_a_full_scheduler_or_window() -> None:
    chain = run_steps([(LOAD, index * PAGE) for index in range(100)])
    issues = chain["dispatch"] + chain["issue"]
    assert (chain["dispatch"][P.scheduler :] >= issues[: -P.scheduler]).all()
    after = run_steps([(INDEPENDENT_LOAD, 0x1000), *[(INDEPENDENT, 0)] * 200])
    assert after["dispatch"][P.window] == after["dispatch"][0] + after["finish"][0]
    assert after["dispatch"][P.window - 1] == after["dispatch"][0] + P.window - 1


def test_frames_are_allocated_in_the_order_of_first_accesses() -> None:
    timed = run_steps([(INDEPENDENT_LOAD, va) for va in (0x7000_1008, 0x5000_0010, 0x7000_1FF8, 0x5000_1000)])
    assert timed["pa"].tolist() == [0x8000_0008, 0x8000_1010, 0x8000_0FF8, 0x8000_2000]


ONE_LINE = {"l1d_bytes": LINE, "l1d_ways": 1}
CACHES = {
    "l1d": (core(l1d_bytes=8 * LINE, l1d_ways=2), LINE, Event.L1D_REFILL),
    "l2": (core(**ONE_LINE, l2_bytes=8 * LINE, l2_ways=2), LINE, Event.L2D_MISS),
    "system cache": (
        core(**ONE_LINE, l2_bytes=LINE, l2_ways=1, system_cache_bytes=8 * LINE, system_cache_ways=2),
        LINE,
        Event.LLC_MISS,
    ),
    "l2 tlb": (core(tlb_entries=1, l2_tlb_entries=8, l2_tlb_ways=2), PAGE, Event.TLB_WALK),
}
"""Parameters that give each cache or TLB eight entries in two ways, the bytes per entry, and the event of a miss."""


def hits(name: str, numbers: Sequence[int]) -> list[bool]:
    """Return whether each load, in a sequence of loads from these lines or pages, hits in the named cache or TLB."""
    parameters, size, miss = CACHES[name]
    return [
        miss not in events(row)
        for row in run_steps([(INDEPENDENT_LOAD, number * size) for number in numbers], parameters)
    ]


def least_recently_used(numbers: Sequence[int], sets: int, ways: int) -> list[bool]:
    """Return whether each of `numbers`, in sequence, hits in a set-associative reference cache."""
    cache: list[list[int]] = [[] for _ in range(sets)]
    results: list[bool] = []
    for number in numbers:
        entries = cache[number % sets]
        results.append(number in entries)
        if number in entries:
            entries.remove(number)
        entries.append(number)
        del entries[:-ways]
    return results


@pytest.mark.parametrize("name", CACHES)
def test_caches_replace_the_least_recently_used_entry(name: str) -> None:
    assert hits(name, (0, 4, 0, 8, 0, 4, 1, 0)) == [False, False, True, False, True, False, False, True]
    numbers = Random(f"{SEED} {name}").choices(range(24), k=2000)
    assert hits(name, numbers) == least_recently_used(numbers, 4, 2), f"seed {SEED}"


def test_the_first_level_tlb_replaces_the_least_recently_used_entry() -> None:
    numbers = Random(SEED).choices(range(9), k=2000)
    timed = run_steps([(INDEPENDENT_LOAD, number * PAGE) for number in numbers], core(tlb_entries=7))
    hit = timed["translate_to"] - timed["translate_from"] == 1
    assert hit.tolist() == least_recently_used(numbers, 1, 7), f"seed {SEED}"


def test_a_store_miss_fills_each_level() -> None:
    timed = run_steps([(STORE, 0), (ISB, 0), (INDEPENDENT_LOAD, 0)])
    assert events(timed[2]) == {Event.L1D_ACCESS, Event.TLB_ACCESS}
    evicted = run_steps([(STORE, 0), (INDEPENDENT_LOAD, LINE), (INDEPENDENT_LOAD, 0)], core(**ONE_LINE))
    assert evicted["data_source"][2] == DataSource.L2


def test_a_load_waits_for_a_line_in_flight_that_was_evicted_from_l1() -> None:
    evicted = [(INDEPENDENT_LOAD, 0), (INDEPENDENT_LOAD, LINE), (STORE, 0), (INDEPENDENT_LOAD, 0)]
    timed = run_steps(evicted, core(**ONE_LINE))
    ends = timed["dispatch"] + timed["finish"]
    assert events(timed[3]) == {Event.L1D_ACCESS, Event.TLB_ACCESS, Event.RECENTLY_FETCHED}
    assert ends[3] == ends[0]


def test_a_load_waits_for_a_line_in_flight_after_another_line_has_arrived() -> None:
    two_lines = core(l1d_bytes=2 * LINE, l1d_ways=1)
    in_l2 = [(INDEPENDENT_LOAD, LINE), (INDEPENDENT_LOAD, 3 * LINE), (ISB, 0)]
    far, near, *_, again = run_steps(
        [
            *in_l2,
            (INDEPENDENT_LOAD, 0),
            (INDEPENDENT_LOAD, LINE),
            *[(INDEPENDENT, 0)] * (2 * P.l2),
            (INDEPENDENT_LOAD, 8),
        ],
        two_lines,
    )[3:]
    assert [row["data_source"] for row in (far, near, again)] == [DataSource.DRAM, DataSource.L2, DataSource.L1D]
    assert again["dispatch"] + again["issue"] > near["dispatch"] + near["finish"]
    assert again["dispatch"] + again["finish"] == far["dispatch"] + far["finish"]
    assert Event.RECENTLY_FETCHED in events(again)


def test_a_load_does_not_wait_for_a_line_that_has_arrived() -> None:
    *_, hit = run_steps([(INDEPENDENT_LOAD, 0), (ISB, 0), (INDEPENDENT_LOAD, LINE), (INDEPENDENT_LOAD, 0)])
    assert events(hit) == {Event.L1D_ACCESS, Event.TLB_ACCESS}
    assert hit["finish"] - hit["issue"] == P.l1d


def test_more_lines_are_fetched_than_the_table_of_fills_holds() -> None:
    lines = PAGE // LINE
    window = core(window=4, scheduler=4, dram=15)
    loads = [(INDEPENDENT_LOAD, index * LINE + offset) for index in range(lines) for offset in (0, 8)]
    first, second = run_steps(loads, window)[0::2], run_steps(loads, window)[1::2]
    assert (first["dispatch"] + first["finish"] == second["dispatch"] + second["finish"]).all()


class BranchRunner:
    """Timing model that executes one branch at a time and reports whether it was mispredicted."""

    def __init__(self, parameters: Parameters) -> None:
        self._instructions: dict[int, Instruction] = {}
        self._model = TimingModel(self._instructions, parameters)

    def mispredicts(self, kind: InstructionKind, pc: int, target: int, facts: int) -> bool:
        instruction = self._instructions.setdefault(pc, Instruction(kind, facts & ~FACT["taken"]))
        assert instruction.kind is kind
        [row] = self._model.run(np.array([(pc, target, 0, facts | FACT["retired"], 0)], OPERATION))
        assert events(row) <= {Event.MISPREDICTED}
        return Event.MISPREDICTED in events(row)


def test_the_predictor_learns() -> None:
    predictor = BranchRunner(core(predictor_bits=4, return_stack=2))
    conditional, taken, indirect = (
        FACT["branch"] | FACT["conditional"],
        FACT["taken"],
        FACT["branch"] | FACT["indirect"],
    )
    always = [predictor.mispredicts(InstructionKind.BRANCH, 0x100, 0x200, conditional | taken) for _ in range(20)]
    assert not any(always)
    alternating = [
        predictor.mispredicts(InstructionKind.BRANCH, 0x100, 0x200, conditional | taken * (i & 1)) for i in range(200)
    ]
    assert any(alternating) and not any(alternating[100:])
    jumps = [
        predictor.mispredicts(InstructionKind.BRANCH, 0x300, target, indirect)
        for target in (0x400, 0x400, 0x500, 0x500)
    ]
    assert jumps == [True, False, True, False]
    for pc in (0x10, 0x20, 0x30):  # one call more than the stack has entries
        assert not predictor.mispredicts(InstructionKind.CALL, pc, 0x1000, FACT["branch"])
    returns = [predictor.mispredicts(InstructionKind.RETURN, 0x1000, pc + 4, indirect) for pc in (0x30, 0x20, 0x10)]
    assert returns == [False, False, True]
    assert not predictor.mispredicts(InstructionKind.BRANCH, 0x600, 0x700, FACT["branch"])


def test_the_predictor_is_indexed_by_the_pc() -> None:
    predictor = BranchRunner(core(predictor_bits=1))
    facts = FACT["branch"] | FACT["indirect"]
    jumps = [(0x100, 0x400), (0x104, 0x500)] * 3
    assert [predictor.mispredicts(InstructionKind.BRANCH, *jump, facts) for jump in jumps] == [True, True, *[False] * 4]
    assert predictor.mispredicts(InstructionKind.BRANCH, 0x108, 0x500, facts), "it has the same index as 0x100"


def test_a_saturated_counter_changes_its_prediction_after_two_mispredictions() -> None:
    predictor = BranchRunner(core(predictor_bits=0))  # one counter, no history
    outcomes = [1, 1, 0, 0, 1, 0, 0, 0, 1, 1, 1]
    facts = FACT["branch"] | FACT["conditional"]
    mispredicted = [
        predictor.mispredicts(InstructionKind.BRANCH, 0x100, 0x200, facts | FACT["taken"] * taken) for taken in outcomes
    ]
    assert mispredicted == [bool(digit) for digit in (0, 0, 1, 1, 1, 1, 0, 0, 1, 1, 0)]


def test_returns_are_predicted_from_the_latest_calls() -> None:
    predictor = BranchRunner(core(return_stack=3))
    call, back = FACT["branch"] | FACT["link"], FACT["branch"] | FACT["indirect"] | FACT["procedure_return"]
    random = Random(SEED)
    stack: list[int] = []
    for _ in range(1000):
        if random.random() < 0.5:
            pc = random.randrange(0x1000, 0x1010, 4)
            assert not predictor.mispredicts(InstructionKind.CALL, pc, 0x4000, call)
            stack = [*stack, pc + 4][-3:]
        else:
            target = random.choice([*stack[-1:], random.randrange(0x1004, 0x1014, 4)])
            predicted = bool(stack) and stack.pop() == target
            assert predictor.mispredicts(InstructionKind.RETURN, 0x4000, target, back) is not predicted, f"seed {SEED}"


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"l1d_bytes": 9 * LINE, "l1d_ways": 3}, "l1d: entries / ways must be a power of two, not 9 / 3"),
        ({"l2_bytes": 8 * LINE, "l2_ways": 3}, "l2: entries / ways must be a power of two, not 8 / 3"),
        ({"system_cache_bytes": 63}, "system_cache: entries / ways must be a power of two, not 0 / 16"),
        ({"l2_tlb_entries": 15}, "l2_tlb: entries / ways must be a power of two, not 15 / 5"),
        ({"window": 0}, "window must be 1 to 16384, not 0"),
        ({"walk": -1}, "walk must be 0 to 16384, not -1"),
        ({"predictor_bits": 25}, "predictor_bits must be 0 to 24, not 25"),
        ({"l2_bytes": 1 << 31}, "l2_bytes must be 1 to 1073741824, not 2147483648"),
        ({"latencies": {InstructionKind.DIVIDE: 0}}, "latencies of DIVIDE must be 1 to 16384, not 0"),
    ],
)
def test_parameters_out_of_range_are_rejected(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        core(**parameters)


SMALL_CORE: dict[str, Any] = {
    "window": 32, "scheduler": 8, "predictor_bits": 4, "return_stack": 4, "store_buffer": 4,
    "l1d_bytes": 8 * LINE, "l1d_ways": 2, "l2_bytes": 32 * LINE, "l2_ways": 4, "tlb_entries": 4,
    "system_cache_bytes": 128 * LINE, "system_cache_ways": 4, "l2_tlb_entries": 16, "l2_tlb_ways": 4,
    "outstanding": 4, "forwarding": 3,
    "l2_line": 3, "system_cache_line": 5, "dram_line": 7, "prefetch_streams": 2, "prefetch_distance": 1,
    "ports": dict.fromkeys(InstructionKind, ("A", "B")),
}  # fmt: skip
"""Sizes that a few thousand operations exceed."""

SMALL_FETCH = {"l1i_bytes": 8 * LINE, "l1i_ways": 2, "itlb_entries": 4}
"""Sizes that few instructions exceed. Most operations wait for them."""


def random_operations(count: int) -> tuple[dict[int, Instruction], np.ndarray]:
    """Return instructions and random operations of every kind, which use few registers and addresses."""
    random = Random(SEED)
    calls = [0x8000]
    visits: Counter[int] = Counter()
    instructions: dict[int, Instruction] = {}
    operations = np.zeros(count, OPERATION)
    for row in operations:
        kind = random.choice(
            [*InstructionKind, *[InstructionKind.LOAD, InstructionKind.STORE, InstructionKind.INTEGER] * 8]
        )
        pc = 0x1080 * kind + 4 * random.randrange(32)
        row["pc"] = pc
        facts = FACT["retired"] | random.choice((0, FACT["taken"]))
        if kind in (InstructionKind.LOAD, InstructionKind.STORE, InstructionKind.ATOMIC):
            facts |= FACT["store" if kind is InstructionKind.STORE else "load"] | FACT["va_valid"]
            row["va"] = LINE * int(random.paretovariate(0.6)) % (40 * PAGE)
            if pc & 0x40:  # half of the accesses have a stride
                visits[pc] += 1
                row["va"] = LINE * (int(pc) + visits[pc]) % (40 * PAGE)
        if kind is InstructionKind.BRANCH:
            facts |= FACT["branch"] | (FACT["indirect"] if pc & 4 else FACT["conditional"])
            row["target"] = random.choice((0x1000, 0x2000))
        if kind is InstructionKind.CALL:
            calls.append(pc + 4)
        if kind is InstructionKind.RETURN:
            row["target"] = calls.pop() if len(calls) > 1 else calls[0]
        row["facts"] = facts
        traffic = 8 if facts & FACT["va_valid"] else 0
        instructions[pc] = Instruction(kind, facts & ~(FACT["taken"]), (pc >> 2 & 3,), (pc >> 4 & 3,), (4,), traffic)
    return instructions, operations


@pytest.mark.parametrize("fetch", [False, True])
def test_each_parameter_changes_the_timing(fetch: bool) -> None:
    base = {**SMALL_CORE, **SMALL_FETCH} if fetch else SMALL_CORE
    instructions, operations = random_operations(6000)
    before = TimingModel(instructions, core(**base)).run(operations)
    assert (before == TimingModel(instructions, core(**base)).run(operations)).all()
    names = [name for name, item in TABLE.items() if not item.kinds and (name in SMALL_FETCH) == fetch]
    names = [name for name in names if name != "wrong_path"]  # it changes the number of rows
    changes: list[dict[str, Any]] = [{name: 2 * getattr(core(**base), name) or 1} for name in names]
    if not fetch:
        changes += [{"latencies": {**P.latencies, kind: 2 * latency}} for kind, latency in P.latencies.items()]
        kinds = [*InstructionKind][:-2]  # barriers issue alone
        changes += [{"ports": {**SMALL_CORE["ports"], kind: ("A",)}} for kind in kinds]
        changes += [{"occupancy": {kind: 2}} for kind in kinds]
    for change in changes:
        timed = TimingModel(instructions, core(**{**base, **change})).run(operations)
        assert (timed != before).any(), f"{change}, seed {SEED}"


def test_operations_without_an_instruction_are_rejected() -> None:
    operations = np.zeros(3, OPERATION)
    operations["pc"] = 0x1000, 0x1004, 0x1006
    instructions = {0x1000: INDEPENDENT}
    timing_model = TimingModel(instructions, P)
    with pytest.raises(ValueError, match="operation 1 must be at the PC of an instruction, not at 0x1004"):
        timing_model.run(operations)
    instructions[0x1004] = INDEPENDENT
    with pytest.raises(ValueError, match="operation 1 must be at the PC of an instruction, not at 0x1006"):
        timing_model.run(operations[1:])
    with pytest.raises(ValueError, match="operation 0 must be"):
        TimingModel({}, P).run(operations)
    assert timing_model.run(operations[:0]).tolist() == []
    assert timing_model.run(operations[:1])["dispatch"].tolist() == [3], "the two earlier operations were executed"


@pytest.mark.parametrize(
    ("pc", "instruction", "message"),
    [
        (0x1002, INDEPENDENT, "the PC of an instruction must be a multiple of 4, not 0x1002"),
        (
            0x1000,
            Instruction(InstructionKind.SIMD, sources=(*range(7),)),
            "the sources of an instruction must be at most 6 registers, not 7",
        ),
        (
            0x1000,
            Instruction(InstructionKind.LOAD, base=(1, 2)),
            "the base of an instruction must be at most 1 registers, not 2",
        ),
    ],
)
def test_invalid_instructions_are_rejected(pc: int, instruction: Instruction, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TimingModel({pc: instruction}, P).run(np.zeros(0, OPERATION))


TRACES = {
    "sort": (
        "c567f4fd3a6a1500cf358e084bade8538d5a18c823aae46880fb8f2e710141d4",
        "e449c51309dee9bd3655da98b2c09652507c4a41752fd456a404bb854811fbcc",
    ),
    "chase": (
        "198611e33fcf738e9f6442b59eed1b8db2995fa68649a07dd2cb2b353101669f",
        "f369b43e191000515489c3f91cf9abc2a027b380b4a211225db2456f72da1f12",
    ),
    "simd": (
        "0b7728e08e512e5aa657a2a65329e8fc25a56b6a46849bc0a7d8bbf92e222231",
        "c7e48d8d5f4e226dff3ac71ee230041208d862be76b91bb3c625017ed3df1a47",
    ),
}
"""SHA-256 of all rows of a workload, with 1 and with 8 operations per cycle."""


@pytest.mark.parametrize("name", TRACES)
def test_complete_traces_have_known_digests(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(WORKLOADS)  # the path of the program is on its stack, so its length changes addresses
    program = Program(Path(f"{name}.elf"))
    lanes = (1, 8)
    timing_models = [TimingModel(program.instructions, core(ops_per_cycle=count)) for count in lanes]
    digests = [sha256() for _ in lanes]
    for operations in program.run():
        for timing_model, digest in zip(timing_models, digests, strict=True):
            digest.update(timing_model.run(operations))
    assert tuple(digest.hexdigest() for digest in digests) == TRACES[name]
