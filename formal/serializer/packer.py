"""Records of any length: the bytes of `model.records.lay_out`, each once, in order, and nothing else.

The packer takes a record apart into steps and lays them down behind each other. So does this proof. The steps, one
after the other, are what the reference writes: each pattern of packets, in Python. The steps that are laid down are
those of the record, each once, in order: induction. What is laid down leaves as it was: induction, for an arbitrary
byte.
"""

import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, reduce
from itertools import chain, combinations, product

import z3

from spurtle.config import CONFIGS, SPUConfig
from spurtle.config.record_layouts import LAST, Packet
from spurtle.gateware.packer import STEP_BYTES, Packer
from spurtle.gateware.record import record_layout
from spurtle_sim.model import records

from ..engine.features import FEATURES
from ..engine.induction import Invariant, Wires, always, inductive, reach_all
from ..engine.proof import Proof, Result, Verdict
from ..engine.streams import steady
from ..engine.transition import Transition, remembering, transition

__all__ = [
    "PACKED",
    "byte_at",
    "count",
    "invariant",
    "proofs",
    "prove_ends",
    "prove_output",
    "prove_steps",
    "record_comes",
    "watched",
]


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
    for place in layout.places:
        add(offset, place.size(sizes), elastic if place.elastic else None)
        offset, elastic = offset + place.size(sizes), elastic + place.elastic
    add(end, sizes[Packet.END], None)
    add(timed, sizes[Packet.TIMESTAMP] - sizes[Packet.END], elastic)
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

    def ends(self, number: z3.BitVecRef) -> z3.BoolRef:
        """It is the last step, or the last one of which something is there."""
        return z3.Or(number == self.last, z3.And(number == self.last - 1, self.sizes[self.last] == 0))


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
    return z3.And(_on(wires["moves"]), _on(wires["i__valid"]))


def _next(wires: Wires) -> z3.BitVecRef:
    """Which one it is."""
    return z3.If(_on(wires["begun"]), wires["number"] + 1, z3.BitVecVal(0, wires["number"].size()))


def _leaves(wires: Wires) -> z3.BoolRef:
    return z3.And(_on(wires["o__valid"]), _on(wires["o__ready"]))


def _start(config: SPUConfig, ends: z3.BoolRef, before: z3.BitVecRef, size: z3.BitVecRef) -> z3.BitVecRef:
    """Where a step comes in its record: behind the bytes that are there `before`, the end behind padding."""
    if config.layout.padding_last:
        return before
    return z3.If(ends, _align(config, before + size) - size, before)


def watched(config: SPUConfig, system: Transition) -> Transition:
    """A `Packer` of `config`, and beside it what has become of records.

    record, number : which step of which record is in `step`
    begun : it is one of the record at the input, of which there is more
    at : bytes of that record that come before it
    octets, size, before : what is in `placed`, unshifted, and bytes of its record that come before it
    down : bytes that have been laid down of a record that is not whole
    sent, length : bytes of the record in `laid` that have left; how long it is, once it is whole
    k, value, laid_k : an arbitrary place in every record; the byte that a step had for it, and whether one had
    """
    width = _width(config)
    zero = z3.BitVecVal(0, width)

    def follow(wires: Wires) -> Mapping[str, z3.BitVecRef]:
        reset, taken = _on(wires["rst"]), _on(wires["taken"])
        loads, number = _loads(wires), _next(wires)
        more = z3.If(Steps(config, wires["i__payload"], width).ends(number), z3.BitVecVal(0, 1), z3.BitVecVal(1, 1))
        passes = z3.And(_on(wires["moves"]), _on(wires["step.valid"]))
        at = z3.If(_on(wires["step.ends"]), zero, wires["at"] + count(wires["step.size"], width))
        placed = z3.And(passes, wires["step.size"] != 0)

        k, size, before, ends = wires["k"], wires["size"], wires["before"], _on(wires["placed.ends"])
        start = _start(config, ends, before, size)
        brings = z3.And(taken, z3.UGE(k, start), z3.ULT(k, start + size))
        begins = z3.And(taken, before == 0)
        left = _on(wires["o__payload.last"])
        sent = z3.If(left, zero, wires["sent"] + config.bus_bytes)
        return {
            "record": z3.If(loads, wires["i__payload"], wires["record"]),
            "number": z3.If(loads, number, wires["number"]),
            "begun": z3.If(reset, z3.BitVecVal(0, 1), z3.If(loads, more, wires["begun"])),
            "at": z3.If(reset, zero, z3.If(passes, at, wires["at"])),
            "octets": z3.If(placed, wires["step.octets"], wires["octets"]),
            "size": z3.If(placed, count(wires["step.size"], width), size),
            "before": z3.If(placed, wires["at"], before),
            "down": z3.If(reset, zero, z3.If(taken, z3.If(ends, zero, before + size), wires["down"])),
            "sent": z3.If(reset, zero, z3.If(_leaves(wires), sent, wires["sent"])),
            "length": z3.If(z3.And(taken, ends), _align(config, before + size), wires["length"]),
            "k": k,
            "value": z3.If(brings, byte_at(wires["octets"], k - start), wires["value"]),
            "laid_k": z3.If(brings, z3.BitVecVal(1, 1), z3.If(begins, z3.BitVecVal(0, 1), wires["laid_k"])),
        }

    widths = {
        "record": record_layout(config).size,
        "number": len(steps(config)).bit_length(),
        "begun": 1,
        "octets": 8 * STEP_BYTES,
        **dict.fromkeys(("at", "size", "before", "down", "sent", "length", "k"), width),
        "value": 8,
        "laid_k": 1,
    }
    return remembering(system, widths, follow, {"begun": 0, "at": 0, "down": 0, "sent": 0})


def invariant(config: SPUConfig) -> Invariant:
    """`step` is the one that comes next of its record, `placed` the one before it where it belongs, and `laid` what has
    been laid down and has not left.
    """

    def holds(wires: Wires) -> z3.BoolRef:
        return z3.And(*_step_is_next(config, wires), *_placed_is_next(config, wires), *_laid_is_left(config, wires))

    return holds


def _step_is_next(config: SPUConfig, wires: Wires) -> Iterator[z3.BoolRef]:
    width, beat = _width(config), config.bus_bytes
    number, at = wires["number"], wires["at"]
    begun, stepping, ends = (_on(wires[name]) for name in ("begun", "step.valid", "step.ends"))
    its = Steps(config, wires["record"], width)
    shown = (
        z3.And(
            number == step,
            wires["step.octets"] == its.octets[step],
            count(wires["step.size"], width) == its.sizes[step],
            at == its.before[step],
            its.sizes[step] != 0 if step == its.last else True,
        )
        for step in range(its.last + 1)
    )
    # A record stays at the input until its last step has been taken over; the next one is chosen.
    yield z3.Implies(begun, z3.And(stepping, wires["record"] == wires["i__payload"], _on(wires["i__valid"])))
    places = wires["chosen"].size()
    yield wires["chosen"] == z3.BitVecVal(1, places) << z3.ZeroExt(places - number.size(), _next(wires))
    yield z3.Implies(stepping, z3.And(z3.Or(*shown), ends == its.ends(number), begun == z3.Not(ends)))
    yield z3.Implies(z3.Not(stepping), at == 0)
    in_front = 0 if config.layout.padding_last else config.layout.align - 1
    place = at & (beat - 1) | z3.If(z3.And(stepping, ends), z3.BitVecVal(in_front, width), z3.BitVecVal(0, width))
    yield count(wires["place"], width) == place


def _placed_is_next(config: SPUConfig, wires: Wires) -> Iterator[z3.BoolRef]:
    width, align = _width(config), config.layout.align
    valid, ends = _on(wires["placed.valid"]), _on(wires["placed.ends"])
    size, before, octets = wires["size"], wires["before"], wires["octets"]
    start = _start(config, ends, before, size)
    place = start & (config.bus_bytes - 1)
    shifted = z3.ZeroExt(wires["placed.octets"].size() - octets.size(), octets)
    if not config.layout.padding_last:
        yield z3.Implies(z3.And(valid, ends), size & (align - 1) == 1 % align)
    yield z3.Implies(
        valid,
        z3.And(
            before == wires["down"],
            z3.UGT(size, 0),
            z3.ULE(size, STEP_BYTES),
            wires["placed.octets"] == shifted << z3.ZeroExt(shifted.size() - width, place << 3),
            count(wires["placed.fill"], width) == place + size,
            z3.ULE(_align(config, before + size), config.layout.max_size),
            *(z3.Implies(z3.ULE(size, n), z3.Extract(8 * n + 7, 8 * n, octets) == 0) for n in range(STEP_BYTES)),
        ),
    )
    behind = z3.If(ends, z3.BitVecVal(0, width), before + size)
    yield wires["at"] == z3.If(valid, behind, wires["down"])


def _laid_is_left(config: SPUConfig, wires: Wires) -> Iterator[z3.BoolRef]:
    width, beat = _width(config), config.bus_bytes
    down, sent, length, k = (wires[name] for name in ("down", "sent", "length", "k"))
    ending, laid, fill = _on(wires["ending"]), wires["laid"], count(wires["fill"], width)
    # What has been laid down of a record has left or is there.
    yield z3.Implies(z3.Not(ending), sent + fill == down)
    yield z3.Implies(ending, z3.And(down == 0, _align(config, sent + fill) == length, fill != 0))
    yield z3.Implies(ending, z3.ULE(length, config.layout.max_size))
    yield z3.ULE(fill, beat - 1 + STEP_BYTES)
    yield z3.And(z3.ULE(down, config.layout.max_size), z3.ULE(sent, config.layout.max_size), sent & (beat - 1) == 0)
    yield _on(wires["full"]) == z3.Or(ending, z3.UGE(fill, beat))
    yield _on(wires["room"]) == z3.And(z3.Not(ending), z3.ULT(fill, beat))
    below = z3.And(z3.UGE(fill, beat), z3.ULT(fill, 2 * beat))
    yield _on(wires["soon"]) == z3.If(ending, z3.ULE(fill, beat), below)
    # Beyond that, and where no step had a byte, it is zero.
    for place in range(laid.size() // 8):
        yield z3.Implies(z3.ULE(fill, place), z3.Extract(8 * place + 7, 8 * place, laid) == 0)
    here = z3.And(z3.UGE(k, sent), z3.ULT(k, sent + fill))
    value = z3.If(_on(wires["laid_k"]), wires["value"], z3.BitVecVal(0, 8))
    yield z3.Implies(here, byte_at(laid, k - sent) == value)
    yield z3.Implies(z3.And(z3.Or(ending, down != 0), z3.UGE(k, sent + fill)), wires["laid_k"] == 0)


def record_comes(config: SPUConfig) -> Invariant:
    """What `Record` is proved to keep: a record at the input is zero where a place is left out."""
    octets = record_layout(config)["octets"].width

    def holds(wires: Wires) -> z3.BoolRef:
        record = wires["i__payload"]
        return z3.And(
            *(
                z3.Implies(
                    z3.Extract(octets + piece.place, octets + piece.place, record) == 0,
                    z3.Extract(8 * (piece.offset + piece.size) - 1, 8 * piece.offset, record) == 0,
                )
                for piece in chain.from_iterable(steps(config))
                if piece.place is not None
            )
        )

    return holds


def prove_invariant(config: SPUConfig, system: Transition) -> Verdict:
    """`system` is a `watched` packer, fed with a stream of records."""
    comes = record_comes(config)
    return inductive(system, invariant(config), contract=lambda now, then: z3.And(steady("i", now, then), comes(now)))


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
            taken == z3.And(_loads(now), its.ends(_next(now))),
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
    last = Steps(config, wires["i__payload"], _width(config)).last
    parts = [
        z3.If(
            z3.And(_on(wires["i__valid"]), z3.UGE(step, _next(wires))), z3.BitVecVal(128, size), z3.BitVecVal(0, size)
        )
        for step in range(last + 1)
    ]
    parts += [
        count(wires["step.valid"], size) * 64,
        count(wires["placed.valid"], size) * 32,
        count(wires["fill"], size),
    ]
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
        idle = z3.And(now["step.valid"] == 0, now["placed.valid"] == 0, now["o__valid"] == 0)
        return z3.Implies(free, z3.If(before == 0, idle, z3.ULT(after, before)))

    return always(system, less, assuming=invariant(config))


def _goals(config: SPUConfig) -> Iterator[tuple[str, Invariant, Invariant]]:
    """Name, goal, what is assumed."""
    lengths = [len(records.lay_out(config, _blank(config, packets))) for packets in _contents(config)]

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
        yield f"step {step}", lambda wires, step=step: z3.And(_on(wires["step.valid"]), wires["number"] == step), free
        if all(piece.place is not None for piece in pieces):

            def lacks(wires: Wires, step: int = step) -> z3.BoolRef:
                last = z3.And(_on(wires["step.ends"]), wires["number"] == step - 1)
                none = z3.And(wires["number"] == step, wires["step.size"] == 0)
                return z3.And(_on(wires["step.valid"]), last if step == len(parts) - 1 else none)

            yield f"nothing of step {step}", lacks, free


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

        def proof(name, method, prove, config=config):
            return Proof(name, "serializer", config.name, method, lambda: prove(config, _system(config)))

        yield Proof(
            "the steps of a record are the reference's bytes", "serializer", config.name, "each pattern",
            lambda config=config: prove_steps(config),
        )  # fmt: skip
        yield proof("each step once, in order, and behind what was before", "induction", prove_invariant)
        yield proof("beats are what was laid down, whole, in order", "one cycle", prove_output)
        yield proof("whatever is begun leaves", "one cycle", prove_ends)
        yield proof("cover: longest, shortest, back to back, each step and none", "bounded search", cover)
