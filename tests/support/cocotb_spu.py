"""The generated Verilog of a whole SPU, driven at random for thousands of operations beside the reference `SPU`.

test_cocotb.py runs it inside of a simulator; SPURTLE_CONFIG, SPURTLE_CYCLES and SPURTLE_SEED say what.
"""

import os
from random import Random
from typing import Any

import cocotb

from configurations import FOR_SPUS
from spurtle.arch import (
    FM,
    IMP_PMSRNDR_EL1,
    PCT,
    PMBIDR_EL1,
    PMBLIMITR_EL1,
    PMBPTR_EL1,
    PMBSR_EL1,
    PMSCR_EL1,
    PMSCR_EL2,
    PMSCR_EL12,
    PMSDSFR_EL1,
    PMSEVFR_EL1,
    PMSFCR_EL1,
    PMSICR_EL1,
    PMSIRR_EL1,
    PMSLATFR_EL1,
    PMSNEVFR_EL1,
    REGISTERS,
    OperationClass,
    Register,
)
from spurtle.config import SPUConfig
from spurtle.config.record_layouts import Packet
from spurtle_sim.model.buffer import fault_kinds
from tests.support.spu_bench.bench import Bench
from tests.support.spu_bench.core import owners
from tests.support.spu_bench.memory import PAGE
from tests.support.spu_bench.state import BUFFER, STOPPED, discarding


class Software(Bench):
    """What runs on the core: the program, and the driver that serves the SPU."""

    async def run(self, cycles: int) -> None:
        """Let the program run."""
        intensity = self.random.choice([0.2, 0.7, 1.0, 1.0])
        for _ in range(cycles):
            await self.cycle(passes=self.lanes(intensity))

    def lanes(self, intensity: float) -> int:
        """Operations that pass in a cycle; none while the reference, which has no timing, cannot say if any counts."""
        if self.now < self.settled_from:
            return 0
        return sum((self.random.random() < intensity) << lane for lane in range(self.config.ops_per_cycle))

    async def read(self, *registers: Register, anyhow: bool = False) -> None:
        for register in registers:
            await self._settle(register)
            await self.cycle(passes=self.lanes(0.2), read=register, anyhow=anyhow)

    async def write(self, register: Register, value: int, *, anyhow: bool = False) -> None:
        await self._settle(register)
        await self.cycle(passes=self.lanes(0.2), write=(register, value), anyhow=anyhow)
        if register in BUFFER:
            await self.cycle(passes=self.lanes(0.2))

    async def _settle(self, register: Register) -> None:
        """Until the reference says what an access does that is made in the next cycle."""
        while register in BUFFER and (self.now < self.settled_from or self.now <= self.responds_at <= self.now + 1):
            await self.cycle()

    async def drain(self) -> None:
        """PSB CSYNC; then everything must be in memory, and counted."""
        self.draining = self.quiet = True
        for _ in range(2000):
            await self.cycle()
            if self.drained:
                break
        assert self.drained, "the SPU does not drain"
        self.draining = False
        self.resolve_doubt()
        assert not (self.finished or self.waiting or self.writing or self.responding or self.faulting), (
            "drained, and a record is not in memory"
        )
        assert self.memory == self.written
        self.completion.free(self.now)
        for number, slot in enumerate(self.slots):
            if number not in self.flights:
                slot.free(self.now)
        # Nothing finishes until the last operations that have passed are counted.
        for _ in range(self.config.answer_latency + 3):
            await self.cycle()
        assert self.counted == self.expected
        self.quiet = False

    def room(self) -> tuple[int, int]:
        """A pointer and a limit with room for a few records of the longest, and a bit more where they can differ."""
        layout = self.config.layout
        records = self.random.choice([1, 1, 2, 3, self.random.randrange(1, 12)])
        limit = self.random.choice([PAGE, 0x8000_0000, 0x00FF_FFFF_FFFF_F000, 0xFFFF_FFFF_FFFF_F000])
        more = self.random.randrange(layout.max_size // layout.align) * layout.align
        return limit - records * layout.max_size - more, limit

    def filters(self) -> int:
        """A value for PMSFCR_EL1. Few operations pass many filters."""
        random, bits = self.random, self.random.getrandbits
        enables = random.choice([0, 0, 0, 0, 0, 0, 0, 1, 2, 2, 2, 4, 8, 16, 31])
        types = random.choice([0b00010, 0b00100, bits(5), bits(5)])  # loads alone, stores alone
        return enables | types << 16 | random.choice([0, bits(5) & bits(5)]) << 48

    @staticmethod
    def enabled(limit: int, mode: int = FM.FILL) -> int:
        """A value for PMBLIMITR_EL1, of the limit in `limit`."""
        return limit & -PAGE | PMBLIMITR_EL1.pack(E=1, FM=mode)

    async def set_up(self) -> None:
        """As a driver does it: stop, drain, program everything, enable."""
        random, bits = self.random, self.random.getrandbits
        await self.write(PMSCR_EL1, 0)
        await self.write(PMSCR_EL2, 0)
        await self.drain()
        await self.write(PMBLIMITR_EL1, bits(64) & ~1)
        if random.random() < 0.5:
            self.change_owner()
        await self.write(PMSFCR_EL1, self.filters())
        await self.write(PMSEVFR_EL1, random.choice([0, 1 << random.randrange(16), bits(64)]))
        await self.write(PMSNEVFR_EL1, random.choice([0, 1 << random.randrange(16), bits(64)]))
        await self.write(PMSDSFR_EL1, bits(64))
        await self.write(PMSLATFR_EL1, random.randrange(12))
        await self.write(PMSIRR_EL1, random.choice([0, 1, 1, 2]) << 8 | bits(8))
        await self.write(PMSICR_EL1, random.choice([0, 1, bits(8), bits(8) << 56 | bits(9)]))
        await self.write(IMP_PMSRNDR_EL1, random.choice([0, bits(64)]))
        pointer, limit = self.room()
        await self.write(
            PMBPTR_EL1,
            pointer if random.random() < 0.8 else pointer + random.choice([1, 8, PAGE, 1 << 56]) & (1 << 64) - 1,
        )
        await self.write(PMBSR_EL1, random.choice([0, 0, bits(64) & ~STOPPED]))
        await self.write(PMBLIMITR_EL1, self.enabled(limit, random.choice([0, 0, 0, 1, 2, 3])))
        await self.permit(3 & random.choice([1, 2, 3, 3, 3]))
        await self.read(*REGISTERS)

    async def permit(self, levels: int = 3) -> None:
        """Profiling at these Exception levels; and anything may be collected, or not. Often EL1 and EL2 want the same
        time.
        """
        bits = self.random.getrandbits
        time = self.random.choice([0, 0, PMSCR_EL1.pack(TS=1, PCT=PCT.OFFSET_PHYSICAL)])
        for register in (PMSCR_EL1, PMSCR_EL2):
            await self.write(register, levels | bits(5) << 3 | time)

    async def serve(self) -> None:
        """Serve the interrupt, as a driver does."""
        await self.drain()
        await self.read(PMBSR_EL1, PMBPTR_EL1, PMSICR_EL1)
        limit = (self.registers.PMBLIMITR_EL1 & -PAGE) + PAGE
        if limit >> 12 & 0b11 and self.random.random() < 0.3:  # another page behind the record that was the last
            await self.write(PMBLIMITR_EL1, self.enabled(limit))
            await self.write(PMBSR_EL1, 0)
            return
        pointer, limit = self.room()
        if limit != self.registers.PMBLIMITR_EL1 & -PAGE:
            await self.write(PMBLIMITR_EL1, self.enabled(limit))
        await self.write(PMBPTR_EL1, pointer)
        await self.write(PMBSR_EL1, 0)

    async def select_soon(self) -> None:
        """A selection comes soon; or two, one from an old random number and the other from a small new one."""
        random, lanes = self.random, self.config.ops_per_cycle
        count = random.randrange(1, 5 + lanes)
        ecount = random.randrange(9 + lanes)
        if self.config.ernd and self.registers.PMSIRR_EL1 & 1 and random.random() < 0.5:
            ecount = max(0, count - random.randint(1, (lanes + 1) // 2))
            await self.write(IMP_PMSRNDR_EL1, random.getrandbits(24) << 8 | random.randint(0, lanes // 4))
        await self.write(PMSICR_EL1, PMSICR_EL1.pack(COUNT=count, ECOUNT=ecount))
        await self.run(random.randrange(5, 20))

    async def until_a_record_waits(self) -> None:
        """Or is being written; so long, or not at all: by chance, software would seldom meet that moment."""
        moment = self.random.choice(["waiting", "writing"])
        for _ in range(self.random.choice([0, 100])):
            if getattr(self, moment):
                break
            await self.run(1)

    async def discard(self) -> None:
        """Discard mode comes, in the midst of anything, and goes."""
        if self.registers.PMBSR_EL1 & STOPPED:
            await self.serve()
        random, limit = self.random, self.registers.PMBLIMITR_EL1
        fits = not discarding(self.registers)
        if fits and random.random() < 0.5:  # for a moment
            patience, longest = self.patience, self.longest
            self.patience, self.longest = 0.1, 3
            for _ in range(20):
                if self.queued:
                    break
                await self.select_soon()
            await self.write(PMBLIMITR_EL1, self.enabled(limit, FM.DISCARD))
            await self.run(random.choice([0, 0, 1, 20, 100]))
            await self.write(PMBLIMITR_EL1, self.enabled(limit, random.choice([0, 1, 3])))
            self.patience, self.longest = patience, longest
            await self.read(*BUFFER)
            return
        await self.until_a_record_waits()
        await self.write(PMBLIMITR_EL1, self.enabled(limit, FM.DISCARD))
        # Pointer and limit are ignored. What does not fit must be out of the way before they are not.
        await self.write(PMBPTR_EL1, random.getrandbits(64))
        await self.write(PMBLIMITR_EL1, self.enabled(random.getrandbits(64), FM.DISCARD))
        for _ in range(random.randrange(6)):
            await self.select_soon()
        await self.drain()
        await self.read(*BUFFER)
        pointer, limit = self.room()
        await self.write(PMBPTR_EL1, pointer)
        await self.write(PMBLIMITR_EL1, self.enabled(limit, random.choice([0, 1, 3])))

    async def hand_over(self) -> None:
        """The buffer gets another owner, in the midst of anything; and its own one back, or not."""
        if self.random.random() < 0.5:
            await self.select_soon()
        await self.until_a_record_waits()
        ownership = self.ownership
        self.change_owner()
        if self.random.random() < 0.5:
            await self.run(self.random.choice([1, 1, 2, 3, 20]))
            self.ownership = ownership
            self.move_pe(profiled=True)
        await self.read(*BUFFER, PMBIDR_EL1)

    async def meddle(self) -> None:
        """Accesses from wherever the PE is, that are made, mean another register, trap, or are UNDEFINED."""
        random = self.random
        for register in random.choices((*REGISTERS, PMSCR_EL12), k=8):
            if random.random() < 0.5:
                await self.read(register, anyhow=True)
            elif register in (PMSCR_EL1, PMSCR_EL2, PMSCR_EL12):
                await self.write(register, random.getrandbits(8), anyhow=True)
            else:
                await self.write(register, getattr(self.registers, register.name, 0), anyhow=True)
            self.move_pe(profiled=random.random() < 0.5)

    async def disturb(self) -> None:
        """Something that software may do at any time."""
        match self.random.randrange(22):
            case 0:
                await self.permit()
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
                    room = self.random.randrange(1, 12) * self.config.max_record_bytes
                    await self.write(PMBPTR_EL1, (self.registers.PMBLIMITR_EL1 & -PAGE) - room)
            case 4:
                await self.until_a_record_waits()
                await self.drain()
                await self.read(PMSICR_EL1, *BUFFER)
            case 5:
                self.move_pe(profiled=False)
                await self.run(20)
                await self.read(PMSICR_EL1, PMBIDR_EL1)
                self.move_pe(profiled=True)
            case 6:  # an interval of its own length
                await self.run(300)
            case 7:
                await self.write(PMSIRR_EL1, self.random.choice([0, 1]) << 8 | self.random.getrandbits(1))
            case 8:
                await self.read(IMP_PMSRNDR_EL1)
            case 9:
                await self.write(PMSFCR_EL1, self.filters())
            case 10:
                half = self.random.choice([0, 32])
                await self.write(IMP_PMSRNDR_EL1, self.random.getrandbits(32) << half)
            case 14 | 15 | 16 | 17 | 18:
                await self.meddle()
            case 11 | 12 | 13 if self.config.discard_mode:
                await self.discard()
            case 19 | 20 | 21 if self.config.several_owners:
                await self.hand_over()
            case _:
                self.move_pe(profiled=True)


@cocotb.test()
async def random_operations(dut: Any) -> None:
    bench = Software(dut, FOR_SPUS[os.environ["SPURTLE_CONFIG"]], Random(os.environ["SPURTLE_SEED"]))
    await bench.reset()
    await bench.read(*REGISTERS)
    random = bench.random
    cycles = int(os.environ["SPURTLE_CYCLES"])
    # What comes by chance may be late; short runs may miss something.
    wanted = to_be_seen(bench.config) if cycles >= 10_000 else []

    def missing() -> list[str]:
        return [name for name in wanted if not bench.coverage[name]]

    while bench.now < cycles or (missing() and bench.now < 4 * cycles):
        bench.patience = random.choice([1.0, 1.0, 0.6, 0.2])
        bench.longest = random.choice([3, 3, 10, 10, 30, 100, 600])
        bench.restless = random.choice([0, 0, 0.02, 0.2])
        bench.fickle = random.choice([0, 0, 0, 0, 0.01])
        bench.faulty = random.choice([0, 0, 0.1, 0.9])
        bench.aborting = random.choice([0, 0, 0, 0.01])
        await bench.set_up()
        for _ in range(5):
            for _ in range(random.randrange(24)):
                if bench.registers.PMBSR_EL1 & STOPPED:
                    break
                await bench.select_soon()
            if bench.registers.PMBSR_EL1 & STOPPED:
                await bench.run(random.randrange(30))
                await bench.serve()
            await bench.disturb()
    bench.fickle = 0
    while bench.flights or bench.unanswered:
        await bench.cycle()
    await bench.drain()

    dut._log.info("%d operations, %d cycles: %s", bench.operations, bench.now, dict(sorted(bench.coverage.items())))
    assert not missing(), f"never seen: {missing()}"


def to_be_seen(config: SPUConfig) -> list[str]:
    """What a long run must have met."""
    seen = [*OperationClass.__members__, "not retired", "buffer full", "filtered out", "vanished"]
    seen += ["completed before it finished"]
    outcomes = ["VALUE", "UNDEFINED", *(["TRAP_EL2"] if config.el2 else []), *(["TRAP_EL3"] if config.el3 else [])]
    seen += [f"{outcome} of {access}" for outcome in outcomes for access in ("MRS", "MSR")]
    seen += ["redirected"] if config.el2 else []
    seen += ["dropped while stopped", "discarded while being written", "counters kept while disabled"]
    seen += [f"buffer {state}" for state in range(4)] + [f"completion {state}" for state in range(3)]
    seen += [f"slot {slot} {state}" for slot in range(config.slots) for state in range(3)]
    seen += [f"lane {lane}" for lane in range(config.ops_per_cycle)]
    seen += [f"{what}, RND {rnd}" for what in ("reload", "selected") for rnd in (0, 1)] + ["reload, INTERVAL 0"]
    seen += [f"collisions {count + 1}" for count in range(config.selections_per_cycle)]
    seen += [f"feed_{event} {value}" for event in config.feed_events for value in (0, 1)]
    if config.two_accesses:
        seen += [f"{one} by {what}" for one in ("source", "destination") for what in ("the filter", "chance")]
        seen += ["source of two accesses", "destination of two accesses"]
    if config.discard_mode:
        seen += ["dropped in discard mode", "dropped in discard mode, while it waited"]
        seen += ["discard mode while a record is written", "collision in discard mode"]
        seen += ["written, though discard mode came and went while it waited"]
    if config.selections_per_cycle == 2:
        seen.append("two selected in a cycle")
    if config.slots > 1:
        seen.append("finished before an older one")
    # Without EL2 nothing is collected of it.
    seen += [packet.value for packet in config.layout.packets if config.el2 or packet is not Packet.CONTEXT_EL2]
    seen += [f"{owner}" for owner in owners(config)] + [f"EL{el}" for el in range(2 + config.el2)] + ["offset none"]
    if config.el2:
        seen.append("offset virtual")
    if config.ecv_poff:
        seen.append("offset physical")
    if config.nv2:
        seen += ["NV2 with its address", "NV2 without its address"]
    if config.external_aborts:
        seen.append("abort")
    places = ["before", *(["in"] if config.max_record_bytes > config.bus_bytes else [])]
    seen += [*(kind.name for kind in fault_kinds(config)), *(f"a fault {place} a record" for place in places)]
    if config.several_owners:
        seen += [f"new owner, {what}" for what in ("operations in flight", "a record waits", "a record is written")]
    if config.pbt:
        seen += ["taken branch, profiled 0", "taken branch, profiled 1"]
    if config.layout.align < config.bus_bytes:
        seen.append("begun within a word")
    return seen
