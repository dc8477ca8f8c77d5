"""Tests of the Profiling Buffer with accesses of software, faults and other events in any cycle around a record."""

from random import Random
from typing import Any

import pytest

from configurations import FOR_BLOCKS
from spurtle.arch import FM, PMBLIMITR_EL1, PMBPTR_EL1, PMBSR_EL1, Register
from spurtle_sim.model.buffer import FaultKind
from tests.support.buffer_bench import (
    ALL,
    BASE,
    FEW,
    FULL,
    PAGE,
    STOPPED,
    SYNDROME,
    BufferBench,
    Driver,
    InjectedFault,
    enable,
)
from tests.support.seeds import SEED
from tests.support.tiers import tiers


@pytest.fixture(scope="module", params=FEW)
def bench(request: pytest.FixtureRequest) -> BufferBench:
    return BufferBench(FOR_BLOCKS[request.param])


@pytest.fixture(scope="module", params=ALL)
def any_bench(request: pytest.FixtureRequest) -> BufferBench:
    return BufferBench(FOR_BLOCKS[request.param])


# Software writes in any cycle from before the record arrives until after the pointer has moved.
ARRIVES = 6
WRITES = range(ARRIVES - 3, ARRIVES + 32)
PACES = [{"late": 3}, {"stalls": (True, True, False), "late": 1}]


@pytest.mark.parametrize("pace", tiers(fast=PACES[-1:], long=PACES), ids=str)
def test_a_new_pointer_in_any_cycle(bench: BufferBench, pace: dict[str, Any]) -> None:
    new = BASE + PAGE
    outcomes = set()

    for write in WRITES:

        async def scenario(driver: Driver, write: int = write) -> None:
            await driver.start(BASE, BASE + 2 * PAGE)
            await driver.change_while_sending(bench.record(1), ARRIVES, write, register=PMBPTR_EL1, value=new)
            moved = driver.was_early
            assert driver.memory == bench.octets(new if moved else BASE, bench.record(1))
            assert driver.pmbptr == new + (bench.size if moved else 0)
            outcomes.add(moved)
            pointer = driver.pmbptr
            driver.send(bench.record(2))
            await driver.settle()
            assert driver.pmbptr == pointer + bench.size
            assert driver.memory.items() >= bench.octets(pointer, bench.record(2)).items()

        bench.drive(scenario, **pace)

    assert outcomes == {True, False}


HALTS = {
    "disable": (PMBLIMITR_EL1, 0, enable(BASE + 2 * PAGE)),
    "stop": (PMBSR_EL1, STOPPED, 0),
    "the same limit": (PMBLIMITR_EL1, enable(BASE + 2 * PAGE), enable(BASE + 2 * PAGE)),
    "discard": (PMBLIMITR_EL1, enable(BASE + 2 * PAGE, FM.DISCARD), enable(BASE + 2 * PAGE)),
    "a new owner": (None, 0, 0),
}


@pytest.mark.parametrize("pace", tiers(fast=PACES[-1:], long=PACES), ids=str)
@pytest.mark.parametrize("halt", tiers(fast=["disable", "a new owner"], full=HALTS))
def test_a_halt_in_any_cycle(bench: BufferBench, halt: str, pace: dict[str, Any]) -> None:
    register, off, on = HALTS[halt]
    drops = halt != "the same limit" and (halt != "discard" or bench.config.discard_mode)
    outcomes = set()

    for write in WRITES:

        async def scenario(driver: Driver, write: int = write) -> None:
            await driver.start(BASE, BASE + 2 * PAGE)
            change = {"register": register, "value": off} if register else {"new_owner": True}
            await driver.change_while_sending(bench.record(1), ARRIVES, write, **change)
            written = bool(driver.memory)
            assert driver.memory == (bench.octets(BASE, bench.record(1)) if written else {}), (
                "a record must be written completely or not at all"
            )
            committed = written and (driver.was_early or driver.was_late)
            assert driver.pmbptr == (BASE + bench.size if committed else BASE)
            outcomes.add((written, committed))
            pointer = driver.pmbptr
            if register:
                await driver.write(register, on)
            driver.send(bench.record(2))
            await driver.settle()
            assert driver.pmbptr == pointer + bench.size
            assert driver.memory.items() >= bench.octets(pointer, bench.record(2)).items()
            assert driver.full == 0

        bench.drive(scenario, **pace)

    assert outcomes >= {(True, False), (True, True)}
    assert ((False, False) in outcomes) == drops


CHANGES: dict[str, dict[str, Any]] = {
    "disable": {"register": PMBLIMITR_EL1, "value": 0},
    "the same limit": {"register": PMBLIMITR_EL1, "value": enable(BASE + 2 * PAGE)},
    "discard": {"register": PMBLIMITR_EL1, "value": enable(BASE + 2 * PAGE, FM.DISCARD)},
    "another pointer": {"register": PMBPTR_EL1, "value": BASE + PAGE},
    "stop": {"register": PMBSR_EL1, "value": PMBSR_EL1.pack(S=1, EC=0x1F, MSS=0x55)},
    "clear": {"register": PMBSR_EL1, "value": 0},
    "a new owner": {"new_owner": True},
    "collision": {"collision": True},
    "abort": {"abort": True},
}


HARMLESS = {"clear", "collision"}
"""Events that never prevent the report of a fault."""


def around(bench: BufferBench, pace: dict[str, Any], pointer: int = BASE) -> range:
    """Return the cycles from before the first beat of a record until after it is done, or the buffer is full."""

    async def scenario(driver: Driver) -> None:
        await driver.start(pointer, BASE + 2 * PAGE)
        nonlocal begin
        begin = driver.cycle
        await driver.change_while_sending(bench.record(1), ARRIVES, ARRIVES)

    begin = 0
    driver = bench.drive(scenario, **pace)
    return range(driver.first_beat_at - begin - 2, max(driver.done_at, driver.full_at) - begin + 4)


@pytest.mark.parametrize("change", tiers(fast=["stop", "collision"], full=CHANGES))
@pytest.mark.parametrize("pace", tiers(fast=PACES[-1:], long=PACES), ids=str)
def test_a_fault_and_another_event_in_any_cycle(bench: BufferBench, pace: dict[str, Any], change: str) -> None:
    """The fault is reported unless the event prevents it. `Driver` compares each cycle with the reference."""
    config = bench.config
    external = config.external_aborts
    if change == "abort" and not external:
        pytest.skip("no External aborts are reported")
    fault = InjectedFault(FaultKind.STAGE_2, 1, 0b010000 if external else 0b000101, external)
    status = PMBSR_EL1.pack(S=1, DL=1, EA=external, EC=0x25, MSS=fault.fsc)
    outcomes = set()

    for number in around(bench, pace):

        async def scenario(driver: Driver, number: int = number) -> None:
            await driver.start(BASE, BASE + 2 * PAGE)
            await driver.change_while_sending(bench.record(1), ARRIVES, number, fault, **CHANGES[change])
            statuses = {status & ~PMBSR_EL1.pack(COLL=1) for status in driver.statuses}
            outcomes.add(status in statuses)
            if external and driver.written:
                assert any(PMBSR_EL1.unpack(status).EA for status in statuses)
            # The pointer after the fault may not be aligned: the buffer is full when S is cleared.
            if change != "clear":
                assert driver.full == 0

        bench.drive(scenario, **pace)

    assert True in outcomes
    assert (False in outcomes) == (change not in HARMLESS)


@pytest.mark.parametrize("change", ["abort", "stop", "clear", "collision"])
def test_full_and_another_event_in_any_cycle(bench: BufferBench, change: str) -> None:
    """The first syndrome is not overwritten.

    A write of PMBSR_EL1 by software takes effect before the buffer full event, and an asynchronous External abort after
    it.
    """
    if change == "abort" and not bench.config.external_aborts:
        pytest.skip("no External aborts are reported")
    pointer = BASE + 2 * PAGE - bench.required
    syndromes = set()

    for number in around(bench, {}, pointer):

        async def scenario(driver: Driver, number: int = number) -> None:
            await driver.start(pointer, BASE + 2 * PAGE)
            begin = driver.cycle
            await driver.change_while_sending(bench.record(1), ARRIVES, number, **CHANGES[change])
            syndrome = driver.pmbsr & SYNDROME
            syndromes.add(syndrome)
            if change == "stop":
                assert syndrome == CHANGES[change]["value"]
            elif change == "abort":
                first = FULL if 0 <= driver.full_at <= begin + number else PMBSR_EL1.pack(S=1, EC=0x24, MSS=0b010001)
                assert driver.pmbsr == first | PMBSR_EL1.pack(EA=1, DL=1)
            else:
                assert driver.pmbsr == FULL | PMBSR_EL1.pack(COLL=change == "collision")

        bench.drive(scenario)

    assert len(syndromes) == 1 + (change == "abort")


@pytest.mark.parametrize("seed", tiers(fast=range(2), full=range(6)))
def test_all_events_in_any_cycle(any_bench: BufferBench, seed: int) -> None:
    """`Driver` compares each cycle with the reference."""
    random = Random(f"{SEED} {seed}")
    config = any_bench.config

    def chance(probability: float) -> bool:
        return random.random() < probability

    def random_fault(record: bytes) -> InjectedFault | None:
        if chance(0.6):
            return None
        return InjectedFault(
            random.choice(any_bench.kinds),
            random.randrange(any_bench.words(0, record)),
            random.randrange(64),
            config.external_aborts and chance(0.5),
            frozenset(flag for flag in config.fault_flags if chance(0.5)),
        )

    def software() -> tuple[Register | None, int]:
        page = BASE + PAGE * random.randrange(4)
        pointers = [page, page + PAGE - any_bench.required, page + any_bench.align * random.randrange(9), page + 1]
        return random.choice(
            [
                (PMBSR_EL1, 0),
                (PMBSR_EL1, 0),
                (PMBSR_EL1, random.getrandbits(64)),
                (PMBPTR_EL1, random.choice(pointers)),
                (PMBLIMITR_EL1, enable(BASE + 4 * PAGE)),
                (PMBLIMITR_EL1, enable(page, random.choice([*FM, 1]))),
                (PMBLIMITR_EL1, 0),
            ]
        )

    async def scenario(driver: Driver) -> None:
        await driver.start(BASE, BASE + 4 * PAGE)
        for number in range(400):
            if driver.idle and chance(0.2):
                record = any_bench.record(number)[
                    : any_bench.align * random.randint(1, any_bench.size // any_bench.align)
                ]
                driver.send(record, random_fault(record))
            register, value = software() if chance(0.04) else (None, 0)
            await driver.tick(
                register,
                value,
                collision=chance(0.02),
                abort=config.external_aborts and chance(0.01),
                new_owner=chance(0.005),
            )
        await driver.settle()
        assert driver.written

    any_bench.drive(scenario, stalls=[chance(0.3) for _ in range(7)] + [False], late=random.choice([0, 1, 4]))
