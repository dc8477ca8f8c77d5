"""The System registers, and a whole sampling of operations."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spurtle.arch import REGISTERS, Register
from spurtle.config import CONFIGS, LFSR_RESET, SPUConfig
from spurtle_sim.decode import records
from spurtle_sim.reference.control import PEState
from spurtle_sim.reference.records import Facts, Operation
from spurtle_sim.reference.sampling import draw
from spurtle_sim.reference.spu import SPU

ONES = (1 << 64) - 1
USER = PEState(el=0, contextidr_el1=77, physical_count=1000)

# D24.7, written down from the register descriptions: what is left when all ones were written.
ONES_READ_BACK = {
    "minimal": {
        "PMSCR_EL1": 0x7B,
        "PMSICR_EL1": 0xFFFF_FFFF,
        "PMSIRR_EL1": 0xFFFF_FF01,
        "PMSFCR_EL1": 0x0007_0007,
        "PMSEVFR_EL1": 0b1011_1110,
        "PMSLATFR_EL1": 0xFFF,
        "PMBLIMITR_EL1": 0xFFFF_FFFF_FFFF_F001,
        "PMBPTR_EL1": ONES,
        "PMBSR_EL1": 0xFC0F_FFFF,
        "IMP_PMSRNDR_EL1": 0xFFFF_FFFF,
    },
}
ONES_READ_BACK["neoverse_n1"] = {**ONES_READ_BACK["minimal"], "PMSEVFR_EL1": 0b1_0111_1011_1110}
# ECOUNT comes with FEAT_SPE_ERnd, and MINLAT is as wide as the counters.
ONES_READ_BACK["wide"] = {
    **ONES_READ_BACK["neoverse_n1"],
    "PMSICR_EL1": 0xFF00_0000_FFFF_FFFF,
    "PMSLATFR_EL1": 0xFFFF,
}


@pytest.fixture(params=list(CONFIGS.values()), ids=list(CONFIGS))
def config(request: pytest.FixtureRequest) -> SPUConfig:
    return request.param


def running(config: SPUConfig, *, interval: int = 1, records: int = 64, pmscr: int = 0b11_1011) -> SPU:
    """An SPU as a driver starts it: all of EL0 and EL1, with context, physical address and timestamp."""
    spu = SPU(config)
    spu.write("PMBPTR_EL1", 0x2000 - records * config.record_bytes)
    spu.write("PMBLIMITR_EL1", 0x2000 | 1)
    spu.write("PMSIRR_EL1", interval << 8)
    spu.write("PMSICR_EL1", 0)
    spu.write("PMSCR_EL1", pmscr)
    return spu


WRITABLE = [register for register in REGISTERS if not register.read_only]


@pytest.mark.parametrize("register", WRITABLE, ids=[register.name for register in WRITABLE])
def test_bits_that_are_not_implemented_read_as_zero(config: SPUConfig, register: Register):
    spu = SPU(config)
    generator = register.name == "IMP_PMSRNDR_EL1"
    assert spu.read(register) == (LFSR_RESET if generator else 0)
    spu.write("PMBSR_EL1", 1 << 17)  # stopped, so that no written pointer counts as a full buffer
    spu.write(register, ONES)
    assert spu.read(register) == ONES_READ_BACK[config.name][register.name]
    spu.write(register, 0)
    assert spu.read(register) == (1 if generator else 0)  # the generator would never leave zero


@given(value=st.integers(0, ONES))
def test_identification_registers_ignore_writes(value: int):
    spu = SPU(CONFIGS["neoverse_n1"])
    for name, expected in (("PMSIDR_EL1", 0x0002_6017), ("PMBIDR_EL1", 6)):
        spu.write(name, value)
        assert spu.read(name) == expected


def test_an_unknown_register_is_named():
    with pytest.raises(ValueError, match=r"register must be one of PMSCR_EL1, .*, not 'PMSNEVFR_EL1'"):
        SPU(CONFIGS["minimal"]).read("PMSNEVFR_EL1")


def test_pmbsr_can_be_set_by_software(config: SPUConfig):
    spu = SPU(config)
    spu.write("PMBSR_EL1", 0x12345678 | 1 << 17)
    assert spu.read("PMBSR_EL1") == 0x10065678 | 1 << 17


def test_random_numbers_are_drawn_from_the_seed(config: SPUConfig):
    """With FEAT_SPE_ERnd one is used where an interval ends, without where it begins."""
    spu = running(config)
    spu.write("PMSIRR_EL1", 1 << 8 | 1)
    spu.write("IMP_PMSRNDR_EL1", 0x1234_5605)
    first = [number for number in range(1, 800) if spu.pass_operation(USER)]
    state = draw(0x1234_5605)
    if config.ernd:
        # Intervals end at 257, 514, 771; the selections come 5, and so on, operations later.
        assert first[:2] == [257 + 5, 514 + (state & 0xFF)]
    else:
        # 256 + 5 operations after the one that loads the counter; the next one reloads it.
        assert first[:2] == [1 + 256 + 5, 1 + 256 + 5 + 1 + 256 + (state & 0xFF)]
    spu.write("IMP_PMSRNDR_EL1", 0x1234_5605)
    spu.write("PMSICR_EL1", 0)
    assert [number for number in range(1, 800) if spu.pass_operation(USER)] == first


def test_no_random_number_is_used_without_rnd(config: SPUConfig):
    spu = running(config)
    assert any(spu.pass_operation(USER) for _ in range(600))
    assert spu.read("IMP_PMSRNDR_EL1") == LFSR_RESET


def test_every_257th_operation_is_selected(config: SPUConfig):
    spu = running(config)
    assert [number for number in range(1, 1000) if spu.pass_operation(USER)] == [257, 514, 771]


def test_the_counter_stands_still_where_profiling_is_disabled(config: SPUConfig):
    spu = running(config)
    spu.pass_operation(USER)
    assert spu.read("PMSICR_EL1") == 256
    for elsewhere in (PEState(el=2), PEState(ns=0), PEState(debug=1), PEState(aarch32=1)):
        assert not spu.pass_operation(elsewhere)
    assert spu.read("PMSICR_EL1") == 256
    spu.write("PMBSR_EL1", 1 << 17)
    assert not spu.pass_operation(USER)
    assert spu.read("PMSICR_EL1") == 256


def test_what_may_be_collected_is_decided_at_the_sampling_point(config: SPUConfig):
    spu = running(config)
    start = spu.start(USER)
    spu.write("PMSCR_EL1", 0b11)  # CX, PA, TS are zero when it finishes
    facts = Facts(load=1, retired=1, va_valid=1, pa_valid=1)
    written = spu.finish(start, Operation(facts=facts, va=0x10, pa=0x20), total=9, issue=3, translation=1)
    assert written is not None
    (record,) = records(written)
    assert (record.context_el1, record.timestamp) == (77, 1000)
    assert record.pa is not None


def test_what_may_not_be_collected_is_not_there(config: SPUConfig):
    spu = running(config, pmscr=0b11)
    facts = Facts(load=1, retired=1, va_valid=1, pa_valid=1)
    written = spu.finish(spu.start(USER), Operation(facts=facts, va=0x10, pa=0x20), total=9, issue=3, translation=1)
    assert written is not None
    (record,) = records(written)
    assert (record.context_el1, record.timestamp, record.pa, record.va) == (None, None, None, 0x10)


def test_a_filtered_operation_writes_nothing(config: SPUConfig):
    spu = running(config)
    spu.write("PMSFCR_EL1", 0b10 | 1 << 16)  # FT, B
    assert spu.finish(spu.start(USER), Operation(facts=Facts(retired=1)), total=9, issue=3, translation=0) is None
    assert spu.buffer.memory == {}


def test_profiling_stops_when_the_buffer_is_full_and_goes_on_where_it_stood(config: SPUConfig):
    spu = running(config, records=2)
    operation = Operation(facts=Facts(retired=1))
    for expected in (True, True, False):
        written = spu.finish(spu.start(USER), operation, total=9, issue=3, translation=0)
        assert (written is not None) is expected
    assert spu.read("PMBSR_EL1") == 0x20001
    # In the order in which FreeBSD does it: new pointer and limit with E = 1 and S = 1, S = 0 as the last act.
    spu.write("PMBPTR_EL1", 0x3000)
    spu.write("PMBLIMITR_EL1", 0x4001)
    assert spu.finish(spu.start(USER), operation, total=9, issue=3, translation=0) is None
    spu.write("PMBSR_EL1", 0)
    assert spu.finish(spu.start(USER), operation, total=9, issue=3, translation=0) is not None
    assert sorted(spu.buffer.memory) == [0x2000 - 128, 0x2000 - 64, 0x3000]


def test_a_bad_pointer_stops_as_soon_as_the_buffer_is_enabled(config: SPUConfig):
    spu = SPU(config)
    spu.write("PMBPTR_EL1", 0x2000)
    spu.write("PMSCR_EL1", 0b11)
    assert spu.read("PMBSR_EL1") == 0
    spu.write("PMBLIMITR_EL1", 0x2001)
    assert spu.read("PMBSR_EL1") == 0x20001
    assert not spu.pass_operation(USER)
    spu.write("PMBSR_EL1", 0)  # the same pointer cannot be used again
    assert spu.read("PMBSR_EL1") == 0x20001


def test_a_collision_is_told_in_pmbsr_and_does_not_stop(config: SPUConfig):
    spu = running(config)
    spu.collide()
    assert spu.read("PMBSR_EL1") == 1 << 16
    assert [number for number in range(1, 600) if spu.pass_operation(USER)] == [257, 514]
