"""Offsets of packets and padding in a record (D18.1 and D18.2.8)."""

from dataclasses import replace
from itertools import permutations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spurtle.config import CONFIGS, SPUConfig
from spurtle.config.record_layouts import LAST, Packet, RecordField, RecordLayout
from spurtle_sim.model import records
from spurtle_sim.model.operation import Facts, Location, Operation, Sample, Start
from tests.support.samples import samples
from tests.support.seeds import SEED
from tests.support.tiers import configurations

KUNPENG, MOBILE, MODEL = (CONFIGS[name] for name in ("kunpeng_920", "hisilicon_mobile", "arm_model"))
IMPLEMENTED = pytest.mark.parametrize("config", configurations(CONFIGS))
OTHER = Facts(retired=1)
LOAD = Facts(load=1, retired=1, va_valid=1, pa_valid=1, data_source_valid=1)
BRANCH = Facts(branch=1, taken=1, indirect=1, procedure_return=1, retired=1)


def octets(
    config: SPUConfig,
    facts: Facts,
    *,
    context: int | None = None,
    collect_pa: bool = False,
    timestamp: int | None = None,
    previous_target: Location | None = None,
) -> bytes:
    sample = Sample(
        start=Start(el=0, ns=1, contextidr_el1=context, timestamp=timestamp, collect_pa=collect_pa),
        operation=Operation(
            facts=facts, pc=0x1234, target=Location(0x5678, 0, 1), va=0x9ABC, pa=0xDEF0, pa_ns=1, data_source=9
        ),
        previous_target=previous_target,
        total=7,
        issue=2,
        translation=1,
    )
    return records.encode(config, sample)


PC, TARGET, VA, PA = (
    f"b{index} {low} {high} 00 00 00 00 00 {top} "
    for index, low, high, top in (
        (0, "34", "12", "80"),
        (1, "78", "56", "80"),
        (2, "bc", "9a", "00"),
        (3, "f0", "de", "80"),
    )
)
TOTAL, ISSUE, TRANSLATION = "98 07 00 ", "99 02 00 ", "9a 01 00 "
EVENTS2, EVENTS4 = "52 02 00 ", "62 02 00 00 00 "
CONTEXT, TIMESTAMP, END = "64 05 00 00 00 ", "71 06 00 00 00 00 00 00 00 ", "01 "


def pad(size: int) -> str:
    return "00 " * size


# Written by hand from the order of the fields in each layout.
@pytest.mark.parametrize(
    ("config", "facts", "collected", "record"),
    [
        # An operation of kind Other has only the PC address: 21 bytes, padded to a multiple of four.
        (KUNPENG, OTHER, {}, PC + ISSUE + TOTAL + EVENTS2 + "48 00 " + pad(3) + END),
        (KUNPENG, OTHER, {"timestamp": 6}, PC + ISSUE + TOTAL + EVENTS2 + "48 00 " + pad(3) + TIMESTAMP),
        (KUNPENG, LOAD, {}, PC + ISSUE + TOTAL + EVENTS2 + "49 00 " + VA + TRANSLATION + pad(3) + END),
        # The target is shorter than the alternative contents of its field.
        (KUNPENG, BRANCH, {}, PC + ISSUE + TOTAL + EVENTS2 + "4a 02 " + TARGET + pad(3) + pad(3) + END),
        # 50 bytes.
        (
            KUNPENG,
            LOAD,
            {"context": 5, "collect_pa": True, "timestamp": 6},
            PC + ISSUE + TOTAL + EVENTS2 + "49 00 " + VA + TRANSLATION + CONTEXT + PA + pad(1) + TIMESTAMP,
        ),
        # A field of which some packets are present has its complete size.
        (KUNPENG, Facts(), {}, pad(15) + "52 00 00 " + pad(2) + pad(3) + END),
        (KUNPENG, Facts(), {"timestamp": 6}, pad(15) + "52 00 00 " + pad(2) + pad(3) + TIMESTAMP),
        # The field of the operation has two bytes more than its packets. The field of the addresses is not elastic.
        (MOBILE, OTHER, {}, PC + ISSUE + TOTAL + EVENTS4 + "48 00 " + pad(2) + pad(12) + pad(3) + END),
        (MOBILE, LOAD, {}, PC + ISSUE + TOTAL + EVENTS4 + "49 00 " + pad(2) + VA + TRANSLATION + pad(3) + END),
        # Padding at the end.
        (MODEL, OTHER, {}, TOTAL + ISSUE + PC + "48 00 " + EVENTS4 + END + pad(1)),
        (
            MODEL,
            LOAD,
            {"context": 5, "collect_pa": True, "timestamp": 6},
            CONTEXT + TOTAL + ISSUE + TRANSLATION + PC + VA + PA + "43 09 " + "49 00 " + EVENTS4 + TIMESTAMP + pad(5),
        ),
        (
            MODEL,
            BRANCH,
            {"previous_target": Location(0x5678, 0, 1)},
            TOTAL + ISSUE + PC + TARGET + "b4" + TARGET[2:] + "4a 12 " + EVENTS4 + END + pad(7),
        ),
        (MODEL, Facts(), {}, "62 00 00 00 00 " + END + pad(2)),
    ],
)
def test_records_byte_for_byte(config: SPUConfig, facts: Facts, collected: dict[str, object], record: str):
    assert octets(config, facts, **collected).hex(" ") == bytes.fromhex(record).hex(" ")


def test_record_of_constant_size_has_a_byte_for_each_packet():
    record = (
        PC
        + CONTEXT
        + pad(5)
        + "49 00 "
        + EVENTS2
        + ISSUE
        + TOTAL
        + VA
        + TRANSLATION
        + PA
        + "43 09 "
        + pad(2)
        + TIMESTAMP
    )
    found = octets(CONFIGS["neoverse_n1"], LOAD, context=5, collect_pa=True, timestamp=6)
    assert found.hex(" ") == bytes.fromhex(record).hex(" ")
    assert len(found) == 64


@IMPLEMENTED
@given(data=st.data())
def test_each_packet_is_at_its_offset(config: SPUConfig, data: st.DataObject):
    """Each packet has the offset that the layout defines, and all other bytes are zero."""
    sample = data.draw(samples(config))
    contents = dict(records.packets(config, sample))
    record = bytearray(records.encode(config, sample))
    sizes = config.packet_bytes
    assert {packet: len(content) for packet, content in contents.items()} == {
        packet: sizes[packet] for packet in contents
    }
    offset = 0
    for field in config.layout.fields:
        present = [packet for packet in field.packets if packet in contents]
        if field.elastic and not present:
            continue
        for run in field.runs:
            start = offset
            for packet in run:
                if packet in contents:
                    assert record[start : start + sizes[packet]] == contents[packet]
                    record[start : start + sizes[packet]] = bytes(sizes[packet])
                start += sizes[packet]
        offset += max(field.min_size, *(sum(sizes[packet] for packet in run) for run in field.runs))
    (last,) = (packet for packet in LAST if packet in contents)
    offset = offset if config.layout.padding_last else len(record) - sizes[last]
    assert record[offset : offset + sizes[last]] == contents[last]
    record[offset : offset + sizes[last]] = bytes(sizes[last])
    assert not any(record)
    # There is no more padding than necessary.
    assert len(record) % config.layout.align == 0
    used = sum(
        field.size(sizes)
        for field in config.layout.fields
        if not field.elastic or any(packet in contents for packet in field.packets)
    )
    assert len(record) - used - sizes[last] < config.layout.align


@IMPLEMENTED
def test_order_of_the_packets_argument_has_no_effect(config: SPUConfig):
    sample = Sample(start=Start(timestamp=6), operation=Operation(facts=LOAD))
    contents = list(records.packets(config, sample))
    random = Random(SEED)
    for _ in range(20):
        assert records.lay_out(config, random.sample(contents, len(contents))) == records.encode(config, sample)


def test_longest_record_fits():
    """A record with all packets that one operation can have fits, in every configuration."""
    for config in CONFIGS.values():
        facts = replace(LOAD, **({"branch": 1, "taken": 1, "gcs": 1} if config.gcs else {}), asynchronous=1)
        context_el2 = 1 if Packet.CONTEXT_EL2 in config.layout.packets else None
        sample = Sample(
            start=Start(timestamp=6, contextidr_el1=1, contextidr_el2=context_el2, collect_pa=True),
            operation=Operation(facts=facts),
            previous_target=Location(),
        )
        assert (
            len(records.encode(config, sample)) <= config.layout.longest(config.packet_bytes) <= config.max_record_bytes
        )


def test_elastic_field_can_be_first_or_last():
    """Fields can be in any order."""
    required = ((Packet.EVENTS,),), ((Packet.PC, Packet.OPERATION, Packet.TOTAL, Packet.ISSUE),)
    rest = Packet.CONTEXT_EL1, Packet.TARGET, Packet.VA, Packet.TRANSLATION, Packet.PA
    elastic = tuple(RecordField(((packet,),), elastic=True) for packet in rest)
    for order in permutations((RecordField(required[0]), RecordField(required[1]), *elastic[:2])):
        layout = RecordLayout((*order, *elastic[2:]), align=1, max_size=64)
        config = replace(CONFIGS["minimal"], layout=layout)
        contents = {Packet.EVENTS: "42 02 ", Packet.PC: PC + "48 00 " + TOTAL + ISSUE}
        expected = "".join(contents.get(field.packets[0], "") for field in order) + END
        assert octets(config, OTHER).hex(" ") == bytes.fromhex(expected).hex(" ")
