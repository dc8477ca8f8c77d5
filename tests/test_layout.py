"""Where each packet of a record stands."""

import pytest

from spurtle.config import CONFIGS, SPUConfig
from spurtle.layout import Packet, RecordLayout

# First byte and bytes of each packet in a record of Neoverse N1, as silicon writes it.
NEOVERSE_N1 = {
    Packet.PC: (0, 9),
    Packet.CONTEXT_EL1: (9, 5),
    Packet.CONTEXT_EL2: (14, 5),
    Packet.OPERATION: (19, 2),
    Packet.EVENTS: (21, 3),
    Packet.ISSUE: (24, 3),
    Packet.TOTAL: (27, 3),
    Packet.VA: (30, 9),
    Packet.TARGET: (30, 9),
    Packet.TRANSLATION: (39, 3),
    Packet.PA: (42, 9),
    Packet.DATA_SOURCE: (51, 2),
    Packet.TIMESTAMP: (55, 9),
    Packet.END: (63, 1),
}


def places(config: SPUConfig) -> dict[Packet, tuple[int, int]]:
    return {packet: (offset, config.packet_bytes[packet]) for packet, offset in config.packet_offsets.items()}


def test_neoverse_n1_is_the_silicons() -> None:
    assert places(CONFIGS["neoverse_n1"]) == NEOVERSE_N1


def test_minimal_is_neoverse_n1_with_two_packets_less_and_one_byte_of_events() -> None:
    order = [packet for packet in NEOVERSE_N1 if packet not in (Packet.CONTEXT_EL2, Packet.DATA_SOURCE)]
    found = places(CONFIGS["minimal"])
    assert sorted(found, key=lambda packet: found[packet]) == sorted(order, key=lambda packet: NEOVERSE_N1[packet])
    assert found[Packet.OPERATION] == (14, 2)
    assert found[Packet.EVENTS] == (16, 2)
    assert found[Packet.ISSUE] == (18, 3)
    assert found[Packet.TIMESTAMP] == (55, 9)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_packets_overlap_only_where_they_exclude_each_other(config: SPUConfig) -> None:
    exclusive = ({Packet.VA, Packet.TARGET}, {Packet.TIMESTAMP, Packet.END})
    owner: dict[int, Packet] = {}
    for packet, (offset, size) in places(config).items():
        assert offset + size <= config.record_bytes
        for octet in range(offset, offset + size):
            other = owner.setdefault(octet, packet)
            assert other is packet or {other, packet} in exclusive


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_a_record_ends_with_timestamp_or_end(config: SPUConfig) -> None:
    for packet in (Packet.TIMESTAMP, Packet.END):
        assert sum(places(config)[packet]) == config.record_bytes


def test_a_place_is_as_long_as_its_longest_packet() -> None:
    layout = RecordLayout(size=32, places=((Packet.OPERATION, Packet.VA), (Packet.EVENTS,)))
    sizes = {Packet.OPERATION: 2, Packet.VA: 9, Packet.EVENTS: 3, Packet.TIMESTAMP: 9, Packet.END: 1}
    assert list(layout.offsets(sizes)) == [
        (0, Packet.OPERATION), (0, Packet.VA), (9, Packet.EVENTS), (23, Packet.TIMESTAMP), (31, Packet.END),
    ]  # fmt: skip
    assert layout.used(sizes) == 21
