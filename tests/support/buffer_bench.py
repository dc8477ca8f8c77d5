"""A test bench of the Profiling Buffer, which compares each cycle with the reference."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any

from amaranth.hdl import C

from spurtle.arch import FM, PMBLIMITR_EL1, PMBPTR_EL1, PMBSR_EL1, Register
from spurtle.config import SPUConfig
from spurtle.gateware.buffer import ProfilingBuffer
from spurtle.interface.memory import WriteFaultKind
from spurtle_sim.model.buffer import Buffer as ReferenceBuffer
from spurtle_sim.model.buffer import Fault, FaultKind, fault_kinds
from spurtle_sim.model.registers import Registers
from tests.support.gateware import Bench, cycle
from tests.support.tiers import configurations, tiers

__all__ = [
    "ALL",
    "BASE",
    "FEW",
    "FULL",
    "PAGE",
    "STOPPED",
    "SYNDROME",
    "BufferBench",
    "Driver",
    "InjectedFault",
    "enable",
]

FEW = tiers(fast=["v1p4"], full=["minimal"], long=["kunpeng_920"])
ALL = configurations(["minimal", "kunpeng_920", "arm_model", "v1p4", "unnamed_packed", "unnamed"])
"""Names of configurations, as parameters of a fixture. `FEW` is for the tests that take long."""

PAGE = 4096
BASE = 0x40_0000
STOPPED = PMBSR_EL1.pack(S=1)
FULL = PMBSR_EL1.pack(S=1, EC=0, MSS=1)
SYNDROME = sum(PMBSR_EL1.fields[name].mask for name in ("S", "EC", "MSS"))


def enable(limit: int, mode: int = FM.FILL) -> int:
    """Return a value for PMBLIMITR_EL1 that enables the buffer."""
    return PMBLIMITR_EL1.pack(E=1, FM=mode, LIMIT=limit >> 12)


@dataclass(frozen=True)
class InjectedFault:
    """A fault that memory reports for a record. The members are those of `interface.memory.FaultLayout`."""

    kind: FaultKind
    word: int = 0
    fsc: int = 0
    external: bool = False
    flags: frozenset[str] = frozenset()

    def members(self, config: SPUConfig) -> Mapping[str, int]:
        """Return the members of the port `write.fault`."""
        return {
            "kind": WriteFaultKind[self.kind.name].value,
            "fsc": self.fsc,
            "word": self.word,
            **({"external": self.external} if config.external_aborts else {}),
            **{flag: flag in self.flags for flag in config.fault_flags},
        }

    def fault(self, config: SPUConfig, pointer: int) -> Fault:
        """Return the fault of the reference, for a record whose first byte is at `pointer`."""
        return Fault(
            kind=self.kind,
            written=self.word * config.bus_bytes - pointer % config.bus_bytes if self.word else 0,
            fsc=self.fsc,
            flags=PMBSR_EL1.pack(**dict.fromkeys(self.flags, 1)),
            external=self.external,
        )


@dataclass
class Written:
    """A record that the buffer sends to memory.

    Attributes
    ----------
    fault : InjectedFault or None
        Answer of memory.
    committing : bool
        The pointer advances when memory answers.
    words : list of dict of int to int
        Bytes of each word that memory has accepted, by address.
    answered_at : int
        Cycle in which memory answers, or -1 until its last beat has been accepted.
    """

    fault: InjectedFault | None
    committing: bool = True
    words: list[dict[int, int]] = field(default_factory=list[dict[int, int]])
    answered_at: int = -1

    @property
    def address(self) -> int:
        """Address of the first byte."""
        return min(self.words[0])

    @property
    def octets(self) -> bytes:
        """The bytes that memory has accepted."""
        return bytes(byte for word in self.words for byte in word.values())


class Driver:
    """Software, the serializer and memory around a buffer, and the reference that checks it in each cycle.

    Parameters
    ----------
    stalls : sequence of bool
        Cycles in which memory does not accept a beat. The first follows the last.
    late : int
        Cycles between the earliest possible `done` of memory and the actual one.
    eager : bool
        Memory writes each word in the cycle in which it accepts it. Otherwise it writes a record when it answers it.

    Attributes
    ----------
    cycle : int
        Number of the present cycle.
    memory : dict of int to int
        Bytes of memory by address.
    outstanding : list of Written
        Records that memory has not answered.
    written : list of Written
        Records whose last beat memory has accepted.
    was_early, was_late : bool
        See `change_while_sending`.
    pmbptr, pmbsr : int
        Registers after the last cycle.
    statuses : set of int
        All values that PMBSR_EL1 has had.
    full : int
        Number of buffer full events.
    full_at : int
        Cycle of the last of them, or -1.
    busy : bool
    transferred_at : list of int
        Cycles in which memory has accepted a beat.
    first_beat_at, done_at : int
        Cycles in which the first beat of the first record is valid, and in which memory reports that record done.
        They are -1 before.
    """

    def __init__(
        self,
        ctx: Any,
        dut: ProfilingBuffer,
        config: SPUConfig,
        stalls: Sequence[bool] = (False,),
        late: int = 0,
        eager: bool = False,
    ):
        self._ctx, self._dut, self._config = ctx, dut, config
        self._stalls, self._late, self._eager = stalls, late, eager
        self._beats: list[tuple[int, bool, int]] = []
        self._injected: list[InjectedFault | None] = []  # of each record that the buffer has not accepted
        self._stalled: tuple[int, ...] | None = None
        self.cycle = 0
        self._registers = Registers()
        self._reference = ReferenceBuffer(config, self._registers)
        self.outstanding: list[Written] = []
        self._answered: Written | None = None  # in the previous cycle
        self._discarding = False  # a fault has been reported, and records are outstanding
        self._begun = False  # a record was accepted for writing in the previous cycle
        self.memory: dict[int, int] = {}
        self.written: list[Written] = []
        self.was_early = self.was_late = False
        self.pmbptr = self.pmbsr = self.full = 0
        self.statuses: set[int] = set()
        self.busy = False
        self.first_beat_at = self.done_at = -1
        self.transferred_at: list[int] = []
        self.full_at = -1

    def send(self, record: bytes, fault: InjectedFault | None = None) -> None:
        """Send a record to the buffer. Memory reports `fault` for it."""
        size, align = self._config.bus_bytes, self._config.layout.align
        for at in range(0, len(record), size):
            beat = record[at : at + size]
            last = at + size >= len(record)
            self._beats.append((int.from_bytes(beat, "little"), last, len(beat) % size // align if last else 0))
        self._injected.append(fault)

    async def tick(
        self,
        register: Register | None = None,
        value: int = 0,
        *,
        collision: bool = False,
        abort: bool = False,
        new_owner: bool = False,
    ) -> None:
        """Advance by one cycle, in which software may write a register and the owner of the buffer may change."""
        dut = self._dut
        record = self.outstanding[0] if self.outstanding else None
        done = record is not None and record.answered_at == self.cycle
        access = [
            (dut.pmblimitr_write, register is PMBLIMITR_EL1),
            (dut.pmbptr_write, register is PMBPTR_EL1),
            (dut.pmbsr_write, register is PMBSR_EL1),
            (dut.wdata, value),
        ]
        inputs = [*self._stimulus(record), *access, (dut.collision, collision), (dut.new_owner, new_owner)]
        inputs += [(dut.write.abort, abort)] if hasattr(dut.write, "abort") else []
        outputs = (dut.i.ready, dut.write.beat.valid, dut.write.beat.ready, dut.write.beat.payload.as_value())
        status = (dut.full, dut.active, dut.running, dut.accepted, dut.busy)
        discard = getattr(dut.write, "discard", C(0))
        beat_accepted, valid, ready, payload, full, active, running, accepted, busy, discards = await cycle(
            self._ctx, inputs, *outputs, *status, discard
        )
        enabled = self._registers.PMBLIMITR_EL1 & 1 and not self._registers.PMBSR_EL1 & STOPPED
        assert active == bool(enabled)
        assert running == (active and not new_owner)
        writing = running and PMBLIMITR_EL1.unpack(self._registers.PMBLIMITR_EL1).FM != FM.DISCARD
        assert valid or not self._begun, "the first beat must be valid in the cycle after `accepted`"
        self._begun = bool(accepted and writing)
        assert discards == (self._discarding and hasattr(dut.write, "discard"))
        if valid and self.first_beat_at < 0:
            self.first_beat_at = self.cycle
        if done and self.done_at < 0:
            self.done_at = self.cycle
        if full:
            self.full += 1
            self.full_at = self.cycle
        self.busy = bool(busy)
        if not busy:
            self._check_idle()
        self._follow(register, value, collision, abort, running, accepted, writing, full)
        if self._stalled is not None:
            assert (valid, payload) == self._stalled, "a stalled beat must hold its value"
        self._stalled = (valid, payload) if valid and not ready else None
        if valid and ready:
            self.transferred_at.append(self.cycle)
            self._transfer(dut.write.beat.payload.shape().from_bits(payload))
        if done:
            self._answer()
        if beat_accepted and self._beats:
            self._beats.pop(0)
        self.cycle += 1
        self._check_registers()

    def _check_registers(self) -> None:
        """Compare PMBPTR_EL1 and PMBSR_EL1 with the reference."""
        self.pmbptr = self._ctx.get(self._dut.pmbptr)
        self.pmbsr = self._ctx.get(self._dut.pmbsr.as_value())
        self.statuses.add(self.pmbsr)
        registers = (self._registers.PMBPTR_EL1, self._registers.PMBSR_EL1)
        assert (self.pmbptr, self.pmbsr) == registers, (
            f"cycle {self.cycle}: {self.pmbptr:#x} {self.pmbsr:#x}, not {registers[0]:#x} {registers[1]:#x}"
        )

    def _stimulus(self, record: Written | None) -> list[tuple[Any, int]]:
        """Return the inputs of this cycle from the serializer, from memory and from PMBLIMITR_EL1."""
        dut = self._dut
        data, last, end = self._beats[0] if self._beats else (0, False, 0)
        done = record is not None and record.answered_at == self.cycle
        return [
            (dut.i.valid, bool(self._beats)),
            (dut.i.p.data, data),
            (dut.i.p.last, last),
            *([(dut.i.p.end, end)] if hasattr(dut.i.p, "end") else []),
            (dut.write.beat.ready, not self._stalls[self.cycle % len(self._stalls)]),
            (dut.write.done, done),
            (dut.write.fault.as_value(), self._fault_value(done, record and record.fault)),
            (dut.pmblimitr.as_value(), self._registers.PMBLIMITR_EL1),
        ]

    def _fault_value(self, done: bool, injected: InjectedFault | None) -> int:
        """Return the value of the port `write.fault`. It is all ones where the buffer must ignore it."""
        layout = self._dut.write.fault.shape()
        fault = (1 << layout.size) - 1
        if done:
            members = {"kind": WriteFaultKind.NONE.value} if injected is None else injected.members(self._config)
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
        accepted: bool,
        writing: bool,
        full: bool,
    ) -> None:
        """Advance the reference by one cycle.

        A write of PMBSR_EL1 by software takes effect first, and one of PMBPTR_EL1 last. The answer of memory takes
        effect in the cycle after `done`.
        """
        if register is PMBSR_EL1:
            self._registers.write(self._config, register, value)
        if collision:
            self._reference.collide()
        if full:
            assert not self.outstanding and self._answered is None, "a fault must precede a full buffer"
            self._reference.stop_if_full()
            assert self._registers.PMBSR_EL1 & STOPPED
        if self._answered is not None:
            self._end(self._answered, running)
        if abort:
            self._reference.abort()
        self._answered = None
        if accepted:
            injected = self._injected.pop(0)
            if writing:
                self.outstanding.append(Written(injected))
                assert len(self.outstanding) <= self._config.outstanding
        if not running or register is PMBPTR_EL1 or register is PMBLIMITR_EL1:
            for record in self.outstanding:
                record.committing = False
        if register is PMBPTR_EL1 or register is PMBLIMITR_EL1:
            self._registers.write(self._config, register, value)

    def _check_idle(self) -> None:
        """Check that PMBPTR_EL1 and PMBSR_EL1 show everything."""
        assert not self.outstanding
        assert self._answered is None
        registers = copy(self._registers)
        ReferenceBuffer(self._config, registers).stop_if_full()
        assert registers.PMBSR_EL1 == self._registers.PMBSR_EL1, "the buffer is full and not busy"

    def _end(self, record: Written, running: bool) -> None:
        """End a record in the reference."""
        fault = record.fault.fault(self._config, record.address) if record.fault is not None else None
        if record.committing and running:
            self._reference.end(len(record.octets), fault)
        else:
            self._reference.abandon(fault)

    def _transfer(self, beat: Any) -> None:
        """Accept a beat of the oldest record that is not complete."""
        assert beat.address % self._config.bus_bytes == 0
        record = next(record for record in self.outstanding if record.answered_at < 0)
        # Each beat writes at least one byte, and the bytes of a record are contiguous.
        strobed = [byte for byte in range(self._config.bus_bytes) if beat.strobe >> byte & 1]
        assert strobed
        word = {beat.address + byte: beat.data >> 8 * byte & 0xFF for byte in strobed}
        addresses = list(word)
        assert addresses == list(range(addresses[0], addresses[-1] + 1))
        assert not record.words or addresses[0] == max(record.words[-1]) + 1
        record.words.append(word)
        if self._eager and not self._discarding:
            self._write(record, len(record.words) - 1)
        if beat.last:
            self.written.append(record)
            last = max((each.answered_at for each in self.outstanding), default=-1)
            record.answered_at = max(self.cycle + 1 + self._late, last + 1)

    def _write(self, record: Written, number: int) -> None:
        """Write a word of the record to memory, unless it or an earlier word has a fault."""
        if record.fault is None or number < record.fault.word:
            self.memory |= record.words[number]

    def _answer(self) -> None:
        """End the cycle in which memory answers the oldest record. The later ones are abandoned if it has a fault."""
        record = self.outstanding.pop(0)
        if not self._eager and not self._discarding:
            for number in range(len(record.words)):
                self._write(record, number)
        self._answered = record
        if record.fault is not None:
            self._discarding = True
            for later in self.outstanding:
                later.committing = False
        self._discarding = self._discarding and bool(self.outstanding)

    @property
    def idle(self) -> bool:
        """Whether the buffer has accepted all records."""
        return not self._beats

    async def write(self, register: Register, value: int) -> None:
        """Write a register, and wait until the buffer is idle."""
        await self.tick(register, value)
        await self.settle()

    async def change_while_sending(
        self, record: bytes, arrives: int, cycle: int, fault: InjectedFault | None = None, **change: Any
    ) -> None:
        """Send a record, and change something in any cycle around it.

        Set `was_early` if the change took effect no later than the cycle in which the buffer captures the address of
        the record, and `was_late` if it took effect after the record was done.

        Parameters
        ----------
        record : bytes
        arrives : int
            The cycle from now in which the record arrives.
        cycle : int
            The cycle from now of the change.
        fault : InjectedFault or None
        change
            Arguments of `tick` in that cycle.
        """
        begin = self.cycle
        for now in range(max(arrives, cycle) + 2):
            if now == arrives:
                self.send(record, fault)
            await self.tick(**change if now == cycle else {})
        await self.settle()
        # The buffer captures the address of a record in the cycle before its first beat. A write of software takes
        # effect in the next cycle.
        effect = begin + cycle + ("new_owner" not in change)
        self.was_early = effect < self.first_beat_at
        self.was_late = effect > self.done_at + 1

    async def settle(self) -> None:
        """Advance until all records have been written or dropped, and PMBSR_EL1 is up to date."""
        changed_at, last = self.cycle, None
        while last is None or self._beats or self.busy or self.outstanding:
            await self.tick()
            progress = len(self._beats), len(self.transferred_at), len(self.outstanding)
            if progress != last:
                changed_at, last = self.cycle, progress
            assert self.cycle < changed_at + self._late + 100, "the buffer hangs"
        for _ in range(3):
            await self.tick()
        self._reference.stop_if_full()
        assert self.pmbsr == self._registers.PMBSR_EL1, "the buffer is full, and PMBSR_EL1 does not report it"

    async def start(self, pointer: int, limit: int) -> None:
        """Enable the buffer."""
        await self.write(PMBPTR_EL1, pointer)
        await self.write(PMBLIMITR_EL1, enable(limit))


class BufferBench(Bench):
    """A Profiling Buffer in the simulator.

    Attributes
    ----------
    align : int
        Alignment of records.
    required : int
        Free bytes below the limit that the buffer requires to accept a record.
    size : int
        Size of the records of `record`: the longest, which need not be a multiple of the bus width.
    """

    def __init__(self, config: SPUConfig):
        self.config = config
        self.align = config.layout.align
        self.required = config.max_record_bytes
        self.size = config.layout.longest(config.packet_bytes) // self.align * self.align
        self.dut = ProfilingBuffer(config)
        super().__init__(self.dut)

    def drive(self, scenario: Callable[[Driver], Any], **pace: Any) -> Driver:
        """Run a scenario from reset. Return its driver. `pace` are parameters of `Driver`."""

        async def main(ctx: Any) -> Driver:
            driver = Driver(ctx, self.dut, self.config, **pace)
            await scenario(driver)
            return driver

        return self.run(main)

    def record(self, number: int) -> bytes:
        """Return the bytes of a record."""
        return bytes((number * 37 + byte) & 0xFF for byte in range(self.size))

    def words(self, address: int, record: bytes) -> int:
        """Return the number of words of memory that a record at `address` occupies."""
        return -(-(address % self.config.bus_bytes + len(record)) // self.config.bus_bytes)

    @property
    def kinds(self) -> list[FaultKind]:
        """The kinds of fault that the configuration has."""
        return fault_kinds(self.config)

    def octets(self, address: int, record: bytes) -> dict[int, int]:
        """Return the bytes of a record at `address`, by their addresses."""
        return dict(enumerate(record, address))
