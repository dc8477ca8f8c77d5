"""Decoder of records: data of real silicon, and every packet of D18.2."""

import json
import subprocess
import sys
from io import BytesIO, TextIOWrapper
from itertools import product
from pathlib import Path

import pytest

from spurtle.config import CONFIGS
from spurtle_sim.cli import main
from spurtle_sim.records.decode import DecodedPacket, PacketKind, decode_packets, decode_records
from spurtle_sim.records.json_object import to_json
from spurtle_sim.records.operation_type import OperationType, forms, operation_type
from spurtle_sim.records.text import describe
from tests.support.example_records import RECORD
from tests.support.silicon import Vector, merge_padding, vectors


def text(data: bytes) -> list[str]:
    return [describe(packet) for packet in decode_packets(data)]


def words(octets: str) -> str:
    (described,) = text(bytes.fromhex(octets))
    return described


# Real silicon.


NOT_MEASURED = {"G.ase": "OTHER ASE FP", "G.gcs": "LD GCS COMM"}
"""Text of the first packet of vectors that the measured version of perf does not support."""


@pytest.mark.parametrize("vector", vectors("ABCDEG"), ids=lambda vector: vector.name)
def test_packets_of_silicon(vector: Vector):
    # perf does not show NSE. Two records of an early FVP model have it set, because of a defect of the model.
    found = merge_padding([line.removesuffix(" nse=1") for line in text(vector.data)])
    if vector.expect:
        assert found == merge_padding(vector.expect)
    else:
        assert found[0] == NOT_MEASURED[vector.name]


def test_records_of_hisilicon_mobile():
    (clean,) = (vector for vector in vectors("F") if not vector.hand_edited)
    found = list(decode_records(clean.data))
    assert [(record.offset, record.size, record.complete, record.problems) for record in found] == [
        (48 * number, 48, True, ()) for number in range(4)
    ]
    assert [record.operation.kind for record in found if record.operation] == ["load", "store", "branch", "branch"]


def test_hand_edited_data_is_decoded_as_far_as_possible():
    complete = {"F.hiperf1": 29, "F.hiperf2": 2}
    for vector in vectors("F"):
        if vector.hand_edited:
            found = list(decode_records(vector.data))
            assert any(record.problems for record in found)
            assert sum(record.complete for record in found) == complete[vector.name]


# Every packet of D18.2, in the words of perf.


WORDS = {
    "00": "PAD",
    "01": "END",
    "71 ff ff ff ff ff ff ff ff": "TS 18446744073709551615",
    "42 02": "EV RETIRED",
    "62 00 00 00 03": "EV STREAMING-SVE SMCU",
    "72 00 00 00 00 01 00 01 80": "EV IMPDEF:32 IMPDEF:48 IMPDEF:63",
    "43 0c": "DATA-SOURCE 12",
    "53 0c 01": "DATA-SOURCE 268",
    "64 01 00 00 00": "CONTEXT 0x1 el1",
    "65 ff ff ff ff": "CONTEXT 0xffffffff el2",
    "98 ff 0f": "LAT 4095 TOT",
    "99 01 00": "LAT 1 ISSUE",
    "9a 02 00": "LAT 2 XLAT",
    "9c 03 00": "LAT 3 (4)",
    "9e 01 01": "LAT 257 (6)",
    "22 9a 04 00": "LAT 4 (18)",
    "b0 01 02 03 04 05 06 07 a0": "PC 0x7060504030201 el1 ns=1",
    "b0 01 02 03 04 05 06 07 b0": "PC 0x7060504030201 el1 ns=1 nse=1",
    "b1 01 02 03 04 05 06 07 00": "TGT 0x7060504030201 el0 ns=0",
    "b2 01 02 03 04 05 06 07 cb": "VA 0xcb07060504030201",
    "b3 01 02 03 04 05 06 07 cb": "PA 0x7060504030201 ns=1 ch=1 pat=b",
    "b3 01 02 03 04 05 06 07 90": "PA 0x7060504030201 ns=1 ch=0 pat=0 nse=1",
    "b4 01 02 03 04 05 06 07 c0": "PBT 0x7060504030201 el2 ns=1",
    "b6 01 02 03 04 05 06 07 c0": "ADDR 0xc007060504030201 (6)",
    "23 b7 01 02 03 04 05 06 07 c0": "ADDR 0xc007060504030201 (31)",
    "20 b0 01 02 03 04 05 06 07 a0": "PC 0x7060504030201 el1 ns=1",  # extended although INDEX is below 8
    "48 00": "OTHER INSN-OTHER",
    "48 01": "OTHER COND-SELECT",
    "48 06": "OTHER ASE FP",
    "48 07": "OTHER ASE FP COND-SELECT",
    "48 08": "SVE-OTHER EVLEN 32",
    "48 2a": "SVE-OTHER EVLEN 128 FP",
    "48 6e": "SVE-OTHER EVLEN 2048 FP PRED",
    "48 88": "SME-OTHER ETS 128",
    "48 8c": "SME-OTHER ETS 256",
    "48 da": "SME-OTHER ETS 131072 FP",
    "48 fe": "SME-OTHER ETS all FP",
    "49 00": "LD GP-REG",
    "49 05": "ST SIMD-FP",
    "49 10": "LD UNSPEC-REG",
    "49 15": "ST MTE-TAG",
    "49 30": "LD NV-SYSREG",
    "49 06": "LD AT",
    "49 0b": "ST EXCL",
    "49 12": "LD AR",
    "49 1e": "LD AT EXCL AR",
    "49 08": "LD EVLEN 32",
    "49 ad": "ST EVLEN 128 PRED SG",
    "49 20": "LD MEMCPY",
    "49 25": "ST MEMSET",
    "49 40": "LD GCS",
    "49 45": "ST GCS COMM",
    "4a 00": "B",
    "4a 01": "B COND",
    "4a 03": "B COND IND",
    "4a 06": "B IND GCS",
    "4a 08": "B CR-BL",
    "4a 12": "B IND CR-RET",
    "4a 1b": "B COND IND CR-NON-BL-RET",
    "4b 00": "OP-TYPE 0x0 (3)",
    "4a 20": "OP-TYPE 0x20 (2)",
    "90 00 00": "UNKNOWN 0x90",
    "24 b0 00 00 00 00 00 00 00 00": "UNKNOWN 0x24",
    "02": "UNKNOWN 0x02",
}


def test_text_of_packets():
    assert {octets: words(octets) for octets in WORDS} == WORDS


def test_text_of_events():
    # fmt: off
    expected = [
        "EXCEPTION-GEN", "RETIRED", "L1D-ACCESS", "L1D-REFILL", "TLB-ACCESS", "TLB-REFILL", "NOT-TAKEN", "MISPRED",
        "LLC-ACCESS", "LLC-REFILL", "REMOTE-ACCESS", "ALIGNMENT", "IMPDEF:12", "IMPDEF:13", "IMPDEF:14", "IMPDEF:15",
        "TXN", "SVE-PARTIAL-PRED", "SVE-EMPTY-PRED", "L2D-ACCESS", "L2D-MISS", "HITM", "LFB", "SNOOPED",
        "STREAMING-SVE", "SMCU",
    ]
    # fmt: on
    for size, header in ((1, "42"), (2, "52"), (4, "62"), (8, "72")):
        shown = expected[: 8 * size]
        mask = (1 << len(shown)) - 1
        assert words(header + mask.to_bytes(size, "little").hex()) == " ".join(("EV", *shown))


# The inverse of D18.2.7: from the fields of each format to its payload.


def operation_types() -> dict[tuple[int, int], OperationType]:
    """Return the decoded packet for each CLASS and payload that is not reserved."""
    table: dict[tuple[int, int], OperationType] = {}

    def put(operation_class: int, payload: int, kind: str, form: str, **attributes: bool | int | str) -> None:
        assert (operation_class, payload) not in table
        table[operation_class, payload] = OperationType(kind, form, attributes)

    flag = (False, True)
    evl = (32, 64, 128, 256, 512, 1024, 2048, "more")
    for cond, fp, ase in product(flag, repeat=3):
        put(0, ase << 2 | fp << 1 | cond, "other", "other", conditional=cond, fp=fp, simd=ase)
    for (code, bits), pred, fp in product(enumerate(evl), flag, flag):
        put(0, code << 4 | 1 << 3 | pred << 2 | fp << 1, "other", "sve", bits=bits, fp=fp, predicated=pred)
    ets = {**{code: 128 << code for code in range(0b1100)}, 0b1111: "all"}
    for (code, bits), fp in product(ets.items(), flag):
        put(0, 1 << 7 | code >> 1 << 4 | 1 << 3 | (code & 1) << 2 | fp << 1, "other", "sme", bits=bits, fp=fp)

    for ldst, kind in enumerate(("load", "store")):
        for subclass, form in (
            (0b0000_0000, "general"),
            (0b0000_0100, "simd_fp"),
            (0b0001_0000, "unspecified"),
            (0b0001_0100, "tag"),
            (0b0011_0000, "nv2"),
            (0b0010_0000, "memory_copy"),
        ):
            put(1, subclass | ldst, kind, form)
        for ar, excl, at in product(flag, repeat=3):
            payload = ar << 4 | excl << 3 | at << 2 | 1 << 1 | ldst
            put(1, payload, kind, "extended", atomic=at, exclusive=excl, acquire_release=ar)
        for sg, (code, bits), pred in product(flag, enumerate(evl), flag):
            payload = sg << 7 | code << 4 | 1 << 3 | pred << 2 | ldst
            put(1, payload, kind, "sve", bits=bits, predicated=pred, gather_scatter=sg)
        for comm in flag:
            put(1, 1 << 6 | comm << 2 | ldst, kind, "gcs", common=comm)
    put(1, 0b0010_0101, "store", "memory_set")

    for (code, cr), gcs, ind, cond in product(enumerate(("unknown", "call", "return", "neither")), flag, flag, flag):
        payload = code << 3 | gcs << 2 | ind << 1 | cond
        put(2, payload, "branch", "branch", conditional=cond, indirect=ind, gcs=gcs, procedure=cr)
    return table


def test_every_operation_type():
    table = operation_types()
    assert len(table) == (8 + 32 + 26) + (2 * (6 + 8 + 32 + 2) + 1) + 32
    for operation_class, payload in product(range(4), range(256)):
        reserved = OperationType("reserved", "", {"class": operation_class, "payload": payload})
        assert operation_type(operation_class, payload) == table.get((operation_class, payload), reserved)


def test_v1p4_defines_every_form():
    defined = {(kind, form) for kind in ("other", "load", "store", "branch") for form in forms(CONFIGS["v1p4"], kind)}
    assert defined == {(operation.kind, operation.form) for operation in operation_types().values()}


def headers() -> dict[int, tuple[PacketKind, int, int]]:
    """Return kind, INDEX and payload size of every packet that D18.2 lists in its short format, by its header."""
    return {
        0x00: (PacketKind.PADDING, 0, 0),
        0x01: (PacketKind.END, 0, 0),
        0b01_11_0001: (PacketKind.TIMESTAMP, 0, 8),
        **{0b01_00_0010 | size << 4: (PacketKind.EVENTS, 0, 1 << size) for size in range(4)},
        **{0b01_00_0011 | size << 4: (PacketKind.DATA_SOURCE, 0, 1 << size) for size in range(2)},
        **{0b01_10_0100 | index: (PacketKind.CONTEXT, index, 4) for index in range(4)},
        **{0b01_00_1000 | index: (PacketKind.OPERATION, index, 1) for index in range(4)},
        **{0b10_11_0000 | index: (PacketKind.ADDRESS, index, 8) for index in range(8)},
        **{0b10_01_1000 | index: (PacketKind.COUNTER, index, 2) for index in range(8)},
    }


PAYLOAD = bytes.fromhex("81 82 83 84 85 86 87 88")


def test_every_header_byte():
    """Bits [5:4] of an unlisted header are the payload size. Headers below 0x20 have no payload (D18.1)."""
    listed = headers()
    assert len(listed) == 33
    for header in (*range(0x20), *range(0x40, 0x100)):
        kind, index, size = listed.get(header, (PacketKind.UNKNOWN, 0, 0 if header < 0x20 else 1 << (header >> 4 & 3)))
        value = header if kind is PacketKind.UNKNOWN else int.from_bytes(PAYLOAD[:size], "little")
        first = next(decode_packets(bytes([header]) + PAYLOAD))
        assert first == DecodedPacket(0, 1 + size, kind, index, value)


def test_every_extended_header():
    """INDEX[4:3] is in bits [1:0] of the first byte, and bits [4:2] are zero (D18.2.1 and D18.2.3)."""
    listed = headers()
    for prefix, header in product(range(0x20, 0x40), range(0x100)):
        kind, index, size = listed.get(header, (PacketKind.UNKNOWN, 0, 1 << (header >> 4 & 3)))
        if header < 0x40:
            expected = DecodedPacket(0, 1, PacketKind.BAD, 0, prefix)
        elif kind in (PacketKind.ADDRESS, PacketKind.COUNTER) and prefix < 0x24:
            value = int.from_bytes(PAYLOAD[:size], "little")
            expected = DecodedPacket(0, 2 + size, kind, (prefix & 3) << 3 | index, value)
        else:
            expected = DecodedPacket(0, 2 + size, PacketKind.UNKNOWN, 0, prefix)
        assert next(decode_packets(bytes([prefix, header]) + PAYLOAD)) == expected


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_every_event_bit(size: int):
    for bit in range(8 * size):
        packet = bytes([0x42 | (size.bit_length() - 1) << 4]) + (1 << bit).to_bytes(size, "little")
        (record,) = decode_records(packet + b"\1")
        assert to_json(record)["events"] == [bit]


def test_values_of_a_record():
    packets = (
        "b0 01 00 00 00 00 00 00 c0", "b1 02 00 00 00 00 00 00 70", "b4 03 00 00 00 00 00 00 a0",
        "b2 04 00 00 00 00 00 00 f5", "b3 05 00 00 00 00 00 00 db", "64 06 00 00 00", "65 07 00 00 00", "49 14",
        "98 08 00", "99 09 00", "9a 0a 00", "9c 0b 00", "53 0c 01",
        "72 02 00 00 00 00 00 00 80", "71 0d 00 00 00 00 00 00 00",
    )  # fmt: skip
    (record,) = decode_records(bytes.fromhex("".join(packets)))
    assert record.pc == (1, 2, 1, 0)
    assert record.target == (2, 3, 0, 1)
    assert record.previous_target == (3, 1, 1, 0)
    assert record.va == 0xF500_0000_0000_0004
    assert record.pa == (5, 1, 1, 1, 0xB)
    assert (record.context_el1, record.context_el2) == (6, 7)
    assert record.operation == operation_type(1, 0x14)
    assert record.counters == {0: 8, 1: 9, 2: 10, 4: 11}
    assert (record.total, record.issue, record.translation) == (8, 9, 10)
    assert (record.data_source, record.events, record.timestamp) == (0x10C, 1 << 63 | 2, 13)
    assert (record.complete, record.unknown, record.problems) == (True, (), ())


# Unknown packets and invalid bytes.


KNOWN = bytes.fromhex("42 52 62 72 43 53 48 49 4a 4b 64 65 66 67 71") + bytes([*range(0x98, 0xA0), *range(0xB0, 0xB8)])
"""Headers of packets that D18.2 defines, including those whose INDEX or CLASS is reserved."""


@pytest.mark.parametrize("fill", [0x00, 0x01, 0x71, 0xB0])
def test_unknown_packet_is_skipped_by_its_size(fill: int):
    for header in range(0x02, 0x100):
        if header not in KNOWN and header not in range(0x20, 0x40):
            check_skipped(bytes([header]) + bytes([fill]) * (0 if header < 0x20 else 1 << (header >> 4 & 3)))


@pytest.mark.parametrize("fill", [0x00, 0x01, 0x71, 0xB0])
def test_unknown_extended_packet_is_skipped_by_its_size(fill: int):
    for prefix in range(0x20, 0x40):
        for second in range(0x40, 0x100):
            packet = bytes([prefix, second]) + bytes([fill]) * (1 << (second >> 4 & 3))
            (first,) = list(decode_packets(packet))
            known = prefix < 0x24 and (second & 0xF8 in (0x98, 0xB0))
            assert first.kind is (
                PacketKind.UNKNOWN if not known else PacketKind.COUNTER if second & 0xF8 == 0x98 else PacketKind.ADDRESS
            )
            if not known:
                check_skipped(packet)


def check_skipped(unknown: bytes) -> None:
    """Check that a packet between two records belongs to the second record, and that both records are complete."""
    first, second = decode_records(RECORD + unknown + RECORD)
    assert (first.problems, second.problems) == ((), ())
    assert first.unknown == ()
    assert second.unknown == (DecodedPacket(len(RECORD), len(unknown), PacketKind.UNKNOWN, 0, unknown[0]),)
    assert (second.pc, second.total, second.timestamp) == (first.pc, first.total, first.timestamp)


@pytest.mark.parametrize("second", [0x00, 0x01, 0x1F, 0x20, 0x3F])
def test_header_without_a_size_is_reported_and_one_byte_is_skipped(second: int):
    packet = next(decode_packets(bytes([0x20, second]) + RECORD))
    assert packet == DecodedPacket(0, 1, PacketKind.BAD, 0, 0x20)
    first = next(decode_records(b"\x20\x00" + RECORD))
    assert first.problems == ((0, "the extended header 0x20 is not followed by a header with a size"),)
    assert first.pc is not None


def test_incomplete_record_is_reported():
    message = "the record is incomplete: the data ends before its Timestamp or End packet"
    for length in range(1, len(RECORD)):
        first, last = decode_records(RECORD + RECORD[:length])
        assert not first.problems
        assert not last.complete
        assert (last.offset, last.size) == (len(RECORD), length)
        assert last.problems[-1] == (len(RECORD), message)


def test_padding_is_not_a_record():
    assert list(decode_records(b"")) == []
    assert list(decode_records(bytes(100))) == []
    assert [packet.size for packet in decode_packets(bytes(40))] == [16, 16, 8]


@pytest.mark.parametrize(
    "octets", ["b0" + 8 * "11", "98 1111", "52 1111", "49 00", "43 00 43 01", "64 00000000 64 01000000"]
)
def test_repeated_packet_is_reported_and_the_first_is_used(octets: str):
    record = next(decode_records(bytes.fromhex(octets) + RECORD))
    assert len(record.problems) == 1
    assert record.problems[0].message.startswith("a second ")
    incomplete = next(decode_records(bytes.fromhex(octets)))
    for name in ("pc", "total", "events", "operation_packet", "data_source", "context_el1"):
        if getattr(incomplete, name) is not None:
            assert getattr(record, name) == getattr(incomplete, name)


def test_record_without_events_is_reported():
    (record,) = decode_records(RECORD[20:])
    assert record.problems == ((0, "the record has no Events packet: it does not start here"),)


# The command.


def test_decode_prints_one_line_for_each_packet(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "buffer").write_bytes(RECORD[:14] + bytes(20) + RECORD[14:])
    assert main(["decode", str(tmp_path / "buffer")]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.splitlines() == [
        ".  00000000:  b0 00 10 00 00 00 00 00 80                      PC 0x1000 el0 ns=1",
        ".  00000009:  48 00                                           OTHER INSN-OTHER",
        ".  0000000b:  52 02 00                                        EV RETIRED",
        ".  0000000e:  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 PAD",
        ".  0000001e:  00 00 00 00                                     PAD",
        ".  00000022:  99 02 00                                        LAT 2 ISSUE",
        ".  00000025:  98 03 00                                        LAT 3 TOT",
        ".  00000028:  71 01 00 00 00 00 00 00 00                      TS 1",
    ]


def test_json_has_one_object_for_each_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    octets = "42 02 4a 1f 98 0300 9c 0500 9e 0700 b4 00200000000000a0 b6 0100000000000000 66 09000000 90 0000 01"
    (tmp_path / "buffer").write_bytes(RECORD + bytes.fromhex(octets))
    assert main(["decode", "--json", str(tmp_path / "buffer")]) == 0
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert first == {
        "format": 1,
        "offset": 0,
        "size": 29,
        "complete": True,
        "pc": {"address": "0x1000", "el": 0, "ns": 1, "nse": 0},
        "operation": {"kind": "other", "form": "other", "conditional": False, "fp": False, "simd": False},
        "events": [1],
        "issue": 2,
        "total": 3,
        "timestamp": 1,
    }
    assert second == {
        "format": 1,
        "offset": 29,
        "size": 40,
        "complete": True,
        "operation": {
            "kind": "branch",
            "form": "branch",
            "conditional": True,
            "indirect": True,
            "gcs": True,
            "procedure": "neither",
        },
        "events": [1],
        "total": 3,
        "previous_target": {"address": "0x2000", "el": 1, "ns": 1, "nse": 0},
        "alternate_issue": 5,
        "addresses": {"6": "0x1"},
        "counters": {"6": 7},
        "contexts": {"2": 9},
        "unknown": [{"offset": 65, "size": 3, "header": "0x90"}],
    }


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_bad_bytes_are_reported_and_other_data_is_printed(
    options: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    data = RECORD + b"\x20\x00" + RECORD + RECORD[:5]
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(data)))
    assert main(["decode", *options, "-"]) == 1
    out, err = capsys.readouterr()
    assert out.count("\n") == (3 if options else 6 + 2 + 6 + 1)
    assert err.splitlines() == [
        "spurtle: offset 0x1d: the extended header 0x20 is not followed by a header with a size",
        "spurtle: offset 0x3c: the packet with header 0xb0 is cut off by the end of the data after 5 bytes",
        "spurtle: offset 0x3c: the record is incomplete: the data ends before its Timestamp or End packet",
        "spurtle: 3 problems in 3 records",
    ]


def test_one_problem_is_singular(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(b"\x20\x00" + RECORD)))
    assert main(["decode", "-"]) == 1
    assert capsys.readouterr().err.splitlines()[1:] == ["spurtle: 1 problem in 1 record"]


def test_unreadable_file_is_named(capsys: pytest.CaptureFixture[str]):
    assert main(["decode", "no/such/file"]) == 2
    assert capsys.readouterr().err == "spurtle: cannot read no/such/file: No such file or directory\n"


def test_closed_pipe_causes_no_traceback(tmp_path: Path):
    (tmp_path / "buffer").write_bytes(RECORD * 20000)
    command = [
        sys.executable,
        "-c",
        "import sys; from spurtle_sim.cli import main; sys.exit(main())",
        "decode",
        tmp_path / "buffer",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1
