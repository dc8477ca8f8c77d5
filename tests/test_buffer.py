"""The Profiling Buffer: alone, and against the reference's `Buffer`."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from gateware import VARIANTS, Bench, boundary_integers, cycle
from hypothesis import given, settings
from hypothesis import strategies as st

from spurtle.arch import FM, PMBLIMITR_EL1, PMBPTR_EL1, PMBSR_EL1, Register
from spurtle.buffer import Buffer
from spurtle.config import SPUConfig
from spurtle_sim.reference.buffer import Buffer as ReferenceBuffer
from spurtle_sim.reference.registers import Registers

PAGE = 4096
BASE = 0x40_0000
STOPPED = PMBSR_EL1.pack(S=1)
FULL = PMBSR_EL1.pack(S=1, EC=0, MSS=1)


def enable(limit: int, mode: int = FM.FILL) -> int:
    return PMBLIMITR_EL1.pack(E=1, FM=mode, LIMIT=limit >> 12)


class Driver:
    """Software, the serializer and memory around one buffer, a cycle at a time.

    `stalls` says, over and over, in which cycles memory does not take a beat; `late` is how many cycles after the
    earliest its `done` comes.
    """

    def __init__(self, ctx: Any, dut: Buffer, config: SPUConfig, stalls: Sequence[bool] = (False,), late: int = 0):
        self._ctx, self._dut, self._config = ctx, dut, config
        self._stalls, self._late = stalls, late
        self._beats: list[tuple[int, bool, int]] = []
        self._done: int | None = None
        self._stalled: tuple[int, ...] | None = None
        self._cycle = 0
        self._pmblimitr = 0
        self._written = b""  # of the record that is being written
        self.memory: dict[int, int] = {}  # byte by byte
        self._next = 0
        self.written: list[bytes] = []
        self.was_early = self.was_late = False
        self.pmbptr = self.pmbsr = self.full = 0
        self.busy = False
        self.begun_at = self.done_at = -1  # cycles of the first record: its first beat is there, it is in memory

    def send(self, record: bytes) -> None:
        size, align = self._config.bus_bytes, self._config.layout.align
        for at in range(0, len(record), size):
            beat = record[at : at + size]
            last = at + size >= len(record)
            self._beats.append((int.from_bytes(beat, "little"), last, len(beat) % size // align if last else 0))

    async def tick(
        self, register: Register | None = None, value: int = 0, collision: bool = False, new_owner: bool = False
    ) -> None:
        """One cycle, in which software may write a register, and the buffer have another owner."""
        dut = self._dut
        data, last, end = self._beats[0] if self._beats else (0, False, 0)
        inputs = [
            (dut.i.valid, bool(self._beats)),
            (dut.i.p.data, data),
            (dut.i.p.last, last),
            *([(dut.i.p.end, end)] if hasattr(dut.i.p, "end") else []),
            (dut.write.beat.ready, not self._stalls[self._cycle % len(self._stalls)]),
            (dut.write.done, self._done == 0),
            (dut.pmblimitr.as_value(), self._pmblimitr),
            (dut.pmblimitr_write, register is PMBLIMITR_EL1),
            (dut.new_owner, new_owner),
            (dut.pmbptr_write, register is PMBPTR_EL1),
            (dut.pmbsr_write, register is PMBSR_EL1),
            (dut.wdata, value),
            (dut.collision, collision),
        ]
        outputs = (dut.i.ready, dut.write.beat.valid, dut.write.beat.ready, dut.write.beat.payload.as_value())
        taken, valid, ready, payload, full, running, writing, pmbsr, busy = await cycle(
            self._ctx, inputs, *outputs, dut.full, dut.running, dut.writing, dut.pmbsr.as_value(), dut.busy
        )
        assert running == (self._pmblimitr & 1 and not pmbsr & STOPPED and not new_owner)
        assert writing == (running and PMBLIMITR_EL1.unpack(self._pmblimitr).FM != FM.DISCARD)
        self.busy = bool(busy)
        self.full += full
        if valid and self.begun_at < 0:
            self.begun_at = self._cycle
        if self._done == 0 and self.done_at < 0:
            self.done_at = self._cycle
        self._done = None if self._done in (0, None) else self._done - 1
        if self._stalled is not None:
            assert (valid, payload) == self._stalled, "a stalled beat stands still"
        self._stalled = (valid, payload) if valid and not ready else None
        if valid and ready:
            beat = dut.write.beat.payload.shape().from_bits(payload)
            assert beat.address % self._config.bus_bytes == 0
            # Bytes follow each other without a gap, and each beat writes some.
            strobed = [byte for byte in range(self._config.bus_bytes) if beat.strobe >> byte & 1]
            assert strobed
            for byte in strobed:
                address = beat.address + byte
                assert not self._written or address == self._next
                self._next = address + 1
                self._written += bytes([beat.data >> 8 * byte & 0xFF])
                self.memory[address] = self._written[-1]
            if beat.last:
                self.written.append(self._written)
                self._written = b""
                self._done = self._late
        if taken and self._beats:
            self._beats.pop(0)
        if register is PMBLIMITR_EL1:  # it is kept outside of the buffer
            self._pmblimitr = value & self._config.writable(PMBLIMITR_EL1)
        self._cycle += 1
        self.pmbptr = self._ctx.get(dut.pmbptr)
        self.pmbsr = self._ctx.get(dut.pmbsr.as_value())

    async def write(self, register: Register, value: int) -> None:
        """Software writes a register, and waits."""
        await self.tick(register, value)
        await self.settle()

    async def write_while_sending(
        self, record: bytes, arrives: int, register: Register | None, value: int, cycle: int
    ) -> None:
        """The record arrives in cycle `arrives` from now, software writes in another. Without a register, the buffer
        has another owner in the cycle in which a write would have its effect.
        """
        begin = self._cycle
        for now in range(max(arrives, cycle) + 2):
            if now == arrives:
                self.send(record)
            new_owner = register is None and now == cycle + 1
            await self.tick(register if now == cycle else None, value, new_owner=new_owner)
        await self.settle()
        # From the cycle before its first beat a record knows where it goes; its fate is settled when it is in memory.
        self.was_early = begin + cycle < self.begun_at - 1
        self.was_late = begin + cycle >= self.done_at

    async def settle(self) -> None:
        """Until all that was sent has been written or dropped, and the status says so."""
        for _ in range(1000):
            await self.tick()
            if not self._beats and not self.busy and self._done is None:
                break
        else:
            raise AssertionError("the buffer hangs")
        for _ in range(3):
            await self.tick()

    async def start(self, pointer: int, limit: int) -> None:
        await self.write(PMBPTR_EL1, pointer)
        await self.write(PMBLIMITR_EL1, enable(limit))


class BufferBench(Bench):
    def __init__(self, config: SPUConfig):
        self.config = config
        self.align = config.layout.align
        self.room = config.max_record_bytes  # that there must be
        # Records of the longest size, or of one that is not a multiple of the bus.
        self.size = config.layout.longest(config.packet_bytes) // self.align * self.align
        self.dut = Buffer(config)
        super().__init__(self.dut)

    def drive(self, scenario: Callable[[Driver], Any], **pace: Any) -> Driver:
        async def main(ctx: Any) -> Driver:
            driver = Driver(ctx, self.dut, self.config, **pace)
            await scenario(driver)
            return driver

        return self.run(main)

    def record(self, number: int) -> bytes:
        return bytes((number * 37 + byte) & 0xFF for byte in range(self.size))

    def octets(self, address: int, record: bytes) -> dict[int, int]:
        return dict(enumerate(record, address))


@pytest.fixture(scope="module", params=["minimal", "kunpeng_920", "v1p4"])
def bench(request: pytest.FixtureRequest) -> BufferBench:
    return BufferBench(VARIANTS[request.param])


@pytest.fixture(scope="module", params=["minimal", "kunpeng_920", "arm_model", "v1p4", "unnamed_packed", "unnamed"])
def any_bench(request: pytest.FixtureRequest) -> BufferBench:
    return BufferBench(VARIANTS[request.param])


@pytest.fixture(scope="module")
def discarding() -> BufferBench:
    return BufferBench(VARIANTS["v1p4"])


@pytest.mark.parametrize("limit", [BASE + PAGE, PAGE, 0xFFFF_FFFF_FFFF_F000])
def test_one_more_record_fits_below_the_limit_and_then_it_is_full(bench: BufferBench, limit: int) -> None:
    pointer = limit - bench.room
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
def test_there_is_room_far_below_the_limit(bench: BufferBench, pointer: int, limit: int) -> None:
    pointer &= -bench.room

    async def scenario(driver: Driver) -> None:
        await driver.start(pointer, limit)
        assert driver.full == 0
        driver.send(bench.record(1))
        await driver.settle()
        assert driver.pmbptr == pointer + bench.size

    bench.drive(scenario)


Pointer = int | Callable[[BufferBench], int]


def chosen(bench: BufferBench, pointer: Pointer) -> int:
    """The pointer that a configuration makes of one of `BAD`."""
    if isinstance(pointer, int):
        return pointer
    found = pointer(bench)
    if found % PAGE == 1 and bench.align == 1:
        pytest.skip("records are aligned to a byte")
    return found


BAD: dict[str, tuple[Pointer, int]] = {
    "one record too far": (BASE, BASE),
    "beyond the limit": (BASE + PAGE, BASE),
    "a unit too far": (lambda bench: BASE - bench.room + bench.align, BASE),
    "not aligned": (lambda bench: BASE - PAGE + max(bench.align // 2, 1), BASE),
    "another top byte": (0x01_0000_0000_0000_00 | BASE - PAGE, BASE),
    "another top byte of the limit": (BASE - PAGE, 0x8000_0000_0000_0000 | BASE),
    "far beyond the limit": (BASE - PAGE | 1 << 50, BASE),
    "limit zero": (0, 0),
    "all ones": (0xFFFF_FFFF_FFFF_FFFF, 0xFFFF_FFFF_FFFF_F000),
    "last of all": (0xFFFF_FFFF_FFFF_FFC0, 0xFFFF_FFFF_FFFF_F000),
}


@pytest.mark.parametrize(("pointer", "limit"), BAD.values(), ids=BAD)
def test_a_bad_pointer_is_full_and_nothing_is_written(bench: BufferBench, pointer: Pointer, limit: int) -> None:
    pointer = chosen(bench, pointer)

    async def scenario(driver: Driver) -> None:
        await driver.write(PMBPTR_EL1, pointer)
        driver.send(bench.record(1))
        await driver.write(PMBLIMITR_EL1, enable(limit))
        assert (driver.pmbsr, driver.full, driver.pmbptr, driver.memory) == (FULL, 1, pointer, {})
        # Clearing S alone changes nothing about it.
        await driver.write(PMBSR_EL1, 0)
        assert (driver.pmbsr, driver.full) == (FULL, 2)

    bench.drive(scenario)


@pytest.mark.parametrize("change", range(8))
def test_it_is_busy_until_it_says_that_it_is_full(bench: BufferBench, change: int) -> None:
    """Even if the owner changes meanwhile, which keeps it from running for a cycle."""

    async def scenario(driver: Driver) -> None:
        await driver.start(BASE, BASE + PAGE)
        await driver.tick(PMBPTR_EL1, BASE + PAGE - bench.room + bench.align)
        said = []
        for number in range(12):
            await driver.tick(new_owner=number == change)
            said.append((bool(driver.busy), driver.pmbsr == FULL))
        assert said[-1] == (False, True)
        assert (False, False) not in said

    bench.drive(scenario)


@pytest.mark.parametrize(("pointer", "limit"), [*BAD.values(), (BASE, BASE + PAGE)], ids=[*BAD, "good"])
def test_in_discard_mode_nothing_is_written_and_nothing_is_full(
    discarding: BufferBench, pointer: Pointer, limit: int
) -> None:
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
        # Software can stop it as ever.
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


# Software writes in any cycle from before the record arrives until after it is committed.
ARRIVES = 6
WRITES = range(ARRIVES - 3, ARRIVES + 32)
PACES = [{"late": 3}, {"stalls": (True, True, False), "late": 1}]


@pytest.mark.parametrize("pace", PACES, ids=str)
def test_a_new_pointer_in_any_cycle(bench: BufferBench, pace: dict[str, Any]) -> None:
    new = BASE + PAGE
    outcomes = set()

    for write in WRITES:

        async def scenario(driver: Driver, write: int = write) -> None:
            await driver.start(BASE, BASE + 2 * PAGE)
            await driver.write_while_sending(bench.record(1), ARRIVES, PMBPTR_EL1, new, write)
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


@pytest.mark.parametrize("pace", PACES, ids=str)
@pytest.mark.parametrize("halt", HALTS)
def test_a_halt_in_any_cycle(bench: BufferBench, halt: str, pace: dict[str, Any]) -> None:
    register, off, on = HALTS[halt]
    drops = halt != "the same limit" and (halt != "discard" or bench.config.discard_mode)
    outcomes = set()

    for write in WRITES:

        async def scenario(driver: Driver, write: int = write) -> None:
            await driver.start(BASE, BASE + 2 * PAGE)
            await driver.write_while_sending(bench.record(1), ARRIVES, register, off, write)
            begun = bool(driver.memory)
            assert driver.memory == (bench.octets(BASE, bench.record(1)) if begun else {}), "a record is written whole"
            committed = begun and (driver.was_early or driver.was_late)
            assert driver.pmbptr == (BASE + bench.size if committed else BASE)
            outcomes.add((begun, committed))
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


@settings(max_examples=15)
@given(
    stalls=st.lists(st.booleans(), min_size=1, max_size=9).filter(lambda stalls: not all(stalls)),
    late=st.integers(0, 20),
    count=st.integers(1, 5),
)
def test_any_pace_of_memory(any_bench: BufferBench, stalls: list[bool], late: int, count: int) -> None:
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


def test_the_pointer_does_not_move_before_memory_has_the_record(bench: BufferBench) -> None:
    async def scenario(driver: Driver) -> None:
        await driver.start(BASE, BASE + PAGE)
        driver.send(bench.record(1))
        for _ in range(50):
            await driver.tick()
            assert driver.pmbptr == BASE
        await driver.settle()
        assert driver.pmbptr == BASE + bench.size

    bench.drive(scenario, late=60)


def test_collision_and_software_meet_in_pmbsr(bench: BufferBench) -> None:
    async def scenario(driver: Driver) -> None:
        await driver.tick(collision=True)
        assert driver.pmbsr == PMBSR_EL1.pack(COLL=1)
        await driver.tick(PMBSR_EL1, 0)
        assert driver.pmbsr == 0
        # Software's write comes first, and the hardware's change is not lost.
        await driver.tick(PMBSR_EL1, PMBSR_EL1.pack(DL=1), collision=True)
        assert driver.pmbsr == PMBSR_EL1.pack(DL=1, COLL=1)
        await driver.write(PMBSR_EL1, 0)
        await driver.start(BASE, BASE)
        assert driver.pmbsr == FULL

    bench.drive(scenario)


@st.composite
def near(draw: st.DrawFn, bench: BufferBench) -> tuple[int, int]:
    """A pointer and a limit: mostly an aligned pointer at most a few records below the limit, or above."""
    limit = draw(st.sampled_from([0, PAGE, BASE, 1 << 56, (1 << 64) - PAGE]) | boundary_integers(64)) & -PAGE
    below = bench.room * draw(st.integers(-1, 4)) + bench.align * draw(st.sampled_from([0, 0, 0, 1, -1, 3]))
    pointer = (limit - below) ^ draw(st.sampled_from([0, 0, 0, 0, 1, 8, bench.room >> 1, 1 << 56, 1 << 63]))
    return pointer & (1 << 64) - 1, limit


@settings(max_examples=40)
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
            match data.draw(st.sampled_from(["start", "records", "records", "collide", "status"])):
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
                        if reference.write(record):
                            written |= any_bench.octets(pointer, record)
                        driver.send(record)
                    await driver.settle()
                case "collide":
                    reference.collide()
                    await driver.tick(collision=True)
                case "status":
                    stopped = 0  # so that an S which software writes is not taken for an event
                    status = data.draw(st.sampled_from([0, 0, STOPPED]) | boundary_integers(64))
                    await software(PMBSR_EL1, status)
                    stopped = status & STOPPED
            full += bool(registers.PMBSR_EL1 & STOPPED) and not stopped
            assert driver.pmbptr == registers.PMBPTR_EL1
            assert driver.pmbsr == registers.PMBSR_EL1
            assert driver.full == full
            assert driver.memory == written

    any_bench.drive(scenario)
