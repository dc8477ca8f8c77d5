"""Arbitrary bytes: the decoder raises no exception, always advances, and finds the next complete record."""

import json
import random
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from configurations import FOR_RECORDS
from spurtle.config import CONFIGS, SPUConfig
from spurtle.support.errors import UserError
from spurtle_sim.model import records
from spurtle_sim.records.checks import Monitor
from spurtle_sim.records.decode import PacketKind, Record, decode_packets, decode_records
from spurtle_sim.records.json_object import to_json
from spurtle_sim.records.json_sample import from_json
from spurtle_sim.records.text import describe, line
from tests.support.example_records import RECORD, random_branch
from tests.support.samples import plausible_records
from tests.support.seeds import SEED
from tests.support.tiers import configurations, tiers

LONGEST = 10
"""Size of the longest packet except padding: an extended header and a payload of eight bytes."""


def check(data: bytes) -> list[Record]:
    """Check the packets and records of arbitrary bytes, and return the records."""
    offset = 0
    for packet in decode_packets(data):
        assert packet.offset == offset
        assert 0 < packet.size <= (16 if packet.kind is PacketKind.PADDING else LONGEST)
        assert describe(packet)
        assert line(data, packet).split("  ")[2].startswith(data[offset : offset + packet.size].hex(" "))
        offset += packet.size
    assert offset == len(data)
    found = list(decode_records(data))
    assert all(record.complete for record in found[:-1])
    end = 0
    for record in found:
        assert end <= record.offset < record.offset + record.size <= len(data)
        end = record.offset + record.size
        assert record.complete or record.problems
        assert json.dumps(to_json(record))
    return found


def facts(record: Record) -> dict[str, object]:
    """Return the contents of a record without its offset and size."""
    return {name: fact for name, fact in to_json(record).items() if name not in ("offset", "size")}


def check_complete_record_is_found(garbage: bytes) -> None:
    """Check that a complete record is found after garbage.

    Zero bytes complete the last packet of the garbage, so the first of two records starts where a packet starts.
    """
    (expected,) = decode_records(RECORD)
    for gap in (LONGEST - 1, LONGEST + 7):
        found = check(garbage + bytes(gap) + RECORD + RECORD)
        assert (found[-1].offset, facts(found[-1])) == (len(garbage) + gap + len(RECORD), facts(expected))
        # The first record can include an incomplete record of the garbage, and then has problems or unknown packets.
        first = found[-2]
        assert first.offset + first.size == found[-1].offset
        assert first.problems or first.unknown or facts(first).items() >= facts(expected).items()


@given(st.binary(max_size=300))
def test_arbitrary_bytes(data: bytes):
    check(data)
    check_complete_record_is_found(data)


# Headers of every kind. `pieces` combines them with parts of records and runs of zeros.
HEADERS = bytes.fromhex(
    "00 01 20 23 24 3f 42 52 62 72 43 53 48 49 4a 4b 64 65 71 98 99 9a 9c 9e b0 b1 b2 b3 b4 b6 90 f0 02 1f 40"
)


def pieces(random: random.Random) -> Iterator[bytes]:
    for _ in range(random.randrange(1, 20)):
        match random.randrange(4):
            case 0:
                yield random.randbytes(random.randrange(8))
            case 1:
                yield bytes([random.choice(HEADERS)]) + random.randbytes(random.choice((0, 1, 2, 4, 8)))
            case 2:
                start = random.randrange(len(RECORD))
                yield RECORD[start : start + random.randrange(len(RECORD))]
            case _:
                yield bytes(random.randrange(20))


@pytest.mark.parametrize("seed", tiers(fast=[0], full=range(4)))
def test_random_pieces(seed: int):
    source = random.Random(f"{SEED} {seed}")
    for _ in range(1500):
        check_complete_record_is_found(b"".join(pieces(source)))


@pytest.mark.parametrize("config", configurations(FOR_RECORDS))
@settings(max_examples=40)
@given(data=st.data())
def test_records_with_one_wrong_byte(config: SPUConfig, data: st.DataObject):
    """Decoder, monitor and conversion from JSON accept the data. The records before the byte do not change."""
    buffer = b"".join(data.draw(plausible_records(config)) for _ in range(3))
    offset, value = data.draw(st.integers(0, len(buffer) - 1)), data.draw(st.integers(0, 255))
    wrong = buffer[:offset] + bytes([value]) + buffer[offset + 1 :]
    found = check(wrong)
    before = [record for record in decode_records(buffer) if record.offset + record.size <= offset]
    assert found[: len(before)] == before
    Monitor(config).check(wrong)
    for record in found:
        try:
            from_json(config, to_json(record))
        except UserError as error:
            assert "\n" not in str(error)


@pytest.mark.parametrize("config", configurations(CONFIGS))
def test_wrong_byte_affects_one_or_two_records(config: SPUConfig):
    """The next record is lost too if the byte replaces the end of a record or becomes the header of a longer packet."""
    source = random.Random(f"{SEED} {config.name}")
    for _ in range(300):
        octets = [records.encode(config, from_json(config, random_branch(source))) for _ in range(5)]
        buffer, first = b"".join(octets), len(octets[0])
        offset = source.randrange(first, first + len(octets[1]))
        wrong = buffer[:offset] + source.randbytes(1) + buffer[offset + 1 :]
        lost = [
            number
            for number, record in enumerate(decode_records(buffer))
            if facts(record) not in map(facts, decode_records(wrong))
        ]
        assert {*lost} <= {1, 2}
