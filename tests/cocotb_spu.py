"""The generated Verilog of a whole SPU, driven at random for thousands of operations beside the reference `SPU`.

test_cocotb.py runs it inside of a simulator; SPURTLE_CONFIG, SPURTLE_OPERATIONS and SPURTLE_SEED say what.
"""

import os
from random import Random
from typing import Any

import cocotb
from spu_bench import BUFFER, PAGE, STOPPED, Bench

from spurtle.arch import (
    PMBLIMITR_EL1,
    PMBPTR_EL1,
    PMBSR_EL1,
    PMSCR_EL1,
    PMSEVFR_EL1,
    PMSFCR_EL1,
    PMSICR_EL1,
    PMSIRR_EL1,
    PMSLATFR_EL1,
    REGISTERS,
    OperationClass,
    Register,
)
from spurtle.config import CONFIGS

FILTER = (PMSFCR_EL1, PMSEVFR_EL1, PMSLATFR_EL1)


class Software(Bench):
    """What runs on the core: the program, and the driver that serves the SPU."""

    async def run(self, cycles: int) -> None:
        """Let the program run."""
        intensity = self.random.choice([0.2, 0.7, 1.0])
        for _ in range(cycles):
            await self.cycle(passes=self.now >= self.settled_from and self.random.random() < intensity)

    async def read(self, *registers: Register) -> None:
        for register in registers:
            await self._wait_for(register)
            await self.cycle(access=(register, None))

    async def write(self, register: Register, value: int) -> None:
        await self._wait_for(register)
        await self.cycle(access=(register, value))

    async def _wait_for(self, register: Register) -> None:
        """Until the reference, which has no timing, says what an access in this cycle does."""
        while (
            (register in BUFFER and (self.now < self.settled_from or self.now == self.responds_at))
            or (register in FILTER and (self.finished or self.waiting or self.writing or self.responding))
        ):  # fmt: skip
            await self.cycle()

    async def drain(self) -> None:
        """PSB CSYNC; then everything must be in memory, and counted."""
        self.draining = True
        for _ in range(2000):
            await self.cycle()
            if self.drained:
                break
        assert self.drained, "the SPU does not drain"
        self.draining = False
        assert not (self.finished or self.waiting or self.writing or self.responding), (
            "drained, and a record is not in memory"
        )
        assert self.memory == self.written
        if self.flight is None:
            self.busy_until, self.free_from = 0, self.now + 1
            for _ in range(4):
                await self.cycle()
            assert self.counted == self.expected

    def room(self, records: int) -> tuple[int, int]:
        """A pointer and a limit with room for so many records."""
        limit = self.random.choice([PAGE, 0x8000_0000, 0x00FF_FFFF_FFFF_F000, 0xFFFF_FFFF_FFFF_F000])
        return limit - records * self.config.record_bytes, limit

    async def set_up(self) -> None:
        """As a driver does it: stop, drain, program everything, enable."""
        random, bits = self.random, self.random.getrandbits
        await self.write(PMSCR_EL1, 0)
        await self.drain()
        await self.write(PMBLIMITR_EL1, bits(64) & ~1)
        await self.write(PMSFCR_EL1, random.choice([0, 0, 0, 0, 1, 2, 4, 7]) | bits(3) << 16)
        await self.write(PMSEVFR_EL1, 1 << random.randrange(16) | random.choice([0, bits(64)]))
        await self.write(PMSLATFR_EL1, random.randrange(12))
        await self.write(PMSIRR_EL1, random.choice([0, 1, 1, 2]) << 8 | bits(8))
        await self.write(PMSICR_EL1, random.choice([0, 1, bits(8)]))
        pointer, limit = self.room(random.randrange(1, 12))
        await self.write(
            PMBPTR_EL1,
            pointer if random.random() < 0.8 else pointer + random.choice([1, 8, PAGE, 1 << 56]) & (1 << 64) - 1,
        )
        await self.write(PMBSR_EL1, random.choice([0, 0, bits(64) & ~STOPPED]))
        await self.write(PMBLIMITR_EL1, limit | 1)
        await self.write(PMSCR_EL1, 3 & random.choice([1, 2, 3, 3, 3]) | bits(5) << 3)
        await self.read(*REGISTERS)

    async def serve(self) -> None:
        """Serve the interrupt, as a driver does."""
        await self.drain()
        await self.read(PMBSR_EL1, PMBPTR_EL1, PMSICR_EL1)
        pointer, limit = self.room(self.random.randrange(1, 12))
        if limit != self.registers.PMBLIMITR_EL1 & -PAGE:
            await self.write(PMBLIMITR_EL1, limit | 1)
        await self.write(PMBPTR_EL1, pointer)
        await self.write(PMBSR_EL1, 0)

    async def until_a_record_waits(self) -> None:
        """For a while, or not at all: by chance, software would seldom meet that moment."""
        for _ in range(self.random.choice([0, 100])):
            if self.waiting:
                break
            await self.run(1)

    async def disturb(self) -> None:
        """Something that software may do at any time."""
        match self.random.randrange(12):
            case 0:
                await self.write(PMSCR_EL1, 3 | self.random.getrandbits(5) << 3)
            case 1:  # off and on again
                limit = self.registers.PMBLIMITR_EL1
                await self.until_a_record_waits()
                await self.write(PMBLIMITR_EL1, limit & ~1)
                await self.run(self.random.choice([0, 1, 20]))
                await self.write(PMBLIMITR_EL1, limit)
            case 2:
                await self.until_a_record_waits()
                await self.write(PMBSR_EL1, self.registers.PMBSR_EL1 | STOPPED)
            case 3:
                if self.registers.PMBSR_EL1 & STOPPED == 0:
                    room = self.random.randrange(1, 12) * self.config.record_bytes
                    await self.write(PMBPTR_EL1, (self.registers.PMBLIMITR_EL1 & -PAGE) - room)
            case 4:
                await self.read(PMSICR_EL1, PMBSR_EL1)
            case 5:
                self.move_pe(profiled=False)
                await self.run(20)
                self.move_pe(profiled=True)
            case 6:  # an interval of its own length
                await self.run(300)
            case _:
                self.move_pe(profiled=True)


@cocotb.test()
async def random_operations(dut: Any) -> None:
    bench = Software(dut, CONFIGS[os.environ["SPURTLE_CONFIG"]], Random(os.environ["SPURTLE_SEED"]))
    await bench.reset()
    await bench.read(*REGISTERS)
    random = bench.random
    while bench.operations < int(os.environ["SPURTLE_OPERATIONS"]):
        bench.patience = random.choice([1.0, 0.6, 0.2])
        await bench.set_up()
        for _ in range(5):
            # Selections come soon, one after the other.
            for _ in range(random.randrange(12)):
                await bench.write(PMSICR_EL1, random.randrange(1, 9))
                await bench.run(random.randrange(5, 20))
            if bench.registers.PMBSR_EL1 & STOPPED:
                await bench.run(random.randrange(30))
                await bench.serve()
            await bench.disturb()
    await bench.write(PMSCR_EL1, 0)
    while bench.flight or bench.selected:
        await bench.cycle()
    await bench.drain()

    dut._log.info("%d operations, %d cycles: %s", bench.operations, bench.now, dict(sorted(bench.coverage.items())))
    if bench.operations < 10_000:
        return  # short runs may miss something
    seen = [*OperationClass.__members__, "not retired", "buffer full", "collision", "filtered out", "vanished"]
    seen += ["dropped while stopped", "discarded while being written"]
    seen += [*(f"slot {state}" for state in range(6)), *(f"buffer {state}" for state in range(4))]
    missing = [name for name in seen if not bench.coverage[name]]
    assert not missing, f"never seen: {missing}"
