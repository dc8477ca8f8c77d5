"""A cocotb test of the generated Verilog of the SPU: thousands of random operations, compared with the reference.

tests/system/test_cocotb.py runs it in a simulator. SPURTLE_CONFIG, SPURTLE_CYCLES and SPURTLE_SEED in the environment
select the configuration, the number of cycles and the seed.
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
from spurtle.gateware.completion import CompletionState
from spurtle.gateware.record_issue import IssueState
from spurtle.gateware.slots import SlotState
from spurtle.interface.sysreg import ACCESS_LATENCY
from spurtle_sim.model.buffer import fault_kinds
from tests.support.spu_bench.bench import SPUBench
from tests.support.spu_bench.core import owners
from tests.support.spu_bench.memory import PAGE
from tests.support.spu_bench.state import BUFFER, STOPPED, discarding


class Software(SPUBench):
    """The software on the core: a program, and the driver of the SPU."""

    async def run(self, cycles: int) -> None:
        """Execute the program for a number of cycles."""
        intensity = self.random.choice([0.2, 0.7, 1.0, 1.0])
        for _ in range(cycles):
            await self.cycle(passes=self.lanes(intensity))

    def lanes(self, intensity: float) -> int:
        """Return the lanes in which an operation passes in a cycle.

        No operation passes while it is unknown whether the buffer runs: the reference has no timing.
        """
        if self.now < self.settled_from:
            return 0
        return sum((self.random.random() < intensity) << lane for lane in range(self.config.ops_per_cycle))

    async def read(self, *registers: Register, any_state: bool = False) -> None:
        """Read registers."""
        for register in registers:
            await self._settle(register)
            await self.cycle(passes=self.lanes(0.2), read=register, any_state=any_state)

    async def write(self, register: Register, value: int, *, any_state: bool = False) -> None:
        """Write a register."""
        await self._settle(register)
        await self.cycle(passes=self.lanes(0.2), write=(register, value), any_state=any_state)
        if register in BUFFER:
            for _ in range(ACCESS_LATENCY - 1):
                await self.cycle(passes=self.lanes(0.2))

    async def _settle(self, register: Register) -> None:
        """Wait until the reference can predict an access that is made in this cycle."""
        while register in BUFFER and (
            self.now < self.settled_from
            or any(self.now <= each.responds_at < self.now + ACCESS_LATENCY for each in self.responding)
        ):
            await self.cycle()

    async def drain(self) -> None:
        """Execute PSB CSYNC. Check memory and the PMU events."""
        self.draining = self.hold_finish = True
        for _ in range(2000):
            await self.cycle()
            if self.drained:
                break
        assert self.drained, "the SPU does not drain"
        self.draining = False
        self.resolve_maybe_dropped()
        assert not (self.finished or self.waiting or self.writing or self.responding or self.answered), (
            "drained, but a record is not in memory"
        )
        assert self.memory == self.written
        self.completion.release(self.now)
        for number, slot in enumerate(self.slots):
            if number not in self.flights:
                slot.release(self.now)
        # No operation finishes until the last operations that have passed are counted.
        for _ in range(self.config.answer_latency + 3):
            await self.cycle()
        found = self.counted
        wrong = [f"{found[name]} {name}, not {count}" for name, count in self.expected.items() if found[name] != count]
        assert not wrong, f"PMU events: {'; '.join(wrong)}"
        self.hold_finish = False

    def buffer_range(self) -> tuple[int, int]:
        """Return a pointer and a limit: space for a few longest records, and more if the size of records varies."""
        layout = self.config.layout
        records = self.random.choice([1, 1, 2, 3, self.random.randrange(1, 12)])
        limit = self.random.choice([PAGE, 0x8000_0000, 0x00FF_FFFF_FFFF_F000, 0xFFFF_FFFF_FFFF_F000])
        more = self.random.randrange(layout.max_size // layout.align) * layout.align
        return limit - records * layout.max_size - more, limit

    def filters(self) -> int:
        """Return a value for PMSFCR_EL1. Few filters are enabled, because few operations pass many of them."""
        random, bits = self.random, self.random.getrandbits
        enables = random.choice([0, 0, 0, 0, 0, 0, 0, 1, 2, 2, 2, 4, 8, 16, 31])
        types = random.choice([0b00010, 0b00100, bits(5), bits(5)])  # only loads, only stores
        return enables | types << 16 | random.choice([0, bits(5) & bits(5)]) << 48

    @staticmethod
    def enabled(limit: int, mode: int = FM.FILL) -> int:
        """Return a value for PMBLIMITR_EL1 that enables the buffer. `limit` is an address."""
        return limit & -PAGE | PMBLIMITR_EL1.pack(E=1, FM=mode)

    async def set_up(self) -> None:
        """Set up profiling as a driver does: disable, drain, program all registers, enable."""
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
        pointer, limit = self.buffer_range()
        await self.write(
            PMBPTR_EL1,
            pointer if random.random() < 0.8 else pointer + random.choice([1, 8, PAGE, 1 << 56]) & (1 << 64) - 1,
        )
        await self.write(PMBSR_EL1, random.choice([0, 0, bits(64) & ~STOPPED]))
        await self.write(PMBLIMITR_EL1, self.enabled(limit, random.choice([0, 0, 0, 1, 2, 3])))
        await self.enable_profiling(3 & random.choice([1, 2, 3, 3, 3]))
        await self.read(*REGISTERS)

    async def enable_profiling(self, levels: int = 3) -> None:
        """Enable profiling at some Exception levels, with random collection permissions.

        The timestamps of EL1 and EL2 have the same offset in many cases.
        """
        bits = self.random.getrandbits
        time = self.random.choice([0, 0, PMSCR_EL1.pack(TS=1, PCT=PCT.OFFSET_PHYSICAL)])
        for register in (PMSCR_EL1, PMSCR_EL2):
            await self.write(register, levels | bits(5) << 3 | time)

    async def serve_interrupt(self) -> None:
        """Serve the interrupt, as a driver does."""
        await self.drain()
        await self.read(PMBSR_EL1, PMBPTR_EL1, PMSICR_EL1)
        limit = (self.registers.PMBLIMITR_EL1 & -PAGE) + PAGE
        if limit >> 12 & 0b11 and self.random.random() < 0.3:  # one more page, after the last record
            await self.write(PMBLIMITR_EL1, self.enabled(limit))
            await self.write(PMBSR_EL1, 0)
            return
        pointer, limit = self.buffer_range()
        if limit != self.registers.PMBLIMITR_EL1 & -PAGE:
            await self.write(PMBLIMITR_EL1, self.enabled(limit))
        await self.write(PMBPTR_EL1, pointer)
        await self.write(PMBSR_EL1, 0)

    async def select_soon(self) -> None:
        """Write small counts, so that an operation is selected soon.

        With FEAT_SPE_ERnd two may be selected: ECOUNT ends near the time at which COUNT loads a small random number.
        """
        random, lanes = self.random, self.config.ops_per_cycle
        count = random.randrange(1, 5 + lanes)
        ecount = random.randrange(9 + lanes)
        if self.config.ernd and self.registers.PMSIRR_EL1 & 1 and random.random() < 0.5:
            ecount = max(0, count - random.randint(1, (lanes + 1) // 2))
            await self.write(IMP_PMSRNDR_EL1, random.getrandbits(24) << 8 | random.randint(0, lanes // 4))
        await self.write(PMSICR_EL1, PMSICR_EL1.pack(COUNT=count, ECOUNT=ecount))
        await self.run(random.randrange(5, 20))

    async def wait_for_pending_record(self) -> None:
        """Wait until a record is pending or being written, for at most 100 cycles, or not at all.

        Software that acts at random cycles would seldom act in this state.
        """
        moment = self.random.choice(["waiting", "writing"])
        for _ in range(self.random.choice([0, 100])):
            if getattr(self, moment):
                break
            await self.run(1)

    async def discard(self) -> None:
        """Enter and leave Discard mode at any time."""
        if self.registers.PMBSR_EL1 & STOPPED:
            await self.serve_interrupt()
        random, limit = self.random, self.registers.PMBLIMITR_EL1
        fits = not discarding(self.registers)
        if fits and random.random() < 0.5:  # for a moment
            ready_rate, max_latency = self.ready_rate, self.max_latency
            self.ready_rate, self.max_latency = 0.1, 3
            for _ in range(20):
                if self.queued:
                    break
                await self.select_soon()
            await self.write(PMBLIMITR_EL1, self.enabled(limit, FM.DISCARD))
            await self.run(random.choice([0, 0, 1, 20, 100]))
            await self.write(PMBLIMITR_EL1, self.enabled(limit, random.choice([0, 1, 3])))
            self.ready_rate, self.max_latency = ready_rate, max_latency
            await self.read(*BUFFER)
            return
        await self.wait_for_pending_record()
        await self.write(PMBLIMITR_EL1, self.enabled(limit, FM.DISCARD))
        # Pointer and limit are ignored in Discard mode. Before it ends, the SPU is drained and both are valid.
        await self.write(PMBPTR_EL1, random.getrandbits(64))
        await self.write(PMBLIMITR_EL1, self.enabled(random.getrandbits(64), FM.DISCARD))
        for _ in range(random.randrange(6)):
            await self.select_soon()
        await self.drain()
        await self.read(*BUFFER)
        pointer, limit = self.buffer_range()
        await self.write(PMBPTR_EL1, pointer)
        await self.write(PMBLIMITR_EL1, self.enabled(limit, random.choice([0, 1, 3])))

    async def change_owner_any_time(self) -> None:
        """Change the owner of the buffer at any time. It may change back."""
        if self.random.random() < 0.5:
            await self.select_soon()
        await self.wait_for_pending_record()
        ownership = self.ownership
        self.change_owner()
        if self.random.random() < 0.5:
            await self.run(self.random.choice([1, 1, 2, 3, 20]))
            self.ownership = ownership
            self.move_pe(profiled=True)
        await self.read(*BUFFER, PMBIDR_EL1)

    async def access_from_any_state(self) -> None:
        """Access registers in any state of the PE: accesses succeed, are redirected, trap or are UNDEFINED."""
        random = self.random
        for register in random.choices((*REGISTERS, PMSCR_EL12), k=8):
            if random.random() < 0.5:
                await self.read(register, any_state=True)
            elif register in (PMSCR_EL1, PMSCR_EL2, PMSCR_EL12):
                await self.write(register, random.getrandbits(8), any_state=True)
            else:
                await self.write(register, getattr(self.registers, register.name, 0), any_state=True)
            self.move_pe(profiled=random.random() < 0.5)

    async def random_action(self) -> None:
        """Perform a random action that software may perform at any time."""
        match self.random.randrange(22):
            case 0:
                await self.enable_profiling()
            case 1:  # disable and enable
                limit = self.registers.PMBLIMITR_EL1
                await self.wait_for_pending_record()
                await self.write(PMBLIMITR_EL1, limit & ~1)
                await self.run(self.random.choice([0, 1, 20]))
                await self.write(PMBLIMITR_EL1, limit)
            case 2:
                await self.wait_for_pending_record()
                await self.write(PMBSR_EL1, self.registers.PMBSR_EL1 | STOPPED)
            case 3:
                if self.registers.PMBSR_EL1 & STOPPED == 0:
                    size = self.random.randrange(1, 12) * self.config.max_record_bytes
                    await self.write(PMBPTR_EL1, (self.registers.PMBLIMITR_EL1 & -PAGE) - size)
            case 4:
                await self.wait_for_pending_record()
                await self.drain()
                await self.read(PMSICR_EL1, *BUFFER)
            case 5:
                self.move_pe(profiled=False)
                await self.run(20)
                await self.read(PMSICR_EL1, PMBIDR_EL1)
                self.move_pe(profiled=True)
            case 6:  # longer than an interval
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
                await self.access_from_any_state()
            case 11 | 12 | 13 if self.config.discard_mode:
                await self.discard()
            case 19 | 20 | 21 if self.config.several_owners:
                await self.change_owner_any_time()
            case _:
                self.move_pe(profiled=True)


@cocotb.test()
async def random_operations(dut: Any) -> None:
    bench = Software(dut, FOR_SPUS[os.environ["SPURTLE_CONFIG"]], Random(os.environ["SPURTLE_SEED"]))
    await bench.reset()
    await bench.read(*REGISTERS)
    random = bench.random
    cycles = int(os.environ["SPURTLE_CYCLES"])
    # A short run may miss rare events. A long one continues until all have occurred.
    required = required_coverage(bench.config) if cycles >= 10_000 else []

    def missing() -> list[str]:
        return [name for name in required if not bench.coverage[name]]

    while bench.now < cycles or (missing() and bench.now < 4 * cycles):
        bench.ready_rate = random.choice([1.0, 1.0, 0.6, 0.2])
        bench.max_latency = random.choice([3, 3, 10, 10, 30, 100, 600])
        bench.pe_change_rate = random.choice([0, 0, 0.02, 0.2])
        bench.owner_change_rate = random.choice([0, 0, 0, 0, 0.01])
        bench.fault_rate = random.choice([0, 0, 0.1, 0.9])
        bench.abort_rate = random.choice([0, 0, 0, 0.01])
        await bench.set_up()
        for _ in range(5):
            for _ in range(random.randrange(24)):
                if bench.registers.PMBSR_EL1 & STOPPED:
                    break
                await bench.select_soon()
            if bench.registers.PMBSR_EL1 & STOPPED:
                await bench.run(random.randrange(30))
                await bench.serve_interrupt()
            await bench.random_action()
    bench.owner_change_rate = 0
    while bench.flights or bench.unanswered:
        await bench.cycle()
    await bench.drain()

    dut._log.info("%d operations, %d cycles: %s", bench.operations, bench.now, dict(sorted(bench.coverage.items())))
    assert not missing(), f"did not occur: {missing()}"


def required_coverage(config: SPUConfig) -> list[str]:
    """Return the events that must occur in a long run."""
    several_beats = config.max_record_bytes > config.bus_bytes
    required = [*OperationClass.__members__, "not retired", "buffer full", "filtered out", "vanished"]
    required += ["completed before it finished"]
    outcomes = ["VALUE", "UNDEFINED", *(["TRAP_EL2"] if config.el2 else []), *(["TRAP_EL3"] if config.el3 else [])]
    required += [f"{outcome} of {access}" for outcome in outcomes for access in ("MRS", "MSR")]
    required += ["redirected"] if config.el2 else []
    required += ["dropped while stopped", "discarded while being written", "counters held while disabled"]
    # A record of one beat never continues to be written, so that nothing is pending behind it when Discard mode begins.
    required += [f"buffer {state}" for state in IssueState if state is not IssueState.WRITE or several_beats]
    required += [f"completion {state}" for state in CompletionState]
    required += [f"slot {slot} {state}" for slot in range(config.slots) for state in SlotState]
    required += [f"lane {lane}" for lane in range(config.ops_per_cycle)]
    required += [f"{what}, RND {rnd}" for what in ("reload", "selected") for rnd in (0, 1)] + ["reload, INTERVAL 0"]
    required += [f"collisions {count + 1}" for count in range(config.selections_per_cycle)]
    required += [f"feed_{event} {value}" for event in config.feed_events for value in (0, 1)]
    if config.two_accesses:
        required += [f"{one} by {what}" for one in ("source", "destination") for what in ("the filter", "chance")]
        required += ["source of two accesses", "destination of two accesses"]
    if config.discard_mode:
        required += ["dropped in Discard mode", "dropped in Discard mode while pending"]
        required += ["Discard mode while a record is written", "collision in Discard mode"]
        required += ["written after Discard mode ended while it was pending"] * several_beats
    if config.selections_per_cycle == 2:
        required.append("two selected in a cycle")
    if config.slots > 1:
        required.append("finished before an older one")
    # The Context packet of EL2 is absent without EL2.
    required += [packet.value for packet in config.layout.packets if config.el2 or packet is not Packet.CONTEXT_EL2]
    required += [f"{owner}" for owner in owners(config)] + [f"EL{el}" for el in range(2 + config.el2)] + ["offset none"]
    if config.el2:
        required.append("offset virtual")
    if config.ecv_poff:
        required.append("offset physical")
    if config.nv2:
        required += ["NV2 with its address", "NV2 without its address"]
    if config.external_aborts:
        required.append("abort")
    positions = ["before", *(["in"] if several_beats else [])]
    required += [
        *(kind.name for kind in fault_kinds(config)),
        *(f"a fault {position} a record" for position in positions),
    ]
    if config.several_owners:
        required += [f"new owner, {what}" for what in ("operations in flight", "a record waits", "a record is written")]
    if config.pbt:
        required += ["taken branch, profiled 0", "taken branch, profiled 1"]
    if config.layout.align < config.bus_bytes:
        required.append("starts within a word")
    return required
