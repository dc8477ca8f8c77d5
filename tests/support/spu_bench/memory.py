"""Memory: it takes the beats of records, compares them with the reference, and answers."""

from typing import Any

from spurtle.arch import PMBSR_EL1, OperationClass
from spurtle.interface.memory import BeatLayout
from spurtle_sim.cosim.pack import fault_bits
from spurtle_sim.model import control, records
from spurtle_sim.model.buffer import Fault, fault_kinds
from spurtle_sim.records.decode import decode_records
from tests.support.spu_bench.flight import NEVER, Access, Flight
from tests.support.spu_bench.state import BUFFER, STOPPED, State, discarding

__all__ = ["PAGE", "Memory"]

PAGE = 4096


class Memory(State):
    """Records on their way to memory, and memory's answers."""

    def release(self, flight: Flight) -> None:
        """The sample is taken in this cycle: its place is free for another, and with one slot so is that."""
        self.completion.free(self.now + 2)
        if self.config.slots == 1:
            self.slots[flight.slot].free(self.now + 1)

    def drop(self) -> None:
        """The buffer did not run, so the record that waits leaves no beat. When its place is free depends."""
        assert self.waiting
        self.coverage["dropped while stopped"] += 1
        self.completion.busy_until = self.now
        if self.config.slots == 1:
            self.slots[0].busy_until = self.now
        self.waiting = None

    def doubt(self, flight: Flight) -> None:
        """It waits in discard mode, and is dropped if the buffer looks at it now. That moment is not known here."""
        flight.doubtful = True
        self.completion.busy_until = self.now
        if self.config.slots == 1:
            self.slots[0].busy_until = self.now

    def resolve_doubt(self) -> None:
        """The SPU is done with all records, or with the one that waited."""
        if self.waiting and self.waiting.doubtful:
            self.waiting = None
            self.coverage["dropped in discard mode, while it waited"] += 1

    def count_full(self, stopped: int) -> None:
        """After something that may have filled the buffer. S follows later than the reference has it."""
        if self.registers.PMBSR_EL1 & STOPPED and not stopped:
            self.settled_from = self.now + self.settling
            self.expected["buffer_full"] += 1
            self.coverage["buffer full"] += 1

    def take_beat(self, taken: bool) -> None:
        if self.writing is None:
            self._begin()
        flight = self.writing
        assert flight
        beat: Any = BeatLayout(self.config).from_bits(int(self.dut.write__beat__payload.value))
        # What it has to be, as the record is known.
        record = records.encode(self.config, flight.sample)
        at = flight.address + len(flight.octets)
        low = at % self.config.bus_bytes
        size = min(self.config.bus_bytes - low, len(record) - len(flight.octets))
        where = f"cycle {self.now}: a beat at {beat.address:#x} of the record at {flight.address:#x}"
        assert beat.address == at - low, where
        assert beat.strobe == (1 << size) - 1 << low, f"{where}: strobe {beat.strobe:#x}, for {size} bytes from {low}"
        assert beat.last == (len(flight.octets) + size == len(record)), where
        if beat.last:
            self._release_by(flight)
        if not taken:
            return
        octets = (beat.data >> 8 * low).to_bytes(self.config.bus_bytes, "little")[:size]
        flight.octets += octets
        self.memory |= {at + number: octet for number, octet in enumerate(octets)}
        if beat.last:
            assert bytes(flight.octets) == record, f"{flight.octets.hex()} is not {record.hex()} of {flight.sample}"
            self.written |= {flight.address + number: octet for number, octet in enumerate(record)}
            self._check_record(record, flight)
            self.writing, self.responding = None, flight
            # Not while software is at the buffer's registers: which of the two comes first is not known here.
            soonest = self.now + 1 + bool(self.coming and self.coming.target in BUFFER)
            self.responds_at = soonest + self.random.choice([0, 0, 1, self.random.randrange(60)])

    def _begin(self) -> None:
        """The record that waits is being written. It was begun in the cycle before, where the pointer was then."""
        assert self.waiting and not self.responding, f"cycle {self.now}: a beat that belongs to no record"
        flight, self.waiting = self.waiting, None
        assert not discarding(self.earlier), f"cycle {self.now}: a record is begun in discard mode"
        if flight.doubtful:
            self.coverage["written, though discard mode came and went while it waited"] += 1
        flight.begun, flight.address = self.now, self.last_pointer
        limit = self.earlier.PMBLIMITR_EL1 & -PAGE
        assert flight.address + self.config.max_record_bytes <= limit, f"cycle {self.now}: a beat beyond LIMIT"
        self.coverage["begun within a word"] += flight.address % self.config.bus_bytes != 0
        self.writing = flight
        # From now on the sample can be taken: its place is free for another, and with one slot so is that.
        self.completion.busy_until = self.now + 2
        if self.config.slots == 1:
            self.slots[0].busy_until = self.now + 1

    def _release_by(self, flight: Flight) -> None:
        """Its last beat is there: the sample has been taken, in this cycle at the latest."""
        self.completion.free_by(flight, self.now + 2)
        if self.config.slots == 1:
            self.slots[0].free_by(flight, self.now + 1)

    def _check_record(self, record: bytes, flight: Flight) -> None:
        """By what knows nothing of the sample; and what it holds."""
        sample, pe = flight.sample, flight.pe
        wrong = self.monitor.check(record)
        assert not wrong, f"{wrong} in {record.hex()} of {sample}"
        (decoded,) = decode_records(record)
        operation = decoded.operation_packet
        self.coverage["not retired" if operation is None else OperationClass(operation[0]).name] += 1
        held = [packet.value for packet, _ in records.packets(self.config, sample)]
        self.coverage.update(held)
        self.coverage[f"{control.owner(self.config, pe)}"] += 1
        self.coverage[f"EL{pe.el}"] += 1
        if sample.start.timestamp is not None:
            offset = pe.physical_count - sample.start.timestamp & (1 << 64) - 1
            kinds = {pe.cntvoff_el2: "virtual", pe.cntpoff_el2: "physical", 0: "none"}
            self.coverage[f"offset {kinds[offset]}"] += 1
        facts = sample.operation.facts
        if decoded.operation and decoded.operation.form == "nv2" and facts.va_valid and not facts.exception:
            self.coverage[f"NV2 {'without' if decoded.va is None else 'with'} its address"] += 1

    def drive_response(self, made: Access | None) -> None:
        """Memory's answer, and what it is told without one."""
        done = self.now == self.responds_at
        self.drive("write__done", done)
        if done:
            assert self.responding
            self.meets = self._fault(self.responding) if self.random.random() < self.faulty else None
            told = fault_bits(self.config, self.responding.address, self.meets)
        else:
            told = self.random.getrandbits(self.fault_bits)
        self.drive("write__fault", told)
        # Not while it is to show that the buffer is full: which of the two comes first is not known here.
        settled = self.now >= self.settled_from and not done and not (made and made.target in BUFFER)
        self.aborts = self.config.external_aborts and settled and self.random.random() < self.aborting
        if self.config.external_aborts:
            self.drive("write__abort", self.aborts)
            self.coverage["abort"] += self.aborts

    def _fault(self, flight: Flight) -> Fault:
        """What the write of this record can meet."""
        random, config = self.random, self.config
        written = 0
        if random.random() < 0.7:
            # Whole words of memory; the first and the last may be the record's in part.
            ends = range(-flight.address % config.bus_bytes or config.bus_bytes, len(flight.octets), config.bus_bytes)
            written = random.choice([0, *ends])
        return Fault(
            kind=random.choice(fault_kinds(config)),
            written=written,
            fsc=random.getrandbits(6),
            flags=random.getrandbits(64) & sum(PMBSR_EL1.fields[flag].mask for flag in config.fault_flags),
            external=bool(config.external_aborts and random.getrandbits(1)),
        )

    def respond(self) -> None:
        assert self.responding
        flight, self.responding = self.responding, None
        self.responds_at = NEVER
        if flight.halted <= self.now or self.pointer_written >= flight.begun - 1:
            self.coverage["discarded while being written"] += 1
            self.reference.buffer.abandon(self.meets)
            return
        if self.meets:
            self.faulting = flight
            return
        record = bytes(flight.octets)
        assert self.reference.buffer.write(record)
        assert self.reference.buffer.memory[flight.address] == record
        if self.registers.PMBSR_EL1 & STOPPED:
            self.count_full(0)

    def stop_at_fault(self) -> None:
        """The cycle after memory has answered with a fault."""
        assert self.faulting and self.meets
        flight, self.faulting = self.faulting, None
        if flight.halted <= self.now:
            self.coverage["discarded while being written"] += 1
            self.reference.buffer.abandon(self.meets)
            return
        assert not self.reference.buffer.write(bytes(flight.octets), self.meets)
        self.coverage.update([self.meets.kind.name, f"a fault {'in' if self.meets.written else 'before'} a record"])
