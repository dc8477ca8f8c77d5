"""Offsets of packets in records."""

import re
from collections.abc import Callable

import pytest

from spurtle.config import CONFIGS, SPUConfig
from spurtle.config.record_layouts import Packet, RecordField, RecordLayout, fixed

# Byte offset of each packet in the longest record, as far as records from silicon show it.
NEOVERSE_N1 = {
    Packet.PC: 0,
    Packet.CONTEXT_EL1: 9,
    Packet.CONTEXT_EL2: 14,
    Packet.OPERATION: 19,
    Packet.EVENTS: 21,
    Packet.ISSUE: 24,
    Packet.TOTAL: 27,
    Packet.VA: 30,
    Packet.TARGET: 30,
    Packet.TRANSLATION: 39,
    Packet.PA: 42,
    Packet.DATA_SOURCE: 51,
}
KUNPENG_920 = {
    Packet.PC: 0,
    Packet.ISSUE: 9,
    Packet.TOTAL: 12,
    Packet.EVENTS: 15,
    Packet.OPERATION: 18,
    Packet.VA: 20,
    Packet.TARGET: 20,
    Packet.TRANSLATION: 29,
}
HISILICON_MOBILE = {
    Packet.PC: 0,
    Packet.ISSUE: 9,
    Packet.TOTAL: 12,
    Packet.EVENTS: 15,
    Packet.OPERATION: 20,
    Packet.VA: 24,
    Packet.TARGET: 24,
    Packet.TRANSLATION: 33,
    Packet.CONTEXT_EL1: 36,
}


def offsets(config: SPUConfig) -> dict[Packet, int]:
    return dict(config.layout.offsets(config.packet_bytes))


@pytest.mark.parametrize(
    ("name", "silicon"),
    [("neoverse_n1", NEOVERSE_N1), ("kunpeng_920", KUNPENG_920), ("hisilicon_mobile", HISILICON_MOBILE)],
)
def test_offsets_are_those_of_silicon(name: str, silicon: dict[Packet, int]) -> None:
    assert offsets(CONFIGS[name]).items() >= silicon.items()


def test_minimal_is_neoverse_n1_without_two_packets_and_with_one_byte_of_events() -> None:
    order = [packet for packet in NEOVERSE_N1 if packet not in (Packet.CONTEXT_EL2, Packet.DATA_SOURCE)]
    found = offsets(CONFIGS["minimal"])
    assert [packet for packet in found if packet not in (Packet.TIMESTAMP, Packet.END)] == order
    assert (found[Packet.OPERATION], found[Packet.EVENTS], found[Packet.ISSUE]) == (14, 16, 18)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_packets_overlap_only_where_they_exclude_each_other(config: SPUConfig) -> None:
    of_accesses = {Packet.VA, Packet.TRANSLATION, Packet.PA, Packet.DATA_SOURCE}
    owner: dict[int, set[Packet]] = {}
    for packet, offset in offsets(config).items():
        for octet in range(offset, offset + config.packet_bytes[packet]):
            for other in owner.setdefault(octet, set()):
                exclusive = {packet, other} == {Packet.TIMESTAMP, Packet.END}
                assert exclusive or ({packet, other} - of_accesses == {Packet.TARGET} and not config.gcs)
            owner[octet].add(packet)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_the_longest_record_fits(config: SPUConfig) -> None:
    longest = config.layout.longest(config.packet_bytes)
    assert longest == {"kunpeng_920": 60, "arm_model": 80, "v1p4": 128}.get(config.name, 64)
    assert longest <= config.layout.max_size


SIZES = {Packet.OPERATION: 2, Packet.VA: 9, Packet.EVENTS: 3, Packet.TOTAL: 3, Packet.TIMESTAMP: 9, Packet.END: 1}


def test_a_field_has_the_size_of_its_longest_run() -> None:
    layout = fixed(32, (Packet.OPERATION, Packet.VA), (Packet.EVENTS,))
    assert layout.offsets(SIZES) == {
        Packet.OPERATION: 0, Packet.VA: 0, Packet.EVENTS: 9, Packet.TIMESTAMP: 12, Packet.END: 12,
    }  # fmt: skip
    assert (layout.packed, layout.align, layout.longest(SIZES)) == (False, 32, 32)


def test_runs_minimum_size_and_alignment() -> None:
    runs = RecordField(((Packet.VA, Packet.TOTAL), (Packet.OPERATION,)), elastic=True)
    layout = RecordLayout((RecordField(((Packet.EVENTS,),), min_size=5), runs), align=4, max_size=64)
    assert layout.offsets(SIZES) == {
        Packet.EVENTS: 0, Packet.VA: 5, Packet.TOTAL: 14, Packet.OPERATION: 5, Packet.TIMESTAMP: 17, Packet.END: 17,
    }  # fmt: skip
    assert (layout.packed, layout.longest(SIZES)) == (True, 28)
    assert layout.without(Packet.EVENTS).fields == (runs,)
    assert layout.without(Packet.VA, Packet.TOTAL) == layout, "a field that holds other packets remains"


PC = ((Packet.PC,),)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: RecordField(()), ValueError, "runs must be one or more runs of one or more packets, not ()"),
        (lambda: RecordField(((),)), ValueError, "runs must be one or more runs of one or more packets, not ((),)"),
        (lambda: RecordField(PC, min_size=-1), ValueError, "min_size must be 0 or more, not -1"),
        (lambda: RecordField([Packet.PC]), TypeError, "runs must be of type tuple, not "),
        (lambda: RecordField((Packet.PC,)), TypeError, "a run must be of type tuple, not "),
        (lambda: RecordField((("PC",),)), TypeError, "a packet must be of type Packet, not 'PC'"),
        (lambda: RecordField(PC, elastic=1), TypeError, "elastic must be of type bool, not 1"),
        (lambda: RecordField(PC, min_size=None), TypeError, "min_size must be of type int, not None"),
        (lambda: RecordLayout([RecordField(PC)], 64, 64), TypeError, "fields must be of type tuple, not "),
        (lambda: RecordLayout((PC,), 64, 64), TypeError, "a field must be of type RecordField, not "),
        (lambda: RecordLayout((), "64", 64), TypeError, "align must be of type int, not '64'"),
        (lambda: RecordLayout((), 64, 64.0), TypeError, "max_size must be of type int, not 64.0"),
        (lambda: RecordLayout((), 64, 64, None), TypeError, "padding_last must be of type bool, not None"),
    ],
)
def test_bad_arguments_of_layouts(make: Callable[[], object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{re.escape(message)}"):
        make()
