# amaranth: UnusedElaboratable=no

"""Tests of the RVFI adapter with the SPU, on a model of a core with interrupts in each cycle and mode changes."""

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from itertools import pairwise, product
from random import Random
from typing import Any, NamedTuple

import pytest
from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from spurtle.arch import PMBLIMITR_EL1, PMBPTR_EL1, PMSCR_EL1, PMSICR_EL1, PMSIRR_EL1, CounterIndex, Event, Register
from spurtle.config import CONFIGS
from spurtle.gateware.spu import SPU
from spurtle.interface.sysreg import ACCESS_LATENCY, SystemRegisterSignature
from spurtle.shell.rvfi import RVFI, PrivilegeMode, RVFIAdapter
from spurtle_sim.records.decode import decode_records
from tests.support.gateware import Bench, cycle
from tests.support.rvfi_core import CoreModel, Cycle
from tests.support.seeds import SEED
from tests.support.tiers import tiers

CONFIG = CONFIGS["minimal"]
BUFFER, LIMIT = 0x10_0000, 0x20_0000
LEVELS = {PrivilegeMode.USER: 0, PrivilegeMode.MACHINE: 1}
"""The Exception level of each privilege mode. This configuration does not have EL3."""

PROFILED = {"user mode": [PrivilegeMode.USER], "both modes": [PrivilegeMode.USER, PrivilegeMode.MACHINE]}
MIN_DISTANCE = 20
"""Minimum cycles from one sampled operation to the next, after which the slot is free again."""

DELAY = ACCESS_LATENCY
"""Cycles from an MSR of PMSICR_EL1 to the first operation that is counted."""

DRAIN = 100
"""Cycles after the last sampled operation, in which it finishes and its record is written."""


class Rig(wiring.Component):
    """The SPU, the adapter and memory that is always ready. The timestamp is the number of the cycle."""

    rvfi: In(RVFI())
    mode: In(2)
    run: In(1)
    sysreg: In(SystemRegisterSignature())
    sampled: Out(1)
    beat: Out(1)
    address: Out(64)
    data: Out(64)
    time_: Out(64)

    def elaborate(self, platform):
        m = Module()

        m.submodules.spu = spu = SPU(CONFIG)
        m.submodules.adapter = adapter = RVFIAdapter(CONFIG)
        for name in ("sampling", "in_flight", "finish"):
            connect(m, getattr(adapter, name), getattr(spu, name))
        connect(m, flipped(self.rvfi), adapter.rvfi)
        connect(m, flipped(self.sysreg), spu.sysreg)
        m.d.comb += [
            adapter.mode.eq(self.mode),
            adapter.el.eq(spu.pe.el),
            adapter.run.eq(self.run),
            spu.pe.el.eq(
                Mux(self.mode == PrivilegeMode.USER, LEVELS[PrivilegeMode.USER], LEVELS[PrivilegeMode.MACHINE])
            ),
            spu.pe.ns.eq(1),
            spu.pe.count_enabled.eq(1),
            spu.pe.physical_count.eq(self.time_),
            spu.write.beat.ready.eq(1),
            self.sampled.eq(spu.sampling.sampled),
            self.beat.eq(spu.write.beat.valid),
            self.address.eq(spu.write.beat.p.address),
            self.data.eq(spu.write.beat.p.data),
        ]
        m.d.sync += [
            self.time_.eq(self.time_ + 1),
            spu.write.done.eq(spu.write.beat.valid & spu.write.beat.p.last),
        ]

        return m


class Summary(NamedTuple):
    """The content of the record of an operation that retired (E[1]).

    Members
    -------
    time, total : int
        The cycle in which it started, and its total latency.
    pc, level : int
        Address and Exception level.
    exception : bool
        Whether it generated an exception (E[0]).
    target, target_level : int or None
        Address and Exception level of the target of a branch.
    """

    time: int
    total: int
    pc: int
    level: int
    exception: bool = False
    target: int | None = None
    target_level: int | None = None


SETUP = 5
"""Cycles before the first cycle of the core."""

RIG = Rig()


@cache
def bench() -> Bench:
    return Bench(RIG)


def access(register: Register, value: int) -> list[tuple[Any, int]]:
    """Return the inputs for an MSR."""
    return [
        (RIG.sysreg.valid, 1),
        (RIG.sysreg.write, 1),
        *((getattr(RIG.sysreg, name), getattr(register, name)) for name in ("op1", "crn", "crm", "op2")),
        (RIG.sysreg.wdata, value),
    ]


def choose(cycles: Sequence[Cycle], modes: Collection[PrivilegeMode], random: Random) -> dict[int, int]:
    """Return the values that software writes to PMSICR_EL1.COUNT, by cycle.

    Software writes in machine mode. The values are chosen so that most of the sampled instructions are interrupted.
    """
    counts: dict[int, int] = {}
    retirements = [(number, now, row) for number, now in enumerate(cycles) for row in now.retired]
    last = 0
    for (number, now, _), (_, _, following) in pairwise(retirements):
        if (
            now.mode not in modes
            or number < last + MIN_DISTANCE
            or random.random() > (0.8 if following.flushed else 0.3)
        ):
            continue
        writes = (write for write in range(number - DELAY, last, -1) if cycles[write].mode == PrivilegeMode.MACHINE)
        if write := next(writes, None):
            started = cycles[write + DELAY : number + 1]
            counts[write] = sum(len(other.retired) for other in started if other.mode in modes)
            last = number
    return counts


def play(cycles: Sequence[Cycle], enabled: Mapping[str, int], counts: Mapping[int, int]) -> tuple[list[int], bytes]:
    """Profile the core. Return the cycles in which sampled operations started, and the content of the buffer.

    Parameters
    ----------
    cycles : sequence of Cycle
    enabled : mapping of str to int
        Fields of PMSCR_EL1.
    counts : mapping of int to int
        Values that are written to PMSICR_EL1.COUNT, by cycle.
    """

    async def scenario(ctx: Any) -> tuple[list[int], bytes]:
        started: list[int] = []
        memory: dict[int, int] = {}

        async def step(inputs: Sequence[tuple[Any, int]]) -> None:
            time, sampled, beat, address, data = await cycle(
                ctx, inputs, RIG.time_, RIG.sampled, RIG.beat, RIG.address, RIG.data
            )
            if sampled:
                started.append(time - SETUP - 1)
            if beat:
                memory[address] = data

        await step([(RIG.mode, PrivilegeMode.MACHINE)])
        for register, value in (
            (PMBPTR_EL1, BUFFER),
            (PMBLIMITR_EL1, LIMIT | PMBLIMITR_EL1.pack(E=1)),
            (PMSIRR_EL1, PMSIRR_EL1.pack(INTERVAL=1)),
            (PMSCR_EL1, PMSCR_EL1.pack(TS=1, **enabled)),
        ):
            await step(access(register, value))
        for number, now in enumerate(cycles):
            inputs: list[tuple[Any, int]] = [(RIG.mode, now.mode), (RIG.run, number < len(cycles) - DRAIN)]
            inputs += [(RIG.rvfi.valid, len(now.retired)), (RIG.sysreg.valid, 0)]
            inputs += [(getattr(RIG.rvfi, name), value) for row in now.retired for name, value in row.rvfi.items()]
            if number in counts:
                inputs += access(PMSICR_EL1, PMSICR_EL1.pack(COUNT=counts[number]))
            await step(inputs)
        return started, b"".join(memory[address].to_bytes(8, "little") for address in sorted(memory))

    return bench().run(scenario)


def expected_summaries(cycles: Sequence[Cycle], started: Sequence[int]) -> list[Summary | None]:
    """Return the expected record of each operation that started in these cycles, from the trace of the core.

    It is None if the operation is interrupted, or if `Cycle.mode` was not its mode when it started. The target of an
    MRET is in the mode of the cycle that reports it.
    """
    records: list[Summary | None] = []
    for time in started:
        end = next(end for end in range(time + 1, len(cycles)) if cycles[end].retired)
        (retirement,) = cycles[end].retired
        rvfi = retirement.rvfi
        if retirement.flushed or rvfi["mode"] != cycles[time].mode:
            records.append(None)
        else:
            level = LEVELS[PrivilegeMode(rvfi["mode"])]
            summary = Summary(time, end - time, rvfi["pc_rdata"], level, exception=bool(rvfi["trap"]))
            if retirement.branch:
                after = LEVELS[cycles[end].mode] if retirement.exception_return else level
                summary = summary._replace(target=rvfi["pc_wdata"], target_level=after)
            records.append(summary)
    return records


def decoded_summaries(buffer: bytes) -> list[Summary]:
    """Return the content of each record."""
    records: list[Summary] = []
    for record in decode_records(buffer):
        assert record.timestamp is not None and record.pc and not record.problems
        assert record.events is not None and record.events >> Event.RETIRED & 1
        summary = Summary(
            time=record.timestamp - SETUP,
            total=record.counters[CounterIndex.TOTAL],
            pc=record.pc.address,
            level=record.pc.el,
            exception=bool(record.events >> Event.GENERATED_EXCEPTION & 1),
        )
        if record.target:
            summary = summary._replace(target=record.target.address, target_level=record.target.el)
        records.append(summary)
    return records


@pytest.mark.parametrize(
    ("profiled", "lag", "reports_traps", "seed"),
    tiers(
        fast=[("user mode", 2, True, 0), ("both modes", 0, True, 0)],
        full=product(PROFILED, range(3), (False, True), range(1)),
        long=product(PROFILED, range(3), (False, True), range(10)),
    ),
)
def test_only_what_retires_as_it_began_is_recorded(profiled: str, lag: int, reports_traps: bool, seed: int) -> None:
    random = Random(f"{SEED} {profiled} {lag} {reports_traps} {seed}")
    cycles = CoreModel(random, lag=lag, reports_traps=reports_traps).run()
    modes = PROFILED[profiled]
    enabled = {f"E{LEVELS[mode]}SPE": 1 for mode in modes}
    started, buffer = play(cycles, enabled, choose(cycles, modes, random))
    summaries = expected_summaries(cycles, started)
    assert decoded_summaries(buffer) == [record for record in summaries if record]
    assert {record.level for record in summaries if record} == {LEVELS[mode] for mode in modes}
    assert None in summaries and any(summaries)
