"""The columnar decoder against `decode_records`: silicon, records of each configuration, and arbitrary bytes."""

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest

from spurtle.arch import AddressIndex
from spurtle_sim.records.decode import Record, decode_records
from spurtle_sim.report.columns import ABSENT, PacketSlot, RecordColumns, decode_columns
from tests.support.example_records import RECORD
from tests.support.seeds import SEED
from tests.support.silicon import vectors
from tests.support.tiers import tiers

HEADERS = bytes.fromhex(
    "00 01 20 23 24 3f 42 52 62 72 43 53 48 49 4a 4b 64 65 71 98 99 9a 9c 9e b0 b1 b2 b3 b4 b6 90 f0 02 1f 40"
)


def expected(buffer: int, record: Record) -> list[object]:
    """Return the fields of a record, in the order of `actual`."""
    addresses = [record.addresses.get(index, 0) for index in (AddressIndex.PC, AddressIndex.TARGET, AddressIndex.VA)]
    operation = record.operation_packet
    context = record.context_el1 if record.context_el1 is not None else record.context_el2
    return [
        buffer, *addresses, record.total or 0, record.issue or 0, record.translation or 0, context or 0,
        ABSENT if operation is None else operation[0] << 8 | operation[1], record.events or 0, record.timestamp or 0,
        ABSENT if record.data_source is None else record.data_source, record.complete, len(record.problems),
        record.va is not None, record.events is not None,
    ]  # fmt: skip


def actual(columns: RecordColumns) -> list[list[object]]:
    """Return the fields of each record."""
    arrays = (
        columns.buffer, columns.pc, columns.target, columns.va, columns.total, columns.issue, columns.translation,
        columns.context, columns.operation, columns.events, columns.timestamp, columns.source, columns.complete,
        columns.problems, columns.has(PacketSlot.VA), columns.has(PacketSlot.EVENTS),
    )  # fmt: skip
    return [list(fields) for fields in zip(*(array.tolist() for array in arrays), strict=True)]


def compare(buffers: Sequence[bytes]) -> int:
    """Compare the two decoders. Return the number of records."""
    records = [expected(number, each) for number, data in enumerate(buffers) for each in decode_records(data)]
    assert actual(decode_columns(buffers)) == records
    return len(records)


def pieces(random: Random, count: int) -> bytes:
    """Return packets with any headers and lengths."""
    return b"".join(
        bytes([random.choice(HEADERS)]) + random.randbytes(random.choice((0, 1, 2, 4, 8))) for _ in range(count)
    )


def test_records_of_silicon() -> None:
    data = [vector.data for vector in vectors("ABCDEFG")]
    for each in data:
        compare([each])
    assert compare(data) > 15


@pytest.mark.parametrize("count", tiers(fast=[100], long=[5_000]))
def test_arbitrary_packets(count: int) -> None:
    random = Random(SEED)
    for _ in range(count):
        compare([pieces(random, random.randrange(40)) for _ in range(random.randrange(4))])


def test_arbitrary_packets_in_many_chunks() -> None:
    """A chunk rarely begins with a packet, and a chunk can end in a packet of the next one."""
    random = Random(SEED)
    compare([pieces(random, 4_000), random.randbytes(9_000), b"", pieces(random, 3_000), RECORD * 300])
    compare([pieces(random, 1)[:1].ljust(4096 * 2 + 3, b"\x71")])


def test_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """The types of a column differ in batches, if one of them has larger values."""
    monkeypatch.setattr("spurtle_sim.report.columns._BATCH", 100)
    random = Random(SEED)
    compare([b"", RECORD, pieces(random, 30), RECORD * 2, b"\x98\xff\xff\x01", b"\xa8" + b"\xff" * 4 + b"\x01", b""])


def test_nothing() -> None:
    assert len(decode_columns([])) == len(decode_columns([b"", b"\0\0"])) == 0
    assert decode_columns([]).pc.dtype == np.uint64
