"""The aligner: each byte of a record is written once, in the word and at the byte of its address, and no other is."""

from collections.abc import Iterator, Mapping
from functools import cache

import z3

from spurtle.config import SPUConfig
from spurtle.gateware.aligner import Aligner, AlignerState

from ..engine.features import distinct
from ..engine.induction import Invariant, Wires, always, inductive, reach_all
from ..engine.proof import Proof, Verdict
from ..engine.streams import steady
from ..engine.transition import Transition, remembering, transition
from ..serializer.packer import PACKED, byte_at, count

__all__ = ["proofs", "prove_stalled_words", "prove_words", "relation", "watched"]


class _Record:
    """What of its record an aligner is at, from the wires of a cycle."""

    def __init__(self, config: SPUConfig, wires: Wires):
        self._wires = wires
        self.beat = config.bus_bytes
        self.width = width = _width(config)
        self.beats = wires["aligner_state"] == AlignerState.BEATS
        self.offset = count(wires["offset"], width) * config.layout.align
        self.first = wires["words"] * self.beat
        # Of a beat that is offered, how many bytes it has.
        ends = wires["i__payload.last"] == 1
        end = count(wires["i__payload.end"], width) * config.layout.align
        self.size = z3.If(z3.And(ends, end != 0), end, z3.BitVecVal(self.beat, width))
        self.ends = z3.Or(z3.Not(self.beats), ends)
        self.length = z3.If(self.beats, self.first + self.size, wires["length"])
        k = wires["k"]
        self.brings = z3.And(self.beats, z3.UGE(k, self.first), z3.ULT(k, self.first + self.size))
        begun = z3.Or(wires["words"] != 0, z3.Not(self.beats))
        self.has_k = z3.Or(self.brings, z3.And(begun, wires["has_k"] == 1))
        brought = byte_at(z3.ZeroExt(width, wires["i__payload.data"]), k - self.first)
        self.value = z3.If(self.brings, brought, wires["value"])

    @property
    def leaves(self) -> z3.BoolRef:
        """A word is taken."""
        return z3.And(self._wires["o__valid"] == 1, self._wires["o__ready"] == 1)


def _width(config: SPUConfig) -> int:
    return (config.layout.max_size + 4 * config.bus_bytes).bit_length()


def watched(config: SPUConfig, system: Transition) -> Transition:
    """An `Aligner` of `config`, and beside it what has become of a record.

    words, length : words that have left; bytes of the record, once its last beat has come
    k, value, has_k : an arbitrary place in every record; the byte that stands there, once it has come
    """
    zero = z3.BitVecVal(0, _width(config))

    def follow(wires: Wires) -> Mapping[str, z3.BitVecRef]:
        record = _Record(config, wires)
        reset = wires["rst"] == 1
        words = z3.If(wires["o__payload.last"] == 1, zero, wires["words"] + 1)
        return {
            "words": z3.If(reset, zero, z3.If(record.leaves, words, wires["words"])),
            "length": z3.If(z3.And(record.leaves, record.ends), record.length, wires["length"]),
            "k": wires["k"],
            "value": z3.If(record.leaves, record.value, wires["value"]),
            "has_k": z3.If(record.leaves, z3.If(record.has_k, z3.BitVecVal(1, 1), z3.BitVecVal(0, 1)), wires["has_k"]),
        }

    widths = {**dict.fromkeys(("words", "length", "k"), _width(config)), "value": 8, "has_k": 1}
    return remembering(system, widths, follow, {"words": 0})


def relation(config: SPUConfig) -> Invariant:
    """What is kept is the beat before without its first unit, and what it has left over."""

    def holds(wires: Wires) -> z3.BoolRef:
        record = _Record(config, wires)
        k, has_k, words = wires["k"], wires["has_k"] == 1, wires["words"]
        come = words * record.beat
        first = come - record.beat + config.layout.align
        before = z3.And(z3.UGE(k, first), z3.ULT(k, come), has_k)
        kept = byte_at(z3.ZeroExt(record.width, wires["before"]), k - first) == wires["value"]
        begun = wires["begun"] == 1
        length = wires["length"]
        address = record.offset + length
        ended = count(wires["ended"], record.width) * config.layout.align
        return z3.And(
            z3.ULE(words, config.layout.max_size // record.beat),
            begun == (words != 0),
            z3.Implies(z3.And(begun, before), kept),
            z3.Implies(z3.And(begun, record.beats), has_k == z3.ULT(k, come)),
            z3.Implies(
                z3.Not(record.beats),
                z3.And(
                    begun,
                    has_k == z3.ULT(k, length),
                    z3.ULE(length, come),
                    z3.UGT(length, come - record.beat),
                    z3.UGT(address, come),
                    ended == address & (record.beat - 1),
                ),
            ),
        )

    return holds


def _promised(config: SPUConfig, now: Wires, then: Wires) -> z3.BoolRef:
    """`Buffer` keeps the offset from the first word to the last, and the serializer no record is longer than it may
    be.
    """
    record = _Record(config, now)
    within = z3.Implies(now["i__valid"] == 1, z3.ULE(record.first + record.beat, config.layout.max_size))
    return z3.And(within, z3.Implies(then["words"] != 0, then["offset"] == now["offset"]))


def prove_relation(config: SPUConfig, system: Transition) -> Verdict:
    """`system` is a `watched` aligner."""
    return inductive(system, relation(config), contract=lambda now, then: _promised(config, now, then))


def prove_words(config: SPUConfig, system: Transition) -> Verdict:
    """What is written in each word. `system` is a `watched` aligner."""

    def told(wires: Wires) -> z3.BoolRef:
        record = _Record(config, wires)
        valid, last = wires["o__valid"] == 1, wires["o__payload.last"] == 1
        address = wires["k"] + record.offset
        here = z3.And(z3.UGE(address, record.first), z3.ULT(address, record.first + record.beat))
        place = address - record.first
        strobe = wires["o__payload.strobe"]
        distance = z3.Extract(strobe.size() - 1, 0, z3.ZeroExt(strobe.size(), place))
        written = z3.Extract(0, 0, z3.LShR(strobe, distance)) == 1
        end = record.offset + record.length
        terms = [
            # The byte at k is written in this word, or it is none of the record's and not written.
            z3.Implies(z3.And(valid, here), written == record.has_k),
            z3.Implies(
                z3.And(valid, here, record.has_k),
                byte_at(z3.ZeroExt(record.width, wires["o__payload.data"]), place) == record.value,
            ),
            # Nothing before the record is.
            *(
                z3.Implies(
                    z3.And(valid, wires["words"] == 0, z3.UGT(record.offset, byte)), z3.Extract(byte, byte, strobe) == 0
                )
                for byte in range(record.beat)
            ),
            # The last word is that of its last byte.
            z3.Implies(valid, last == z3.And(record.ends, z3.ULE(end, record.first + record.beat))),
            z3.Implies(
                z3.And(valid, last),
                count(wires["o__payload.end"], record.width) * config.layout.align == end & (record.beat - 1),
            ),
            # A beat is taken with its word, and waits while there is more of the one before.
            z3.Implies(record.beats, wires["o__valid"] == wires["i__valid"]),
            wires["i__ready"] == z3.If(record.beats, wires["o__ready"], z3.BitVecVal(0, 1)),
            z3.Implies(z3.Not(record.beats), valid),
        ]
        return z3.And(*terms)

    return always(system, told, cycles=1, assuming=relation(config))


def prove_stalled_words(config: SPUConfig, system: Transition) -> Verdict:
    """A stalled word is the same in the next cycle, if a stalled beat of the input and the offset are."""

    def stands(now: Wires, then: Wires) -> z3.BoolRef:
        promised = z3.And(then["offset"] == now["offset"], steady("i", now, then))
        return z3.Implies(promised, steady("o", now, then))

    return always(system, stands)


def _goals(config: SPUConfig) -> Iterator[tuple[str, Invariant, Invariant]]:
    def free(wires: Wires) -> z3.BoolRef:
        return wires["rst"] == 0

    def ends(wires: Wires) -> z3.BoolRef:
        return z3.And(wires["o__valid"] == 1, wires["o__payload.last"] == 1)

    yield "a word more than beats", lambda wires: z3.And(ends(wires), wires["aligner_state"] == AlignerState.REST), free
    yield "a record within a word", lambda wires: z3.And(ends(wires), wires["words"] == 0, wires["offset"] != 0), free
    yield "a record of three words", lambda wires: z3.And(ends(wires), wires["words"] == 2), free


def cover(config: SPUConfig, system: Transition) -> Verdict:
    """Every goal. `system` is a `watched` aligner."""
    return reach_all(system, _goals(config), cycles=5)


@cache
def _system(config: SPUConfig) -> Transition:
    return watched(config, transition(Aligner(config)))


def proofs() -> Iterator[Proof]:
    """For each alignment that is less than the bus. Where it is not, every beat is a word."""
    configs = (config for config in PACKED if config.layout.align < config.bus_bytes)
    for config in distinct(configs, "layout.align bus_bytes"):

        def proof(name, method, prove, config=config):
            return Proof(name, "aligner", config.name, method, lambda: prove(config, _system(config)))

        yield proof("what is kept is the beat before", "induction", prove_relation)
        yield proof("each byte is written once, at its address, and no other", "any cycle", prove_words)
        yield proof("a stalled word stands", "one cycle", prove_stalled_words)
        yield proof("cover: a word more than beats, a record within a word", "bounded search", cover)
