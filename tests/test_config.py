"""Configurations: what excludes each other, and what software discovers."""

from dataclasses import replace
from typing import Any

import pytest

from spurtle.arch import PMBIDR_EL1, PMSIDR_EL1, REGISTERS
from spurtle.config import CONFIGS, SPUConfig
from spurtle.layout import MINIMAL, NEOVERSE_N1, Packet, RecordLayout

MINIMAL_CONFIG = CONFIGS["minimal"]
N1 = CONFIGS["neoverse_n1"]

WIDE = CONFIGS["wide"]

REFUSED: dict[str, tuple[SPUConfig, dict[str, Any], str]] = {
    "no lane": (MINIMAL_CONFIG, {"ops_per_cycle": 0}, "ops_per_cycle must be from 1 to 8, not 0"),
    "too many lanes": (WIDE, {"ops_per_cycle": 9}, "ops_per_cycle must be from 1 to 8, not 9"),
    "no slot": (WIDE, {"slots": 0}, "slots must be from 1 to 8, not 0"),
    "too many slots": (MINIMAL_CONFIG, {"slots": 9}, "slots must be from 1 to 8, not 9"),
    "counter_bits": (MINIMAL_CONFIG, {"counter_bits": 13}, "counter_bits must be 12 or 16, not 13"),
    "events_bytes": (MINIMAL_CONFIG, {"events_bytes": 3}, "events_bytes must be 1 or 2 or 4 or 8, not 3"),
    "data_source_bytes": (N1, {"data_source_bytes": 4}, "data_source_bytes must be 0 or 1 or 2, not 4"),
    "bus_bytes": (MINIMAL_CONFIG, {"bus_bytes": 4}, "bus_bytes must be 8 or 16, not 4"),
    "version": (MINIMAL_CONFIG, {"version": 5}, "version must be 1, not 5"),
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
    assert list(CONFIGS) == ["minimal", "neoverse_n1", "wide"]
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


def test_pmsidr_of_wide() -> None:
    assert vars(PMSIDR_EL1.unpack(WIDE.pmsidr)) == {
        **vars(PMSIDR_EL1.unpack(N1.pmsidr)), "ERnd": 1, "CountSize": 3,
    }  # fmt: skip


def test_pmsidr_of_sizes() -> None:
    large = SPUConfig(name="large", layout=RecordLayout(size=2048, places=MINIMAL.places), counter_bits=16)
    identification = PMSIDR_EL1.unpack(large.pmsidr)
    assert (identification.MaxSize, identification.CountSize) == (11, 3)
    assert PMBIDR_EL1.unpack(large.pmbidr).Align == 11


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_pmbidr(config: SPUConfig) -> None:
    # 64-byte alignment, no hardware update of flags, external aborts not described.
    assert config.pmbidr == 0b0110
    assert 1 << PMBIDR_EL1.unpack(config.pmbidr).Align == config.record_bytes == 64


def test_events_that_software_can_select() -> None:
    # Never E[0]; E[6] comes with FEAT_SPE_FnE.
    assert MINIMAL_CONFIG.filter_events == 0b1011_1110
    assert N1.filter_events == 0b1_0111_1011_1110


@pytest.mark.parametrize(("lanes", "delay", "latency"), [(1, 0, 1), (2, 1, 3), (4, 1, 3), (5, 2, 4), (8, 2, 4)])
def test_what_many_lanes_take(lanes: int, delay: int, latency: int) -> None:
    config = replace(WIDE, ops_per_cycle=lanes)
    assert (config.count_delay, config.answer_latency) == (delay, latency)


def test_two_selections_in_one_cycle_take_ernd_and_two_lanes() -> None:
    two = {
        (lanes, ernd)
        for lanes in range(1, 9)
        for ernd in (False, True)
        if replace(WIDE, ops_per_cycle=lanes, ernd=ernd).selections_per_cycle == 2
    }
    assert two == {(lanes, True) for lanes in range(2, 9)}


WRITABLE = {
    "PMSCR_EL1": 0x7B,
    "PMSIRR_EL1": 0xFFFF_FF01,
    "PMSFCR_EL1": 0x7_0007,
    "PMSIDR_EL1": 0,
    "PMBLIMITR_EL1": 0xFFFF_FFFF_FFFF_F001,
    "PMBPTR_EL1": 0xFFFF_FFFF_FFFF_FFFF,
    "PMBSR_EL1": 0xFC0F_FFFF,
    "PMBIDR_EL1": 0,
    "IMP_PMSRNDR_EL1": 0xFFFF_FFFF,
}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_bits_that_software_can_write(config: SPUConfig) -> None:
    expected = {
        **WRITABLE,
        "PMSEVFR_EL1": config.filter_events,
        "PMSLATFR_EL1": {12: 0xFFF, 16: 0xFFFF}[config.counter_bits],
        "PMSICR_EL1": 0xFF00_0000_FFFF_FFFF if config.ernd else 0xFFFF_FFFF,
    }
    assert {register.name: config.writable(register) for register in REGISTERS} == expected


def test_a_configuration_is_a_value() -> None:
    assert SPUConfig(name="minimal", layout=MINIMAL) == MINIMAL_CONFIG
    assert len({MINIMAL_CONFIG, N1, replace(N1, bus_bytes=16)}) == 3
    assert N1.layout is NEOVERSE_N1
    with pytest.raises(TypeError):
        CONFIGS["other"] = N1  # type: ignore[index]
    with pytest.raises(TypeError):
        N1.packet_bytes[Packet.PC] = 1  # type: ignore[index]
