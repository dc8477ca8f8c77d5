"""Aligner: each byte of a record is written once, at its address, and no other byte is written."""

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
    """State of the record in an aligner, from the wires of a cycle.

    Attributes
    ----------
    offset, first : BitVector
        Byte offset of the record in its first word. Byte index, in the record, of the first byte of the offered beat.
    size, length : BitVector
        Bytes of the offered beat. Bytes of the record up to and including this beat.
    ends : Boolean
        The record has no further beats.
    contains_k, has_k, value
        Byte k is in the offered beat. It is in that beat or an earlier one. Its value.
    """

    def __init__(self, config: SPUConfig, wires: Wires):
        self._wires = wires
        self.beat = config.bus_bytes
        self.width = width = _width(config)
        self.beats = wires["aligner_state"] == AlignerState.BEATS
        self.offset = widened(wires["offset"], width) * config.layout.align
        self.first = wires["words"] * self.beat
        # The last beat of a record has `end` units, or all of them if that is zero.
        ends = wires["i__payload.last"] == 1
        end = widened(wires["i__payload.end"], width) * config.layout.align
        self.size = if_else(all_of(ends, end != 0), end, constant(self.beat, width))
        self.ends = any_of(not_(self.beats), ends)
        self.length = if_else(self.beats, self.first + self.size, wires["length"])
        k = wires["k"]
        self.contains_k = all_of(self.beats, uge(k, self.first), ult(k, self.first + self.size))
        started = any_of(wires["words"] != 0, not_(self.beats))
        self.has_k = any_of(self.contains_k, all_of(started, wires["has_k"] == 1))
        byte_k = byte_at(zero_extend(width, wires["i__payload.data"]), k - self.first)
        self.value = if_else(self.contains_k, byte_k, wires["value"])

    @property
    def sent(self) -> Boolean:
        """A word is accepted by memory."""
        return all_of(self._wires["o__valid"] == 1, self._wires["o__ready"] == 1)


def _width(config: SPUConfig) -> int:
    return (config.layout.max_size + 4 * config.bus_bytes).bit_length()


def watched(config: SPUConfig, system: Transition) -> Transition:
    """Return `system`, an `Aligner` of `config`, with history registers of a record.

    words, length : words that have been sent; bytes of the record, once its last beat has arrived
    k, value, has_k : an arbitrary byte index in every record; the byte at it; whether that byte has arrived
    """
    zero = constant(0, _width(config))

    def follow(wires: Wires) -> Mapping[str, BitVector]:
        record = _Record(config, wires)
        reset = wires["rst"] == 1
        words = if_else(wires["o__payload.last"] == 1, zero, wires["words"] + 1)
        return {
            "words": if_else(reset, zero, if_else(record.sent, words, wires["words"])),
            "length": if_else(all_of(record.sent, record.ends), record.length, wires["length"]),
            "k": wires["k"],
            "value": if_else(record.sent, record.value, wires["value"]),
            "has_k": if_else(record.sent, as_bits(record.has_k), wires["has_k"]),
        }

    widths = {**dict.fromkeys(("words", "length", "k"), _width(config)), "value": 8, "has_k": 1}
    return with_history(system, widths, follow, {"words": 0})


def relation(config: SPUConfig) -> Invariant:
    """Return the invariant.

    `previous` is the previous beat without its first unit, `previous_end` the end of its remainder.
    """

    def holds(wires: Wires) -> Boolean:
        record = _Record(config, wires)
        k, has_k, words = wires["k"], wires["has_k"] == 1, wires["words"]
        received = words * record.beat
        first = received - record.beat + config.layout.align
        in_previous = all_of(uge(k, first), ult(k, received), has_k)
        same = byte_at(zero_extend(record.width, wires["previous"]), k - first) == wires["value"]
        started = wires["started"] == 1
        length = wires["length"]
        address = record.offset + length
        previous_end = widened(wires["previous_end"], record.width) * config.layout.align
        return all_of(
            ule(words, config.layout.max_size // record.beat),
            started == (words != 0),
            implies(all_of(started, in_previous), same),
            implies(all_of(started, record.beats), has_k == ult(k, received)),
            implies(
                not_(record.beats),
                all_of(
                    started,
                    has_k == ult(k, length),
                    ule(length, received),
                    ugt(length, received - record.beat),
                    ugt(address, received),
                    previous_end == address & (record.beat - 1),
                ),
            ),
        )

    return holds


def _contract(config: SPUConfig, now: Wires, then: Wires) -> Boolean:
    """Return the contract of the inputs.

    `ProfilingBuffer` keeps the offset from the first word of a record to the last. The serializer sends no record that
    is longer than the maximum.
    """
    record = _Record(config, now)
    within = implies(now["i__valid"] == 1, ule(record.first + record.beat, config.layout.max_size))
    return all_of(within, implies(then["words"] != 0, then["offset"] == now["offset"]))


def prove_relation(config: SPUConfig, system: Transition) -> Verdict:
    """Prove the invariant `relation`. `system` is a `watched` aligner."""
    return inductive(system, relation(config), contract=lambda now, then: _contract(config, now, then))


def prove_words(config: SPUConfig, system: Transition) -> Verdict:
    """Prove data, strobes and end of each word. `system` is a `watched` aligner."""

    def correct(wires: Wires) -> Boolean:
        record = _Record(config, wires)
        valid, last = wires["o__valid"] == 1, wires["o__payload.last"] == 1
        address = wires["k"] + record.offset
        in_word = all_of(uge(address, record.first), ult(address, record.first + record.beat))
        index = address - record.first
        strobe = wires["o__payload.strobe"]
        distance = extract(strobe.width - 1, 0, zero_extend(strobe.width, index))
        written = extract(0, 0, shift_right(strobe, distance)) == 1
        end = record.offset + record.length
        terms = [
            # A byte of the word is written exactly if it is a byte of the record, with the value of that byte.
            implies(all_of(valid, in_word), written == record.has_k),
            implies(
                all_of(valid, in_word, record.has_k),
                byte_at(zero_extend(record.width, wires["o__payload.data"]), index) == record.value,
            ),
            # No byte before the record is written.
            *(
                implies(all_of(valid, wires["words"] == 0, ugt(record.offset, byte)), extract(byte, byte, strobe) == 0)
                for byte in range(record.beat)
            ),
            # The last word contains the last byte.
            implies(valid, last == all_of(record.ends, ule(end, record.first + record.beat))),
            implies(
                all_of(valid, last),
                widened(wires["o__payload.end"], record.width) * config.layout.align == end & (record.beat - 1),
            ),
            # A beat is accepted with its word, and is stalled while the remainder of the previous record is sent.
            implies(record.beats, wires["o__valid"] == wires["i__valid"]),
            wires["i__ready"] == if_else(record.beats, wires["o__ready"], constant(0, 1)),
            implies(not_(record.beats), valid),
        ]
        return all_of(*terms)

    return always(system, correct, cycles=1, assuming=relation(config))


def prove_stalled_words(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that a stalled word is stable if stalled beats of the input and the offset are."""

    def word_is_stable(now: Wires, then: Wires) -> Boolean:
        inputs = all_of(then["offset"] == now["offset"], stable("i", now, then))
        return implies(inputs, stable("o", now, then))

    return always(system, word_is_stable)


def _goals(config: SPUConfig) -> Iterator[tuple[str, Invariant, Invariant]]:
    def free(wires: Wires) -> Boolean:
        return wires["rst"] == 0

    def ends(wires: Wires) -> Boolean:
        return all_of(wires["o__valid"] == 1, wires["o__payload.last"] == 1)

    yield (
        "one word more than beats",
        lambda wires: all_of(ends(wires), wires["aligner_state"] == AlignerState.REMAINDER),
        free,
    )
    yield "a record within a word", lambda wires: all_of(ends(wires), wires["words"] == 0, wires["offset"] != 0), free
    yield "a record of three words", lambda wires: all_of(ends(wires), wires["words"] == 2), free


def cover(config: SPUConfig, system: Transition) -> Verdict:
    """Reach every goal. `system` is a `watched` aligner."""
    return reach_all(system, _goals(config), cycles=5)


@cache
def _system(config: SPUConfig) -> Transition:
    return watched(config, transition(Aligner(config)))


def proofs() -> Iterator[Proof]:
    """Yield the proofs, for each alignment that is less than the bus. Otherwise every beat is a word."""
    configs = (config for config in PACKED if config.layout.align < config.bus_bytes)
    for config in distinct(configs, "layout.align bus_bytes"):
        proof = ProvedBlock("aligner", config, _system).proof
        yield proof("the carried bytes are those of the previous beat", "induction", prove_relation)
        yield proof("each byte is written once, at its address, and no other byte is", "any cycle", prove_words)
        yield proof("a stalled word is stable", "one cycle", prove_stalled_words)
        yield proof("cover: one word more than beats, a record within one word", "bounded search", cover)
