"""Compiled SPU: tables of timed operations are played on it and compared with the reference model."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spurtle.arch import (
    EC,
    IMP_PMSRNDR_EL1,
    PMBPTR_EL1,
    PMBSR_EL1,
    PMSCR_EL1,
    PMSCR_EL2,
    PMSCR_EL12,
    PMSICR_EL1,
    PMSIDR_EL1,
    PMSIRR_EL1,
)
from spurtle.config import CONFIGS, SPUConfig
from spurtle.support.errors import UserError
from spurtle_sim.cosim.faults import ABORT, TRANSLATION, memory_faults
from spurtle_sim.cosim.record_path import CompiledRecordPath
from spurtle_sim.cosim.spu import CompiledSPU
from spurtle_sim.model import records
from spurtle_sim.model.buffer import Fault, FaultKind
from spurtle_sim.model.pe import PEState
from spurtle_sim.model.registers import Outcome
from spurtle_sim.model.sampling import draw, random_byte
from spurtle_sim.records.decode import decode_records
from spurtle_sim.trace.dtypes import TIMED_OPERATION
from tests.support.gateware import uniform_samples
from tests.support.profiled_spu import BASE, PE, SIZE, Profile
from tests.support.seeds import SEED
from tests.support.tiers import configurations
from tests.support.timed_operations import table


@pytest.fixture(params=CONFIGS.values(), ids=CONFIGS)
def config(request: pytest.FixtureRequest) -> SPUConfig:
    return request.param


def test_selections_records_and_registers(config: SPUConfig) -> None:
    profile = Profile(config, records=64)
    operations = table(10_000, seed=1, lanes=config.ops_per_cycle)
    profile.play(operations, settle=True)
    sampled = profile.selections[profile.selections["sampled"] == 1]
    assert (sampled["candidates"] == 1).all()
    assert sampled["first"].tolist() == list(range(256, 10_000, 257))
    assert (sampled["time"] == operations["dispatch"][sampled["first"]]).all()
    counts = profile.spu.counts()
    assert counts["records"] == len(sampled)
    assert len(list(decode_records(profile.data))) == len(sampled)
    assert (counts["pop"], counts["feed"], counts["filtrate"]) == (10_000, len(sampled), len(sampled))
    assert (counts["collision"], counts["buffer_full"], counts["strays"], counts["delay"]) == (0, 0, 0, 0)
    profile.read(PMSICR_EL1)


def test_random_intervals(config: SPUConfig) -> None:
    profile = Profile(config, records=64, rnd=1)
    profile.write(IMP_PMSRNDR_EL1, 0x1234_5678)
    profile.play(table(10_000, seed=8, lanes=config.ops_per_cycle), settle=True)
    distances = np.diff(profile.selections["first"].astype(np.int64))
    assert len(set(distances.tolist())) > 10
    if config.ernd:
        assert distances.min() < 257
    else:
        assert distances.min() >= 257
    assert distances.max() <= 512
    profile.read(PMSICR_EL1)
    profile.read(IMP_PMSRNDR_EL1)
    assert not profile.checker.mismatches


def test_collisions(config: SPUConfig) -> None:
    profile = Profile(config, records=64)
    operations = table(20_000, seed=2, lanes=config.ops_per_cycle, gap=1, longest=3_000)
    profile.play(operations, settle=True)
    flights = list(profile.flights.values())
    # A slot holds its operation until its record has been sent, which takes at most this number of cycles.
    lasts = 16 + config.max_record_bytes // config.bus_bytes * config.slots
    for selection in profile.selections:
        time = int(selection["time"])
        if selection["sampled"]:
            assert sum(start < time < end for start, end in flights) < config.slots
        else:
            assert sum(start < time < end + lasts for start, end in flights) >= config.slots
    collisions = int((profile.selections["sampled"] == 0).sum())
    assert 10 < collisions == profile.spu.counts()["collision"]
    assert profile.read(PMBSR_EL1) == PMBSR_EL1.pack(COLL=1)


def test_one_finish_per_cycle() -> None:
    config = CONFIGS["v1p4"]
    profile = Profile(config, records=64)
    operations = table(10_000, seed=9, lanes=config.ops_per_cycle)
    # Many operations finish in the same cycle.
    operations["finish"] += ((-operations["dispatch"].astype(np.int64) - operations["finish"]) % 256).astype(np.uint32)
    profile.play(operations, settle=True)
    ends = [end for _, end in profile.flights.values()]
    assert len(set(ends)) == len(ends)
    late = [end for end in ends if end % 256]
    assert len(late) > 5
    assert all(end - 1 in ends for end in late)
    rows = profile.finishes["row"].astype(np.int64)
    assert (np.diff(rows)[np.diff(ends) == 1] > 0).all(), "the oldest is reported first"


@pytest.mark.parametrize("slots", [0, 1, 2])
def test_two_selections_in_a_cycle(slots: int) -> None:
    """ECOUNT reaches zero for one operation, and the second next operation draws zero, with `slots` free slots."""
    config = CONFIGS["v1p4"]
    profile = Profile(config, records=64)
    state = next(state for state in range(0xFF, 1 << 32, 256) if random_byte(draw(state)) == 0)
    before = (config.slots - slots) * 257
    operations = table(before + 600, seed=10, lanes=1)
    operations["finish"] = 5_000
    # The gap is longer than the writes of software below, which therefore do not delay the operations.
    operations["dispatch"][before:] = operations["dispatch"][before] + 100 + (np.arange(600) + 4) // 8
    profile.play(operations[:before], settle=False)
    profile.write(PMSICR_EL1, 0)
    profile.write(PMSIRR_EL1, PMSIRR_EL1.pack(INTERVAL=1, RND=1))
    profile.write(IMP_PMSRNDR_EL1, state)
    profile.play(operations[before:], settle=True)
    first, second = profile.selections[-2:]
    assert first["time"] == second["time"]
    assert first["sampled"] + second["sampled"] == slots
    assert profile.spu.counts()["collision"] == 2 - slots


def test_a_full_buffer_is_served(config: SPUConfig) -> None:
    profile = Profile(config, records=3)
    operations = table(10_000, seed=3, lanes=config.ops_per_cycle)
    profile.play(operations, settle=True)
    # The last record of the program may fill the buffer. That interrupt is not served.
    assert profile.interrupts + profile.spu.interrupt == profile.spu.counts()["buffer_full"] > 3
    assert profile.spu.counts()["pop"] == len(operations)
    assert profile.spu.counts()["records"] >= 3 * profile.interrupts


@pytest.mark.parametrize("seed", [4, 5])
def test_a_split_table_has_the_same_results(config: SPUConfig, seed: int) -> None:
    operations = table(6_000, seed=seed, lanes=config.ops_per_cycle, gap=2, longest=900)
    complete = Profile(config, records=4)
    complete.play(operations, settle=True)
    pieces = Profile(config, records=4)
    random = Random(f"{SEED} {seed}")
    rest = operations
    while len(rest):
        size = random.choice([1, 2, random.randint(1, 700)])
        pieces.play(rest[:size], settle=False)
        rest = rest[size:]
    pieces.play(rest, settle=True)
    assert pieces.data == complete.data
    assert (pieces.selections == complete.selections).all()
    assert (pieces.finishes == complete.finishes).all()
    assert complete.spu.counts()["records"] > 10
    same = ("time", "delay", "records", "pop", "feed", "filtrate", "collision", "buffer_full", "strays")
    assert {name: pieces.spu.counts()[name] for name in same} == {name: complete.spu.counts()[name] for name in same}


def test_an_interrupt_delays_the_next_table(config: SPUConfig) -> None:
    """The buffer is full after one record, and each operation is a separate table."""
    operations = table(1_600, seed=20, lanes=config.ops_per_cycle, gap=1, longest=3)
    complete, pieces = Profile(config, records=1), Profile(config, records=1)
    complete.play(operations, settle=True)
    for row in range(len(operations)):
        pieces.play(operations[row : row + 1], settle=False)
    pieces.play(operations[:0], settle=True)
    assert pieces.interrupts == complete.interrupts > 3
    assert pieces.data == complete.data
    assert (pieces.selections == complete.selections).all()
    counts = pieces.spu.counts()
    assert 0 < counts["delay"] == complete.spu.counts()["delay"]


def test_disturbed_memory(config: SPUConfig) -> None:
    """Registers and records equal the reference for random responses at random times."""
    profile = Profile(config, records=20)
    operations = table(4_000, seed=11, lanes=config.ops_per_cycle, gap=1)
    profile.spu.disturb_memory(12, stall=128, late=60, fault=60, abort=10)
    for _ in range(8):
        profile.play(operations, settle=True)
        operations["dispatch"] += operations["dispatch"][-1]
    complete = profile.responses.count(None)
    faults = [fault for fault in profile.responses if fault and fault != ABORT]
    assert complete == profile.spu.counts()["records"] > 20
    assert {replace(fault, written=0) for fault in faults} <= {*memory_faults(config)}
    assert (ABORT in profile.responses) is config.external_aborts
    assert len(faults) >= 4 and any(fault.written for fault in faults)


def test_latency_of_memory(config: SPUConfig) -> None:
    """A PSB CSYNC after the only record takes longer by exactly the additional latency."""
    cycles: list[int] = []
    for latency in (1, 2, 900):
        spu = Profile(config, records=8).spu
        spu.set_memory_latency(latency)
        spu.play(table(257, seed=13, lanes=config.ops_per_cycle), settle=True)
        before = spu.counts()["cycles"]
        spu.drain()
        cycles.append(spu.counts()["cycles"] - before)
        assert spu.counts()["records"] == 1
    assert [each - cycles[0] for each in cycles] == [0, 1, 899]
    with pytest.raises(ValueError, match=r"^cycles must be from 1 to 1000, not 0$"):
        spu.set_memory_latency(0)


@pytest.mark.parametrize("beats", [0, 1, 3])
def test_a_faulting_range(config: SPUConfig, beats: int) -> None:
    """No byte is written from the range on. PMBPTR_EL1 points to it, and DL is set if it is within a record."""
    profile = Profile(config, records=8)
    fault_address = profile.first + beats * config.bus_bytes
    profile.spu.set_faulting_range(fault_address, 64, FaultKind.STAGE_2)
    operations = table(1_200, seed=13, lanes=config.ops_per_cycle)
    passed = profile.spu.play(operations)
    assert passed < len(operations) and profile.spu.interrupt
    assert profile.spu.responses() == [
        Fault(kind=FaultKind.STAGE_2, fsc=TRANSLATION, written=fault_address - profile.first)
    ]
    stopped = PMBSR_EL1.pack(S=1, EC=EC.STAGE_2, MSS=TRANSLATION, DL=beats > 0)
    assert profile.spu.read(PMBSR_EL1) & ~PMBSR_EL1.pack(COLL=1) == stopped
    assert profile.spu.read(PMBPTR_EL1) == fault_address
    assert not profile.spu.memory[fault_address - BASE :].any()
    profile.spu.set_faulting_range(0, 0)
    profile.spu.write(PMBPTR_EL1, profile.first)
    profile.spu.write(PMBSR_EL1, 0)
    profile.spu.play(operations[passed:], settle=True)
    profile.spu.drain()
    responses = profile.spu.responses()
    assert responses and not any(responses)


def test_faults_that_a_configuration_does_not_have() -> None:
    with pytest.raises(ValueError, match=r"^minimal has no fault of kind GRANULE_PROTECTION$"):
        CompiledSPU(CONFIGS["minimal"]).set_faulting_range(BASE, SIZE, FaultKind.GRANULE_PROTECTION)
    with pytest.raises(ValueError, match=r"^v1p4 has no external fault of kind STAGE_1$"):
        CompiledSPU(CONFIGS["v1p4"]).set_faulting_range(BASE, SIZE, external=True)


def test_long_gaps_are_skipped(config: SPUConfig) -> None:
    profile = Profile(config, records=64)
    operations = table(2_000, seed=6, lanes=config.ops_per_cycle)
    operations["dispatch"] += np.arange(2_000, dtype=np.uint64) // 100 * 1_000_000_000
    profile.play(operations, settle=True)  # the timestamps, among others, are checked
    counts = profile.spu.counts()
    assert counts["time"] > 19_000_000_000
    assert counts["cycles"] < 20_000
    assert profile.data


@pytest.mark.parametrize("seed", [15, 16])
def test_skipped_cycles_do_not_change_the_results(config: SPUConfig, seed: int) -> None:
    """The gaps have random lengths, the table is split at random rows, and the buffer fills or does not."""
    random = Random(f"{SEED} {seed}")
    # Gaps between short operations, and collisions of long ones.
    operations = table(4_000, seed=seed, lanes=config.ops_per_cycle, longest=100)
    gaps = [random.choice([0] * 20 + [random.randint(1, 60)]) for _ in operations]
    operations["dispatch"] += np.cumsum(gaps).astype(np.uint64)
    dense = table(8_000, seed=seed, lanes=config.ops_per_cycle, gap=1, longest=3_000)
    dense["dispatch"] += operations["dispatch"][-1]
    operations = np.concatenate((operations, dense))
    cuts = sorted(random.sample(range(len(operations)), 20))
    profiles = []
    for skip in True, False:
        profile = Profile(config, records=6, rnd=seed % 2)
        profile.spu.set_skipping(skip)
        for piece in np.split(operations, cuts):
            profile.play(piece, settle=False)
        profile.play(operations[:0], settle=True)
        profiles.append(profile)
    skipped, complete = profiles
    assert skipped.data == complete.data
    assert (skipped.selections == complete.selections).all()
    assert (skipped.finishes == complete.finishes).all()
    assert skipped.responses == complete.responses
    counts, all_counts = skipped.spu.counts(), complete.spu.counts()
    assert counts.pop("cycles") < all_counts.pop("cycles") - 1_000
    assert counts == all_counts
    assert skipped.interrupts == complete.interrupts > 0
    assert {*complete.selections["sampled"]} == {0, 1}


def test_no_cycle_is_skipped_before_a_record_is_written(config: SPUConfig) -> None:
    """A buffer of one record becomes full at each distance from the next operations."""
    longest = 60
    operations = table(longest * 257, seed=19, lanes=config.ops_per_cycle, gap=1, longest=3)
    for gap in range(longest):
        operations["dispatch"][gap * 257 + 260 :] += np.uint64(gap)
    profiles = []
    for skip in True, False:
        profile = Profile(config, records=1)
        profile.spu.set_skipping(skip)
        profile.play(operations, settle=True)
        profiles.append(profile)
    skipped, complete = profiles
    assert skipped.data == complete.data
    assert (skipped.selections == complete.selections).all()
    assert skipped.spu.counts()["time"] == complete.spu.counts()["time"]
    assert skipped.interrupts == complete.interrupts > longest // 2


@pytest.mark.parametrize("name", ["neoverse_n1", "arm_model", "v1p4"])
def test_the_effect_of_software_is_not_skipped(name: str) -> None:
    """After a change of the buffer's owner, operations of the next cycle are not profiled, and later ones are."""
    config = CONFIGS[name]
    found = []
    for skip in True, False:
        profile = Profile(config, records=64)
        profile.spu.set_skipping(skip)
        operations = table(200, seed=17, lanes=config.ops_per_cycle, gap=1)
        for owner in 0b00, 0b11, 0b00, 0b11:
            profile.spu.set_pe(replace(PE, mdcr_el2_e2pb=owner))
            operations["dispatch"] += profile.spu.counts()["time"] + 100
            profile.spu.play(operations, settle=True)
        found.append((profile.spu.counts(), profile.spu.selections().tolist()))
    (skipped, selections), (complete, all_selections) = found
    assert skipped.pop("cycles") < complete.pop("cycles")
    assert skipped == complete
    assert selections == all_selections
    assert complete["pop"] == 4 * 200


def test_beats_outside_of_the_buffer_are_counted() -> None:
    profile = Profile(CONFIGS["minimal"], records=64)
    profile.spu.set_buffer(BASE + SIZE, SIZE)
    profile.spu.play(table(300, seed=7, lanes=1), settle=True)
    profile.spu.drain()
    assert profile.spu.counts()["strays"] == 8


def test_an_id_register_cannot_be_written() -> None:
    spu = CompiledSPU(CONFIGS["minimal"])
    assert spu.read(PMSIDR_EL1) == CONFIGS["minimal"].pmsidr
    with pytest.raises(ValueError, match=r"^MSR of PMSIDR_EL1 is UNDEFINED$"):
        spu.write(PMSIDR_EL1, 0)


def test_a_register_of_el2_is_accessed_at_el2() -> None:
    spu = CompiledSPU(CONFIGS["neoverse_n1"])
    spu.write(PMSCR_EL2, PMSCR_EL2.pack(PA=1))
    assert spu.read(PMSCR_EL2) == PMSCR_EL2.pack(PA=1)
    with pytest.raises(ValueError, match=r"^MRS of PMSCR_EL2 is UNDEFINED$"):
        CompiledSPU(CONFIGS["minimal"]).read(PMSCR_EL2)


def test_an_access_is_made_in_the_state_of_the_program() -> None:
    """At EL0, the access is made by the kernel."""
    spu = CompiledSPU(CONFIGS["neoverse_n1"])
    spu.set_pe(PEState(el=1))
    assert spu.access(PMSCR_EL2) == (Outcome.UNDEFINED, 0)
    spu.set_pe(PEState(el=1, mdcr_el2_tpms=1))
    assert spu.access(PMSCR_EL1, 1) == (Outcome.TRAP_EL2, 0)
    with pytest.raises(ValueError, match=r"^MSR of PMSCR_EL1 traps to EL2$"):
        spu.write(PMSCR_EL1, 1)
    spu.set_pe(PEState(el=1, mdcr_el3_nspb=0b10))
    with pytest.raises(ValueError, match=r"^MRS of PMBPTR_EL1 traps to EL3$"):
        spu.read(PMBPTR_EL1)
    spu.set_pe(PEState(el=2, hcr_el2_e2h=1))
    spu.write(PMSCR_EL12, PMSCR_EL1.pack(CX=1))
    spu.write(PMSCR_EL1, PMSCR_EL2.pack(E2SPE=1))
    spu.set_pe(PEState())
    assert spu.read(PMSCR_EL1) == PMSCR_EL1.pack(CX=1)
    assert spu.read(PMSCR_EL2) == PMSCR_EL2.pack(E2SPE=1)


@pytest.mark.parametrize("name", ["neoverse_n1", "arm_model"])
def test_a_program_of_el2_in_its_own_buffer(name: str) -> None:
    config = CONFIGS[name]
    pe = PEState(el=2, mdcr_el2_e2pb=0, contextidr_el2=0xBEEF)
    profile = Profile(config, records=64, pe=pe)
    profile.write(PMSCR_EL2, PMSCR_EL2.pack(E2SPE=1, TS=1))
    profile.play(table(2_000, seed=14, lanes=config.ops_per_cycle), settle=True)
    found = list(decode_records(profile.data))
    assert len(found) >= 4
    assert {record.pc.el for record in found if record.pc} == {2}


def test_only_tables_of_timed_operations_are_played() -> None:
    spu = CompiledSPU(CONFIGS["minimal"])
    with pytest.raises(ValueError, match=r"^operations must be a contiguous array of TIMED_OPERATION, not of int64$"):
        spu.play(np.zeros(4, np.int64))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="contiguous"):
        spu.play(np.zeros(4, TIMED_OPERATION)[::2])


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(UserError, match=r"^the C\+\+ compiler 'no-such-compiler' was not found: install g\+\+, or set"):
        CompiledSPU(replace(CONFIGS["minimal"], name="never_compiled"))


RECORD_PATHS: dict[str, CompiledRecordPath] = {}


@settings(max_examples=20)
@given(st.data())
@pytest.mark.parametrize("name", configurations([*CONFIGS], fast=["v1p4"]))
def test_records_equal_the_reference(name: str, data: st.DataObject) -> None:
    config = CONFIGS[name]
    if name not in RECORD_PATHS:
        RECORD_PATHS[name] = CompiledRecordPath(config)
    batch = data.draw(st.lists(uniform_samples(config), max_size=8))
    assert RECORD_PATHS[name].encode(batch) == [records.encode(config, sample) for sample in batch]
