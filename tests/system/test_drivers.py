"""Small models of the drivers and test suites of other projects, run on the compiled SPU."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from spurtle.arch import (
    BSC,
    EC,
    PMBIDR_EL1,
    PMBLIMITR_EL1,
    PMBPTR_EL1,
    PMBSR_EL1,
    PMSCR_EL1,
    PMSCR_EL2,
    PMSFCR_EL1,
    PMSICR_EL1,
    PMSIDR_EL1,
    PMSIRR_EL1,
    Event,
    Register,
)
from spurtle.config import CONFIGS, SPUConfig
from spurtle_sim.model.buffer import FaultKind
from spurtle_sim.model.operation import Facts
from spurtle_sim.model.pe import PEState
from spurtle_sim.profile.options import parse_filters
from spurtle_sim.records.decode import Record, decode_records
from spurtle_sim.trace.dtypes import TIMED_OPERATION
from tests.support.cpu import CPU, PAGE, Step
from tests.support.drivers import sbsa
from tests.support.drivers.freebsd import FreeBSD
from tests.support.drivers.kvm_unit_tests import Profiler
from tests.support.drivers.linux import Linux, UnsupportedSPU
from tests.support.seeds import SEED
from tests.support.tiers import configurations
from tests.support.timed_operations import table

PERIOD = 300
"""Sample period of an event: the first sample is operation 300, the next ones follow every 257 operations."""

FULL = PMBSR_EL1.pack(S=1, MSS=BSC.BUFFER_FILLED)
EL1, EL2 = PEState(el=1), PEState(el=2)


def configurations_with(feature: Callable[[SPUConfig], bool]) -> pytest.MarkDecorator:
    """Return a mark that runs a test for the named configurations for which `feature` is true."""
    found = {name: config for name, config in CONFIGS.items() if feature(config)}
    return pytest.mark.parametrize("config", found.values(), ids=found)


@pytest.fixture(params=configurations(CONFIGS))
def config(request: pytest.FixtureRequest) -> SPUConfig:
    return request.param


@pytest.fixture
def cpu(config: SPUConfig) -> CPU:
    return CPU(config, mixture(config.ops_per_cycle), pages=2)


# Programs.


@cache
def mixture(lanes: int) -> NDArray[np.void]:
    """Return operations of all kinds, of which up to `lanes` pass in a cycle."""
    return table(2_000, SEED, lanes=lanes)


@cache
def long_operations(lanes: int) -> NDArray[np.void]:
    """Return operations with latencies of several sample intervals."""
    return table(2_000, SEED, lanes=lanes, gap=1, longest=3_000)


@cache
def loop() -> NDArray[np.void]:
    """Return a loop: a load, a subtraction and the branch back."""
    operations = np.zeros((1_000, 3), TIMED_OPERATION)
    operations["dispatch"] = 2 * np.arange(operations.size).reshape(operations.shape)
    operations["issue"], operations["finish"] = 1, (20, 3, 3)
    operations["facts"] = (
        Facts(load=1, va_valid=1, retired=1, taken=1).pack(),
        Facts(retired=1, taken=1).pack(),
        Facts(branch=1, conditional=1, retired=1, taken=1).pack(),
    )
    return operations.reshape(-1)


def serve(cpu: CPU, handler: Callable[[], object], operations: int) -> int:
    """Run `operations` operations, call `handler` for each interrupt, and return the number of interrupts."""
    interrupts = 0
    while operations:
        passed = cpu.run(operations)
        assert passed, "no operation passes between two interrupts"
        operations -= passed
        if cpu.interrupt:
            handler()
            assert not cpu.interrupt, "PMBIRQ is asserted after the handler"
            interrupts += 1
    return interrupts


def records(cpu: CPU, data: bytes | bytearray) -> list[Record]:
    """Return the records of `data`, which must be all that the SPU has written, each record once."""
    assert data == cpu.written
    decoded = list(decode_records(bytes(data)))
    assert all(record.complete and not record.problems for record in decoded)
    assert len(decoded) == cpu.spu.counts()["records"]
    return decoded


def fault_within_a_record(cpu: CPU) -> None:
    """Make memory fault within a record; or, if record sizes differ, possibly at the start of one."""
    config = cpu.config
    cpu.spu.set_faulting_range(cpu.memory.start + 5 * config.max_record_bytes + config.bus_bytes, config.bus_bytes)


def ends_with_partial_record(data: bytes | bytearray) -> bool:
    """Return whether the last record is incomplete."""
    found = list(decode_records(bytes(data)))
    return bool(found) and not found[-1].complete


def samples(cpu: CPU) -> int:
    """Return the number of operations that were selected from the sample population."""
    return 1 + (cpu.spu.counts()["pop"] - PERIOD) // 257


def written(cpu: CPU, register: Register) -> list[int]:
    """Return the values that software has written to a register."""
    return [step.value for step in cpu.steps if step.name == f"MSR {register.name}"]


# Linux 6.18.


@pytest.mark.parametrize("jitter", [False, True])
def test_linux(cpu: CPU, jitter: bool) -> None:
    """A session is scheduled out and in. The interval continues where it stopped."""
    linux, interrupts = Linux(cpu), 0
    linux.open(PERIOD, parse_filters(cpu.config, []), jitter=jitter)
    while interrupts < 2:
        linux.start()
        interrupts += serve(cpu, linux.interrupt, 3_001)
        linux.stop()
        cpu.run(700)
    found = records(cpu, linux.data)
    # Operations that are in flight when the buffer becomes full have no record.
    assert jitter or 0 <= samples(cpu) - cpu.collided - len(found) <= interrupts * (cpu.config.slots - 1)
    saved = [PMSICR_EL1.unpack(value).ECOUNT for value in written(cpu, PMSICR_EL1)]
    assert any(saved) == (jitter and cpu.config.ernd)
    assert not linux.messages and not linux.truncated
    check_writes_while_disabled(cpu.steps)


def check_writes_while_disabled(steps: list[Step]) -> None:
    """Check that PMBPTR_EL1 and PMBSR_EL1 are only written while the buffer is disabled, as DEN0154 requires.

    An ISB or another access must separate the write of PMBPTR_EL1 from that of PMBLIMITR_EL1.
    """
    enabled, before = False, ""
    for name, value in steps:
        if name == "MSR PMBLIMITR_EL1":
            assert before != "MSR PMBPTR_EL1"
            enabled = bool(PMBLIMITR_EL1.unpack(value).E)
        assert not enabled or name not in ("MSR PMBPTR_EL1", "MSR PMBSR_EL1")
        before = name


def test_linux_detects_the_features(cpu: CPU) -> None:
    linux = Linux(cpu)
    assert (linux.event_filter, linux.discard) == (cpu.config.filter_events, cpu.config.discard_mode)


def test_linux_filters(cpu: CPU) -> None:
    """Each filter of the configuration alone."""
    linux, config = Linux(cpu), cpu.config
    refill = 1 << Event.L1D_REFILL
    passes: dict[str, Callable[[Record], bool]] = {
        "store_filter": lambda record: record.operation.kind == "store",
        "min_latency=100": lambda record: record.total >= 100,
        f"event_filter={refill}": lambda record: record.events & refill != 0,
    }
    if config.fne:
        passes[f"inv_event_filter={refill}"] = lambda record: record.events & refill == 0
    if config.fds:
        passes["inv_data_src_filter=0xffff"] = lambda record: (record.data_source or ~0) % 64 > 15
    for term, passed in passes.items():
        before = len(linux.data)
        linux.open(PERIOD, parse_filters(config, [term]))
        linux.start()
        serve(cpu, linux.interrupt, 10_000)
        linux.stop()
        found = list(decode_records(bytes(linux.data[before:])))
        assert 0 < len(found) < 10_000 // 257
        assert all(map(passed, found)), term
    assert not config.fds or any(record.data_source for record in found)
    records(cpu, linux.data)


@configurations_with(lambda config: config.discard_mode)
def test_linux_discard_event(cpu: CPU) -> None:
    """Samples are counted and not written. There is no buffer, and PMBPTR_EL1 is not written."""
    linux = Linux(cpu)
    linux.open(PERIOD, parse_filters(cpu.config, ["discard"]))
    linux.start()
    assert serve(cpu, linux.interrupt, 50_000) == 0
    linux.stop()
    assert written(cpu, PMBPTR_EL1) == [0], "the write of the probe"
    counts = cpu.spu.counts()
    assert counts["feed"] == counts["filtrate"] == samples(cpu) - cpu.collided
    assert (counts["records"], cpu.written) == (0, b"")
    cpu.checker.check_counts(counts)
    assert not cpu.checker.mismatches


def test_linux_with_long_operations(config: SPUConfig) -> None:
    """Operations in flight when the buffer becomes full write nothing after the last counted record."""
    cpu = CPU(config, long_operations(config.ops_per_cycle), pages=2)
    linux = Linux(cpu)
    linux.open(PERIOD, parse_filters(config, []))
    linux.start()
    while not linux.collision:
        serve(cpu, linux.interrupt, 10_000)
    linux.stop()
    assert 0 < len(records(cpu, linux.data)) <= samples(cpu) - cpu.collided


def test_linux_without_the_interrupt(cpu: CPU) -> None:
    """A driver that polls PMBSR_EL1 receives the records, and changes nothing if it polls too early."""
    linux, served = Linux(cpu), 0
    linux.open(PERIOD, parse_filters(cpu.config, []))
    linux.start()
    while served < 2:
        cpu.run(500)
        served += linux.interrupt()
    linux.stop()
    assert len(records(cpu, linux.data)) >= samples(cpu) - cpu.collided - served * (cpu.config.slots - 1)


@configurations_with(lambda config: config.el2)
def test_linux_refuses_a_buffer_owned_by_el2(config: SPUConfig) -> None:
    cpu = CPU(config, mixture(config.ops_per_cycle), pe=PEState(mdcr_el2_e2pb=0))
    with pytest.raises(UnsupportedSPU, match="higher Exception level"):
        Linux(cpu)


def test_linux_when_memory_faults(cpu: CPU) -> None:
    """The event ends, and perf receives all that was written, with TRUNCATED if the last record is incomplete."""
    linux = Linux(cpu)
    linux.open(PERIOD, parse_filters(cpu.config, []))
    linux.start()
    fault_within_a_record(cpu)
    assert cpu.run(50_000) < 50_000
    assert linux.interrupt() and not cpu.interrupt
    assert len(linux.messages) == 1
    assert linux.data == cpu.written
    assert linux.truncated == ends_with_partial_record(linux.data) >= (not cpu.config.layout.packed)
    linux.stop()
    off = cpu.config.fixed(PMSCR_EL1)
    assert [cpu.mrs(register) for register in (PMSCR_EL1, PMBLIMITR_EL1, PMBSR_EL1)] == [off, 0, 0]


def test_linux_when_data_is_lost(cpu: CPU) -> None:
    """A full buffer with PMBSR_EL1.DL = 1 ends the event."""
    linux = Linux(cpu)
    linux.open(PERIOD, parse_filters(cpu.config, []))
    linux.start()
    assert cpu.run(50_000) < 50_000
    cpu.msr(PMBSR_EL1, FULL | PMBSR_EL1.pack(DL=1))
    assert linux.interrupt() and not cpu.interrupt
    assert linux.truncated and not linux.messages
    counted = cpu.spu.counts()["pop"]
    cpu.run(1_000)
    assert cpu.spu.counts()["pop"] == counted
    records(cpu, linux.data)


# FreeBSD.


def test_freebsd(cpu: CPU) -> None:
    """The other half of the buffer is set up while S = 1 and E = 1. The write of PMBSR_EL1 starts it."""
    freebsd = FreeBSD(cpu)
    freebsd.enable(interval=1)
    while len(freebsd.buffers) < 3:
        serve(cpu, freebsd.interrupt, 5_000)
    freebsd.disable()
    assert freebsd.partial == 0
    assert len(records(cpu, b"".join(freebsd.buffers))) >= 3 * PAGE // cpu.config.max_record_bytes


def test_freebsd_when_memory_faults(cpu: CPU) -> None:
    """After a fault in one half, FreeBSD continues in the other half and does not read the syndrome."""
    freebsd = FreeBSD(cpu)
    freebsd.enable(interval=1)
    fault_within_a_record(cpu)
    serve(cpu, freebsd.interrupt, 50_000)
    freebsd.disable()
    assert len(freebsd.buffers) > 3
    partial = [ends_with_partial_record(buffer) for buffer in freebsd.buffers]
    assert freebsd.partial == sum(partial) >= (not cpu.config.layout.packed)
    complete = [record for buffer in freebsd.buffers for record in decode_records(buffer) if record.complete]
    assert len(complete) == cpu.spu.counts()["records"]


# The tests of kvm-unit-tests. They run at EL1, and so does the code that they profile.


@pytest.fixture
def guest(config: SPUConfig) -> CPU:
    return CPU(config, loop(), pe=EL1, pages=1)


def test_kvm_unit_tests_1_identification(guest: CPU) -> None:
    has = PMSIDR_EL1.unpack(guest.mrs(PMSIDR_EL1))
    # The original accepts counters of 12 bits only.
    assert has.CountSize == {12: 2, 16: 3}[guest.config.counter_bits]
    assert 16 <= 1 << has.MaxSize <= 2048
    assert has.Interval in sbsa.INTERVALS


def test_kvm_unit_tests_2_registers(guest: CPU) -> None:
    for register, value in (
        (PMBPTR_EL1, guest.memory.start),
        (PMBLIMITR_EL1, guest.memory.stop),
        (PMSIRR_EL1, PMSIRR_EL1.pack(INTERVAL=256)),
        (PMSCR_EL1, PMSCR_EL1.pack(E1SPE=1, PA=1, TS=1)),
        (PMSFCR_EL1, PMSFCR_EL1.pack(FT=1, LD=1)),
        (PMBSR_EL1, 0),
    ):
        guest.msr(register, value)
        # The original runs with a hypervisor at EL2. Without EL2, PCT has a fixed value.
        assert guest.mrs(register) == value | guest.config.fixed(register)


def test_kvm_unit_tests_3_profiling(guest: CPU) -> None:
    """25,000 iterations of the 1,000,000 of the original: enough for a sample."""
    profiler = Profiler(guest)
    profiler.reset()
    start, stop = guest.memory.start, guest.memory.stop
    guest.clear(start, stop)
    guest.run(1_000)
    assert not any(guest.load(start, stop))
    profiler.start(start, stop, interval=256)
    guest.run(75_000)
    profiler.stop()
    pointer = guest.mrs(PMBPTR_EL1)
    assert pointer > start and any(guest.load(start, pointer))
    assert guest.mrs(PMBSR_EL1) == 0
    has, buffer = PMSIDR_EL1.unpack(guest.mrs(PMSIDR_EL1)), PMBIDR_EL1.unpack(guest.mrs(PMBIDR_EL1))
    assert buffer.Align != has.MaxSize or (pointer - start) % (1 << has.MaxSize) == 0
    assert len(records(guest, guest.written)) == 1


def test_kvm_unit_tests_4_service_by_software(guest: CPU) -> None:
    Profiler(guest).reset()
    status = (0x12345678 | PMBSR_EL1.pack(S=1)) & 0xFC0FFFFF
    assert status == 0x10065678
    assert not guest.interrupt
    guest.msr(PMBSR_EL1, status)
    for _ in range(2):  # PMBIRQ is level-sensitive: it stays asserted until S is cleared
        assert guest.interrupt
        assert guest.mrs(PMBSR_EL1) == status
    guest.msr(PMBSR_EL1, 0)
    assert not guest.interrupt


def test_kvm_unit_tests_5_full(guest: CPU) -> None:
    """Interval 1 instead of the longer one of the original, with which this loop would end before the second sample."""
    profiler = Profiler(guest)
    profiler.reset()
    profiler.start(guest.memory.start, guest.memory.stop, interval=1)
    assert guest.run(100_000) < 100_000 and guest.interrupt
    assert guest.mrs(PMBSR_EL1) == FULL == 0x20001
    largest = 1 << PMSIDR_EL1.unpack(guest.mrs(PMSIDR_EL1)).MaxSize
    profiler.stop()
    assert guest.mrs(PMBPTR_EL1) >= guest.memory.stop - largest
    records(guest, guest.written)


def profile_until_fault(guest: CPU) -> None:
    """Profile until the first write to the page faults."""
    profiler = Profiler(guest)
    profiler.reset()
    profiler.start(guest.memory.start, guest.memory.stop, interval=1)
    assert guest.run(1_000) < 1_000 and guest.interrupt
    profiler.stop()
    assert guest.mrs(PMBPTR_EL1) == guest.memory.start


def test_kvm_unit_tests_6_unmapped(guest: CPU) -> None:
    guest.spu.set_faulting_range(guest.memory.start, PAGE, FaultKind.STAGE_1)
    profile_until_fault(guest)
    status = PMBSR_EL1.unpack(guest.mrs(PMBSR_EL1))
    assert (status.S, status.EC, status.DL) == (1, EC.STAGE_1, 0)


@configurations_with(lambda config: config.external_aborts)
def test_kvm_unit_tests_7_not_backed(guest: CPU) -> None:
    """The page is not mapped at stage 2, which a guest without FEAT_SPEv1p3 sees as an External abort."""
    guest.spu.set_faulting_range(guest.memory.start, PAGE, FaultKind.STAGE_1, external=True)
    profile_until_fault(guest)
    status = PMBSR_EL1.unpack(guest.mrs(PMBSR_EL1))
    assert (status.S, status.EA) == (1, 1)


# SBSA ACS.


@configurations_with(lambda config: config.el2)
def test_sbsa_c018(config: SPUConfig) -> None:
    """EL2 profiles itself, and the first write of the buffer faults: PMBIRQ is asserted."""
    el2 = replace(EL2, mdcr_el2_e2pb=0, mdcr_el3_nspb=0b11)
    cpu = CPU(config, loop(), pe=el2)
    cpu.spu.set_faulting_range(cpu.memory.start, sbsa.SIZE, FaultKind.STAGE_1, external=config.external_aborts)
    # PMSCR_EL2 = 1, which the test writes, is E0HSPE: EL0 of a host, not EL2.
    sbsa.generate_pmbirq(cpu, cpu.memory.start, 1)
    cpu.run(1_000)
    assert cpu.spu.counts()["pop"] == 0
    interval = sbsa.generate_pmbirq(cpu, cpu.memory.start, PMSCR_EL2.pack(E2SPE=1))
    operations = 256 * interval + 1
    assert cpu.run(operations + 100) < operations + 100 and cpu.interrupt
    sbsa.disable(cpu)
    status = cpu.mrs(PMBSR_EL1) & ~PMBSR_EL1.fields["MSS"].mask
    assert status == PMBSR_EL1.pack(S=1, EC=EC.STAGE_1, EA=config.external_aborts)
    assert cpu.mrs(PMBPTR_EL1) == cpu.memory.start


# Firmware: the test of TF-A, and the values of MDCR_EL3 that Linux requires (booting.rst).

FIRMWARE = {"mdcr_el3_nspb": 0b11, "mdcr_el3_enpmsn": 1, "mdcr_el3_enpms3": 1}


def undefined(config: SPUConfig, pe: PEState) -> set[str]:
    """Return the registers whose reads are UNDEFINED or trapped."""
    cpu = CPU(config, loop(), pe=pe)
    found = set[str]()
    for register in config.registers:
        try:
            cpu.mrs(register)
        except ValueError:
            found.add(register.name)
    return found


def test_tf_a_reads_all_registers(config: SPUConfig) -> None:
    assert undefined(config, replace(EL1, **FIRMWARE)) == ({"PMSCR_EL2"} if config.several_owners else set())
    if config.el2:
        assert undefined(config, replace(EL2, **FIRMWARE)) == set()


@configurations_with(lambda config: config.el3)
@pytest.mark.parametrize("absent", FIRMWARE)
def test_registers_trap_without_the_firmware_setting(config: SPUConfig, absent: str) -> None:
    others = {register.name for register in config.registers} - {"PMBIDR_EL1"}
    traps = {
        "mdcr_el3_nspb": others,
        "mdcr_el3_enpmsn": others & {"PMSNEVFR_EL1"},
        "mdcr_el3_enpms3": others & {"PMSDSFR_EL1"},
    }
    assert undefined(config, replace(EL2, **FIRMWARE | {absent: 0})) == traps[absent]
