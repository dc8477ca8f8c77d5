"""Resources of the timing model against arithmetic: fetch, ports, misses, bandwidth, forwarding and prefetches."""

from fractions import Fraction
from itertools import pairwise
from math import ceil, sqrt
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray

from spurtle.arch import DataSource, Event
from spurtle_sim.timing.core import NAMED_CORES, read_core
from spurtle_sim.timing.model import TimingModel
from spurtle_sim.timing.parameters import Parameters
from spurtle_sim.trace.dtypes import OPERATION
from spurtle_sim.trace.instruction import FACT, Instruction, InstructionKind
from tests.support.cores import core
from tests.support.seeds import SEED
from tests.support.steps import (
    BRANCH,
    INDEPENDENT,
    INDEPENDENT_LOAD,
    ISB,
    LINE,
    LOAD,
    PAGE,
    STORE,
    events,
    run_loop,
    run_steps,
)

COUNT = 60
CLASSES = [
    kind
    for kind in core().latencies
    if kind not in (InstructionKind.MEMORY_BARRIER, InstructionKind.SYNCHRONIZE, InstructionKind.RETURN)
]
"""Kinds whose operations wait for registers only. A return without a call would be mispredicted."""

FLAT = {"tlb_entries": 1 << 14, "walk": 0}
"""Parameters with which no translation takes time."""


def issues(timed: NDArray[np.void]) -> NDArray[np.uint64]:
    return timed["dispatch"] + timed["issue"]


def ends(timed: NDArray[np.void]) -> NDArray[np.uint64]:
    return timed["dispatch"] + timed["finish"]


def of_kind(kind: InstructionKind, *, dependent: bool) -> Instruction:
    return Instruction(kind, 0, (1,) if dependent else (2,), (1,))


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.name)
def test_a_chain_takes_the_latency_of_each_operation(kind: InstructionKind) -> None:
    latency = read_core().parameters.latencies[kind]
    parameters = core(ops_per_cycle=8, ports={kind: ("A", "B")})
    chain = [(of_kind(kind, dependent=True), 0)] * COUNT
    timed = run_steps(chain, parameters)
    assert ends(timed)[-1] == 2 + COUNT * latency


@pytest.mark.parametrize("ports", [1, 2, 3])
@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.name)
def test_independent_operations_issue_once_per_port(kind: InstructionKind, ports: int) -> None:
    parameters = core(ops_per_cycle=8, ports={kind: ("A", "B", "C")[:ports]})
    timed = run_steps([(of_kind(kind, dependent=False), 0)] * COUNT, parameters)
    cycles, counts = np.unique(issues(timed), return_counts=True)
    assert counts.max() == ports
    assert cycles[-1] - cycles[0] + 1 == ceil(COUNT / ports)


def test_an_operation_keeps_its_port_busy() -> None:
    divide, kind = of_kind(InstructionKind.DIVIDE, dependent=False), InstructionKind.DIVIDE
    timed = run_steps([(divide, 0)] * 20, core(ports={kind: ("A",)}, occupancy={kind: 7}))
    assert np.diff(issues(timed)).tolist() == [7] * 19


def test_kinds_share_a_port() -> None:
    multiply = of_kind(InstructionKind.MULTIPLY, dependent=False)
    shared = core(ops_per_cycle=8, ports={InstructionKind.INTEGER: ("A", "B"), InstructionKind.MULTIPLY: ("A",)})
    timed = run_steps([(INDEPENDENT, 0), (multiply, 0), (INDEPENDENT, 0), (multiply, 0)], shared)
    # The first integer operation takes port A, which is listed first, and the others issue when their port is free.
    assert issues(timed).tolist() == [2, 3, 2, 4]


def test_a_later_operation_uses_a_port_before_an_earlier_one_that_waits() -> None:
    parameters = core(ops_per_cycle=8, ports={InstructionKind.INTEGER: ("A",)})
    waiting = Instruction(InstructionKind.INTEGER, sources=(1,))
    timed = run_steps([(LOAD, 0), (waiting, 0), (INDEPENDENT, 0)], parameters)
    assert issues(timed)[2] == 2
    assert issues(timed)[1] == ends(timed)[0]


def test_an_in_order_core_issues_in_program_order() -> None:
    waiting = Instruction(InstructionKind.INTEGER, sources=(1,))
    steps = [(LOAD, 0), (waiting, 0), (INDEPENDENT, 0)]
    timed = run_steps(steps, core(ops_per_cycle=8, in_order=1))
    assert issues(timed)[2] == issues(timed)[1] == ends(timed)[0]
    assert issues(run_steps(steps, core(ops_per_cycle=8)))[2] == 2


SMALL_CACHES = {
    "l1d_bytes": 64 * LINE, "l1d_ways": 4, "l2_bytes": 256 * LINE, "l2_ways": 4,
    "system_cache_bytes": 512 * LINE, "system_cache_ways": 4,
}  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "source"),
    [(64, DataSource.L1D), (256, DataSource.L2), (512, DataSource.SYSTEM_CACHE), (1024, DataSource.DRAM)],
)
def test_a_chase_takes_the_latency_of_the_cache_that_holds_it(lines: int, source: DataSource) -> None:
    parameters = core(**SMALL_CACHES, **FLAT)
    latency = getattr(parameters, source.name.lower())
    timed = run_loop(LOAD, [LINE * (index % lines) for index in range(2 * lines)], parameters)[lines:]
    assert set(timed["data_source"].tolist()) == {source}
    assert ends(timed)[-1] - ends(timed)[0] == (lines - 1) * latency


def test_a_stream_takes_the_interval_of_the_level_that_delivers_it() -> None:
    rates = {"l2_line": 3, "system_cache_line": 9, "dram_line": 20}
    parameters = core(ops_per_cycle=8, window=512, scheduler=512, **SMALL_CACHES, **FLAT, **rates)
    for lines, interval in ((256, 3), (512, 9), (1024, 20)):
        timed = run_loop(INDEPENDENT_LOAD, [LINE * (index % lines) for index in range(8 * lines)], parameters)[-lines:]
        cycles = int(ends(timed)[-1] - ends(timed)[lines // 2])
        assert Fraction(cycles, lines - 1 - lines // 2) == pytest.approx(interval, rel=0.02)


@pytest.mark.parametrize("outstanding", [1, 4, 10])
def test_misses_wait_for_a_buffer(outstanding: int) -> None:
    parameters = core(ops_per_cycle=16, window=512, scheduler=512, outstanding=outstanding, **FLAT)
    timed = run_loop(INDEPENDENT_LOAD, [LINE * index for index in range(outstanding * 5)], parameters)
    assert ends(timed)[-1] - ends(timed)[0] == 4 * parameters.dram
    for cycle in ends(timed):
        in_flight = (ends(timed) - parameters.dram < cycle) & (ends(timed) >= cycle)
        assert in_flight.sum() <= outstanding


def test_stores_use_the_bandwidth() -> None:
    stores = [(STORE, LINE * index) for index in range(64)]
    slow = ends(run_steps([*stores, (ISB, 0)], core(dram_line=100, **FLAT)))
    assert slow[63] - slow[62] == 100


def test_a_load_reads_the_store_buffer() -> None:
    parameters = core(forwarding=5, **FLAT)
    word = Instruction(InstructionKind.LOAD, FACT["load"], (3,), (4,), traffic=4)
    wide = Instruction(InstructionKind.LOAD, FACT["load"], (3,), (4,), traffic=16)
    stored, inside, again, beside, across = run_steps(
        [(STORE, 0x1000), (word, 0x1004), (INDEPENDENT_LOAD, 0x1000), (INDEPENDENT_LOAD, 0x1008), (wide, 0x0FFC)],
        parameters,
    )
    ready = stored["dispatch"] + stored["finish"]
    assert inside["dispatch"] + inside["finish"] == ready + 5
    assert again["dispatch"] + again["finish"] == max(ready, again["dispatch"] + again["issue"]) + 5
    assert beside["finish"] - beside["issue"] == parameters.l1d
    written = ready + parameters.dram // parameters.store_overlap
    assert across["dispatch"] + across["finish"] == written + parameters.dram
    assert events(inside) == {Event.L1D_ACCESS, Event.TLB_ACCESS} and inside["data_source"] == DataSource.L1D


def test_a_load_reads_the_latest_store_and_not_one_that_is_written() -> None:
    parameters = core(forwarding=50, **FLAT)
    warm = [(INDEPENDENT_LOAD, 0), (ISB, 0)]
    late = Instruction(InstructionKind.STORE, FACT["store"], (9,), traffic=8)
    slow = Instruction(InstructionKind.DIVIDE, destinations=(9,))
    timed = run_steps([*warm, (STORE, 0), (slow, 0), (late, 0), (INDEPENDENT_LOAD, 0)], parameters)
    assert ends(timed)[5] == ends(timed)[4] + 50
    # The first store has been written. The second one, to another line, is pending when the load looks for its bytes.
    steps = [(STORE, 0), *[(INDEPENDENT, 0)] * 10, (STORE, 2 * LINE), (INDEPENDENT_LOAD, 0)]
    timed = run_steps([*warm, *steps], parameters)
    assert timed["finish"][-1] - timed["issue"][-1] == parameters.l1d


@pytest.mark.parametrize("distance", [1, 3])
@pytest.mark.parametrize("stride", [LINE, -LINE, 2 * LINE])
def test_a_stream_is_prefetched_from_its_third_load_on(stride: int, distance: int) -> None:
    parameters = core(prefetch_streams=4, prefetch_distance=distance, **FLAT)
    loads = PAGE // abs(stride)
    first = 0x10000 if stride > 0 else 0x10000 + PAGE + stride
    timed = run_loop(INDEPENDENT_LOAD, [first + stride * index for index in range(2 * loads)], parameters)
    missed = [index for index, row in enumerate(timed) if Event.L1D_REFILL in events(row)]
    next_page = range(loads, loads + distance)
    assert missed == [*range(2 + distance), *next_page]


def test_a_prefetched_stream_takes_the_interval_of_dram() -> None:
    parameters = core(prefetch_streams=4, prefetch_distance=16, dram_line=10, scheduler=4, window=4, **FLAT)
    timed = run_loop(LOAD, [LINE * index for index in range(64)], parameters)
    cycles = np.diff(ends(timed))[20:]
    assert cycles.mean() == pytest.approx(10, rel=0.05)
    assert Event.RECENTLY_FETCHED in events(timed[40])


def test_a_prefetch_without_a_miss_buffer_is_dropped() -> None:
    parameters = core(prefetch_streams=4, prefetch_distance=1, outstanding=1, window=1, **FLAT)
    timed = run_loop(INDEPENDENT_LOAD, [LINE * index for index in range(12)], parameters)
    # The buffer holds the line of each load that misses, so that no prefetch can begin with it.
    assert all(Event.L1D_REFILL in events(row) for row in timed)


def test_loads_without_a_stride_are_not_prefetched() -> None:
    parameters = core(prefetch_streams=4, **FLAT)
    timed = run_loop(INDEPENDENT_LOAD, [LINE * index * index for index in range(500)], parameters)
    assert all(Event.L1D_REFILL in events(row) for row in timed)


def code(lines: int, repetitions: int, parameters: Parameters, stride: int = LINE) -> NDArray[np.uint64]:
    """Return the dispatch cycles of the first instructions of `lines` lines, in a loop."""
    pcs = [stride * line + 0x1000 + 4 * word for line in range(lines) for word in range(2)] * repetitions
    operations = np.zeros(len(pcs), OPERATION)
    operations["pc"] = pcs
    return TimingModel(dict.fromkeys(pcs, INDEPENDENT), parameters).run(operations)["dispatch"]


def test_a_miss_of_the_instruction_cache_delays_dispatch() -> None:
    parameters = core(l1i_bytes=8 * LINE, l1i_ways=8)
    for lines, again in ((8, 1), (9, 1 + parameters.l2)):
        dispatch = code(lines, 2, parameters).reshape(2, lines, 2)
        assert (dispatch[:, :, 1] - dispatch[:, :, 0] == 1).all(), "the second instruction is in the same line"
        assert set(np.diff(dispatch[0, :, 0]).tolist()) == {2 + parameters.dram}
        assert set(np.diff(dispatch[1, :, 0]).tolist()) == {1 + again}
    assert set(np.diff(code(9, 2, core())).tolist()) == {1}


def test_a_miss_of_the_instruction_tlb_delays_dispatch() -> None:
    parameters = core(itlb_entries=4)
    first, second = code(5, 2, parameters, PAGE).reshape(2, 5, 2)
    assert set(np.diff(first[:, 0]).tolist()) == {2 + parameters.walk}
    assert set(np.diff(second[:, 0]).tolist()) == {2 + parameters.l2_tlb}


@pytest.mark.parametrize("taken", [0.5, 0.7, 0.95])
def test_random_branches_have_the_rate_of_a_two_bit_counter(taken: float) -> None:
    random, count = Random(f"{SEED} {taken}"), 20_000
    outcomes = [random.random() < taken for _ in range(count)]
    operations = np.zeros(count, OPERATION)
    operations["pc"] = 4
    operations["facts"] = [BRANCH.facts | FACT["taken"] * outcome for outcome in outcomes]
    timed = TimingModel({4: BRANCH}, core(predictor_bits=0)).run(operations)
    rate = (timed["events"] >> np.uint64(Event.MISPREDICTED) & np.uint64(1)).mean()
    # Stationary distribution of the counter: each state is `taken / (1 - taken)` times as likely as the one below it.
    weights = [(taken / (1 - taken)) ** state for state in range(4)]
    expected = (taken * sum(weights[:2]) + (1 - taken) * sum(weights[2:])) / sum(weights)
    # Outcomes of neighboring branches are correlated through the counter: twice the deviation of independent ones.
    assert abs(rate - expected) < 5 * 2 * sqrt(expected * (1 - expected) / count), f"seed {SEED}"


def test_loops_shorter_than_the_history_are_predicted() -> None:
    operations = np.zeros(4000, OPERATION)
    operations["pc"] = 4
    operations["facts"] = [BRANCH.facts | FACT["taken"] * (index % 10 != 9) for index in range(4000)]
    timed = TimingModel({4: BRANCH}, core(predictor_bits=12)).run(operations)
    mispredicted = timed["events"] >> np.uint64(Event.MISPREDICTED) & np.uint64(1)
    assert mispredicted[:1000].any() and not mispredicted[1000:].any()


@pytest.mark.parametrize("name", NAMED_CORES)
def test_named_cores_dispatch_no_more_than_their_width(name: str) -> None:
    parameters = read_core(name).for_lanes(8)
    timed = run_steps([(INDEPENDENT, 0)] * 400, parameters)
    cycles, counts = np.unique(timed["dispatch"], return_counts=True)
    assert counts.max() == parameters.ops_per_cycle
    assert all(later > earlier for earlier, later in pairwise(cycles))
    issued = np.unique(issues(timed), return_counts=True)[1].max()
    ports = parameters.ports.get(InstructionKind.INTEGER)
    assert issued <= (len(ports) if ports else 8)


def branches(outcomes: list[int], parameters: Parameters) -> NDArray[np.void]:
    """Return the timing of a loop of a load, a branch that waits for it, and one operation if it is not taken."""
    waiting = Instruction(InstructionKind.BRANCH, FACT["branch"] | FACT["conditional"], sources=(4,))
    code = {0x100: INDEPENDENT_LOAD, 0x104: waiting, **{0x108 + 4 * index: INDEPENDENT for index in range(40)}}
    steps: list[tuple[int, int, int, int, int]] = []
    for number, taken in enumerate(outcomes):
        steps.append((0x100, 0, LINE * number, FACT["load"] | FACT["va_valid"], 0))
        steps.append((0x104, 0x100 if taken else 0x108, 0, waiting.facts | FACT["taken"] * taken, 0))
        steps += [] if taken else [(0x108, 0, 0, 0, 0)]
    operations = np.array(steps, OPERATION)
    operations["facts"] |= FACT["retired"]
    timing_model = TimingModel(code, parameters)
    pieces = [timing_model.run(piece) for piece in np.array_split(operations, 3)]
    return np.concatenate(pieces)


@pytest.mark.parametrize(("width", "limit"), [(1, 7), (1, 40), (4, 25), (2, 1000)])
def test_operations_on_the_wrong_path_pass_until_the_branch_ends(width: int, limit: int) -> None:
    outcomes = [0, 0, 1, 1, 1, 0, 0, 0]
    changes = {"ops_per_cycle": width, "predictor_bits": 0, **FLAT}
    timed = branches(outcomes, core(wrong_path=limit, **changes))
    retired = timed["facts"] & FACT["retired"] != 0
    assert (timed[retired] == branches(outcomes, core(**changes))).all(), "the right path has the same timing"
    assert (np.diff(timed["dispatch"].astype(np.int64)) >= 0).all()
    assert np.unique(timed["dispatch"], return_counts=True)[1].max() <= width
    mispredicted = np.flatnonzero(timed["events"] >> np.uint64(Event.MISPREDICTED) & np.uint64(1))
    # The counter starts at 2. The first branch has not been taken before, so that its predicted target is not known.
    # The third and fourth branch are predicted not taken: at 0x108 are 40 instructions. The sixth and seventh are
    # predicted taken, to 0x100. The updated counter then predicts the branch taken after the sixth, and not taken after
    # the seventh.
    starts = (0, 0x108, 0x108, 0x100, 0x100)
    available = (0, 40, 40, limit, 42)
    assert len(mispredicted) == len(starts)
    ends = timed["dispatch"] + timed["finish"]
    for index, start, longest in zip(mispredicted, starts, available, strict=True):
        following = np.flatnonzero(retired[index + 1 :])
        wrong = timed[index + 1 : index + 1 + int(following[0])]
        assert (wrong["facts"] == 0).all() and (wrong["events"] == 0).all()
        # A flush ends them with the branch, and an operation takes at least two cycles.
        assert (wrong["dispatch"] + wrong["finish"] == np.maximum(ends[index], wrong["dispatch"] + 2)).all()
        cycles = int(ends[index] - timed["dispatch"][index]) - 1
        same_cycle = width - int((timed["dispatch"][: index + 1] == timed["dispatch"][index]).sum())
        expected = min(limit, cycles * width + same_cycle, longest)
        assert len(wrong) == expected
        assert wrong["pc"][:2].tolist() == ([start, start + 4] if expected else [])
