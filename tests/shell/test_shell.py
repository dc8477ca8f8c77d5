# amaranth: UnusedElaboratable=no

"""Tests of the AXI4 writer, the APB4 completer, and the Verilog of shells with the bus models of cocotbext-axi."""

import shutil
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from amaranth.hdl import Module, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import Out, connect, flipped

from configurations import NARROW
from spurtle.arch import PMBLIMITR_EL1
from spurtle.config import CONFIGS, SPUConfig
from spurtle.export import verilog
from spurtle.gateware.buffer import ProfilingBuffer
from spurtle.gateware.spu import SPU
from spurtle.interface.memory import BeatLayout, WriteFaultKind
from spurtle.interface.sysreg import ACCESS_LATENCY, AccessOutcome
from spurtle.shell.apb4 import APB4, APB4Completer
from spurtle.shell.axi4 import AXI4Write, AXI4Writer
from spurtle.shell.shell import Shell
from tests.support.cocotb_shell import SHELLS, ObservedShell
from tests.support.gateware import Bench, cycle
from tests.support.seeds import SEED
from tests.support.simulator import run_icarus, run_verilator
from tests.support.tiers import configurations

PAGE = 4096
LONGEST_BURST = 256
SYNCHRONOUS = 0b010000

CONFIGURATIONS = {
    # Records within a page; records that start and end within a word; errors that are ignored, and Realm state.
    **{name: CONFIGS[name] for name in ("minimal", "kunpeng_920", "v1p4")},
    # Records of more words than a burst has beats.
    "narrow": NARROW,
}


@dataclass
class Record:
    """A record to be written at `address`, for the Security state `ns` and `nse`."""

    address: int
    octets: bytes
    ns: int = 0
    nse: int = 0

    def beats(self, bus: int) -> Iterator[tuple[int, int, int, bool]]:
        """Yield address, data, strobe and last of each beat."""
        start = self.address % bus
        padded = bytes(start) + self.octets + bytes(-(start + len(self.octets)) % bus)
        for at in range(0, len(padded), bus):
            strobe = sum(1 << n for n in range(bus) if start <= at + n < start + len(self.octets))
            data = int.from_bytes(padded[at : at + bus], "little")
            yield self.address - start + at, data, strobe, at + bus == len(padded)

    def bursts(self, bus: int, *, limit: int) -> list[tuple[int, int]]:
        """Return address and number of words of each burst. No burst crosses a multiple of `limit`."""
        address, words = self.address & -bus, len([*self.beats(bus)])
        bursts: list[tuple[int, int]] = []
        while words:
            count = min(words, (limit - address % limit) // bus)
            bursts.append((address, count))
            address, words = address + count * bus, words - count
        return bursts


@dataclass
class Memory:
    """An AXI4 subordinate. A burst that touches `bad` receives an error response, and none of its bytes are written."""

    config: SPUConfig
    random: Random
    ready_rate: float = 1.0
    latency: int = 0
    bad: range = range(0)
    octets: dict[int, int] = field(default_factory=dict)
    bursts: list[tuple[int, int, int, int]] = field(default_factory=list)
    """Address, number of words, AWPROT and AWNSE of each burst."""
    words: list[tuple[int, int]] = field(default_factory=list)
    """Data and strobe of each word of the current burst."""
    lengths: list[int] = field(default_factory=list)
    """Number of words of each burst that has been received completely."""
    answered: int = 0
    answers: deque[tuple[int, int]] = field(default_factory=deque)
    """The earliest cycle of each response, and its value."""
    stalled: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Payload of each channel that was valid and not ready."""
    data_bursts: list[list[tuple[int, int]]] = field(default_factory=list)
    errors: int = 0
    max_outstanding: int = 0
    sent_at: list[int] = field(default_factory=list)
    """The cycle of each word."""
    b_valid: bool = False

    def ready(self) -> bool:
        """Return whether a channel is ready in this cycle."""
        return self.random.random() < self.ready_rate

    def inputs(self, axi: Any, now: int) -> list[tuple[Any, int]]:
        """Return the inputs of the writer in a cycle."""
        due = bool(self.answers) and self.answers[0][0] <= now
        self.b_valid = self.b_valid or (due and self.ready())
        return [
            (axi.awready, self.ready()),
            (axi.wready, self.ready()),
            (axi.bvalid, self.b_valid),
            (axi.bresp, self.answers[0][1] if self.b_valid else self.random.getrandbits(2)),
            (axi.bid, 0),
        ]

    def observe(self, now: int, aw: tuple[int, ...], w: tuple[int, ...], b: tuple[int, ...]) -> None:
        """Observe a cycle: `valid`, `ready` and the payload of each channel."""
        for name, (valid, ready, *payload) in {"AW": aw, "W": w}.items():
            if before := self.stalled.pop(name, None):
                assert valid, f"cycle {now}: {name}VALID was deasserted"
                assert before == tuple(payload), f"cycle {now}: the payload of {name} has changed"
            if valid and not ready:
                self.stalled[name] = tuple(payload)
        if b[0]:
            assert b[1], f"cycle {now}: a response is not accepted"
            self.answers.popleft()
            self.b_valid = False
            self.answered += 1
        if aw[0] and aw[1]:
            self._address(*aw[2:])
        if w[0] and w[1]:
            self.sent_at.append(now)
            self.words.append((w[2], w[3]))
            if w[4]:
                self.data_bursts.append(self.words)
                self.words = []
        while self.data_bursts and len(self.lengths) < len(self.bursts):
            self._write(now)
        # A burst is outstanding as soon as its address is valid.
        self.max_outstanding = max(self.max_outstanding, len(self.bursts) + (aw[0] and not aw[1]) - self.answered)

    def _address(self, ident: int, address: int, length: int, size: int, burst: int, prot: int, nse: int) -> None:
        assert (ident, burst, 1 << size) == (0, 1, self.config.bus_bytes)
        end = address + (length + 1) * self.config.bus_bytes
        assert address % self.config.bus_bytes == 0
        assert address // PAGE == (end - 1) // PAGE, f"a burst from {address:#x} to {end:#x} crosses a page"
        self.bursts.append((address, length + 1, prot, nse))

    def _write(self, now: int) -> None:
        words, (address, length, _, _) = self.data_bursts.pop(0), self.bursts[len(self.lengths)]
        assert len(words) == length, f"cycle {now}: a burst of {length} words has {len(words)}"
        self.lengths.append(length)
        bus = self.config.bus_bytes
        error = any(at in self.bad for at in range(address, address + length * bus))
        self.errors += error
        answer = self.random.choice([2, 3]) if error else self.random.choice([0, 1])
        self.answers.append((now + 1 + self.latency, answer))
        if error:
            return
        for number, (data, strobe) in enumerate(words):
            for octet in range(bus):
                if strobe >> octet & 1:
                    self.octets[address + number * bus + octet] = data >> 8 * octet & 0xFF


@dataclass
class Answer:
    """The response to the SPU for a record.

    Members
    -------
    fault : tuple
        Kind, fsc, word and external.
    answered : int
        Number of bursts that had received a response by then.
    done_at, started_at : int
        Cycles of the response, and of the first beat.
    """

    fault: tuple[Any, ...]
    answered: int
    done_at: int
    started_at: int


class WriterDriver:
    """A driver of an `AXI4Writer`, with memory."""

    def __init__(self, ctx: Any, dut: AXI4Writer, config: SPUConfig, memory: Memory, random: Random):
        self._ctx, self._dut, self._config, self._memory, self._random = ctx, dut, config, memory, random
        self.now = 0
        self.aborts = 0
        self.busy = 0

    async def cycle(self, record: Record | None = None, beat: tuple[int, int, int, bool] = (0, 0, 0, False)) -> Any:
        """Advance by one cycle. Return `ready`, `done` and the fault."""
        dut, axi, memory = self._dut, self._dut.axi, self._memory
        offered = BeatLayout(self._config).const(dict(zip(("address", "data", "strobe", "last"), beat, strict=True)))
        inputs = [
            (dut.write.beat.valid, record is not None),
            (dut.write.beat.payload, offered),
            (dut.ns, record.ns if record else self._random.getrandbits(1)),
            *([(dut.nse, record.nse if record else self._random.getrandbits(1))] if self._config.rme else []),
            *memory.inputs(axi, self.now),
        ]
        aborts = self._config.external_aborts
        ready, done, busy, fault, abort, *channels = await cycle(
            self._ctx, inputs, dut.write.beat.ready, dut.write.done, dut.busy, dut.write.fault,
            dut.write.abort if aborts else dut.busy,
            axi.awvalid, axi.awready, axi.awid, axi.awaddr, axi.awlen, axi.awsize, axi.awburst, axi.awprot,
            axi.awnse if self._config.rme else axi.awid,
            axi.wvalid, axi.wready, axi.wdata, axi.wstrb, axi.wlast,
            axi.bvalid, axi.bready,
        )  # fmt: skip
        memory.observe(self.now, tuple(channels[:9]), tuple(channels[9:14]), tuple(channels[14:]))
        self.aborts += abort if aborts else 0
        self.busy = busy
        self.now += 1
        return ready, done, (fault.kind, fault.fsc, fault.word, fault.external if aborts else 0)

    async def write(self, record: Record, gaps: float = 0.0) -> Answer:
        """Write a record and wait until it is done. `gaps` is the rate of idle cycles between beats."""
        started_at = self.now
        for number, beat in enumerate(record.beats(self._config.bus_bytes)):
            while number and self._random.random() < gaps:
                await self.cycle()
            ready, done, _ = await self.cycle(replace(record, ns=record.ns ^ (number > 0)), beat)
            assert ready and not done
        for _ in range(100 * LONGEST_BURST):
            _, done, fault = await self.cycle()
            if done:
                return Answer(fault, self._memory.answered, self.now, started_at)
        raise AssertionError("the record is not done")

    async def drain(self) -> None:
        """Wait until no burst is outstanding."""
        for _ in range(100 * LONGEST_BURST):
            await self.cycle()
            if not self.busy:
                return
        raise AssertionError("the writer stays busy")


def random_record(random: Random, config: SPUConfig) -> Record:
    """Return a random record. Many cross a page."""
    layout = config.layout
    size = layout.max_size if not layout.packed else random.randrange(1, layout.max_size // layout.align) * layout.align
    address = random.choice([PAGE, PAGE, random.getrandbits(20)]) - random.randrange(size + 1) + (1 << 40)
    rme = random.getrandbits(1) if config.rme else 0
    return Record(address & -layout.align, random.randbytes(size), random.getrandbits(1) | rme, rme)


def limit(config: SPUConfig) -> int:
    """Return the boundary that no burst crosses: a page, unless a record can be longer than a burst."""
    longest = config.max_record_bytes // config.bus_bytes + (config.layout.align < config.bus_bytes)
    return PAGE if longest <= LONGEST_BURST else LONGEST_BURST * config.bus_bytes


@pytest.mark.parametrize("outstanding", [1, 3])
@pytest.mark.parametrize("name", configurations([*CONFIGURATIONS]))
def test_written_records_are_in_memory(name: str, outstanding: int) -> None:
    """Memory stalls and responds late. Errors are reported as faults or as asynchronous aborts."""
    config = CONFIGURATIONS[name]
    bench = Bench(dut := AXI4Writer(config, outstanding=outstanding))
    count = 2 if name == "narrow" else 16

    async def scenario(ctx: Any, seed: int, bad: bool) -> None:
        random = Random(f"{SEED} {seed}")
        memory = Memory(config, random, ready_rate=random.choice([1.0, 0.3]), latency=random.choice([0, 1, 30]))
        driver = WriterDriver(ctx, dut, config, memory, random)
        expected: dict[int, int] = {}
        expected_bursts: list[tuple[int, int, int, int]] = []
        failed = 0
        for _ in range(count):
            record = random_record(random, config)
            bursts = record.bursts(config.bus_bytes, limit=limit(config))
            if bad:  # outstanding bursts of earlier records must not fail
                await driver.drain()
            fails = random.randrange(len(bursts) + 1) if bad else len(bursts)
            start = bursts[fails][0] if fails < len(bursts) else 0
            memory.bad = range(start, start + (1 if fails < len(bursts) else 0))
            answer = await driver.write(record, gaps=random.choice([0.0, 0.5]))
            failed += fails < len(bursts)
            stops = outstanding == 1 and config.external_aborts
            sent = bursts[: fails + 1] if stops else bursts
            expected_bursts += [(at, words, 1 | record.ns << 1, record.nse) for at, words in sent]
            lost = range(0)
            if fails < len(bursts):
                lost = range(start, (1 << 64) if stops else start + bursts[fails][1] * config.bus_bytes)
            expected |= {
                record.address + n: octet for n, octet in enumerate(record.octets) if record.address + n not in lost
            }
            if stops and fails < len(bursts):
                word = sum(words for _, words in bursts[:fails])
                assert answer.fault == (WriteFaultKind.STAGE_1, SYNCHRONOUS, word, 1)
            else:
                assert answer.fault[0] is WriteFaultKind.NONE
            if outstanding == 1:
                assert memory.answered == len(expected_bursts), "done, but a burst has no response"
        await driver.drain()
        assert memory.answered == len(expected_bursts)
        assert memory.bursts == expected_bursts
        assert memory.octets == expected
        assert memory.errors == failed
        assert driver.aborts == (failed if outstanding > 1 and config.external_aborts else 0)
        assert memory.max_outstanding <= outstanding

    for seed in range(2):
        try:
            bench.run(lambda ctx, seed=seed: scenario(ctx, seed, bad=seed % 2 == 1))
        except AssertionError as failed:
            raise AssertionError(f"with seed {seed}: {failed}") from failed


@pytest.mark.parametrize("name", configurations(["minimal", "kunpeng_920"]))
def test_posted_records_are_sent_at_full_rate(name: str) -> None:
    """A record of n words takes at most n + 2 cycles even if memory responds late. The buffer is not faster."""
    config = CONFIGURATIONS[name]
    bench = Bench(dut := AXI4Writer(config, outstanding=4))
    records = 50

    async def scenario(ctx: Any) -> None:
        memory = Memory(config, Random(SEED), latency=20)
        driver = WriterDriver(ctx, dut, config, memory, Random(SEED))
        size = config.max_record_bytes
        answers = [await driver.write(Record(number * size, bytes(size))) for number in range(records)]
        await driver.drain()
        words = size // config.bus_bytes
        assert {answer.done_at - answer.started_at for answer in answers} <= {words + 1, words + 2}
        # Cycles from the first to the last word that is sent.
        sent = memory.sent_at[-1] - memory.sent_at[0] + 1
        assert len(memory.sent_at) / sent >= words / (words + 2)
        assert memory.max_outstanding > 1

    bench.run(scenario)


class BufferPath(wiring.Component):
    """A Profiling Buffer and an AXI4 writer."""

    def __init__(self, config: SPUConfig, outstanding: int):
        self._config = config
        self._writer = AXI4Writer(config, outstanding=outstanding)
        self._buffer = ProfilingBuffer(config)
        ports = self._buffer.signature.members
        super().__init__(
            {
                **{name: ports[name] for name in ("i", "pmblimitr", "pmbptr")},
                "axi": Out(AXI4Write(config)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.buffer, m.submodules.writer = buffer, writer = self._buffer, self._writer
        connect(m, flipped(self.i), buffer.i)
        connect(m, buffer.write, writer.write)
        connect(m, writer.axi, flipped(self.axi))
        m.d.comb += [buffer.pmblimitr.eq(self.pmblimitr), self.pmbptr.eq(buffer.pmbptr)]
        return m


def cycles_between_records(config: SPUConfig, dut: Any, answer: Any) -> int:
    """Return the cycles from one record to the next, with records of maximum size that are always available."""
    layout = config.layout
    words = layout.max_size // config.bus_bytes
    moved: list[int] = []

    async def scenario(ctx: Any) -> None:
        before = number = done = 0
        ctx.set(Value.cast(dut.pmblimitr), PMBLIMITR_EL1.pack(E=1, LIMIT=1 << 20))
        for now in range(40 * words):
            inputs = [(dut.i.valid, 1), (dut.i.p.last, number % words == words - 1), *answer(dut, done)]
            observed = dut.write.beat if hasattr(dut, "write") else dut.i
            ready, pointer, valid, accepted, last = await cycle(
                ctx, inputs, dut.i.ready, dut.pmbptr, observed.valid, observed.ready, observed.p.last
            )
            done = valid and accepted and last
            number += ready
            if pointer != before:
                moved.append(now)
                before = pointer

    Bench(dut).run(scenario)
    steps = {later - earlier for earlier, later in pairwise(moved[5:])}
    assert len(steps) == 1, steps
    return steps.pop()


@pytest.mark.parametrize("name", configurations(["minimal", "arm_model"]))
def test_posted_writes_do_not_stall_the_buffer(name: str) -> None:
    """The buffer is as fast as with memory that reports done in the cycle after the last beat of a record."""
    config = CONFIGS[name]
    plain = cycles_between_records(
        config, ProfilingBuffer(config), lambda dut, done: [(dut.write.beat.ready, 1), (dut.write.done, done)]
    )

    def always(dut: Any, done: int) -> list[tuple[Any, int]]:
        return [(dut.axi.awready, 1), (dut.axi.wready, 1), (dut.axi.bvalid, 0)]

    assert cycles_between_records(config, BufferPath(config, 256), always) == plain


# APB4.


@dataclass
class Registers:
    """A model of the register port. Some accesses are UNDEFINED or trapped."""

    values: dict[int, int]
    outcomes: dict[tuple[int, bool], AccessOutcome]
    accesses: list[tuple[int, bool, int]] = field(default_factory=list)
    _answers: deque[tuple[int, AccessOutcome]] = field(
        default_factory=lambda: deque([(0, AccessOutcome.UNDEFINED)] * ACCESS_LATENCY)
    )

    def observe(self, valid: int, write: int, encoding: int, wdata: int) -> None:
        """Observe the port in a cycle."""
        answer = (0, AccessOutcome.UNDEFINED)
        if valid:
            self.accesses.append((encoding, bool(write), wdata if write else 0))
            outcome = self.outcomes.get((encoding, bool(write)), AccessOutcome.VALUE)
            if outcome is AccessOutcome.VALUE and write:
                self.values[encoding] = wdata
            answer = (self.values[encoding] if outcome is AccessOutcome.VALUE and not write else 0, outcome)
        self._answers.append(answer)
        self._answers.popleft()

    @property
    def answer(self) -> tuple[int, AccessOutcome]:
        """Read data and outcome of the access `ACCESS_LATENCY` cycles before."""
        return self._answers[0]


class Requester:
    """An APB4 requester, with the model of the registers."""

    def __init__(self, ctx: Any, dut: APB4Completer, registers: Registers, random: Random):
        self._ctx, self._dut, self._registers, self._random = ctx, dut, registers, random

    async def _cycle(self, *, psel: int, penable: int, write: int, address: int, data: int, strobe: int) -> Any:
        apb, port = self._dut.apb, self._dut.sysreg
        rdata, outcome = self._registers.answer
        inputs = [
            (apb.psel, psel), (apb.penable, penable), (apb.pwrite, write), (apb.paddr, address), (apb.pwdata, data),
            (apb.pstrb, strobe), (port.rdata, rdata), (port.outcome, outcome),
        ]  # fmt: skip
        pready, pslverr, prdata, valid, pwrite, op1, crn, crm, op2, wdata = await cycle(
            self._ctx, inputs, apb.pready, apb.pslverr, apb.prdata,
            port.valid, port.write, port.op1, port.crn, port.crm, port.op2, port.wdata,
        )  # fmt: skip
        assert not (pready or valid) or (psel and penable), "activity outside the access phase"
        assert pready or not pslverr
        self._registers.observe(valid, pwrite, op1 << 11 | crn << 7 | crm << 3 | op2, wdata)
        return pready, pslverr, prdata

    async def transfer(self, address: int, *, write: bool = False, data: int = 0, strobe: int = 0) -> tuple[int, ...]:
        """Make a transfer. Return read data, PSLVERR and the number of cycles of the access phase."""
        what = {"write": write, "address": address, "data": data, "strobe": strobe}
        while self._random.random() < 0.3:
            await self._cycle(psel=0, penable=self._random.getrandbits(1), **what)
        await self._cycle(psel=1, penable=0, **what)
        for cycles in range(1, 10):
            pready, pslverr, prdata = await self._cycle(psel=1, penable=1, **what)
            if pready:
                return prdata, pslverr, cycles
        raise AssertionError("the transfer does not end")


def merge(value: int, data: int, strobe: int) -> int:
    """Return `value` with the strobed bytes replaced by those of `data`."""
    mask = sum(0xFF << 8 * byte for byte in range(8) if strobe >> byte & 1)
    return value & ~mask | data & mask


def test_apb_accesses_each_register_once() -> None:
    bench = Bench(dut := APB4Completer())

    async def scenario(ctx: Any, seed: int) -> None:
        random = Random(f"{SEED} {seed}")
        encodings = random.sample(range(1 << 14), 8)
        registers = Registers(
            {encoding: random.getrandbits(64) for encoding in encodings},
            {
                (encoding, write): random.choice(
                    [AccessOutcome.UNDEFINED, AccessOutcome.TRAP_EL2, AccessOutcome.TRAP_EL3]
                )
                for encoding in encodings
                for write in (False, True)
                if random.random() < 0.15
            },
        )
        requester = Requester(ctx, dut, registers, random)
        upper = low = low_strobe = 0
        for _ in range(300):
            encoding, high, write = random.choice(encodings), random.getrandbits(1), random.getrandbits(1)
            data, strobe = random.getrandbits(32), random.choice([15, 15, random.getrandbits(4)])
            registers.accesses.clear()
            before = registers.values[encoding]
            address = encoding << 3 | high << 2 | random.getrandbits(2)
            value, error, cycles = await requester.transfer(address, write=bool(write), data=data, strobe=strobe)
            reads, writes = (
                registers.outcomes.get((encoding, w), AccessOutcome.VALUE) is AccessOutcome.VALUE for w in (0, 1)
            )
            if high != write:
                assert (registers.accesses, error, cycles) == ([], 0, 1)
                if write:
                    low, low_strobe = data, strobe
                else:
                    assert value == upper
            elif not write:
                shown = before if reads else 0
                assert registers.accesses == [(encoding, False, 0)]
                assert (value, error, cycles) == (shown & 0xFFFF_FFFF, not reads, 1 + ACCESS_LATENCY)
                upper = shown >> 32
            else:
                all_strobes = low_strobe | strobe << 4
                new = merge(before, low | data << 32, all_strobes)
                expected = [(encoding, False, 0)] if all_strobes != 255 else []
                if all_strobes == 255 or reads:
                    expected.append((encoding, True, new))
                assert registers.accesses == expected
                assert error == (not writes or (all_strobes != 255 and not reads))
                assert registers.values[encoding] == (before if error else new)
                assert cycles == 1 + ACCESS_LATENCY * len(expected)
                low_strobe = 0

    for seed in range(4):
        try:
            bench.run(lambda ctx, seed=seed: scenario(ctx, seed))
        except AssertionError as failed:
            raise AssertionError(f"with seed {seed}: {failed}") from failed


# Shells.


@cache
def shell(name: str) -> verilog.Verilog:
    return verilog.generate(ObservedShell(SHELLS[name]), f"shell_{name}")


def test_arguments_out_of_range() -> None:
    with pytest.raises(ValueError, match=r"^shell must be axi4 or axi4-apb, not 'ahb'$"):
        Shell(CONFIGS["minimal"], "ahb")
    for outstanding in (0, 257):
        with pytest.raises(ValueError, match=f"^outstanding must be from 1 to 256, not {outstanding}$"):
            AXI4Writer(CONFIGS["minimal"], outstanding=outstanding)


@pytest.mark.parametrize("name", configurations([*SHELLS], fast=["packed"]))
def test_the_ports_of_a_shell(name: str) -> None:
    """The buses replace ports of the SPU."""
    config = SHELLS[name].config
    apb = SHELLS[name].shell == "axi4-apb"
    replaced = ("write__", "sysreg__") if apb else ("write__",)
    plain = {port.name for port in verilog.ports(SPU(config)) if not port.name.startswith(replaced)}
    buses = {"m_axi_": AXI4Write(config), **({"s_apb_": APB4()} if apb else {})}
    added = {f"{prefix}{member}" for prefix, bus in buses.items() for member in bus.members}
    assert {port.name for port in shell(name).ports} == plain | added | {"observed_beat", "observed_transfer"}


@pytest.mark.parametrize("name", configurations([*SHELLS], fast=["packed"]))
def test_the_verilog_of_a_shell(name: str) -> None:
    # Icarus Verilog runs slower than Verilator, but needs less time to compile, which dominates here.
    run = run_icarus if shutil.which("iverilog") else run_verilator
    run(shell(name), "tests.support.cocotb_shell", {"SPURTLE_SHELL": name, "SPURTLE_ROUNDS": "8"})
