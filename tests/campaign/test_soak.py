"""Comparison of random records, as in `make soak`: correct records, coverage of the samples, and wrong records."""

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from random import Random

import pytest

from campaign import soak
from campaign.expected_records import expected_record
from campaign.random_samples import random_samples
from campaign.soak import CHUNK, MAX_SHOWN, RECORDS, differences, main
from spurtle.config import CONFIGS
from spurtle_sim.model import records
from spurtle_sim.model.operation import Sample
from spurtle_sim.records.decode import PacketKind, decode_packets
from spurtle_sim.records.operation_type import forms
from tests.support.seeds import SEED
from tests.support.tiers import configurations, tiers

ENOUGH = 10_000
"""Number of random samples that contain every form, attribute and event."""


@pytest.mark.parametrize("name", configurations([*CONFIGS]))
@pytest.mark.parametrize("count", tiers(fast=[1_000], full=[10_000], long=[RECORDS]))
def test_records_match_the_samples(name: str, count: int, record_property: Callable[[str, object], None]):
    for chunk, first in enumerate(range(0, count, CHUNK)):
        found = list(islice(differences(name, SEED, chunk, min(CHUNK, count - first)), MAX_SHOWN))
        assert not found, "\n".join(found)
    record_property("records", count)


@pytest.mark.parametrize("name", configurations([*CONFIGS]))
def test_samples_have_every_form_attribute_and_event(name: str):
    config = CONFIGS[name]
    samples = random_samples(config, (SEED, 0), ENOUGH)
    contents = [expected_record(config, sample) for sample in samples]

    packets = [{packet for packet, _ in records.packets(config, sample)} for sample in samples]
    assert set().union(*packets) == {*config.layout.packets}

    operations = [content["operation"] for content in contents if content["operation"]]
    for kind in ("other", "load", "store", "branch"):
        found = {operation.form for operation in operations if operation.kind == kind}
        # A memory copy has a load and a store, a memory set only a store.
        assert found == {*forms(config, kind)}, kind
    values: dict[tuple[str, str], set[object]] = {}
    for operation in operations:
        for attribute, value in operation.attributes.items():
            values.setdefault((operation.form, attribute), set()).add(value)
    vector_bits = {32 << doublings for doublings in range(7)} | ({"more"} if config.spe_sme else set())
    optional = {("other", "fp"): config.fpf, ("other", "simd"): config.fpf, ("branch", "gcs"): config.gcs}
    for (form, attribute), found in values.items():
        if attribute == "procedure":
            assert found == ({"call", "return", "neither"} if config.crr else {"unknown"})
        elif attribute == "bits":
            assert found == ({128 << d for d in range(12)} | {"all"} if form == "sme" else vector_bits)
        else:
            assert found == ({0, 1} if optional.get((form, attribute), True) else {0}), (form, attribute)

    retired = [content["events"] for content in contents if content["events"]]
    for event in config.events:
        bits = {value >> event & 1 for value in retired}
        assert bits == ({1} if event == 1 else {0, 1}), event
    largest = (1 << config.counter_bits) - 1
    assert any(content["counters"].get(0) == largest for content in contents)


class FaultyRecordPath:
    """Record path that applies `fault` to the records of the reference model."""

    def __init__(self, name: str, fault):
        self._config, self._fault = CONFIGS[name], fault

    def encode(self, samples: Sequence[Sample]) -> list[bytes]:
        return self._fault([records.encode(self._config, sample) for sample in samples])


@pytest.mark.parametrize("name", configurations([*CONFIGS]))
@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (lambda octets: octets[:5] + octets[6:], "the number of records must be 20, not 19"),
        (lambda octets: octets[:5] + octets[4:], "the number of records must be 20, not 21"),
        (lambda octets: [*octets[:5], octets[6], octets[5], *octets[7:]], "sample 5:"),
        (lambda octets: [*octets[:-1], octets[-1][:-1]], "sample 19:"),
    ],
    ids=["missing", "duplicate", "exchanged", "truncated"],
)
def test_faulty_records_are_found(monkeypatch: pytest.MonkeyPatch, name: str, fault, message: str):
    monkeypatch.setattr(soak, "_record_path", lambda name: FaultyRecordPath(name, fault))
    assert message in "\n".join(differences(name, SEED, 0, 20))


@pytest.mark.parametrize("name", configurations([*CONFIGS]))
def test_wrong_bit_is_found_even_if_the_reference_model_has_it(monkeypatch: pytest.MonkeyPatch, name: str):
    """SZ of an Events or Data Source packet is excluded: if the upper bytes are zero, the packet has the same value."""
    config, random = CONFIGS[name], Random(SEED)
    encode = records.encode
    wrong: list[bytes] = []
    monkeypatch.setattr(soak, "_record_path", lambda name: FaultyRecordPath(name, lambda octets: octets))
    monkeypatch.setattr(records, "encode", lambda config, sample: wrong[-1])
    for chunk in range(200):
        (sample,) = random_samples(config, (SEED, chunk), 1)
        octets = bytearray(encode(config, sample))
        sized = [
            packet for packet in decode_packets(octets) if packet.kind in (PacketKind.EVENTS, PacketKind.DATA_SOURCE)
        ]
        hidden = {8 * packet.offset + bit for packet in sized for bit in (4, 5)}
        bit = random.choice([bit for bit in range(8 * len(octets)) if bit not in hidden])
        octets[bit // 8] ^= 1 << bit % 8
        wrong.append(bytes(octets))
        assert list(differences(name, SEED, chunk, 1)), (sample, bit, octets.hex(" "))


# The command.


@pytest.mark.full
def test_main_compares_in_chunks_and_reports(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(soak, "REPORT", tmp_path / "report.json")
    assert main(["--config", "kunpeng_920", "--records", "5001", "--seed", "3"]) == 0
    first, result, last = capsys.readouterr().out.splitlines()
    assert first == "5,001 records of each configuration, SEED=3"
    assert result.startswith("kunpeng_920: 5,001 records, ")
    assert result.endswith(": correct")
    assert last.startswith("1 of 1 configuration passed; report: ")
    (report,) = json.loads((tmp_path / "report.json").read_text())
    assert (report["config"], report["records"], report["seed"], report["differences"]) == ("kunpeng_920", 5001, 3, [])


def test_main_shows_the_first_differences(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """The workers are threads here, so that they use the faulty record path."""
    monkeypatch.setattr(soak, "REPORT", tmp_path / "report.json")
    monkeypatch.setattr(soak, "CHUNK", 10)
    monkeypatch.setattr(
        soak, "_record_path", lambda name: FaultyRecordPath(name, lambda octets: octets[1:] + octets[:1])
    )
    monkeypatch.setattr(soak, "ProcessPoolExecutor", lambda workers, _context, **_: ThreadPoolExecutor(workers))
    assert main(["--records", "25", "--seed", "3"]) == 1
    out = capsys.readouterr().out
    assert "minimal: 10 records, " in out
    assert "WRONG" in out
    assert out.count("\nsample ") == 3 * len(CONFIGS)
    assert "\nrepeat: make soak CONFIG=v1p4 RECORDS=10 SEED=3\n" in out
    assert out.splitlines()[-1].startswith(f"0 of {len(CONFIGS)} configurations passed; report: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--config", "none"], "CONFIG must be minimal, "),
        (["--records", "0"], "RECORDS must be at least 1, not 0"),
        (["--seed", "-1"], "SEED must be at least 0, not -1"),
    ],
)
def test_main_refuses_invalid_arguments(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]):
    assert main(arguments) == 2
    assert f"soak: {message}" in capsys.readouterr().err
