"""Tests of the SPU in Amaranth's simulator: a record from end to end, draining, and stopping in any cycle.

tests/system/test_cocotb.py and tests/cosim/test_spu.py test its Verilog with thousands of operations.
"""

from collections.abc import Callable, Mapping
from itertools import product
from random import Random
from typing import Any

import pytest
from amaranth.hdl import Const

from spurtle.arch import (
    FM,
    PMBLIMITR_EL1,
    PMBPTR_EL1,
    PMBSR_EL1,
    PMSCR_EL1,
    PMSFCR_EL1,
    PMSICR_EL1,
    PMSIRR_EL1,
    PMSLATFR_EL1,
    Register,
)
from spurtle.config import CONFIGS, SPUConfig
from spurtle.gateware.spu import SPU
from spurtle.interface.sysreg import ACCESS_LATENCY, AccessOutcome
from spurtle_sim.cosim.pack import operation_bits
from spurtle_sim.model import control, filtering, records
from spurtle_sim.model.operation import Facts, Operation, Sample, Start
from spurtle_sim.model.pe import PEState
from spurtle_sim.model.spu import ReferenceSPU
from tests.support.gateware import Bench, cycle
from tests.support.seeds import SEED
from tests.support.tiers import tiers

BASE = 0x40_0000
LIMIT = BASE + 0x1000
ENABLE = PMBLIMITR_EL1.pack(E=1, LIMIT=LIMIT >> 12)
LOAD = Operation(facts=Facts(load=1, retired=1, va_valid=1), events=1 << 2, pc=0x1234, va=0x5678)
SETTINGS = (
    (PMSCR_EL1, PMSCR_EL1.pack(E0SPE=1, TS=1, CX=1)),
    (PMSIRR_EL1, PMSIRR_EL1.pack(INTERVAL=1)),
    (PMSICR_EL1, PMSICR_EL1.pack(COUNT=1)),  # the next operation is selected
    (PMBPTR_EL1, BASE),
    (PMBLIMITR_EL1, ENABLE),
)


EL1_OWNS = {"mdcr_el2_e2pb": 0b11, "mdcr_el3_nspb": 0b11}
SECURE_OWNS = EL1_OWNS | {"mdcr_el3_nspb": 0b01}


class Driver:
    """The core, software at EL1 and memory.

    Memory reports `done` `late` cycles after the earliest possible cycle. Operations pass in the last lane, and finish
    in the slot of the last answer.
    """

    def __init__(self, ctx: Any, dut: SPU, config: SPUConfig, late: int):
        self._ctx, self._dut, self._late = ctx, dut, late
        self.config = config
        self._lane = config.ops_per_cycle - 1
        self._responses: list[int] = []
        self._slot = 0
        self.now = 0
        self.memory: dict[int, int] = {}  # byte by byte
        self.done_in: list[int] = []
        events = ("pop", "feed", "filtrate", "collision", "buffer_full")
        self.pmu = dict.fromkeys((*events, *(f"feed_{event}" for event in config.feed_events)), 0)

    async def tick(
        self, *, valid: bool = False, finish: Operation | None = None, write: tuple[Register, int] | None = None,
        read: Register | None = None, drain: bool = False, owner: Mapping[str, int] | None = None,
    ) -> tuple[int, int]:  # fmt: skip
        """Advance by one cycle. Return whether an operation is sampled, and `drain.done`. The default owner is EL1."""
        dut, config = self._dut, self.config
        several = config.slots > 1
        register, value = write or (read, 0)
        if done := self.now in self._responses:
            self.done_in.append(self.now)
        inputs = [
            (dut.pe.el, 0 if register is None else 1),
            (dut.pe.ns, 1),
            (dut.pe.contextidr_el1, 77),
            (dut.pe.physical_count, self.now),
            (dut.pe.count_enabled, 1),
            *((getattr(dut.pe, name), value) for name, value in (owner or EL1_OWNS).items() if hasattr(dut.pe, name)),
            (dut.sampling.valid, valid << self._lane),
            (dut.finish.valid, finish is not None),
            (dut.finish.operation.as_value(), operation_bits(config, finish) if finish else 0),
            *([(dut.finish.slot, self._slot)] if several else []),
            (dut.drain.request, drain),
            (dut.write.beat.ready, 1),
            (dut.write.done, done),
            (dut.sysreg.valid, register is not None),
            (dut.sysreg.write, write is not None),
            (dut.sysreg.wdata, value),
        ]
        if register is not None:
            inputs += [(getattr(dut.sysreg, name), getattr(register, name)) for name in ("op1", "crn", "crm", "op2")]
        strobes = [getattr(dut.pmu, f"sample_{name}") for name in self.pmu]
        beat = dut.write.beat
        sampled, slot, drained, beat_valid, address, data, strobe, last, *pmu = await cycle(
            self._ctx,
            inputs,
            dut.sampling.sampled,
            dut.sampling.slot[self._lane] if several else Const(0),
            dut.drain.done,
            beat.valid,
            beat.p.address,
            beat.p.data,
            beat.p.strobe,
            beat.p.last,
            *strobes,
        )
        assert sampled & ~(1 << self._lane) == 0
        if sampled:
            self._slot = slot
        if beat_valid:
            octets = data.to_bytes(config.bus_bytes, "little")
            self.memory |= {address + number: octets[number] for number in range(len(octets)) if strobe >> number & 1}
            if last:
                self._responses.append(self.now + 1 + self._late)
        for name, strobe in zip(self.pmu, pmu, strict=True):
            self.pmu[name] += strobe
        self.now += 1
        return sampled != 0, drained

    async def sample(self) -> None:
        """Let an operation pass, and wait until it is sampled. It may finish in the next cycle."""
        assert not (await self.tick(valid=True))[0]
        for _ in range(self.config.answer_latency - 1):
            assert not (await self.tick())[0]
        assert (await self.tick())[0]

    async def read(self, register: Register) -> int:
        await self.tick(read=register)
        for _ in range(ACCESS_LATENCY - 1):
            await self.tick()
        assert self._ctx.get(self._dut.sysreg.outcome) == AccessOutcome.VALUE
        return self._ctx.get(self._dut.sysreg.rdata)

    async def set_up(self) -> None:
        for setting in SETTINGS:
            await self.tick(write=setting)
        await self.settle()

    async def settle(self) -> None:
        """Wait until the buffer has determined whether a record fits, and has reported it."""
        for _ in range(16):
            await self.tick()

    @property
    def has_freeze(self) -> bool:
        return hasattr(self._dut.pmu, "freeze")

    @property
    def frozen(self) -> int:
        return self._ctx.get(self._dut.pmu.freeze)

    @property
    def record_bytes(self) -> int:
        """Size of the record of `LOAD`."""
        sample = Sample(start=Start(contextidr_el1=77, timestamp=0), operation=LOAD)
        return len(records.encode(self.config, sample))


@pytest.fixture(scope="module", params=tiers(fast=["minimal"], full=["v1p4"], long=["kunpeng_920", "arm_model"]))
def run(request: pytest.FixtureRequest) -> Callable[..., None]:
    config = CONFIGS[request.param]
    dut = SPU(config)
    bench = Bench(dut)

    def run(scenario: Callable[[Driver], Any], late: int = 0) -> None:
        bench.run(lambda ctx: scenario(Driver(ctx, dut, config, late)))

    return run


def test_a_record_from_end_to_end(run: Callable[..., None]) -> None:
    async def scenario(driver: Driver) -> None:
        reference = ReferenceSPU(driver.config)
        for register, value in SETTINGS:
            reference.write(register, value)
        await driver.set_up()
        pe = PEState(contextidr_el1=77, physical_count=driver.now)
        assert reference.pass_operation(pe)
        await driver.sample()
        await driver.tick(finish=LOAD)
        drained = 0
        for _ in range(30):
            _, drained = await driver.tick(drain=True)
            if drained:
                break
        assert drained
        record = reference.finish(reference.start(pe), LOAD, total=2, issue=2, translation=0)
        assert record
        assert driver.memory == {BASE + at: octet for at, octet in enumerate(record)}
        assert await driver.read(PMBPTR_EL1) == BASE + len(record)
        assert await driver.read(PMSICR_EL1) == 0
        # Filter registers of zero let samples pass, but they select no type.
        ones = dict.fromkeys(("pop", "feed", "feed_ld", "feed_event", "feed_lat", "filtrate"), 1)
        assert driver.pmu == dict.fromkeys(driver.pmu, 0) | ones

    run(scenario)


@pytest.mark.parametrize("late", [0, 1, 20])
def test_drain_is_done_when_the_status_is_up_to_date(run: Callable[..., None], late: int) -> None:
    """No further record fits. Software reads PMBSR_EL1 in the cycle after PSB CSYNC is done."""

    async def scenario(driver: Driver) -> None:
        await driver.set_up()
        pointer = LIMIT - driver.config.max_record_bytes
        await driver.tick(write=(PMBPTR_EL1, pointer))
        await driver.sample()
        await driver.tick(finish=LOAD)
        for _ in range(60):
            _, drained = await driver.tick(drain=True)
            if drained:
                break
        assert drained
        assert await driver.read(PMBSR_EL1) == PMBSR_EL1.pack(S=1, MSS=1)
        assert await driver.read(PMBPTR_EL1) == pointer + driver.record_bytes

    run(scenario, late)


@pytest.mark.parametrize("late", [0, 20])
def test_drain_is_done_when_the_record_is_in_memory(run: Callable[..., None], late: int) -> None:
    async def scenario(driver: Driver) -> None:
        await driver.set_up()
        assert await driver.tick(drain=True) == (0, 1), "nothing to wait for"
        assert await driver.tick(drain=False) == (0, 0), "done is asserted only with a request"
        await driver.sample()
        assert await driver.tick(drain=True) == (0, 1), "a drain does not wait for an operation in flight"
        await driver.tick(finish=LOAD)
        for _ in range(60):
            now = driver.now
            _, done = await driver.tick(drain=True)
            assert done == (driver.done_in != [] and now > driver.done_in[0] + 1), now
        assert driver.done_in

    run(scenario, late=late)


# Two operations. The second finishes while the record of the first is being written.
OPERATIONS = (10, 28)
RELOAD = 22


@pytest.mark.parametrize("late", tiers(fast=[0], full=[8], long=[30]))
def test_a_record_is_discarded_if_the_buffer_did_not_run_for_one_cycle(run: Callable[..., None], late: int) -> None:
    """The buffer is disabled for one cycle. Only records that are not in memory by then are lost."""
    committed_counts = set()

    for disabled in range(OPERATIONS[0] - ACCESS_LATENCY - 1, 52 + late):
        stopped = disabled + ACCESS_LATENCY
        # An access takes a cycle of the program, and no operation passes while profiling is disabled.
        if {disabled, disabled + 1} & {RELOAD, *OPERATIONS} or stopped in OPERATIONS:
            continue

        async def scenario(driver: Driver, disabled: int = disabled, stopped: int = stopped) -> None:
            await driver.set_up()
            begin = driver.now
            latency = driver.config.answer_latency
            while driver.now < begin + 60 + 2 * late:
                at = driver.now - begin
                write = {
                    disabled: (PMBLIMITR_EL1, 0),
                    disabled + 1: (PMBLIMITR_EL1, ENABLE),
                    RELOAD: (PMSICR_EL1, 1),
                }.get(at)
                finish = LOAD if at - latency - 1 in OPERATIONS else None
                sampled, _ = await driver.tick(valid=at in OPERATIONS, finish=finish, write=write)
                assert sampled == (at - latency in OPERATIONS)
            # The write stops the buffer for one cycle. In the cycle before that it abandons the records that memory has
            # not answered.
            later = [passes > stopped for passes in OPERATIONS]
            reached = [response < begin + stopped - 1 for response in driver.done_in[:2]]
            committed = sum(before or after for before, after in zip([*reached, False, False], later, strict=False))
            assert await driver.read(PMBPTR_EL1) == BASE + committed * driver.record_bytes, disabled
            committed_counts.add(committed)

        run(scenario, late=late)

    # With a slow memory, or a record of many beats, the second operation is sampled before memory has the first record.
    assert {1, 2} <= committed_counts <= {0, 1, 2}
    assert 0 in committed_counts or not late


def test_a_record_is_discarded_if_the_owner_of_the_buffer_changes(run: Callable[..., None]) -> None:
    """The owner changes for one cycle. Only a record that is not in memory by then is lost."""
    outcomes = set()

    for changed in range(OPERATIONS[0] - 4, 45):

        async def scenario(driver: Driver, changed: int = changed) -> None:
            if not driver.config.el3:  # the owner cannot change
                return
            await driver.set_up()
            begin = driver.now
            for at in range(60):
                finish = LOAD if at - driver.config.answer_latency - 1 == OPERATIONS[0] else None
                owner = SECURE_OWNS if at == changed else None
                await driver.tick(valid=at == OPERATIONS[0], finish=finish, owner=owner)
            # The owner changes twice. The buffer does not run in the cycle after each change.
            reached = any(response < begin + changed for response in driver.done_in)
            committed = OPERATIONS[0] > changed + 2 or reached
            assert await driver.read(PMBPTR_EL1) == BASE + committed * driver.record_bytes, changed
            outcomes.add(committed)

        run(scenario)

    assert outcomes in ({False, True}, set())


def test_discard_mode(run: Callable[..., None]) -> None:
    """No record is written, and the buffer is not full, although no record fits at the pointer (D17.5.5)."""

    async def scenario(driver: Driver) -> None:
        await driver.set_up()
        await driver.tick(write=(PMBLIMITR_EL1, ENABLE | PMBLIMITR_EL1.pack(FM=FM.DISCARD)))
        await driver.tick(write=(PMBPTR_EL1, LIMIT + 1))
        await driver.settle()
        if not driver.config.discard_mode:
            assert driver.pmu["buffer_full"] == 1
            return
        await driver.sample()
        await driver.tick(finish=LOAD)
        drained = 0
        for _ in range(30):
            _, drained = await driver.tick(drain=True)
        assert drained
        assert driver.memory == {}
        assert await driver.read(PMBPTR_EL1) == LIMIT + 1
        assert await driver.read(PMBSR_EL1) == 0
        assert (driver.pmu["pop"], driver.pmu["feed"], driver.pmu["filtrate"]) == (1, 1, 1)
        assert driver.pmu["buffer_full"] == 0
        # It is full when Discard mode ends.
        await driver.tick(write=(PMBLIMITR_EL1, ENABLE))
        await driver.settle()
        assert await driver.read(PMBSR_EL1) == PMBSR_EL1.pack(S=1, MSS=1)

    run(scenario)


def test_full_raises_the_interrupt_and_stops_the_counter(run: Callable[..., None]) -> None:
    async def scenario(driver: Driver) -> None:
        await driver.set_up()
        await driver.tick(write=(PMBPTR_EL1, LIMIT - driver.config.max_record_bytes))
        await driver.settle()
        await driver.sample()
        await driver.tick(finish=LOAD)
        for _ in range(30):
            await driver.tick()
        assert await driver.read(PMBSR_EL1) == PMBSR_EL1.pack(S=1, MSS=1)
        assert driver.pmu["buffer_full"] == 1
        count = await driver.read(PMSICR_EL1)
        for _ in range(10):
            await driver.tick(valid=True)
        assert await driver.read(PMSICR_EL1) == count
        assert driver.pmu["pop"] == 1

    run(scenario)


def test_each_bit_of_interval_reaches_the_counter(run: Callable[..., None]) -> None:
    """The first operation after PMSICR_EL1 = 0 loads COUNT with INTERVAL (D17.3.4)."""
    interval = PMSIRR_EL1.fields["INTERVAL"]
    number = Random(SEED).getrandbits(interval.width)

    async def scenario(driver: Driver) -> None:
        reference = ReferenceSPU(driver.config)
        await driver.set_up()
        for register, value in SETTINGS:
            reference.write(register, value)
        for value in (number, number ^ (1 << interval.width) - 1):
            for setting in ((PMSIRR_EL1, PMSIRR_EL1.pack(INTERVAL=value)), (PMSICR_EL1, 0)):
                reference.write(*setting)
                await driver.tick(write=setting)
            await driver.settle()
            assert not reference.pass_operation(PEState())
            await driver.tick(valid=True)
            await driver.settle()
            assert await driver.read(PMSICR_EL1) == reference.read(PMSICR_EL1)

    run(scenario)


def test_each_bit_of_minlat_reaches_the_filter(run: Callable[..., None]) -> None:
    """A latency below MINLAT is rejected, for each bit of MINLAT (D17.5.3)."""
    total = 2
    passes = dict.fromkeys(("feed_lat", "filtrate"), 0)

    async def scenario(driver: Driver) -> None:
        reference = ReferenceSPU(driver.config)
        await driver.set_up()
        for setting in (*SETTINGS, (PMSFCR_EL1, PMSFCR_EL1.pack(FL=1))):
            reference.write(*setting)
        await driver.tick(write=(PMSFCR_EL1, PMSFCR_EL1.pack(FL=1)))
        for bit in range(driver.config.counter_bits):
            setting = (PMSLATFR_EL1, PMSLATFR_EL1.pack(MINLAT=1 << bit))
            reference.write(*setting)
            await driver.tick(write=setting)
            await driver.tick(write=(PMSICR_EL1, PMSICR_EL1.pack(COUNT=1)))
            await driver.settle()
            await driver.sample()
            await driver.tick(finish=LOAD)
            for _ in range(6):
                await driver.tick()
            sample = Sample(start=Start(), operation=LOAD, total=total, issue=total)
            passes["feed_lat"] += filtering.feed(driver.config, reference.registers, sample)["lat"]
            passes["filtrate"] += filtering.collect(driver.config, reference.registers, sample)
            assert {name: driver.pmu[name] for name in passes} == passes, f"MINLAT[{bit}]"

    run(scenario)


def test_counters_are_frozen_while_an_enabled_buffer_is_stopped(run: Callable[..., None]) -> None:
    """PMBLIMITR_EL1.{PMFZ, E} = {1, 1} and PMBSR_EL1.S = 1 (D13.5 R_HSGZX). The port requires FEAT_SPEv1p2."""

    async def scenario(driver: Driver) -> None:
        assert driver.has_freeze == driver.config.discard_mode
        if not driver.has_freeze:
            return
        reference = ReferenceSPU(driver.config)
        for pmfz, e, s in product((0, 1), repeat=3):
            # Discard mode: the pointer, zero, does not stop the buffer.
            limit = PMBLIMITR_EL1.pack(PMFZ=pmfz, E=e, FM=FM.DISCARD)
            for setting in ((PMBLIMITR_EL1, 0), (PMBSR_EL1, PMBSR_EL1.pack(S=s)), (PMBLIMITR_EL1, limit)):
                reference.write(*setting)
                await driver.tick(write=setting)
            await driver.settle()
            assert driver.frozen == control.counters_frozen(reference.registers) == (pmfz and e and s)

    run(scenario)


def test_a_sample_before_the_buffer_is_known_to_be_full_is_discarded(run: Callable[..., None]) -> None:
    """An operation that is sampled while the last record is being written is counted, but has no record (D17.7)."""

    async def scenario(driver: Driver) -> None:
        await driver.set_up()
        # One record fits, and fills the buffer.
        first = LIMIT - driver.config.max_record_bytes
        await driver.tick(write=(PMBPTR_EL1, first))
        await driver.settle()
        await driver.sample()
        await driver.tick(finish=LOAD)
        await driver.tick(write=(PMSICR_EL1, PMSICR_EL1.pack(COUNT=1)))
        while not driver.memory:
            await driver.tick()
        await driver.settle()
        assert driver.done_in == [] and driver.pmu["buffer_full"] == 0
        await driver.sample()
        while not driver.pmu["buffer_full"]:
            await driver.tick()
        await driver.tick(finish=LOAD)
        written = dict(driver.memory)
        for _ in range(40):
            _, drained = await driver.tick(drain=True)
        assert drained and driver.memory == written
        assert await driver.read(PMBSR_EL1) == PMBSR_EL1.pack(S=1, MSS=1)
        assert await driver.read(PMBPTR_EL1) == first + driver.record_bytes
        counted = {name: driver.pmu[name] for name in ("pop", "feed", "filtrate", "buffer_full", "collision")}
        assert counted == {"pop": 2, "feed": 2, "filtrate": 2, "buffer_full": 1, "collision": 0}

    run(scenario, late=40)
