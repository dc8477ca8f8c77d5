"""Core, memory and scoreboard together, a cycle at a time.

Whatever the reference has an opinion on is checked in each cycle; memory and PMU events when the SPU has been drained.
"""

from copy import copy

from cocotb.triggers import Timer

from spurtle.arch import Register
from spurtle.export import verilog
from spurtle.gateware import spu
from tests.support.spu_bench.core import Core
from tests.support.spu_bench.scoreboard import Scoreboard
from tests.support.spu_bench.state import discarding

__all__ = ["Bench"]


class Bench(Core, Scoreboard):
    """Core, memory and scoreboard around the SPU. Time moves in `cycle` alone."""

    async def reset(self) -> None:
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
        anyhow: bool = False,
    ) -> None:  # fmt: skip
        """One clock cycle, in which operations may pass, one bit for each lane, and software may read or write a
        register: from where that has a value, or `anyhow`.
        """
        dut = self.dut
        (made, self.coming), register = (self.coming, None), read or (write and write[0])
        self.last_pointer, self.pointer = self.pointer, self.registers.PMBPTR_EL1
        self.earlier, self.visible = self.visible, copy(self.registers)
        self.drive_pe(passes, register, write is not None, anyhow)
        if register:
            self.drive_access(register, write)
        finishing = self.drive_flights()
        branch = self.drive_branch() if self.config.pbt else None
        ready = self.random.random() < self.patience
        self.drive("write__beat__ready", ready)
        self.drive_response(made)
        self.drive("drain__request", self.draining)
        dut.clk.value = 0
        await Timer(5, "ns")

        self.watch()
        self.check_registers()
        if made:
            self.make_read(made)
        if not self.running:
            self.halt()
        self.filter_samples(bool(self.pmu("feed")))
        if finishing:
            self.finish_operation(finishing)
        if branch:
            self.take_branch(*branch)
        if self.new_owner:
            self.previous_target = None
        self.pass_operations(passes)
        collisions = self.check_answer()
        if self.waiting and self.waiting.halted < self.now:
            self.drop()
        elif self.waiting and discarding(self.registers):
            self.doubt(self.waiting)
        if int(dut.write__beat__valid.value):
            self.take_beat(ready)
        if self.faulting:
            self.stop_at_fault()
        if self.now == self.responds_at:
            self.respond()
        # Software has read what this cycle found; it writes after what else happens in it.
        self.count_operations(made)
        if made and made.target and made.value is not None:
            self.make_write(made.target, made.value)
        if self.aborts:
            self.reference.buffer.abort()
        if collisions:  # these come last
            self.reference.collide()

        dut.clk.value = 1
        await Timer(5, "ns")
        self.now += 1
