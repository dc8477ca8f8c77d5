"""D17.7: where records go, and when the buffer is full; D17.5.5: Discard mode."""

import pytest

from spurtle.arch import FM, PMBLIMITR_EL1, PMBSR_EL1
from spurtle.config import CONFIGS, SPUConfig
from spurtle_sim.reference.buffer import Buffer
from spurtle_sim.reference.registers import Registers

CONFIG = CONFIGS["neoverse_n1"]
PACKED = CONFIGS["kunpeng_920"]
"""Records of 24 to 128 bytes, each a multiple of four."""
RECORD = bytes(range(64))
FULL = PMBSR_EL1.pack(S=1, MSS=1)


def enabled(pointer: int, limit: int, pmbsr: int = 0, config: SPUConfig = CONFIG) -> tuple[Buffer, Registers]:
    """A buffer as after the last write of a register that enabled it."""
    registers = Registers(PMBPTR_EL1=pointer, PMBLIMITR_EL1=limit | PMBLIMITR_EL1.pack(E=1), PMBSR_EL1=pmbsr)
    buffer = Buffer(config, registers)
    buffer.stop_if_full()
    return buffer, registers


def test_records_stand_one_after_the_other():
    buffer, registers = enabled(0x1000, 0x2000)
    assert buffer.write(RECORD)
    assert buffer.write(RECORD[::-1])
    assert buffer.memory == {0x1000: RECORD, 0x1040: RECORD[::-1]}
    assert registers.PMBPTR_EL1 == 0x1080
    assert registers.PMBSR_EL1 == 0


def test_the_buffer_is_full_when_no_further_record_fits():
    buffer, registers = enabled(0x1F80, 0x2000)
    assert buffer.write(RECORD)
    assert registers.PMBSR_EL1 == 0  # PMBPTR_EL1 == LIMIT - 64: one more fits
    assert buffer.write(RECORD)
    assert registers.PMBSR_EL1 == FULL
    assert registers.PMBPTR_EL1 == 0x2000
    assert not buffer.write(RECORD)
    assert registers.PMBPTR_EL1 == 0x2000
    assert set(buffer.memory) == {0x1F80, 0x1FC0}


def test_a_disabled_buffer_discards():
    registers = Registers(PMBPTR_EL1=0x1000, PMBLIMITR_EL1=0x2000)
    buffer = Buffer(CONFIG, registers)
    buffer.stop_if_full()
    assert not buffer.write(RECORD)
    assert buffer.memory == {}
    assert registers == Registers(PMBPTR_EL1=0x1000, PMBLIMITR_EL1=0x2000)


def test_a_stopped_buffer_discards():
    stopped = PMBSR_EL1.pack(S=1, EC=0x24, MSS=0x1234)
    buffer, registers = enabled(0x1000, 0x2000, stopped)
    assert not buffer.write(RECORD)
    assert stopped == registers.PMBSR_EL1


def test_full_leaves_coll_ea_and_dl_alone_and_clears_the_rest_of_the_syndrome():
    sticky = PMBSR_EL1.pack(COLL=1, EA=1, DL=1)
    buffer, registers = enabled(0x1FC0, 0x2000, sticky | PMBSR_EL1.pack(MSS=0xFFFF, EC=0x3F))
    assert buffer.write(RECORD)
    assert sticky | FULL == registers.PMBSR_EL1


@pytest.mark.parametrize(
    ("pointer", "limit", "usable"),
    [
        (0x1FC0, 0x2000, True),
        (0x2000, 0x2000, False),
        (0x3000, 0x2000, False),
        (0x1FE0, 0x2000, False),  # not aligned, and it would write across the limit
        (0x1008, 0x2000, False),  # not aligned
        (0, 0, False),  # LIMIT - 64 must not wrap
        (0xFFFF_FFFF_FFFF_FFC0, 0, False),
        (0xFFFF_FFFF_FFFF_EFC0, 0xFFFF_FFFF_FFFF_F000, True),
        (0xFFFF_FFFF_FFFF_F000, 0xFFFF_FFFF_FFFF_F000, False),  # PMBPTR + 64 must not wrap
        (0x00FF_FFFF_FFFF_FFC0, 0x0100_0000_0000_0000, False),  # another top byte
        (0x0100_0000_0000_0000, 0x0100_0000_0000_1000, True),
        (0x0000_0000_0000_1000, 0x0100_0000_0000_2000, False),
    ],
)
def test_a_bad_pointer_counts_as_a_full_buffer(pointer: int, limit: int, usable: bool):
    buffer, registers = enabled(pointer, limit)
    assert (0 if usable else FULL) == registers.PMBSR_EL1
    assert buffer.write(RECORD) is usable
    assert list(buffer.memory) == ([pointer] if usable else [])


# Records of several sizes.


def test_records_of_several_sizes_stand_one_after_the_other():
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
def test_the_buffer_is_full_when_the_longest_record_does_not_fit(pointer: int, size: int, full: bool):
    """Although a shorter one would: PMBPTR_EL1 > LIMIT - 128 (D17.7)."""
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
def test_a_pointer_is_aligned_as_records_are(name: str, pointer: int, usable: bool):
    """To PMBIDR_EL1.Align, and with room for PMSIDR_EL1.MaxSize."""
    _, registers = enabled(pointer, 0x2000, config=CONFIGS[name])
    assert (0 if usable else FULL) == registers.PMBSR_EL1


@pytest.mark.parametrize("pointer", [0x1000, 0x1FC0, 0x2000, 0x1008, 0xFF00_0000_0000_0000])
def test_in_discard_mode_nothing_is_written_and_no_pointer_is_bad(pointer: int):
    buffer, registers = enabled(pointer, 0x2000 | PMBLIMITR_EL1.pack(FM=FM.DISCARD))
    for _ in range(3):
        assert not buffer.write(RECORD)
    assert (buffer.memory, registers.PMBPTR_EL1, registers.PMBSR_EL1) == ({}, pointer, 0)
    buffer.collide()
    assert PMBSR_EL1.pack(COLL=1) == registers.PMBSR_EL1


@pytest.mark.parametrize("reserved", [0b01, 0b11])
def test_the_reserved_values_of_fm_fill_the_buffer(reserved: int):
    buffer, registers = enabled(0x1FC0, 0x2000 | PMBLIMITR_EL1.pack(FM=reserved))
    assert buffer.write(RECORD)
    assert registers.PMBSR_EL1 == FULL


def test_a_collision_sets_coll_and_nothing_else():
    buffer, registers = enabled(0x1000, 0x2000)
    buffer.collide()
    assert PMBSR_EL1.pack(COLL=1) == registers.PMBSR_EL1
    assert buffer.write(RECORD)
