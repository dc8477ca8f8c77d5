"""The aligner: each byte of a record is written once, in the word and at the byte of its address, and no other is."""

from collections.abc import Iterator, Mapping
from functools import cache

from configurations import distinct
from spurtle.config import SPUConfig
from spurtle.gateware.aligner import Aligner, AlignerState

from ..engine.cover import reach_all
from ..engine.induction import Invariant, always, inductive
from ..engine.proof import Proof, ProvedBlock, Verdict
from ..engine.streams import stable
from ..engine.terms import (
    BitVector,
    Boolean,
    all_of,
    any_of,
    as_bits,
    constant,
    extract,
    if_else,
    implies,
    not_,
    shift_right,
    uge,
    ugt,
    ule,
    ult,
    widened,
    zero_extend,
)
from ..engine.transition import Transition, Wires, transition, with_history
from ..serializer.packer_history import byte_at
from ..serializer.steps import PACKED

__all__ = ["proofs", "prove_stalled_words", "prove_words", "relation", "watched"]


class _Record:
    """What of its record an aligner is at, from the wires of a cycle."""

    def __init__(self, config: SPUConfig, wires: Wires):
        self._wires = wires
        self.beat = config.bus_bytes
        self.width = width = _width(config)
        self.beats = wires["aligner_state"] == AlignerState.BEATS
        self.offset = widened(wires["offset"], width) * config.layout.align
        self.first = wires["words"] * self.beat
        # Of a beat that is offered, how many bytes it has.
        ends = wires["i__payload.last"] == 1
        end = widened(wires["i__payload.end"], width) * config.layout.align
        self.size = if_else(all_of(ends, end != 0), end, constant(self.beat, width))
        self.ends = any_of(not_(self.beats), ends)
        self.length = if_else(self.beats, self.first + self.size, wires["length"])
        k = wires["k"]
        self.brings = all_of(self.beats, uge(k, self.first), ult(k, self.first + self.size))
        begun = any_of(wires["words"] != 0, not_(self.beats))
        self.has_k = any_of(self.brings, all_of(begun, wires["has_k"] == 1))
        brought = byte_at(zero_extend(width, wires["i__payload.data"]), k - self.first)
        self.value = if_else(self.brings, brought, wires["value"])

    @property
    def leaves(self) -> Boolean:
        """A word is taken."""
        return all_of(self._wires["o__valid"] == 1, self._wires["o__ready"] == 1)


def _width(config: SPUConfig) -> int:
    return (config.layout.max_size + 4 * config.bus_bytes).bit_length()


def watched(config: SPUConfig, system: Transition) -> Transition:
    """An `Aligner` of `config`, and beside it what has become of a record.

    words, length : words that have left; bytes of the record, once its last beat has come
    k, value, has_k : an arbitrary place in every record; the byte that stands there, once it has come
    """
    zero = constant(0, _width(config))

    def follow(wires: Wires) -> Mapping[str, BitVector]:
        record = _Record(config, wires)
        reset = wires["rst"] == 1
        words = if_else(wires["o__payload.last"] == 1, zero, wires["words"] + 1)
        return {
            "words": if_else(reset, zero, if_else(record.leaves, words, wires["words"])),
            "length": if_else(all_of(record.leaves, record.ends), record.length, wires["length"]),
            "k": wires["k"],
            "value": if_else(record.leaves, record.value, wires["value"]),
            "has_k": if_else(record.leaves, as_bits(record.has_k), wires["has_k"]),
        }

    widths = {**dict.fromkeys(("words", "length", "k"), _width(config)), "value": 8, "has_k": 1}
    return with_history(system, widths, follow, {"words": 0})


def relation(config: SPUConfig) -> Invariant:
    """What is kept is the beat before without its first unit, and what it has left over."""

    def holds(wires: Wires) -> Boolean:
        record = _Record(config, wires)
        k, has_k, words = wires["k"], wires["has_k"] == 1, wires["words"]
        come = words * record.beat
        first = come - record.beat + config.layout.align
        before = all_of(uge(k, first), ult(k, come), has_k)
        kept = byte_at(zero_extend(record.width, wires["previous"]), k - first) == wires["value"]
        begun = wires["started"] == 1
        length = wires["length"]
        address = record.offset + length
        ended = widened(wires["previous_end"], record.width) * config.layout.align
        return all_of(
            ule(words, config.layout.max_size // record.beat),
            begun == (words != 0),
            implies(all_of(begun, before), kept),
            implies(all_of(begun, record.beats), has_k == ult(k, come)),
            implies(
                not_(record.beats),
                all_of(
                    begun,
                    has_k == ult(k, length),
                    ule(length, come),
                    ugt(length, come - record.beat),
                    ugt(address, come),
                    ended == address & (record.beat - 1),
                ),
            ),
        )

    return holds


def _promised(config: SPUConfig, now: Wires, then: Wires) -> Boolean:
    """`Buffer` keeps the offset from the first word to the last, and the serializer no record is longer than it may
    be.
    """
    record = _Record(config, now)
    within = implies(now["i__valid"] == 1, ule(record.first + record.beat, config.layout.max_size))
    return all_of(within, implies(then["words"] != 0, then["offset"] == now["offset"]))


def prove_relation(config: SPUConfig, system: Transition) -> Verdict:
    """`system` is a `watched` aligner."""
    return inductive(system, relation(config), contract=lambda now, then: _promised(config, now, then))


def prove_words(config: SPUConfig, system: Transition) -> Verdict:
    """What is written in each word. `system` is a `watched` aligner."""

    def told(wires: Wires) -> Boolean:
        record = _Record(config, wires)
        valid, last = wires["o__valid"] == 1, wires["o__payload.last"] == 1
        address = wires["k"] + record.offset
        here = all_of(uge(address, record.first), ult(address, record.first + record.beat))
        place = address - record.first
        strobe = wires["o__payload.strobe"]
        distance = extract(strobe.width - 1, 0, zero_extend(strobe.width, place))
        written = extract(0, 0, shift_right(strobe, distance)) == 1
        end = record.offset + record.length
        terms = [
            # The byte at k is written in this word, or it is none of the record's and not written.
            implies(all_of(valid, here), written == record.has_k),
            implies(
                all_of(valid, here, record.has_k),
                byte_at(zero_extend(record.width, wires["o__payload.data"]), place) == record.value,
            ),
            # Nothing before the record is.
            *(
                implies(all_of(valid, wires["words"] == 0, ugt(record.offset, byte)), extract(byte, byte, strobe) == 0)
                for byte in range(record.beat)
            ),
            # The last word is that of its last byte.
            implies(valid, last == all_of(record.ends, ule(end, record.first + record.beat))),
            implies(
                all_of(valid, last),
                widened(wires["o__payload.end"], record.width) * config.layout.align == end & (record.beat - 1),
            ),
            # A beat is taken with its word, and waits while there is more of the one before.
            implies(record.beats, wires["o__valid"] == wires["i__valid"]),
            wires["i__ready"] == if_else(record.beats, wires["o__ready"], constant(0, 1)),
            implies(not_(record.beats), valid),
        ]
        return all_of(*terms)

    return always(system, told, cycles=1, assuming=relation(config))


def prove_stalled_words(config: SPUConfig, system: Transition) -> Verdict:
    """A stalled word is the same in the next cycle, if a stalled beat of the input and the offset are."""

    def stands(now: Wires, then: Wires) -> Boolean:
        promised = all_of(then["offset"] == now["offset"], stable("i", now, then))
        return implies(promised, stable("o", now, then))

    return always(system, stands)


def _goals(config: SPUConfig) -> Iterator[tuple[str, Invariant, Invariant]]:
    def free(wires: Wires) -> Boolean:
        return wires["rst"] == 0

    def ends(wires: Wires) -> Boolean:
        return all_of(wires["o__valid"] == 1, wires["o__payload.last"] == 1)

    yield (
        "a word more than beats",
        lambda wires: all_of(ends(wires), wires["aligner_state"] == AlignerState.REMAINDER),
        free,
    )
    yield "a record within a word", lambda wires: all_of(ends(wires), wires["words"] == 0, wires["offset"] != 0), free
    yield "a record of three words", lambda wires: all_of(ends(wires), wires["words"] == 2), free


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
        proof = ProvedBlock("aligner", config, _system).proof
        yield proof("the carried bytes are those of the previous beat", "induction", prove_relation)
        yield proof("each byte is written once, at its address, and no other byte is", "any cycle", prove_words)
        yield proof("a stalled word is stable", "one cycle", prove_stalled_words)
        yield proof("cover: one word more than beats, a record within one word", "bounded search", cover)
