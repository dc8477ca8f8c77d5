# amaranth: UnusedElaboratable=no

"""Replay of an excerpt from block RAM: the board and the compiled SPU write the same records."""

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pytest
from amaranth import *
from amaranth.lib.wiring import connect
from amaranth.sim import Simulator
from numpy.typing import NDArray

from boards.replay import Replay
from boards.workload import CONSTANT_COLUMNS, excerpt, gaps, pack, repeat, workload_process
from spurtle.arch import PMBLIMITR_EL1, PMBPTR_EL1, PMBSR_EL1, PMSCR_EL1, PMSICR_EL1, PMSIRR_EL1, Register
from spurtle.config import CONFIGS, SPUConfig
from spurtle.gateware.spu import SPU
from spurtle.interface.sysreg import ACCESS_LATENCY
from spurtle_sim.cosim.pack import pe_members
from spurtle_sim.cosim.spu import CompiledSPU
from spurtle_sim.emulator.program import Program
from spurtle_sim.model.pe import PEState
from spurtle_sim.timing.core import read_core
from spurtle_sim.trace.dtypes import TIMED_OPERATION
from spurtle_sim.trace.instruction import FACT
from tests.support.seeds import SEED
from tests.support.tiers import tiers

LIMIT = 0xFFFF_0000_1000_1000
PE = PEState(contextidr_el1=0xBEEF)
EVENTS = ("pop", "feed", "filtrate", "collision", "buffer_full")


class ReplayBench:
    """SPU with the replay of an excerpt, and memory that accepts each beat immediately. The testbench is the driver."""

    def __init__(self, config: SPUConfig, rows: NDArray[np.void]):
        self.config = config
        self.spu = spu = SPU(config)
        self.replay = replay = Replay(config, rows)
        self.run = Signal()
        self.module = m = Module()
        m.submodules.spu, m.submodules.replay = spu, replay
        connect(m, replay.sampling, spu.sampling)
        connect(m, replay.in_flight, spu.in_flight)
        connect(m, replay.finish, spu.finish)
        state = {name: value for name, value in pe_members(config, PE).items() if name not in ("el", "physical_count")}
        m.d.comb += [
            replay.run.eq(self.run & ~spu.pmbirq),
            spu.pe.el.eq(replay.idle),
            spu.write.beat.ready.eq(1),
            *(getattr(spu.pe, name).eq(value) for name, value in state.items()),
        ]
        m.d.sync += [
            spu.pe.physical_count.eq(spu.pe.physical_count + replay.tick),
            spu.write.done.eq(spu.write.beat.valid & spu.write.beat.p.last),
        ]
        self.memory: dict[int, int] = {}
        self.counts = dict.fromkeys(EVENTS, 0)
        self.passed = 0

    async def cycle(self, ctx: Any) -> None:
        beat, pmu = self.spu.write.beat, self.spu.pmu
        _, _, written, payload, passes, *events = await ctx.tick().sample(
            beat.valid, beat.p, self.replay.sampling.valid, *(getattr(pmu, f"sample_{name}") for name in EVENTS)
        )
        for name, count in zip(EVENTS, events, strict=True):
            self.counts[name] += count
        self.passed += passes
        if written:
            octets = payload.data.to_bytes(self.config.bus_bytes, "little")
            self.memory |= {payload.address + n: octet for n, octet in enumerate(octets) if payload.strobe >> n & 1}

    async def access(self, ctx: Any, register: Register, value: int | None) -> int:
        port = self.spu.sysreg
        for name in ("op1", "crn", "crm", "op2"):
            ctx.set(getattr(port, name), getattr(register, name))
        ctx.set(port.valid, 1)
        ctx.set(port.write, value is not None)
        ctx.set(port.wdata, value or 0)
        await self.cycle(ctx)
        ctx.set(port.valid, 0)
        for _ in range(ACCESS_LATENCY - 1):
            await self.cycle(ctx)
        return ctx.get(port.rdata)

    async def settle(self, ctx: Any) -> None:
        """Wait until the program is idle, then drain the SPU."""
        while not ctx.get(self.replay.idle):
            await self.cycle(ctx)
        ctx.set(self.spu.drain.request, 1)
        while not ctx.get(self.spu.drain.done):
            await self.cycle(ctx)
        ctx.set(self.spu.drain.request, 0)


def start(base: int) -> list[tuple[Register, int]]:
    return [
        (PMBPTR_EL1, base),
        (PMBLIMITR_EL1, LIMIT | PMBLIMITR_EL1.pack(E=1)),
        (PMSIRR_EL1, PMSIRR_EL1.pack(INTERVAL=1)),
        (PMSICR_EL1, 0),
        (PMSCR_EL1, PMSCR_EL1.pack(E0SPE=1, CX=1, PA=1, TS=1)),
    ]


def on_board(
    config: SPUConfig, rows: NDArray[np.void], base: int, stops: Sequence[int]
) -> tuple[list[bytes], dict[str, int]]:
    """Return the content of the buffer each time it is full and at the end, and the counts of PMU events.

    The driver stops the program after each number of operations in `stops`.
    """
    board = ReplayBench(config, rows)
    buffers: list[bytes] = []

    async def read_buffer(ctx: Any) -> None:
        end = await board.access(ctx, PMBPTR_EL1, None)
        buffers.append(bytes(board.memory[address] for address in range(base, end)))

    async def software(ctx: Any) -> None:
        for register, value in start(base):
            await board.access(ctx, register, value)
        await board.cycle(ctx)  # Context synchronization: PMSCR_EL1 takes effect
        for stop in stops:
            ctx.set(board.run, 1)
            while board.passed < stop or ctx.get(board.spu.pmbirq):
                while board.passed < stop and not ctx.get(board.spu.pmbirq):
                    await board.cycle(ctx)
                if board.passed == stop:
                    ctx.set(board.run, 0)
                await board.settle(ctx)
                if ctx.get(board.spu.pmbirq):
                    await read_buffer(ctx)
                    await board.access(ctx, PMBPTR_EL1, base)
                    await board.access(ctx, PMBSR_EL1, 0)
        await read_buffer(ctx)

    simulator = Simulator(board.module)
    simulator.add_clock(1e-6)
    simulator.add_testbench(software)
    simulator.run()
    assert board.passed == stops[-1]
    return buffers, board.counts


def on_compiled_spu(
    config: SPUConfig, rows: NDArray[np.void], base: int, stops: Sequence[int]
) -> tuple[list[bytes], dict[str, int]]:
    """Return the same results from the compiled SPU.

    A stop delays the following rows, as an interrupt does. The compiled SPU has no such stop, so `rows` is changed.
    """
    spu = CompiledSPU(config)
    spu.set_buffer(base, LIMIT - base)
    spu.set_pe(PE)
    buffers: list[bytes] = []

    def read_buffer() -> None:
        buffers.append(spu.memory[: spu.read(PMBPTR_EL1) - base].tobytes())

    for register, value in start(base):
        spu.write(register, value)
    passed = 0
    for stop in stops:
        while passed < stop or spu.interrupt:
            passed += spu.play(rows[passed:stop], settle=True)
            spu.drain()
            if spu.interrupt:
                read_buffer()
                spu.write(PMBPTR_EL1, base)
                spu.write(PMBSR_EL1, 0)
        counts = spu.counts()
        program_time = counts["time"] - counts["delay"]
        rows["dispatch"][passed:] += np.uint64(max(0, program_time - int(rows["dispatch"][passed])))
    read_buffer()
    return buffers, {name: spu.counts()[name] for name in EVENTS}


@pytest.fixture(scope="module")
def excerpts() -> dict[str, NDArray[np.void]]:
    """Return the excerpts of the boards, by configuration."""
    return {name: excerpt(CONFIGS[name], rows) for name, rows in (("minimal", 256), ("neoverse_n1", 4096))}


def with_long_latencies(rows: NDArray[np.void], seed: int) -> NDArray[np.void]:
    """Return the same operations with random latencies.

    The latency of every fourth operation exceeds the sample interval of about 360 cycles, so that samples collide.
    """
    random = Random(seed)
    slow = rows.copy()
    for index, row in enumerate(slow):
        short = random.choice([2, random.randint(2, 20), random.randint(2, 600)])
        finish = short if index % 4 else random.randint(700, 1000)
        translate_from = random.randint(1, finish)
        row["issue"] = random.randint(1, finish - 1)
        row["finish"] = finish
        row["translate_from"] = translate_from
        row["translate_to"] = random.randint(translate_from, finish)
    slow["dispatch"] = np.cumsum([random.choice([1] * 20 + [2, 9]) for _ in slow])
    return slow


@pytest.mark.parametrize(
    ("name", "slow", "stops", "fills"),
    tiers(
        fast=[("minimal", False, (700, 701, 2900), 3)],
        full=[("neoverse_n1", False, (2000, 4500), 5), ("minimal", True, (300, 1000, 6000), 2)],
    ),
)
def test_records_equal_those_of_the_compiled_spu(
    excerpts: dict[str, NDArray[np.void]], name: str, slow: bool, stops: tuple[int, ...], fills: int
) -> None:
    config = CONFIGS[name]
    rows = with_long_latencies(excerpts[name][:64], seed=SEED) if slow else excerpts[name]
    assert stops[-1] > len(rows)
    base = LIMIT - 3 * config.max_record_bytes
    buffers, counts = on_board(config, rows, base, stops)
    expected, expected_counts = on_compiled_spu(config, repeat(rows, stops[-1] // len(rows) + 1), base, stops)
    assert [buffer.hex() for buffer in buffers] == [buffer.hex() for buffer in expected]
    assert counts == expected_counts
    assert counts["buffer_full"] >= fills
    assert bool(counts["collision"]) == slow


def test_time_stops_with_the_program(excerpts: dict[str, NDArray[np.void]]) -> None:
    rows = excerpts["minimal"][:16]
    dut = Replay(CONFIGS["minimal"], rows)
    finish = int(rows["finish"][0])
    #        run, sampled
    steps = [(0, 0), (1, 0), (0, 1), *[(0, 0)] * (finish + 4), (1, 0)]
    outputs: list[tuple[int, ...]] = []

    async def play(ctx: Any) -> None:
        for step in steps:
            for signal, value in zip((dut.run, dut.sampling.sampled), step, strict=True):
                ctx.set(signal, value)
            _, _, *values = await ctx.tick().sample(dut.sampling.valid, dut.finish.valid, dut.tick, dut.idle)
            outputs.append(tuple(values))

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(play)
    simulator.run()
    passed, finished, ticks, idle = ([cycle for cycle, row in enumerate(outputs) if row[column]] for column in range(4))
    assert passed == [1, len(steps) - 1]
    assert finished == [1 + finish]
    # One cycle more than an operation was in flight, as in CompiledSPU.play.
    assert ticks == [*range(1, finish + 3), len(steps) - 1]
    assert idle == [cycle for cycle in range(len(steps)) if cycle not in ticks]


@pytest.mark.parametrize("name", ["minimal", "neoverse_n1"])
def test_each_row_is_restored_from_its_word(excerpts: dict[str, NDArray[np.void]], name: str) -> None:
    rows = excerpts[name]
    packed = pack(CONFIGS[name], rows)
    absent = ("vectors",) if CONFIGS[name].data_source_bytes else ("data_source", "vectors")
    assert packed.fields.keys() == set(TIMED_OPERATION.names or ()) - {"dispatch", *absent}
    for row, word in zip(rows, packed.words, strict=True):
        columns = word << CONSTANT_COLUMNS | 0b10
        for field, numbers in packed.fields.items():
            assert sum((columns >> number & 1) << bit for bit, number in enumerate(numbers)) == row[field], field


def test_each_column_is_stored_once(excerpts: dict[str, NDArray[np.void]]) -> None:
    packed = pack(CONFIGS["minimal"], excerpts["minimal"])
    columns = [tuple(word >> column & 1 for word in packed.words) for column in range(packed.width)]
    assert len({*columns, (0,) * len(packed.words), (1,) * len(packed.words)}) == packed.width + CONSTANT_COLUMNS
    # Three iCE40 block RAMs of 16 bits.
    assert packed.width <= 48


def test_field_is_no_wider_than_its_port(excerpts: dict[str, NDArray[np.void]]) -> None:
    config = CONFIGS["minimal"]
    rows = excerpts["minimal"].copy()
    packed = pack(config, rows)
    rows["events"] |= np.arange(len(rows), dtype=np.uint64) << np.uint64(8 * config.events_bytes)
    assert pack(config, rows) == packed


@pytest.mark.parametrize("name", ["minimal", "neoverse_n1"])
def test_excerpt_is_a_contiguous_part_of_the_program(excerpts: dict[str, NDArray[np.void]], name: str) -> None:
    rows, owner = excerpts[name], workload_process()
    branches = rows["facts"] & FACT["branch"] != 0
    following = np.where(branches, rows["target"], rows["pc"] + np.uint64(4))
    assert np.array_equal(rows["pc"][1:], following[:-1])
    assert rows["dispatch"][0] == 0
    program = Program(owner.path)
    functions = Counter(program.symbol(int(pc)).split("+")[0] for pc in rows["pc"])
    assert functions.keys() == {"sift", "main"}
    assert functions["sift"] > functions["main"] > len(rows) // 20
    assert program.symbol(int(rows["pc"][0])) == "sift+0x0"
    assert owner.argv == (str(owner.path),)
    assert owner.mappings == program.image.mappings


def test_repeat_concatenates_passes(excerpts: dict[str, NDArray[np.void]]) -> None:
    rows = excerpts["minimal"]
    repeated = repeat(rows, 3)
    assert len(repeated) == 3 * len(rows)
    distances = np.diff(repeated["dispatch"])
    assert np.array_equal(np.append(distances, distances[len(rows) - 1]), np.tile(gaps(rows), 3))
    assert distances[len(rows) - 1] == read_core().parameters.redirect
    for name in {*(TIMED_OPERATION.names or ())} - {"dispatch"}:
        assert np.array_equal(repeated[name], np.tile(rows[name], 3))


def test_invalid_arguments_are_refused(excerpts: dict[str, NDArray[np.void]]) -> None:
    rows = excerpts["minimal"]
    with pytest.raises(ValueError, match=r"^ops_per_cycle, slots and answer_latency must be 1, not 8, 4 and "):
        Replay(CONFIGS["v1p4"], rows)
    with pytest.raises(ValueError, match=r"^the number of rows must be a power of two of at least 2, not 255$"):
        Replay(CONFIGS["minimal"], rows[:255])
