"""The Profiling Buffer in simulation, compared with the reference's in each cycle."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spurtle.arch import FM, PMBLIMITR_EL1, PMBPTR_EL1, PMBSR_EL1, Register
from spurtle.config import SPUConfig
from spurtle.gateware.buffer import ProfilingBuffer
from spurtle.interface.memory import WriteFaultKind
from spurtle_sim.model.buffer import Buffer as ReferenceBuffer
from spurtle_sim.model.buffer import Fault, FaultKind, fault_kinds
from spurtle_sim.model.registers import Registers
from tests.support.gateware import Bench, cycle
from tests.support.tiers import configurations, tiers

__all__ = ["ALL", "BASE", "FEW", "FULL", "PAGE", "STOPPED", "SYNDROME", "BufferBench", "Driver", "Meets", "enable"]

FEW = tiers(fast=["v1p4"], full=["minimal", "kunpeng_920"])
ALL = configurations(["minimal", "kunpeng_920", "arm_model", "v1p4", "unnamed_packed", "unnamed"])
"""Names of the configurations of a buffer, as parameters of a fixture."""

PAGE = 4096
BASE = 0x40_0000
STOPPED = PMBSR_EL1.pack(S=1)
FULL = PMBSR_EL1.pack(S=1, EC=0, MSS=1)
SYNDROME = sum(PMBSR_EL1.fields[name].mask for name in ("S", "EC", "MSS"))


def enable(limit: int, mode: int = FM.FILL) -> int:
    return PMBLIMITR_EL1.pack(E=1, FM=mode, LIMIT=limit >> 12)


@dataclass(frozen=True)
class Meets:
    """Fault of a record in memory: the members of `interface.memory.FaultLayout`."""

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
        more = (dut.full, dut.running, dut.writing, dut.accepted, dut.busy)
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
                self._reference.abandon(fault)
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
