"""The unmodified SPE driver of Linux on the compiled SPU: all records arrive, or perf is notified of the loss."""

import ctypes
from collections.abc import Callable
from functools import cache, partial
from itertools import product
from pathlib import Path
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray

from spurtle import arch
from spurtle.arch import PMBLIMITR_EL1, PMBPTR_EL1, PMBSR_EL1, PMSCR_EL1, PMSICR_EL1, PMSIDR_EL1, PMSIRR_EL1
from spurtle.config import CONFIGS, SPUConfig
from spurtle_sim.cosim.faults import memory_faults
from spurtle_sim.emulator.program import Program
from spurtle_sim.model.buffer import FaultKind
from spurtle_sim.records.decode import decode_records
from spurtle_sim.timing.core import read_core
from spurtle_sim.timing.model import TimingModel
from tests.support.cpu import Step
from tests.support.linux_driver import library
from tests.support.linux_driver.binding import AuxFlag, IRQReturn
from tests.support.linux_driver.session import FULL, Session
from tests.support.linux_driver.user import User
from tests.support.paths import WORKLOADS
from tests.support.seeds import SEED
from tests.support.tiers import configurations, tiers
from tests.support.timed_operations import table

MAX_ACTIONS = 150
"""Upper bound for the actions of the user in a session."""
OPERATIONS = 20_000
"""Length of the part of a workload that is executed."""

PAGE_SHIFT, LARGE_PAGE_SHIFT = 12, 16
PAGE = 1 << PAGE_SHIFT

COLL = PMBSR_EL1.pack(COLL=1)


@pytest.fixture(scope="module", params=library.VERSIONS)
def source(request: pytest.FixtureRequest) -> Path:
    """Return the sources of a kernel, from the package of Debian."""
    found = library.find_source(request.param)
    if found is None:
        pytest.skip(f"Linux {request.param} is not installed: apt-get install linux-source-{request.param}")
    return found


@pytest.fixture(params=configurations(CONFIGS, fast=["neoverse_n1"]))
def config(request: pytest.FixtureRequest) -> SPUConfig:
    return request.param


@pytest.fixture
def session(source: Path, config: SPUConfig) -> Session:
    return Session(library.build(source, PAGE_SHIFT), config, mixture(config.ops_per_cycle))


# Programs, by the operations that can pass in a cycle.


@cache
def mixture(lanes: int) -> NDArray[np.void]:
    return table(2_000, SEED, lanes=lanes)


@cache
def long_operations(lanes: int) -> NDArray[np.void]:
    """Return operations with latencies of several sample intervals."""
    return table(2_000, SEED, lanes=lanes, gap=1, longest=3_000)


@cache
def workload(name: str, lanes: int) -> NDArray[np.void]:
    program = Program(WORKLOADS / f"{name}.elf")
    timing_model = TimingModel(program.instructions, read_core().for_lanes(lanes))
    return timing_model.run(next(program.run()))[:OPERATIONS]


PROGRAMS: tuple[Callable[[int], NDArray[np.void]], ...] = (
    mixture,
    long_operations,
    *(partial(workload, name) for name in ("chase", "simd", "sort")),
)


# Random use of perf.


@pytest.mark.parametrize("buffers", tiers(fast=[10], full=[100], long=[2_000]))
def test_records_arrive_or_loss_is_reported(
    source: Path, config: SPUConfig, buffers: int, record_property: Callable[[str, object], None]
) -> None:
    """Sessions are played until the driver has enabled the SPU for `buffers` buffers."""
    random = Random(f"{SEED} {source.name.removesuffix('.tar.xz')} {config.name}")
    sessions, enables, fatal = 0, 0, []
    while enables < buffers:
        session = play(source, config, random.getrandbits(32))
        sessions += 1
        enables += session.enables
        fatal += map(PMBSR_EL1.unpack, session.fatal)
    aborts = [status.MSS == arch.FSC_ASYNCHRONOUS for status in fatal]
    assert config.external_aborts or not any(aborts)
    if buffers >= 1_000:  # shorter runs may miss an outcome
        assert any(aborts) is config.external_aborts
        assert not all(aborts)
    for name, value in (("sessions", sessions), ("buffers", buffers)):
        record_property(name, value)


def play(source: Path, config: SPUConfig, seed: int) -> Session:
    """Play one session. The behavior of memory changes at random times."""
    random = Random(seed)
    page_shift = random.choices([PAGE_SHIFT, LARGE_PAGE_SHIFT], [7, 1])[0]
    session = Session(library.build(source, page_shift), config, random.choice(PROGRAMS)(config.ops_per_cycle))
    try:
        user = User(session, random)
        for _ in range(random.randrange(MAX_ACTIONS)):
            if random.random() < 0.1:
                chances = {"stall": [0, 128, 200], "late": [0, 3, 60], "fault": [0, 2, 10], "abort": [0, 0, 4]}
                disturbances = {name: random.choice(several) for name, several in chances.items()}
                session.spu.disturb_memory(random.getrandbits(63) | 1, **disturbances)
            user.act()
        session.close()
    except Exception as error:
        error.add_note(f"seed {seed}")
        raise
    return session


# Sequences that are particular to this driver.


def names(steps: list[Step]) -> list[str]:
    return [step.name for step in steps]


def written(steps: list[Step], register: arch.Register) -> list[int]:
    """Return the values that the driver has written to a register."""
    return [step.value for step in steps if step.name == f"MSR {register.name}"]


def fill(session: Session) -> None:
    """Run the program until PMBIRQ is asserted."""
    for _ in range(200):
        session.run(1_000)
        if session.interrupt:
            return
    raise AssertionError("the buffer does not become full")


def set_syndrome(session: Session, syndrome: int) -> None:
    """Drain, and write a syndrome to PMBSR_EL1 by software."""
    session.kernel(session.drain)
    session.write(PMBSR_EL1, syndrome)


def lose_data(session: Session) -> None:
    """Set DL for a full buffer.

    The only cause in the SPU is an asynchronous External abort. From FEAT_SPEv1p3 on it is not reported; then software
    writes DL.
    """
    if session.config.external_aborts:
        session.spu.disturb_memory(SEED, abort=1 << 16)
        for _ in range(8):
            session.spu.read(PMSIDR_EL1)
        session.spu.disturb_memory(SEED)
    else:
        set_syndrome(session, FULL | PMBSR_EL1.pack(DL=1))


def samples(session: Session) -> int:
    """Return the number of records of the event."""
    return len(list(decode_records(bytes(session.event.written))))


def test_the_buffer_is_enabled_before_the_filters_are_set(session: Session) -> None:
    """No ISB separates pointer and limit, and none follows PMSCR_EL1. The next operation is counted nevertheless."""
    assert session.open(pages=2, sample_period=256) == 0
    assert session.kernel(session.event.add) == 0
    before = ["MSR PMBPTR_EL1", "MSR PMBLIMITR_EL1", "MSR PMSFCR_EL1", "MSR PMSEVFR_EL1"]
    after = ["MSR PMSLATFR_EL1", "MSR PMSIRR_EL1", "ISB", "MSR PMSICR_EL1", "ISB", "MSR PMSCR_EL1"]
    assert [name for name in names(session.steps) if name != "MSR PMSNEVFR_EL1"] == before + after
    session.run(256)
    session.kernel(session.event.delete)
    assert samples(session) == 1
    session.close()


def test_clearing_pmbsr_resumes_profiling(session: Session) -> None:
    """The interrupt handler writes a new pointer and a new limit while the buffer is enabled and stopped.

    The last write, to PMBSR_EL1, restarts it. PMSCR_EL1 is not written.
    """
    assert session.open(pages=4, sample_period=256, watermark=1) == 0
    session.kernel(session.event.add)
    [start] = written(session.steps, PMBPTR_EL1)
    for _ in range(4):
        fill(session)
        session.serve()
        session.event.consume()
    # The ring has wrapped.
    assert written(session.steps, PMBPTR_EL1) == [start]
    before = samples(session)
    read = ["PSB CSYNC", "DSB nsh", "ISB", "MRS PMBSR_EL1", "MRS PMBPTR_EL1"]
    assert names(session.steps) == [*read, "MSR PMBPTR_EL1", "MSR PMBLIMITR_EL1", "ISB", "MSR PMBSR_EL1"]
    assert session.steps[3].value & ~COLL == FULL
    assert written(session.steps, PMBSR_EL1) == [0]
    session.run(1_000)
    session.kernel(session.event.delete)
    assert samples(session) > before + 2
    session.close()


@pytest.mark.parametrize("period", [1, 100, 1_000, 1 << 40 | 300, 3 << 56 | 200])
def test_the_first_interval_is_the_period_of_the_user(session: Session, period: int) -> None:
    """The driver writes the period of the user to PMSICR_EL1, even below the minimum interval or with RES0 bits.

    Later intervals come from PMSIRR_EL1.
    """
    config = session.config
    assert session.open(pages=2, sample_period=period) == 0
    session.kernel(session.event.add)
    assert written(session.steps, PMSICR_EL1) == [period]
    [pmsirr] = written(session.steps, PMSIRR_EL1)
    maximum = PMSIRR_EL1.fields["INTERVAL"].mask
    assert pmsirr == min(max(period, 256), maximum) & maximum
    assert session.read(PMSICR_EL1) == period & config.writable(PMSICR_EL1)
    counters = PMSICR_EL1.unpack(period & config.writable(PMSICR_EL1))
    session.run(counters.COUNT + counters.ECOUNT)
    session.kernel(session.event.delete)
    assert samples(session) == 1
    session.close()


def test_without_space_the_buffer_is_disabled(session: Session) -> None:
    """Without space the driver writes a pointer to the last byte, and the base as the limit with E = 0.

    `Session` checks each enabled buffer against the architecture.
    """
    assert session.open(pages=2, sample_period=256) == 0
    session.kernel(session.event.add)
    fill(session)
    session.serve()
    base = written(session.steps, PMBLIMITR_EL1)[0]
    assert written(session.steps, PMBPTR_EL1) == [base + session.event.aux_size - 1]
    assert session.event.flags() & AuxFlag.TRUNCATED
    records = samples(session)
    session.run(2_000)
    assert not session.interrupt
    session.event.consume()
    assert session.kernel(session.event.add) == 0
    assert samples(session) == records
    fill(session)
    session.close()


def test_the_gap_before_the_limit_is_padded(session: Session) -> None:
    """The SPU stops where the longest record does not fit. The driver fills the gap with zeros.

    It continues behind the gap, which no AUX record contains.
    """
    event, layout = session.event, session.config.layout
    assert session.open(pages=4, sample_period=256, watermark=1) == 0
    ctypes.memset(event.aux_base, 0xFF, event.aux_size)
    session.kernel(event.add)
    [start], [limit] = written(session.steps, PMBPTR_EL1), written(session.steps, PMBLIMITR_EL1)
    size = PMBLIMITR_EL1.fields["LIMIT"].mask & limit - start
    fill(session)
    session.serve()
    [record] = event.aux_records()
    assert record.offset == 0
    assert size - layout.max_size < record.size <= size
    assert layout.packed or record.size == size
    assert written(session.steps, PMBPTR_EL1) == [start + size]
    assert ctypes.string_at(event.aux_base + record.size, size - record.size) == bytes(size - record.size)
    session.run(1_000)
    session.kernel(event.delete)
    assert event.aux_records()[1].offset == size
    session.close()


def test_lost_data_leaves_a_full_buffer(session: Session) -> None:
    """The driver of 6.12 as released does not stop the event after DL.

    It clears PMBSR_EL1 with profiling enabled and a full buffer. The SPU writes nothing and asserts PMBIRQ, which the
    driver does not handle. The next session finds S set, and starts at its first interrupt.
    """
    session.driver.set_options(act_on_truncate=False)
    assert session.open(pages=4, sample_period=256, watermark=1) == 0
    session.kernel(session.event.add)
    fill(session)
    lose_data(session)
    session.serve()
    assert session.steps[3].value & ~(COLL | PMBSR_EL1.pack(EA=1)) == FULL | PMBSR_EL1.pack(DL=1)
    assert names(session.steps)[-1] == "MSR PMBSR_EL1"
    assert session.event.flags() == AuxFlag.TRUNCATED | AuxFlag.PARTIAL
    assert (
        session.read(PMSCR_EL1) & PMSCR_EL1.pack(E0SPE=1, E1SPE=1)
        and PMBLIMITR_EL1.unpack(session.read(PMBLIMITR_EL1)).E
    )
    records = samples(session)
    for _ in range(3):
        session.spu.drain()  # until the SPU has compared the pointer with the limit
        session.serve()
        assert session.interrupt
        assert session.steps == []
    session.kernel(session.event.delete)
    assert session.read(PMBSR_EL1) == FULL
    assert samples(session) == records
    assert session.kernel(session.event.add) == 0
    assert session.read(PMBSR_EL1) == FULL
    session.serve()
    session.run(1_000)
    session.kernel(session.event.delete)
    assert samples(session) > records
    session.close()


def test_a_collision_is_reported_for_the_next_event(source: Path, config: SPUConfig) -> None:
    """An event that starts with COLL set has the flag.

    The driver neither reads COLL when an event stops without S, nor clears it when the next event starts.
    """
    session = Session(library.build(source, PAGE_SHIFT), config, long_operations(config.ops_per_cycle))
    first, second = session.events
    for session.event in first, second:
        assert session.open(pages=4, sample_period=256, watermark=1) == 0
    session.event = first
    session.kernel(first.add)
    while not session.collided:
        session.run(100)
        assert not session.interrupt
    session.kernel(first.delete)
    assert not first.flags()
    assert session.read(PMBSR_EL1) == COLL
    session.event = second
    session.kernel(second.add)
    assert session.read(PMBSR_EL1) == COLL
    fill(session)
    session.serve()
    assert second.flags() == AuxFlag.COLLISION
    assert session.read(PMBSR_EL1) == 0
    session.close()


def test_any_syndrome_but_full_ends_the_event(session: Session) -> None:
    """The driver disables profiling and the buffer, and clears PMBSR_EL1.

    For perf the event continues unless data was lost: then it is stopped and flagged. The log reports the syndrome.
    """
    session.driver.set_options(act_on_truncate=True)
    for fault, words in product(memory_faults(session.config), [0, 1]):
        assert session.open(pages=2, sample_period=256) == 0
        event = session.event
        session.kernel(event.add)
        session.run(1_000)
        session.kernel(session.drain)
        assert samples(session) >= 3
        pointer, word = session.read(PMBPTR_EL1), session.config.bus_bytes
        hole = pointer - pointer % word + words * word
        session.spu.set_faulting_range(hole, PAGE, fault.kind, external=fault.external)
        session.run(2_000)
        session.serve()
        lost = words > 0 or fault.kind == FaultKind.NOT_ALLOWED
        mss = fault.fsc if fault.kind in (FaultKind.STAGE_1, FaultKind.STAGE_2) else 0
        status = PMBSR_EL1.pack(S=1, EC=fault.kind, MSS=mss, EA=fault.external, DL=lost)
        assert session.fatal[-1] & ~COLL == status
        assert session.read(PMSCR_EL1) == session.config.fixed(PMSCR_EL1)
        assert session.read(PMBLIMITR_EL1) == session.read(PMBSR_EL1) == 0
        assert event.active is not lost
        assert event.flags() & ~AuxFlag.COLLISION == (AuxFlag.TRUNCATED | AuxFlag.PARTIAL) * lost
        assert session.read(PMBPTR_EL1) == max(pointer, hole)
        session.spu.set_faulting_range(0, 0)
        session.run(2_000)
        assert not session.interrupt
        session.kernel(event.delete)
        # The next session continues behind the fault, at an address where records may start.
        before = len(event.written)
        session.kernel(event.add)
        session.run(1_000)
        session.kernel(event.delete)
        assert len(list(decode_records(bytes(event.written[before:])))) >= 3
        event.check()
    session.close()


def test_linux_6_1_compares_a_part_of_the_syndrome(session: Session, source: Path) -> None:
    """BSC is MSS[5:0]. Linux 6.12 compares MSS[15:6] with zero as well, as the SPU writes it; Linux 6.1 does not."""
    assert session.open(pages=4, sample_period=256, watermark=1) == 0
    session.kernel(session.event.add)
    fill(session)
    set_syndrome(session, FULL | PMBSR_EL1.pack(MSS=1 << 6))
    session.serve()
    assert len(session.messages) == ("6.12" in source.name)


def test_an_external_abort_of_a_full_buffer_is_ignored(session: Session) -> None:
    assert session.open(pages=4, sample_period=256, watermark=1) == 0
    session.kernel(session.event.add)
    fill(session)
    set_syndrome(session, FULL | PMBSR_EL1.pack(EA=1))
    session.serve()
    records = samples(session)
    session.run(1_000)
    session.kernel(session.event.delete)
    assert samples(session) > records
    assert not session.event.flags() & ~AuxFlag.COLLISION
    session.close()


def test_an_interrupt_without_s_changes_nothing(session: Session) -> None:
    """The handler reads PMBSR_EL1 and does nothing else, even if COLL and DL are set."""
    assert session.open(pages=2, sample_period=256) == 0
    session.kernel(session.event.add)
    session.run(700)
    other = PMBSR_EL1.pack(COLL=1, DL=1)
    set_syndrome(session, other)
    assert session.kernel(session.driver.interrupt) == IRQReturn.NONE
    assert session.steps == [Step("PSB CSYNC"), Step("DSB nsh"), Step("ISB"), Step("MRS PMBSR_EL1", other)]
    session.run(700)
    session.kernel(session.event.delete)
    assert samples(session) == 5
    assert not session.event.flags()
    session.close()
