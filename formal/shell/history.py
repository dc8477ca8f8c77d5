"""Transfers of an AXI4 writer, its FIFO of words, and the history registers of its proofs."""

from collections.abc import Mapping
from dataclasses import dataclass

from spurtle.config import SPUConfig
from spurtle.shell.words import queue_depth

from ..engine.terms import (
    BitVector,
    Boolean,
    all_of,
    any_of,
    as_bits,
    boolean,
    concat,
    constant,
    extract,
    if_else,
    widened,
)
from ..engine.transition import Transition, Wires, with_history

__all__ = ["Bus", "Entry", "StoredWords", "ends", "number", "watched_writer", "wide"]

WIDTH = 8
"""Width of the numbers of words and bursts in the proofs. Far fewer are in flight, so that the order is known."""


def wide(value: BitVector) -> BitVector:
    """Return a number of words, bursts or records in the width of the proofs."""
    return widened(value, WIDTH)


def number(condition: Boolean) -> BitVector:
    """Return 1 if the condition holds, and 0 otherwise."""
    return as_bits(condition, WIDTH)


def ends(entry: BitVector) -> Boolean:
    """Return the most significant bit of a word in the FIFO, or of a burst in the FIFO of bursts: the last one."""
    return extract(entry.width - 1, entry.width - 1, entry) == 1


class Bus:
    """Transfers in a cycle."""

    def __init__(self, wires: Wires):
        def one(name: str) -> Boolean:
            return wires[name] == 1

        self.aw, self.w, self.b = one("axi__awvalid"), one("axi__wvalid"), one("axi__bvalid")
        self.aw_taken = all_of(self.aw, one("axi__awready"))
        self.w_taken = all_of(self.w, one("axi__wready"))
        self.ends = all_of(self.w_taken, one("axi__wlast"))
        self.length = wide(wires["axi__awlen"]) + 1
        self.beat = one("write__beat__valid")
        self.beat_taken = all_of(self.beat, one("write__beat__ready"))
        self.record_ends = all_of(self.beat_taken, one("write__beat__payload.last"))
        self.done = one("write__done")
        self.faults = all_of(self.done, wires["write__fault.kind"] != 0)


@dataclass(frozen=True)
class Entry:
    """Word in the FIFO, and the number of words that leave it before this one."""

    word: BitVector
    distance: BitVector


class StoredWords:
    """FIFO of words. Words are numbered from the first one ever sent, in the order of the W channel.

    waiting, unreleased : words of started bursts, and further words
    sent : number of the word on W, or of the next one
    loaded, released, stored : number of the next word that leaves the FIFO, that a burst releases, that is stored
    entries : words by address
    """

    def __init__(self, config: SPUConfig, wires: Wires):
        def distance(later: str, earlier: str) -> BitVector:
            return wide(wires[f"words.{later}"] - wires[f"words.{earlier}"])

        self.waiting = distance("released", "loaded")
        self.unreleased = distance("stored", "released")
        self.sent = wires["sent"]
        self.loaded = self.sent + wide(wires["words.o__valid"])
        self.released = self.loaded + self.waiting
        self.stored = self.released + self.unreleased
        first = wires["words.loaded"]
        first = extract(first.width - 2, 0, first)
        self.entries = [
            Entry(wires[f"words.words[{address}]"], wide(constant(address, first.width) - first))
            for address in range(queue_depth(config))
        ]

    @property
    def level(self) -> BitVector:
        """All words in the FIFO."""
        return self.waiting + self.unreleased


def watched_writer(config: SPUConfig, system: Transition) -> Transition:
    """Return `system`, an `AXI4Writer`, with history registers of its ports, and of one arbitrary word.

    sent : words sent on the W channel
    addressed_words : words of the bursts whose address has been accepted
    started, addressed, answered : bursts that started, whose address was accepted, that have a response
    burst, burst_end : number of an arbitrary burst, counted like `started`, which never changes; number of the word
        after it
    records : complete records that have not been answered
    position : beats of the incomplete record that have been transferred
    discards : a fault was reported in the previous cycle, or `write.discard` was asserted
    next_address, state : address in words of the next beat of that record; its Security state
    target : number of the arbitrary word, counted like `sent`; it never changes
    target_word, target_address, target_position, target_state : the word as it was stored, its address in words, its
        number within its record, and the Security state of the record
    """
    word = config.bus_bytes.bit_length() - 1

    def follow(wires: Wires) -> Mapping[str, BitVector]:
        bus, stored = Bus(wires), StoredWords(config, wires)
        last = wires["write__beat__payload.last"] == 1
        address = extract(63, word, wires["write__beat__payload.address"])
        state = concat(wires["nse"], wires["ns"]) if config.rme else wires["ns"]
        state = if_else(wires["position"] == 0, state, wires["state"])
        discard = wires["write__discard"] == 1 if config.outstanding > 1 else boolean(False)
        followed = {
            "sent": wires["sent"] + number(bus.w_taken),
            "addressed_words": wires["addressed_words"] + if_else(bus.aw_taken, bus.length, 0),
            "started": wires["started"] + wide(wires["responses.begin"]),
            "addressed": wires["addressed"] + number(bus.aw_taken),
            "answered": wires["answered"] + number(bus.b),
            "records": wires["records"] + number(bus.record_ends) - number(bus.done),
            "position": if_else(bus.beat_taken, if_else(last, 0, wires["position"] + 1), wires["position"]),
            "next_address": if_else(bus.beat_taken, address + 1, wires["next_address"]),
            "state": if_else(bus.beat_taken, state, wires["state"]),
            "discards": extract(0, 0, number(any_of(bus.faults, discard))),
        }
        begins = all_of(wires["responses.begin"] == 1, wires["started"] == wires["burst"])
        followed["burst_end"] = if_else(begins, stored.stored, wires["burst_end"])
        followed = {
            name: if_else(wires["rst"] == 1, constant(0, value.width), value) for name, value in followed.items()
        }
        store = all_of(wires["words.store"] == 1, stored.stored == wires["target"])
        seen = {"word": wires["words.word"], "address": address, "position": wires["position"], "state": state}
        target = {f"target_{name}": if_else(store, value, wires[f"target_{name}"]) for name, value in seen.items()}
        return {"target": wires["target"], "burst": wires["burst"], **followed, **target}

    states = 1 + config.rme
    counts = ("sent", "addressed_words", "started", "addressed", "answered", "burst_end", "records", "position")
    zero = dict.fromkeys(counts, WIDTH)
    zero |= {"next_address": 64 - word, "state": states, "discards": 1}
    target = {"word": 9 * config.bus_bytes + 1, "address": 64 - word, "position": WIDTH, "state": states}
    widths = {**zero, "target": WIDTH, "burst": WIDTH, **{f"target_{name}": width for name, width in target.items()}}
    return with_history(system, widths, follow, dict.fromkeys(zero, 0))
