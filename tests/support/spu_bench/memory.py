"""Memory: it accepts the beats of records, compares them with the reference, and reports done or faults."""

from typing import Any

from spurtle.arch import PMBSR_EL1, OperationClass
from spurtle.interface.memory import BeatLayout
from spurtle_sim.cosim.pack import fault_bits
from spurtle_sim.model import control, records
from spurtle_sim.model.buffer import Fault, fault_kinds
from spurtle_sim.records.decode import decode_records
from tests.support.spu_bench.flight import Access, Flight
from tests.support.spu_bench.state import BUFFER, STOPPED, State, discarding

__all__ = ["PAGE", "Memory"]

PAGE = 4096


class Memory(State):
    """Records on their way to memory, and the responses of memory."""

    def release(self, flight: Flight) -> None:
        """Record that the sample is accepted in the next cycle, which frees the completion stage, or the only slot."""
        # The next sample is filtered in the next cycle at the earliest, and its verdict is used one cycle later.
        self.completion.release(self.now + 3 + self.moving)
        if self.config.slots == 1:
            self.slots[flight.slot].release(self.now + 2)

    def drop(self) -> None:
        """Drop the pending record, because the buffer did not run. When its stage is free is not known."""
        assert self.waiting
        self.coverage["dropped while stopped"] += 1
        self.completion.busy_until = self.now
        if self.config.slots == 1:
            self.slots[0].busy_until = self.now
        self.waiting = None

    def mark_maybe_dropped(self, flight: Flight) -> None:
        """Mark a pending record in Discard mode: it is dropped if the buffer accepts it now, which is not known."""
        flight.maybe_dropped = True
        self.completion.busy_until = self.now
        if self.config.slots == 1:
            self.slots[0].busy_until = self.now

    def resolve_maybe_dropped(self) -> None:
        """Drop the pending record if it may have been dropped. No record is pending in the SPU."""
        if self.waiting and self.waiting.maybe_dropped:
            self.waiting = None
            self.coverage["dropped in Discard mode while pending"] += 1

    def count_full(self, stopped: int) -> None:
        """Count a buffer full event after a change that may have filled the buffer.

        The SPU sets PMBSR_EL1.S later than the reference does. `stopped` is not zero if S was set before.
        """
        if self.registers.PMBSR_EL1 & STOPPED and not stopped:
            self.settled_from = self.now + self.settling
            if self.completion.free_from > self.now:  # the beats of a record may still be dropped
                self.settled_from += self.longest_drop
            self.expected["buffer_full"] += 1
            self.coverage["buffer full"] += 1

    def accept_beat(self, ready: bool) -> None:
        """Check a valid beat, and store it if memory is ready."""
        if self.writing is None:
            self._start_record()
        flight = self.writing
        assert flight
        beat: Any = BeatLayout(self.config).from_bits(int(self.dut.write__beat__payload.value))
        # The record is known, and so are its beats.
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
        if not ready:
            return
        octets = (beat.data >> 8 * low).to_bytes(self.config.bus_bytes, "little")[:size]
        flight.octets += octets
        self.memory |= {at + number: octet for number, octet in enumerate(octets)}
        if beat.last:
            assert bytes(flight.octets) == record, f"{flight.octets.hex()} is not {record.hex()} of {flight.sample}"
            self.written |= {flight.address + number: octet for number, octet in enumerate(record)}
            self._check_record(record, flight)
            self.writing = None
            # Not before an access of software to a register of the buffer: the order of the two is not known.
            accesses = [age for age, access in enumerate(self.checked, 1) if access and access.target in BUFFER]
            soonest = self.now + 1 + max(accesses, default=0)
            if self.responding:
                soonest = max(soonest, self.responding[-1].responds_at + 1)
            flight.responds_at = soonest + self.random.choice([0, 0, 1, self.random.randrange(60)])
            self.responding.append(flight)

    def _start_record(self) -> None:
        """Start the pending record, which the buffer accepted in the previous cycle, at the pointer of that cycle."""
        assert self.waiting, f"cycle {self.now}: a beat without a record"
        assert len(self.responding) < self.config.outstanding, f"cycle {self.now}: too many outstanding records"
        flight, self.waiting = self.waiting, None
        assert not discarding(self.earlier), f"cycle {self.now}: a record is written in Discard mode"
        if flight.maybe_dropped:
            self.coverage["written after Discard mode ended while it was pending"] += 1
        flight.first_beat_at = self.now
        flight.address = self.last_pointer if self.next_before is None else self.next_before
        if self.fault_at == self.now - 1:
            flight.halted = min(flight.halted, self.now)
        elif flight.halted > self.now and self.pointer_written < self.now - 1:
            self.next_address = flight.address + len(records.encode(self.config, flight.sample))
        limit = self.earlier.PMBLIMITR_EL1 & -PAGE
        assert flight.address + self.config.max_record_bytes <= limit, f"cycle {self.now}: a beat beyond LIMIT"
        self.coverage["starts within a word"] += flight.address % self.config.bus_bytes != 0
        self.writing = flight
        # The sample may be accepted from now on, which frees the completion stage, or the only slot.
        self.completion.busy_until = self.now + 2 + self.moving
        if self.config.slots == 1:
            self.slots[0].busy_until = self.now + 1

    def _release_by(self, flight: Flight) -> None:
        """Record that the sample has been accepted, in this cycle at the latest: the last beat is valid."""
        self.completion.release_if_held_by(flight, self.now + 2 + self.moving)
        if self.config.slots == 1:
            self.slots[0].release_if_held_by(flight, self.now + 1)

    def _check_record(self, record: bytes, flight: Flight) -> None:
        """Check the invariants of a record, independently of its sample. Count what it holds."""
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

    def drive_response(self, performed: Access | None) -> None:
        """Drive the response of memory. The fault is random without one."""
        done = self.now == self.responds_at
        self.drive("write__done", done)
        if done:
            assert self.responding
            self.fault = self._fault(self.responding[0]) if self.random.random() < self.fault_rate else None
            fault = fault_bits(self.config, self.responding[0].address, self.fault)
        else:
            fault = self.random.getrandbits(self.fault_bits)
        self.drive("write__fault", fault)
        # No abort while the buffer may report full: the order of the two is not known.
        responds = done or self.answered  # a response fills the buffer in the next cycle at the earliest
        settled = self.now >= self.settled_from and not responds and not (performed and performed.target in BUFFER)
        self.aborts = self.config.external_aborts and settled and self.random.random() < self.abort_rate
        if self.config.external_aborts:
            self.drive("write__abort", self.aborts)
            self.coverage["abort"] += self.aborts

    def _fault(self, flight: Flight) -> Fault:
        """Return a random fault for the write of a record."""
        random, config = self.random, self.config
        written = 0
        if random.random() < 0.7:
            # A fault is on a word of memory. The record may cover only a part of the first and of the last.
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
        """Process the response of memory in this cycle. It takes effect in the next one."""
        self.answered = self.responding.popleft()
        if self.fault:
            self.fault_at = self.now
            self.next_address = None
            for later in (*self.responding, self.writing):
                if later:
                    later.halted = min(later.halted, self.now)

    def end_record(self) -> None:
        """End the record that memory answered in the previous cycle."""
        assert self.answered
        flight, self.answered = self.answered, None
        if flight.halted <= self.now or self.pointer_written >= flight.first_beat_at - 1:
            self.coverage["discarded while being written"] += 1
            self.reference.buffer.abandon(self.answered_fault)
            return
        record = bytes(flight.octets)
        if self.answered_fault:
            assert not self.reference.buffer.write(record, self.answered_fault)
            where = "in" if self.answered_fault.written else "before"
            self.coverage.update([self.answered_fault.kind.name, f"a fault {where} a record"])
            return
        assert self.reference.buffer.write(record)
        assert self.reference.buffer.memory[flight.address] == record
        if self.registers.PMBSR_EL1 & STOPPED:
            self.count_full(0)
