"""Core, memory and scoreboard around the generated Verilog of a whole SPU, for cocotb.

Whatever the reference has an opinion on is checked in each cycle; memory and PMU events when the SPU has been drained.
"""

from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

from cocotb.triggers import Timer
from gateware import operation_bits, random_operation

from spurtle import spu, verilog
from spurtle.arch import PMBIDR_EL1, PMBLIMITR_EL1, PMBPTR_EL1, PMBSR_EL1, Header, OperationClass, Register
from spurtle.config import SPUConfig
from spurtle.layout import Packet
from spurtle.pe import Beat, Outcome
from spurtle_sim.reference import control, filtering, records
from spurtle_sim.reference.control import PEState
from spurtle_sim.reference.records import Operation, Sample, Start
from spurtle_sim.reference.spu import SPU

__all__ = ["BUFFER", "PAGE", "STOPPED", "Bench"]

STOPPED = PMBSR_EL1.pack(S=1)
PAGE = 4096
NEVER = 1 << 62
BUFFER = (PMBLIMITR_EL1, PMBPTR_EL1, PMBSR_EL1)
EVENTS = ("pop", "feed", "filtrate", "collision", "buffer_full")


@dataclass
class Flight:
    """A sampled operation, from the cycle in which it passed until memory has its record."""

    passed: int
    start: Start
    finish_at: int
    issue_at: int
    vanishes: bool
    operation: Operation
    translation: int = 0
    issued: int | None = None
    finished: int = NEVER
    halted: int = NEVER
    """First cycle after it passed in which the buffer did not run."""
    begun: int = NEVER
    address: int = 0
    octets: bytearray = field(default_factory=bytearray)

    @property
    def latencies(self) -> dict[str, int]:
        total = self.finished - self.passed
        issue = total if self.issued is None else self.issued - self.passed
        return {"total": total, "issue": issue, "translation": self.translation}

    @property
    def sample(self) -> Sample:
        return Sample(start=self.start, operation=self.operation, **self.latencies)


class Bench:
    """Core, memory and scoreboard around the SPU. Time moves in `cycle` alone.

    Parameters
    ----------
    dut
        The module in the simulator.
    config : SPUConfig
        What it was generated from.
    random : Random
        Decides everything.
    """

    def __init__(self, dut: Any, config: SPUConfig, random: Random):
        self.dut = dut
        self.config = config
        self.random = random
        self.reference = SPU(config)
        self.registers = self.reference.registers
        self.coverage = Counter[str]()
        self.now = 1
        self.operations = 0
        self.expected = dict.fromkeys(EVENTS, 0)
        self.counted = dict.fromkeys(EVENTS, 0)
        self.pe = PEState(physical_count=self.random.getrandbits(63))
        # A selected one waits for its answer, is in flight, has finished; its record waits, is written, answered.
        self.selected: tuple[int, Start] | None = None
        self.flight: Flight | None = None
        self.finished: Flight | None = None
        self.waiting: Flight | None = None
        self.writing: Flight | None = None
        self.responding: Flight | None = None
        self.responds_at = NEVER
        # A selection collides for sure before the one cycle, and is sampled for sure from the other.
        self.busy_until = self.free_from = 0
        self.memory: dict[int, int] = {}
        self.written: dict[int, int] = {}
        self.patience = 1.0
        self.pointer = self.last_pointer = self.pointer_written = 0
        self.answer: tuple[Register, int] | None = None
        self.draining = self.drained = False
        self.settled_from = 0

    async def reset(self) -> None:
        for port in verilog.ports(spu.SPU(self.config)):
            if port.direction == "in":
                getattr(self.dut, port.name).value = 0
        for level in (0, 1, 0, 1):
            self.dut.rst.value = 1
            self.dut.clk.value = level
            await Timer(5, "ns")
        self.dut.rst.value = 0

    async def cycle(self, *, passes: bool = False, access: tuple[Register, int | None] | None = None) -> None:
        """One clock cycle, in which an operation may pass, or software at EL1 may read or write a register."""
        dut = self.dut
        self.last_pointer, self.pointer = self.pointer, self.registers.PMBPTR_EL1
        self._drive_pe(passes, access)
        self._drive_flight()
        ready = self.random.random() < self.patience
        dut.write__beat__ready.value = ready
        dut.write__done.value = self.now == self.responds_at
        dut.drain__request.value = self.draining
        dut.clk.value = 0
        await Timer(5, "ns")

        for name in EVENTS:
            self.counted[name] += int(getattr(dut, f"pmu__sample_{name}").value)
        self.coverage[f"slot {int(dut.inflight_slot_state.value)}"] += 1
        self.coverage[f"buffer {int(dut.buffer_buffer_state.value)}"] += 1
        self.drained = bool(int(dut.drain__done.value))
        self._check_registers()
        collides = self._check_answer()
        if not control.buffer_enabled(self.registers):
            for flight in (self.flight, self.finished, self.waiting, self.writing, self.responding):
                if flight:
                    flight.halted = min(flight.halted, self.now)
        if passes:
            self._pass()
        self._filter()
        if self.waiting and self.waiting.halted < self.now:
            self._drop()
        if int(dut.write__beat__valid.value):
            self._beat(ready)
        if self.now == self.responds_at:
            self._respond()
        if access:
            self._access(*access)
        if collides:  # software's access in this cycle comes first
            self.reference.collide()

        dut.clk.value = 1
        await Timer(5, "ns")
        self.now += 1

    # The core.

    def _drive_pe(self, passes: bool, access: tuple[Register, int | None] | None) -> None:
        dut, pe = self.dut, self.pe
        self.pe = PEState(
            el=pe.el, ns=pe.ns, debug=pe.debug, aarch32=pe.aarch32, contextidr_el1=pe.contextidr_el1,
            physical_count=pe.physical_count + 1,
        )  # fmt: skip
        dut.pe__el.value = 1 if access else pe.el
        for name in PEState.__slots__[1:]:
            getattr(dut, f"pe__{name}").value = getattr(self.pe, name)
        dut.sampling__valid.value = passes
        dut.sysreg__valid.value = access is not None
        if access:
            register, value = access
            dut.sysreg__op1.value, dut.sysreg__crm.value, dut.sysreg__op2.value = (
                register.op1,
                register.crm,
                register.op2,
            )
            dut.sysreg__write.value = value is not None
            dut.sysreg__wdata.value = value or 0

    def _drive_flight(self) -> None:
        dut, flight = self.dut, self.flight
        issued = translating = finishes = False
        if flight:
            finishes = self.now >= flight.finish_at and not self.draining  # nothing finishes during PSB CSYNC
            issued = self.now == flight.issue_at
            translating = self.random.random() < 0.3
            if finishes:
                flight.finished = self.now
                dut.finish__operation.value = operation_bits(self.config, flight.operation)
                dut.finish__vanished.value = flight.vanishes
            else:
                flight.translation += translating
            if issued:
                flight.issued = self.now
        dut.in_flight__issued.value = issued
        dut.in_flight__translating.value = translating
        dut.finish__valid.value = finishes

    def move_pe(self, profiled: bool) -> None:
        """Another process; if not `profiled`, also any Exception level and state, most of which are not profiled."""
        bits = self.random.getrandbits
        self.pe = PEState(
            el=bits(1) if profiled else bits(2),
            ns=1 if profiled else bits(1),
            debug=0 if profiled else self.random.random() < 0.2,
            aarch32=0 if profiled else self.random.random() < 0.2,
            contextidr_el1=bits(32),
            physical_count=self.pe.physical_count,
        )

    # What the reference says about this cycle.

    def _check_registers(self) -> None:
        if self.now >= self.settled_from:
            stopped = self.registers.PMBSR_EL1 & STOPPED != 0
            assert bool(int(self.dut.pmbirq.value)) == stopped, f"cycle {self.now}: PMBIRQ is not {stopped}"
        if self.answer:
            register, expected = self.answer
            self.answer = None
            assert int(self.dut.sysreg__outcome.value) == Outcome.VALUE.value, register.name
            value = int(self.dut.sysreg__rdata.value)
            assert value == expected, f"cycle {self.now}: {register.name} is {value:#x}, not {expected:#x}"

    def _access(self, register: Register, value: int | None) -> None:
        if value is None:
            p = PMBIDR_EL1.pack(P=1) if register is PMBIDR_EL1 and not self.pe.ns else 0
            self.answer = register, self.reference.read(register) | p
            return
        stopped = (value if register is PMBSR_EL1 else self.registers.PMBSR_EL1) & STOPPED
        self.reference.write(register, value)
        self.answer = register, 0
        if register in BUFFER:
            self._count_full(stopped)
        if register in (PMBLIMITR_EL1, PMBPTR_EL1):
            self.pointer_written = self.now

    def _count_full(self, stopped: int) -> None:
        """After something that may have filled the buffer. S follows two cycles later than the reference has it."""
        self.settled_from = self.now + 3
        if self.registers.PMBSR_EL1 & STOPPED and not stopped:
            self.expected["buffer_full"] += 1
            self.coverage["buffer full"] += 1

    def _pass(self) -> None:
        self.operations += 1
        self.expected["pop"] += control.profiling_enabled(self.registers, self.pe)
        if self.reference.pass_operation(self.pe):
            self.selected = self.now, self.reference.start(self.pe)

    def _check_answer(self) -> bool:
        """Whether the operation of the cycle before was sampled, and might be. True for a collision."""
        sampled = bool(int(self.dut.sampling__sampled.value))
        if self.selected is None or self.selected[0] == self.now:
            assert not sampled, f"cycle {self.now}: sampled without being selected"
            return False
        (passed, start), self.selected = self.selected, None
        if not sampled:
            assert self.now < self.free_from, f"cycle {self.now}: a collision, while the slot is free"
            self.expected["collision"] += 1
            self.coverage["collision"] += 1
            return True
        assert self.now >= self.busy_until, f"cycle {self.now}: sampled, while the slot is taken"
        self.busy_until = self.free_from = NEVER
        random = self.random
        total = 2 + random.choice([0, 0, 1, random.randrange(10), random.randrange(150)])
        self.flight = Flight(
            passed=passed,
            start=start,
            finish_at=passed + total,
            issue_at=passed + random.randint(2, total + 1),
            vanishes=random.random() < 0.1,
            operation=random_operation(random, self.config),
        )
        return False

    def _filter(self) -> None:
        """The filter looks at an operation in the cycle after it finished."""
        if self.finished:
            finished, self.finished = self.finished, None
            self.expected["feed"] += 1
            if filtering.collect(self.config, self.registers, finished.sample):
                self.expected["filtrate"] += 1
                self.waiting = finished
            else:
                self.coverage["filtered out"] += 1
                self.busy_until = self.free_from = finished.finished + 4
        if self.flight and self.flight.finished == self.now:
            flight, self.flight = self.flight, None
            if flight.vanishes:
                self.coverage["vanished"] += 1
                self.busy_until = self.free_from = self.now + 2
            else:
                self.finished = flight

    # Memory.

    def _drop(self) -> None:
        """The buffer did not run, so the record that waits leaves no beat. When its slot is free depends."""
        self.coverage["dropped while stopped"] += 1
        self.waiting = None
        self.busy_until = self.now

    def _beat(self, taken: bool) -> None:
        if self.writing is None:
            assert self.waiting and not self.responding, f"cycle {self.now}: a beat that belongs to no record"
            flight, self.waiting = self.waiting, None
            flight.begun, flight.address = self.now, self.last_pointer
            limit = self.registers.PMBLIMITR_EL1 & -PAGE
            rewritten = self.pointer_written >= self.now - 2
            assert rewritten or flight.address + self.config.record_bytes <= limit, (
                f"cycle {self.now}: a beat beyond LIMIT"
            )
            self.writing = flight
        if not taken:
            return
        flight = self.writing
        beat = Beat(self.config).from_bits(int(self.dut.write__beat__payload.value))
        where = f"cycle {self.now}: a beat at {beat.address:#x} of the record at {flight.address:#x}"
        assert beat.address == flight.address + len(flight.octets), where
        flight.octets += beat.data.to_bytes(self.config.bus_bytes, "little")
        self.memory |= {beat.address + at: beat.data >> 8 * at & 0xFF for at in range(self.config.bus_bytes)}
        left = self.config.record_bytes - len(flight.octets)
        assert beat.last == (left == 0), where
        if left == self.config.bus_bytes:
            # With this beat the serializer has taken the last one, which frees the slot.
            self.busy_until = self.free_from = self.now + 2
        if beat.last:
            record = records.encode(self.config, flight.sample)
            assert bytes(flight.octets) == record, f"{flight.octets.hex()} is not {record.hex()} of {flight.sample}"
            self.written |= {flight.address + at: octet for at, octet in enumerate(record)}
            self.writing, self.responding = None, flight
            self.responds_at = self.now + 1 + self.random.choice([0, 0, 1, self.random.randrange(60)])

    def _respond(self) -> None:
        assert self.responding
        flight, self.responding = self.responding, None
        self.responds_at = NEVER
        if flight.halted <= self.now or self.pointer_written >= flight.begun - 1:
            self.coverage["discarded while being written"] += 1
            return
        record = self.reference.finish(flight.start, flight.operation, **flight.latencies)
        assert record == bytes(flight.octets)
        assert self.reference.buffer.memory[flight.address] == record
        operation = record[self.config.packet_offsets[Packet.OPERATION]]
        self.coverage["not retired" if operation == 0 else OperationClass(operation - Header.OPERATION).name] += 1
        if self.registers.PMBSR_EL1 & STOPPED:
            self._count_full(0)
