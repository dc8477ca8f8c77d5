"""Work in progress in an SPU: accesses of software, operations that have passed, and operations in flight."""

from dataclasses import dataclass, field

from spurtle.arch import Register
from spurtle_sim.model.operation import Location, Operation, Sample, Start
from spurtle_sim.model.pe import PEState
from spurtle_sim.model.registers import Outcome

__all__ = ["NEVER", "Access", "Flight", "Occupancy", "Passing"]

NEVER = 1 << 62


@dataclass(frozen=True)
class Access:
    """An access of software to a System register.

    Members
    -------
    register : Register
    value : int or None
        The value of a write; None for a read.
    outcome : Outcome
        Outcome by the reference.
    target : Register or None
        The register that is accessed, which a redirection may change; None if none is.
    pe : PEState
        The state of the PE in which the access is made, which determines PMBIDR_EL1.P.
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
    """Lanes of the selected operations, in program order."""
    halted: int = NEVER
    """First cycle after `cycle` in which the buffer did not run."""


@dataclass
class Flight:
    """A sampled operation, from when the SPU reports it as sampled until its record is in memory."""

    slot: int
    latency_origin: int
    """The cycle from which latencies count. Reports on an operation lag it by the answer latency."""
    pe: PEState
    start: Start
    halted: int
    finish_at: int
    issue_at: int
    complete_at: int
    vanishes: bool
    order: int
    """Number of the sampled operation, in program order."""
    operation: Operation
    translation: int = 0
    alternate_issue: int = 0
    previous_target: Location | None = None
    issued: int | None = None
    completed: int | None = None
    finished: int = NEVER
    first_beat_at: int = NEVER
    responds_at: int = NEVER
    address: int = 0
    octets: bytearray = field(default_factory=bytearray)
    maybe_dropped: bool = False
    """Whether it may have been dropped: it was pending while the buffer was in Discard mode."""

    def report(self, now: int, issued: int, completed: int, translating: int, tick: int) -> None:
        """Apply the reports of the core in a cycle.

        Each has one bit for each slot, but `tick`, which says whether the alternate clock has ticked.
        """
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
        """The sample with its latencies."""
        total = (self.finished if self.completed is None else self.completed) - self.latency_origin
        issue = total if self.issued is None else self.issued - self.latency_origin
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
    """Occupancy of a slot or a stage, as far as the scoreboard knows it.

    It is occupied before cycle `busy_until`, unknown then, and free from cycle `free_from` on.
    """

    busy_until: int = 0
    free_from: int = 0
    holder: Flight | None = None

    def occupy(self, holder: Flight) -> None:
        """Record that it is occupied."""
        self.busy_until = self.free_from = NEVER
        self.holder = holder

    def release(self, at: int) -> None:
        """Record that it is free from a cycle on."""
        self.busy_until = self.free_from = at

    def release_if_held_by(self, holder: Flight, at: int) -> None:
        """Record that it is free from a cycle on at the latest, if `holder` still occupies it."""
        if self.holder is holder:
            self.free_from = at
