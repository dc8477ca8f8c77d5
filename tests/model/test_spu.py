"""The reference SPU: System registers, and sampling of operations from selection to record."""

from copy import copy
from itertools import product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from configurations import FEATURES
from spurtle.arch import REGISTERS
from spurtle.config import CONFIGS, LFSR_ACCESS_RESET, LFSR_RESET, SPUConfig
from spurtle_sim.model.operation import Facts, Location, Operation
from spurtle_sim.model.pe import PEState
from spurtle_sim.model.sampling import access_number, draw, draw_access
from spurtle_sim.model.spu import ReferenceSPU
from spurtle_sim.records.decode import decode_records
from tests.support.tiers import configurations

ONES = (1 << 64) - 1
USER = PEState(el=0, contextidr_el1=77, physical_count=1000)

# Values read after all ones are written, written by hand from the register descriptions (D24.7).
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
# Changes that one feature makes.
_FNE = {"PMSEVFR_EL1": 0b1111_1110, "PMSNEVFR_EL1": 0b1111_1110, "PMSFCR_EL1": 0x0007_000F}
_V1P2 = {**_FNE, "PMBLIMITR_EL1": 0xFFFF_FFFF_FFFF_F027}
_TWO_ACCESSES = {**_V1P2, "IMP_PMSRNDR_EL1": ONES}
_EL2 = {"PMSCR_EL2": 0x7B}
_EL2_ECV = {"PMSCR_EL1": 0xFB, "PMSCR_EL2": 0xFB}
_CHANGES = {
    "neoverse_n1": {**_EL2, "PMSEVFR_EL1": 0b1_0111_1011_1110},
    "minimal_ernd": {"PMSICR_EL1": 0xFF00_0000_FFFF_FFFF},
    "minimal_counters16": {"PMSLATFR_EL1": 0xFFFF},
    "minimal_data_source": {},
    "minimal_eft": {**_V1P2, "PMSFCR_EL1": 0x001F_0000_001F_000F},
    "minimal_fne": _FNE,
    "minimal_fds": {**_V1P2, "PMSFCR_EL1": 0x0007_001F, "PMSDSFR_EL1": ONES},
    "minimal_v1p2": _V1P2,
    "minimal_mops": _TWO_ACCESSES,
    "minimal_gcs": _TWO_ACCESSES,
    "minimal_unpredictable": _FNE,
    "minimal_el2": _EL2,
    "minimal_el3": {"PMSCR_EL2": 0},  # accessible from EL3 without EL2
    "minimal_ecv": {},
    "minimal_ecv_poff": _EL2_ECV,
    "minimal_sve": {"PMSEVFR_EL1": 0x6_00BE, "IMP_PMSRNDR_EL1": ONES},
    "kunpeng_920": {**_EL2, "PMSEVFR_EL1": 0b111_1011_1110},
    "hisilicon_mobile": {**_EL2, "PMSEVFR_EL1": 0b111_1011_1110},
    "arm_model": {
        **_V1P2,
        **_EL2_ECV,
        "IMP_PMSRNDR_EL1": ONES,
        "PMSLATFR_EL1": 0xFFFF,
        "PMSEVFR_EL1": 0x0006_0FFE,
        "PMSNEVFR_EL1": 0x0006_0FFE,
    },
    "v1p4": {
        **_EL2_ECV,
        "PMSICR_EL1": 0xFF00_0000_FFFF_FFFF,
        "PMSLATFR_EL1": 0xFFFF,
        "PMSFCR_EL1": 0x001F_0000_001F_001F,
        "PMSEVFR_EL1": 0x03FE_1FFE,
        "PMSNEVFR_EL1": 0x03FE_1FFE,
        "PMBLIMITR_EL1": 0xFFFF_FFFF_FFFF_F027,
        "PMBSR_EL1": 0x01E0_FC0F_FFFF,
        "PMSDSFR_EL1": ONES,
        "IMP_PMSRNDR_EL1": ONES,
    },
}
ONES_READ_BACK |= {name: ONES_READ_BACK["minimal"] | changes for name, changes in _CHANGES.items()}


@pytest.fixture(params=configurations(CONFIGS))
def config(request: pytest.FixtureRequest) -> SPUConfig:
    return request.param


def running(config: SPUConfig, *, interval: int = 1, records: int = 64, pmscr: int = 0b11_1011) -> ReferenceSPU:
    """Return an SPU that a driver has started: EL0 and EL1 are profiled, and all optional data is collected."""
    spu = ReferenceSPU(config)
    spu.write("PMBPTR_EL1", 0x2000 - records * config.max_record_bytes)
    spu.write("PMBLIMITR_EL1", 0x2000 | 1)
    spu.write("PMSIRR_EL1", interval << 8)
    spu.write("PMSICR_EL1", 0)
    if config.el2:
        spu.write("PMSCR_EL2", 1 << 4)
    spu.write("PMSCR_EL1", pmscr)
    return spu


def generators(config: SPUConfig, state: int, access: int) -> int:
    """Return IMP_PMSRNDR_EL1. Its second half exists only in configurations that choose accesses."""
    return access << 32 | state if config.mops or config.gcs or config.scalable else state


ALL = {**CONFIGS, **FEATURES}
WITH_EXPECTED_VALUES = [config for config in ALL.values() if config.name in ONES_READ_BACK]


def test_expected_values_exist_for_named_configurations():
    assert {*CONFIGS} <= {config.name for config in WITH_EXPECTED_VALUES}


@pytest.mark.parametrize("config", WITH_EXPECTED_VALUES, ids=[config.name for config in WITH_EXPECTED_VALUES])
def test_unimplemented_bits_read_as_zero(config: SPUConfig):
    for register in REGISTERS:
        if register.read_only:
            continue
        spu = ReferenceSPU(config)
        if register.name not in ONES_READ_BACK[config.name]:
            message = f"^register must be one of PMSCR_EL1, .*, not '{register.name}'$"
            for accessor in (register, register.name):
                with pytest.raises(ValueError, match=message):
                    spu.read(accessor)
                with pytest.raises(ValueError, match=message):
                    spu.write(accessor, 1)
            assert getattr(spu.registers, register.name) == 0
            continue
        generator = register.name == "IMP_PMSRNDR_EL1"
        reset = generators(config, LFSR_RESET, LFSR_ACCESS_RESET)
        # Without EL2 PCT is always 0b01.
        fixed_bits = 0x40 if register.name == "PMSCR_EL1" and not config.el2 else 0
        assert spu.read(register) == (reset if generator else fixed_bits), register.name
        spu.write("PMBSR_EL1", 1 << 17)  # profiling is stopped, so that no pointer is treated as buffer full
        spu.write(register, ONES)
        assert spu.read(register) == ONES_READ_BACK[config.name][register.name], register.name
        spu.write(register, 0)
        # The state of a generator is never zero, because zero would not change.
        assert spu.read(register) == (generators(config, 1, 1) if generator else fixed_bits), register.name


def test_each_generator_has_half_of_the_register():
    spu = ReferenceSPU(CONFIGS["v1p4"])
    for written, expected in ((7, 1 << 32 | 7), (9 << 32, 9 << 32 | 1), (ONES, ONES)):
        spu.write("IMP_PMSRNDR_EL1", written)
        assert spu.read("IMP_PMSRNDR_EL1") == expected
    spu.write("IMP_PMSRNDR_EL1", 0x1234_5678_9ABC_DEF0)
    spu.choose_access()
    assert spu.read("IMP_PMSRNDR_EL1") == draw_access(0x1234_5678, 9) << 32 | 0x9ABC_DEF0
    spu.write("PMSIRR_EL1", 1 << 8 | 1)
    spu.write("PMSICR_EL1", 1)
    assert not spu.count_operation()
    assert spu.read("IMP_PMSRNDR_EL1") == draw_access(0x1234_5678, 9) << 32 | draw(0x9ABC_DEF0)


@pytest.mark.parametrize(
    ("name", "pmsidr", "pmbidr"),
    [
        ("neoverse_n1", 0x0002_6017, 6),
        ("kunpeng_920", 0x0002_7007, 2),
        ("hisilicon_mobile", 0x0002_6007, 3),
        ("arm_model", 0x0303_705F, 3),
        ("v1p4", 0x1_1F03_70F7, 0x127),
    ],
)
@given(value=st.integers(0, ONES))
def test_identification_registers_ignore_writes(name: str, pmsidr: int, pmbidr: int, value: int):
    spu = ReferenceSPU(CONFIGS[name])
    for register, expected in (("PMSIDR_EL1", pmsidr), ("PMBIDR_EL1", pmbidr)):
        spu.write(register, value)
        assert spu.read(register) == expected


def test_unknown_register_is_named():
    with pytest.raises(ValueError, match=r"register must be one of PMSCR_EL1, .*, not 'PMSNEVFR_EL1'"):
        ReferenceSPU(CONFIGS["minimal"]).read("PMSNEVFR_EL1")


def test_pmbsr_can_be_set_by_software(config: SPUConfig):
    spu = ReferenceSPU(config)
    spu.write("PMBSR_EL1", 0x12345678 | 1 << 17)
    assert spu.read("PMBSR_EL1") == 0x10065678 | 1 << 17


def test_random_numbers_are_drawn_from_the_seed(config: SPUConfig):
    """A number is used at the end of an interval with FEAT_SPE_ERnd, and at its beginning without."""
    spu = running(config)
    spu.write("PMSIRR_EL1", 1 << 8 | 1)
    spu.write("IMP_PMSRNDR_EL1", 0x1234_5605)
    first = [number for number in range(1, 800) if spu.pass_operation(USER)]
    state = draw(0x1234_5605)
    if config.ernd:
        # Intervals end at 257, 514 and 771. Each random number, 5 at first, delays a selection.
        assert first[:2] == [257 + 5, 514 + (state & 0xFF)]
    else:
        # The counter is loaded by one operation, and the selection is 256 + 5 operations later.
        assert first[:2] == [1 + 256 + 5, 1 + 256 + 5 + 1 + 256 + (state & 0xFF)]
    spu.write("IMP_PMSRNDR_EL1", 0x1234_5605)
    spu.write("PMSICR_EL1", 0)
    assert [number for number in range(1, 800) if spu.pass_operation(USER)] == first


def test_no_random_number_is_used_without_rnd(config: SPUConfig):
    spu = running(config)
    assert any(spu.pass_operation(USER) for _ in range(600))
    assert spu.read("IMP_PMSRNDR_EL1") == generators(config, LFSR_RESET, LFSR_ACCESS_RESET)


def test_every_257th_operation_is_selected(config: SPUConfig):
    spu = running(config)
    assert [number for number in range(1, 1000) if spu.pass_operation(USER)] == [257, 514, 771]


def test_counter_holds_its_value_while_profiling_is_disabled(config: SPUConfig):
    spu = running(config)
    spu.pass_operation(USER)
    assert spu.read("PMSICR_EL1") == 256
    others = [*([PEState(ns=0)] if config.el3 else []), *([PEState(nse=1)] if config.rme else [])]
    for pe in (PEState(el=2), PEState(debug=1), PEState(aarch32=1), *others):
        assert not spu.pass_operation(pe)
    assert spu.read("PMSICR_EL1") == 256
    spu.write("PMBSR_EL1", 1 << 17)
    assert not spu.pass_operation(USER)
    assert spu.read("PMSICR_EL1") == 256


def test_permissions_are_evaluated_at_the_sampling_point(config: SPUConfig):
    spu = running(config)
    start = spu.start(USER)
    spu.write("PMSCR_EL1", 0b11)  # CX, PA and TS are zero when the operation finishes
    facts = Facts(load=1, retired=1, va_valid=1, pa_valid=1)
    written = spu.finish(start, Operation(facts=facts, va=0x10, pa=0x20), total=9, issue=3, translation=1)
    assert written is not None
    (record,) = decode_records(written)
    assert (record.context_el1, record.timestamp) == (77, 1000)
    assert record.pa is not None


def test_data_without_permission_is_not_recorded(config: SPUConfig):
    spu = running(config, pmscr=0b11)
    facts = Facts(load=1, retired=1, va_valid=1, pa_valid=1)
    written = spu.finish(spu.start(USER), Operation(facts=facts, va=0x10, pa=0x20), total=9, issue=3, translation=1)
    assert written is not None
    (record,) = decode_records(written)
    assert (record.context_el1, record.timestamp, record.pa, record.va) == (None, None, None, 0x10)


def test_rejected_operation_writes_no_record(config: SPUConfig):
    spu = running(config)
    spu.write("PMSFCR_EL1", 0b10 | 1 << 16)  # FT, B
    assert spu.finish(spu.start(USER), Operation(facts=Facts(retired=1)), total=9, issue=3, translation=0) is None
    assert spu.buffer.memory == {}


def test_profiling_stops_when_the_buffer_is_full_and_continues_afterwards(config: SPUConfig):
    spu = running(config, records=2)
    operation = Operation(facts=Facts(retired=1))
    pointer = 0x2000 - 2 * config.max_record_bytes
    addresses: list[int] = []
    while pointer <= 0x2000 - config.max_record_bytes:
        written = spu.finish(spu.start(USER), operation, total=9, issue=3, translation=0)
        assert written is not None
        addresses.append(pointer)
        pointer += len(written)
    assert len(addresses) == 2 or config.layout.packed
    assert spu.read("PMBSR_EL1") == 0x20001
    assert spu.finish(spu.start(USER), operation, total=9, issue=3, translation=0) is None
    assert spu.read("PMBPTR_EL1") == pointer
    # FreeBSD writes the new pointer and limit with E = 1 and S = 1, and clears S last.
    spu.write("PMBPTR_EL1", 0x3000)
    spu.write("PMBLIMITR_EL1", 0x4001)
    assert spu.finish(spu.start(USER), operation, total=9, issue=3, translation=0) is None
    spu.write("PMBSR_EL1", 0)
    assert spu.finish(spu.start(USER), operation, total=9, issue=3, translation=0) is not None
    assert sorted(spu.buffer.memory) == [*addresses, 0x3000]


def test_invalid_pointer_stops_profiling_when_the_buffer_is_enabled(config: SPUConfig):
    spu = ReferenceSPU(config)
    spu.write("PMBPTR_EL1", 0x2000)
    spu.write("PMSCR_EL1", 0b11)
    assert spu.read("PMBSR_EL1") == 0
    spu.write("PMBLIMITR_EL1", 0x2001)
    assert spu.read("PMBSR_EL1") == 0x20001
    assert not spu.pass_operation(USER)
    spu.write("PMBSR_EL1", 0)  # the same pointer cannot be used again
    assert spu.read("PMBSR_EL1") == 0x20001


def test_collision_sets_coll_and_does_not_stop_profiling(config: SPUConfig):
    spu = running(config)
    spu.collide()
    assert spu.read("PMBSR_EL1") == 1 << 16
    assert [number for number in range(1, 600) if spu.pass_operation(USER)] == [257, 514]


# D17.6.3.1.

PBT = [config for config in ALL.values() if config.pbt]
BRANCH = Operation(facts=Facts(branch=1, taken=1, retired=1), target=Location(0x900, 0, 1))
FIRST, SECOND = Location(0x100, 0, 1), Location(0x200, 1, 1)


def previous_target(spu: ReferenceSPU, operation: Operation = BRANCH) -> int | None:
    """Return the previous branch target in the record of `operation`."""
    written = spu.finish(spu.start(USER), operation, total=9, issue=3, translation=0)
    assert written is not None
    (record,) = decode_records(written)
    return record.previous_target and record.previous_target.address


@pytest.mark.parametrize("config", PBT, ids=[config.name for config in PBT])
def test_previous_taken_branch_is_recorded(config: SPUConfig):
    spu = running(config)
    assert previous_target(spu) is None  # no branch has been taken
    spu.take_branch(FIRST, el=0, ns=1)
    start = spu.start(USER)
    spu.take_branch(SECOND, el=1, ns=1)  # older than the sampled branch, although it retires while that is in flight
    written = spu.finish(start, BRANCH, total=9, issue=3, translation=0)
    assert written is not None
    (record,) = decode_records(written)
    assert record.previous_target == (0x200, 1, 1, 0)
    # The sampled branch retires later, and its target is the previous branch target of the next operation.
    spu.take_branch(BRANCH.target, el=0, ns=1)
    assert [previous_target(spu), previous_target(spu)] == [0x900, 0x900]
    assert previous_target(spu, Operation(facts=Facts(branch=1, conditional=1, retired=1))) == 0x900
    assert previous_target(spu, Operation(facts=Facts(retired=1))) == (0x900 if config.pbt_of_all else None)


NOT_PROFILED = [
    (config, state)
    for config in PBT
    for state in (
        {"el": 2},
        {"el": 3},
        {"aarch32": 1},
        *([{"ns": 0}, {"ns": 0, "nse": 1}] if config.el3 else []),
        *([{"nse": 1}] if config.rme else []),
    )
]


@pytest.mark.parametrize(("config", "state"), NOT_PROFILED)
def test_branch_that_is_not_profiled_clears_the_previous_target(config: SPUConfig, state: dict[str, int]):
    spu = running(config)
    spu.take_branch(FIRST, el=0, ns=1)
    assert previous_target(spu) == 0x100
    spu.take_branch(SECOND, **{"el": 0, "ns": 1, **state})
    assert previous_target(spu) is None
    spu.take_branch(FIRST, el=1, ns=1)
    assert previous_target(spu) == 0x100


@pytest.mark.parametrize(
    ("register", "value", "el", "kept"),
    [
        ("PMSCR_EL1", 0b01, 0, True),
        ("PMSCR_EL1", 0b01, 1, False),
        ("PMSCR_EL1", 0b10, 0, False),
        ("PMSCR_EL1", 0b10, 1, True),
        ("PMBSR_EL1", 1 << 17, 0, False),
        ("PMBLIMITR_EL1", 0x2000, 0, False),
        ("PMBLIMITR_EL1", 0x2000 | 0b10 << 1 | 1, 0, True),  # Discard mode
    ],
)
def test_registers_determine_whether_a_branch_is_profiled(register: str, value: int, el: int, kept: bool):
    spu = running(CONFIGS["arm_model"])
    spu.take_branch(FIRST, el=0, ns=1)
    before = spu.read(register)
    spu.write(register, value)
    spu.take_branch(SECOND, el=el, ns=1)
    spu.write(register, before)
    assert previous_target(spu) == (0x200 if kept else None)
    # Register writes alone do not change the previous branch target.
    spu.take_branch(FIRST, el=0, ns=1)
    spu.write(register, value)
    spu.write(register, before)
    assert previous_target(spu) == 0x100


def test_change_of_owner_clears_the_previous_target():
    """Only a change of the owner clears the previous branch target."""
    spu = running(CONFIGS["v1p4"])
    spu.take_branch(FIRST, el=0, ns=1)
    same = [PEState(el=3, ns=0, nse=1), PEState(mdcr_el2_e2pb=0b10, mdcr_el3_nspb=0b10), PEState(scr_el3_eel2=1)]
    assert not any(spu.update_owner(pe) for pe in same)
    assert previous_target(spu) == 0x100
    others = [
        PEState(mdcr_el2_e2pb=0),
        PEState(mdcr_el2_e2pb=0, mdcr_el3_nspbe=1),
        PEState(mdcr_el3_nspbe=1),
        PEState(mdcr_el3_nspb=0),
        PEState(mdcr_el3_nspb=0, mdcr_el2_e2pb=0, scr_el3_eel2=1),
        PEState(),
    ]
    for pe in others:
        spu.take_branch(FIRST, el=0, ns=1)
        assert spu.update_owner(pe)
        assert not spu.update_owner(pe)
        assert previous_target(spu) is None


def test_branch_in_a_host_is_profiled_with_e0hspe():
    """E0HSPE controls profiling in a host of EL2, which owns the buffer."""
    spu = running(CONFIGS["v1p4"])
    host = PEState(mdcr_el2_e2pb=0, hcr_el2_tge=1)
    spu.update_owner(host)
    spu.take_branch(FIRST, pe=host, el=0, ns=1)
    assert previous_target(spu) is None
    spu.write("PMSCR_EL2", 1)
    spu.take_branch(FIRST, pe=host, el=0, ns=1)
    assert previous_target(spu) == 0x100


def test_no_previous_target_without_pbt():
    spu = running(CONFIGS["neoverse_n1"])
    spu.take_branch(FIRST, el=0, ns=1)
    assert previous_target(spu) is None


# D17.6.1, D18.2.1.


def test_latencies_and_security_state_are_recorded():
    spu = running(CONFIGS["v1p4"])
    start = spu.start(PEState(el=1, ns=1, nse=1))
    assert (start.nse, start.collect_nv2_va) == (1, False)
    operation = Operation(facts=Facts(retired=1, asynchronous=1))
    for late, expected in (({}, 0), ({"alternate_issue": 5}, 5)):
        written = spu.finish(start, operation, total=9, issue=3, translation=0, **late)
        assert written is not None
        (record,) = decode_records(written)
        assert record.counters == {0: 9, 1: 3, 4: expected}
        assert record.pc == (0, 1, 1, 1)


# D17.5.5.

V1P2 = FEATURES["minimal_v1p2"]
DISCARD = 0b10 << 1 | 1


@pytest.mark.parametrize("pointer", [0, 0x1FC0, 0x2000, 0x1008])
def test_discard_mode_profiles_and_writes_nothing(pointer: int):
    spu = running(V1P2)
    spu.write("PMBLIMITR_EL1", DISCARD)  # LIMIT, which is zero, is ignored
    spu.write("PMBPTR_EL1", pointer)
    operation = Operation(facts=Facts(retired=1))
    assert [number for number in range(1, 1000) if spu.pass_operation(USER)] == [257, 514, 771]
    for _ in range(3):
        assert spu.finish(spu.start(USER), operation, total=9, issue=3, translation=0) is None
    assert (spu.read("PMBPTR_EL1"), spu.read("PMBSR_EL1"), spu.buffer.memory) == (pointer, 0, {})
    spu.collide()
    assert spu.read("PMBSR_EL1") == 1 << 16
    spu.write("PMBSR_EL1", 1 << 17)
    assert not any(spu.pass_operation(USER) for _ in range(600))


def test_pointer_is_checked_when_discard_mode_ends():
    spu = running(V1P2)
    spu.write("PMBLIMITR_EL1", 0x2000 | DISCARD)
    spu.write("PMBPTR_EL1", 0x2000)
    assert spu.read("PMBSR_EL1") == 0
    spu.write("PMBLIMITR_EL1", 0x2001)
    assert spu.read("PMBSR_EL1") == 0x20001


def test_no_discard_mode_before_spe_v1p2():
    spu = running(CONFIGS["minimal"])
    spu.write("PMBLIMITR_EL1", 0x2000 | DISCARD)
    assert spu.read("PMBLIMITR_EL1") == 0x2001
    operation = Operation(facts=Facts(retired=1))
    assert spu.finish(spu.start(USER), operation, total=9, issue=3, translation=0) is not None


# D17.6.4.2, D17.6.9.


def test_data_that_el2_permits_is_recorded():
    """EL2 controls the timestamp, CONTEXTIDR_EL2, and the address of a System register in memory."""
    spu = running(CONFIGS["v1p4"])
    spu.write("PMSCR_EL2", 0b10 | 1 << 3 | 1 << 5 | 0b11 << 6)  # E2SPE, CX, TS, PCT: not PA
    pe = PEState(
        el=1,
        contextidr_el1=7,
        contextidr_el2=8,
        mdcr_el2_e2pb=0,
        physical_count=1000,
        cntpoff_el2=300,
        cnthctl_el2_ecv=1,
        scr_el3_ecven=1,
    )
    start = spu.start(pe)
    assert (start.contextidr_el1, start.contextidr_el2, start.timestamp) == (7, 8, 700)
    assert (start.collect_pa, start.collect_nv2_va) == (False, True)
    facts = Facts(load=1, nv2=1, retired=1, va_valid=1, pa_valid=1)
    written = spu.finish(start, Operation(facts=facts, va=0x10, pa=0x20), total=9, issue=3, translation=1)
    assert written is not None
    (record,) = decode_records(written)
    assert (record.context_el1, record.context_el2, record.timestamp) == (7, 8, 700)
    assert (record.va, record.pa) == (0x10, None)


# D17.6.4.3, D17.6.4.5, D17.6.6 R_MYPFF.

CHOOSING = [config for config in ALL.values() if config.mops or config.gcs or config.scalable]
TWO_ACCESSES = [config for config in CHOOSING if config.mops or config.gcs]
FT, LD, ST = 1 << 1, 1 << 17, 1 << 18


def number_bits(config: SPUConfig) -> int:
    """Return the width of a random number: one bit for an access, eight bits for an element."""
    return (1 if config in TWO_ACCESSES else 0) + (8 if config.scalable else 0)


def assert_fair(bits: list[int]) -> None:
    """Check that 20,000 bits are fair, within four standard deviations.

    10,000 +- 283 bits are one, and each of the four pairs occurs 2,500 +- 173 times.
    """
    assert len(bits) == 20_000
    assert abs(sum(bits) - 10_000) <= 283
    pairs = [*zip(bits[::2], bits[1::2], strict=True)]
    assert all(abs(pairs.count((first, second)) - 2_500) <= 173 for first, second in product((0, 1), repeat=2))


@pytest.mark.parametrize("config", CHOOSING, ids=[config.name for config in CHOOSING])
def test_accesses_and_elements_are_chosen_without_bias(config: SPUConfig):
    random = Random(1)
    for pmsfcr in (0, LD, ST, FT, FT | LD | ST, FT | 1 << 16) if config in TWO_ACCESSES else (0,):
        spu = ReferenceSPU(config)
        spu.write("PMSFCR_EL1", pmsfcr)
        spu.write("IMP_PMSRNDR_EL1", random.getrandbits(64))
        chosen = [spu.choose_access() for _ in range(20_000)]
        if config in TWO_ACCESSES:
            assert_fair([destination for destination, _ in chosen])
        else:
            assert not any(destination for destination, _ in chosen)
        for bit in range(8):
            if config.scalable:
                assert_fair([element >> bit & 1 for _, element in chosen])
        assert max(element for _, element in chosen) == (255 if config.scalable else 0)


@pytest.mark.parametrize("config", CHOOSING, ids=[config.name for config in CHOOSING])
def test_each_choice_draws_a_random_number(config: SPUConfig):
    """Bit 0 of the number chooses the access, if there are two, and the next eight bits choose the element."""
    spu = ReferenceSPU(config)
    state = LFSR_ACCESS_RESET
    bits = number_bits(config)
    for number in range(400):
        pmsfcr = (0, FT | LD, FT | ST)[number % 3]
        spu.write("PMSFCR_EL1", pmsfcr)
        drawn = access_number(state, bits)
        destination = (drawn & 1, 0, 1)[number % 3] if config in TWO_ACCESSES else 0
        element = (drawn >> 1 if config in TWO_ACCESSES else drawn) if config.scalable else 0
        assert spu.choose_access() == (destination, element)
        state = draw_access(state, bits)
        assert spu.read("IMP_PMSRNDR_EL1") == state << 32 | LFSR_RESET


def test_access_can_be_chosen_with_earlier_settings():
    """The earlier settings provide the random number and the filter. The current registers receive the new state."""
    spu = ReferenceSPU(CONFIGS["v1p4"])
    spu.write("IMP_PMSRNDR_EL1", 0xE06 << 32 | 5)
    spu.write("PMSFCR_EL1", FT | ST)
    earlier = copy(spu.registers)
    spu.write("IMP_PMSRNDR_EL1", 0x1001 << 32 | 7)
    spu.write("PMSFCR_EL1", 0)
    assert spu.choose_access(earlier) == (1, 3)
    assert spu.read("IMP_PMSRNDR_EL1") == draw_access(0xE06, 9) << 32 | 7
    assert earlier.IMP_PMSRNDR_EL1 == 0xE06 << 32 | 5


def test_choice_of_access_requires_a_feature():
    spu = ReferenceSPU(CONFIGS["neoverse_n1"])
    with pytest.raises(ValueError, match=r"mops, gcs, sve or sme must be True .*, not False in neoverse_n1"):
        spu.choose_access()
