"""Tests of the Profiling Buffer with several outstanding records."""

from random import Random
from typing import Any

import pytest

from configurations import FOR_BLOCKS, OUTSTANDING
from spurtle.arch import FM, PMBLIMITR_EL1, PMBPTR_EL1, PMBSR_EL1, Register
from spurtle_sim.model.buffer import FaultKind
from tests.support.buffer_bench import BASE, FULL, PAGE, STOPPED, BufferBench, Driver, InjectedFault, enable
from tests.support.seeds import SEED
from tests.support.tiers import tiers

CONFIGURATIONS = {**FOR_BLOCKS, **OUTSTANDING}
LIMIT = BASE + 2 * PAGE


@pytest.fixture(
    scope="module",
    params=tiers(
        fast=["outstanding_packed", "outstanding_one_beat"],
        full=["v1p4", "outstanding_words"],
        # Records of `unnamed` have 27 beats.
        long=["unnamed", "unnamed_packed", *OUTSTANDING],
    ),
)
def bench(request: pytest.FixtureRequest) -> BufferBench:
    return BufferBench(CONFIGURATIONS[request.param])


def beats(bench: BufferBench) -> int:
    """Return the beats of a record that begins at the start of a word."""
    return bench.words(0, bench.record(0))


def gaps(driver: Driver) -> list[int]:
    """Return the number of cycles between each beat and the next one, less one."""
    return [after - before - 1 for before, after in zip(driver.transferred_at, driver.transferred_at[1:], strict=False)]


@pytest.mark.parametrize("late", [0, 3, 30])
def test_records_follow_each_other_without_a_gap(bench: BufferBench, late: int) -> None:
    """The number of outstanding records limits the rate at a longer latency alone.

    The records cross a page. Another record can begin two cycles after the answer to the oldest one.
    """
    hidden = (bench.config.outstanding - 1) * beats(bench) >= late + 2

    async def scenario(driver: Driver) -> None:
        await driver.start(BASE + PAGE - 3 * bench.required, BASE + 8 * PAGE)
        for number in range(12):
            driver.send(bench.record(number))
        await driver.settle()

    driver = bench.drive(scenario, late=late)
    assert len(driver.written) == 12
    assert (sum(gaps(driver)) == 0) == hidden


def test_at_most_two_records_wait_below_the_limit(bench: BufferBench) -> None:
    waits = set()
    for start in range(3 * bench.required, 4 * bench.required + 1, max(bench.align, bench.required // 8)):

        async def scenario(driver: Driver, start: int = start) -> None:
            await driver.start(LIMIT - start, LIMIT)
            for number in range(8):
                driver.send(bench.record(number))
            await driver.settle()
            assert driver.pmbsr == FULL

        driver = bench.drive(scenario)
        waited = [gap for gap in gaps(driver) if gap]
        assert waited in ([], [1], [1, 1])
        waits.add(len(waited))
    assert (max(waits) > 0) == bench.config.layout.packed


CHANGES: dict[str, dict[str, Any]] = {
    "disable": {"register": PMBLIMITR_EL1, "value": 0},
    "the same limit": {"register": PMBLIMITR_EL1, "value": enable(LIMIT)},
    "another limit": {"register": PMBLIMITR_EL1, "value": enable(BASE + PAGE)},
    "discard": {"register": PMBLIMITR_EL1, "value": enable(LIMIT, FM.DISCARD)},
    "another pointer": {"register": PMBPTR_EL1, "value": LIMIT - PAGE},
    "stop": {"register": PMBSR_EL1, "value": STOPPED},
    "a new owner": {"new_owner": True},
    "abort": {"abort": True},
}
SHORT = 9
"""Number of beats of all records up to which each cycle is tried in each tier."""
SOME_CYCLES = [(change, 8) for change in CHANGES]
EVERY_CYCLE = [(change, 1000) for change in CHANGES]


@pytest.mark.parametrize("stalls", tiers(fast=[[False]], full=[[False, True, True]]), ids=str)
@pytest.mark.parametrize(
    ("change", "at_most"), tiers(fast=[("another pointer", 8)], full=SOME_CYCLES, long=EVERY_CYCLE)
)
def test_a_change_in_any_cycle(bench: BufferBench, change: str, at_most: int, stalls: list[bool]) -> None:
    """`Driver` compares each cycle with the reference. All outstanding records are abandoned together.

    The full tier changes something in each cycle of short records, and the long tier also of others.
    """
    if change == "abort" and not bench.config.external_aborts:
        pytest.skip("no External aborts are reported")
    records = bench.config.outstanding + 1
    length = beats(bench) * records
    outcomes = set()

    end = (1 + len(stalls)) * length + 8
    for cycle in range(0, end, -(-end // at_most) if length > SHORT else 1):

        async def scenario(driver: Driver, cycle: int = cycle) -> None:
            await driver.start(BASE, LIMIT)
            for now in range(cycle + 2):
                if now == 2:
                    for number in range(records):
                        driver.send(bench.record(number))
                await driver.tick(**CHANGES[change] if now == cycle else {})
            abandoned = sum(not record.committing for record in driver.outstanding)
            assert abandoned in (0, len(driver.outstanding))
            outcomes.add(abandoned)
            await driver.settle()
            # The buffer continues at another pointer.
            await driver.write(PMBLIMITR_EL1, 0)
            await driver.write(PMBSR_EL1, 0)
            await driver.start(BASE + PAGE, LIMIT)
            driver.send(bench.record(9))
            await driver.settle()
            assert driver.pmbptr == BASE + PAGE + bench.size
            assert driver.memory.items() >= bench.octets(BASE + PAGE, bench.record(9)).items()

        bench.drive(scenario, stalls=stalls, late=len(stalls) * length)

    assert outcomes >= {0, bench.config.outstanding}


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("late", [0, 12])
def test_a_fault_of_each_outstanding_record(bench: BufferBench, late: int, eager: bool) -> None:
    """The pointer is precise, and nothing of a later record is written after the report.

    Memory that writes each word at once has written words of later records before it reports the fault.
    """
    config = bench.config
    count = config.outstanding + 2
    for faulting in range(count):
        for word in {0, beats(bench) - 1}:
            fault = InjectedFault(FaultKind.STAGE_2, word, 0b000101)
            # A later fault is not reported.
            later = InjectedFault(FaultKind.STAGE_1, 0, 0b000111)

            async def scenario(
                driver: Driver, faulting: int = faulting, fault: InjectedFault = fault, later: InjectedFault = later
            ) -> None:
                await driver.start(BASE, LIMIT)
                for number in range(count):
                    injected = fault if number == faulting else later if number > faulting else None
                    driver.send(bench.record(number), injected)
                await driver.settle()
                pointer = BASE + faulting * bench.size
                written = fault.fault(config, pointer).written
                assert driver.pmbptr == pointer + written
                assert driver.pmbsr == PMBSR_EL1.pack(S=1, DL=written > 0, EC=0x25, MSS=fault.fsc)
                expected: dict[int, int] = {}
                for number in range(faulting):
                    expected |= bench.octets(BASE + number * bench.size, bench.record(number))
                expected |= bench.octets(pointer, bench.record(faulting)[:written])
                in_memory = {at: octet for at, octet in driver.memory.items() if at < pointer + written}
                assert (in_memory if eager else driver.memory) == expected
                assert driver.full == 0

            bench.drive(scenario, late=late, eager=eager)


def test_discarded_records_report_only_external_aborts(bench: BufferBench) -> None:
    if not bench.config.external_aborts:
        pytest.skip("no External aborts are reported")
    faults = [InjectedFault(FaultKind.STAGE_2, 1), InjectedFault(FaultKind.STAGE_1, 0, 0b010000, external=True)]
    if beats(bench) == 1:
        faults[0] = InjectedFault(FaultKind.STAGE_2, 0)

    async def scenario(driver: Driver) -> None:
        await driver.start(BASE, LIMIT)
        for fault in faults:
            driver.send(bench.record(1), fault)
        await driver.settle()
        assert driver.pmbsr == PMBSR_EL1.pack(S=1, DL=beats(bench) > 1, EA=1, EC=0x25)

    bench.drive(scenario, late=2 * beats(bench) + 2)


@pytest.mark.parametrize("late", [0, 20])
@pytest.mark.parametrize("faulting", [None, 0, 1])
def test_full_is_reported_after_the_outstanding_records(bench: BufferBench, faulting: int | None, late: int) -> None:
    """The fault of a record comes before the full buffer. Records that wait are dropped in both cases."""
    fault = InjectedFault(FaultKind.STAGE_1, 0, 0b000101)

    async def scenario(driver: Driver) -> None:
        await driver.start(LIMIT - 2 * bench.required, LIMIT)
        for number in range(6):
            driver.send(bench.record(number)[: bench.align], fault if number == faulting else None)
        # Short records do not fill the buffer.
        await driver.settle()
        if faulting is not None:
            return
        assert driver.full == (bench.align == bench.required)

    driver = bench.drive(scenario, late=late)
    assert (driver.full == 0) == (faulting is not None or bench.align < bench.required)

    async def filled(driver: Driver) -> None:
        await driver.start(LIMIT - 2 * bench.required, LIMIT)
        for number in range(6):
            driver.send(bench.record(number), fault if number == faulting else None)
        await driver.settle()

    driver = bench.drive(filled, late=late)
    assert driver.full == (faulting is None)
    syndrome = FULL if faulting is None else PMBSR_EL1.pack(S=1, EC=0x24, MSS=fault.fsc)
    assert driver.pmbsr == syndrome
    assert driver.idle


@pytest.mark.parametrize("seed", tiers(fast=range(1), full=range(8)))
def test_all_events_with_outstanding_records(bench: BufferBench, seed: int) -> None:
    """`Driver` compares each cycle with the reference."""
    random = Random(f"{SEED} {seed}")
    config = bench.config

    def random_fault(record: bytes) -> InjectedFault | None:
        if random.random() < 0.9:
            return None
        return InjectedFault(
            random.choice(bench.kinds),
            random.randrange(bench.words(0, record)),
            random.randrange(64),
            config.external_aborts and random.random() < 0.5,
        )

    def software() -> tuple[Register | None, int]:
        page = BASE + PAGE * random.randrange(4)
        pointer = page + PAGE - bench.required * random.randrange(1, 6)
        limit = enable(BASE + 4 * PAGE, random.choice([FM.FILL, FM.FILL, FM.FILL, FM.DISCARD]))
        return random.choice(
            [(PMBSR_EL1, 0), (PMBSR_EL1, 0), (PMBPTR_EL1, pointer), (PMBLIMITR_EL1, limit), (PMBLIMITR_EL1, 0)]
        )

    async def scenario(driver: Driver) -> None:
        await driver.start(BASE, BASE + 4 * PAGE)
        for number in range(25):
            for _ in range(random.randrange(4)):
                record = bench.record(number)[: bench.align * random.randint(1, bench.size // bench.align)]
                driver.send(record, random_fault(record))
            for _ in range(random.randrange(3 * beats(bench) + 12)):
                await driver.tick(abort=config.external_aborts and random.random() < 0.002)
            register, value = software() if random.random() < 0.4 else (None, 0)
            await driver.tick(register, value, new_owner=random.random() < 0.05)
        await driver.settle()
        assert driver.written

    stalls = [random.random() < 0.3 for _ in range(7)] + [False]
    bench.drive(scenario, stalls=stalls, late=random.choice([0, 3, 15]), eager=random.random() < 0.5)
