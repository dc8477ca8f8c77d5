"""Real records come back byte for byte: decode, then encode by the reference and by the RTL."""

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


@dataclass(frozen=True)
class Chip:
    """The vectors that one kind of chip wrote, the configuration that writes the same, how many records are whole."""

    config: SPUConfig
    groups: str
    size: int | None
    count: int

    def records(self) -> bytes:
        """The complete records, as their vectors stand in the file."""
        complete = [vector.data for vector in vectors(self.groups) if self._is_whole(vector)]
        assert len(complete) == self.count
        return b"".join(complete)

    def _is_whole(self, vector: Vector) -> bool:
        whole = vector.quality.startswith(("silicon-record", "FVP record")) or "clean" in vector.quality
        return whole and not vector.hand_edited and (self.size is None or len(vector.data) == self.size)


CHIPS = {
    # One more record of Neoverse N1 lost its padding before it was published.
    "neoverse_n1": Chip(CONFIGS["neoverse_n1"], "AB", size=64, count=4),
    "kunpeng_920": Chip(CONFIGS["kunpeng_920"], "DE", size=None, count=10),
    "hisilicon_mobile": Chip(CONFIGS["hisilicon_mobile"], "F", size=None, count=1),
}


def test_each_vector_names_its_source():
    entries = json.loads((DATA / "silicon.json").read_text())
    assert {entry["name"][0] for entry in entries} == set("ABCDEFG")
    assert [entry["name"] for entry in entries if not entry["source"] or not entry["hex"]] == []


def encode_again(octets: bytes, config: str, engine: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> bytes:
    """What `decode --json` says of the bytes, through `encode`."""
    (folder / "silicon").write_bytes(octets)
    assert main(["decode", "--json", str(folder / "silicon")]) == 0
    (folder / "json").write_text(capsys.readouterr().out)
    options = ["--config", config, "--engine", engine, str(folder / "json"), "-o", str(folder / "again")]
    assert main(["encode", *options]) == 0
    return (folder / "again").read_bytes()


@pytest.mark.parametrize("engine", ["reference", "rtl"])
@pytest.mark.parametrize("chip", CHIPS)
def test_records_come_back_byte_for_byte(chip: str, engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    octets = CHIPS[chip].records()
    assert encode_again(octets, chip, engine, tmp_path, capsys).hex(" ") == octets.hex(" ")


@pytest.mark.parametrize("chip", CHIPS)
def test_invariants(chip: str):
    """Record by record: the vectors are of different machines, and their clocks run apart."""
    octets, config = CHIPS[chip].records(), CHIPS[chip].config
    starts = [0, *(record.offset + record.size for record in decode_records(octets))]
    for start, end in pairwise(starts):
        assert Monitor(config).check(octets[start:end]) == []


def test_timestamps_of_one_buffer_do_not_decrease():
    (buffer,) = (vector.data for vector in vectors("F") if "clean" in vector.quality)
    assert Monitor(CONFIGS["hisilicon_mobile"]).check(buffer) == []


def test_the_quoted_end_of_a_real_record_comes_back():
    """Its first 19 bytes, PC and contexts, are not in the source: any will do."""
    config = CONFIGS["neoverse_n1"]
    (tail,) = (vector.data for vector in vectors("C") if vector.name == "C.tail")
    (record,) = decode_records(tail)
    facts = {**to_json(record), "pc": {"address": "0x1000", "el": 1, "ns": 1}}
    assert records.encode(config, from_json(config, json.loads(json.dumps(facts))))[19:] == tail


# Arm's FVP.


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
    rme=True,  # as two of its top bytes have NSE set
)
"""An early model's order, without ISSUE and without padding. No record has CONTEXT_EL1, whose field is a guess."""


@pytest.mark.parametrize("name", ["G.rec0", "G.rec1"])
def test_records_of_the_fvp_come_back_but_for_its_defect(name: str):
    """The model wrote bits [63:56] of the virtual address where NS, EL, NSE and four zero bits belong. Those four are
    what an SPU cannot write.
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
