"""Tests of the Profiling Buffer, alone and against the reference `spurtle_sim.model.buffer.Buffer`."""

from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from configurations import FOR_BLOCKS
from spurtle.arch import FM, PMBLIMITR_EL1, PMBPTR_EL1, PMBSR_EL1, Register
from spurtle_sim.model.buffer import Buffer as ReferenceBuffer
from spurtle_sim.model.control import buffer_enabled, discard_mode
from spurtle_sim.model.registers import Registers
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
from tests.support.gateware import boundary_integers
from tests.support.tiers import tiers


@pytest.fixture(scope="module", params=FEW)
def bench(request: pytest.FixtureRequest) -> BufferBench:
    return BufferBench(FOR_BLOCKS[request.param])


@pytest.fixture(scope="module", params=ALL)
def any_bench(request: pytest.FixtureRequest) -> BufferBench:
    return BufferBench(FOR_BLOCKS[request.param])


@pytest.fixture(scope="module")
def discarding() -> BufferBench:
    return BufferBench(FOR_BLOCKS["v1p4"])


@pytest.mark.parametrize("limit", [BASE + PAGE, PAGE, 0xFFFF_FFFF_FFFF_F000])
def test_the_buffer_is_full_when_no_further_record_fits(bench: BufferBench, limit: int) -> None:
    pointer = limit - bench.required
    sticky = PMBSR_EL1.pack(EA=1, DL=1, COLL=1)

    async def scenario(driver: Driver) -> None:
        await driver.write(PMBSR_EL1, sticky | PMBSR_EL1.pack(EC=0x24, MSS=0x47))
        await driver.start(pointer, limit)
        assert (driver.full, driver.pmbsr & STOPPED) == (0, 0)
        driver.send(bench.record(1))
        driver.send(bench.record(2))
        await driver.settle()
        assert driver.pmbptr == pointer + bench.size
        assert driver.pmbsr == sticky | FULL
        assert driver.full == 1
        assert driver.memory == bench.octets(pointer, bench.record(1))

    bench.drive(scenario)


@pytest.mark.parametrize(
    ("pointer", "limit"),
    [(0, 0x8000_0000_0000 - PAGE), (0x3F_FFFF_FFC0, 0x40_0000_0000), (0x3F_FFFF_F000, 0x7F_FFFF_0000)],
)
def test_records_fit_far_below_the_limit(bench: BufferBench, pointer: int, limit: int) -> None:
    pointer &= -bench.required

    async def scenario(driver: Driver) -> None:
        await driver.start(pointer, limit)
        assert driver.full == 0
        driver.send(bench.record(1))
        await driver.settle()
        assert driver.pmbptr == pointer + bench.size

    bench.drive(scenario)


Pointer = int | Callable[[BufferBench], int]


def chosen(bench: BufferBench, pointer: Pointer) -> int:
    """Return the pointer of an entry of `BAD` for a configuration. Skip the test if it has none."""
    if isinstance(pointer, int):
        return pointer
    found = pointer(bench)
    if found % PAGE == 1 and bench.align == 1:
        pytest.skip("every address is aligned")
    return found


BAD: dict[str, tuple[Pointer, int]] = {
    "at the limit": (BASE, BASE),
    "beyond the limit": (BASE + PAGE, BASE),
    "one aligned address too far": (lambda bench: BASE - bench.required + bench.align, BASE),
    "not aligned": (lambda bench: BASE - PAGE + max(bench.align // 2, 1), BASE),
    "another top byte": (0x01_0000_0000_0000_00 | BASE - PAGE, BASE),
    "another top byte of the limit": (BASE - PAGE, 0x8000_0000_0000_0000 | BASE),
    "far beyond the limit": (BASE - PAGE | 1 << 50, BASE),
    "limit zero": (0, 0),
    "all ones": (0xFFFF_FFFF_FFFF_FFFF, 0xFFFF_FFFF_FFFF_F000),
    "last address": (0xFFFF_FFFF_FFFF_FFC0, 0xFFFF_FFFF_FFFF_F000),
}


@pytest.mark.parametrize(("pointer", "limit"), BAD.values(), ids=BAD)
def test_an_invalid_pointer_counts_as_full(bench: BufferBench, pointer: Pointer, limit: int) -> None:
    pointer = chosen(bench, pointer)

    async def scenario(driver: Driver) -> None:
        await driver.write(PMBPTR_EL1, pointer)
        driver.send(bench.record(1))
        await driver.write(PMBLIMITR_EL1, enable(limit))
        assert (driver.pmbsr, driver.full, driver.pmbptr, driver.memory) == (FULL, 1, pointer, {})
        # The buffer is still full after S has been cleared.
        await driver.write(PMBSR_EL1, 0)
        assert (driver.pmbsr, driver.full) == (FULL, 2)

    bench.drive(scenario)


@pytest.mark.parametrize("waits", [False, True], ids=["no_record", "record"])
@pytest.mark.parametrize("change", range(8))
def test_busy_is_asserted_until_full_is_reported(bench: BufferBench, change: int, waits: bool) -> None:
    """A change of the owner stops the buffer for one cycle.

    A pending record is dropped then before the buffer reports full, one beat in a cycle.
    """

    async def scenario(driver: Driver) -> None:
        await driver.start(BASE, BASE + PAGE)
        await driver.tick(PMBPTR_EL1, BASE + PAGE - bench.required + bench.align)
        if waits:
            driver.send(bench.record(1))
        states = []
        for number in range(12 + 2 * bench.size):
            await driver.tick(new_owner=number == change)
            states.append((bool(driver.busy), driver.pmbsr == FULL))
        assert states[-1] == (False, True)
        assert (False, False) not in states
        assert driver.memory == {}

    bench.drive(scenario)


@pytest.mark.parametrize(("pointer", "limit"), [*BAD.values(), (BASE, BASE + PAGE)], ids=[*BAD, "good"])
def test_discard_mode_writes_no_record_and_is_never_full(discarding: BufferBench, pointer: Pointer, limit: int) -> None:
    pointer = chosen(discarding, pointer)

    async def scenario(driver: Driver) -> None:
        await driver.write(PMBPTR_EL1, pointer)
        await driver.write(PMBLIMITR_EL1, enable(limit, FM.DISCARD))
        for number in range(3):
            driver.send(discarding.record(number))
        await driver.settle()
        await driver.tick(collision=True)
        assert (driver.pmbsr, driver.full) == (PMBSR_EL1.pack(COLL=1), 0)
        assert (driver.pmbptr, driver.memory) == (pointer, {})
        # A write of S by software stops it, as in the other modes.
        await driver.write(PMBSR_EL1, STOPPED)
        assert (driver.pmbsr, driver.full) == (STOPPED, 0)

    discarding.drive(scenario)


@pytest.mark.parametrize("mode", [0b00, 0b01, 0b11])
def test_other_modes_fill_the_buffer(discarding: BufferBench, mode: int) -> None:
    async def scenario(driver: Driver) -> None:
        await driver.write(PMBPTR_EL1, BASE)
        await driver.write(PMBLIMITR_EL1, enable(BASE + PAGE, mode))
        driver.send(discarding.record(1))
        await driver.settle()
        assert (driver.pmbptr, driver.memory) == (BASE + discarding.size, discarding.octets(BASE, discarding.record(1)))
        await driver.write(PMBLIMITR_EL1, enable(BASE, mode))
        assert (driver.pmbsr, driver.full) == (FULL, 1)

    discarding.drive(scenario)


@settings(max_examples=15)
@given(
    stalls=st.lists(st.booleans(), min_size=1, max_size=9).filter(lambda stalls: not all(stalls)),
    late=st.integers(0, 20),
    count=st.integers(1, 5),
)
def test_any_timing_of_memory(any_bench: BufferBench, stalls: list[bool], late: int, count: int) -> None:
    async def scenario(driver: Driver) -> None:
        await driver.start(BASE, BASE + PAGE)
        for number in range(count):
            driver.send(any_bench.record(number))
        await driver.settle()
        assert driver.pmbptr == BASE + count * any_bench.size
        expected = {}
        for number in range(count):
            expected |= any_bench.octets(BASE + number * any_bench.size, any_bench.record(number))
        assert driver.memory == expected

    any_bench.drive(scenario, stalls=stalls, late=late)


def test_the_pointer_does_not_advance_before_the_record_is_in_memory(bench: BufferBench) -> None:
    async def scenario(driver: Driver) -> None:
        await driver.start(BASE, BASE + PAGE)
        driver.send(bench.record(1))
        for _ in range(50):
            await driver.tick()
            assert driver.pmbptr == BASE
        await driver.settle()
        assert driver.pmbptr == BASE + bench.size

    bench.drive(scenario, late=60)


def test_a_collision_in_the_cycle_of_a_write_of_pmbsr(bench: BufferBench) -> None:
    async def scenario(driver: Driver) -> None:
        await driver.tick(collision=True)
        assert driver.pmbsr == PMBSR_EL1.pack(COLL=1)
        await driver.tick(PMBSR_EL1, 0)
        assert driver.pmbsr == 0
        # The write of software takes effect first, and the collision is not lost.
        await driver.tick(PMBSR_EL1, PMBSR_EL1.pack(DL=1), collision=True)
        assert driver.pmbsr == PMBSR_EL1.pack(DL=1, COLL=1)
        await driver.write(PMBSR_EL1, 0)
        await driver.start(BASE, BASE)
        assert driver.pmbsr == FULL

    bench.drive(scenario)


@pytest.mark.parametrize("bits", [7, 12, 20, 30, 34, 35, 36, 37, 45, 55])
def test_a_write_of_the_pointer_while_a_record_is_dropped(any_bench: BufferBench, bits: int) -> None:
    """The next record follows immediately, and crosses a boundary of a power of two."""
    boundary = 1 << bits
    pointer = boundary - any_bench.align

    async def scenario(driver: Driver) -> None:
        for number in (1, 2):
            driver.send(any_bench.record(number))
        await driver.tick()
        await driver.tick(PMBPTR_EL1, pointer)
        await driver.tick(PMBLIMITR_EL1, enable(boundary + PAGE & -PAGE))
        await driver.settle()
        assert [written.octets for written in driver.written] == [any_bench.record(2)]
        assert driver.memory == any_bench.octets(pointer, any_bench.record(2))

    any_bench.drive(scenario)


# Faults.


def faults(bench: BufferBench, words: int) -> Iterator[InjectedFault]:
    """Yield faults of each kind, at the first, a middle and the last of the `words` words of a record."""
    for number, kind in enumerate(bench.kinds):
        for word in sorted({0, words // 2, words - 1}):
            external = bench.config.external_aborts and (word + number) % 2 == 1
            flags = frozenset(bench.config.fault_flags[number % 2 :: 2])
            yield InjectedFault(kind, word, 0b000100 + word % 4, external, flags)


@pytest.mark.parametrize("late", tiers(fast=[0], full=[5]))
def test_every_fault_at_every_word(any_bench: BufferBench, late: int) -> None:
    config = any_bench.config
    units = config.bus_bytes // any_bench.align
    record = any_bench.record(1)
    before, after = PMBSR_EL1.pack(COLL=1, EC=0x3F, MSS=0xFFFF), BASE + 4 * PAGE

    for offset in sorted({0, min(1, units), max(units - 1, 0)}):
        pointer = BASE + offset * any_bench.align
        for fault in faults(any_bench, any_bench.words(pointer + len(record), record)):

            async def scenario(driver: Driver, pointer: int = pointer, fault: InjectedFault = fault) -> None:
                registers = Registers(
                    PMBPTR_EL1=pointer, PMBLIMITR_EL1=enable(BASE + 2 * PAGE), PMBSR_EL1=before & ~STOPPED
                )
                reference = ReferenceBuffer(config, registers)
                assert reference.write(record)
                assert not reference.write(record, fault.fault(config, registers.PMBPTR_EL1))

                await driver.write(PMBSR_EL1, before)
                await driver.start(pointer, BASE + 2 * PAGE)
                for injected_faults in (None, fault, None):
                    driver.send(record, injected_faults)
                await driver.settle()
                assert (driver.pmbptr, driver.pmbsr) == (registers.PMBPTR_EL1, registers.PMBSR_EL1), fault
                octets = {}
                for address, written in reference.memory.items():
                    octets |= any_bench.octets(address, written)
                assert (driver.memory, driver.full) == (octets, 0), fault

                # Software programs another buffer.
                await driver.write(PMBPTR_EL1, after)
                await driver.write(PMBLIMITR_EL1, enable(after + PAGE))
                await driver.write(PMBSR_EL1, 0)
                driver.send(record)
                await driver.settle()
                assert (driver.pmbptr, driver.pmbsr) == (after + len(record), 0)
                assert driver.memory == octets | any_bench.octets(after, record)

            any_bench.drive(scenario, late=late)


@st.composite
def near(draw: st.DrawFn, bench: BufferBench) -> tuple[int, int]:
    """Draw a pointer and a limit. Most pointers are aligned and a few records below or above the limit."""
    limit = draw(st.sampled_from([0, PAGE, BASE, 1 << 56, (1 << 64) - PAGE]) | boundary_integers(64)) & -PAGE
    below = bench.required * draw(st.integers(-1, 4)) + bench.align * draw(st.sampled_from([0, 0, 0, 1, -1, 3]))
    pointer = (limit - below) ^ draw(st.sampled_from([0, 0, 0, 0, 1, 8, bench.required >> 1, 1 << 56, 1 << 63]))
    return pointer & (1 << 64) - 1, limit


@st.composite
def injected_faults(draw: st.DrawFn, bench: BufferBench, words: int) -> InjectedFault:
    """Draw a fault of a record that occupies `words` words of memory."""
    config = bench.config
    return InjectedFault(
        draw(st.sampled_from(bench.kinds)),
        draw(st.integers(0, words - 1)),
        draw(st.integers(0, 63)),
        config.external_aborts and draw(st.booleans()),
        frozenset(flag for flag in config.fault_flags if draw(st.booleans())),
    )


@settings(max_examples=25)
@given(st.data())
def test_like_the_reference(any_bench: BufferBench, data: st.DataObject) -> None:
    registers = Registers()
    reference = ReferenceBuffer(any_bench.config, registers)

    async def scenario(driver: Driver) -> None:
        async def software(register: Register, value: int) -> None:
            registers.write(any_bench.config, register, value)
            reference.stop_if_full()
            await driver.write(register, value)

        full, written = 0, {}
        for number in range(data.draw(st.integers(1, 6), label="steps")):
            stopped = registers.PMBSR_EL1 & STOPPED
            match data.draw(st.sampled_from(["start", "records", "records", "collide", "abort", "status"])):
                case "start":
                    pointer, limit = data.draw(near(any_bench))
                    await software(PMBLIMITR_EL1, 0)
                    await software(PMBPTR_EL1, pointer)
                    mode = data.draw(st.sampled_from([FM.FILL, FM.FILL, FM.DISCARD]))
                    await software(PMBLIMITR_EL1, enable(limit, mode))
                case "records":
                    for _ in range(data.draw(st.integers(1, 3))):
                        pointer = registers.PMBPTR_EL1
                        record = any_bench.record(number)[
                            : any_bench.align * data.draw(st.integers(1, any_bench.size // any_bench.align))
                        ]
                        fault = data.draw(st.none() | injected_faults(any_bench, any_bench.words(pointer, record)))
                        # Memory reports no fault for a dropped record.
                        stored = buffer_enabled(registers) and not discard_mode(registers)
                        reference.write(record, fault.fault(any_bench.config, pointer) if fault and stored else None)
                        written |= any_bench.octets(pointer, record[: registers.PMBPTR_EL1 - pointer])
                        driver.send(record, fault)
                    await driver.settle()
                case "collide":
                    reference.collide()
                    await driver.tick(collision=True)
                case "abort" if any_bench.config.external_aborts:
                    reference.abort()
                    await driver.tick(abort=True)
                case "status":
                    stopped = 0
                    status = data.draw(st.sampled_from([0, 0, STOPPED]) | boundary_integers(64))
                    await software(PMBSR_EL1, status)
                    stopped = status & STOPPED  # S that software sets is not a buffer full event
            full += registers.PMBSR_EL1 & SYNDROME == FULL and not stopped
            assert driver.pmbptr == registers.PMBPTR_EL1
            assert driver.pmbsr == registers.PMBSR_EL1
            assert driver.full == full
            assert driver.memory == written

    any_bench.drive(scenario)
