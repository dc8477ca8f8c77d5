"""Configurations: what excludes each other, and what software discovers."""

from dataclasses import replace
from typing import Any

import pytest

from formal.features import FEATURES
from spurtle.arch import PMBIDR_EL1, PMSIDR_EL1, REGISTERS
from spurtle.config import CONFIGS, SPUConfig
from spurtle.layout import MINIMAL, NEOVERSE_N1, Packet, RecordLayout

MINIMAL_CONFIG = CONFIGS["minimal"]
N1 = CONFIGS["neoverse_n1"]

V1P4 = CONFIGS["v1p4"]
N1_128 = RecordLayout(size=128, places=NEOVERSE_N1.places)

REFUSED: dict[str, tuple[SPUConfig, dict[str, Any], str]] = {
    "no lane": (MINIMAL_CONFIG, {"ops_per_cycle": 0}, "ops_per_cycle must be from 1 to 8, not 0"),
    "too many lanes": (V1P4, {"ops_per_cycle": 9}, "ops_per_cycle must be from 1 to 8, not 9"),
    "no slot": (V1P4, {"slots": 0}, "slots must be from 1 to 8, not 0"),
    "too many slots": (MINIMAL_CONFIG, {"slots": 9}, "slots must be from 1 to 8, not 9"),
    "counter_bits": (MINIMAL_CONFIG, {"counter_bits": 13}, "counter_bits must be 12 or 16, not 13"),
    "events_bytes": (MINIMAL_CONFIG, {"events_bytes": 3}, "events_bytes must be 1 or 2 or 4 or 8, not 3"),
    "data_source_bytes": (N1, {"data_source_bytes": 4}, "data_source_bytes must be 0 or 1 or 2, not 4"),
    "bus_bytes": (MINIMAL_CONFIG, {"bus_bytes": 4}, "bus_bytes must be 8 or 16, not 4"),
    "version": (MINIMAL_CONFIG, {"version": 6}, "version must be 1 or 2 or 3 or 4 or 5, not 6"),
    "an event that no version defines": (
        N1, {"events": frozenset({1, 6, 16}), "events_bytes": 4, "layout": N1_128},
        "events must be defined in version 1 without SVE and SME, not [16]",
    ),
    "events of a later version": (
        N1, {"events": frozenset({1, 6, 11, 19}), "events_bytes": 4, "layout": N1_128},
        "events must be defined in version 1 without SVE and SME, not [11, 19]",
    ),
    "events of an earlier version": (
        V1P4, {"events": frozenset({1, 6, 24, 31})},
        "events must be defined in version 5 without SVE and SME, not [24, 31]",
    ),
    "memory copy before its packets": (
        MINIMAL_CONFIG, {"mops": True, "version": 3, "fne": True}, "version must be 4 or later with mops, not 3",
    ),
    "the Guarded control stack before its packets": (
        MINIMAL_CONFIG, {"gcs": True, "version": 4, "fne": True}, "version must be 5 or later with gcs, not 4",
    ),
    "a version that brings FnE along": (
        MINIMAL_CONFIG, {"version": 3}, "fne must be True from version 3 on, not False in 3",
    ),
    "a version that brings FDS along": (
        V1P4, {"fds": False},
        "fds must be True with a data source from version 5 on, not False with data_source_bytes 2",
    ),
    "nothing to filter by": (MINIMAL_CONFIG, {"fds": True}, "data_source_bytes must be 1 or 2 with fds, not 0"),
    "one place for target and access": (
        V1P4, {"layout": N1_128},
        ("layout must have a place of its own for TARGET with gcs, as a branch can make an access too, "
        "not one for VA, TARGET"),
    ),
    "unpredictable_filter": (
        MINIMAL_CONFIG, {"unpredictable_filter": "DISCARD"},
        "unpredictable_filter must be UnpredictableFilter.NO_EFFECT or UnpredictableFilter.DISCARD, not 'DISCARD'",
    ),
    "name": (
        MINIMAL_CONFIG, {"name": "no name"},
        "name must be an identifier, because it names a Verilog module, not 'no name'",
    ),
    "no retired": (
        MINIMAL_CONFIG, {"events": frozenset({6, 7})},
        "events must include 1 (retired) and 6 (not taken), not [6, 7]",
    ),
    "no not taken": (
        MINIMAL_CONFIG, {"events": frozenset({1})},
        "events must include 1 (retired) and 6 (not taken), not [1]",
    ),
    "event too high": (
        MINIMAL_CONFIG, {"events": frozenset({1, 6, 8})},
        "events must be below 8 * events_bytes = 8, not 8",
    ),
    "data source without place": (
        MINIMAL_CONFIG, {"data_source_bytes": 1},
        "data_source_bytes must be 0 exactly when the layout has no place for DATA_SOURCE, not 1",
    ),
    "place without data source": (
        N1, {"data_source_bytes": 0},
        "data_source_bytes must be 0 exactly when the layout has no place for DATA_SOURCE, not 0",
    ),
    "no room": (
        N1, {"events_bytes": 8},
        "layout must have room for its packets: they need 68 bytes, not 64",
    ),
    "odd size": (
        MINIMAL_CONFIG, {"layout": RecordLayout(size=96, places=MINIMAL.places)},
        "layout.size must be a power of two from 64 to 2048 (PMSIDR_EL1.MaxSize), not 96",
    ),
    "huge size": (
        MINIMAL_CONFIG, {"layout": RecordLayout(size=4096, places=MINIMAL.places)},
        "layout.size must be a power of two from 64 to 2048 (PMSIDR_EL1.MaxSize), not 4096",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("config", "change", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_is_named(config: SPUConfig, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as error:
        replace(config, **change)
    assert str(error.value) == message


def test_named_configurations_go_by_their_names() -> None:
    assert list(CONFIGS) == ["minimal", "neoverse_n1", "v1p4"]
    assert all(config.name == name and config.module == f"spurtle_{name}" for name, config in CONFIGS.items())


def test_pmsidr_of_minimal() -> None:
    # Filters by event, type and latency; architecture instructions; 64-byte records; 12-bit counters; nothing newer.
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
        **vars(PMSIDR_EL1.unpack(N1.pmsidr)), "ERnd": 1, "EFT": 1, "FnE": 1, "FDS": 1, "CountSize": 3, "MaxSize": 7,
    }  # fmt: skip


def test_pmsidr_of_sizes() -> None:
    large = SPUConfig(name="large", layout=RecordLayout(size=2048, places=MINIMAL.places), counter_bits=16)
    identification = PMSIDR_EL1.unpack(large.pmsidr)
    assert (identification.MaxSize, identification.CountSize) == (11, 3)
    assert PMBIDR_EL1.unpack(large.pmbidr).Align == 11


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_pmbidr(config: SPUConfig) -> None:
    # Records are aligned to their size. From Armv8.8 on flags are updated, and what external aborts do is described.
    assert 1 << PMBIDR_EL1.unpack(config.pmbidr).Align == config.record_bytes
    assert config.pmbidr == {"v1p4": 0b1_0010_0111}.get(config.name, 0b0110)


def test_events_that_software_can_select() -> None:
    # Never E[0]; E[6] comes with FEAT_SPE_FnE.
    assert MINIMAL_CONFIG.filter_events == 0b1011_1110
    assert N1.filter_events == 0b1_0111_1011_1110
    assert V1P4.filter_events == 0b1111_1000_0001_1111_1111_1110


@pytest.mark.parametrize(("lanes", "delay", "latency"), [(1, 0, 1), (2, 1, 3), (4, 1, 3), (5, 2, 4), (8, 2, 4)])
def test_what_many_lanes_take(lanes: int, delay: int, latency: int) -> None:
    config = replace(V1P4, ops_per_cycle=lanes)
    assert (config.count_delay, config.answer_latency) == (delay, latency)


def test_two_selections_in_one_cycle_take_ernd_and_two_lanes() -> None:
    two = {
        (lanes, ernd)
        for lanes in range(1, 9)
        for ernd in (False, True)
        if replace(V1P4, ops_per_cycle=lanes, ernd=ernd).selections_per_cycle == 2
    }
    assert two == {(lanes, True) for lanes in range(2, 9)}


WRITABLE = {
    "PMSCR_EL1": 0x7B,
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
    "IMP_PMSRNDR_EL1": 0xFFFF_FFFF,
}
"""Of `minimal`."""

_FNE = {"PMSFCR_EL1": 0x7_000F, "PMSEVFR_EL1": 0xFE, "PMSNEVFR_EL1": 0xFE}
_DISCARD = {"PMBLIMITR_EL1": 0xFFFF_FFFF_FFFF_F007}
_TWO_ACCESSES = {"IMP_PMSRNDR_EL1": 0xFFFF_FFFF_FFFF_FFFF}
WRITABLE_WITH = {
    "neoverse_n1": {"PMSEVFR_EL1": 0x17BE},
    "v1p4": {
        "PMSNEVFR_EL1": 0xF8_1FFE,
        "PMSICR_EL1": 0xFF00_0000_FFFF_FFFF,
        "PMSFCR_EL1": 0x1F_0000_001F_001F,
        "PMSEVFR_EL1": 0xF8_1FFE,
        "PMSLATFR_EL1": 0xFFFF,
        "PMSDSFR_EL1": 0xFFFF_FFFF_FFFF_FFFF,
        **_DISCARD,
        **_TWO_ACCESSES,
    },
    "minimal_ernd": {"PMSICR_EL1": 0xFF00_0000_FFFF_FFFF},
    "minimal_counters16": {"PMSLATFR_EL1": 0xFFFF},
    "minimal_eft": {"PMSFCR_EL1": 0x1F_0000_001F_0007},
    "minimal_fne": _FNE,
    "minimal_fds": {"PMSFCR_EL1": 0x7_0017, "PMSDSFR_EL1": 0xFFFF_FFFF_FFFF_FFFF},
    "minimal_v1p2": {**_FNE, **_DISCARD},
    "minimal_mops": {**_FNE, **_DISCARD, **_TWO_ACCESSES},
    "minimal_gcs": {**_FNE, **_DISCARD, **_TWO_ACCESSES},
    "minimal_unpredictable": _FNE,
}
"""Of others, where it differs."""

ALL = {**CONFIGS, **FEATURES}


@pytest.mark.parametrize("config", ALL.values(), ids=ALL)
def test_bits_that_software_can_write(config: SPUConfig) -> None:
    expected = WRITABLE | WRITABLE_WITH.get(config.name, {})
    assert {register.name: config.writable(register) for register in REGISTERS} == expected


@pytest.mark.parametrize("config", ALL.values(), ids=ALL)
def test_registers_that_there_are(config: SPUConfig) -> None:
    absent = {register.name for register in REGISTERS} - {register.name for register in config.registers}
    assert absent == {
        name for name in ("PMSNEVFR_EL1", "PMSDSFR_EL1") if not WRITABLE_WITH.get(config.name, {}).get(name)
    }


def test_a_configuration_is_a_value() -> None:
    assert SPUConfig(name="minimal", layout=MINIMAL) == MINIMAL_CONFIG
    assert len({MINIMAL_CONFIG, N1, replace(N1, bus_bytes=16)}) == 3
    assert N1.layout is NEOVERSE_N1
    with pytest.raises(TypeError):
        CONFIGS["other"] = N1  # type: ignore[index]
    with pytest.raises(TypeError):
        N1.packet_bytes[Packet.PC] = 1  # type: ignore[index]
