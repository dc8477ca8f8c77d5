"""Records of any length: the bytes of `reference.records.lay_out`, each once, in order, and nothing else.

The packer takes a record apart into steps and lays them down behind each other. So does this proof. The steps, one
after the other, are what the reference writes: each pattern of packets, in Python. The steps that are laid down are
those of the record, each once, in order: induction. What is laid down leaves as it was: induction, for an arbitrary
byte.
"""

import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, reduce
from itertools import combinations, product

import z3

from spurtle import serializer
from spurtle.config import CONFIGS, SPUConfig
from spurtle.layout import LAST, Packet
from spurtle.record import record_layout
from spurtle.serializer import Packer
from spurtle_sim.reference import records

from ..features import FEATURES
from ..induction import Invariant, Wires, always, inductive, reach_all
from ..proof import Proof, Result, Verdict
from ..transition import Transition, remembering, transition
from .streams import steady

__all__ = ["PACKED", "byte_at", "count", "invariant", "proofs", "prove_ends", "prove_output", "prove_steps", "watched"]

STEP_BYTES = serializer._STEP_BYTES

PACKED = (
    *(config for config in (*CONFIGS.values(), *FEATURES.values()) if config.layout.packed),
    replace(FEATURES["minimal_packed"], name="minimal_packed_4", bus_bytes=4),
    replace(FEATURES["minimal_packed"], name="minimal_packed_32", bus_bytes=32),
)
"""Configurations whose records differ in size, with a bus that is less, and one that is more, than a step."""


# The steps of a record.


@dataclass(frozen=True)
class Piece:
    """Bytes of a record that are there or not, all of them: from `offset` on in `record_layout.octets`. They are there
    if bit `place` of `present` is one, or always if that is None.
    """

    offset: int
    size: int
    place: int | None


def steps(config: SPUConfig) -> list[list[Piece]]:
    """What moves together: as many pieces as a step has room for. The end of the record moves alone if there may be
    padding in front of it.
    """
    sizes = config.packet_bytes
    found: list[list[Piece]] = [[]]

    def add(*pieces: Piece, alone: bool = False) -> None:
        if alone or sum(piece.size for piece in (*found[-1], *pieces)) > STEP_BYTES:
            found.append([])
        found[-1] += pieces

    offset, elastic = 0, 0
    for place in config.layout.places:
        end, bit = offset + place.size(sizes), elastic if place.elastic else None
        elastic += place.elastic
        while offset < end:
            piece = Piece(offset, min(end - offset, STEP_BYTES), bit)
            add(piece)
            offset += piece.size
    end = sizes[Packet.END]
    timestamp = Piece(offset + end, sizes[Packet.TIMESTAMP] - end, elastic)
    add(Piece(offset, end, None), timestamp, alone=not config.layout.padding_last)
    return found


def _contents(config: SPUConfig) -> Iterator[Mapping[Packet, int]]:
    """Every combination of packets that a layout has room for, each with its first byte in `record_layout.octets`."""
    sizes = config.packet_bytes
    choices: list[list[Mapping[Packet, int]]] = []
    offset = 0
    for place in config.layout.places:
        places = {packet: offset + within for packet, within in place.offsets(sizes)}
        runs = [chosen for run in place.runs for count in range(1, len(run) + 1) for chosen in combinations(run, count)]
        choices.append([{}, *({packet: places[packet] for packet in chosen} for chosen in runs)])
        offset += place.size(sizes)
    choices.append([{packet: offset} for packet in LAST])
    for chosen in product(*choices):
        yield reduce(operator.or_, chosen, {})


def prove_steps(config: SPUConfig) -> Verdict:
    """The steps of a record, and padding, are the record that the reference writes: for each combination of packets.

    Each byte is the number of its place, which is not zero: nothing is computed from it, but where it goes.
    """
    sizes, layout = config.packet_bytes, config.layout
    patterns = 0
    for packets in _contents(config):
        octets = bytearray(record_layout(config)["octets"].width // 8)
        contents = {}
        for packet, offset in packets.items():
            contents[packet] = bytes(range(offset + 1, offset + 1 + sizes[packet]))
            octets[offset : offset + sizes[packet]] = contents[packet]
        there = [any(packet in packets for packet in place.packets) for place in layout.places if place.elastic]
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


# The same of a record of which nothing is known.


class Steps:
    """The steps of `record`, a `record_layout`: what each of them is, and how many bytes stand before it."""

    def __init__(self, config: SPUConfig, record: z3.BitVecRef, width: int):
        octets = record_layout(config)["octets"].width
        self.octets: list[z3.BitVecRef] = []
        self.sizes: list[z3.BitVecRef] = []
        self.before: list[z3.BitVecRef] = [z3.BitVecVal(0, width)]
        for pieces in steps(config):
            value, size = z3.BitVecVal(0, 8 * STEP_BYTES), z3.BitVecVal(0, width)
            for piece in reversed(pieces):
                here = z3.Extract(8 * (piece.offset + piece.size) - 1, 8 * piece.offset, record)
                here = z3.ZeroExt(value.size() - here.size(), here) | value << 8 * piece.size
                if piece.place is None:
                    value, size = here, size + piece.size
                else:
                    bit = z3.Extract(octets + piece.place, octets + piece.place, record) == 1
                    value, size = z3.If(bit, here, value), z3.If(bit, size + piece.size, size)
            self.octets.append(value)
            self.sizes.append(size)
            self.before.append(self.before[-1] + size)
        self.last = len(self.sizes) - 1

    def next(self, begun: z3.BoolRef, number: z3.BitVecRef) -> z3.BitVecRef:
        """The first step of which something is there, or the first after `number` once the record is begun."""
        found = z3.BitVecVal(self.last, number.size())
        for step in reversed(range(self.last)):
            coming = z3.And(self.sizes[step] != 0, z3.Or(z3.Not(begun), z3.UGT(step, number)))
            found = z3.If(coming, z3.BitVecVal(step, number.size()), found)
        return found

    def left(self, number: z3.BitVecRef) -> list[z3.BoolRef]:
        """Of each step, whether it is still to come after `number`."""
        return [z3.And(size != 0, z3.UGT(step, number)) for step, size in enumerate(self.sizes)]


def _width(config: SPUConfig) -> int:
    """Bits of a count of bytes. More than a record has, and a beat and a step besides."""
    return (2 * config.layout.max_size + 2 * config.bus_bytes).bit_length()


def count(wire: z3.BitVecRef, width: int) -> z3.BitVecRef:
    """A number with room to count on."""
    return z3.ZeroExt(width - wire.size(), wire)


def _on(wire: z3.BitVecRef) -> z3.BoolRef:
    return wire == 1


def byte_at(value: z3.BitVecRef, place: z3.BitVecRef) -> z3.BitVecRef:
    """The byte at a place that is not known; anything if `value` has none there."""
    distance = z3.ZeroExt(value.size() - place.size(), place) << 3
    return z3.Extract(7, 0, z3.LShR(value, distance))


def _align(config: SPUConfig, size: z3.BitVecRef) -> z3.BitVecRef:
    unit = config.layout.align
    return (size + unit - 1) & ~(unit - 1)


def _loads(wires: Wires) -> z3.BoolRef:
    """The record at the input gives its next step."""
    return z3.And(z3.Or(_on(wires["taken"]), wires["stepping"] == 0), wires["chosen"] != 0)


def _leaves(wires: Wires) -> z3.BoolRef:
    return z3.And(_on(wires["o__valid"]), _on(wires["o__ready"]))


def watched(config: SPUConfig, system: Transition) -> Transition:
    """A `Packer` of `config`, and beside it what has become of records.

    record, number : which step of which record is in `step`
    begun : it is one of the record at the input, of which there is more
    at : bytes of that record that have been laid down before it
    sent, length : bytes of the record in `laid` that have left; how long it is, once it is whole
    k, value, laid_k : an arbitrary place in every record; the byte that a step had for it, and whether one had
    """
    width = _width(config)
    zero = z3.BitVecVal(0, width)

    def follow(wires: Wires) -> Mapping[str, z3.BitVecRef]:
        reset, taken = _on(wires["rst"]), _on(wires["taken"])
        ends = _on(wires["step.ends"])
        size, at = count(wires["step.size"], width), wires["at"]
        coming = Steps(config, wires["i__payload"], width)
        loads = _loads(wires)
        number = coming.next(_on(wires["begun"]), wires["number"])
        more = z3.If(number == coming.last, z3.BitVecVal(0, 1), z3.BitVecVal(1, 1))

        # Where the bytes of the step come: behind those that are there, the end behind padding.
        padded = _align(config, at + size)
        start = at if config.layout.padding_last else z3.If(ends, padded - size, at)
        k = wires["k"]
        brings = z3.And(taken, z3.UGE(k, start), z3.ULT(k, start + size))
        begins = z3.And(taken, at == 0)
        left = _on(wires["o__payload.last"])
        sent = z3.If(left, zero, wires["sent"] + config.bus_bytes)
        return {
            "record": z3.If(loads, wires["i__payload"], wires["record"]),
            "number": z3.If(loads, number, wires["number"]),
            "begun": z3.If(reset, z3.BitVecVal(0, 1), z3.If(loads, more, wires["begun"])),
            "at": z3.If(reset, zero, z3.If(taken, z3.If(ends, zero, at + size), at)),
            "sent": z3.If(reset, zero, z3.If(_leaves(wires), sent, wires["sent"])),
            "length": z3.If(z3.And(taken, ends), padded, wires["length"]),
            "k": k,
            "value": z3.If(brings, byte_at(wires["step.octets"], k - start), wires["value"]),
            "laid_k": z3.If(brings, z3.BitVecVal(1, 1), z3.If(begins, z3.BitVecVal(0, 1), wires["laid_k"])),
        }

    widths = {
        "record": record_layout(config).size,
        "number": len(steps(config)).bit_length(),
        "begun": 1,
        **dict.fromkeys(("at", "sent", "length", "k"), width),
        "value": 8,
        "laid_k": 1,
    }
    return remembering(system, widths, follow, {"begun": 0, "at": 0, "sent": 0})


def invariant(config: SPUConfig) -> Invariant:
    """`step` is the one that comes next of its record, and `laid` is what has been laid down and has not left."""
    width, beat = _width(config), config.bus_bytes
    most = beat - 1 + STEP_BYTES
    if config.layout.padding_last:
        most += -most % config.layout.align

    def holds(wires: Wires) -> z3.BoolRef:
        number, at, sent, length = (wires[name] for name in ("number", "at", "sent", "length"))
        begun, stepping, ending = (_on(wires[name]) for name in ("begun", "stepping", "ending"))
        fill, laid = count(wires["fill"], width), wires["laid"]
        its = Steps(config, wires["record"], width)
        shown = [
            z3.And(
                number == step,
                its.sizes[step] != 0,
                wires["step.octets"] == its.octets[step],
                count(wires["step.size"], width) == its.sizes[step],
                wires["step.ends"] == int(step == its.last),
                at == its.before[step],
            )
            for step in range(its.last + 1)
        ]
        coming = Steps(config, wires["i__payload"], width)
        following = coming.next(begun, number)
        places = wires["chosen"].size()
        one = z3.BitVecVal(1, places)
        left = z3.Concat(
            *(z3.If(bit, z3.BitVecVal(1, 1), z3.BitVecVal(0, 1)) for bit in reversed(coming.left(following)))
        )
        k = wires["k"]
        here = z3.And(z3.UGE(k, sent), z3.ULT(k, sent + fill))
        value = z3.If(_on(wires["laid_k"]), wires["value"], z3.BitVecVal(0, 8))
        return z3.And(
            # A record stays at the input until its last step has been taken over; the next one is chosen.
            z3.Implies(
                begun,
                z3.And(
                    stepping, wires["chosen"] != 0, wires["record"] == wires["i__payload"], z3.ULT(number, its.last)
                ),
            ),
            z3.Implies(
                wires["chosen"] != 0,
                z3.And(
                    _on(wires["i__valid"]),
                    wires["chosen"] == one << z3.ZeroExt(places - following.size(), following),
                    wires["left"] == left,
                ),
            ),
            z3.Implies(stepping, z3.Or(*shown)),
            z3.Implies(z3.And(stepping, z3.Not(begun)), number == its.last),
            z3.Implies(z3.Not(stepping), at == 0),
            # What has been laid down of a record has left or is there.
            z3.Implies(z3.Not(ending), z3.And(sent + fill == at, count(wires["offset"], width) == fill & (beat - 1))),
            z3.Implies(ending, z3.And(at == 0, sent + fill == length, fill != 0, wires["offset"] == 0)),
            z3.ULE(fill, most),
            z3.ULE(sent, config.layout.max_size),
            sent & (beat - 1) == 0,
            z3.Implies(ending, z3.And(z3.ULE(length, config.layout.max_size), length & (config.layout.align - 1) == 0)),
            # Beyond that, and where no step had a byte, it is zero.
            *(
                z3.Implies(z3.ULE(fill, place), z3.Extract(8 * place + 7, 8 * place, laid) == 0)
                for place in range(laid.size() // 8)
            ),
            z3.Implies(here, byte_at(laid, k - sent) == value),
            z3.Implies(z3.And(z3.Not(ending), at != 0, z3.UGE(k, at)), wires["laid_k"] == 0),
        )

    return holds


def _kept(now: Wires, then: Wires) -> z3.BoolRef:
    return steady("i", now, then)


def prove_invariant(config: SPUConfig, system: Transition) -> Verdict:
    """`system` is a `watched` packer, fed with a stream."""
    return inductive(system, invariant(config), contract=_kept)


def prove_output(config: SPUConfig, system: Transition) -> Verdict:
    """Each beat holds the next bytes of its record, whole, the last one what is left; a record is taken when its last
    step is. `system` is a `watched` packer.
    """
    width, beat = _width(config), config.bus_bytes

    def told(now: Wires, then: Wires) -> z3.BoolRef:
        fill, sent, length, k = count(now["fill"], width), now["sent"], now["length"], now["k"]
        valid, last = _on(now["o__valid"]), _on(now["o__payload.last"])
        data = now["o__payload.data"]
        whole = z3.And(last, z3.UGE(sent + beat, length))
        end = z3.If(whole, length, sent + beat)
        value = z3.If(_on(now["laid_k"]), now["value"], z3.BitVecVal(0, 8))
        here = z3.And(z3.UGE(k, sent), z3.ULT(k, end))
        its = Steps(config, now["i__payload"], width)
        taken = z3.And(_on(now["i__valid"]), _on(now["i__ready"]))
        terms = [
            # A beat is full, or it is the last one, and then all of the record has left with it.
            z3.Implies(valid, z3.If(last, whole, z3.UGE(fill, beat))),
            z3.Implies(z3.And(valid, here), byte_at(z3.ZeroExt(width, data), k - sent) == value),
            taken == z3.And(_loads(now), its.next(_on(now["begun"]), now["number"]) == its.last),
            steady("o", now, then),
        ]
        terms += [
            z3.Implies(z3.And(valid, z3.ULE(end, sent + place)), z3.Extract(8 * place + 7, 8 * place, data) == 0)
            for place in range(beat)
        ]
        if "o__payload.end" in now:
            shown = count(now["o__payload.end"], width) * config.layout.align
            terms.append(z3.Implies(z3.And(valid, last), shown == length & (beat - 1)))
        return z3.And(*terms)

    return always(system, told, assuming=invariant(config))


def _work(config: SPUConfig, wires: Wires) -> z3.BitVecRef:
    """More than the cycles until what has come has left, if nothing stalls it."""
    size = 16
    its = Steps(config, wires["i__payload"], _width(config))
    begun = _on(wires["begun"])
    number = wires["number"]
    coming = [
        z3.And(_on(wires["i__valid"]), its.sizes[step] != 0, z3.Or(z3.Not(begun), z3.UGT(step, number)))
        for step in range(its.last + 1)
    ]
    parts = [z3.If(step, z3.BitVecVal(64, size), z3.BitVecVal(0, size)) for step in coming]
    waits = z3.If(z3.And(_on(wires["i__valid"]), wires["chosen"] == 0), z3.BitVecVal(1, size), z3.BitVecVal(0, size))
    parts += [count(wires["stepping"], size) * 32, count(wires["fill"], size), waits]
    return reduce(operator.add, parts)


def prove_ends(config: SPUConfig, system: Transition) -> Verdict:
    """Where the output is free and no record comes, there is less to do in each cycle, until all has left: no more than
    a number of cycles. `system` is a `watched` packer.
    """

    def less(now: Wires, then: Wires) -> z3.BoolRef:
        waits = z3.And(_on(now["i__valid"]), now["i__ready"] == 0)
        none_comes = z3.And(z3.Implies(_on(then["i__valid"]), waits), steady("i", now, then))
        before, after = _work(config, now), _work(config, then)
        free = z3.And(_on(now["o__ready"]), now["rst"] == 0, none_comes)
        idle = z3.And(now["stepping"] == 0, now["ending"] == 0, now["o__valid"] == 0)
        return z3.Implies(free, z3.If(before == 0, idle, z3.ULT(after, before)))

    return always(system, less, assuming=invariant(config))


def _goals(config: SPUConfig) -> Iterator[tuple[str, Invariant, Invariant]]:
    """Name, goal, what is assumed."""
    lengths = [len(records.lay_out(config, _blank(config, packets))) for packets in _contents(config)]
    size = _width(config)

    def free(wires: Wires) -> z3.BoolRef:
        return z3.And(_on(wires["o__ready"]), wires["rst"] == 0)

    for name, length in (("shortest", min(lengths)), ("longest", max(lengths))):

        def leaves(wires: Wires, length: int = length) -> z3.BoolRef:
            return z3.And(_leaves(wires), _on(wires["o__payload.last"]), wires["length"] == length)

        yield f"the {name} record, {length} bytes", leaves, free
    yield (
        "a record begins as another ends",
        lambda wires: z3.And(_leaves(wires), _on(wires["o__payload.last"]), _on(wires["taken"])),
        free,
    )
    parts = steps(config)
    for step, pieces in enumerate(parts):
        yield f"step {step}", lambda wires, step=step: z3.And(_on(wires["stepping"]), wires["number"] == step), free
        if all(piece.place is not None for piece in pieces):
            yield (
                f"not step {step}",
                lambda wires, step=step: z3.And(
                    _on(wires["stepping"]),
                    z3.UGT(wires["number"], step),
                    Steps(config, wires["record"], size).sizes[step] == 0,
                ),
                free,
            )


def _blank(config: SPUConfig, packets: Mapping[Packet, int]) -> list[tuple[Packet, bytes]]:
    return [(packet, bytes(config.packet_bytes[packet])) for packet in packets]


def cover(config: SPUConfig, system: Transition) -> Verdict:
    """Every goal. `system` is a `watched` packer."""
    return reach_all(system, _goals(config), cycles=20)


@cache
def _system(config: SPUConfig) -> Transition:
    return watched(config, transition(Packer(config)))


def proofs() -> Iterator[Proof]:
    """For each configuration whose records differ in size."""
    for config in PACKED:

        def proof(name, method, prove, quick=True, config=config):
            return Proof(name, "serializer", config.name, method, lambda: prove(config, _system(config)), quick)

        yield Proof(
            "the steps of a record are the reference's bytes", "serializer", config.name, "each pattern",
            lambda config=config: prove_steps(config),
        )  # fmt: skip
        yield proof("each step once, in order, and behind what was before", "induction", prove_invariant)
        yield proof("beats are what was laid down, whole, in order", "one cycle", prove_output)
        yield proof("whatever is begun leaves", "one cycle", prove_ends)
        yield proof(
            "cover: longest, shortest, back to back, each step and none",
            "bounded search",
            cover,
            config.name in CONFIGS,
        )
