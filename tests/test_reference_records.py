"""D17.6 and D18.2: what a record holds, and what it must not hold."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import facts as any_facts
from samples import samples

from formal.features import FEATURES
from spurtle.config import CONFIGS, SPUConfig
from spurtle_sim.decode import InstructionAddress, PhysicalAddress, Record
from spurtle_sim.decode import records as decode
from spurtle_sim.reference import records
from spurtle_sim.reference.records import Facts, Location, Operation, Sample, Start

N1, V1P4 = CONFIGS["neoverse_n1"], CONFIGS["v1p4"]
MOPS, GCS = FEATURES["minimal_mops"], FEATURES["minimal_gcs"]
LOAD = Facts(load=1, retired=1, va_valid=1, pa_valid=1, data_source_valid=1)
BRANCH = Facts(branch=1, taken=1, retired=1)


def sample(facts: Facts, *, collect_pa: bool = True, timestamp: int | None = 7, **operation: Any) -> Sample:
    return Sample(
        start=Start(el=1, ns=1, contextidr_el1=5, timestamp=timestamp, collect_pa=collect_pa),
        operation=Operation(
            **{
                "facts": facts,
                "pc": 0xFF_8000_1234_5678,
                "target": Location(0xFF_8000_1234_5000, 1, 1),
                "va": 0xAB00_0000_DEAD_BEEF,
                "pa": 0x8000_1000,
                "pa_ns": 1,
                "data_source": 9,
                **operation,
            }
        ),
        total=20,
        issue=6,
        translation=3,
    )


def recorded(facts: Facts, config: SPUConfig = N1, **operation: Any) -> Record:
    (record,) = decode(records.encode(config, sample(facts, **operation)))
    assert not record.problems
    return record


def test_a_load_has_every_packet_but_a_target():
    record = recorded(LOAD, events=0b1_0100)
    assert record.pc == InstructionAddress(0xFF_8000_1234_5678, el=1, ns=1, nse=0)
    assert record.va == 0x0000_0000_DEAD_BEEF  # TBI does not apply: no tag
    assert record.pa == PhysicalAddress(0x8000_1000, ns=1, nse=0, ch=0, pat=0)
    assert (record.total, record.issue, record.translation, record.data_source) == (20, 6, 3, 9)
    assert (record.context_el1, record.context_el2, record.timestamp) == (5, None, 7)
    assert (record.events, record.target) == (0b1_0110, None)
    assert record.offset + record.size == 64


def test_the_top_byte_is_recorded_where_tbi_applies():
    assert recorded(replace(LOAD, va_tagged=1)).va == 0xAB00_0000_DEAD_BEEF


def test_end_takes_the_place_of_the_timestamp():
    octets = records.encode(N1, sample(LOAD, timestamp=None))
    assert octets[-1] == 0x01
    assert octets[53:63] == bytes(10)


@pytest.mark.parametrize(
    ("changes", "absent"),
    [
        ({"va_valid": 0}, {"va", "translation", "pa"}),
        ({"pa_valid": 0}, {"pa"}),
        ({"data_source_valid": 0}, {"data_source"}),
        ({"load": 0, "store": 1}, {"data_source"}),  # a store has no source
        ({"load": 0}, {"va", "translation", "pa", "data_source"}),  # neither load nor store
        ({"exception": 1}, {"va", "translation", "pa", "data_source"}),
    ],
)
def test_packets_of_a_data_access_go_together(changes: dict[str, int], absent: set[str]):
    record = recorded(replace(LOAD, **changes))
    names = ("pc", "operation", "total", "issue", "va", "translation", "pa", "data_source")
    assert {name for name in names if getattr(record, name) is None} == absent


def test_the_physical_address_needs_permission():
    record = recorded(LOAD, collect_pa=False)
    assert (record.pa, record.va, record.translation) == (None, 0xDEAD_BEEF, 3)


def test_a_branch_has_a_target_and_no_data_access():
    record = recorded(replace(BRANCH, va_valid=1, pa_valid=1, data_source_valid=1))
    assert record.target == InstructionAddress(0xFF_8000_1234_5000, el=1, ns=1, nse=0)
    assert (record.va, record.pa, record.translation, record.data_source) == (None, None, None, None)


@pytest.mark.parametrize("recorded_too", [True, False])
def test_the_target_of_a_branch_not_taken_is_a_choice(recorded_too: bool):
    config = replace(N1, not_taken_target=recorded_too)
    record = recorded(replace(BRANCH, taken=0, conditional=1), config)
    assert (record.target is not None) is recorded_too
    assert recorded(BRANCH, config).target is not None


def test_an_exception_is_not_a_branch():
    record = recorded(replace(BRANCH, exception=1), events=1 << 7)
    assert record.operation_packet == (0, 0)
    assert record.target is None
    assert record.events == 0b11


@given(any_facts(), st.integers(0, 0xFFFF))
def test_nothing_is_told_of_an_operation_that_did_not_retire(facts: Facts, events: int):
    octets = records.encode(N1, sample(replace(facts, retired=0), events=events))
    assert octets == bytes(21) + b"\x52\0\0" + bytes(31) + b"\x71\x07" + bytes(7)


@pytest.mark.parametrize(
    ("facts", "packet"),
    [
        (Facts(), (0, 0x00)),
        (Facts(conditional=1), (0, 0x01)),
        (Facts(load=1), (1, 0x00)),
        (Facts(store=1), (1, 0x01)),
        (Facts(load=1, simd_fp=1), (1, 0x04)),
        (Facts(store=1, simd_fp=1), (1, 0x05)),
        (Facts(load=1, acquire_release=1), (1, 0x12)),
        (Facts(store=1, acquire_release=1), (1, 0x13)),
        (Facts(load=1, exclusive=1), (1, 0x0A)),
        (Facts(load=1, store=1, atomic=1), (1, 0x06)),
        (Facts(store=1, atomic=1), (1, 0x07)),
        (Facts(load=1, store=1, atomic=1, acquire_release=1), (1, 0x16)),
        (Facts(load=1, exclusive=1, acquire_release=1), (1, 0x1A)),
        (Facts(load=1, simd_fp=1, acquire_release=1), (1, 0x12)),  # only the extended form has AR
        (Facts(branch=1), (2, 0x00)),
        (Facts(branch=1, conditional=1), (2, 0x01)),
        (Facts(branch=1, indirect=1), (2, 0x02)),
    ],
)
def test_operation_type(facts: Facts, packet: tuple[int, int]):
    assert recorded(replace(facts, retired=1, taken=1)).operation_packet == packet


COPY = Facts(load=1, store=1, memory_copy=1)
OF_MOPS = [
    (COPY, 0x20),
    (replace(COPY, destination=1), 0x21),
    (replace(COPY, simd_fp=1, acquire_release=1), 0x20),  # its own format before all others
    (Facts(store=1, memory_set=1), 0x25),
]
OF_GCS = [
    (Facts(load=1, gcs=1), 0x44),
    (Facts(store=1, gcs=1), 0x45),
    (Facts(load=1, store=1, gcs=1), 0x44),
    (Facts(load=1, store=1, gcs=1, destination=1), 0x45),
    (Facts(load=1, gcs=1, link_or_return=1), 0x40),
    (Facts(store=1, gcs=1, link_or_return=1), 0x41),
    (Facts(load=1, store=1, gcs=1, atomic=1), 0x44),
]


def test_operation_types():
    for facts, payload in OF_MOPS:
        assert recorded(replace(facts, retired=1), V1P4).operation_packet == (1, payload)
        assert recorded(replace(facts, retired=1), MOPS).operation_packet == (1, payload)
    for facts, payload in OF_GCS:
        assert recorded(replace(facts, retired=1), V1P4).operation_packet == (1, payload)
        assert recorded(replace(facts, retired=1), GCS).operation_packet == (1, payload)
    # The other access of an atomic is the same one: it loads and stores at one address.
    assert recorded(Facts(load=1, store=1, atomic=1, retired=1), V1P4).operation_packet == (1, 0x06)


@pytest.mark.parametrize(
    ("config", "facts"),
    [(N1, OF_MOPS + OF_GCS), (GCS, OF_MOPS), (MOPS, OF_GCS)],
    ids=["without both", "without MOPS", "without GCS"],
)
def test_facts_of_a_feature_mean_nothing_without_it(config: SPUConfig, facts: list[tuple[Facts, int]]):
    special = {"memory_copy": 0, "memory_set": 0, "gcs": 0, "link_or_return": 0}
    for one, _ in facts:
        plain = replace(one, **special, **({} if config.two_accesses else {"destination": 0}))
        assert records.encode(config, sample(replace(one, retired=1))) == records.encode(
            config, sample(replace(plain, retired=1))
        )


def test_a_branch_to_the_guarded_control_stack_has_target_and_data_access():
    facts = replace(LOAD, branch=1, taken=1, indirect=1, gcs=1, link_or_return=1)
    record = recorded(facts, V1P4, data_source=0x123)
    assert record.operation_packet == (2, 0b110)
    assert record.target == InstructionAddress(0xFF_8000_1234_5000, el=1, ns=1, nse=0)
    assert (record.va, record.translation, record.data_source) == (0xDEAD_BEEF, 3, 0x123)
    assert record.pa == PhysicalAddress(0x8000_1000, ns=1, nse=0, ch=0, pat=0)
    stored = recorded(replace(facts, load=0, store=1), V1P4)
    assert (stored.va, stored.data_source) == (0xDEAD_BEEF, None)
    # Not taken, or an address that was not accessed: each half by itself.
    config = replace(V1P4, not_taken_target=False)
    assert recorded(replace(facts, taken=0), config).target is None
    assert recorded(replace(facts, taken=0), config).va == 0xDEAD_BEEF
    assert recorded(replace(facts, va_valid=0), V1P4).va is None
    assert recorded(replace(facts, va_valid=0), V1P4).target is not None


def test_without_gcs_a_branch_is_nothing_else():
    for config in (N1, MOPS):
        record = recorded(replace(BRANCH, load=1, gcs=1, va_valid=1, data_source_valid=1), config)
        assert record.operation_packet == (2, 0)
        assert (record.target is not None, record.va, record.data_source) == (True, None, None)


def test_with_an_exception_a_call_is_its_access_to_the_guarded_control_stack():
    """D17.6.3: it is not a branch. COMM says that it is from one."""
    facts = Facts(branch=1, store=1, gcs=1, link_or_return=1, retired=1, exception=1, va_valid=1)
    record = recorded(facts, V1P4)
    assert record.operation_packet == (1, 0x41)
    assert (record.target, record.va) == (None, None)


def test_only_the_access_that_is_sampled_has_a_source():
    copy = replace(LOAD, store=1, memory_copy=1)
    assert recorded(copy, V1P4).data_source == 9
    copied_to = recorded(replace(copy, destination=1), V1P4)
    assert (copied_to.data_source, copied_to.va, copied_to.translation) == (None, 0xDEAD_BEEF, 3)


@pytest.mark.parametrize(
    ("facts", "events"),
    [
        (LOAD, 0b1_0111_0011_1110),
        (BRANCH, 0b0_0000_1000_0010),
        (Facts(retired=1), 0b0_0000_0000_0010),
        (Facts(retired=1, conditional=1), 0b0_0000_0100_0010),
        (Facts(retired=1, conditional=1, taken=1), 0b0_0000_0000_0010),
        (replace(BRANCH, conditional=1, taken=0), 0b0_0000_1100_0010),
        (replace(LOAD, exception=1), 0b1_0111_0011_1111),
        (replace(LOAD, retired=0), 0),
    ],
)
def test_events_that_the_operation_cannot_have_done_are_zero(facts: Facts, events: int):
    assert records.events(N1, sample(facts, events=0xFFFF)) == events


def test_events_of_loads_alone():
    """D18.2.6, E[23:19]. A branch to the Guarded control stack is a load or a store, and a branch."""
    loads, both, branches = 0x1F << 19, 0b1_1111_0011_1100, 1 << 7
    for facts, expected in (
        (LOAD, both | loads),
        (replace(LOAD, load=0, store=1), both),
        (replace(LOAD, store=1, memory_copy=1), both | loads),
        (replace(LOAD, store=1, memory_copy=1, destination=1), both | loads),
        (replace(BRANCH, load=1, gcs=1), both | loads | branches),
        (replace(BRANCH, store=1, gcs=1), both | branches),
        (BRANCH, branches),
        (Facts(retired=1), 0),
    ):
        assert records.events(V1P4, sample(facts, events=0xFFFF_FFFF)) == expected | 0b10, facts


def test_events_of_the_core_s_own_belong_to_any_operation():
    config = replace(CONFIGS["minimal"], events=frozenset({1, 6, *range(24, 32), *range(48, 64)}), events_bytes=8)
    own = 0xFF << 24 | 0xFFFF << 48
    for facts in (LOAD, BRANCH, Facts(retired=1)):
        assert records.events(config, sample(facts, events=(1 << 64) - 1)) == own | 0b10


def test_events_that_the_configuration_does_not_record_are_zero():
    assert records.events(CONFIGS["minimal"], sample(LOAD, events=0xFF)) == 0b0011_1110


@pytest.mark.parametrize("bits", [12, 16])
def test_counters_saturate(bits: int):
    config = replace(N1, counter_bits=bits)
    largest = (1 << bits) - 1
    for cycles, expected in (
        (largest - 1, largest - 1),
        (largest, largest),
        (largest + 1, largest),
        (1 << 40, largest),
    ):
        (record,) = decode(
            records.encode(config, replace(sample(LOAD), total=cycles, issue=cycles, translation=cycles))
        )
        assert (record.total, record.issue, record.translation) == (expected, expected, expected)


def test_a_packet_without_a_place_is_an_error():
    start = Start(contextidr_el2=1)
    with pytest.raises(ValueError, match="a record of minimal has no place for CONTEXT_EL2"):
        records.encode(CONFIGS["minimal"], Sample(start=start, operation=Operation(facts=LOAD)))


@pytest.mark.parametrize("config", CONFIGS.values(), ids=list(CONFIGS))
@given(data=st.data())
def test_every_record_has_the_shape_that_the_layout_gives(config: SPUConfig, data: st.DataObject):
    """One record of exactly its size, each fact in it as it was told, checked against the architecture's own words."""
    given_sample = data.draw(samples(config))
    octets = records.encode(config, given_sample)
    assert len(octets) == config.record_bytes
    (record,) = decode(octets)
    assert record.complete
    assert not record.problems
    assert not record.unknown
    assert record.offset + record.size == config.record_bytes
    start, operation, facts = given_sample.start, given_sample.operation, given_sample.operation.facts
    assert record.timestamp == start.timestamp
    if facts.retired:
        largest = (1 << config.counter_bits) - 1
        assert record.pc == InstructionAddress(operation.pc, start.el, start.ns, 0)
        assert (record.context_el1, record.context_el2) == (start.contextidr_el1, start.contextidr_el2)
        assert record.total == min(given_sample.total, largest)
        assert record.issue == min(given_sample.issue, largest)
        assert (record.translation is None) == (record.va is None)
        if record.va is not None:
            assert record.va & (1 << 56) - 1 == operation.va & (1 << 56) - 1
            assert record.va >> 56 in (0, operation.va >> 56)
        assert record.pa in (None, PhysicalAddress(operation.pa, operation.pa_ns, 0, 0, 0))
        assert record.target in (
            None,
            InstructionAddress(operation.target.address, operation.target.el, operation.target.ns, 0),
        )
        assert record.data_source in (None, operation.data_source)


def test_facts_pack_in_the_order_of_their_names():
    assert Facts(load=1).pack() == 1
    assert Facts(data_source_valid=1).pack() == 1 << 17
    assert Facts(destination=1).pack() == 1 << 22
    assert Facts.unpack(0b110).pack() == 0b110
