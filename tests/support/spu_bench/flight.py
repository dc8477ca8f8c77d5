"""Work in progress in an SPU: accesses of software, operations that passed, and operations in flight."""

from dataclasses import dataclass, field

from spurtle.arch import Register
from spurtle_sim.model.operation import Location, Operation, Sample, Start
from spurtle_sim.model.pe import PEState
from spurtle_sim.model.registers import Outcome

__all__ = ["NEVER", "Access", "Flight", "Occupancy", "Passing"]

NEVER = 1 << 62


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
