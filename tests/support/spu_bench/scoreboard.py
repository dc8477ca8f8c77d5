"""The scoreboard: registers, selections, collisions, the filter and PMU events, compared with the reference."""

from dataclasses import replace

from spurtle.arch import PMBLIMITR_EL1, PMBPTR_EL1, PMBSR_EL1, PMSFCR_EL1, PMSICR_EL1, Register
from spurtle.config import SPUConfig
from spurtle.gateware.completion import CompletionState
from spurtle.gateware.record_issue import IssueState
from spurtle.gateware.slots import SlotState
from spurtle_sim.model import control, filtering
from spurtle_sim.model.operation import Facts, Location
from spurtle_sim.model.pe import PEState
from tests.support.gateware import random_operation
from tests.support.spu_bench.flight import Access, Flight, Passing
from tests.support.spu_bench.memory import Memory
from tests.support.spu_bench.state import BUFFER, STOPPED, discarding

__all__ = ["Scoreboard"]


def has_two_accesses(config: SPUConfig, facts: Facts) -> bool:
    """Return whether an operation loads from one address and stores to another, so that the SPU chooses one."""
    guarded = config.gcs and facts.gcs and not facts.branch
    return bool(facts.load and facts.store and ((config.mops and facts.memory_copy) or guarded))


class Scoreboard(Memory):
    """The outputs of the SPU in each cycle, compared with the reference."""

    def count_events(self) -> None:
        """Count PMU events, and states for the coverage."""
        for name in self.events:
            self.counted[name] += self.pmu(name)
        for slot in range(self.config.slots):
            state = SlotState(int(getattr(self.dut, f"inflight_slot_{slot}_slot_state").value))
            self.coverage[f"slot {slot} {state}"] += 1
        self.coverage[f"buffer {IssueState(int(self.dut.buffer_issue_issue_state.value))}"] += 1
        self.coverage[f"completion {CompletionState(int(self.dut.completion_completion_state.value))}"] += 1
        self.drained = bool(int(self.dut.drain__done.value))

    def check_registers(self) -> None:
        """Check PMBIRQ, and the outcome of the previous access."""
        if self.now >= self.settled_from or self.drained:
            stopped = self.registers.PMBSR_EL1 & STOPPED != 0
            assert bool(int(self.dut.pmbirq.value)) == stopped, f"cycle {self.now}: PMBIRQ is not {stopped}"
        if self.answer:
            (performed, expected), self.answer = self.answer, None
            where = f"cycle {self.now}: {performed.register.name} from EL{performed.pe.el}"
            assert int(self.dut.sysreg__outcome.value) == performed.outcome.value, (
                f"{where}, not {performed.outcome.name}"
            )
            value = int(self.dut.sysreg__rdata.value)
            assert value == expected, f"{where} is {value:#x}, not {expected:#x}"

    def perform_read(self, performed: Access) -> None:
        """Determine the expected read data of an access, zero for a write."""
        reads = performed.target and performed.value is None
        self.answer = performed, self.reference.read(performed.target, performed.pe) if reads else 0

    def perform_write(self, register: Register, value: int) -> None:
        """Write a register of the reference."""
        stopped = (value if register is PMBSR_EL1 else self.registers.PMBSR_EL1) & STOPPED
        self.reference.write(register, value)
        if register in BUFFER:
            self.count_full(stopped)
        if register in (PMBLIMITR_EL1, PMBPTR_EL1):
            self.pointer_written = self.now
            self.next_address = None
        if discarding(self.registers) and not discarding(self.visible):
            self.coverage["Discard mode while a record is written"] += self.writing is not None

    def mark_halted(self) -> None:
        """Mark all records in progress: the buffer does not run in this cycle."""
        memory = (self.writing, *self.responding, self.answered)
        self.next_address = None
        records_to_come = (*self.flights.values(), *self.finished, self.waiting, *memory)
        for one in (*self.unanswered, *records_to_come):
            if one:
                one.halted = min(one.halted, self.now)

    def pass_operations(self, lanes: int) -> None:
        """Let operations pass. Whether they are profiled is determined in this cycle."""
        self.operations += lanes.bit_count()
        if not lanes:
            return
        if self.new_owner or not control.profiling_enabled(self.config, self.effective, self.effective_pe):
            if self.registers.PMSICR_EL1:
                self.coverage["counters held while disabled"] += 1
            return
        self.expected["pop"] += lanes.bit_count()
        start = self.reference.start(self.effective_pe, self.effective)
        passing = Passing(self.now, self.effective_pe, start, lanes)
        self.uncounted.append(passing)
        self.unanswered.append(passing)

    def take_branch(self, state: PEState, target: Location) -> None:
        """Record the target of a taken branch."""
        at = {name: getattr(state, name) for name in ("el", "ns", "nse", "aarch32")}
        profiled = control.branch_profiled(self.config, self.effective, self.effective_pe, **at)
        self.previous_target = target if profiled else None
        self.coverage[f"taken branch, profiled {int(profiled)}"] += 1

    def count_operations(self, performed: Access | None) -> None:
        """Count the operations of an earlier cycle, unless software writes PMSICR_EL1."""
        if not self.uncounted or self.uncounted[0].cycle > self.now - self.config.count_delay:
            return
        passing = self.uncounted.popleft()
        if performed and performed.target is PMSICR_EL1 and performed.value is not None:
            self.coverage["not counted, because software writes"] += 1
            return
        settings = self.registers if self.config.ops_per_cycle == 1 else self.earlier
        rnd, interval = settings.PMSIRR_EL1 & 1, settings.PMSIRR_EL1 >> 8
        for lane in range(self.config.ops_per_cycle):
            if passing.lanes >> lane & 1:
                if self.registers.PMSICR_EL1 & PMSICR_EL1.fields["COUNT"].mask == 0:
                    self.coverage[f"reload, RND {rnd}"] += 1
                    self.coverage["reload, INTERVAL 0"] += interval == 0
                if self.reference.count_operation(settings):
                    passing.selected.append(lane)
                    self.coverage[f"lane {lane}"] += 1
                    self.coverage[f"selected, RND {rnd}"] += 1
        self.coverage["two selected in a cycle"] += len(passing.selected) == 2

    def check_answer(self) -> int:
        """Check that exactly the selected operations are sampled or collide. Return the number of collisions."""
        sampled = int(self.dut.sampling__sampled.value)
        selected = []
        if self.unanswered and self.unanswered[0].cycle == self.now - self.config.answer_latency:
            passing = self.unanswered.popleft()
            selected = passing.selected
        where = f"cycle {self.now}: {sampled:#b} sampled, {selected} selected"
        assert sampled & ~sum(1 << lane for lane in selected) == 0, where
        collisions = 0
        for lane in selected:
            # A random number is drawn for a collision as well.
            destination, element = self.reference.choose_access() if self.config.access_bits else (0, 0)
            if not sampled >> lane & 1:
                assert all(self.now < slot.free_from for slot in self.slots), (
                    f"{where}: a collision, but a slot is free"
                )
                collisions += 1
                continue
            assert not collisions, f"{where}: the younger operation got the slot"
            number = int(getattr(self.dut, f"sampling__slot__{lane}").value) if self.config.slots > 1 else 0
            assert self.now >= self.slots[number].busy_until, f"{where}: slot {number} is not free"
            if self.config.scalable:
                sampled_element = int(getattr(self.dut, f"sampling__element__{lane}").value)
                assert sampled_element == element, (
                    f"{where}: element {sampled_element}, not {element}, is sampled in lane {lane}"
                )
            if self.config.two_accesses:
                sampled_access = int(self.dut.sampling__destination.value) >> lane & 1
                assert sampled_access == destination, (
                    f"{where}: access {sampled_access}, not {destination}, is sampled in lane {lane}"
                )
                setting = PMSFCR_EL1.unpack(self.registers.PMSFCR_EL1)
                by = "the filter" if setting.FT and setting.LD != setting.ST else "chance"
                self.coverage[f"{('source', 'destination')[destination]} by {by}"] += 1
            self._start(passing, number, destination)
        self.expected["collision"] += collisions
        if collisions:
            self.coverage[f"collisions {collisions}"] += 1
            self.coverage["collision in Discard mode"] += discarding(self.registers)
        return collisions

    def _start(self, passing: Passing, slot: int, destination: int) -> None:
        """Start a sampled operation. It finishes two cycles after it passed or later; the report lags."""
        random = self.random
        operation = random_operation(random, self.config)
        if self.config.mops and operation.facts.memory_set and not operation.facts.memory_copy:  # does not load
            operation = replace(operation, facts=replace(operation.facts, load=0))
        if passing.start.collect_nv2_va and random.random() < 0.8:  # few states of the PE permit such an address
            operation = replace(operation, facts=replace(operation.facts, nv2=1))
        if has_two_accesses(self.config, operation.facts):
            operation = replace(operation, facts=replace(operation.facts, destination=destination))
            self.coverage[f"{('source', 'destination')[destination]} of two accesses"] += 1
        latency_origin = passing.cycle + self.config.answer_latency - 1
        total = 2 + random.choice(
            [0, random.randrange(10), random.randrange(self.max_latency), random.randrange(self.max_latency)]
        )
        self.started += 1
        self.flights[slot] = flight = Flight(
            slot=slot,
            latency_origin=latency_origin,
            pe=passing.pe,
            start=passing.start,
            halted=passing.halted,
            finish_at=latency_origin + total,
            issue_at=latency_origin + random.randint(2, total + 1),
            complete_at=latency_origin + random.choice([total, random.randint(2, total + 1)]),
            vanishes=random.random() < 0.1,
            order=self.started,
            operation=operation,
        )
        self.slots[slot].occupy(flight)
        flight.report(self.now, self.issued, self.completed, self.translating, self.tick)

    def finish_operation(self, flight: Flight) -> None:
        """Finish an operation in flight."""
        flight.finished = self.now
        if flight.completed is not None:
            self.coverage["completed before it finished"] += 1
        flight.previous_target = self.previous_target
        self.youngest_finished = max(self.youngest_finished, flight.order)
        if any(other.latency_origin < flight.latency_origin for other in self.flights.values()):
            self.coverage["finished before an older one"] += 1
        del self.flights[flight.slot]
        if flight.vanishes:
            self.coverage["vanished"] += 1
            self.slots[flight.slot].release(self.now + 1)
        else:
            self.finished.append(flight)

    def filter_samples(self) -> None:
        """Check that the SPU decides about the oldest finished sample when it should, and reports that it did."""
        decides = int(self.dut.completion_completion_state.value) == CompletionState.DECIDE
        assert self.pmu("feed") == self.decided, f"cycle {self.now}: SAMPLE_FEED is not {self.decided}"
        self.decided = decides
        if not self.finished:
            assert not decides, f"cycle {self.now}: a verdict although no operation has finished"
            return
        flight = self.finished[0]
        # The sample is filtered in the cycle after the operation finishes. With several slots it leaves its slot first,
        # which takes one more cycle. The verdict is used in the next cycle.
        ready = flight.finished + 2 + self.moving
        slot = self.slots[flight.slot]
        if not decides:
            assert self.now < max(ready, self.completion.free_from), f"cycle {self.now}: no verdict"
            if self.moving:
                assert flight.slot not in self.flights, f"cycle {self.now}: slot {flight.slot} was reused too early"
                # The sample leaves its slot two cycles before the verdict is used.
                slot.busy_until = max(ready, self.completion.busy_until) - 1
                slot.free_from = max(ready, self.completion.free_from) - 1
            return
        assert self.now >= max(ready, self.completion.busy_until), f"cycle {self.now}: a verdict too early"
        self.resolve_maybe_dropped()
        self.finished.popleft()
        self.completion.occupy(flight)
        if self.moving and flight.slot not in self.flights:
            slot.release(self.now)
        self.expected["feed"] += 1
        for event, count in filtering.feed(self.config, self.earlier, flight.sample).items():
            self.expected[f"feed_{event}"] += count
            self.coverage[f"feed_{event} {int(count)}"] += 1
        if filtering.collect(self.config, self.earlier, flight.sample):
            self.expected["filtrate"] += 1
            self.waiting = flight
            if flight.halted <= self.now:
                self.drop()
                # If the buffer stops in this cycle, the SPU requests the record, and the buffer drops it.
                if flight.halted < self.now and self.now >= self.settled_from:
                    self.release(flight)
            elif discarding(self.registers):
                self.coverage["dropped in Discard mode"] += 1
                self.waiting = None
                self.release(flight)
        else:
            self.coverage["filtered out"] += 1
            self.release(flight)
