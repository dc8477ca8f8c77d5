"""The core, memory and the scoreboard together.

Outputs that the reference predicts are checked in each cycle. Memory and PMU events are checked when the SPU has
drained.
"""

from copy import copy

from cocotb.triggers import Timer

from spurtle.arch import Register
from spurtle.export import verilog
from spurtle.gateware import spu
from tests.support.spu_bench.core import CoreInputs
from tests.support.spu_bench.scoreboard import Scoreboard
from tests.support.spu_bench.state import discarding

__all__ = ["SPUBench"]


class SPUBench(CoreInputs, Scoreboard):
    """The core, memory and the scoreboard around the SPU. Only `cycle` advances the time."""

    async def reset(self) -> None:
        """Reset the SPU."""
        for port in verilog.ports(spu.SPU(self.config)):
            if port.direction == "in":
                self.drive(port.name, 0)
        for level in (0, 1, 0, 1):
            self.dut.rst.value = 1
            self.dut.clk.value = level
            await Timer(5, "ns")
        self.dut.rst.value = 0

    async def cycle(
        self, *, passes: int = 0, read: Register | None = None, write: tuple[Register, int] | None = None,
        any_state: bool = False,
    ) -> None:  # fmt: skip
        """Advance by one clock cycle.

        Parameters
        ----------
        passes : int
            Lanes in which an operation passes the sampling point, one bit for each lane.
        read, write
            The register that software reads, or the register and the value that it writes.
        any_state : bool
            The access is made in any state of the PE. By default it is one in which the access
            reaches the register.
        """
        dut = self.dut
        performed, register = self.checked.popleft(), read or (write and write[0])
        self.last_pointer, self.pointer = self.pointer, self.registers.PMBPTR_EL1
        self.earlier, self.visible = self.visible, copy(self.registers)
        self.drive_pe(passes, register, write is not None, any_state)
        self.checked.append(self.drive_access(register, write) if register else None)
        finishing = self.drive_flights()
        branch = self.drive_branch() if self.config.pbt else None
        ready = self.random.random() < self.ready_rate
        self.drive("write__beat__ready", ready)
        self.next_before, self.next_now = self.next_now, self.next_address
        self.drive_response(performed)
        self.drive("drain__request", self.draining)
        dut.clk.value = 0
        await Timer(5, "ns")

        self.count_events()
        self.check_registers()
        if performed:
            self.perform_read(performed)
        if not self.running:
            self.mark_halted()
        self.filter_samples()
        if finishing:
            self.finish_operation(finishing)
        if branch:
            self.take_branch(*branch)
        if self.new_owner:
            self.previous_target = None
        self.pass_operations(passes)
        collisions = self.check_answer()
        self.check_buffer(ready)
        # A read returns the state before this cycle. A write takes effect after the events of the cycle.
        self.count_operations(performed)
        if performed and performed.target and performed.value is not None:
            self.perform_write(performed.target, performed.value)
        if self.aborts:
            self.reference.buffer.abort()
        if collisions:  # a collision takes effect last
            self.reference.collide()

        dut.clk.value = 1
        await Timer(5, "ns")
        self.now += 1

    def check_buffer(self, ready: bool) -> None:
        """Check the Profiling Buffer: a record that is dropped, a beat that is accepted if `ready`, a response."""
        if self.waiting and self.waiting.halted < self.now:
            self.drop()
        elif self.waiting and discarding(self.registers):
            self.mark_maybe_dropped(self.waiting)
        if int(self.dut.write__beat__valid.value):
            self.accept_beat(ready)
        if self.answered:
            self.end_record()
        if self.now == self.responds_at:
            self.answered_fault = self.fault
            self.respond()
