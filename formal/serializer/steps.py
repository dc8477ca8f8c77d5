"""Steps of a packed record: runs of bytes that the packer moves together. They match the reference.

`prove_steps` compares the steps of each pattern of packets in Python. `Steps` are the same steps of a symbolic record.
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
from ..engine.terms import BitVector, Boolean, all_of, any_of, constant, extract, if_else, ult, zero_extend

__all__ = ["PACKED", "Steps", "contents_of_layout", "prove_steps", "steps"]

PACKED = (
    *(config for config in (*CONFIGS.values(), *FEATURES.values()) if config.layout.packed),
    replace(FEATURES["minimal_packed"], name="minimal_packed_4", bus_bytes=4),
    replace(FEATURES["minimal_packed"], name="minimal_packed_32", bus_bytes=32),
)
"""Configurations with packed records, among them buses that are narrower and wider than a step."""


@dataclass(frozen=True)
class Piece:
    """Bytes of a record that are present or absent together.

    Members
    -------
    offset, size : int
        Position in `record_layout.octets`.
    bit : int or None
        Bit of `record_layout.present` that is one if the bytes are present. None: they are always present.
    """

    offset: int
    size: int
    bit: int | None


def steps(config: SPUConfig) -> list[list[Piece]]:
    """Return the pieces of each step.

    The last step is the end of the record if padding may precede it. Otherwise it is what a Timestamp packet has in
    addition to an End packet. The bytes before it are divided where their presence may change. Each part begins a step
    if it does not fit into the previous one. Parts that are longer than STEP_BYTES are divided.
    """
    layout, sizes = config.layout, config.packet_bytes
    end = layout.offsets(sizes)[Packet.END]
    after_end = end + sizes[Packet.END]
    bits: list[int | None] = []
    for field in layout.fields:
        elastic = len({*bits} - {None})
        bits += field.size(sizes) * [elastic if field.elastic else None]
    timestamp = len({*bits} - {None})
    if layout.padding_last:
        bits += sizes[Packet.END] * [None]
    found: list[list[Piece]] = [[]]
    offset = 0
    while offset < len(bits):
        bit = bits[offset]
        size = next((size for size, other in enumerate(bits[offset:]) if other != bit), len(bits) - offset)
        used = sum(piece.size for piece in found[-1])
        if used and used + size > STEP_BYTES:
            found.append([])
        found[-1].append(Piece(offset, min(size, STEP_BYTES), bit))
        offset += min(size, STEP_BYTES)
    last = [] if layout.padding_last else [Piece(end, sizes[Packet.END], None)]
    return [*found, [*last, Piece(after_end, sizes[Packet.TIMESTAMP] - sizes[Packet.END], timestamp)]]


def contents_of_layout(config: SPUConfig) -> Iterator[Mapping[Packet, int]]:
    """Yield every combination of packets that a layout allows, each with its offset in `record_layout.octets`."""
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
    """Prove, for each combination of packets, that the steps with padding are the record of the reference.

    The value of each byte is its offset plus 1, which is unique and nonzero. The layout does not depend on the values.
    """
    sizes, layout = config.packet_bytes, config.layout
    patterns = 0
    for packets in contents_of_layout(config):
        octets = bytearray(record_layout(config)["octets"].width // 8)
        contents = {}
        for packet, offset in packets.items():
            contents[packet] = bytes(range(offset + 1, offset + 1 + sizes[packet]))
            octets[offset : offset + sizes[packet]] = contents[packet]
        present = [any(packet in packets for packet in field.packets) for field in layout.fields if field.elastic]
        present.append(Packet.TIMESTAMP in packets)
        *parts, last = [
            b"".join(
                octets[piece.offset : piece.offset + piece.size]
                for piece in pieces
                if piece.bit is None or present[piece.bit]
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
    """Steps of a symbolic record.

    Parameters
    ----------
    record : BitVector
        Record in the form of `record_layout`.
    width : int
        Width of byte counts.

    Attributes
    ----------
    octets, sizes, before : list of BitVector
        Bytes and size of each step, and number of bytes of the record before it.
    last : int
        Number of the last step.
    """

    def __init__(self, config: SPUConfig, record: BitVector, width: int):
        octets = record_layout(config)["octets"].width
        self.octets: list[BitVector] = []
        self.sizes: list[BitVector] = []
        self.before: list[BitVector] = [constant(0, width)]
        for pieces in steps(config):
            value, size = constant(0, 8 * STEP_BYTES), constant(0, width)
            for piece in reversed(pieces):
                longer = extract(8 * (piece.offset + piece.size) - 1, 8 * piece.offset, record)
                longer = zero_extend(value.width - longer.width, longer) | value << 8 * piece.size
                if piece.bit is None:
                    value, size = longer, size + piece.size
                else:
                    bit = extract(octets + piece.bit, octets + piece.bit, record) == 1
                    value, size = if_else(bit, longer, value), if_else(bit, size + piece.size, size)
            self.octets.append(value)
            self.sizes.append(size)
            self.before.append(self.before[-1] + size)
        self.last = len(self.sizes) - 1

    def following(self, number: BitVector) -> BitVector:
        """Return the number of the first step that has bytes after the step with this number. There must be one."""
        found = constant(self.last, number.width)
        for step in reversed(range(self.last)):
            chosen = all_of(ult(number, step), self.sizes[step] != 0)
            found = if_else(chosen, constant(step, number.width), found)
        return found

    def ends(self, number: BitVector) -> Boolean:
        """Return whether no bytes follow the step with this number."""
        return any_of(number == self.last, all_of(number == self.last - 1, self.sizes[self.last] == 0))
