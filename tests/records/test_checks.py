"""Invariants of records: the reference model satisfies each of them, and a violation of each is detected."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from configurations import FOR_RECORDS
from spurtle.config import CONFIGS, SPUConfig
from spurtle.config.record_layouts import Packet, RecordField, RecordLayout
from spurtle_sim.model import records
from spurtle_sim.model.operation import Location
from spurtle_sim.records.checks import Monitor, core_violations, violations
from spurtle_sim.records.decode import DecodedPacket, PacketKind, Problem, Record, decode_records
from spurtle_sim.records.json_sample import from_json
from tests.support.example_records import BRANCH, LOAD, OTHER, PLAIN, changed, of_form
from tests.support.samples import samples, without_impossible_facts
from tests.support.tiers import configurations

N1, V1P4, OWN = CONFIGS["neoverse_n1"], CONFIGS["v1p4"], FOR_RECORDS["own"]


@pytest.mark.parametrize("config", configurations(FOR_RECORDS))
@given(data=st.data())
def test_record_of_any_sample_has_no_violations(config: SPUConfig, data: st.DataObject):
    sample = without_impossible_facts(config, data.draw(samples(config)))
    assert Monitor(config, core=False).check(records.encode(config, sample)) == []


@pytest.mark.parametrize("config", configurations(FOR_RECORDS))
@given(data=st.data())
def test_record_of_a_possible_sample_has_no_core_violations(config: SPUConfig, data: st.DataObject):
    sample = without_impossible_facts(config, data.draw(samples(config)))
    operation, facts, start = sample.operation, sample.operation.facts, sample.start
    facts = replace(facts, taken=facts.taken | 1 - facts.conditional)
    events = operation.events | (operation.events >> 18 & 1) << 17
    following = Location((operation.pc + 4) & (1 << 56) - 1, start.el, start.ns, start.nse)
    sample = replace(
        sample,
        operation=replace(operation, facts=facts, events=events, target=operation.target if facts.taken else following),
        issue=min(sample.issue, sample.total),
        translation=min(sample.translation, sample.total),
    )
    assert Monitor(config).check(records.encode(config, sample)) == []


def record(config: SPUConfig, facts: dict[str, Any]) -> Record:
    (found,) = decode_records(records.encode(config, from_json(config, facts)))
    return found


def altered(config: SPUConfig, facts: dict[str, Any], **changes: Any) -> Record:
    """Return a valid record with changes. A change replaces an entry of a dictionary, or removes it if it is None."""
    found = record(config, facts)
    for name, change in changes.items():
        if not isinstance(change, dict):
            setattr(found, name, change)
            continue
        payloads = getattr(found, name)
        for index, payload in change.items():
            payloads.pop(index, None)
            if payload is not None:
                payloads[index] = payload
    return found


LOAD_V1P4 = {**PLAIN, "events": [1, 2]}
SVE = of_form("load", "sve", LOAD_V1P4, bits=128)
TAKEN = changed(BRANCH, events=[1])

# Configuration, valid facts, changes, and beginning of the expected sentence.
VIOLATIONS: list[tuple[SPUConfig, dict[str, Any], dict[str, Any], str]] = [
    # 1: complete records.
    (N1, OTHER, {"complete": False}, "it does not end with a Timestamp or End packet"),
    (N1, OTHER, {"size": 65}, "65 bytes, more than 64"),
    (N1, OTHER, {"offset": 1}, "it ends at 0x41, which is not a multiple of 64"),
    (CONFIGS["arm_model"], OTHER, {"offset": 4}, "it starts at 0x4, which is not a multiple of 8"),
    (
        N1,
        OTHER,
        {"unknown": (DecodedPacket(0, 1, PacketKind.UNKNOWN, 0, 2),)},
        "unknown packet with header 0x02",
    ),
    (N1, OTHER, {"problems": (Problem(0, "a second Counter packet"),)}, "a second Counter packet"),
    # 2: packets of each kind of operation.
    (N1, LOAD, {"counters": {2: None}}, "TRANSLATION is missing"),
    (N1, LOAD, {"addresses": {2: None}}, "PA must not be present"),
    (N1, LOAD, {"addresses": {2: None, 3: None}}, "TRANSLATION must not be present"),
    (N1, LOAD, {"addresses": {1: 4}}, "TARGET must not be present"),
    (N1, OTHER, {"addresses": {2: 4}, "counters": {2: 1}}, "VA must not be present"),
    (N1, OTHER, {"data_source": 0}, "DATA_SOURCE must not be present"),
    (
        N1,
        changed(LOAD, operation__kind="store", data_source=None),
        {"data_source": 0},
        "DATA_SOURCE must not be present",
    ),
    (N1, BRANCH, {"addresses": {2: 4}, "counters": {2: 1}}, "VA must not be present"),
    (N1, BRANCH, {"addresses": {1: None}}, "TARGET is missing"),
    (N1, TAKEN, {"addresses": {4: 5}}, "PREVIOUS_TARGET must not be present"),
    (V1P4, OTHER, {"addresses": {4: 5}}, "PREVIOUS_TARGET must not be present"),
    (OWN, changed(BRANCH, issue=None, target=None), {"addresses": {1: 5}}, "TARGET must not be present"),
    (N1, changed(OTHER, events=[0, 1]), {"addresses": {2: 4}, "counters": {2: 1}}, "VA must not be present"),
    # 3: required packets.
    (N1, OTHER, {"addresses": {0: None}}, "PC is missing"),
    (N1, OTHER, {"operation_packet": None}, "OPERATION is missing"),
    (N1, OTHER, {"counters": {0: None}}, "TOTAL is missing"),
    (N1, OTHER, {"counters": {1: None}}, "ISSUE is missing"),
    (OWN, changed(OTHER, issue=None), {"counters": {1: 1}}, "ISSUE must not be present"),
    (N1, {"events": []}, {"events": None}, "EVENTS is missing"),
    (N1, {"events": []}, {"events": 4}, "events 0x4 without event 1 (retired)"),
    (N1, {"events": []}, {"addresses": {0: 0}}, "PC must not be present"),
    (N1, {"events": []}, {"contexts": {0: 0}}, "CONTEXT_EL1 must not be present"),
    (CONFIGS["minimal"], OTHER, {"contexts": {1: 0}}, "CONTEXT_EL2 must not be present"),
    (V1P4, OTHER, {"events": 1 << 25 | 2}, "ALTERNATE_ISSUE is missing"),
    (V1P4, OTHER, {"counters": {4: 1}}, "ALTERNATE_ISSUE must not be present"),
    (N1, OTHER, {"counters": {6: 1}}, "Counter packet with INDEX 6"),
    (OWN, changed(OTHER, issue=None), {"addresses": {6: 1}}, "Address packet with INDEX 6"),
    (N1, OTHER, {"contexts": {2: 1}}, "Context packet with INDEX 2"),
    # 5: counters and reserved bits.
    (N1, OTHER, {"counters": {0: 4096}}, "Counter packet with INDEX 0 holds 4096, more than 12 bits"),
    (N1, OTHER, {"addresses": {0: 1 << 56}}, "bits [59:56] of the Address packet with INDEX 0 are not zero"),
    (N1, OTHER, {"addresses": {0: 0x90 << 56}}, "NSE of pc without FEAT_RME"),
    (N1, LOAD, {"addresses": {3: 0x90 << 56}}, "NSE of pa without FEAT_RME"),
    (N1, LOAD, {"addresses": {3: 0x20 << 56}}, "bit 61 of the Address packet with INDEX 3 is not zero"),
    (N1, LOAD, {"addresses": {3: 0x40 << 56}}, "CH or PAT without FEAT_MTE2"),
    (V1P4, LOAD_V1P4, {"addresses": {3: 0x81 << 56}}, "PAT of an access that was not checked"),
    # Features of Operation Type packets.
    (N1, OTHER, {"operation_packet": (0, 2)}, "FP or ASE without FEAT_SPE_FPF"),
    (N1, OTHER, {"operation_packet": (0, 8)}, "neoverse_n1 has no operation of kind 'other' and form 'sve': "),
    (N1, OTHER, {"operation_packet": (3, 0)}, "neoverse_n1 has no operation of kind 'reserved' and form '': "),
    (N1, LOAD, {"operation_packet": (1, 0x10)}, "neoverse_n1 has no operation of kind 'load' and form 'unspecified': "),
    (N1, BRANCH, {"operation_packet": (2, 0x09)}, "procedure 'call' without FEAT_SPE_CRR"),
    (V1P4, BRANCH, {"operation_packet": (2, 0x01)}, "procedure 'unknown' with FEAT_SPE_CRR"),
    (N1, BRANCH, {"operation_packet": (2, 0x05)}, "GCS without FEAT_GCS"),
    (CONFIGS["arm_model"], OTHER, {"operation_packet": (0, 0x78)}, "more than 2048 bits without FEAT_SPE_SME"),
    (OWN, changed(PLAIN, issue=None), {"operation_packet": (1, 0x0C)}, "PRED of a load before FEAT_SPEv1p2"),
    # 7: events.
    (
        N1,
        OTHER,
        {"events": 1 << 11 | 2},
        "events [11] are impossible for an operation of kind 'other' and form 'other': ",
    ),
    (N1, OTHER, {"events": 4 | 2}, "events [2] are impossible for an operation of kind 'other' and form 'other': "),
    (
        N1,
        OTHER,
        {"events": 1 << 6 | 2},
        "events [6] are impossible for an operation of kind 'other' and form 'other': ",
    ),
    (
        N1,
        LOAD,
        {"events": 1 << 7 | 2},
        "events [7] are impossible for an operation of kind 'load' and form 'general': {}",
    ),
    (
        N1,
        TAKEN,
        {"operation_packet": (2, 0), "events": 1 << 6 | 2},
        "events [6] are impossible for an operation of kind 'branch' ",
    ),
    (N1, TAKEN, {"addresses": {1: None}, "events": 3}, "events [0] are impossible for an operation of kind 'branch' "),
    (
        V1P4,
        LOAD_V1P4,
        {"events": 1 << 17 | 2},
        "events [17] are impossible for an operation of kind 'load' and form 'general': {}",
    ),
    (
        V1P4,
        SVE,
        {"operation_packet": (1, 9), "events": 1 << 20 | 2},
        "events [20] are impossible for an operation of kind 'store' ",
    ),
    (
        CONFIGS["arm_model"],
        changed(BRANCH, operation__procedure="neither"),
        {"events": 1 << 17 | 2},
        "events [17] are impossible for an operation of kind 'branch' ",
    ),
]


@pytest.mark.parametrize(("config", "facts", "changes", "expected"), VIOLATIONS)
def test_violations_are_detected(config: SPUConfig, facts: dict[str, Any], changes: dict[str, Any], expected: str):
    assert violations(config, record(config, facts)) == []
    found = violations(config, altered(config, facts, **changes))
    assert any(sentence.startswith(expected) for sentence in found), found
    # There are no unrelated violations.
    assert len(found) <= 2, found


CORE_VIOLATIONS: list[tuple[SPUConfig, dict[str, Any], dict[str, Any], str]] = [
    (N1, OTHER, {"counters": {1: 3}}, "issue latency 3 exceeds the total latency 2"),
    (N1, LOAD, {"counters": {2: 13}}, "translation latency 13 exceeds the total latency 12"),
    (N1, BRANCH, {"addresses": {1: 0x80 << 56 | 0x1008}}, "a branch not taken at "),
    (N1, BRANCH, {"addresses": {1: 0xA0 << 56 | 0x1004}}, "a branch not taken at "),
    (
        OWN,
        changed(TAKEN, issue=None),
        {"addresses": {1: None}},
        "a taken branch has no target",
    ),
    (V1P4, SVE, {"events": 1 << 18 | 2}, "event 18 (empty predicate) without event 17 (partial predicate)"),
    (V1P4, OTHER, {"addresses": {0: 0x10 << 56}}, "pc is in Root state: NSE without NS"),
]


@pytest.mark.parametrize(("config", "facts", "changes", "expected"), CORE_VIOLATIONS)
def test_core_violations_are_detected(config: SPUConfig, facts: dict[str, Any], changes: dict[str, Any], expected: str):
    assert core_violations(config, record(config, facts)) == []
    broken = altered(config, facts, **changes)
    assert violations(config, broken) == []
    (sentence,) = core_violations(config, broken)
    assert sentence.startswith(expected)


def test_target_of_a_branch_not_taken_at_the_last_address():
    """The address is recorded modulo 2 to the power of 56."""
    facts = changed(BRANCH, pc__address=(1 << 56) - 4, target__address=0)
    assert core_violations(N1, record(N1, facts)) == []


def octets(config: SPUConfig, *facts: dict[str, Any]) -> bytes:
    return b"".join(records.encode(config, from_json(config, record)) for record in facts)


# The first field is elastic and holds two packets. The next field is always present and can be all zeros.
TWO_IN_FRONT = replace(
    N1,
    layout=RecordLayout(
        (
            RecordField(((Packet.CONTEXT_EL1, Packet.CONTEXT_EL2),), elastic=True),
            *(field for field in N1.layout.fields if not {*field.packets} & {Packet.CONTEXT_EL1, Packet.CONTEXT_EL2}),
        ),
        align=4,
        max_size=64,
        padding_last=True,
    ),
)


@pytest.mark.parametrize("contexts", [(), ("context_el1",), ("context_el2",), ("context_el1", "context_el2")])
@pytest.mark.parametrize("facts", [OTHER, {"events": []}], ids=["retired", "not retired"])
def test_record_can_begin_with_zeros(contexts: tuple[str, ...], facts: dict[str, Any]):
    facts = facts | dict.fromkeys(contexts, 5) if facts is OTHER else facts
    data = octets(TWO_IN_FRONT, OTHER, facts, OTHER)
    assert Monitor(TWO_IN_FRONT).check(data) == []
    found = Monitor(TWO_IN_FRONT).check(b"\0" + data)
    assert "record at 0x1: it starts at 0x1, which is not a multiple of 4" in found


def test_timestamps_do_not_decrease_with_one_slot():
    early, late, untimed = ({**OTHER, "timestamp": 5}, {**OTHER, "timestamp": 6}, OTHER)
    monitor = Monitor(N1)
    assert monitor.check(octets(N1, early, untimed, early, late)) == []
    assert monitor.check(octets(N1, untimed, early)) == ["record at 0x40: timestamp 5 after 6"]
    assert Monitor(CONFIGS["v1p4"]).check(octets(V1P4, late, early)) == []


def test_unnecessarily_extended_header_is_detected():
    config = FOR_RECORDS["everything"]
    valid = octets(config, {**OTHER, "counters": {"16": 1}})
    assert Monitor(config).check(valid) == []
    wrong = valid.replace(bytes.fromhex("22 98 01 00"), bytes.fromhex("20 9c 01 00"))
    offset = wrong.index(0x20)
    assert f"packet at {offset:#x}: an extended header for INDEX 4" in Monitor(config).check(wrong)


@pytest.mark.parametrize("cut", [lambda data: data[:-1], lambda data: data + b"\0", lambda data: data + bytes(64)])
def test_data_must_be_complete_records(cut: Callable[[bytes], bytes]):
    complete = octets(N1, OTHER, OTHER)
    assert Monitor(N1).check(complete) == []
    assert Monitor(N1).check(cut(complete))[-1].startswith("the last record ends at 0x")


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("gap", [1, 8, 64, 128])
def test_gap_between_records_is_detected(name: str, gap: int):
    config = CONFIGS[name]
    one = octets(config, OTHER)
    monitor = Monitor(config)
    assert monitor.check(one + one) == []
    assert monitor.check(one + bytes(gap) + one) != []
