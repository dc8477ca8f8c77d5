"""The core: states of the PE, accesses of software, operations in flight and branches."""

from copy import copy
from dataclasses import replace

from spurtle.arch import PMBLIMITR_EL1, Register
from spurtle.config import SPUConfig
from spurtle_sim.cosim.pack import operation_bits, pe_members
from spurtle_sim.model import control
from spurtle_sim.model.operation import Location
from spurtle_sim.model.pe import Owner, PEState
from spurtle_sim.model.registers import Registers, access
from tests.support.gateware import random_location, random_pe, with_controls
from tests.support.spu_bench.flight import Access, Flight
from tests.support.spu_bench.state import State

__all__ = ["CoreInputs", "owners"]

EVERYWHERE = Registers(PMSCR_EL1=0b11, PMSCR_EL2=0b11, PMBLIMITR_EL1=PMBLIMITR_EL1.pack(E=1))
"""Registers that enable profiling at each Exception level and in each Security state."""


def owners(config: SPUConfig) -> list[Owner]:
    """Return the possible owners of the Profiling Buffer. Without EL3 the PE is always Non-secure."""
    states = [(0, 0), (1, 0), *([(1, 1)] if config.rme else [])] if config.el3 else [(1, 0)]
    hosts = [(ns, nse) for ns, nse in states if ns or config.sel2] if config.el2 else []
    return [*(Owner(*state, 1) for state in states), *(Owner(*state, 2) for state in hosts)]


class CoreInputs(State):
    """The inputs of the SPU that the core drives."""

    def drive_pe(self, passes: int, register: Register | None, write: bool, any_state: bool) -> None:
        if self.random.random() < self.pe_change_rate:
            self.move_pe(profiled=self.random.random() < 0.9)
        if self.random.random() < self.owner_change_rate:
            self.change_owner()
        self.pe = replace(self.pe, physical_count=self.pe.physical_count + 1 & (1 << 64) - 1)
        before, self.passing_pe = self.passing_pe, self._accessing(register, write, any_state) if register else self.pe
        # The state of the operations, with the registers that control profiling as they were in the previous cycle.
        self.effective_pe = with_controls(self.passing_pe, before)
        self.effective = copy(self.registers)
        self.effective.PMSCR_EL1, self.effective.PMSCR_EL2 = self.earlier.PMSCR_EL1, self.earlier.PMSCR_EL2
        for name, value in pe_members(self.config, self.passing_pe).items():
            self.drive(f"pe__{name}", value)
        self.new_owner, self.newer_owner = self.newer_owner, self.reference.update_owner(self.passing_pe)
        if self.new_owner:
            self._stop_for_new_owner()
        self.drive("sampling__valid", passes)
        self.drive("sysreg__valid", register is not None)

    def _accessing(self, register: Register, write: bool, any_state: bool) -> PEState:
        """Return the state of the PE for an access: one in which it reaches the register, unless `any_state`."""
        levels = [0, 1, *([2] if self.config.el2 else []), *([3] if self.config.el3 else [])]
        states = [replace(self.pe, el=el) for el in self.random.sample(levels, len(levels))]
        if not any_state:
            states = [pe for pe in states if access(self.config, register, write, pe)[1] == register] or states
        return states[0]

    def drive_access(self, register: Register, write: tuple[Register, int] | None) -> Access:
        """Drive the request of software. Return the access, which is performed `ACCESS_LATENCY` - 1 cycles later."""
        for name in ("op1", "crn", "crm", "op2"):
            self.drive(f"sysreg__{name}", getattr(register, name))
        self.drive("sysreg__write", write is not None)
        self.drive("sysreg__wdata", write[1] if write else 0)
        outcome, target = access(self.config, register, write is not None, self.passing_pe)
        self.coverage[f"{outcome.name} of {'MSR' if write else 'MRS'}"] += 1
        self.coverage["redirected"] += target not in (register, None)
        return Access(register, write and write[1], outcome, target, self.effective_pe)

    def _stop_for_new_owner(self) -> None:
        """Record that the buffer does not run in this cycle, because its owner has changed."""
        for what, present in (
            ("operations in flight", self.flights),
            ("a record waits", self.waiting),
            ("a record is written", self.writing or bool(self.responding)),
        ):
            self.coverage[f"new owner, {what}"] += bool(present)
        if self.now < self.settled_from:
            # The buffer compares the pointer with the limit again; if a record is pending, after its last beat has been
            # dropped.
            self.settled_from = self.now + self.settling + 1
            if self.waiting:
                self.settled_from += self.longest_drop

    def drive_flights(self) -> Flight | None:
        """Drive the reports on operations in flight, random ones for free slots. Return the operation that finishes."""
        bits = self.random.getrandbits
        width = self.config.slots
        self.translating, self.issued, self.completed = (bits(width) & bits(width) for _ in range(3))
        if self.config.altclk:
            self.tick = bits(1)
            self.drive("in_flight__alternate_tick", self.tick)
        for slot, flight in self.flights.items():
            if flight.issued is None:
                self.issued = self.issued & ~(1 << slot) | (self.now == flight.issue_at) << slot
            if flight.completed is None:
                self.completed = self.completed & ~(1 << slot) | (self.now == flight.complete_at) << slot
        due = [flight for flight in self.flights.values() if self.now >= flight.finish_at]
        finishing = None
        if due and not self.hold_finish:
            finishing = self.random.choice(due)
            self.drive("finish__operation", operation_bits(self.config, finishing.operation))
            self.drive("finish__vanished", finishing.vanishes)
            if width > 1:
                self.drive("finish__slot", finishing.slot)
        for flight in self.flights.values():
            if flight is not finishing:
                flight.report(self.now, self.issued, self.completed, self.translating, self.tick)
        self.drive("finish__valid", finishing is not None)
        self.drive("in_flight__issued", self.issued)
        self.drive("in_flight__completed", self.completed)
        self.drive("in_flight__translating", self.translating)
        return finishing

    def drive_branch(self) -> tuple[PEState, Location] | None:
        """Report a taken branch, or none. Return the state of the PE in which it was executed, and its target.

        Branches are reported in program order: a branch is younger than the operations that have finished, and older
        than those that have not.
        """
        in_order = all(flight.order > self.youngest_finished for flight in self.flights.values())
        valid = in_order and self.now >= self.settled_from and self.random.random() < 0.2
        self.drive("branch__valid", valid)
        if not valid:
            return None
        state, target = self._state(profiled=self.random.random() < 0.8), random_location(self.random, self.config)
        for name in ("el", "ns", "aarch32", *(["nse"] if self.config.rme else [])):
            self.drive(f"branch__{name}", getattr(state, name))
        members = {name: getattr(target, name) for name in self.location.members}
        self.drive("branch__target", self.location.const(members).as_bits())
        return state, target

    def move_pe(self, profiled: bool) -> None:
        """Change the state of the PE, but not the owner of the buffer.

        With `profiled`, profiling is not prohibited in the new state: it is enabled if PMSCR_EL1 and PMSCR_EL2 enable
        it.
        """
        self.pe = replace(self._state(profiled), physical_count=self.pe.physical_count)

    def change_owner(self) -> None:
        """Change the controls that determine the owner of the buffer. The owner may stay the same."""
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
