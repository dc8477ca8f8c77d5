"""The state that the core, memory and the scoreboard share."""

from collections import Counter, deque
from copy import copy
from random import Random
from typing import Any

from spurtle.arch import FM, PMBLIMITR_EL1, PMBPTR_EL1, PMBSR_EL1
from spurtle.config import SPUConfig
from spurtle.gateware.record import settling_cycles
from spurtle.interface.memory import FaultLayout
from spurtle.interface.operation import LocationLayout
from spurtle.interface.sysreg import ACCESS_LATENCY
from spurtle_sim.model import control
from spurtle_sim.model.buffer import Fault
from spurtle_sim.model.operation import Location
from spurtle_sim.model.pe import PEState
from spurtle_sim.model.registers import Registers
from spurtle_sim.model.spu import ReferenceSPU
from spurtle_sim.records.checks import Monitor
from tests.support.gateware import pe_bits
from tests.support.spu_bench.flight import NEVER, Access, Flight, Occupancy, Passing

__all__ = ["BUFFER", "STOPPED", "State", "discarding"]

STOPPED = PMBSR_EL1.pack(S=1)
BUFFER = (PMBLIMITR_EL1, PMBPTR_EL1, PMBSR_EL1)
EVENTS = ("pop", "feed", "filtrate", "collision", "buffer_full")


def discarding(registers: Registers) -> bool:
    """Return whether the buffer is in Discard mode, if it is enabled (D17.5.5)."""
    return PMBLIMITR_EL1.unpack(registers.PMBLIMITR_EL1).FM == FM.DISCARD


class State:
    """The state of the core, memory and the scoreboard around the SPU.

    Parameters
    ----------
    dut
        The module in the simulator.
    config : SPUConfig
        The configuration of the module.
    random : Random
        Source of all random choices.
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
        self.pe = self.passing_pe = self.effective_pe = PEState(physical_count=self.random.getrandbits(64))
        self.pe_members = pe_bits(config)
        self.ownership: dict[str, int] = {}  # controls of the owner of the buffer
        # Whether the owner of the buffer changed in the previous cycle, and in this one.
        self.new_owner = self.newer_owner = False
        # Probabilities in each cycle that the state of the PE changes, and that the owner of the buffer changes.
        self.pe_change_rate = self.owner_change_rate = 0.0
        self.issued = self.completed = self.translating = self.tick = 0
        # The pipeline: operations pass, are counted, and are answered. A sampled operation is in flight in its slot,
        # then finished. The oldest finished sample is filtered; its record is pending, written, and answered by memory.
        self.uncounted = deque[Passing]()
        self.unanswered = deque[Passing]()
        self.flights: dict[int, Flight] = {}
        self.finished = deque[Flight]()
        self.waiting: Flight | None = None
        self.writing: Flight | None = None
        self.responding = deque[Flight]()
        self._set_up_memory()
        self.slots = [Occupancy() for _ in range(config.slots)]
        self.completion = Occupancy()
        # Cycles in which a sample moves out of its slot. With one slot it stays there.
        self.moving = int(config.slots > 1)
        self.decided = False  # in the previous cycle a verdict on a sample was used
        # The target of the last taken branch; the number of sampled operations; the youngest that has finished.
        self.previous_target: Location | None = None
        self.started = self.youngest_finished = 0
        self.max_latency = 10  # of most operations
        self.monitor = Monitor(config, core=False)
        self.memory: dict[int, int] = {}
        self.written: dict[int, int] = {}
        self.ready_rate = 1.0
        self.pointer = self.last_pointer = self.pointer_written = 0
        self.visible = self.earlier = self.effective = copy(self.registers)
        # The accesses that are checked, each performed in a later cycle; and the one performed, answered in the next.
        self.checked: deque[Access | None] = deque([None] * (ACCESS_LATENCY - 1))
        self.answer: tuple[Access, int] | None = None
        self.draining = self.drained = False
        self.hold_finish = False  # no operation finishes
        self.settled_from = 0
        # Cycles from a write of the pointer until the buffer reports that it is full.
        self.settling = 16
        # Cycles of a record that is dropped: until its packets are valid, and for its beats, of which a packed layout
        # needs at most two for each.
        self.longest_drop = settling_cycles(config) + 2 * (config.max_record_bytes // config.bus_bytes + 1)
        self._driven: dict[str, int] = {}
        self.location = LocationLayout(config)

    def _set_up_memory(self) -> None:
        """Set up what memory reports, and where records are written."""
        # The fault that memory reports for a record; the record, in the next cycle; and the probabilities of faults.
        self.fault: Fault | None = None
        self.answered: Flight | None = None
        self.answered_fault: Fault | None = None
        self.fault_rate = self.abort_rate = 0.0
        self.aborts = False
        self.fault_bits = FaultLayout(self.config).size
        # Address of the next record, unless the outstanding ones are abandoned; at the start of the last two cycles.
        self.next_address: int | None = None
        self.next_before: int | None = None
        self.next_now: int | None = None
        self.fault_at = -1  # cycle of the last fault

    @property
    def queued(self) -> bool:
        """Whether a record is pending while another is being written."""
        return self.waiting is not None and (self.writing is not None or bool(self.responding))

    @property
    def responds_at(self) -> int:
        """Cycle of the next response of memory."""
        return self.responding[0].responds_at if self.responding else NEVER

    @property
    def running(self) -> bool:
        """Whether the Profiling Buffer runs in this cycle."""
        return control.buffer_enabled(self.registers) and not self.new_owner

    def drive(self, name: str, value: int) -> None:
        """Drive an input, if its value has changed."""
        if self._driven.get(name) != value:
            self._driven[name] = value
            getattr(self.dut, name).value = int(value)

    def pmu(self, event: str) -> int:
        """Return the strobe of a PMU event."""
        return int(getattr(self.dut, f"pmu__sample_{event}").value)
