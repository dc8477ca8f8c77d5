"""The SPE driver of Linux, unmodified, on the compiled SPU: what is recorded arrives, whatever perf and its user do."""

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
from spurtle_sim.timing.core import Parameters
from spurtle_sim.timing.machine import Machine
from tests.support.cpu import Step
from tests.support.linux_driver import library
from tests.support.linux_driver.binding import AuxFlag, IRQReturn
from tests.support.linux_driver.session import FULL, Session
from tests.support.linux_driver.user import User
from tests.support.paths import WORKLOADS
from tests.support.seeds import SEED
from tests.support.tiers import configurations, tiers
from tests.support.timed_operations import table

ACTS = 150
"""Of the user of a session, at most."""
OPERATIONS = 20_000
"""Of each workload."""

PAGE_SHIFT, LARGE_PAGE_SHIFT = 12, 16
PAGE = 1 << PAGE_SHIFT

COLL = PMBSR_EL1.pack(COLL=1)


@pytest.fixture(scope="module", params=library.VERSIONS)
def source(request: pytest.FixtureRequest) -> Path:
    """The sources of a kernel, as Debian has them."""
    found = library.find_source(request.param)
    if found is None:
        pytest.skip(f"Linux {request.param} is not here: apt-get install linux-source-{request.param}")
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
def crowd(lanes: int) -> NDArray[np.void]:
    """Operations that last so long that others are selected in the meantime."""
    return table(2_000, SEED, lanes=lanes, gap=1, longest=3_000)


@cache
def workload(name: str, lanes: int) -> NDArray[np.void]:
    program = Program(WORKLOADS / f"{name}.elf")
    machine = Machine(program.instructions, Parameters(ops_per_cycle=lanes))
    return machine.time(next(program.run()))[:OPERATIONS]


PROGRAMS: tuple[Callable[[int], NDArray[np.void]], ...] = (
    mixture,
    crowd,
    *(partial(workload, name) for name in ("chase", "simd", "sort")),
)


# Whatever perf and its user do.


@pytest.mark.parametrize("buffers", tiers(fast=[10], full=[100], long=[2_000]))
def test_what_is_recorded_arrives_or_is_told_of(
    source: Path, config: SPUConfig, buffers: int, record_property: Callable[[str, object], None]
) -> None:
    """In sessions, until the driver has given as many buffers to the SPU."""
    random = Random(f"{SEED} {source.name} {config.name}")
    sessions, enables, fatal = 0, 0, []
    while enables < buffers:
        session = play(source, config, random.getrandbits(32))
        sessions += 1
        enables += session.enables
        fatal += map(PMBSR_EL1.unpack, session.fatal)
    aborts = [status.MSS == arch.FSC_ASYNCHRONOUS for status in fatal]
    assert config.external_aborts or not any(aborts)
    if buffers >= 100:  # shorter runs may miss something
        assert any(aborts) is config.external_aborts
        assert not all(aborts)
    for name, value in (("sessions", sessions), ("buffers", buffers)):
        record_property(name, value)


def play(source: Path, config: SPUConfig, seed: int) -> Session:
    """A session. Now and then memory behaves in another way."""
    random = Random(seed)
    page_shift = random.choices([PAGE_SHIFT, LARGE_PAGE_SHIFT], [7, 1])[0]
    session = Session(library.build(source, page_shift), config, random.choice(PROGRAMS)(config.ops_per_cycle))
    try:
        user = User(session, random)
        for _ in range(random.randrange(ACTS)):
            if random.random() < 0.1:
                chances = {"stall": [0, 128, 200], "late": [0, 3, 60], "fault": [0, 2, 10], "abort": [0, 0, 4]}
                trouble = {name: random.choice(several) for name, several in chances.items()}
                session.engine.disturb_memory(random.getrandbits(63) | 1, **trouble)
            user.act()
        session.close()
    except Exception as error:
        error.add_note(f"seed {seed}")
        raise
    return session


# What it does that other software may not.


def names(steps: list[Step]) -> list[str]:
    return [step.name for step in steps]


def written(steps: list[Step], register: arch.Register) -> list[int]:
    """What the driver has written to a register."""
    return [step.value for step in steps if step.name == f"MSR {register.name}"]


def fill(session: Session) -> None:
    """Let the program run until the SPU wants to be served."""
    for _ in range(200):
        session.run(1_000)
        if session.interrupt:
            return
    raise AssertionError("the buffer does not fill up")


def break_off(session: Session, syndrome: int) -> None:
    """The buffer is stopped for a reason that memory does not give: by software."""
    session.kernel(session.drain)
    session.write(PMBSR_EL1, syndrome)


def lose(session: Session) -> None:
    """Memory tells of a full buffer at last that not all of it has been written. From FEAT_SPEv1p3 on the SPU does not
    hear of that, and there is no other way to lose data when the buffer is full.
    """
    if session.config.external_aborts:
        session.engine.disturb_memory(SEED, abort=1 << 16)
        for _ in range(8):
            session.engine.read(PMSIDR_EL1)
        session.engine.disturb_memory(SEED)
    else:
        break_off(session, FULL | PMBSR_EL1.pack(DL=1))


def samples(session: Session) -> int:
    """Records of the event so far."""
    return len(list(decode_records(bytes(session.event.written))))


def test_the_buffer_is_enabled_before_the_filters_are_set(session: Session) -> None:
    """There is no ISB between pointer and limit, and none behind PMSCR_EL1: the next operation counts nevertheless."""
    assert session.open(pages=2, sample_period=256) == 0
    assert session.kernel(session.event.add) == 0
    before = ["MSR PMBPTR_EL1", "MSR PMBLIMITR_EL1", "MSR PMSFCR_EL1", "MSR PMSEVFR_EL1"]
    after = ["MSR PMSLATFR_EL1", "MSR PMSIRR_EL1", "ISB", "MSR PMSICR_EL1", "ISB", "MSR PMSCR_EL1"]
    assert [name for name in names(session.steps) if name != "MSR PMSNEVFR_EL1"] == before + after
    session.run(256)
    session.kernel(session.event.delete)
    assert samples(session) == 1
    session.close()


def test_clearing_pmbsr_lets_profiling_go_on(session: Session) -> None:
    """The interrupt handler writes a new pointer and a new limit while the buffer is enabled and stopped. What starts
    it again is PMBSR_EL1, written last; PMSCR_EL1 is left alone.
    """
    assert session.open(pages=4, sample_period=256, watermark=1) == 0
    session.kernel(session.event.add)
    [start] = written(session.steps, PMBPTR_EL1)
    for _ in range(4):
        fill(session)
        session.serve()
        session.event.consume()
    # Once around.
    assert written(session.steps, PMBPTR_EL1) == [start]
    before = samples(session)
    take = ["PSB CSYNC", "DSB nsh", "ISB", "MRS PMBSR_EL1", "MRS PMBPTR_EL1"]
    assert names(session.steps) == [*take, "MSR PMBPTR_EL1", "MSR PMBLIMITR_EL1", "ISB", "MSR PMBSR_EL1"]
    assert session.steps[3].value & ~COLL == FULL
    assert written(session.steps, PMBSR_EL1) == [0]
    session.run(1_000)
    session.kernel(session.event.delete)
    assert samples(session) > before + 2
    session.close()


@pytest.mark.parametrize("period", [1, 100, 1_000, 1 << 40 | 300, 3 << 56 | 200])
def test_the_first_interval_is_the_users_own(session: Session, period: int) -> None:
    """PMSICR_EL1 begins with the period as the user gave it, below the least interval and in bits that are RES0; later
    ones are of PMSIRR_EL1.
    """
    config = session.config
    assert session.open(pages=2, sample_period=period) == 0
    session.kernel(session.event.add)
    assert written(session.steps, PMSICR_EL1) == [period]
    [pmsirr] = written(session.steps, PMSIRR_EL1)
    most = PMSIRR_EL1.fields["INTERVAL"].mask
    assert pmsirr == min(max(period, 256), most) & most
    assert session.read(PMSICR_EL1) == period & config.writable(PMSICR_EL1)
    counters = PMSICR_EL1.unpack(period & config.writable(PMSICR_EL1))
    session.run(counters.COUNT + counters.ECOUNT)
    session.kernel(session.event.delete)
    assert samples(session) == 1
    session.close()


def test_without_room_the_pointer_is_at_the_end_and_the_buffer_off(session: Session) -> None:
    """Every buffer that is enabled is as the architecture wants it (`Session` looks at each). Where there is no room
    for one, a pointer that need not be aligned is written, and a limit that is where the buffer begins.
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
    """The SPU stops where the longest record does not fit. The driver fills the rest with zeros, goes on behind it, and
    tells of no AUX record that holds it.
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


def test_lost_data_leaves_a_buffer_without_room(session: Session) -> None:
    """After DL nobody stops the event (stock 6.12): PMBSR_EL1 is cleared with profiling enabled and the buffer as full
    as it was. The SPU writes nothing, and raises an interrupt that the driver does not know and does not end. The next
    session finds S set, and starts at its first interrupt.
    """
    session.driver.set_options(act_on_truncate=False)
    assert session.open(pages=4, sample_period=256, watermark=1) == 0
    session.kernel(session.event.add)
    fill(session)
    lose(session)
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


def test_a_collision_is_told_of_the_next_event(source: Path, config: SPUConfig) -> None:
    """COLL without S is not looked at when an event stops, and not cleared when the next one starts: that is the one
    that is said to have had it.
    """
    session = Session(library.build(source, PAGE_SHIFT), config, crowd(config.ops_per_cycle))
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
    """The driver turns profiling and the buffer off and clears PMBSR_EL1; perf believes that the event goes on, unless
    data was lost: then it is stopped, and says so. That the record is lost that met the fault, the log tells.
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
        session.engine.set_faulting_range(hole, PAGE, fault.kind, external=fault.external)
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
        session.engine.set_faulting_range(0, 0)
        session.run(2_000)
        assert not session.interrupt
        session.kernel(event.delete)
        # The next one goes on behind, where records can be.
        before = len(event.written)
        session.kernel(event.add)
        session.run(1_000)
        session.kernel(event.delete)
        assert len(list(decode_records(bytes(event.written[before:])))) >= 3
        event.check()
    session.close()


def test_full_is_a_syndrome_of_which_linux_6_1_looks_at_a_part(session: Session, source: Path) -> None:
    """BSC is MSS[5:0]. Linux 6.12 wants 15:6 to be zero as well: in the SPU's own syndrome they are."""
    assert session.open(pages=4, sample_period=256, watermark=1) == 0
    session.kernel(session.event.add)
    fill(session)
    break_off(session, FULL | PMBSR_EL1.pack(MSS=1 << 6))
    session.serve()
    assert len(session.messages) == ("6.12" in source.name)


def test_an_external_abort_is_not_looked_at_where_the_buffer_is_full(session: Session) -> None:
    assert session.open(pages=4, sample_period=256, watermark=1) == 0
    session.kernel(session.event.add)
    fill(session)
    break_off(session, FULL | PMBSR_EL1.pack(EA=1))
    session.serve()
    records = samples(session)
    session.run(1_000)
    session.kernel(session.event.delete)
    assert samples(session) > records
    assert not session.event.flags() & ~AuxFlag.COLLISION
    session.close()


def test_an_interrupt_without_s_changes_nothing(session: Session) -> None:
    """PMBSR_EL1 is read and nothing else is done, even if it says that data was lost and an operation collided."""
    assert session.open(pages=2, sample_period=256) == 0
    session.kernel(session.event.add)
    session.run(700)
    other = PMBSR_EL1.pack(COLL=1, DL=1)
    break_off(session, other)
    assert session.kernel(session.driver.interrupt) == IRQReturn.NONE
    assert session.steps == [Step("PSB CSYNC"), Step("DSB nsh"), Step("ISB"), Step("MRS PMBSR_EL1", other)]
    session.run(700)
    session.kernel(session.event.delete)
    assert samples(session) == 5
    assert not session.event.flags()
    session.close()
