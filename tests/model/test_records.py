"""Contents of records: packets and events that must and must not be present (D17.6 and D18.2)."""

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from configurations import FEATURES, IMP_PACKETS
from spurtle.arch import AltClk, PMSVer
from spurtle.config import CONFIGS, SPUConfig
from spurtle.config.record_layouts import MINIMAL, Packet
from spurtle.interface import operation, pe_state
from spurtle_sim.model import records
from spurtle_sim.model.operation import Facts, Location, Operation, Sample, Start, Vectors
from spurtle_sim.model.pe import PEState
from spurtle_sim.records.decode import InstructionAddress, PacketKind, PhysicalAddress, Record, decode_packets
from spurtle_sim.records.decode import decode_records as decode
from spurtle_sim.records.operation_type import operation_type
from tests.support.samples import facts as any_facts
from tests.support.samples import samples
from tests.support.tiers import configurations

N1, V1P4, MODEL = (CONFIGS[name] for name in ("neoverse_n1", "v1p4", "arm_model"))
MOPS, GCS, SME = (FEATURES[f"minimal_{name}"] for name in ("mops", "gcs", "sme"))
ALL = {config.name: config for config in (*CONFIGS.values(), *FEATURES.values(), *IMP_PACKETS)}
IMPLEMENTED = pytest.mark.parametrize("config", configurations(ALL))
LOAD = Facts(load=1, retired=1, va_valid=1, pa_valid=1, data_source_valid=1)
BRANCH = Facts(branch=1, taken=1, retired=1)
PREVIOUS = Location(0xFF_8000_0000_4000, 1, 1)


def sample(
    facts: Facts,
    *,
    collect_pa: bool = True,
    timestamp: int | None = 7,
    previous_target: Location | None = PREVIOUS,
    **operation: Any,
) -> Sample:
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
        previous_target=previous_target,
        total=20,
        issue=6,
        translation=3,
        alternate_issue=4,
    )


def recorded(facts: Facts, config: SPUConfig = N1, **operation: Any) -> Record:
    (record,) = decode(records.encode(config, sample(facts, **operation)))
    assert not record.problems
    return record


def test_load_has_every_packet_except_a_target():
    record = recorded(LOAD, events=0b1_0100)
    assert record.pc == InstructionAddress(0xFF_8000_1234_5678, el=1, ns=1, nse=0)
    assert record.va == 0x0000_0000_DEAD_BEEF  # TBI does not apply: no tag
    assert record.pa == PhysicalAddress(0x8000_1000, ns=1, nse=0, ch=0, pat=0)
    assert (record.total, record.issue, record.translation, record.data_source) == (20, 6, 3, 9)
    assert (record.context_el1, record.context_el2, record.timestamp) == (5, None, 7)
    assert (record.events, record.target) == (0b1_0110, None)
    assert record.offset + record.size == 64


def test_top_byte_is_recorded_if_tbi_applies():
    assert recorded(replace(LOAD, va_tagged=1)).va == 0xAB00_0000_DEAD_BEEF


def test_end_replaces_the_timestamp():
    octets = records.encode(N1, sample(LOAD, timestamp=None))
    assert octets[-1] == 0x01
    assert octets[53:63] == bytes(10)


@pytest.mark.parametrize(
    ("changes", "absent"),
    [
        ({"va_valid": 0}, {"va", "translation", "pa"}),
        ({"pa_valid": 0}, {"pa"}),
        ({"data_source_valid": 0}, {"data_source"}),
        ({"load": 0, "store": 1}, {"data_source"}),  # a store has no data source
        ({"load": 0}, {"va", "translation", "pa", "data_source"}),  # neither load nor store
        ({"exception": 1}, {"va", "translation", "pa", "data_source"}),
    ],
)
def test_packets_of_a_data_access(changes: dict[str, int], absent: set[str]):
    record = recorded(replace(LOAD, **changes))
    names = ("pc", "operation", "total", "issue", "va", "translation", "pa", "data_source")
    assert {name for name in names if getattr(record, name) is None} == absent


def test_physical_address_requires_permission():
    record = recorded(LOAD, collect_pa=False)
    assert (record.pa, record.va, record.translation) == (None, 0xDEAD_BEEF, 3)


def test_branch_has_a_target_and_no_data_access():
    record = recorded(replace(BRANCH, va_valid=1, pa_valid=1, data_source_valid=1))
    assert record.target == InstructionAddress(0xFF_8000_1234_5000, el=1, ns=1, nse=0)
    assert (record.va, record.pa, record.translation, record.data_source) == (None, None, None, None)


@pytest.mark.parametrize("recorded_if_not_taken", [True, False])
def test_target_of_a_branch_not_taken_is_configurable(recorded_if_not_taken: bool):
    config = replace(N1, not_taken_target=recorded_if_not_taken)
    record = recorded(replace(BRANCH, taken=0, conditional=1), config)
    assert (record.target is not None) is recorded_if_not_taken
    assert recorded(BRANCH, config).target is not None


def test_branch_that_generates_an_exception_is_not_a_branch():
    record = recorded(replace(BRANCH, exception=1), events=1 << 7)
    assert record.operation_packet == (0, 0)
    assert record.target is None
    assert record.events == 0b11


@given(any_facts(), st.integers(0, 0xFFFF))
def test_record_of_an_operation_that_did_not_retire_is_empty(facts: Facts, events: int):
    octets = records.encode(N1, sample(replace(facts, retired=0), events=events))
    assert octets == bytes(21) + b"\x52\0\0" + bytes(31) + b"\x71\x07" + bytes(7)


LACKS: dict[str, tuple[str, ...]] = {
    "mops": ("memory_copy", "memory_set"),
    "gcs": ("gcs",),
    "two_accesses": ("destination",),
    "mte": ("allocation_tag", "pa_checked", "pa_tag"),
    "nv2": ("nv2", "collect_nv2_va"),
    "scalable": ("sve", "predicated", "gather_scatter", "bits"),
    "sme": ("sme",),
    "spe_sme": ("tile", "whole_array", "count"),
    "rme": ("nse", "pa_nse"),
    "pbt": ("previous_target",),
    "altclk": ("alternate_issue",),
    "imp_counter": ("imp_counter_valid", "imp_counter"),
    "imp_address": ("imp_address_valid", "imp_address"),
}
"""Members that are ignored without each feature."""


def without_unimplemented_members(config: SPUConfig, sample: Sample) -> Sample:
    """Return the sample with the members of all features that `config` lacks set to zero."""
    names = [name for feature, names in LACKS.items() if not getattr(config, feature) for name in names]
    if not config.crr and not config.gcs:
        names += ["link", "procedure_return"]
    if not config.spe_sme and not config.altclk:
        names += ["asynchronous"]
    if config.version < PMSVer.SPE_V1P1:
        names += ["unspecified"]

    def stripped(value: Any) -> Any:
        if not hasattr(value, "__dataclass_fields__"):
            return value
        zeros = {"previous_target": None}
        members = {
            name: zeros.get(name, 0) if name in names else stripped(getattr(value, name)) for name in value.__slots__
        }
        return type(value)(**members)

    return stripped(sample)


@IMPLEMENTED
@examples(max_examples=12)
@given(data=st.data())
def test_members_of_unimplemented_features_are_ignored(config: SPUConfig, data: st.DataObject):
    any_sample = data.draw(samples(config))
    plain = without_unimplemented_members(config, any_sample)
    assert records.encode(config, any_sample) == records.encode(config, plain)


def test_branch_that_accesses_the_gcs_has_a_target_and_a_data_access():
    facts = replace(LOAD, branch=1, taken=1, indirect=1, gcs=1, procedure_return=1)
    record = recorded(facts, V1P4, data_source=0x123)
    assert record.operation_packet == (2, 0b10110)
    assert record.target == InstructionAddress(0xFF_8000_1234_5000, el=1, ns=1, nse=0)
    assert (record.va, record.translation, record.data_source) == (0xDEAD_BEEF, 3, 0x123)
    assert record.pa == PhysicalAddress(0x8000_1000, ns=1, nse=0, ch=0, pat=0)
    stored = recorded(replace(facts, load=0, store=1), V1P4)
    assert (stored.va, stored.data_source) == (0xDEAD_BEEF, None)
    # Target and data access are independent: the branch is not taken, or its address is not valid.
    config = replace(V1P4, not_taken_target=False)
    assert recorded(replace(facts, taken=0), config).target is None
    assert recorded(replace(facts, taken=0), config).va == 0xDEAD_BEEF
    assert recorded(replace(facts, va_valid=0), V1P4).va is None
    assert recorded(replace(facts, va_valid=0), V1P4).target is not None


def test_branch_has_no_data_access_without_gcs():
    for config in (N1, MOPS):
        facts = replace(BRANCH, load=1, gcs=1, va_valid=1, data_source_valid=1)
        record = recorded(facts, config, events=1 << 2 | 1 << 7)
        assert record.operation_packet == (2, 0)
        assert record.events == 1 << 1 | 1 << 7
        assert (record.target is not None, record.va, record.data_source) == (True, None, None)


def test_call_that_generates_an_exception_is_recorded_as_its_gcs_access():
    """The operation is not recorded as a branch (D17.6.3). COMM is zero, as for the access of a call."""
    facts = Facts(branch=1, store=1, gcs=1, link=1, retired=1, exception=1, va_valid=1)
    record = recorded(facts, V1P4)
    assert record.operation_packet == (1, 0x41)
    assert (record.target, record.va) == (None, None)


def test_only_a_sampled_load_has_a_data_source():
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
def test_events_that_the_operation_cannot_have_are_zero(facts: Facts, events: int):
    assert records.events(N1, sample(facts, events=0xFFFF)) == events


def test_events_of_loads():
    """E[23:19] (D18.2.6). A branch that accesses the Guarded control stack is a load or store, and a branch."""
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
        assert records.events(V1P4, sample(facts, events=0x00FF_FFFF)) == expected | 0b10, facts


def test_events_of_predicates():
    """E[18:17] (D18.2.6) belong to SVE and SME operations, whether or not they have an SVE or SME format."""
    both = 0b11 << 17
    for config, vectors, expected in (
        (MODEL, Vectors(sve=1), both),
        (MODEL, Vectors(), 0),
        (MODEL, Vectors(sme=1), 0),
        (SME, Vectors(sme=1), both),
        (replace(SME, sve=True), Vectors(sme=1), both),
        (SME, Vectors(sve=1), both),
        (SME, Vectors(), 0),
        (V1P4, Vectors(sve=1), both),
        (V1P4, Vectors(sme=1), both),
        (V1P4, Vectors(), 0),
        (V1P4, Vectors(predicated=1, bits=128, count=1, tile=1, gather_scatter=1), 0),
    ):
        for facts in (Facts(retired=1), LOAD):
            found = records.events(config, sample(facts, events=0xFFFF_FFFF, vectors=vectors))
            assert found & both == expected, (config.name, vectors)
    assert records.events(V1P4, sample(Facts(), events=0xFFFF_FFFF, vectors=Vectors(sve=1))) == 0


def test_events_of_streaming_mode():
    """The core reports E[24]. The SPU derives E[25] from the facts."""
    for reported, asynchronous in product((0, 1, 2, 3), (0, 1)):
        found = records.events(V1P4, sample(Facts(retired=1, asynchronous=asynchronous), events=reported << 24))
        assert found >> 24 == asynchronous << 1 | reported & 1
    # Without FEAT_SPE_SME E[25] is IMPLEMENTATION DEFINED up to FEAT_SPEv1p2: the core reports it.
    own = replace(CONFIGS["minimal"], events=frozenset({*range(8), 25}), events_bytes=4)
    for reported, asynchronous in product((0, 1), (0, 1)):
        found = records.events(own, sample(Facts(retired=1, asynchronous=asynchronous), events=reported << 25))
        assert found == reported << 25 | 0b10


def test_any_operation_can_have_implementation_defined_events():
    config = replace(CONFIGS["minimal"], events=frozenset({*range(8), *range(24, 32), *range(48, 64)}), events_bytes=8)
    own = 0xFF << 24 | 0xFFFF << 48
    for facts in (LOAD, BRANCH, Facts(retired=1)):
        assert records.events(config, sample(facts, events=own)) == own | 0b10


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
        late = replace(sample(Facts(retired=1, asynchronous=1)), alternate_issue=cycles)
        (record,) = decode(records.encode(replace(V1P4, counter_bits=bits), late))
        assert record.counters[4] == expected


def test_packet_without_a_field_is_an_error():
    start = Start(contextidr_el2=1)
    with pytest.raises(ValueError, match="a record of minimal has no field for CONTEXT_EL2"):
        records.encode(CONFIGS["minimal"], Sample(start=start, operation=Operation(facts=LOAD)))


# D17.6.1.


def test_alternate_clock_counts_asynchronous_operations():
    asynchronous = Facts(retired=1, asynchronous=1)
    assert recorded(asynchronous, V1P4).counters == {0: 20, 1: 6, 4: 4}
    assert recorded(replace(asynchronous, exception=1), V1P4).counters == {0: 20, 1: 6, 4: 4}
    assert recorded(replace(asynchronous, asynchronous=0), V1P4).counters == {0: 20, 1: 6}
    assert recorded(replace(asynchronous, retired=0), V1P4).counters == {}
    own_clock = replace(V1P4, altclk=AltClk.IMPLEMENTATION_DEFINED)
    assert recorded(asynchronous, own_clock).counters == {0: 20, 1: 6, 4: 4}
    no_clock = replace(V1P4, altclk=AltClk.NONE, layout=V1P4.layout.without(Packet.ALTERNATE_ISSUE))
    assert recorded(asynchronous, no_clock).counters == {0: 20, 1: 6}


def test_constant_issue_latency_can_be_omitted():
    config = replace(CONFIGS["minimal"], layout=MINIMAL.without(Packet.ISSUE))
    assert recorded(LOAD, config).counters == {0: 20, 2: 3}


# D17.6.3.1.


def test_previous_branch_target():
    previous = InstructionAddress(0xFF_8000_0000_4000, el=1, ns=1, nse=0)
    of_all = replace(V1P4, pbt_of_all=True)
    for facts, of_branches, of_others in (
        (BRANCH, previous, previous),
        (replace(BRANCH, taken=0, conditional=1), previous, previous),
        (replace(LOAD, branch=1, taken=1, gcs=1), previous, previous),
        (LOAD, None, previous),
        (Facts(retired=1), None, previous),
        (replace(BRANCH, exception=1), None, None),
        (replace(BRANCH, retired=0), None, None),
    ):
        assert recorded(facts, V1P4).previous_target == of_branches, facts
        assert recorded(facts, of_all).previous_target == of_others, facts
        for config in (V1P4, of_all):
            assert recorded(facts, config, previous_target=None).previous_target is None


# D17.6.4.1, D17.6.4.2.


def test_checked_access_has_a_physical_address_tag():
    for checked, tag in product((0, 1), (0, 1, 0xA, 0xF)):
        record = recorded(LOAD, V1P4, pa_checked=checked, pa_tag=tag)
        assert record.pa == PhysicalAddress(0x8000_1000, ns=1, nse=0, ch=checked, pat=tag if checked else 0)
        plain = recorded(LOAD, MODEL, pa_checked=checked, pa_tag=tag)
        assert plain.pa == PhysicalAddress(0x8000_1000, ns=1, nse=0, ch=0, pat=0)


@pytest.mark.parametrize("permitted", [False, True])
def test_address_of_a_system_register_in_memory_requires_permission(permitted: bool):
    access = sample(replace(LOAD, nv2=1))
    access = replace(access, start=replace(access.start, collect_nv2_va=permitted))
    (record,) = decode(records.encode(V1P4, access))
    present = [value is not None for value in (record.va, record.translation, record.pa)]
    assert present == [permitted] * 3
    assert record.data_source == 9
    assert record.operation_packet == (1, 0x30)
    plain = replace(V1P4, nv2=False)
    (record,) = decode(records.encode(plain, access))
    assert (record.va, record.translation, record.operation_packet) == (0xDEAD_BEEF, 3, (1, 0))


# D18.2.1.


@pytest.mark.parametrize(
    ("ns", "nse", "el", "top_byte"),
    [(0, 0, 0, 0x00), (1, 0, 1, 0xA0), (1, 0, 2, 0xC0), (1, 1, 0, 0x90), (1, 1, 2, 0xD0), (0, 0, 3, 0x60)],
)
def test_security_state_of_an_instruction_address(ns: int, nse: int, el: int, top_byte: int):
    location = Location(0x1234, el, ns, nse)
    branch = sample(BRANCH, pc=0x1234, target=location, previous_target=location)
    branch = replace(branch, start=replace(branch.start, el=el, ns=ns, nse=nse))
    (record,) = decode(records.encode(V1P4, branch))
    assert record.addresses == dict.fromkeys((0, 1, 4), top_byte << 56 | 0x1234)
    (record,) = decode(records.encode(replace(V1P4, rme=False), branch))
    assert record.addresses == dict.fromkeys((0, 1, 4), (top_byte & 0xE0) << 56 | 0x1234)


@pytest.mark.parametrize(("ns", "nse", "top_byte"), [(0, 0, 0x00), (1, 0, 0x80), (1, 1, 0x90)])
def test_physical_address_space(ns: int, nse: int, top_byte: int):
    assert recorded(LOAD, V1P4, pa_ns=ns, pa_nse=nse).addresses[3] == top_byte << 56 | 0x8000_1000
    assert recorded(LOAD, MODEL, pa_ns=ns, pa_nse=nse).addresses[3] == ns << 63 | 0x8000_1000


def test_root_state_is_recorded_if_the_core_reports_it():
    """NSE = 1 with NS = 0 is a reserved encoding. No PC has it, because profiling is disabled in Root state."""
    root = Location(0x1234, el=3, ns=0, nse=1)
    (record,) = decode(records.encode(V1P4, sample(BRANCH, target=root, previous_target=root)))
    assert {record.addresses[index] >> 56 for index in (1, 4)} == {0x70}
    assert recorded(LOAD, V1P4, pa_ns=0, pa_nse=1).addresses[3] >> 56 == 0x10


@pytest.mark.parametrize("config", IMP_PACKETS, ids=[config.name for config in IMP_PACKETS])
def test_implementation_defined_packets(config: SPUConfig):
    own = {"imp_counter": 0x123, "imp_address": 0xFEDC_BA98_7654_3210}
    facts = replace(LOAD, imp_counter_valid=1, imp_address_valid=1)
    record = recorded(facts, config, **own)
    assert record.counters == {0: 20, 1: 6, 2: 3, config.imp_counter: 0x123}
    assert record.addresses[config.imp_address] == 0xFEDC_BA98_7654_3210
    assert config.imp_counter not in recorded(replace(facts, imp_counter_valid=0), config, **own).counters
    assert config.imp_address not in recorded(replace(facts, imp_address_valid=0), config, **own).addresses
    for changes in ({"exception": 1}, {"retired": 0}):
        record = recorded(replace(facts, **changes), config, **own)
        assert not {config.imp_counter} & {*record.counters}
        assert not {config.imp_address} & {*record.addresses}
    other = recorded(replace(facts, load=0), config, **own)
    assert (other.counters[config.imp_counter], other.addresses[config.imp_address]) == tuple(own.values())


@pytest.mark.parametrize(
    ("index", "counter", "address"),
    [(6, "9e", "b6"), (7, "9f", "b7"), (16, "22 98", "22 b0"), (24, "23 98", "23 b0"), (31, "23 9f", "23 b7")],
)
def test_headers_are_extended_only_if_necessary(index: int, counter: str, address: str):
    """The header is extended from INDEX 8 on (D18.2.1 and D18.2.3)."""
    facts = Facts(retired=1, imp_counter_valid=1, imp_address_valid=1)
    config = replace(IMP_PACKETS[0], imp_counter=index, imp_address=index)
    found = dict(records.packets(config, sample(facts, imp_counter=0xABC, imp_address=1)))
    assert found[Packet.IMP_COUNTER] == bytes.fromhex(counter) + b"\xbc\x0a"
    assert found[Packet.IMP_ADDRESS] == bytes.fromhex(address) + b"\x01" + bytes(7)


# Complete records.


@IMPLEMENTED
@examples(max_examples=20)
@given(data=st.data())
def test_records_hold_no_reserved_encodings(config: SPUConfig, data: st.DataObject):
    octets = records.encode(config, data.draw(samples(config)))
    addresses = {0, 1, 2, 3, *([4] if config.pbt else []), *([config.imp_address] if config.imp_address else [])}
    counters = {0, 1, 2, *([4] if config.altclk else []), *([config.imp_counter] if config.imp_counter else [])}
    allowed = {
        PacketKind.ADDRESS: addresses,
        PacketKind.COUNTER: counters,
        PacketKind.CONTEXT: {0, 1},
        PacketKind.OPERATION: {0, 1, 2},
    }
    for packet in decode_packets(octets):
        assert packet.kind not in (PacketKind.UNKNOWN, PacketKind.BAD)
        assert packet.index in allowed.get(packet.kind, {0})
        # No header is extended for an INDEX that fits a short header.
        assert octets[packet.offset] != 0x20
        if packet.kind is PacketKind.OPERATION:
            assert operation_type(packet.index, packet.value).kind != "reserved"
        if packet.kind is PacketKind.ADDRESS and packet.index not in (2, config.imp_address):
            assert packet.value >> 63 or not packet.value >> 60 & 1  # Root state has no encoding


@IMPLEMENTED
@examples(max_examples=20)
@given(data=st.data())
def test_records_decode_to_the_values_of_the_sample(config: SPUConfig, data: st.DataObject):
    """The data decodes to one record with the values of the sample."""
    given_sample = data.draw(samples(config))
    octets = records.encode(config, given_sample)
    assert len(octets) % config.layout.align == 0
    assert len(octets) <= config.max_record_bytes
    (record,) = decode(octets)
    assert record.complete
    assert not record.problems
    assert not record.unknown
    assert config.layout.padding_last or record.offset + record.size == len(octets)
    start, operation, facts = given_sample.start, given_sample.operation, given_sample.operation.facts
    assert record.timestamp == start.timestamp
    if facts.retired:
        largest = (1 << config.counter_bits) - 1
        rme = int(config.rme)
        assert record.pc == InstructionAddress(operation.pc, start.el, start.ns, start.nse & rme)
        assert (record.context_el1, record.context_el2) == (start.contextidr_el1, start.contextidr_el2)
        assert record.total == min(given_sample.total, largest)
        issue = min(given_sample.issue, largest) if Packet.ISSUE in config.layout.packets else None
        assert record.issue == issue
        assert (record.translation is None) == (record.va is None)
        if record.va is not None:
            assert record.va & (1 << 56) - 1 == operation.va & (1 << 56) - 1
            assert record.va >> 56 in (0, operation.va >> 56)
        if record.pa is not None:
            assert record.va is not None
            assert record.pa[:3] == (operation.pa, operation.pa_ns, operation.pa_nse & rme)
            assert record.pa.ch == (operation.pa_checked if config.mte else 0)
            assert record.pa.pat == (operation.pa_tag if record.pa.ch else 0)
        for found, location in (
            (record.target, operation.target),
            (record.previous_target, given_sample.previous_target),
        ):
            if found is not None:
                assert location is not None
                assert found == InstructionAddress(location.address, location.el, location.ns, location.nse & rme)
        assert record.data_source in (None, operation.data_source)
        assert record.counters.get(4) in (None, min(given_sample.alternate_issue, largest))


def test_facts_are_packed_in_declaration_order():
    assert Facts(load=1).pack() == 1
    assert Facts(unspecified=1).pack() == 1 << 7
    assert Facts(retired=1).pack() == 1 << 21
    assert Facts(imp_address_valid=1).pack() == 1 << 29
    assert Facts.unpack(0b110).pack() == 0b110


def test_members_equal_those_of_the_ports():
    """The order is also the same, so that packed values are equal."""
    for model_class, port in (
        (Facts, operation.FactsLayout.as_shape()),
        (Vectors, operation.VectorsLayout(V1P4)),
        (Location, operation.LocationLayout(V1P4)),
    ):
        assert [*model_class.__slots__] == [name for name, _ in port]
    members = [name for name, _ in operation.OperationLayout(V1P4)]
    assert [*Operation.__slots__] == [*members, "imp_counter", "imp_address"]
    assert [name for name, _ in operation.OperationLayout(IMP_PACKETS[0])][-2:] == ["imp_counter", "imp_address"]
    assert [*PEState.__slots__] == [*pe_state.PEStateSignature(V1P4).members]
