# amaranth: UnusedElaboratable=no

"""Tests of the AXI4 writer with a model of the SPU and of memory."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from configurations import FEATURES, NARROW
from spurtle.arch import PAGE_BYTES
from spurtle.config import CONFIGS, SPUConfig
from spurtle.interface.memory import BeatLayout, WriteFaultKind
from spurtle.shell.axi4 import AXI4Writer
from spurtle.shell.owner import RecordOwner
from tests.support.axi_memory import PAGE, AXIMemory, Record, random_record
from tests.support.gateware import Bench, cycle
from tests.support.seeds import SEED
from tests.support.tiers import configurations, tiers

LONGEST_BURST = 256
SYNCHRONOUS = 0b010000

CONFIGURATIONS = {
    # Records within a page; records that start and end within a word; errors that are ignored.
    **{name: CONFIGS[name] for name in ("minimal", "kunpeng_920", "v1p4")},
    # Realm state, with errors that are reported.
    "rme": FEATURES["minimal_rme"],
    # Records of one word, and of two.
    "wide": replace(CONFIGS["hisilicon_mobile"], bus_bytes=64),
    # Records of more words than a burst has beats.
    "narrow": NARROW,
}


def limit(config: SPUConfig) -> int:
    """Return the boundary that no burst crosses: a page, unless a record can be longer than a burst."""
    longest = config.max_record_bytes // config.bus_bytes + (config.layout.align < config.bus_bytes)
    return PAGE if longest <= LONGEST_BURST else LONGEST_BURST * config.bus_bytes


@cache
def bench(name: str, outstanding: int) -> tuple[AXI4Writer, Bench]:
    """Return a compiled writer."""
    dut = AXI4Writer(replace(CONFIGURATIONS[name], outstanding=outstanding))
    return dut, Bench(dut)


class Answer:
    """Outcome of a record.

    Members
    -------
    fault : tuple
        Kind, fsc, word and external.
    abandoned : bool
        A fault was reported before, while the record was outstanding.
    """

    def __init__(self, fault: tuple[Any, ...], abandoned: bool):
        self.fault, self.abandoned = fault, abandoned


class WriterDriver:
    """Driver of the write port of an `AXI4Writer` as the SPU drives it, with memory."""

    def __init__(self, ctx: Any, dut: AXI4Writer, memory: AXIMemory, random: Random):
        self._ctx, self._dut, self._memory, self._random = ctx, dut, memory, random
        self._config = dut.config
        self.now = 0
        self.answers: list[Answer] = []
        self._complete = self._begun = 0
        self._discard_to = 0
        """Records that are begun and abandoned, counted from the first one."""

    async def write(self, records: list[Record], *, gaps: float = 0.0) -> None:
        """Write records until each is answered. `gaps` is the rate of idle cycles before a beat."""
        first = self._begun
        beats: Iterator[tuple[Record, int, Any]] = iter(())
        offered: tuple[Record, int, Any] | None = None
        while len(self.answers) < first + len(records):
            assert self.now < 400 * len(records) * LONGEST_BURST, "a record is not answered"
            if offered is None and (self._random.random() >= gaps):
                offered = next(beats, None)
                if offered is None and self._begun < first + len(records) and self._can_begin():
                    record = records[self._begun - first]
                    beats = iter([(record, n, beat) for n, beat in enumerate(record.beats(self._config.bus_bytes))])
                    offered = next(beats)
                    self._begun += 1
            if await self._cycle(offered):
                self._complete += offered is not None and offered[2][3]
                offered = None

    def _can_begin(self) -> bool:
        outstanding = self._begun - len(self.answers)
        return outstanding < self._config.outstanding and not self._discarding

    @property
    def _discarding(self) -> bool:
        return len(self.answers) < self._discard_to

    async def _cycle(self, offered: tuple[Record, int, Any] | None) -> bool:
        """Advance by one cycle. Return whether the beat is transferred."""
        dut, axi, memory, config = self._dut, self._dut.axi, self._memory, self._config
        record, number, beat = offered or (Record(0, b""), 1, (0, 0, 0, False))
        discarding = self._discarding
        # The Security state is only valid with the first beat.
        ns, nse = (record.ns, record.nse) if not number else (self._random.getrandbits(1) for _ in range(2))
        inputs = [
            (dut.write.beat.valid, offered is not None),
            (
                dut.write.beat.payload,
                BeatLayout(config).const(dict(zip(("address", "data", "strobe", "last"), beat, strict=True))),
            ),
            (dut.ns, ns),
            *([(dut.nse, nse)] if config.rme else []),
            *([(dut.write.discard, discarding)] if config.outstanding > 1 else []),
            *memory.inputs(axi, self.now),
        ]
        ready, done, fault, *channels = await cycle(
            self._ctx, inputs, dut.write.beat.ready, dut.write.done, dut.write.fault,
            axi.awvalid, axi.awready, axi.awid, axi.awaddr, axi.awlen, axi.awsize, axi.awburst, axi.awprot,
            axi.awnse if config.rme else axi.awid,
            axi.wvalid, axi.wready, axi.wdata, axi.wstrb, axi.wlast,
            axi.bvalid, axi.bready,
        )  # fmt: skip
        memory.observe(self.now, tuple(channels[:9]), tuple(channels[9:14]), tuple(channels[14:]))
        if discarding:
            assert memory.idle, f"cycle {self.now}: a burst begins while records are discarded"
        if done:
            self._answer(fault, discarding)
        self.now += 1
        return bool(ready)

    def _answer(self, fault: Any, abandoned: bool) -> None:
        assert len(self.answers) < self._complete, f"cycle {self.now}: done before the last beat of the record"
        external = fault.external if self._config.external_aborts else 0
        self.answers.append(Answer((fault.kind, fault.fsc, fault.word, external), abandoned))
        if fault.kind is WriteFaultKind.NONE:
            return
        assert self._memory.idle, f"cycle {self.now}: a fault is reported while a burst is open"
        self._memory.failed = False
        self._discard_to = self._begun


def check_outcome(config: SPUConfig, records: list[Record], memory: AXIMemory, answers: list[Answer]) -> None:
    """Check bursts, memory and answers of the records."""
    written: dict[int, int] = {}
    optional: dict[int, int] = {}  # data that can be in memory: of an abandoned record, or after a fault
    bursts = iter(memory.bursts)
    following = next(bursts, None)
    for record, answer in zip(records, answers, strict=True):
        octets = {record.address + n: octet for n, octet in enumerate(record.octets)}
        word, failed = 0, False
        for start, count in record.bursts(config.bus_bytes, limit=limit(config)):
            addresses = range(start, start + count * config.bus_bytes)
            mine = {address: octet for address, octet in octets.items() if address in addresses}
            bad = not memory.bad.isdisjoint(addresses)
            sent = following == (start, count, 1 | record.ns << 1, record.nse)
            if not (failed or answer.abandoned):
                assert sent, f"{following} instead of a burst at {start:#x}"
                written |= {} if bad else mine
                if bad and config.external_aborts:
                    failed = True
                    assert answer.fault == (WriteFaultKind.STAGE_1, SYNCHRONOUS, word, 1)
            elif sent and not bad:
                assert config.outstanding > 1, "data is written after an error"
                optional |= mine
            if sent:
                following = next(bursts, None)
            word += count
        if not failed:
            assert answer.fault[0] is WriteFaultKind.NONE
    assert following is None
    assert {address: octet for address, octet in memory.octets.items() if address not in optional} == written
    assert all(octet == optional[address] for address, octet in memory.octets.items() if address in optional)


@pytest.mark.parametrize("outstanding", tiers(fast=[1], full=[4], long=[2]))
@pytest.mark.parametrize("name", configurations([*CONFIGURATIONS]))
def test_written_records_are_in_memory(name: str, outstanding: int) -> None:
    """Memory stalls, responds late and fails. Faults are precise, and nothing is written after their report."""
    if outstanding * CONFIGURATIONS[name].layout.max_size > PAGE_BYTES:
        pytest.skip("outstanding records must fit into a page")
    dut, run = bench(name, outstanding)
    count = 3 if name == "narrow" else 24

    async def scenario(ctx: Any, seed: int, bad: bool) -> None:
        random = Random(f"{SEED} {seed}")
        memory = AXIMemory(dut.config, random, ready_rate=random.choice([1.0, 0.3]), latency=random.choice([0, 1, 30]))
        driver = WriterDriver(ctx, dut, memory, random)
        records = [random_record(random, dut.config, region + 1) for region in range(count)]
        for record in records:
            bursts = record.bursts(dut.config.bus_bytes, limit=limit(dut.config))
            if bad and random.random() < 0.4:
                start, _ = random.choice(bursts)
                memory.bad.add(start)
        await driver.write(records, gaps=random.choice([0.0, 0.5]))
        assert memory.idle
        check_outcome(dut.config, records, memory, driver.answers)
        assert bool(memory.errors) == bool(memory.bad)
        assert memory.max_open <= (1 if outstanding == 1 else 4 * outstanding)

    for seed in range(6):
        try:
            run.run(lambda ctx, seed=seed: scenario(ctx, seed, bad=seed % 3 > 0))
        except AssertionError as failed:
            raise AssertionError(f"with seed {seed}: {failed}") from failed


@pytest.mark.parametrize("latency", [1, 20, 100])
@pytest.mark.parametrize("name", configurations(["minimal", "kunpeng_920", "wide"], fast=["minimal"]))
def test_a_record_takes_one_cycle_for_each_word(name: str, latency: int) -> None:
    """Words are sent in every cycle, as long as the outstanding records cover the latency of memory."""
    outstanding = 8
    dut, run = bench(name, outstanding)
    config = dut.config

    async def scenario(ctx: Any) -> None:
        memory = AXIMemory(config, Random(SEED), latency=latency - 1)
        driver = WriterDriver(ctx, dut, memory, Random(SEED))
        size = config.max_record_bytes
        records = [Record(number * size + config.layout.align, bytes(size)) for number in range(10 * outstanding)]
        await driver.write(records)
        words = len([*records[0].beats(config.bus_bytes)])
        # A record is outstanding while it is stored and sent, each in `words` cycles, and until its response.
        expected = max(outstanding * words, 2 * words + 2 + latency)
        first = [memory.sent_at[words * outstanding * number] for number in range(10)]
        assert {later - earlier for earlier, later in pairwise(first)} == {expected}

    run.run(scenario)


def test_a_record_belongs_to_the_owner_before_its_acceptance() -> None:
    """The state of the second cycle before a beat became valid is held while it stalls."""
    run = Bench(dut := RecordOwner(CONFIGURATIONS["rme"]))

    async def scenario(ctx: Any) -> None:
        random = Random(SEED)
        owners = [(0, 0), (0, 0)]
        expected = (0, 0)
        valid, stalled = False, False
        held = 0
        for _ in range(500):
            if not stalled:
                valid, expected = random.random() < 0.5, owners[-2]
            owner = (random.getrandbits(1), random.getrandbits(1))
            ready = random.random() < 0.3
            ports = [(dut.ns, owner[0]), (dut.nse, owner[1]), (dut.valid, valid), (dut.ready, ready)]
            ns, nse = await cycle(ctx, ports, dut.record_ns, dut.record_nse)
            assert not valid or (ns, nse) == expected
            held += stalled and owners[-2] != expected
            stalled = valid and not ready
            owners.append(owner)
        assert held

    run.run(scenario)


def test_a_configuration_is_checked() -> None:
    with pytest.raises(TypeError, match=r"^config must be of type SPUConfig, not None$"):
        AXI4Writer(None)  # pyright: ignore[reportArgumentType]
