"""Facts as JSON -> records: the inverse of `decode --json`, and every sentence that says why it cannot be."""

import json
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import samples
from silicon import others, public

from formal.features import FEATURES
from spurtle.config import CONFIGS, SPUConfig
from spurtle.layout import Packet
from spurtle_sim import decode
from spurtle_sim.cli import main
from spurtle_sim.errors import UserError
from spurtle_sim.records_json import from_json, to_json
from spurtle_sim.reference import records
from spurtle_sim.reference.records import Sample

N1 = CONFIGS["neoverse_n1"]

LOAD: dict[str, Any] = {
    "pc": {"address": "0x1000", "el": 1, "ns": 1},
    "operation": {"kind": "load", "form": "general"},
    "events": [1, 2, 4],
    "issue": 4,
    "total": 12,
    "va": "0xff00000000001234",
    "translation": 1,
    "pa": {"address": "0x80001234", "ns": 1},
    "data_source": 9,
    "context_el2": 3,
    "timestamp": 99,
}
BRANCH: dict[str, Any] = {
    "pc": {"address": "0x1000", "el": 0, "ns": 1},
    "operation": {"kind": "branch", "conditional": True},
    "events": [1, 6],
    "issue": 4,
    "total": 5,
    "target": {"address": "0x1004", "el": 0, "ns": 1},
}
OTHER: dict[str, Any] = {
    "pc": {"address": 0x1000, "el": 0, "ns": 1},
    "operation": {"kind": "other"},
    "events": [1],
    "issue": 1,
    "total": 2,
}


def changed(facts: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """`facts` with some replaced, or left out where the new value is None. `a__b` is member b of a."""
    result = {name: dict(value) if isinstance(value, dict) else value for name, value in facts.items()}
    for name, value in changes.items():
        outer, _, inner = name.partition("__")
        into, key = (result[outer], inner) if inner else (result, outer)
        if value is None:
            into.pop(key)
        else:
            into[key] = value
    return result


def decode_one(config: SPUConfig, facts: dict[str, Any]) -> decode.Record:
    (record,) = decode.records(records.encode(config, from_json(config, facts)))
    return record


def encode(*lines: str, config: str = "neoverse_n1", engine: str = "reference", output: Path) -> int:
    source = output.with_suffix(".jsonl")
    source.write_text("".join(line + "\n" for line in lines))
    return main(["encode", "--config", config, "--engine", engine, str(source), "-o", str(output)])


@pytest.mark.parametrize("config", CONFIGS.values(), ids=list(CONFIGS))
@given(data=st.data())
def test_what_was_decoded_encodes_to_the_same_bytes(config: SPUConfig, data: st.DataObject):
    octets = records.encode(config, data.draw(samples(config)))
    (record,) = decode.records(octets)
    facts = json.loads(json.dumps(to_json(record)))
    assert records.encode(config, from_json(config, facts)) == octets


@given(data=st.data())
def test_what_was_encoded_decodes_to_the_same_facts(data: st.DataObject):
    (record,) = decode.records(records.encode(N1, data.draw(samples(N1))))
    facts = to_json(record)
    (again,) = decode.records(records.encode(N1, from_json(N1, facts)))
    assert to_json(again) == facts


def test_real_records_come_back_byte_for_byte(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    vectors = [vector for vector in others("AB") if len(vector.data) == 64 and not vector.hand_edited]
    assert len(vectors) == 4
    octets = b"".join(vector.data for vector in vectors)
    (tmp_path / "silicon").write_bytes(octets)
    assert main(["decode", "--json", str(tmp_path / "silicon")]) == 0
    assert encode(*capsys.readouterr().out.splitlines(), output=tmp_path / "out") == 0
    assert (tmp_path / "out").read_bytes() == octets


def test_the_quoted_end_of_a_real_record_comes_back(tmp_path: Path):
    """Its first 19 bytes, PC and contexts, are not in the source: any will do."""
    (tail,) = (vector.data for vector in public() if vector.name == "C.tail")
    (record,) = decode.records(tail)
    facts = {**to_json(record), "pc": LOAD["pc"]}
    assert encode(json.dumps(facts), output=tmp_path / "out") == 0
    assert (tmp_path / "out").read_bytes()[19:] == tail


@pytest.mark.parametrize("facts", [LOAD, BRANCH, OTHER, {"events": []}, {"events": [], "timestamp": 5}])
def test_short_forms(facts: dict[str, Any]):
    (record,) = decode.records(records.encode(N1, from_json(N1, facts)))
    assert not record.problems
    shown = to_json(record)
    for name in ("events", "issue", "total", "va", "timestamp", "data_source", "context_el2"):
        assert shown.get(name) == facts.get(name)


def test_null_is_as_good_as_absent():
    assert from_json(N1, {**OTHER, "timestamp": None, "va": None}) == from_json(N1, OTHER)


def test_lines_without_anything_are_skipped(tmp_path: Path):
    assert encode("", json.dumps(OTHER), "", json.dumps(BRANCH), output=tmp_path / "out") == 0
    assert len((tmp_path / "out").read_bytes()) == 128


def test_standard_input_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(json.dumps(OTHER).encode())))
    output = tmp_path / "out"
    assert main(["encode", "--config", "minimal", "--engine", "reference", "-o", str(output)]) == 0
    assert len(output.read_bytes()) == 64


def test_the_rtl_gets_the_same_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """That it makes the same records of them is another test's matter: it takes a compiler."""
    got: list[Sample] = []

    class Engine:
        def __init__(self, config: SPUConfig):
            assert config is N1

        def encode(self, samples: list[Sample]) -> list[bytes]:
            got.extend(samples)
            return [b"one", b"two"]

    monkeypatch.setattr("spurtle_sim.engine.RecordEngine", Engine)
    assert encode(json.dumps(LOAD), json.dumps(BRANCH), engine="rtl", output=tmp_path / "out") == 0
    assert got == [from_json(N1, LOAD), from_json(N1, BRANCH)]
    assert (tmp_path / "out").read_bytes() == b"onetwo"


IN = "in neoverse_n1, the record of an operation of kind "
KIND = "'other' or 'load' or 'store' or 'branch'"
EVENTS = "events must be a list of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12"
BAD: list[tuple[Any, str]] = [
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
    (changed(BRANCH, va=1), "va cannot be encoded: " + IN + "'branch' can hold "),
    (changed(OTHER, data_source=1), "data_source cannot be encoded: " + IN + "'other' can hold "),
    (changed(LOAD, va=None), "translation cannot be encoded: " + IN + "'load' can hold "),
    (changed(LOAD, events=[0, 1]), "va cannot be encoded: " + IN + "'load' that generated an exception can hold "),
    (changed(LOAD, alternate_issue=1), "alternate_issue cannot be encoded: "),
    (changed(LOAD, counters={"6": 1}), "counters cannot be encoded: "),
    (changed(LOAD, unknown=[]), "unknown cannot be encoded: "),
    (changed(LOAD, events=[1, 7]), "events cannot hold [7] for such an operation in a record of neoverse_n1"),
    (changed(OTHER, events=[1, 6]), "events cannot hold [6] for such an operation in a record of neoverse_n1"),
    (changed(OTHER, events=[1, 2, 12]), "events cannot hold [2, 12] for such an operation in a record of neoverse_n1"),
    (changed(LOAD, events=[2]), "pc cannot be encoded: the record of an operation that did not retire"),
    ({"events": [0]}, "events cannot hold [0] for such an operation in a record of neoverse_n1"),
]


def test_bad_facts_are_named():
    wrong: dict[str, str] = {}
    for facts, expected in BAD:
        with pytest.raises(UserError) as raised:
            from_json(N1, facts)
        if not str(raised.value).startswith(expected):
            wrong[expected] = str(raised.value)
    assert wrong == {}


def test_facts_that_another_configuration_holds_are_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
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


# The packets of features that few configurations have.
GUARDED_BRANCH: dict[str, Any] = {
    **BRANCH,
    "operation": {"kind": "branch", "indirect": True, "gcs": True},
    "events": [1, 2, 7],
    "va": "0x7fff0008",
    "translation": 2,
    "pa": {"address": "0x80000008", "ns": 1},
}
PLAIN = {name: value for name, value in LOAD.items() if name not in ("data_source", "context_el2")}


@pytest.mark.parametrize(
    ("feature", "facts", "packet"),
    [
        ("mops", changed(PLAIN, operation={"kind": "load", "form": "memory_copy"}), 0x20),
        ("mops", changed(PLAIN, operation={"kind": "store", "form": "memory_copy"}), 0x21),
        ("mops", changed(PLAIN, operation={"kind": "store", "form": "memory_set"}), 0x25),
        ("gcs", changed(PLAIN, operation={"kind": "load", "form": "gcs", "common": True}), 0x44),
        ("gcs", changed(PLAIN, operation={"kind": "store", "form": "gcs", "common": True}), 0x45),
        ("gcs", changed(PLAIN, operation={"kind": "store", "form": "gcs"}), 0x41),
        ("gcs", GUARDED_BRANCH, 0x06),
    ],
)
def test_forms_of_mops_and_gcs(feature: str, facts: dict[str, Any], packet: int):
    (config,) = (config for config in FEATURES.values() if getattr(config, feature))
    octets = records.encode(config, from_json(config, facts))
    at = config.packet_offsets[Packet.OPERATION]
    assert octets[at + 1] == packet
    (record,) = decode.records(octets)
    shown = to_json(record)
    assert not record.problems
    assert shown["operation"].items() >= facts["operation"].items()
    assert [shown.get(name) for name in ("va", "events")] == [facts[name] for name in ("va", "events")]
    assert (shown["pa"]["address"], "target" in shown) == (facts["pa"]["address"], "target" in facts)
    for other in FEATURES.values():
        if other is not config:
            with pytest.raises(UserError, match=r"^operation\.(form|gcs) must be .*, not ('memory_|'gcs'|true)"):
                from_json(other, facts)


def test_the_source_of_data_is_of_the_access_that_is_sampled():
    """The destination of a copy is stored to. Of a branch to the Guarded control stack it tells that this loads."""
    config = CONFIGS["v1p4"]
    copied = changed(PLAIN, operation={"kind": "load", "form": "memory_copy"}, data_source=0x1234)
    assert decode_one(config, copied).data_source == 0x1234
    assert decode_one(config, {**GUARDED_BRANCH, "data_source": 7}).data_source == 7
    with pytest.raises(UserError, match=r"data_source cannot be encoded: in v1p4, .* kind 'store' can hold "):
        from_json(config, changed(copied, operation__kind="store"))


def test_a_memory_set_loads_nothing():
    with pytest.raises(UserError, match=r"operation\.form must be 'general' or .*, not 'memory_set'"):
        from_json(CONFIGS["v1p4"], changed(PLAIN, operation={"kind": "load", "form": "memory_set"}))


def test_an_error_names_the_line_and_nothing_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    output = tmp_path / "out"
    output.write_bytes(b"before")
    assert encode(json.dumps(OTHER), "", json.dumps(changed(OTHER, total=4096)), output=output) == 2
    assert capsys.readouterr().err == "spurtle: line 3: total must be a number from 0 to 4095, not 4096\n"
    assert encode(json.dumps(OTHER), "{", output=output) == 2
    assert capsys.readouterr().err.startswith("spurtle: line 2: must be a JSON object: ")
    assert output.read_bytes() == b"before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "out.jsonl"]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    source = tmp_path / "in"
    source.write_text(json.dumps(OTHER))
    output = tmp_path / "no" / "out"
    assert main(["encode", "--config", "minimal", "--engine", "reference", str(source), "-o", str(output)]) == 2
    assert capsys.readouterr().err == f"spurtle: cannot write {output}: No such file or directory\n"


@pytest.mark.parametrize("option", [["--config", "neoverse"], ["--engine", "c"]])
def test_a_choice_that_is_none_is_named(option: list[str], capsys: pytest.CaptureFixture[str]):
    arguments = {"--config": "minimal", "--engine": "reference", "-o": "out", option[0]: option[1]}
    assert main(["encode", *(word for pair in arguments.items() for word in pair)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"spurtle: argument {option[0]}: invalid choice: '{option[1]}' (choose from")
    assert error.count("\n") == 1
