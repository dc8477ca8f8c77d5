"""Configurations: choices that exclude each other, and what software discovers."""

import pickle
import re
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from configurations import FEATURES
from spurtle.arch import PMBIDR_EL1, PMSIDR_EL1, REGISTERS, AltClk
from spurtle.config import CONFIGS, SPUConfig
from spurtle.config.record_layouts import MINIMAL, NEOVERSE_N1, Packet, RecordField, fixed

MINIMAL_CONFIG = CONFIGS["minimal"]
N1 = CONFIGS["neoverse_n1"]

V1P4 = CONFIGS["v1p4"]
MODEL = CONFIGS["arm_model"]
N1_128 = replace(NEOVERSE_N1, align=128, max_size=128)
# VA and TARGET share a field.
SHARED_TARGET = replace(
    V1P4.layout.without(Packet.VA, Packet.TARGET),
    fields=(RecordField(((Packet.VA,), (Packet.TARGET,))), *V1P4.layout.without(Packet.VA, Packet.TARGET).fields),
)
# PC and TOTAL, which every record has, share a field.
SHARED = [
    (Packet.PC, Packet.TOTAL),
    *(field.packets for field in MINIMAL.fields if not {*field.packets} & {Packet.PC, Packet.TOTAL}),
]
INDICES = (0, 6, 7, *range(16, 32))

REFUSED: dict[str, tuple[SPUConfig, dict[str, Any], str]] = {
    "too few lanes": (MINIMAL_CONFIG, {"ops_per_cycle": 0}, "ops_per_cycle must be from 1 to 8, not 0"),
    "too many lanes": (V1P4, {"ops_per_cycle": 9}, "ops_per_cycle must be from 1 to 8, not 9"),
    "too few slots": (V1P4, {"slots": 0}, "slots must be from 1 to 8, not 0"),
    "too many slots": (MINIMAL_CONFIG, {"slots": 9}, "slots must be from 1 to 8, not 9"),
    "counter_bits": (MINIMAL_CONFIG, {"counter_bits": 13}, "counter_bits must be 12 or 16, not 13"),
    "events_bytes": (MINIMAL_CONFIG, {"events_bytes": 3}, "events_bytes must be 1 or 2 or 4 or 8, not 3"),
    "data_source_bytes": (N1, {"data_source_bytes": 4}, "data_source_bytes must be 0 or 1 or 2, not 4"),
    "bus_bytes": (MINIMAL_CONFIG, {"bus_bytes": 2}, "bus_bytes must be 4 or 8 or 16 or 32 or 64, not 2"),
    "version": (
        MINIMAL_CONFIG, {"version": 6},
        "version must be SPE or SPE_V1P1 or SPE_V1P2 or SPE_V1P3 or SPE_V1P4, not 6",
    ),
    "an event that no version defines": (
        N1, {"events": frozenset({*range(8), 16}), "events_bytes": 4, "layout": N1_128},
        "events must be defined in version SPE with sve False, sme False, spe_sme False, not [16]",
    ),
    "events of a later version": (
        N1, {"events": frozenset({*range(8), 11, 19}), "events_bytes": 4, "layout": N1_128},
        "events must be defined in version SPE with sve False, sme False, spe_sme False, not [11, 19]",
    ),
    "events of an earlier version": (
        V1P4, {"events": V1P4.events | {31}},
        "events must be defined in version SPE_V1P4 with sve True, sme True, spe_sme True, not [31]",
    ),
    "memory copy in an earlier version": (
        MINIMAL_CONFIG, {"mops": True, "version": 3, "fne": True},
        "version must be SPE_V1P3 or later with mops, not SPE_V1P2",
    ),
    "Guarded control stack in an earlier version": (
        MINIMAL_CONFIG, {"gcs": True, "version": 4, "fne": True},
        "version must be SPE_V1P4 or later with gcs, not SPE_V1P3",
    ),
    "version that includes FnE": (
        MINIMAL_CONFIG, {"version": 3}, "fne must be True from version SPE_V1P2 on, not False in SPE_V1P2",
    ),
    "version that includes FDS": (
        V1P4, {"fds": False},
        "fds must be True with a data source from version SPE_V1P4 on, not False with data_source_bytes 2",
    ),
    "filter by data source without data sources": (
        MINIMAL_CONFIG, {"fds": True, "version": 4, "fne": True}, "data_source_bytes must be 1 or 2 with fds, not 0",
    ),
    "filter by data source in an earlier version": (
        N1, {"fds": True, "version": 3, "fne": True}, "version must be SPE_V1P3 or later with fds, not SPE_V1P2",
    ),
    "filter by data source without its trap": (
        N1, {"fds": True, "version": 4, "fne": True, "fgt": True}, "fgt2 must be True with fds and el2, not False",
    ),
    "more types in an earlier version": (
        MINIMAL_CONFIG, {"eft": True, "fpf": True, "version": 4, "fne": True},
        "version must be SPE_V1P4 or later with eft, not SPE_V1P3",
    ),
    "floating point in an earlier version": (
        MINIMAL_CONFIG, {"fpf": True, "version": 4, "fne": True},
        "version must be SPE_V1P4 or later with fpf, not SPE_V1P3",
    ),
    "EFT without FPF": (V1P4, {"fpf": False}, "fpf must be True with eft, not False"),
    "FPF without EFT": (V1P4, {"eft": False}, "eft must be True with fpf, not False"),
    "Guarded control stack without CRR": (V1P4, {"crr": False}, "crr must be True with gcs, not False"),
    "Realm state in an earlier version": (
        N1, {"rme": True, "sel2": True, "version": 2}, "version must be SPE_V1P2 or later with rme, not SPE_V1P1",
    ),
    "one field for target and address of an access": (
        V1P4, {"layout": fixed(128, *(field.packets for field in SHARED_TARGET.fields))},
        "layout must have separate fields for TARGET, VA, because one operation can have both in v1p4",
    ),
    "unpredictable_filter": (
        MINIMAL_CONFIG, {"unpredictable_filter": "DISCARD"},
        "unpredictable_filter must be UnpredictableFilter.NO_EFFECT or UnpredictableFilter.DISCARD, not 'DISCARD'",
    ),
    "name": (
        MINIMAL_CONFIG, {"name": "no name"},
        "name must be an ASCII identifier, because it names a Verilog module, not 'no name'",
    ),
    "missing mandatory events": (
        MINIMAL_CONFIG, {"events": frozenset({1, 6})},
        "events must include [0, 2, 3, 4, 5, 7] (not optional), not just [1, 6]",
    ),
    "missing events of predicates": (
        CONFIGS["arm_model"], {"events": frozenset(range(12))},
        "events must include [17, 18] (not optional), not just [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]",
    ),
    "missing event of Streaming SVE mode": (
        CONFIGS["v1p4"], {"events": frozenset({*range(8), 17, 18, 25})},
        "events must include [24] (not optional), not just [0, 1, 2, 3, 4, 5, 6, 7, 17, 18, 25]",
    ),
    "no field for CONTEXTIDR_EL1": (
        MINIMAL_CONFIG, {"layout": MINIMAL.without(Packet.CONTEXT_EL1)},
        "layout must have a field for CONTEXT_EL1",
    ),
    "event above the payload": (
        MINIMAL_CONFIG, {"events": frozenset(range(9))},
        "events must be below 8 * events_bytes = 8, not 8",
    ),
    "data source without a field": (
        MINIMAL_CONFIG, {"data_source_bytes": 1},
        "data_source_bytes must be 0 where the layout has no field for DATA_SOURCE, not 1",
    ),
    "field without a data source": (
        N1, {"data_source_bytes": 0},
        "data_source_bytes must be set where the layout has a field for DATA_SOURCE, not 0",
    ),
    "previous target without a field": (
        N1, {"pbt": True}, "pbt must be 0 where the layout has no field for PREVIOUS_TARGET, not True",
    ),
    "field without a previous target": (
        V1P4, {"pbt": False}, "pbt must be set where the layout has a field for PREVIOUS_TARGET, not False",
    ),
    "alternate clock without a field": (
        N1, {"altclk": AltClk.IMPLEMENTATION_DEFINED},
        "altclk must be 0 where the layout has no field for ALTERNATE_ISSUE, not <AltClk.IMPLEMENTATION_DEFINED: 15>",
    ),
    "unknown alternate clock": (
        V1P4, {"altclk": 2}, "altclk must be NONE or SMCU or IMPLEMENTATION_DEFINED, not 2",
    ),
    "clock of the SMCU without FEAT_SPE_SME": (
        replace(V1P4, spe_sme=False, altclk=AltClk.IMPLEMENTATION_DEFINED, events=frozenset({*range(8), 17, 18})),
        {"altclk": AltClk.SMCU}, "altclk must not be AltClk.SMCU without spe_sme",
    ),
    "architected INDEX of a counter": (
        N1, {"imp_counter": 8}, f"imp_counter must be {' or '.join(map(str, INDICES))}, not 8",
    ),
    "architected INDEX of an address": (
        N1, {"imp_address": 4}, f"imp_address must be {' or '.join(map(str, INDICES))}, not 4",
    ),
    "IMPLEMENTATION DEFINED counter without a field": (
        N1, {"imp_counter": 6}, "imp_counter must be 0 where the layout has no field for IMP_COUNTER, not 6",
    ),
    "FEAT_SPE_SME without FEAT_SME": (
        V1P4, {"sme": False}, "sme must be True with spe_sme, not False",
    ),
    "Secure EL2 without EL2": (
        MINIMAL_CONFIG, {"sel2": True, "el3": True}, "el2 must be True with sel2, not False",
    ),
    "Secure EL2 without Secure state": (N1, {"el3": False, "sel2": True}, "el3 must be True with sel2, not False"),
    "physical offset without EL2": (
        MINIMAL_CONFIG, {"ecv": True, "ecv_poff": True}, "el2 must be True with ecv_poff, not False",
    ),
    "physical offset without offset physical time": (
        N1, {"ecv_poff": True}, "ecv must be True with ecv_poff, not False",
    ),
    "System registers in memory without EL2": (MINIMAL_CONFIG, {"nv2": True}, "el2 must be True with nv2, not False"),
    "Realm state without EL2": (
        MINIMAL_CONFIG, {"rme": True, "version": 3, "fne": True}, "el2 must be True with rme, not False",
    ),
    "Realm state without EL3": (
        replace(N1, el3=False), {"rme": True, "version": 3, "fne": True}, "el3 must be True with rme, not False",
    ),
    "Realm state without Secure EL2": (
        N1, {"rme": True, "version": 3, "fne": True}, "sel2 must be True with rme, not False",
    ),
    "no field for CONTEXTIDR_EL2": (
        MINIMAL_CONFIG, {"el2": True},
        "layout must have a field for CONTEXT_EL2 with el2, in which it may be collected",
    ),
    "previous targets of all operations without those of branches": (
        MINIMAL_CONFIG, {"pbt_of_all": True}, "pbt must be True with pbt_of_all, not False",
    ),
    "vectors in an earlier version": (
        MINIMAL_CONFIG, {"sve": True}, "version must be SPE_V1P1 or later with sve, not SPE",
    ),
    "SME in an earlier version": (
        MINIMAL_CONFIG, {"sme": True}, "version must be SPE_V1P1 or later with sme, not SPE",
    ),
    "FEAT_SPE_SME in an earlier version": (
        MODEL, {"sme": True, "spe_sme": True}, "version must be SPE_V1P4 or later with spe_sme, not SPE_V1P2",
    ),
    "no field for packets": (
        MINIMAL_CONFIG, {"layout": MINIMAL.without(Packet.PC, Packet.TOTAL)}, "layout must have a field for PC, TOTAL",
    ),
    "two fields for a packet": (
        MINIMAL_CONFIG, {"layout": replace(MINIMAL, fields=(*MINIMAL.fields, MINIMAL.fields[0]))},
        "layout must have one field for each packet, not more for PC",
    ),
    "packets that do not exclude each other": (
        MINIMAL_CONFIG, {"layout": fixed(64, *SHARED)},
        "layout must have separate fields for PC, TOTAL, because one operation can have both in minimal",
    ),
    "too many bytes": (
        N1, {"events_bytes": 8},
        "layout.max_size must be at least 128 in neoverse_n1, not 64: TIMESTAMP would not fit",
    ),
    "too many bytes of several packets": (
        V1P4, {"layout": replace(V1P4.layout, align=64, max_size=64)},
        ("layout.max_size must be at least 128 in v1p4, not 64: "
        "ALTERNATE_ISSUE, DATA_SOURCE, END, PREVIOUS_TARGET, TIMESTAMP would not fit"),
    ),
    "size that is not a power of two": (
        MINIMAL_CONFIG, {"layout": replace(MINIMAL, align=96, max_size=96)},
        "layout.max_size must be 64 or 128 or 256 or 512 or 1024 or 2048, not 96",
    ),
    "size above the maximum": (
        MINIMAL_CONFIG, {"layout": replace(MINIMAL, align=4096, max_size=4096)},
        "layout.max_size must be 64 or 128 or 256 or 512 or 1024 or 2048, not 4096",
    ),
    "alignment that is not a power of two": (
        MODEL, {"layout": replace(MODEL.layout, align=3)},
        "layout.align must be 1 or 2 or 4 or 8 or 16 or 32 or 64 or 128 or 256 or 512 or 1024 or 2048, not 3",
    ),
    "small alignment of records of one size": (
        N1, {"layout": replace(NEOVERSE_N1, align=32)},
        "layout.align must be layout.max_size, 64, where no field is elastic, not 32",
    ),
    "large alignment of packed records": (
        MODEL, {"layout": replace(MODEL.layout, align=16), "bus_bytes": 16},
        "layout.align must be 1, 2, 4 or 8 where a field is elastic, not 16",
    ),
    "bus narrower than the alignment": (
        MODEL, {"bus_bytes": 4}, "bus_bytes must be at least layout.align, 8, with a packed layout, not 4",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("config", "change", "message"), REFUSED.values(), ids=REFUSED)
def test_choices_that_exclude_each_other_are_named(config: SPUConfig, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as error:
        replace(config, **change)
    assert str(error.value) == message


def test_named_configurations_go_by_their_names() -> None:
    assert list(CONFIGS) == ["minimal", "neoverse_n1", "kunpeng_920", "hisilicon_mobile", "arm_model", "v1p4"]
    assert all(config.name == name and config.module == f"spurtle_{name}" for name, config in CONFIGS.items())


def test_pmsidr_of_minimal() -> None:
    # Filters by event, type and latency; architecture instructions; 64-byte records; 12-bit counters; no newer feature.
    assert vars(PMSIDR_EL1.unpack(MINIMAL_CONFIG.pmsidr)) == {
        **dict.fromkeys(PMSIDR_EL1.fields, 0), "FE": 1, "FT": 1, "FL": 1, "ArchInst": 1, "MaxSize": 6, "CountSize": 2,
    }  # fmt: skip


def test_pmsidr_of_neoverse_n1() -> None:
    # Linux prints `features` of such a core as FE, FT, FL and LDS: it samples micro-ops.
    assert vars(PMSIDR_EL1.unpack(N1.pmsidr)) == {
        **dict.fromkeys(PMSIDR_EL1.fields, 0), "FE": 1, "FT": 1, "FL": 1, "LDS": 1, "MaxSize": 6, "CountSize": 2,
    }  # fmt: skip


def test_pmsidr_of_v1p4() -> None:
    assert vars(PMSIDR_EL1.unpack(V1P4.pmsidr)) == {
        **vars(PMSIDR_EL1.unpack(N1.pmsidr)), "ERnd": 1, "EFT": 1, "FnE": 1, "FDS": 1, "PBT": 1, "CRR": 1,
        "FPF": 1, "ALTCLK": 1, "SME": 1, "CountSize": 3, "MaxSize": 7,
    }  # fmt: skip


def test_pmsidr_of_sizes() -> None:
    large = SPUConfig(name="large", layout=replace(MINIMAL, align=2048, max_size=2048), counter_bits=16)
    identification = PMSIDR_EL1.unpack(large.pmsidr)
    assert (identification.MaxSize, identification.CountSize) == (11, 3)
    assert PMBIDR_EL1.unpack(large.pmbidr).Align == 11


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_pmbidr(config: SPUConfig) -> None:
    # Records of one size are aligned to it. From Armv8.8 on F is one, and EA describes External aborts.
    align = {"kunpeng_920": 2, "hisilicon_mobile": 3, "arm_model": 3, "v1p4": 7}.get(config.name, 6)
    assert config.pmbidr == align | (0b1_0010_0000 if config.name == "v1p4" else 0)


def test_filter_events() -> None:
    # E[0] is never among them, E[6] only with FEAT_SPE_FnE.
    assert MINIMAL_CONFIG.filter_events == 0b1011_1110
    assert N1.filter_events == 0b1_0111_1011_1110
    assert V1P4.filter_events == 0x3FE_1FFE


@pytest.mark.parametrize(("lanes", "delay", "latency"), [(1, 0, 1), (2, 1, 3), (4, 1, 3), (5, 2, 4), (8, 2, 4)])
def test_latencies_of_lanes(lanes: int, delay: int, latency: int) -> None:
    config = replace(V1P4, ops_per_cycle=lanes)
    assert (config.count_delay, config.answer_latency) == (delay, latency)


def test_two_selections_in_a_cycle_need_ernd_and_two_lanes() -> None:
    two = {
        (lanes, ernd)
        for lanes in range(1, 9)
        for ernd in (False, True)
        if replace(V1P4, ops_per_cycle=lanes, ernd=ernd).selections_per_cycle == 2
    }
    assert two == {(lanes, True) for lanes in range(2, 9)}


WRITABLE = {
    "PMSCR_EL1": 0x3B,
    "PMSNEVFR_EL1": 0,
    "PMSICR_EL1": 0xFFFF_FFFF,
    "PMSIRR_EL1": 0xFFFF_FF01,
    "PMSFCR_EL1": 0x7_0007,  # the layout of Armv8.3
    "PMSEVFR_EL1": 0xBE,
    "PMSLATFR_EL1": 0xFFF,
    "PMSIDR_EL1": 0,
    "PMBLIMITR_EL1": 0xFFFF_FFFF_FFFF_F001,
    "PMBPTR_EL1": 0xFFFF_FFFF_FFFF_FFFF,
    "PMBSR_EL1": 0xFC0F_FFFF,
    "PMSDSFR_EL1": 0,
    "PMBIDR_EL1": 0,
    "PMSCR_EL2": 0,
    "IMP_PMSRNDR_EL1": 0xFFFF_FFFF,
}
"""Writable bits of `minimal`."""

_FNE = {"PMSFCR_EL1": 0x7_000F, "PMSEVFR_EL1": 0xFE, "PMSNEVFR_EL1": 0xFE}
_DISCARD = {"PMBLIMITR_EL1": 0xFFFF_FFFF_FFFF_F027}
_ACCESS = {"IMP_PMSRNDR_EL1": 0xFFFF_FFFF_FFFF_FFFF}
_EL2 = {"PMSCR_EL1": 0x7B, "PMSCR_EL2": 0x7B}
_EL2_ECV = {"PMSCR_EL1": 0xFB, "PMSCR_EL2": 0xFB}
WRITABLE_WITH = {
    "neoverse_n1": {**_EL2, "PMSEVFR_EL1": 0x17BE},
    "kunpeng_920": {**_EL2, "PMSEVFR_EL1": 0x7BE},
    "hisilicon_mobile": {**_EL2, "PMSEVFR_EL1": 0x7BE},
    "arm_model": {
        "PMSFCR_EL1": 0x7_000F,
        "PMSEVFR_EL1": 0x6_0FFE,
        "PMSNEVFR_EL1": 0x6_0FFE,
        "PMSLATFR_EL1": 0xFFFF,
        **_DISCARD,
        **_ACCESS,
        **_EL2_ECV,
    },
    "v1p4": {
        "PMSNEVFR_EL1": 0x3FE_1FFE,
        "PMSICR_EL1": 0xFF00_0000_FFFF_FFFF,
        "PMSFCR_EL1": 0x1F_0000_001F_001F,
        "PMSEVFR_EL1": 0x3FE_1FFE,
        "PMSLATFR_EL1": 0xFFFF,
        "PMSDSFR_EL1": 0xFFFF_FFFF_FFFF_FFFF,
        "PMBSR_EL1": 0x1E0_FC0F_FFFF,
        **_DISCARD,
        **_ACCESS,
        **_EL2_ECV,
    },
    "minimal_ernd": {"PMSICR_EL1": 0xFF00_0000_FFFF_FFFF},
    "minimal_counters16": {"PMSLATFR_EL1": 0xFFFF},
    "minimal_eft": {**_FNE, **_DISCARD, "PMSFCR_EL1": 0x1F_0000_001F_000F},
    "minimal_fne": _FNE,
    "minimal_fds": {**_FNE, **_DISCARD, "PMSFCR_EL1": 0x7_001F, "PMSDSFR_EL1": 0xFFFF_FFFF_FFFF_FFFF},
    "minimal_v1p2": {**_FNE, **_DISCARD},
    "minimal_mops": {**_FNE, **_DISCARD, **_ACCESS},
    "minimal_gcs": {**_FNE, **_DISCARD, **_ACCESS},
    "minimal_unpredictable": _FNE,
    "minimal_tags": {**_FNE, **_DISCARD},
    "minimal_el2": _EL2,
    "minimal_sel2": _EL2,
    "minimal_ecv_poff": _EL2_ECV,
    "minimal_nv2": _EL2,
    "minimal_rme": {**_FNE, **_DISCARD, **_EL2},
    "minimal_sve": {**_ACCESS, "PMSEVFR_EL1": 0x6_00BE},
    "minimal_sve_v1p2": {**_FNE, **_DISCARD, **_ACCESS, "PMSEVFR_EL1": 0x6_00FE, "PMSNEVFR_EL1": 0x6_00FE},
    "minimal_sme": {**_ACCESS, "PMSEVFR_EL1": 0x6_00BE},
    "minimal_sme_fpf": {
        **_DISCARD,
        **_ACCESS,
        "PMSFCR_EL1": 0x1F_0000_001F_000F,
        "PMSEVFR_EL1": 0x6_00FE,
        "PMSNEVFR_EL1": 0x6_00FE,
    },
    "minimal_spe_sme": {**_FNE, **_DISCARD, **_ACCESS, "PMSEVFR_EL1": 0x306_00FE, "PMSNEVFR_EL1": 0x306_00FE},
}
"""Writable bits of other configurations that differ from `minimal`."""

ALL = {**CONFIGS, **FEATURES}


@pytest.mark.parametrize("config", ALL.values(), ids=ALL)
def test_writable_bits(config: SPUConfig) -> None:
    expected = WRITABLE | WRITABLE_WITH.get(config.name, {})
    assert {register.name: config.writable(register) for register in REGISTERS} == expected


@pytest.mark.parametrize("config", ALL.values(), ids=ALL)
def test_implemented_registers(config: SPUConfig) -> None:
    absent = {register.name for register in REGISTERS} - {register.name for register in config.registers}
    assert absent == {
        name
        for name in ("PMSNEVFR_EL1", "PMSDSFR_EL1", "PMSCR_EL2")
        if not WRITABLE_WITH.get(config.name, {}).get(name) and not (name == "PMSCR_EL2" and config.el3)
    }


ACCESS_BITS = {"v1p4": 9, "arm_model": 8, "minimal_mops": 1, "minimal_gcs": 1}


@pytest.mark.parametrize("config", ALL.values(), ids=ALL)
def test_random_bits_for_the_sampled_access(config: SPUConfig) -> None:
    """One bit for one of two accesses, eight bits for an element of a vector (D17.6.6 R_MYPFF)."""
    vectors = ("minimal_sve", "minimal_sme", "minimal_spe_sme")
    expected = 8 if config.name.startswith(vectors) else ACCESS_BITS.get(config.name, 0)
    assert config.access_bits == expected


def test_a_configuration_is_a_value() -> None:
    assert SPUConfig(name="minimal", layout=MINIMAL) == MINIMAL_CONFIG
    assert len({MINIMAL_CONFIG, N1, replace(N1, bus_bytes=16)}) == 3
    assert N1.layout is NEOVERSE_N1
    with pytest.raises(TypeError):
        CONFIGS["other"] = N1  # type: ignore[index]
    with pytest.raises(TypeError):
        N1.packet_bytes[Packet.PC] = 1  # type: ignore[index]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layout": None}, "layout must be of type RecordLayout, not None"),
        ({"events": [1, 6]}, "events must be of type frozenset, not [1, 6]"),
        ({"events": frozenset({1, 6, "7"})}, "an event must be of type int, not '7'"),
        ({"ops_per_cycle": "2"}, "ops_per_cycle must be of type int, not '2'"),
        ({"slots": 1.0}, "slots must be of type int, not 1.0"),
        ({"slots": True}, "slots must be of type int, not True"),
        ({"el2": 1}, "el2 must be of type bool, not 1"),
        ({"name": None}, "name must be of type str, not None"),
    ],
)
def test_a_choice_of_a_wrong_type(changes: dict[str, Any], message: str):
    with pytest.raises(TypeError) as refused:
        replace(MINIMAL_CONFIG, **changes)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": "v1p2"}, "version must be SPE or SPE_V1P1 or SPE_V1P2 or SPE_V1P3 or SPE_V1P4, not 'v1p2'"),
        ({"version": 4.0, "fds": True}, "version must be SPE or SPE_V1P1 or SPE_V1P2 or SPE_V1P3 or SPE_V1P4, not 4.0"),
        ({"version": True}, "version must be SPE or SPE_V1P1 or SPE_V1P2 or SPE_V1P3 or SPE_V1P4, not True"),
        ({"altclk": []}, "altclk must be "),
        ({"altclk": False}, "altclk must be NONE or SMCU or IMPLEMENTATION_DEFINED, not False"),
        ({"name": "n\xe4me"}, "name must be an ASCII identifier, because it names a Verilog module, not 'n\xe4me'"),
        ({"events": frozenset(range(-1, 8))}, "events must be below 8 * events_bytes = 8, not -1"),
    ],
)
def test_a_choice_with_a_wrong_value(changes: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        replace(MINIMAL_CONFIG, **changes)


@pytest.mark.parametrize("name", CONFIGS)
def test_a_configuration_can_be_pickled_and_copied(name: str) -> None:
    for other in (pickle.loads(pickle.dumps(CONFIGS[name])), deepcopy(CONFIGS[name])):
        assert other == CONFIGS[name]
        assert other.packet_bytes == CONFIGS[name].packet_bytes
