"""The steps of a record that differs in size: stretches of bytes that move together, and that they are the reference's.

Each pattern of packets is laid out in Python. `Steps` are the same steps of a record of which nothing is known.
"""

import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations, product

from configurations import FEATURES
from spurtle.config import CONFIGS, SPUConfig
from spurtle.config.record_layouts import LAST, Packet
from spurtle.gateware.packer import STEP_BYTES
from spurtle.gateware.record import record_layout
from spurtle_sim.model import records

from ..engine.proof import Result, Verdict
from ..engine.terms import BitVector, Boolean, all_of, any_of, constant, extract, if_else, zero_extend

__all__ = ["PACKED", "Steps", "contents_of_layout", "prove_steps", "steps"]

PACKED = (
    *(config for config in (*CONFIGS.values(), *FEATURES.values()) if config.layout.packed),
    replace(FEATURES["minimal_packed"], name="minimal_packed_4", bus_bytes=4),
    replace(FEATURES["minimal_packed"], name="minimal_packed_32", bus_bytes=32),
)
"""Configurations whose records differ in size, with a bus that is less, and one that is more, than a step."""


@dataclass(frozen=True)
class Piece:
    """Bytes of a record that are there or not, all of them: from `offset` on in `record_layout.octets`. They are there
    if bit `place` of `present` is one, or always if that is None.
    """

    offset: int
    size: int
    place: int | None


def steps(config: SPUConfig) -> list[list[Piece]]:
    """What moves together: a stretch of bytes each, cut from the end back. The end of the record moves alone if there
    may be padding in front of it, otherwise what a Timestamp packet has more than an End packet.
    """
    layout, sizes = config.layout, config.packet_bytes
    end = layout.offsets(sizes)[Packet.END]
    timed = end + sizes[Packet.END]
    alone = timed if layout.padding_last else end
    count = -(-alone // STEP_BYTES)
    found: list[list[Piece]] = [[] for _ in range(count + 1)]

    def add(offset: int, size: int, place: int | None) -> None:
        while size and offset < alone:
            behind = alone - offset
            part = min(size, (behind - 1) % STEP_BYTES + 1)
            found[count - 1 - (behind - 1) // STEP_BYTES].append(Piece(offset, part, place))
            offset, size = offset + part, size - part
        if size:
            found[count].append(Piece(offset, size, place))

    offset, elastic = 0, 0
    for field in layout.fields:
        add(offset, field.size(sizes), elastic if field.elastic else None)
        offset, elastic = offset + field.size(sizes), elastic + field.elastic
    add(end, sizes[Packet.END], None)
    add(timed, sizes[Packet.TIMESTAMP] - sizes[Packet.END], elastic)
    return found


def contents_of_layout(config: SPUConfig) -> Iterator[Mapping[Packet, int]]:
    """Every combination of packets that a layout has room for, each with its first byte in `record_layout.octets`."""
    sizes = config.packet_bytes
    choices: list[list[Mapping[Packet, int]]] = []
    offset = 0
    for field in config.layout.fields:
        offsets = {packet: offset + within for packet, within in field.offsets(sizes)}
        runs = [chosen for run in field.runs for count in range(1, len(run) + 1) for chosen in combinations(run, count)]
        choices.append([{}, *({packet: offsets[packet] for packet in chosen} for chosen in runs)])
        offset += field.size(sizes)
    choices.append([{packet: offset} for packet in LAST])
    for chosen in product(*choices):
        yield reduce(operator.or_, chosen, {})


def prove_steps(config: SPUConfig) -> Verdict:
    """The steps of a record, and padding, are the record that the reference writes: for each combination of packets.

    Each byte is the number of its place, which is not zero: nothing is computed from it, but where it goes.
    """
    sizes, layout = config.packet_bytes, config.layout
    patterns = 0
    for packets in contents_of_layout(config):
        octets = bytearray(record_layout(config)["octets"].width // 8)
        contents = {}
        for packet, offset in packets.items():
            contents[packet] = bytes(range(offset + 1, offset + 1 + sizes[packet]))
            octets[offset : offset + sizes[packet]] = contents[packet]
        there = [any(packet in packets for packet in field.packets) for field in layout.fields if field.elastic]
        there.append(Packet.TIMESTAMP in packets)
        *parts, last = [
            b"".join(
                octets[piece.offset : piece.offset + piece.size]
                for piece in pieces
                if piece.place is None or there[piece.place]
            )
            for pieces in steps(config)
        ]
        record = _padded(config, b"".join(parts), last)
        expected = records.lay_out(config, contents.items())
        if record != expected or len(record) > layout.max_size:
            names = ", ".join(packet.value for packet in packets)
            return Verdict(Result.FAIL, 0, f"{names}:\n  expected {expected.hex()}\n  got      {record.hex()}")
        patterns += 1
    return Verdict(Result.PASS, 0, method=f"all {patterns} patterns")


def _padded(config: SPUConfig, body: bytes, last: bytes) -> bytes:
    padding = bytes(-(len(body) + len(last)) % config.layout.align)
    return body + (last + padding if config.layout.padding_last else padding + last)


class Steps:
    """The steps of `record`, a `record_layout`: what each of them is, and how many bytes stand before it."""

    def __init__(self, config: SPUConfig, record: BitVector, width: int):
        octets = record_layout(config)["octets"].width
        self.octets: list[BitVector] = []
        self.sizes: list[BitVector] = []
        self.before: list[BitVector] = [constant(0, width)]
        for pieces in steps(config):
            value, size = constant(0, 8 * STEP_BYTES), constant(0, width)
            for piece in reversed(pieces):
                here = extract(8 * (piece.offset + piece.size) - 1, 8 * piece.offset, record)
                here = zero_extend(value.width - here.width, here) | value << 8 * piece.size
                if piece.place is None:
                    value, size = here, size + piece.size
                else:
                    bit = extract(octets + piece.place, octets + piece.place, record) == 1
                    value, size = if_else(bit, here, value), if_else(bit, size + piece.size, size)
            self.octets.append(value)
            self.sizes.append(size)
            self.before.append(self.before[-1] + size)
        self.last = len(self.sizes) - 1

    def ends(self, number: BitVector) -> Boolean:
        """It is the last step, or the last one of which something is there."""
        return any_of(number == self.last, all_of(number == self.last - 1, self.sizes[self.last] == 0))
