"""Records of real silicon, decoded and encoded again by the reference model and by the RTL, byte for byte."""

import json
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from spurtle.arch import ADDRESS_BITS, AddressIndex, Header, PMSVer
from spurtle.config import CONFIGS, SPUConfig
from spurtle.config.record_layouts import Packet, RecordField, RecordLayout
from spurtle_sim.cli import main
from spurtle_sim.model import records
from spurtle_sim.records.checks import Monitor
from spurtle_sim.records.decode import PacketKind, decode_packets, decode_records
from spurtle_sim.records.json_object import to_json
from spurtle_sim.records.json_sample import from_json
from tests.support.paths import DATA
from tests.support.silicon import Vector, vectors
from tests.support.tiers import tiers


@dataclass(frozen=True)
class Chip:
    """Vectors from one kind of chip, the configuration that writes the same bytes, and the number of records."""

    config: SPUConfig
    groups: str
    size: int | None
    count: int

    def records(self) -> bytes:
        """Return the complete records, in the order of the file."""
        complete = [vector.data for vector in vectors(self.groups) if self._is_complete(vector)]
        assert len(complete) == self.count
        return b"".join(complete)

    def _is_complete(self, vector: Vector) -> bool:
        complete = vector.quality.startswith(("silicon-record", "FVP record")) or "clean" in vector.quality
        return complete and not vector.hand_edited and (self.size is None or len(vector.data) == self.size)


CHIPS = {
    # Another record of Neoverse N1 was published without its padding.
    "neoverse_n1": Chip(CONFIGS["neoverse_n1"], "AB", size=64, count=4),
    "kunpeng_920": Chip(CONFIGS["kunpeng_920"], "DE", size=None, count=10),
    "hisilicon_mobile": Chip(CONFIGS["hisilicon_mobile"], "F", size=None, count=1),
}


def test_each_vector_names_its_source():
    entries = json.loads((DATA / "silicon.json").read_text())
    assert {entry["name"][0] for entry in entries} == set("ABCDEFG")
    assert [entry["name"] for entry in entries if not entry["source"] or not entry["hex"]] == []


def encode_again(octets: bytes, config: str, engine: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> bytes:
    """Return the bytes that `encode` writes for the output of `decode --json`."""
    (folder / "silicon").write_bytes(octets)
    assert main(["decode", "--json", str(folder / "silicon")]) == 0
    (folder / "json").write_text(capsys.readouterr().out)
    options = ["--config", config, "--engine", engine, str(folder / "json"), "-o", str(folder / "again")]
    assert main(["encode", *options]) == 0
    return (folder / "again").read_bytes()


@pytest.mark.parametrize("engine", tiers(fast=["reference"], full=["rtl"]))
@pytest.mark.parametrize("chip", CHIPS)
def test_records_are_encoded_byte_for_byte(chip: str, engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    octets = CHIPS[chip].records()
    assert encode_again(octets, chip, engine, tmp_path, capsys).hex(" ") == octets.hex(" ")


@pytest.mark.parametrize("chip", CHIPS)
def test_records_have_no_violations(chip: str):
    """Each record is checked alone, because the vectors are from machines with different clocks."""
    octets, config = CHIPS[chip].records(), CHIPS[chip].config
    starts = [0, *(record.offset + record.size for record in decode_records(octets))]
    for start, end in pairwise(starts):
        assert Monitor(config).check(octets[start:end]) == []


def test_timestamps_of_one_buffer_do_not_decrease():
    (buffer,) = (vector.data for vector in vectors("F") if "clean" in vector.quality)
    assert Monitor(CONFIGS["hisilicon_mobile"]).check(buffer) == []


def test_quoted_end_of_a_record_is_encoded_byte_for_byte():
    """The source does not quote the first 19 bytes, PC and contexts: arbitrary values replace them."""
    config = CONFIGS["neoverse_n1"]
    (tail,) = (vector.data for vector in vectors("C") if vector.name == "C.tail")
    (record,) = decode_records(tail)
    facts = {**to_json(record), "pc": {"address": "0x1000", "el": 1, "ns": 1}}
    assert records.encode(config, from_json(config, json.loads(json.dumps(facts))))[19:] == tail


# Arm FVP.


def _elastic(*runs: tuple[Packet, ...]) -> RecordField:
    return RecordField(runs, elastic=True)


FVP = SPUConfig(
    name="fvp",
    layout=RecordLayout(
        (
            _elastic((Packet.OPERATION,)),
            _elastic((Packet.VA,), (Packet.TARGET,)),
            _elastic((Packet.PA,)),
            _elastic((Packet.TRANSLATION,)),
            RecordField(((Packet.EVENTS,),)),
            _elastic((Packet.PC,)),
            _elastic((Packet.TOTAL,)),
            _elastic((Packet.CONTEXT_EL1,)),
            _elastic((Packet.CONTEXT_EL2,)),
        ),
        align=1,
        max_size=64,
    ),
    el2=True,
    el3=True,
    sel2=True,
    version=PMSVer.SPE_V1P2,
    fne=True,
    rme=True,  # two of its top bytes have NSE set
)
"""Record layout of an early model, without ISSUE and without padding.

No record has CONTEXT_EL1, so the position of its field is a guess.
"""


@pytest.mark.parametrize("name", ["G.rec0", "G.rec1"])
def test_records_of_the_fvp_are_encoded_except_for_its_defect(name: str):
    """The model wrote bits [63:56] of the virtual address in place of NS, EL, NSE and four reserved bits.

    The four reserved bits are the only difference, because an SPU writes them as zero.
    """
    (data,) = (vector.data for vector in vectors("G") if vector.name == name)
    (record,) = decode_records(data)
    assert Monitor(FVP, core=False).check(data) == [
        f"record at 0x0: bits [59:56] of the Address packet with INDEX {index:d} are not zero"
        for index in (AddressIndex.PC, AddressIndex.TARGET)
        if record.addresses.get(index, 0) >> ADDRESS_BITS & 0b1111
    ]
    repaired = bytearray(data)
    for packet in decode_packets(data):
        if packet.kind is PacketKind.ADDRESS and packet.index in (AddressIndex.PC, AddressIndex.TARGET):
            assert data[packet.offset] == Header.ADDRESS | packet.index
            repaired[packet.offset + 8] &= 0b1111_0000
    assert records.encode(FVP, from_json(FVP, to_json(record))).hex(" ") == repaired.hex(" ")
