"""The compiled SPU: tables of timed operations played on it, against the reference."""

from collections import deque
from collections.abc import Iterable
from random import Random

import numpy as np
import pytest
from gateware import samples
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from spurtle.arch import PMBLIMITR_EL1, PMBPTR_EL1, PMBSR_EL1, PMSCR_EL1, PMSICR_EL1, PMSIDR_EL1, PMSIRR_EL1, Register
from spurtle.config import CONFIGS, SPUConfig
from spurtle_sim.engine import Engine, RecordEngine
from spurtle_sim.errors import UserError
from spurtle_sim.reference import records
from spurtle_sim.reference.control import PEState
from spurtle_sim.reference.records import Facts, Location, Operation
from spurtle_sim.reference.spu import SPU
from spurtle_sim.timed import TIMED

BASE = 0xFFFF_0000_0040_0000
PAGE = 4096
CONTEXT = 0xBEEF
STOPPED = PMBSR_EL1.pack(S=1)
KINDS = (
    Facts(load=1, va_valid=1, pa_valid=1, data_source_valid=1, retired=1, taken=1),
    Facts(store=1, va_valid=1, retired=1, taken=1),
    Facts(branch=1, conditional=1, retired=1),
    Facts(retired=1, taken=1),
)


def table(rows: int, seed: int, *, gap: int = 3, longest: int = 400) -> NDArray[np.void]:
    """Operations at most `gap` cycles apart, each in flight for up to `longest` cycles."""
    random = Random(seed)
    operations = np.zeros(rows, TIMED)
    dispatch = 10
    for row in operations:
        finish = random.choice([2, 3, random.randint(2, 20), random.randint(2, longest)])
        translate_from = random.randint(1, finish)
        dispatch += random.randint(1, gap)
        row["dispatch"] = dispatch
        row["facts"] = random.choice(KINDS).pack()
        row["events"] = random.getrandbits(8)
        row["finish"] = finish
        row["issue"] = random.randint(1, finish - 1)
        row["translate_from"] = translate_from
        row["translate_to"] = random.randint(translate_from, finish)
        row["data_source"] = random.getrandbits(8)
        for name, bits in (("pc", 56), ("target", 56), ("va", 56), ("pa", 48)):
            row[name] = random.getrandbits(bits)
    return operations


class Profile:
    """An engine and the reference side by side, with a buffer of `room` records that is emptied when it is full."""

    def __init__(self, config: SPUConfig, room: int, interval: int = 1):
        self.config = config
        self.engine = Engine(config)
        self.engine.set_buffer(BASE, PAGE)
        self.engine.set_context(CONTEXT)
        self.reference = SPU(config)
        self.first = BASE + PAGE - room * config.record_bytes
        self.data = b""
        self.interrupts = 0
        self.rows = 0
        self.selections: list[tuple[int, int]] = []
        self._pending = deque[tuple[np.void, int]]()
        self.write(PMBPTR_EL1, self.first)
        self.write(PMBLIMITR_EL1, BASE + PAGE | 1)
        self.write(PMSIRR_EL1, PMSIRR_EL1.pack(INTERVAL=interval))
        self.write(PMSCR_EL1, PMSCR_EL1.pack(E0SPE=1, CX=1, PA=1, TS=1))

    def write(self, register: Register, value: int) -> None:
        self.engine.write(register, value)
        self.reference.write(register, value)

    def read(self, register: Register) -> int:
        value = self.engine.read(register)
        assert value == self.reference.read(register), register.name
        return value

    def play(self, operations: NDArray[np.void], *, settle: bool) -> None:
        while True:
            delay = self.engine.counts()["delay"]
            passed = self.engine.play(operations, settle=settle)
            self._follow(operations[:passed], delay, self.engine.selections().tolist())
            operations = operations[passed:]
            if self.engine.interrupt:
                self.interrupts += 1
                self._finish(0)
                self.take()
                self.write(PMBPTR_EL1, self.first)
                self.write(PMBSR_EL1, 0)
            elif len(operations) == 0:
                break
        if settle:
            self._finish(0)
            self.take()

    def take(self) -> None:
        """What is in the buffer, checked against the reference byte for byte."""
        self.engine.drain()
        self.read(PMBSR_EL1)
        size = self.config.record_bytes
        end = self.read(PMBPTR_EL1)
        data = self.engine.memory[self.first - BASE : end - BASE].tobytes()
        for offset in range(0, len(data), size):
            assert data[offset : offset + size] == self.reference.buffer.memory[self.first + offset]
        self.data += data

    def _follow(self, operations: NDArray[np.void], delay: int, selections: Iterable[list[int]]) -> None:
        answers = {row - self.rows: sampled for row, sampled in selections}
        self.selections += [(self.rows + row, sampled) for row, sampled in answers.items()]
        pe = PEState(contextidr_el1=CONTEXT)
        selected = [row for row in range(len(operations)) if self.reference.pass_operation(pe)]
        assert list(answers) == selected
        for row in selected:
            if not answers[row]:
                self.reference.collide()
                continue
            self._pending.append((operations[row], int(operations[row]["dispatch"]) + delay))
            # A record is in memory before the next but one operation is sampled.
            self._finish(2)
        self.rows += len(operations)

    def _finish(self, pending: int) -> None:
        while len(self._pending) > pending:
            row, passed = self._pending.popleft()
            start = self.reference.start(PEState(contextidr_el1=CONTEXT, physical_count=passed))
            operation = Operation(
                facts=Facts.unpack(int(row["facts"])),
                events=int(row["events"]),
                pc=int(row["pc"]),
                target=Location(int(row["target"]), 0, 1),
                va=int(row["va"]),
                pa=int(row["pa"]),
                pa_ns=1,
                data_source=int(row["data_source"]),
            )
            translation = int(row["translate_to"]) - int(row["translate_from"])
            latencies = {"total": int(row["finish"]), "issue": int(row["issue"]), "translation": translation}
            self.reference.finish(start, operation, **latencies)


@pytest.fixture(params=CONFIGS.values(), ids=CONFIGS)
def config(request: pytest.FixtureRequest) -> SPUConfig:
    return request.param


def test_selections_records_and_registers(config: SPUConfig) -> None:
    profile = Profile(config, room=64)
    operations = table(10_000, seed=1)
    profile.play(operations, settle=True)
    assert [row for row, _ in profile.selections] == list(range(256, 10_000, 257))
    sampled = sum(sampled for _, sampled in profile.selections)
    counts = profile.engine.counts()
    assert sampled * config.record_bytes == len(profile.data)
    assert (counts["pop"], counts["feed"], counts["filtrate"]) == (10_000, sampled, sampled)
    assert (counts["collision"], counts["buffer_full"], counts["strays"], counts["delay"]) == (0, 0, 0, 0)
    profile.read(PMSICR_EL1)


def test_collisions(config: SPUConfig) -> None:
    profile = Profile(config, room=64)
    operations = table(20_000, seed=2, gap=1, longest=3_000)
    profile.play(operations, settle=True)
    busy_until = 0
    for row, sampled in profile.selections:
        dispatch = int(operations[row]["dispatch"])
        if sampled:
            assert dispatch >= busy_until
            busy_until = dispatch + int(operations[row]["finish"])
        else:
            # The slot keeps the operation until its record has left: some cycles, not many.
            assert dispatch < busy_until + 5 + config.record_bytes // config.bus_bytes
    collisions = sum(not sampled for _, sampled in profile.selections)
    assert 10 < collisions == profile.engine.counts()["collision"]
    assert profile.read(PMBSR_EL1) == PMBSR_EL1.pack(COLL=1)


def test_full_and_served(config: SPUConfig) -> None:
    profile = Profile(config, room=3)
    operations = table(10_000, seed=3)
    profile.play(operations, settle=True)
    assert profile.interrupts == profile.engine.counts()["buffer_full"] >= 10
    assert profile.rows == len(operations)
    assert len(profile.data) >= 3 * profile.interrupts * config.record_bytes


@pytest.mark.parametrize("seed", [4, 5])
def test_a_table_in_pieces_is_the_same_table(config: SPUConfig, seed: int) -> None:
    operations = table(6_000, seed=seed, gap=2, longest=900)
    whole = Profile(config, room=4)
    whole.play(operations, settle=True)
    pieces = Profile(config, room=4)
    random = Random(seed)
    rest = operations
    while len(rest):
        size = random.choice([1, 2, random.randint(1, 700)])
        pieces.play(rest[:size], settle=False)
        rest = rest[size:]
    pieces.play(rest, settle=True)
    assert pieces.data == whole.data
    assert pieces.selections == whole.selections
    assert len(whole.data) > 10 * config.record_bytes
    same = ("time", "delay", "pop", "feed", "filtrate", "collision", "buffer_full", "strays")
    assert {name: pieces.engine.counts()[name] for name in same} == {name: whole.engine.counts()[name] for name in same}


def test_long_gaps_cost_no_cycles(config: SPUConfig) -> None:
    profile = Profile(config, room=64)
    operations = table(2_000, seed=6)
    operations["dispatch"] += np.arange(2_000, dtype=np.uint64) // 100 * 1_000_000_000
    profile.play(operations, settle=True)  # the timestamps, among others, are checked
    counts = profile.engine.counts()
    assert counts["time"] > 19_000_000_000
    assert counts["cycles"] < 20_000
    assert profile.data


def test_beats_outside_of_the_buffer_are_counted() -> None:
    profile = Profile(CONFIGS["minimal"], room=64)
    profile.engine.set_buffer(BASE + PAGE, PAGE)
    profile.engine.play(table(300, seed=7), settle=True)
    profile.engine.drain()
    assert profile.engine.counts()["strays"] == 8


def test_an_id_register_cannot_be_written() -> None:
    engine = Engine(CONFIGS["minimal"])
    assert engine.read(PMSIDR_EL1) == CONFIGS["minimal"].pmsidr
    with pytest.raises(ValueError, match=r"^MSR of PMSIDR_EL1 is UNDEFINED$"):
        engine.write(PMSIDR_EL1, 0)


def test_only_tables_of_timed_operations_are_played() -> None:
    engine = Engine(CONFIGS["minimal"])
    with pytest.raises(ValueError, match=r"^operations must be a contiguous array of TIMED, not of int64$"):
        engine.play(np.zeros(4, np.int64))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="contiguous"):
        engine.play(np.zeros(4, TIMED)[::2])


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(UserError, match=r"^there is no C\+\+ compiler 'no-such-compiler': install g\+\+, or name"):
        Engine(CONFIGS["minimal"])


ENGINES: dict[str, RecordEngine] = {}


@settings(max_examples=20)
@given(st.data())
@pytest.mark.parametrize("name", CONFIGS)
def test_records_are_the_references(name: str, data: st.DataObject) -> None:
    config = CONFIGS[name]
    if name not in ENGINES:
        ENGINES[name] = RecordEngine(config)
    batch = data.draw(st.lists(samples(config), max_size=8))
    assert ENGINES[name].encode(batch) == [records.encode(config, sample) for sample in batch]
