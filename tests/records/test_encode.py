"""Encoder of JSON objects as records, the inverse of `decode --json`, and all of its error messages."""

import json
import sys
from dataclasses import replace
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from configurations import FOR_RECORDS
from spurtle.arch import PMSVer
from spurtle.config import CONFIGS, SPUConfig
from spurtle.support.errors import UserError
from spurtle_sim.cli import main
from spurtle_sim.model import records
from spurtle_sim.model.operation import Sample
from spurtle_sim.records.decode import Record, decode_records
from spurtle_sim.records.json_object import to_json
from spurtle_sim.records.json_sample import from_json
from tests.support.example_records import BRANCH, LOAD, OTHER, PLAIN, changed, of_form
from tests.support.samples import plausible_records
from tests.support.tiers import configurations

N1 = CONFIGS["neoverse_n1"]


def decode_one(config: SPUConfig, facts: dict[str, Any]) -> Record:
    (record,) = decode_records(records.encode(config, from_json(config, facts)))
    return record


def encode(*lines: str, config: str = "neoverse_n1", engine: str = "reference", output: Path) -> int:
    source = output.with_suffix(".jsonl")
    source.write_text("".join(line + "\n" for line in lines))
    return main(["encode", "--config", config, "--engine", engine, str(source), "-o", str(output)])


@pytest.mark.parametrize("config", configurations(FOR_RECORDS))
@given(data=st.data())
def test_decoded_record_encodes_to_the_same_bytes(config: SPUConfig, data: st.DataObject):
    octets = data.draw(plausible_records(config))
    (record,) = decode_records(octets)
    facts = json.loads(json.dumps(to_json(record)))
    assert records.encode(config, from_json(config, facts)) == octets


@pytest.mark.parametrize("config", configurations(FOR_RECORDS))
@given(data=st.data())
def test_encoded_record_decodes_to_the_same_object(config: SPUConfig, data: st.DataObject):
    (record,) = decode_records(data.draw(plausible_records(config)))
    facts = to_json(record)
    (again,) = decode_records(records.encode(config, from_json(config, facts)))
    assert to_json(again) == facts


@pytest.mark.parametrize("facts", [LOAD, BRANCH, OTHER, {"events": []}, {"events": [], "timestamp": 5}])
def test_optional_members_can_be_omitted(facts: dict[str, Any]):
    (record,) = decode_records(records.encode(N1, from_json(N1, facts)))
    assert not record.problems
    shown = to_json(record)
    for name in ("events", "issue", "total", "va", "timestamp", "data_source", "context_el2"):
        assert shown.get(name) == facts.get(name)


def test_null_member_is_absent():
    assert from_json(N1, {**OTHER, "timestamp": None, "va": None}) == from_json(N1, OTHER)


def test_empty_lines_are_skipped(tmp_path: Path):
    assert encode("", json.dumps(OTHER), "", json.dumps(BRANCH), output=tmp_path / "out") == 0
    assert len((tmp_path / "out").read_bytes()) == 128


def test_standard_input_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(json.dumps(OTHER).encode())))
    output = tmp_path / "out"
    assert main(["encode", "--config", "minimal", "--engine", "reference", "-o", str(output)]) == 0
    assert len(output.read_bytes()) == 64


def test_rtl_engine_receives_the_same_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Another test compares the records, because that requires a compiler."""
    received: list[Sample] = []

    class Engine:
        def __init__(self, config: SPUConfig):
            assert config is N1

        def encode(self, samples: list[Sample]) -> list[bytes]:
            received.extend(samples)
            return [b"one", b"two"]

    monkeypatch.setattr("spurtle_sim.cosim.record_path.CompiledRecordPath", Engine)
    assert encode(json.dumps(LOAD), json.dumps(BRANCH), engine="rtl", output=tmp_path / "out") == 0
    assert received == [from_json(N1, LOAD), from_json(N1, BRANCH)]
    assert (tmp_path / "out").read_bytes() == b"onetwo"


IN_N1 = "in neoverse_n1, the record of an operation of kind "
KIND = "'other' or 'load' or 'store' or 'branch'"
EVENTS = "events must be a list of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12"
INVALID: list[tuple[Any, str]] = [
    (5, "a record must be a JSON object, not 5"),
    (changed(LOAD, events=None), "events is missing: it must be a list of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12"),
    (changed(LOAD, events=[1, 20]), EVENTS + ", but holds 20"),
    (changed(LOAD, events=[1, True]), EVENTS + ", but holds True"),
    (changed(LOAD, events=22), EVENTS + ", not 22"),
    (changed(LOAD, pc=None), "pc is missing: it must be a JSON object"),
    (changed(LOAD, pc="0x1000"), "pc must be a JSON object, not '0x1000'"),
    (changed(LOAD, pc__el=None), "pc.el is missing: it must be a number from 0 to 3"),
    (changed(LOAD, pc__el=4), "pc.el must be a number from 0 to 3, not 4"),
    (changed(LOAD, pc__nse=1), "pc.nse must be 0, not 1"),
    (changed(LOAD, pc__tag=1), "pc.tag cannot be encoded: an instruction address can hold address, el, ns, nse"),
    (changed(LOAD, pc__address=1 << 56), f"pc.address must be a number from 0 to 0xffffffffffffff, not {1 << 56}"),
    (changed(LOAD, pc__address="here"), "pc.address must be a number from 0 to 0xffffffffffffff, not 'here'"),
    (changed(LOAD, pc__address=1.5), "pc.address must be a number from 0 to 0xffffffffffffff, not 1.5"),
    (changed(LOAD, total=4096), "total must be a number from 0 to 4095, not 4096"),
    (changed(LOAD, issue=-1), "issue must be a number from 0 to 4095, not -1"),
    (changed(LOAD, issue=None), "issue is missing: it must be a number from 0 to 4095"),
    (changed(LOAD, total=True), "total must be a number from 0 to 4095, not True"),
    (changed(LOAD, translation=None), "translation is missing: it must be a number from 0 to 4095"),
    (changed(LOAD, data_source=256), "data_source must be a number from 0 to 255, not 256"),
    (changed(LOAD, context_el1=1 << 32), f"context_el1 must be a number from 0 to 4294967295, not {1 << 32}"),
    (changed(LOAD, timestamp=-1), "timestamp must be a number from 0 to 0xffffffffffffffff, not -1"),
    (changed(LOAD, pa__pat=3), "pa.pat must be 0, not 3"),
    (changed(LOAD, complete=False), "complete must be true, not false"),
    (changed(LOAD, operation__kind="jump"), f"operation.kind must be {KIND}, not 'jump'"),
    (changed(LOAD, operation__kind=None), f"operation.kind is missing: it must be {KIND}"),
    (changed(LOAD, operation__form="sve"), "operation.form must be 'general' or 'simd_fp' or 'extended', not 'sve'"),
    (changed(LOAD, operation__form="extended"), "operation.atomic, exclusive or acquire_release must be true"),
    (changed(LOAD, operation__atomic=True), "operation.atomic cannot be encoded: the operation of kind 'load'"),
    (changed(BRANCH, operation__conditional=1), "operation.conditional must be false or true, not 1"),
    (changed(BRANCH, operation__gcs=True), "operation.gcs must be false, not true"),
    (changed(BRANCH, operation__procedure="call"), "operation.procedure must be 'unknown', not 'call'"),
    (changed(OTHER, operation__fp=True), "operation.fp must be false, not true"),
    (changed(BRANCH, target=None), "target is missing: it must be a JSON object"),
    (changed(BRANCH, va=1), "va cannot be encoded: " + IN_N1 + "'branch' can hold "),
    (changed(OTHER, data_source=1), "data_source cannot be encoded: " + IN_N1 + "'other' can hold "),
    (changed(LOAD, va=None), "translation cannot be encoded: " + IN_N1 + "'load' can hold "),
    (changed(LOAD, events=[0, 1]), "va cannot be encoded: " + IN_N1 + "'load' that generated an exception can hold "),
    (changed(LOAD, alternate_issue=1), "alternate_issue cannot be encoded: "),
    (changed(LOAD, counters={"6": 1}), "counters cannot be encoded: "),
    (changed(LOAD, unknown=[]), "unknown cannot be encoded: "),
    (changed(LOAD, events=[1, 7]), "events cannot hold [7] for such an operation in a record of neoverse_n1"),
    (changed(OTHER, events=[1, 6]), "events cannot hold [6] for such an operation in a record of neoverse_n1"),
    (changed(OTHER, events=[1, 2, 12]), "events cannot hold [2, 12] for such an operation in a record of neoverse_n1"),
    (changed(LOAD, events=[2]), "pc cannot be encoded: the record of an operation that did not retire"),
    ({"events": [0]}, "events cannot hold [0] for such an operation in a record of neoverse_n1"),
]


def test_messages_name_invalid_members():
    wrong: dict[str, str] = {}
    for facts, expected in INVALID:
        with pytest.raises(UserError) as raised:
            from_json(N1, facts)
        if not str(raised.value).startswith(expected):
            wrong[expected] = str(raised.value)
    assert wrong == {}


def test_members_that_the_configuration_does_not_record_are_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    for facts, expected in (
        (
            changed(LOAD, data_source=None),
            "line 1: context_el2 cannot be encoded: in minimal, the record of ",
        ),
        (
            changed(LOAD, context_el2=None),
            "line 1: data_source cannot be encoded: in minimal, the record of ",
        ),
        (changed(OTHER, events=[1, 8]), "line 1: events must be a list of 0, 1, 2, 3, 4, 5, 6, 7, but holds 8"),
    ):
        assert encode(json.dumps(facts), config="minimal", output=tmp_path / "out") == 2
        assert capsys.readouterr().err.startswith(f"spurtle: {expected}")


# Forms that features add.

V1P4, OWN, EVERYTHING = CONFIGS["v1p4"], FOR_RECORDS["own"], FOR_RECORDS["everything"]
GUARDED_BRANCH: dict[str, Any] = {
    **BRANCH,
    "operation": {"kind": "branch", "indirect": True, "gcs": True},
    "events": [1, 2, 7],
    "va": "0x7fff0008",
    "translation": 2,
    "pa": {"address": "0x80000008", "ns": 1},
}
NO_ADDRESS = {name: value for name, value in PLAIN.items() if name not in ("va", "translation", "pa")}


FORMS_OF_FEATURES: list[tuple[str, dict[str, Any], int]] = [
    ("mops", of_form("load", "memory_copy"), 0x20),
    ("mops", of_form("store", "memory_copy"), 0x21),
    ("mops", of_form("store", "memory_set"), 0x25),
    ("gcs", of_form("load", "gcs", common=True), 0x44),
    ("gcs", of_form("store", "gcs", common=True), 0x45),
    ("gcs", of_form("store", "gcs"), 0x41),
    ("gcs", {**GUARDED_BRANCH, "operation": {**GUARDED_BRANCH["operation"], "procedure": "neither"}}, 0x1E),
    ("mte", of_form("load", "tag"), 0x14),
    ("mte", of_form("store", "tag"), 0x15),
    ("nv2", of_form("load", "nv2", NO_ADDRESS), 0x30),
    ("nv2", of_form("store", "nv2", NO_ADDRESS), 0x31),
    ("sve", of_form("load", "sve", bits=32), 0x08),
    ("sve", of_form("load", "sve", bits=2048, predicated=True), 0x6C),
    ("sve", of_form("store", "sve", bits=128, gather_scatter=True), 0xA9),
    ("sve", of_form("other", "sve", OTHER, bits=256, fp=True), 0x3A),
    ("sve", of_form("other", "sve", OTHER, bits=64, predicated=True), 0x1C),
    ("sme", of_form("load", "sve", bits="more"), 0x78),
    ("sme", of_form("other", "sve", OTHER, bits="more", predicated=True, fp=True), 0x7E),
    ("sme", of_form("other", "sme", OTHER, bits=128), 0x88),
    ("sme", of_form("other", "sme", OTHER, bits=262144, fp=True), 0xDE),
    ("sme", of_form("other", "sme", OTHER, bits="all"), 0xFC),
    ("fpf", of_form("other", "other", OTHER, fp=True), 0x02),
    ("fpf", of_form("other", "other", OTHER, simd=True, conditional=True), 0x05),
    ("crr", {**BRANCH, "operation": {"kind": "branch", "procedure": "call", "conditional": True}}, 0x09),
    ("crr", {**BRANCH, "operation": {"kind": "branch", "procedure": "return", "conditional": True}}, 0x11),
    ("version", of_form("load", "unspecified"), 0x10),
    ("version", of_form("store", "unspecified"), 0x11),
]
WITHOUT_FEATURE: dict[str, SPUConfig] = {
    **{
        feature: replace(V1P4, **{feature: False})  # pyright: ignore[reportArgumentType]
        for feature in ("mops", "gcs", "mte", "nv2", "rme")
    },
    # The features that require them are disabled too.
    "fpf": replace(V1P4, fpf=False, eft=False),
    "crr": replace(V1P4, crr=False, gcs=False),
    "sve": CONFIGS["neoverse_n1"],
    "sme": CONFIGS["arm_model"],
    "version": CONFIGS["neoverse_n1"],
}


@pytest.mark.parametrize("form", [{"form": "memory_copy"}, {"form": "gcs", "common": True}], ids=["copy", "switch"])
def test_sampled_store_of_two_accesses_can_have_events_of_the_load(form: dict[str, Any]):
    """The operations are Memory Copy and GCSSS2 (D17.6.4.3 and D17.6.4.5)."""
    facts = {**of_form("store", base=PLAIN, **form), "events": [1, 19]}
    assert to_json(decode_one(V1P4, facts))["events"] == [1, 19]


@pytest.mark.parametrize(("feature", "facts", "packet"), FORMS_OF_FEATURES)
def test_forms_of_features(feature: str, facts: dict[str, Any], packet: int):
    octets = records.encode(V1P4, from_json(V1P4, facts))
    (record,) = decode_records(octets)
    assert not record.problems
    assert record.operation_packet is not None
    assert record.operation_packet[1] == packet
    shown = to_json(record)
    assert shown["operation"].items() >= facts["operation"].items()
    for name in ("events", "va", "total"):
        assert shown.get(name) == facts.get(name)
    assert ("pa" in shown, "target" in shown) == ("pa" in facts, "target" in facts)
    with pytest.raises(UserError, match=r"^operation\.(form|gcs|bits|fp|simd|procedure) must be .*, not "):
        from_json(WITHOUT_FEATURE[feature], facts)


def test_predicate_of_a_load_requires_spe_v1p2():
    facts = of_form("load", "sve", bits=128, predicated=True)
    assert from_json(CONFIGS["arm_model"], facts)
    with pytest.raises(UserError, match=r"^operation\.predicated must be false, not true"):
        from_json(OWN, facts)
    assert from_json(OWN, changed(facts, operation__kind="store", issue=None))


def test_data_source_belongs_to_the_sampled_access():
    """The destination of a Memory Copy has no data source. A branch that loads from the GCS has one."""
    copied = {**of_form("load", "memory_copy"), "data_source": 0x1234}
    assert decode_one(V1P4, copied).data_source == 0x1234
    assert decode_one(V1P4, {**GUARDED_BRANCH, "data_source": 7}).data_source == 7
    with pytest.raises(UserError, match=r"data_source cannot be encoded: in v1p4, .* kind 'store' can hold "):
        from_json(V1P4, changed(copied, operation__kind="store"))


def test_memory_set_is_not_a_load():
    with pytest.raises(UserError, match=r"operation\.form must be 'general' or .*, not 'memory_set'"):
        from_json(V1P4, of_form("load", "memory_set"))


def test_address_of_a_system_register_in_memory_is_optional():
    """The permission depends on profiling at EL2 (D17.6.4.2)."""
    for facts in (PLAIN, NO_ADDRESS):
        record = decode_one(V1P4, of_form("load", "nv2", facts))
        assert to_json(record).get("va") == facts.get("va")


def test_realm_state_requires_rme():
    facts = changed(PLAIN, pc__nse=1, pa__nse=1)
    record = decode_one(V1P4, facts)
    assert record.pc == (0x1000, 1, 1, 1)
    assert record.pa == (0x80001234, 1, 1, 0, 0)
    for wrong, name in ((changed(facts, pc__nse=0), "pa"), (changed(facts, pa__nse=0), "pc")):
        with pytest.raises(UserError, match=rf"^{name}\.nse must be 0, not 1"):
            from_json(WITHOUT_FEATURE["rme"], wrong)


def test_physical_address_tags_require_mte():
    facts = changed(PLAIN, pa__ch=1, pa__pat=5)
    assert decode_one(V1P4, facts).pa == (0x80001234, 1, 0, 1, 5)
    with pytest.raises(UserError, match=r"^pa\.ch must be 0, not 1"):
        from_json(WITHOUT_FEATURE["mte"], facts)
    with pytest.raises(UserError, match=r"^pa\.pat must be 0, not 5"):
        from_json(V1P4, changed(facts, pa__ch=0))


def test_previous_branch_target():
    facts = {**BRANCH, "previous_target": {"address": "0x2000", "el": 2, "ns": 1, "nse": 1}}
    assert decode_one(V1P4, facts).previous_target == (0x2000, 2, 1, 1)
    assert decode_one(V1P4, BRANCH).previous_target is None
    other = {**OTHER, "previous_target": facts["previous_target"]}
    assert decode_one(EVERYTHING, other).previous_target == (0x2000, 2, 1, 1)
    for config, wrong in ((V1P4, other), (N1, facts), (EVERYTHING, changed(other, events=[0, 1]))):
        with pytest.raises(UserError, match=r"^previous_target cannot be encoded: in "):
            from_json(config, wrong)


def test_alternate_issue_latency_and_event_25_agree():
    facts = {**OTHER, "events": [1, 25], "alternate_issue": 65535}
    record = decode_one(V1P4, facts)
    assert (record.counters[4], record.events) == (65535, 1 << 25 | 2)
    with pytest.raises(UserError, match=r"^alternate_issue is missing: it must be a number from 0 to 65535"):
        from_json(V1P4, changed(facts, alternate_issue=None))
    with pytest.raises(UserError, match=r"^alternate_issue cannot be encoded: in v1p4, "):
        from_json(V1P4, changed(facts, events=[1]))


def test_alternate_issue_latency_without_smcu_event():
    """Event 25 is IMPLEMENTATION DEFINED, and independent of the latency."""
    facts = changed(OTHER, issue=None)
    for events in ([1], [1, 25]):
        for alternate in ({}, {"alternate_issue": 7}):
            shown = to_json(decode_one(OWN, {**facts, "events": events, **alternate}))
            assert (shown["events"], shown.get("alternate_issue")) == (events, alternate.get("alternate_issue"))


def test_implementation_defined_packets():
    facts = {**OTHER, "addresses": {"31": "0xfedcba9876543210"}, "counters": {"16": 65535}}
    shown = to_json(decode_one(EVERYTHING, facts))
    assert [shown[name] for name in ("addresses", "counters")] == [facts[name] for name in ("addresses", "counters")]
    assert "counters" not in to_json(decode_one(EVERYTHING, {**OTHER, "counters": {}}))
    for wrong, message in (
        ({**facts, "counters": {"6": 1}}, r"counters\.6 cannot be encoded: a record of everything can hold 16"),
        ({**facts, "counters": {"16": 65536}}, r"counters\.16 must be a number from 0 to 65535, not 65536"),
        ({**facts, "events": [0, 1]}, r"addresses cannot be encoded: in everything, .* that generated an exception"),
    ):
        with pytest.raises(UserError, match="^" + message):
            from_json(EVERYTHING, wrong)


def test_layout_without_issue_latency():
    with pytest.raises(UserError, match=r"^issue cannot be encoded: in own, "):
        from_json(OWN, OTHER)
    assert decode_one(OWN, changed(OTHER, issue=None)).issue is None


def test_branch_that_generated_an_exception_is_another_kind():
    """Such a branch is recorded as another kind of operation (D17.6.3)."""
    kinds = "'other' or 'load' or 'store'"
    with pytest.raises(UserError, match=rf"^operation\.kind must be {kinds}, not 'branch'"):
        from_json(N1, changed(BRANCH, events=[0, 1], target=None))


# Operations that can have each event, and features that define it (D18.2.6).


def defined(event: int, version: int, *, sve: bool, sme: bool, spe_sme: bool) -> bool:
    """Return whether the version and features define the event, or leave it IMPLEMENTATION DEFINED."""
    if event in (16, *range(32, 48)):
        return False
    if event == 11:
        return version >= PMSVer.SPE_V1P1
    if event in (17, 18):
        return sve or sme
    if event in range(19, 24):
        return version >= PMSVer.SPE_V1P4
    if event in (24, 25):
        return spe_sme or version < PMSVer.SPE_V1P4
    if event in range(26, 32):
        return version < PMSVer.SPE_V1P4
    return True


@pytest.mark.parametrize("version", PMSVer)
def test_every_event_requires_the_feature_that_defines_it(version: PMSVer):
    base = replace(CONFIGS["minimal"], version=version, fne=version >= PMSVer.SPE_V1P2, events_bytes=8)
    features: list[dict[str, bool]] = [{"sve": False, "sme": False, "spe_sme": False}]
    if version >= PMSVer.SPE_V1P1:
        features += [{**features[0], **added} for added in ({"sve": True}, {"sme": True})]
    if version >= PMSVer.SPE_V1P4:
        features += [{"sve": sve, "sme": True, "spe_sme": True} for sve in (False, True)]
    for implemented in features:
        allowed = {event for event in range(64) if defined(event, version, **implemented)}
        config = replace(base, events=frozenset(allowed), **implemented)  # pyright: ignore[reportArgumentType]
        for event in {*range(64)} - allowed:
            with pytest.raises(ValueError, match=r"^events must be defined in version "):
                replace(config, events=frozenset(allowed | {event}))
        check_events(config)


OPERATIONS: dict[str, dict[str, Any]] = {
    "other": OTHER,
    "load": changed(PLAIN, events=[1]),
    "store": changed(PLAIN, operation__kind="store", events=[1]),
    "branch": changed(BRANCH, events=[1]),
    "sve": of_form("other", "sve", OTHER, bits=128),
    "sve_load": of_form("load", "sve", changed(PLAIN, events=[1]), bits=128),
}


def possible(config: SPUConfig, event: int, operation: str) -> bool:
    """Return whether an operation of `OPERATIONS` can have the event."""
    if event in (2, 3, 4, 5, *range(8, 16)):
        return operation in ("load", "store", "sve_load")
    if event in range(19, 24):
        return operation in ("load", "sve_load")
    if event == 7:
        return operation == "branch"
    if event in (17, 18):
        # Without FEAT_SPE_SME the format of an SME operation is Other.
        return operation.startswith("sve") or (operation == "other" and config.sme and not config.spe_sme)
    return event != 6 or operation != "other"


def check_events(config: SPUConfig) -> None:
    """Check each event of the configuration with each operation, alone."""
    for name, operation in OPERATIONS.items():
        if name.startswith("sve") and not config.scalable:
            continue
        for event in sorted(config.events - {0, 1}):
            facts = {**operation, "events": [1, event]}
            if possible(config, event, name):
                shown = to_json(decode_one(config, facts))
                assert (name, shown["events"]) == (name, [1, event])
            else:
                with pytest.raises(UserError, match=rf"^events cannot hold \[{event}\] for such an operation"):
                    from_json(config, facts)


def test_error_names_the_line_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    output = tmp_path / "out"
    output.write_bytes(b"before")
    assert encode(json.dumps(OTHER), "", json.dumps(changed(OTHER, total=4096)), output=output) == 2
    assert capsys.readouterr().err == "spurtle: line 3: total must be a number from 0 to 4095, not 4096\n"
    assert encode(json.dumps(OTHER), "{", output=output) == 2
    assert capsys.readouterr().err.startswith("spurtle: line 2: must be a JSON object: ")
    assert output.read_bytes() == b"before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "out.jsonl"]


def test_unwritable_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    source = tmp_path / "in"
    source.write_text(json.dumps(OTHER))
    output = tmp_path / "no" / "out"
    assert main(["encode", "--config", "minimal", "--engine", "reference", str(source), "-o", str(output)]) == 2
    assert capsys.readouterr().err == f"spurtle: cannot write {output}: No such file or directory\n"


@pytest.mark.parametrize("option", [["--config", "neoverse"], ["--engine", "c"]])
def test_invalid_choice_is_named(option: list[str], capsys: pytest.CaptureFixture[str]):
    arguments = {"--config": "minimal", "--engine": "reference", "-o": "out", option[0]: option[1]}
    assert main(["encode", *(word for pair in arguments.items() for word in pair)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"spurtle: argument {option[0]}: invalid choice: '{option[1]}' (choose from")
    assert error.count("\n") == 1
