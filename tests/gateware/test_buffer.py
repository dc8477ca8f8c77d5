"""The Profiling Buffer: alone, and against the reference's `ProfilingBuffer`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spurtle.arch import FM, PMBLIMITR_EL1, PMBPTR_EL1, PMBSR_EL1, Register
from spurtle.config import SPUConfig
from spurtle.gateware.buffer import ProfilingBuffer
from spurtle.interface.memory import WriteFaultKind
from spurtle_sim.model.buffer import Buffer as ReferenceBuffer
from spurtle_sim.model.buffer import Fault, FaultKind, fault_kinds
from spurtle_sim.model.control import buffer_enabled, discard_mode
from spurtle_sim.model.registers import Registers
from tests.support.gateware import VARIANTS, Bench, boundary_integers, cycle
from tests.support.seeds import SEED
from tests.support.tiers import configurations, tiers

PAGE = 4096
BASE = 0x40_0000
STOPPED = PMBSR_EL1.pack(S=1)
FULL = PMBSR_EL1.pack(S=1, EC=0, MSS=1)
SYNDROME = sum(PMBSR_EL1.fields[name].mask for name in ("S", "EC", "MSS"))


def enable(limit: int, mode: int = FM.FILL) -> int:
    return PMBLIMITR_EL1.pack(E=1, FM=mode, LIMIT=limit >> 12)


@dataclass(frozen=True)
class Meets:
    """What a record meets in memory: `spurtle.interface.memory.Fault`, by name."""

    kind: FaultKind
    word: int = 0
    fsc: int = 0
    external: bool = False
    flags: frozenset[str] = frozenset()

    def members(self, config: SPUConfig) -> Mapping[str, int]:
        """Of the port."""
        return {
            "kind": WriteFaultKind[self.kind.name].value,
            "fsc": self.fsc,
            "word": self.word,
            **({"external": self.external} if config.external_aborts else {}),
            **{flag: flag in self.flags for flag in config.fault_flags},
        }

    def fault(self, config: SPUConfig, pointer: int) -> Fault:
        """Of a record that was begun there."""
        return Fault(
            kind=self.kind,
            written=self.word * config.bus_bytes - pointer % config.bus_bytes if self.word else 0,
            fsc=self.fsc,
            flags=PMBSR_EL1.pack(**dict.fromkeys(self.flags, 1)),
            external=self.external,
        )


@dataclass(frozen=True)
class Written:
    """A record that went out to memory."""

    address: int
    octets: bytes


class Driver:
    """Software, the serializer and memory around one buffer, a cycle at a time, and the reference beside it.

    `stalls` says, over and over, in which cycles memory does not take a beat; `late` is how many cycles after the
    earliest its `done` comes.
    """

    def __init__(
        self, ctx: Any, dut: ProfilingBuffer, config: SPUConfig, stalls: Sequence[bool] = (False,), late: int = 0
    ):
        self._ctx, self._dut, self._config = ctx, dut, config
        self._stalls, self._late = stalls, late
        self._beats: list[tuple[int, bool, int]] = []
        self._meets: list[Meets | None] = []  # of each record that is not written or dropped yet
        self._done: int | None = None
        self._stalled: tuple[int, ...] | None = None
        self.cycle = 0
        self._registers = Registers()
        self._reference = ReferenceBuffer(config, self._registers)
        self._kept = False  # the end of the record that is being written moves the pointer
        self._met: Meets | None = None  # in the cycle before
        self._meeting: Meets | None = None  # of the record that is being written
        self._words: list[dict[int, int]] = []  # of it, as far as they have gone out
        self.memory: dict[int, int] = {}  # byte by byte
        self.written: list[Written] = []
        self.was_early = self.was_late = False
        self.pmbptr = self.pmbsr = self.full = 0
        self.statuses: set[int] = set()  # that PMBSR_EL1 has had
        self.busy = False
        self.begun_at = self.done_at = -1  # cycles of the first record: its first beat is there, it is in memory
        self.full_at = -1

    def send(self, record: bytes, meets: Meets | None = None) -> None:
        size, align = self._config.bus_bytes, self._config.layout.align
        for at in range(0, len(record), size):
            beat = record[at : at + size]
            last = at + size >= len(record)
            self._beats.append((int.from_bytes(beat, "little"), last, len(beat) % size // align if last else 0))
        self._meets.append(meets)

    async def tick(
        self,
        register: Register | None = None,
        value: int = 0,
        *,
        collision: bool = False,
        abort: bool = False,
        new_owner: bool = False,
    ) -> None:
        """One cycle, in which software may write a register, and the buffer have another owner."""
        dut = self._dut
        data, last, end = self._beats[0] if self._beats else (0, False, 0)
        done = self._done == 0
        inputs = [
            (dut.i.valid, bool(self._beats)),
            (dut.i.p.data, data),
            (dut.i.p.last, last),
            *([(dut.i.p.end, end)] if hasattr(dut.i.p, "end") else []),
            (dut.write.beat.ready, not self._stalls[self.cycle % len(self._stalls)]),
            (dut.write.done, done),
            (dut.write.fault.as_value(), self._answer(done)),
            *([(dut.write.abort, abort)] if hasattr(dut.write, "abort") else []),
            (dut.pmblimitr.as_value(), self._registers.PMBLIMITR_EL1),
            (dut.pmblimitr_write, register is PMBLIMITR_EL1),
            (dut.new_owner, new_owner),
            (dut.pmbptr_write, register is PMBPTR_EL1),
            (dut.pmbsr_write, register is PMBSR_EL1),
            (dut.wdata, value),
            (dut.collision, collision),
        ]
        outputs = (dut.i.ready, dut.write.beat.valid, dut.write.beat.ready, dut.write.beat.payload.as_value())
        more = (dut.full, dut.running, dut.writing, dut.begun, dut.busy)
        taken, valid, ready, payload, full, running, writing, begun, busy = await cycle(
            self._ctx, inputs, *outputs, *more
        )
        enabled = self._registers.PMBLIMITR_EL1 & 1 and not self._registers.PMBSR_EL1 & STOPPED
        assert running == (enabled and not new_owner)
        assert writing == (running and PMBLIMITR_EL1.unpack(self._registers.PMBLIMITR_EL1).FM != FM.DISCARD)
        if valid and self.begun_at < 0:
            self.begun_at = self.cycle
        if done and self.done_at < 0:
            self.done_at = self.cycle
        if full:
            self.full += 1
            self.full_at = self.cycle
        self.busy = bool(busy)
        self._follow(register, value, collision, abort, running, begun, writing, full, done)
        self._done = None if self._done in (0, None) else self._done - 1
        if self._stalled is not None:
            assert (valid, payload) == self._stalled, "a stalled beat stands still"
        self._stalled = (valid, payload) if valid and not ready else None
        if valid and ready:
            self._store(dut.write.beat.payload.shape().from_bits(payload))
        if taken and self._beats:
            self._beats.pop(0)
        self.cycle += 1
        self.pmbptr = self._ctx.get(dut.pmbptr)
        self.pmbsr = self._ctx.get(dut.pmbsr.as_value())
        self.statuses.add(self.pmbsr)
        assert (self.pmbptr, self.pmbsr) == (self._registers.PMBPTR_EL1, self._registers.PMBSR_EL1)

    def _answer(self, done: bool) -> int:
        """The fault on the port. Where nobody should look at it everything is one."""
        layout = self._dut.write.fault.shape()
        fault = (1 << layout.size) - 1
        if done:
            members = (
                {"kind": WriteFaultKind.NONE.value} if self._meeting is None else self._meeting.members(self._config)
            )
            for name, value in members.items():
                field = layout[name]
                fault &= ~(((1 << field.width) - 1) << field.offset)
                fault |= value << field.offset
        return fault

    def _follow(
        self,
        register: Register | None,
        value: int,
        collision: bool,
        abort: bool,
        running: bool,
        begun: bool,
        writing: bool,
        full: bool,
        done: bool,
    ) -> None:
        """The reference does what the buffer does in this cycle. Of PMBSR_EL1 software's write comes first, of
        PMBPTR_EL1 last. A fault is known in the cycle after `done`.
        """
        if done and self._meeting is None and self._kept and running:
            self._reference.end(len(self.written[-1].octets))
        if register is PMBSR_EL1:
            self._registers.write(self._config, register, value)
        if collision:
            self._reference.collide()
        if full:
            self._reference.stop_if_full()
            assert self._registers.PMBSR_EL1 & STOPPED
        if self._met is not None:
            written = self.written[-1]
            fault = self._met.fault(self._config, written.address)
            if self._kept and running:
                self._reference.end(len(written.octets), fault)
            else:
                self._reference.discard(fault)
        if abort:
            self._reference.abort()
        self._met = self._meeting if done else None
        if begun:
            meeting = self._meets.pop(0)
            if writing:
                self._meeting = meeting
        self._kept = begun or (self._kept and running)
        if register is PMBPTR_EL1 or register is PMBLIMITR_EL1:
            self._registers.write(self._config, register, value)
            self._kept = False

    def _store(self, beat: Any) -> None:
        """Memory takes a word."""
        assert beat.address % self._config.bus_bytes == 0
        # Bytes follow each other without a gap, and each beat writes some.
        strobed = [byte for byte in range(self._config.bus_bytes) if beat.strobe >> byte & 1]
        assert strobed
        word = {beat.address + byte: beat.data >> 8 * byte & 0xFF for byte in strobed}
        addresses = list(word)
        assert addresses == list(range(addresses[0], addresses[-1] + 1))
        assert not self._words or addresses[0] == max(self._words[-1]) + 1
        self._words.append(word)
        if beat.last:
            # From the first that cannot be written on none is.
            for each in self._words[: self._meeting.word if self._meeting else None]:
                self.memory |= each
            octets = bytes(byte for each in self._words for byte in each.values())
            self.written.append(Written(min(self._words[0]), octets))
            self._words = []
            self._done = self._late

    @property
    def idle(self) -> bool:
        """All that was sent has been taken."""
        return not self._beats

    async def write(self, register: Register, value: int) -> None:
        """Software writes a register, and waits."""
        await self.tick(register, value)
        await self.settle()

    async def change_while_sending(
        self, record: bytes, arrives: int, cycle: int, meets: Meets | None = None, **change: Any
    ) -> None:
        """The record arrives in cycle `arrives` from now; `change` is what `tick` is told in another."""
        begin = self.cycle
        for now in range(max(arrives, cycle) + 2):
            if now == arrives:
                self.send(record, meets)
            await self.tick(**change if now == cycle else {})
        await self.settle()
        # From the cycle before its first beat a record knows where it goes; its fate is settled when it is in memory.
        # What software writes has its effect in the next cycle.
        effect = begin + cycle + ("new_owner" not in change)
        self.was_early = effect < self.begun_at
        self.was_late = effect > self.done_at

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
        self._reference.stop_if_full()
        assert self.pmbsr == self._registers.PMBSR_EL1, "it is full, and does not say so"

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
        self.dut = ProfilingBuffer(config)
        super().__init__(self.dut)

    def drive(self, scenario: Callable[[Driver], Any], **pace: Any) -> Driver:
        async def main(ctx: Any) -> Driver:
            driver = Driver(ctx, self.dut, self.config, **pace)
            await scenario(driver)
            return driver

        return self.run(main)

    def record(self, number: int) -> bytes:
        return bytes((number * 37 + byte) & 0xFF for byte in range(self.size))

    def words(self, address: int, record: bytes) -> int:
        """Of memory, that it falls on."""
        return -(-(address % self.config.bus_bytes + len(record)) // self.config.bus_bytes)

    @property
    def kinds(self) -> list[FaultKind]:
        return fault_kinds(self.config)

    def octets(self, address: int, record: bytes) -> dict[int, int]:
        return dict(enumerate(record, address))


@pytest.fixture(scope="module", params=tiers(fast=["v1p4"], full=["minimal", "kunpeng_920"]))
def bench(request: pytest.FixtureRequest) -> BufferBench:
    return BufferBench(VARIANTS[request.param])


@pytest.fixture(
    scope="module", params=configurations(["minimal", "kunpeng_920", "arm_model", "v1p4", "unnamed_packed", "unnamed"])
)
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


@pytest.mark.parametrize("waits", [False, True], ids=["no_record", "record"])
@pytest.mark.parametrize("change", range(8))
def test_it_is_busy_until_it_says_that_it_is_full(bench: BufferBench, change: int, waits: bool) -> None:
    """Even if the owner changes meanwhile, which keeps it from running for a cycle: a record that waits is dropped
    first, and that takes a cycle for each beat.
    """

    async def scenario(driver: Driver) -> None:
        await driver.start(BASE, BASE + PAGE)
        await driver.tick(PMBPTR_EL1, BASE + PAGE - bench.room + bench.align)
        if waits:
            driver.send(bench.record(1))
        said = []
        for number in range(12 + 2 * bench.size):
            await driver.tick(new_owner=number == change)
            said.append((bool(driver.busy), driver.pmbsr == FULL))
        assert said[-1] == (False, True)
        assert (False, False) not in said
        assert driver.memory == {}

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


@pytest.mark.parametrize("pace", tiers(fast=PACES[-1:], full=PACES), ids=str)
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


@pytest.mark.parametrize("pace", tiers(fast=PACES[-1:], full=PACES), ids=str)
@pytest.mark.parametrize("halt", HALTS)
def test_a_halt_in_any_cycle(bench: BufferBench, halt: str, pace: dict[str, Any]) -> None:
    register, off, on = HALTS[halt]
    drops = halt != "the same limit" and (halt != "discard" or bench.config.discard_mode)
    outcomes = set()

    for write in WRITES:

        async def scenario(driver: Driver, write: int = write) -> None:
            await driver.start(BASE, BASE + 2 * PAGE)
            change = {"register": register, "value": off} if register else {"new_owner": True}
            await driver.change_while_sending(bench.record(1), ARRIVES, write, **change)
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


@pytest.mark.parametrize("bits", [7, 12, 20, 30, 34, 35, 36, 37, 45, 55])
def test_a_pointer_of_which_the_buffer_learns_while_it_drops_a_record(any_bench: BufferBench, bits: int) -> None:
    """And the next record follows without a cycle between them, over a boundary of any power of two."""
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


def faults(bench: BufferBench, words: int) -> Iterator[Meets]:
    """Of each kind, at the first, a middle and the last word of a record that falls on so many."""
    for number, kind in enumerate(bench.kinds):
        for word in sorted({0, words // 2, words - 1}):
            external = bench.config.external_aborts and (word + number) % 2 == 1
            flags = frozenset(bench.config.fault_flags[number % 2 :: 2])
            yield Meets(kind, word, 0b000100 + word % 4, external, flags)


@pytest.mark.parametrize("late", tiers(fast=[0], full=[5]))
def test_every_fault_at_every_place_is_the_reference_s(any_bench: BufferBench, late: int) -> None:
    config = any_bench.config
    units = config.bus_bytes // any_bench.align
    record = any_bench.record(1)
    before, after = PMBSR_EL1.pack(COLL=1, EC=0x3F, MSS=0xFFFF), BASE + 4 * PAGE

    for offset in sorted({0, min(1, units), max(units - 1, 0)}):
        pointer = BASE + offset * any_bench.align
        for meets in faults(any_bench, any_bench.words(pointer + len(record), record)):

            async def scenario(driver: Driver, pointer: int = pointer, meets: Meets = meets) -> None:
                registers = Registers(
                    PMBPTR_EL1=pointer, PMBLIMITR_EL1=enable(BASE + 2 * PAGE), PMBSR_EL1=before & ~STOPPED
                )
                reference = ReferenceBuffer(config, registers)
                assert reference.write(record)
                assert not reference.write(record, meets.fault(config, registers.PMBPTR_EL1))

                await driver.write(PMBSR_EL1, before)
                await driver.start(pointer, BASE + 2 * PAGE)
                for met in (None, meets, None):
                    driver.send(record, met)
                await driver.settle()
                assert (driver.pmbptr, driver.pmbsr) == (registers.PMBPTR_EL1, registers.PMBSR_EL1), meets
                octets = {}
                for address, written in reference.memory.items():
                    octets |= any_bench.octets(address, written)
                assert (driver.memory, driver.full) == (octets, 0), meets

                # Software gives it another piece of memory.
                await driver.write(PMBPTR_EL1, after)
                await driver.write(PMBLIMITR_EL1, enable(after + PAGE))
                await driver.write(PMBSR_EL1, 0)
                driver.send(record)
                await driver.settle()
                assert (driver.pmbptr, driver.pmbsr) == (after + len(record), 0)
                assert driver.memory == octets | any_bench.octets(after, record)

            any_bench.drive(scenario, late=late)


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


def around(bench: BufferBench, pace: dict[str, Any], pointer: int = BASE) -> range:
    """Cycles from before a record is begun until after it is in memory, or the buffer is full."""

    async def scenario(driver: Driver) -> None:
        await driver.start(pointer, BASE + 2 * PAGE)
        nonlocal begin
        begin = driver.cycle
        await driver.change_while_sending(bench.record(1), ARRIVES, ARRIVES)

    begin = 0
    driver = bench.drive(scenario, **pace)
    return range(driver.begun_at - begin - 2, max(driver.done_at, driver.full_at) - begin + 4)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("pace", tiers(fast=PACES[-1:], full=PACES), ids=str)
def test_a_fault_and_something_else_in_any_cycle(bench: BufferBench, pace: dict[str, Any], change: str) -> None:
    """`Driver` compares each cycle with the reference. Here: the fault is told of as long as nothing is in its way."""
    config = bench.config
    external = config.external_aborts
    if change == "abort" and not external:
        pytest.skip("no External aborts are reported")
    meets = Meets(FaultKind.STAGE_2, 1, 0b010000 if external else 0b000101, external)
    status = PMBSR_EL1.pack(S=1, DL=1, EA=external, EC=0x25, MSS=meets.fsc)
    outcomes = set()

    for number in around(bench, pace):

        async def scenario(driver: Driver, number: int = number) -> None:
            await driver.start(BASE, BASE + 2 * PAGE)
            await driver.change_while_sending(bench.record(1), ARRIVES, number, meets, **CHANGES[change])
            statuses = {status & ~PMBSR_EL1.pack(COLL=1) for status in driver.statuses}
            outcomes.add(status in statuses)
            if external and driver.written:
                assert any(PMBSR_EL1.unpack(status).EA for status in statuses)
            if change != "clear":  # after which the pointer may be a bad one
                assert driver.full == 0

        bench.drive(scenario, **pace)

    assert True in outcomes
    assert (False in outcomes) == (change not in HARMLESS)


@pytest.mark.parametrize("change", ["abort", "stop", "clear", "collision"])
def test_full_and_something_else_in_any_cycle(bench: BufferBench, change: str) -> None:
    """Of PMBSR_EL1 software's write comes first, and an asynchronous External abort last. The first syndrome stays."""
    if change == "abort" and not bench.config.external_aborts:
        pytest.skip("no External aborts are reported")
    pointer = BASE + 2 * PAGE - bench.room
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
def test_everything_in_any_cycle(any_bench: BufferBench, seed: int) -> None:
    """`Driver` compares each cycle with the reference."""
    random = Random(f"{SEED} {seed}")
    config = any_bench.config

    def chance(probability: float) -> bool:
        return random.random() < probability

    def meets(record: bytes) -> Meets | None:
        if chance(0.6):
            return None
        return Meets(
            random.choice(any_bench.kinds),
            random.randrange(any_bench.words(0, record)),
            random.randrange(64),
            config.external_aborts and chance(0.5),
            frozenset(flag for flag in config.fault_flags if chance(0.5)),
        )

    def software() -> tuple[Register | None, int]:
        page = BASE + PAGE * random.randrange(4)
        pointers = [page, page + PAGE - any_bench.room, page + any_bench.align * random.randrange(9), page + 1]
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
                driver.send(record, meets(record))
            register, value = software() if chance(0.08) else (None, 0)
            await driver.tick(
                register,
                value,
                collision=chance(0.02),
                abort=config.external_aborts and chance(0.01),
                new_owner=chance(0.01),
            )
        await driver.settle()
        assert driver.written

    any_bench.drive(scenario, stalls=[chance(0.3) for _ in range(7)] + [False], late=random.choice([0, 1, 4]))


@st.composite
def near(draw: st.DrawFn, bench: BufferBench) -> tuple[int, int]:
    """A pointer and a limit: mostly an aligned pointer at most a few records below the limit, or above."""
    limit = draw(st.sampled_from([0, PAGE, BASE, 1 << 56, (1 << 64) - PAGE]) | boundary_integers(64)) & -PAGE
    below = bench.room * draw(st.integers(-1, 4)) + bench.align * draw(st.sampled_from([0, 0, 0, 1, -1, 3]))
    pointer = (limit - below) ^ draw(st.sampled_from([0, 0, 0, 0, 1, 8, bench.room >> 1, 1 << 56, 1 << 63]))
    return pointer & (1 << 64) - 1, limit


@st.composite
def met(draw: st.DrawFn, bench: BufferBench, words: int) -> Meets:
    """What a record that falls on so many words can meet."""
    config = bench.config
    return Meets(
        draw(st.sampled_from(bench.kinds)),
        draw(st.integers(0, words - 1)),
        draw(st.integers(0, 63)),
        config.external_aborts and draw(st.booleans()),
        frozenset(flag for flag in config.fault_flags if draw(st.booleans())),
    )


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
                        meets = data.draw(st.none() | met(any_bench, any_bench.words(pointer, record)))
                        # What is dropped meets nothing.
                        begun = buffer_enabled(registers) and not discard_mode(registers)
                        reference.write(record, meets.fault(any_bench.config, pointer) if meets and begun else None)
                        written |= any_bench.octets(pointer, record[: registers.PMBPTR_EL1 - pointer])
                        driver.send(record, meets)
                    await driver.settle()
                case "collide":
                    reference.collide()
                    await driver.tick(collision=True)
                case "abort" if any_bench.config.external_aborts:
                    reference.abort()
                    await driver.tick(abort=True)
                case "status":
                    stopped = 0  # so that an S which software writes is not taken for an event
                    status = data.draw(st.sampled_from([0, 0, STOPPED]) | boundary_integers(64))
                    await software(PMBSR_EL1, status)
                    stopped = status & STOPPED
            full += registers.PMBSR_EL1 & SYNDROME == FULL and not stopped
            assert driver.pmbptr == registers.PMBPTR_EL1
            assert driver.pmbsr == registers.PMBSR_EL1
            assert driver.full == full
            assert driver.memory == written

    any_bench.drive(scenario)
