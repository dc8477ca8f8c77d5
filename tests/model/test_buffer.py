"""The Profiling Buffer: addresses of records, buffer full, faults (D17.7), and Discard mode (D17.5.5)."""

import pytest

from spurtle.arch import FM, PMBLIMITR_EL1, PMBSR_EL1
from spurtle.config import CONFIGS, SPUConfig
from spurtle_sim.model.buffer import Buffer, Fault, FaultKind
from spurtle_sim.model.registers import Registers

CONFIG = CONFIGS["neoverse_n1"]
PACKED = CONFIGS["kunpeng_920"]
"""Configuration with records of 24 to 128 bytes, in multiples of four."""
RECORD = bytes(range(64))
FULL = PMBSR_EL1.pack(S=1, MSS=1)


def enabled(pointer: int, limit: int, pmbsr: int = 0, config: SPUConfig = CONFIG) -> tuple[Buffer, Registers]:
    """Return an enabled buffer and its registers, in the state after the write that enabled it."""
    registers = Registers(PMBPTR_EL1=pointer, PMBLIMITR_EL1=limit | PMBLIMITR_EL1.pack(E=1), PMBSR_EL1=pmbsr)
    buffer = Buffer(config, registers)
    buffer.stop_if_full()
    return buffer, registers


def test_records_are_contiguous():
    buffer, registers = enabled(0x1000, 0x2000)
    assert buffer.write(RECORD)
    assert buffer.write(RECORD[::-1])
    assert buffer.memory == {0x1000: RECORD, 0x1040: RECORD[::-1]}
    assert registers.PMBPTR_EL1 == 0x1080
    assert registers.PMBSR_EL1 == 0


def test_buffer_is_full_if_no_further_record_fits():
    buffer, registers = enabled(0x1F80, 0x2000)
    assert buffer.write(RECORD)
    assert registers.PMBSR_EL1 == 0  # PMBPTR_EL1 == LIMIT - 64: one more record fits
    assert buffer.write(RECORD)
    assert registers.PMBSR_EL1 == FULL
    assert registers.PMBPTR_EL1 == 0x2000
    assert not buffer.write(RECORD)
    assert registers.PMBPTR_EL1 == 0x2000
    assert set(buffer.memory) == {0x1F80, 0x1FC0}


def test_disabled_buffer_discards_records():
    registers = Registers(PMBPTR_EL1=0x1000, PMBLIMITR_EL1=0x2000)
    buffer = Buffer(CONFIG, registers)
    buffer.stop_if_full()
    assert not buffer.write(RECORD)
    assert buffer.memory == {}
    assert registers == Registers(PMBPTR_EL1=0x1000, PMBLIMITR_EL1=0x2000)


def test_stopped_buffer_discards_records():
    stopped = PMBSR_EL1.pack(S=1, EC=0x24, MSS=0x1234)
    buffer, registers = enabled(0x1000, 0x2000, stopped)
    assert not buffer.write(RECORD)
    assert stopped == registers.PMBSR_EL1


def test_buffer_full_keeps_coll_ea_and_dl_and_clears_the_other_syndrome_fields():
    sticky = PMBSR_EL1.pack(COLL=1, EA=1, DL=1)
    buffer, registers = enabled(0x1FC0, 0x2000, sticky | PMBSR_EL1.pack(MSS=0xFFFF, EC=0x3F, MSS2=0xFF_FFFF))
    assert buffer.write(RECORD)
    assert sticky | FULL == registers.PMBSR_EL1


@pytest.mark.parametrize(
    ("pointer", "limit", "usable"),
    [
        (0x1FC0, 0x2000, True),
        (0x2000, 0x2000, False),
        (0x3000, 0x2000, False),
        (0x1FE0, 0x2000, False),  # not aligned, and the record would cross the limit
        (0x1008, 0x2000, False),  # not aligned
        (0, 0, False),  # LIMIT - 64 must not wrap
        (0xFFFF_FFFF_FFFF_FFC0, 0, False),
        (0xFFFF_FFFF_FFFF_EFC0, 0xFFFF_FFFF_FFFF_F000, True),
        (0xFFFF_FFFF_FFFF_F000, 0xFFFF_FFFF_FFFF_F000, False),  # PMBPTR + 64 must not wrap
        (0x00FF_FFFF_FFFF_FFC0, 0x0100_0000_0000_0000, False),  # the top bytes differ
        (0x0100_0000_0000_0000, 0x0100_0000_0000_1000, True),
        (0x0000_0000_0000_1000, 0x0100_0000_0000_2000, False),
    ],
)
def test_invalid_pointer_is_treated_as_buffer_full(pointer: int, limit: int, usable: bool):
    buffer, registers = enabled(pointer, limit)
    assert (0 if usable else FULL) == registers.PMBSR_EL1
    assert buffer.write(RECORD) is usable
    assert list(buffer.memory) == ([pointer] if usable else [])


# Records of different sizes.


def test_records_of_different_sizes_are_contiguous():
    buffer, registers = enabled(0x1004, 0x2000, config=PACKED)
    for size in (24, 36, 4, 128):
        assert buffer.write(RECORD[:4] * (size // 4))
    assert {address: len(record) for address, record in buffer.memory.items()} == {
        0x1004: 24,
        0x101C: 36,
        0x1040: 4,
        0x1044: 128,
    }
    assert (registers.PMBPTR_EL1, registers.PMBSR_EL1) == (0x10C4, 0)


@pytest.mark.parametrize(("pointer", "size", "full"), [(0x1F68, 24, False), (0x1F68, 28, True), (0x1F80, 24, True)])
def test_buffer_is_full_if_the_longest_record_does_not_fit(pointer: int, size: int, full: bool):
    """The buffer is full even if a shorter record fits: PMBPTR_EL1 > LIMIT - 128 (D17.7)."""
    buffer, registers = enabled(pointer, 0x2000, config=PACKED)
    assert buffer.write(bytes(size))
    assert (FULL if full else 0) == registers.PMBSR_EL1
    assert pointer + size == registers.PMBPTR_EL1


@pytest.mark.parametrize(
    ("name", "pointer", "usable"),
    [
        ("kunpeng_920", 0x1004, True),
        ("kunpeng_920", 0x1002, False),
        ("hisilicon_mobile", 0x1008, True),
        ("hisilicon_mobile", 0x1004, False),
        ("hisilicon_mobile", 0x1FC0, True),
        ("hisilicon_mobile", 0x1FC8, False),
        ("arm_model", 0x1F80, True),
        ("arm_model", 0x1F88, False),
        ("v1p4", 0x1080, True),
        ("v1p4", 0x1040, False),
    ],
)
def test_pointer_must_be_aligned(name: str, pointer: int, usable: bool):
    """PMBPTR_EL1 must be aligned to PMBIDR_EL1.Align, with space for PMSIDR_EL1.MaxSize below the limit."""
    _, registers = enabled(pointer, 0x2000, config=CONFIGS[name])
    assert (0 if usable else FULL) == registers.PMBSR_EL1


@pytest.mark.parametrize("pointer", [0x1000, 0x1FC0, 0x2000, 0x1008, 0xFF00_0000_0000_0000])
def test_discard_mode_writes_nothing_and_ignores_the_pointer(pointer: int):
    buffer, registers = enabled(pointer, 0x2000 | PMBLIMITR_EL1.pack(FM=FM.DISCARD))
    for _ in range(3):
        assert not buffer.write(RECORD)
    assert (buffer.memory, registers.PMBPTR_EL1, registers.PMBSR_EL1) == ({}, pointer, 0)
    buffer.collide()
    assert PMBSR_EL1.pack(COLL=1) == registers.PMBSR_EL1


@pytest.mark.parametrize("reserved", [0b01, 0b11])
def test_reserved_values_of_fm_behave_as_fill_mode(reserved: int):
    buffer, registers = enabled(0x1FC0, 0x2000 | PMBLIMITR_EL1.pack(FM=reserved))
    assert buffer.write(RECORD)
    assert registers.PMBSR_EL1 == FULL


def test_collision_sets_only_coll():
    buffer, registers = enabled(0x1000, 0x2000)
    buffer.collide()
    assert PMBSR_EL1.pack(COLL=1) == registers.PMBSR_EL1
    assert buffer.write(RECORD)


# Faults.

FLAGS = PMBSR_EL1.pack(DirtyBit=1, TopLevel=1)
STAGE_1 = PMBSR_EL1.pack(S=1, EC=0x24, MSS=0b000111)
STICKY = PMBSR_EL1.pack(COLL=1, EA=1, DL=1)


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        (Fault(kind=FaultKind.STAGE_1, fsc=0b001111, flags=FLAGS), PMBSR_EL1.pack(EC=0x24, MSS=0b001111) | FLAGS),
        (Fault(kind=FaultKind.STAGE_2, fsc=0b000110, flags=FLAGS), PMBSR_EL1.pack(EC=0x25, MSS=0b000110) | FLAGS),
        (Fault(kind=FaultKind.GRANULE_PROTECTION, fsc=0x3F, flags=FLAGS), PMBSR_EL1.pack(EC=0x1E)),
        (Fault(kind=FaultKind.NOT_ALLOWED, fsc=0x3F, flags=FLAGS), PMBSR_EL1.pack(DL=1)),
        (Fault(kind=FaultKind.STAGE_1, fsc=0b010000, external=True), PMBSR_EL1.pack(EC=0x24, MSS=0b010000, EA=1)),
    ],
)
@pytest.mark.parametrize("before", [0, STICKY, PMBSR_EL1.pack(EC=0x3F, MSS=0xFFFF, MSS2=0xFF_FFFF)])
def test_fault_stops_the_buffer_and_sets_the_syndrome(fault: Fault, status: int, before: int):
    buffer, registers = enabled(0x1000, 0x2000, before)
    assert not buffer.write(RECORD, fault)
    assert before & STICKY | status | PMBSR_EL1.pack(S=1) == registers.PMBSR_EL1
    assert (registers.PMBPTR_EL1, buffer.memory) == (0x1000, {})
    assert not buffer.write(RECORD)
    assert registers.PMBPTR_EL1 == 0x1000


@pytest.mark.parametrize("written", [8, 32, 56])
def test_fault_within_a_record_leaves_a_partial_record_and_sets_dl(written: int):
    buffer, registers = enabled(0x1000, 0x2000)
    assert buffer.write(RECORD)
    assert not buffer.write(RECORD, Fault(kind=FaultKind.STAGE_1, fsc=0b000111, written=written))
    assert PMBSR_EL1.pack(DL=1) | STAGE_1 == registers.PMBSR_EL1
    assert 0x1040 + written == registers.PMBPTR_EL1
    assert buffer.memory == {0x1000: RECORD, 0x1040: RECORD[:written]}


def test_pointer_can_be_reused_after_a_fault_on_the_first_byte():
    buffer, registers = enabled(0x1000, 0x2000)
    assert not buffer.write(RECORD, Fault(kind=FaultKind.STAGE_2, fsc=0b000111))
    registers.PMBSR_EL1 = 0
    buffer.stop_if_full()
    assert buffer.write(RECORD)
    assert (registers.PMBPTR_EL1, registers.PMBSR_EL1, buffer.memory) == (0x1040, 0, {0x1000: RECORD})


def test_pointer_is_invalid_after_a_fault_within_a_record():
    """The next record would not be aligned."""
    buffer, registers = enabled(0x1000, 0x2000)
    assert not buffer.write(RECORD, Fault(kind=FaultKind.STAGE_2, written=8))
    registers.PMBSR_EL1 = 0
    buffer.stop_if_full()
    assert (registers.PMBPTR_EL1, registers.PMBSR_EL1) == (0x1008, FULL)


def test_fault_on_the_last_record_is_not_reported_as_buffer_full():
    buffer, registers = enabled(0x1FC0, 0x2000)
    assert not buffer.write(RECORD, Fault(kind=FaultKind.STAGE_1, fsc=0b000111))
    assert registers.PMBSR_EL1 == STAGE_1


HALTED = {
    "disabled": (0x2000, 0),
    "stopped": (0x2000 | PMBLIMITR_EL1.pack(E=1), PMBSR_EL1.pack(S=1, EC=0x25, MSS=0b000101)),
    "Discard mode": (0x2000 | PMBLIMITR_EL1.pack(E=1, FM=FM.DISCARD), PMBSR_EL1.pack(COLL=1)),
}


@pytest.mark.parametrize(("limit", "status"), HALTED.values(), ids=HALTED)
def test_discarded_record_reports_only_an_external_abort(limit: int, status: int):
    registers = Registers(PMBPTR_EL1=0x1000, PMBLIMITR_EL1=limit, PMBSR_EL1=status)
    buffer = Buffer(CONFIG, registers)
    for kind in FaultKind:
        assert not buffer.write(RECORD, Fault(kind=kind, fsc=0b000111, written=8))
    assert status == registers.PMBSR_EL1
    assert not buffer.write(RECORD, Fault(kind=FaultKind.STAGE_1, fsc=0b010000, written=8, external=True))
    assert status | PMBSR_EL1.pack(EA=1) == registers.PMBSR_EL1
    assert (registers.PMBPTR_EL1, buffer.memory) == (0x1000, {})


@pytest.mark.parametrize("limit", [0, 0x2000 | PMBLIMITR_EL1.pack(E=1)])
def test_asynchronous_external_abort_stops_an_enabled_or_disabled_buffer(limit: int):
    registers = Registers(PMBPTR_EL1=0x1000, PMBLIMITR_EL1=limit, PMBSR_EL1=PMBSR_EL1.pack(COLL=1, MSS2=1))
    Buffer(CONFIG, registers).abort()
    assert PMBSR_EL1.pack(S=1, COLL=1, EA=1, DL=1, EC=0x24, MSS=0b010001) == registers.PMBSR_EL1
    assert registers.PMBPTR_EL1 == 0x1000


def test_asynchronous_external_abort_keeps_the_syndrome_of_an_earlier_event():
    buffer, registers = enabled(0x1000, 0x2000)
    assert not buffer.write(RECORD, Fault(kind=FaultKind.STAGE_1, fsc=0b000111))
    buffer.abort()
    assert STAGE_1 | PMBSR_EL1.pack(EA=1, DL=1) == registers.PMBSR_EL1
