"""Core, memory and scoreboard around the generated Verilog of a whole SPU, for cocotb.

Whatever the reference has an opinion on is checked in each cycle; memory and PMU events when the SPU has been drained.
"""

from collections import Counter, deque
from copy import copy
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from cocotb.triggers import Timer

from spurtle.arch import (
    FM,
    PMBLIMITR_EL1,
    PMBPTR_EL1,
    PMBSR_EL1,
    PMSFCR_EL1,
    PMSICR_EL1,
    OperationClass,
    PMSVer,
    Register,
)
from spurtle.config import SPUConfig, UnpredictableFilter
from spurtle.config.record_layouts import ARM_MODEL, MINIMAL, NEOVERSE_N1, V1P4, Packet
from spurtle.export import verilog
from spurtle.gateware import spu
from spurtle.interface.memory import BeatLayout, FaultLayout
from spurtle.interface.operation import LocationLayout
from spurtle_sim.cosim.pack import fault_bits, operation_bits, pe_members
from spurtle_sim.model import control, filtering, records
from spurtle_sim.model.buffer import Fault, fault_kinds
from spurtle_sim.model.control import Owner, PEState
from spurtle_sim.model.records import Facts, Location, Operation, Sample, Start
from spurtle_sim.model.registers import Outcome, Registers, access
from spurtle_sim.model.spu import ReferenceSPU
from spurtle_sim.records import decode
from spurtle_sim.records.checks import Monitor
from tests.support.gateware import VARIANTS as BLOCK_VARIANTS
from tests.support.gateware import pe_bits, random_location, random_operation, random_pe

__all__ = ["BUFFER", "PAGE", "STOPPED", "VARIANTS", "Bench", "discarding", "owners"]

_NO_PREVIOUS = V1P4.without(Packet.PREVIOUS_TARGET, Packet.ALTERNATE_ISSUE)

VARIANTS = {
    **BLOCK_VARIANTS,
    **{
        config.name: config
        for config in (
            # All of filtering where an operation has neither a lane nor a slot of its own.
            SPUConfig(
                name="lanes1_slots1_filters",
                layout=_NO_PREVIOUS,
                version=PMSVer.SPE_V1P4,
                eft=True,
                fpf=True,
                fne=True,
                fds=True,
                mops=True,
                gcs=True,
                crr=True,
                fgt=True,
                fgt2=True,
                el2=True,
                el3=True,
                sel2=True,
                ecv=True,
                unpredictable_filter=UnpredictableFilter.DISCARD,
                counter_bits=16,
                events=frozenset({*range(13), *range(19, 24), *range(48, 64)}),
                events_bytes=8,
                data_source_bytes=1,
                bus_bytes=32,
            ),
            # Lanes, slots and features in combinations that no named configuration has.
            SPUConfig(
                name="lanes2_slots1_ernd",
                layout=MINIMAL,
                version=PMSVer.SPE_V1P3,
                ops_per_cycle=2,
                ernd=True,
                fne=True,
                mops=True,
                bus_bytes=4,
            ),
            # A record is one beat. There is EL2 and nothing else.
            SPUConfig(
                name="lanes5_slots8",
                layout=NEOVERSE_N1,
                version=PMSVer.SPE_V1P4,
                ops_per_cycle=5,
                slots=8,
                eft=True,
                fpf=True,
                fne=True,
                fds=True,
                el2=True,
                fgt=True,
                fgt2=True,
                data_source_bytes=1,
                bus_bytes=64,
            ),
            # A word of memory is longer than many records.
            SPUConfig(
                name="lanes1_slots3_ernd",
                layout=replace(ARM_MODEL.without(Packet.DATA_SOURCE), padding_last=False),
                version=PMSVer.SPE_V1P4,
                slots=3,
                ernd=True,
                fne=True,
                mops=True,
                nv2=True,
                el2=True,
                el3=True,
                pbt=True,
                bus_bytes=64,
            ),
        )
    },
}
"""Configurations that are tested."""

STOPPED = PMBSR_EL1.pack(S=1)
PAGE = 4096
NEVER = 1 << 62
BUFFER = (PMBLIMITR_EL1, PMBPTR_EL1, PMBSR_EL1)
EVENTS = ("pop", "feed", "filtrate", "collision", "buffer_full")
EVERYWHERE = Registers(PMSCR_EL1=0b11, PMSCR_EL2=0b11, PMBLIMITR_EL1=PMBLIMITR_EL1.pack(E=1))
"""Profiling is enabled wherever it can be."""


def discarding(registers: Registers) -> bool:
    """Discard mode, if the buffer is enabled (D17.5.5)."""
    return PMBLIMITR_EL1.unpack(registers.PMBLIMITR_EL1).FM == FM.DISCARD


def owners(config: SPUConfig) -> list[Owner]:
    """Who can own the Profiling Buffer. Without EL3 the PE is Non-secure here, if it has EL2."""
    states = [(0, 0), (1, 0), *([(1, 1)] if config.rme else [])] if config.el3 else [(1, 0)]
    hosts = [(ns, nse) for ns, nse in states if ns or config.sel2] if config.el2 else []
    return [*(Owner(*state, 1) for state in states), *(Owner(*state, 2) for state in hosts)]


def has_two_accesses(config: SPUConfig, facts: Facts) -> bool:
    """It loads from one address and stores to another: the SPU says which of the two is sampled."""
    guarded = config.gcs and facts.gcs and not facts.branch
    return bool(facts.load and facts.store and ((config.mops and facts.memory_copy) or guarded))


@dataclass(frozen=True)
class Access:
    """Of software to a System register: what is written, None for a read; and by the reference, in that state of the
    PE, what it comes to and which register it means.
    """

    register: Register
    value: int | None
    outcome: Outcome
    target: Register | None
    pe: PEState


@dataclass
class Passing:
    """The members of the sample population that passed in one cycle."""

    cycle: int
    pe: PEState
    start: Start
    lanes: int
    selected: list[int] = field(default_factory=list)
    """Lanes, in program order."""
    halted: int = NEVER
    """First cycle after `cycle` in which the buffer did not run."""


@dataclass
class Flight:
    """A sampled operation, from its answer until memory has its record."""

    slot: int
    told: int
    """The cycle that it passed in, as events are told: late."""
    pe: PEState
    start: Start
    halted: int
    finish_at: int
    issue_at: int
    complete_at: int
    vanishes: bool
    order: int
    """Of sampled operations, in program order."""
    operation: Operation
    translation: int = 0
    alternate_issue: int = 0
    previous_target: Location | None = None
    issued: int | None = None
    completed: int | None = None
    finished: int = NEVER
    begun: int = NEVER
    address: int = 0
    octets: bytearray = field(default_factory=bytearray)
    doubtful: bool = False
    """It may have been dropped: it waited while the buffer was in discard mode."""

    def report(self, now: int, issued: int, completed: int, translating: int, tick: int) -> None:
        """What the core tells in this cycle, one bit for each slot, and whether the alternate clock has ticked."""
        if self.completed is None and completed >> self.slot & 1:
            self.completed = now
        if self.issued is None and (self.completed == now or issued >> self.slot & 1):
            self.issued = now
        if self.issued is None:
            self.alternate_issue += tick
        if self.completed is None:
            self.translation += translating >> self.slot & 1

    @property
    def sample(self) -> Sample:
        total = (self.finished if self.completed is None else self.completed) - self.told
        issue = total if self.issued is None else self.issued - self.told
        return Sample(
            start=self.start,
            operation=self.operation,
            previous_target=self.previous_target,
            total=total,
            issue=issue,
            translation=self.translation,
            alternate_issue=self.alternate_issue,
        )


@dataclass
class Occupancy:
    """When something is taken, as far as it is known: for sure before the one cycle, no longer from the other."""

    busy_until: int = 0
    free_from: int = 0
    holder: Flight | None = None

    def take(self, holder: Flight) -> None:
        self.busy_until = self.free_from = NEVER
        self.holder = holder

    def free(self, at: int) -> None:
        self.busy_until = self.free_from = at

    def free_by(self, holder: Flight, at: int) -> None:
        """Unless another has come to hold it."""
        if self.holder is holder:
            self.free_from = at


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
        self.reference = ReferenceSPU(config)
        self.registers = self.reference.registers
        self.coverage = Counter[str]()
        self.now = 1
        self.operations = 0
        self.events = (*EVENTS, *(f"feed_{event}" for event in config.feed_events))
        self.expected = dict.fromkeys(self.events, 0)
        self.counted = dict.fromkeys(self.events, 0)
        self.pe = self.passing_pe = PEState(physical_count=self.random.getrandbits(64))
        self.pe_members = pe_bits(config)
        self.ownership: dict[str, int] = {}  # what decides who owns the buffer
        # The buffer got another owner in the cycle before this one, and in this one.
        self.new_owner = self.newer_owner = False
        # How often in a cycle the PE is in another state, and the buffer gets another owner.
        self.restless = self.fickle = 0.0
        self.issued = self.completed = self.translating = self.tick = 0
        # Operations pass, are counted, are answered. A sampled one is in flight, in its slot, and has finished; the
        # oldest that has is looked at by the filter, its record waits, is written, answered.
        self.uncounted = deque[Passing]()
        self.unanswered = deque[Passing]()
        self.flights: dict[int, Flight] = {}
        self.finished = deque[Flight]()
        self.waiting: Flight | None = None
        self.writing: Flight | None = None
        self.responding: Flight | None = None
        # What the record met that memory answers for; what it was a fault of, in the cycle after; how often.
        self.meets: Fault | None = None
        self.faulting: Flight | None = None
        self.faulty = self.aborting = 0.0
        self.aborts = False
        self.fault_bits = FaultLayout(config).size
        self.responds_at = NEVER
        self.slots = [Occupancy() for _ in range(config.slots)]
        self.completion = Occupancy()
        # Where the last taken branch went; sampled operations so far, and the youngest of them that has finished.
        self.previous_target: Location | None = None
        self.started = self.youngest_finished = 0
        self.longest = 10  # an operation takes, nearly
        self.monitor = Monitor(config, promises=False)
        self.memory: dict[int, int] = {}
        self.written: dict[int, int] = {}
        self.patience = 1.0
        self.pointer = self.last_pointer = self.pointer_written = 0
        self.visible = self.earlier = copy(self.registers)
        # The access that came in the cycle before, and is made in this; its answer, told in the next.
        self.coming: Access | None = None
        self.answer: tuple[Access, int] | None = None
        self.draining = self.drained = False
        self.quiet = False  # nothing finishes
        self.settled_from = 0
        # Whether a record of a size that differs fits takes longer to find out.
        self.settling = 3 if config.layout.align == config.max_record_bytes else 5
        # Cycles for the beats of a record that is dropped: a packed layout needs at most two for each.
        self.longest_drop = 2 * (config.max_record_bytes // config.bus_bytes + 1)
        self._driven: dict[str, int] = {}
        self._location = LocationLayout(config)

    @property
    def queued(self) -> bool:
        """A record waits for another that is being written."""
        return self.waiting is not None and (self.writing is not None or self.responding is not None)

    async def reset(self) -> None:
        for port in verilog.ports(spu.SPU(self.config)):
            if port.direction == "in":
                self._drive(port.name, 0)
        for level in (0, 1, 0, 1):
            self.dut.rst.value = 1
            self.dut.clk.value = level
            await Timer(5, "ns")
        self.dut.rst.value = 0

    async def cycle(
        self, *, passes: int = 0, read: Register | None = None, write: tuple[Register, int] | None = None,
        anyhow: bool = False,
    ) -> None:  # fmt: skip
        """One clock cycle, in which operations may pass, one bit for each lane, and software may read or write a
        register: from where that has a value, or `anyhow`.
        """
        dut = self.dut
        (made, self.coming), register = (self.coming, None), read or (write and write[0])
        self.last_pointer, self.pointer = self.pointer, self.registers.PMBPTR_EL1
        self.earlier, self.visible = self.visible, copy(self.registers)
        self._drive_pe(passes, register, write is not None, anyhow)
        if register:
            self._drive_access(register, write)
        finishing = self._drive_flights()
        branch = self._drive_branch() if self.config.pbt else None
        ready = self.random.random() < self.patience
        self._drive("write__beat__ready", ready)
        self._drive_response(made)
        self._drive("drain__request", self.draining)
        dut.clk.value = 0
        await Timer(5, "ns")

        self._watch()
        self._check_registers()
        if made:
            self._read(made)
        if not self._running:
            self._halt()
        self._filter(bool(self._pmu("feed")))
        if finishing:
            self._finish(finishing)
        if branch:
            self._take_branch(*branch)
        if self.new_owner:
            self.previous_target = None
        self._pass(passes)
        collisions = self._check_answer()
        if self.waiting and self.waiting.halted < self.now:
            self._drop()
        elif self.waiting and discarding(self.registers):
            self._doubt(self.waiting)
        if int(dut.write__beat__valid.value):
            self._beat(ready)
        if self.faulting:
            self._stop_at_fault()
        if self.now == self.responds_at:
            self._respond()
        # Software has read what this cycle found; it writes after what else happens in it.
        self._count(made)
        if made and made.target and made.value is not None:
            self._write(made.target, made.value)
        if self.aborts:
            self.reference.buffer.abort()
        if collisions:  # these come last
            self.reference.collide()

        dut.clk.value = 1
        await Timer(5, "ns")
        self.now += 1

    def _drive(self, name: str, value: int) -> None:
        if self._driven.get(name) != value:
            self._driven[name] = value
            getattr(self.dut, name).value = int(value)

    def _pmu(self, event: str) -> int:
        return int(getattr(self.dut, f"pmu__sample_{event}").value)

    # The core.

    def _drive_pe(self, passes: int, register: Register | None, write: bool, anyhow: bool) -> None:
        if self.random.random() < self.restless:
            self.move_pe(profiled=self.random.random() < 0.9)
        if self.random.random() < self.fickle:
            self.change_owner()
        self.pe = replace(self.pe, physical_count=self.pe.physical_count + 1 & (1 << 64) - 1)
        self.passing_pe = self._accessing(register, write, anyhow) if register else self.pe
        for name, value in pe_members(self.config, self.passing_pe).items():
            self._drive(f"pe__{name}", value)
        self.new_owner, self.newer_owner = self.newer_owner, self.reference.own(self.passing_pe)
        if self.new_owner:
            self._disown()
        self._drive("sampling__valid", passes)
        self._drive("sysreg__valid", register is not None)

    def _accessing(self, register: Register, write: bool, anyhow: bool) -> PEState:
        """The state of an access: one in which it is made, unless `anyhow`."""
        levels = [0, 1, *([2] if self.config.el2 else []), *([3] if self.config.el3 else [])]
        states = [replace(self.pe, el=el) for el in self.random.sample(levels, len(levels))]
        if not anyhow:
            states = [pe for pe in states if access(self.config, register, write, pe)[1] == register] or states
        return states[0]

    def _drive_access(self, register: Register, write: tuple[Register, int] | None) -> None:
        for name in ("op1", "crn", "crm", "op2"):
            self._drive(f"sysreg__{name}", getattr(register, name))
        self._drive("sysreg__write", write is not None)
        self._drive("sysreg__wdata", write[1] if write else 0)
        outcome, target = access(self.config, register, write is not None, self.passing_pe)
        self.coming = Access(register, write and write[1], outcome, target, self.passing_pe)
        self.coverage[f"{outcome.name} of {'MSR' if write else 'MRS'}"] += 1
        self.coverage["redirected"] += target not in (register, None)

    def _disown(self) -> None:
        """The buffer does not run in this cycle, because it has another owner."""
        for what, there in (
            ("operations in flight", self.flights),
            ("a record waits", self.waiting),
            ("a record is written", self.writing or self.responding),
        ):
            self.coverage[f"new owner, {what}"] += bool(there)
        if self.now < self.settled_from:
            # That it is full shows a cycle later; if a record waits, not before its last beat has been dropped.
            self.settled_from += 1
            if self.waiting:
                self.settled_from = self.now + self.longest_drop + self.settling + 1

    def _drive_flights(self) -> Flight | None:
        """What the core tells; of slots that hold no operation it tells anything. Returns the one that finishes."""
        bits = self.random.getrandbits
        width = self.config.slots
        self.translating, self.issued, self.completed = (bits(width) & bits(width) for _ in range(3))
        if self.config.altclk:
            self.tick = bits(1)
            self._drive("in_flight__alternate_tick", self.tick)
        for slot, flight in self.flights.items():
            if flight.issued is None:
                self.issued = self.issued & ~(1 << slot) | (self.now == flight.issue_at) << slot
            if flight.completed is None:
                self.completed = self.completed & ~(1 << slot) | (self.now == flight.complete_at) << slot
        due = [flight for flight in self.flights.values() if self.now >= flight.finish_at]
        finishing = None
        if due and not self.quiet:
            finishing = self.random.choice(due)
            self._drive("finish__operation", operation_bits(self.config, finishing.operation))
            self._drive("finish__vanished", finishing.vanishes)
            if width > 1:
                self._drive("finish__slot", finishing.slot)
        for flight in self.flights.values():
            if flight is not finishing:
                flight.report(self.now, self.issued, self.completed, self.translating, self.tick)
        self._drive("finish__valid", finishing is not None)
        self._drive("in_flight__issued", self.issued)
        self._drive("in_flight__completed", self.completed)
        self._drive("in_flight__translating", self.translating)
        return finishing

    def _drive_branch(self) -> tuple[PEState, Location] | None:
        """A taken branch: with the state that it was executed in, where it went. None is told out of program order: it
        is younger than what has finished, and older than what has not.
        """
        in_order = all(flight.order > self.youngest_finished for flight in self.flights.values())
        valid = in_order and self.now >= self.settled_from and self.random.random() < 0.2
        self._drive("branch__valid", valid)
        if not valid:
            return None
        state, target = self._state(profiled=self.random.random() < 0.8), random_location(self.random, self.config)
        for name in ("el", "ns", "aarch32", *(["nse"] if self.config.rme else [])):
            self._drive(f"branch__{name}", getattr(state, name))
        members = {name: getattr(target, name) for name in self._location.members}
        self._drive("branch__target", self._location.const(members).as_bits())
        return state, target

    def move_pe(self, profiled: bool) -> None:
        """Another state of the PE, in which the buffer has the owner that it had: `profiled` if PMSCR_EL1 and PMSCR_EL2
        let it.
        """
        self.pe = replace(self._state(profiled), physical_count=self.pe.physical_count)

    def change_owner(self) -> None:
        """The buffer has another owner, or the one that it had in another way."""
        drawn = random_pe(self.random, self.config)
        names = {"mdcr_el2_e2pb", "mdcr_el3_nspb", "mdcr_el3_nspbe", "scr_el3_eel2"} & self.pe_members.keys()
        self.ownership = {name: getattr(drawn, name) for name in sorted(names)}
        self.move_pe(profiled=True)

    def _state(self, profiled: bool) -> PEState:
        random, config = self.random, self.config
        while True:
            state = replace(random_pe(random, config), **self.ownership)
            owner = control.owner(config, state)
            if not config.el3:
                state = replace(state, ns=1)
            elif random.random() < 0.8:
                state = replace(state, ns=owner.ns, nse=owner.nse)
            if control.profiling_enabled(config, EVERYWHERE, state) == profiled:
                return state

    @property
    def _running(self) -> bool:
        """The Profiling Buffer runs in this cycle."""
        return control.buffer_enabled(self.registers) and not self.new_owner

    # What the reference says about this cycle.

    def _watch(self) -> None:
        """What is only counted."""
        for name in self.events:
            self.counted[name] += self._pmu(name)
        for slot in range(self.config.slots):
            self.coverage[f"slot {slot} {int(getattr(self.dut, f'inflight_slot_{slot}_slot_state').value)}"] += 1
        self.coverage[f"buffer {int(self.dut.buffer_buffer_state.value)}"] += 1
        self.coverage[f"completion {int(self.dut.completion_completion_state.value)}"] += 1
        self.drained = bool(int(self.dut.drain__done.value))

    def _check_registers(self) -> None:
        if self.now >= self.settled_from or self.drained:
            stopped = self.registers.PMBSR_EL1 & STOPPED != 0
            assert bool(int(self.dut.pmbirq.value)) == stopped, f"cycle {self.now}: PMBIRQ is not {stopped}"
        if self.answer:
            (made, expected), self.answer = self.answer, None
            where = f"cycle {self.now}: {made.register.name} from EL{made.pe.el}"
            assert int(self.dut.sysreg__outcome.value) == made.outcome.value, f"{where}, not {made.outcome.name}"
            value = int(self.dut.sysreg__rdata.value)
            assert value == expected, f"{where} is {value:#x}, not {expected:#x}"

    def _read(self, made: Access) -> None:
        """What is answered. Of a write nothing."""
        reads = made.target and made.value is None
        self.answer = made, self.reference.read(made.target, made.pe) if reads else 0

    def _write(self, register: Register, value: int) -> None:
        stopped = (value if register is PMBSR_EL1 else self.registers.PMBSR_EL1) & STOPPED
        self.reference.write(register, value)
        if register in BUFFER:
            self._count_full(stopped)
        if register in (PMBLIMITR_EL1, PMBPTR_EL1):
            self.pointer_written = self.now
        if discarding(self.registers) and not discarding(self.visible):
            self.coverage["discard mode while a record is written"] += self.writing is not None

    def _count_full(self, stopped: int) -> None:
        """After something that may have filled the buffer. S follows later than the reference has it."""
        if self.registers.PMBSR_EL1 & STOPPED and not stopped:
            self.settled_from = self.now + self.settling
            self.expected["buffer_full"] += 1
            self.coverage["buffer full"] += 1

    def _halt(self) -> None:
        """The buffer does not run in this cycle."""
        memory = (self.writing, self.responding, self.faulting)
        records_to_come = (*self.flights.values(), *self.finished, self.waiting, *memory)
        for one in (*self.unanswered, *records_to_come):
            if one:
                one.halted = min(one.halted, self.now)

    def _pass(self, lanes: int) -> None:
        """Whether operations are profiled is decided when they pass."""
        self.operations += lanes.bit_count()
        if not lanes:
            return
        if self.new_owner or not control.profiling_enabled(self.config, self.registers, self.passing_pe):
            if self.registers.PMSICR_EL1:
                self.coverage["counters kept while disabled"] += 1
            return
        self.expected["pop"] += lanes.bit_count()
        passing = Passing(self.now, self.passing_pe, self.reference.start(self.passing_pe), lanes)
        self.uncounted.append(passing)
        self.unanswered.append(passing)

    def _take_branch(self, state: PEState, target: Location) -> None:
        at = {name: getattr(state, name) for name in ("el", "ns", "nse", "aarch32")}
        profiled = control.branch_profiled(self.config, self.registers, self.passing_pe, **at)
        self.previous_target = target if profiled else None
        self.coverage[f"taken branch, profiled {int(profiled)}"] += 1

    def _count(self, made: Access | None) -> None:
        """The operations of an earlier cycle are counted, unless software writes PMSICR_EL1."""
        if not self.uncounted or self.uncounted[0].cycle > self.now - self.config.count_delay:
            return
        passing = self.uncounted.popleft()
        if made and made.target is PMSICR_EL1 and made.value is not None:
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

    def _check_answer(self) -> int:
        """Exactly the selected operations are sampled, or collide. Returns how many did that."""
        sampled = int(self.dut.sampling__sampled.value)
        selected = []
        if self.unanswered and self.unanswered[0].cycle == self.now - self.config.answer_latency:
            passing = self.unanswered.popleft()
            selected = passing.selected
        where = f"cycle {self.now}: {sampled:#b} sampled, {selected} selected"
        assert sampled & ~sum(1 << lane for lane in selected) == 0, where
        collisions = 0
        for lane in selected:
            # The number is drawn for a collision, too.
            destination, element = self.reference.choose_access() if self.config.access_bits else (0, 0)
            if not sampled >> lane & 1:
                assert all(self.now < slot.free_from for slot in self.slots), f"{where}: a collision, with a free slot"
                collisions += 1
                continue
            assert not collisions, f"{where}: the later one got the slot"
            number = int(getattr(self.dut, f"sampling__slot__{lane}").value) if self.config.slots > 1 else 0
            assert self.now >= self.slots[number].busy_until, f"{where}: slot {number} is taken"
            if self.config.scalable:
                told = int(getattr(self.dut, f"sampling__element__{lane}").value)
                assert told == element, f"{where}: element {told}, not {element}, is sampled in lane {lane}"
            if self.config.two_accesses:
                told = int(self.dut.sampling__destination.value) >> lane & 1
                assert told == destination, f"{where}: of two accesses not {destination} is sampled in lane {lane}"
                setting = PMSFCR_EL1.unpack(self.registers.PMSFCR_EL1)
                by = "the filter" if setting.FT and setting.LD != setting.ST else "chance"
                self.coverage[f"{('source', 'destination')[destination]} by {by}"] += 1
            self._start(passing, number, destination)
        self.expected["collision"] += collisions
        if collisions:
            self.coverage[f"collisions {collisions}"] += 1
            self.coverage["collision in discard mode"] += discarding(self.registers)
        return collisions

    def _start(self, passing: Passing, slot: int, destination: int) -> None:
        """A selected operation is in flight. Two cycles after it passed it can finish; it is told later."""
        random = self.random
        operation = random_operation(random, self.config)
        if self.config.mops and operation.facts.memory_set and not operation.facts.memory_copy:  # it loads nothing
            operation = replace(operation, facts=replace(operation.facts, load=0))
        if passing.start.collect_nv2_va and random.random() < 0.8:  # few states of the PE allow such an address
            operation = replace(operation, facts=replace(operation.facts, nv2=1))
        if has_two_accesses(self.config, operation.facts):
            operation = replace(operation, facts=replace(operation.facts, destination=destination))
            self.coverage[f"{('source', 'destination')[destination]} of two accesses"] += 1
        told = passing.cycle + self.config.answer_latency - 1
        total = 2 + random.choice(
            [0, random.randrange(10), random.randrange(self.longest), random.randrange(self.longest)]
        )
        self.started += 1
        self.flights[slot] = flight = Flight(
            slot=slot,
            told=told,
            pe=passing.pe,
            start=passing.start,
            halted=passing.halted,
            finish_at=told + total,
            issue_at=told + random.randint(2, total + 1),
            complete_at=told + random.choice([total, random.randint(2, total + 1)]),
            vanishes=random.random() < 0.1,
            order=self.started,
            operation=operation,
        )
        self.slots[slot].take(flight)
        flight.report(self.now, self.issued, self.completed, self.translating, self.tick)

    def _finish(self, flight: Flight) -> None:
        flight.finished = self.now
        if flight.completed is not None:
            self.coverage["completed before it finished"] += 1
        flight.previous_target = self.previous_target
        self.youngest_finished = max(self.youngest_finished, flight.order)
        if any(other.told < flight.told for other in self.flights.values()):
            self.coverage["finished before an older one"] += 1
        del self.flights[flight.slot]
        if flight.vanishes:
            self.coverage["vanished"] += 1
            self.slots[flight.slot].free(self.now + 1)
        else:
            self.finished.append(flight)

    def _filter(self, fed: bool) -> None:
        """SAMPLE_FEED, which tells of the cycle before, in which the filter looked at the oldest that has finished."""
        if not self.finished:
            assert not fed, f"cycle {self.now}: SAMPLE_FEED, and nothing has finished"
            return
        several = self.config.slots > 1
        flight = self.finished[0]
        ready = flight.finished + 2 + several
        slot = self.slots[flight.slot]
        if not fed:
            assert self.now < max(ready, self.completion.free_from), f"cycle {self.now}: no SAMPLE_FEED"
            if several:
                assert flight.slot not in self.flights, f"cycle {self.now}: slot {flight.slot} was given away too early"
                # The sample is moved out two cycles before SAMPLE_FEED tells of it, and leaves its slot free.
                slot.busy_until = max(ready, self.completion.busy_until) - 1
                slot.free_from = max(ready, self.completion.free_from) - 1
            return
        assert self.now >= max(ready, self.completion.busy_until), f"cycle {self.now}: SAMPLE_FEED too early"
        self.resolve_doubt()
        self.finished.popleft()
        self.completion.take(flight)
        if several and flight.slot not in self.flights:
            slot.free(self.now)
        self.expected["feed"] += 1
        for event, count in filtering.feed(self.config, self.earlier, flight.sample).items():
            self.expected[f"feed_{event}"] += count
            self.coverage[f"feed_{event} {int(count)}"] += 1
        if filtering.collect(self.config, self.earlier, flight.sample):
            self.expected["filtrate"] += 1
            self.waiting = flight
            if flight.halted <= self.now:
                self._drop()
                if self.now >= self.settled_from:
                    self._release(flight)
            elif discarding(self.registers):
                self.coverage["dropped in discard mode"] += 1
                self.waiting = None
                self._release(flight)
        else:
            self.coverage["filtered out"] += 1
            self._release(flight)

    def _release(self, flight: Flight) -> None:
        """The sample is taken in this cycle: its place is free for another, and with one slot so is that."""
        self.completion.free(self.now + 2)
        if self.config.slots == 1:
            self.slots[flight.slot].free(self.now + 1)

    # Memory.

    def _drop(self) -> None:
        """The buffer did not run, so the record that waits leaves no beat. When its place is free depends."""
        assert self.waiting
        self.coverage["dropped while stopped"] += 1
        self.completion.busy_until = self.now
        if self.config.slots == 1:
            self.slots[0].busy_until = self.now
        self.waiting = None

    def _doubt(self, flight: Flight) -> None:
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

    def _beat(self, taken: bool) -> None:
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
        (decoded,) = decode.records(record)
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

    def _drive_response(self, made: Access | None) -> None:
        """Memory's answer, and what it is told without one."""
        done = self.now == self.responds_at
        self._drive("write__done", done)
        if done:
            assert self.responding
            self.meets = self._fault(self.responding) if self.random.random() < self.faulty else None
            told = fault_bits(self.config, self.responding.address, self.meets)
        else:
            told = self.random.getrandbits(self.fault_bits)
        self._drive("write__fault", told)
        # Not while it is to show that the buffer is full: which of the two comes first is not known here.
        settled = self.now >= self.settled_from and not done and not (made and made.target in BUFFER)
        self.aborts = self.config.external_aborts and settled and self.random.random() < self.aborting
        if self.config.external_aborts:
            self._drive("write__abort", self.aborts)
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

    def _respond(self) -> None:
        assert self.responding
        flight, self.responding = self.responding, None
        self.responds_at = NEVER
        if flight.halted <= self.now or self.pointer_written >= flight.begun - 1:
            self.coverage["discarded while being written"] += 1
            self.reference.buffer.discard(self.meets)
            return
        if self.meets:
            self.faulting = flight
            return
        record = bytes(flight.octets)
        assert self.reference.buffer.write(record)
        assert self.reference.buffer.memory[flight.address] == record
        if self.registers.PMBSR_EL1 & STOPPED:
            self._count_full(0)

    def _stop_at_fault(self) -> None:
        """The cycle after memory has answered with a fault."""
        assert self.faulting and self.meets
        flight, self.faulting = self.faulting, None
        if flight.halted <= self.now:
            self.coverage["discarded while being written"] += 1
            self.reference.buffer.discard(self.meets)
            return
        assert not self.reference.buffer.write(bytes(flight.octets), self.meets)
        self.coverage.update([self.meets.kind.name, f"a fault {'in' if self.meets.written else 'before'} a record"])
