"""Invariants of the AXI4 writer: the numbers of its words, bursts and records."""

from functools import reduce
from operator import add

from spurtle.config import SPUConfig
from spurtle.shell.bursts import can_divide, longest_record
from spurtle.shell.responses import max_open_bursts
from spurtle.shell.words import queue_depth

from ..engine.terms import (
    BitVector,
    Boolean,
    all_of,
    any_of,
    boolean,
    concat,
    constant,
    extract,
    if_else,
    implies,
    not_,
    ule,
    ult,
    widened,
)
from ..engine.transition import Wires
from .history import Bus, StoredWords, ends, number, wide

__all__ = ["PAGE", "Relation"]

PAGE = 4096

SENT = 64
"""Upper bound of the words that are sent after a burst until its response. A greater difference is negative."""


class Relation:
    """Contract and invariants of an `AXI4Writer`. The system is the result of `watched_writer`."""

    def __init__(self, config: SPUConfig):
        self._config = config
        self._word = config.bus_bytes.bit_length() - 1
        self._longest = longest_record(config)
        self._divides = can_divide(config)

    # Assumptions.

    def contract(self, wires: Wires) -> Boolean:
        """Return the contract of the inputs of a cycle.

        A response follows the address and the last word of its burst. The beats of a record have consecutive addresses.
        At most `outstanding` records are outstanding, and none exceeds the maximum size. `write.discard` is asserted
        from the cycle after a fault until no record is outstanding.
        """
        bus, address = Bus(wires), wires["write__beat__payload.address"]
        in_record = wires["position"] != 0
        terms = [
            implies(bus.b, wires["answered"] != wires["addressed"]),
            implies(all_of(bus.b, wires["answered"] == wires["burst"]), ule(wires["sent"] - wires["burst_end"], SENT)),
            implies(bus.beat, ult(wires["records"], self._config.outstanding)),
            implies(bus.beat, ult(wires["position"], self._longest)),
            implies(all_of(bus.beat, wires["position"] == self._longest - 1), wires["write__beat__payload.last"] == 1),
            implies(bus.beat, extract(self._word - 1, 0, address) == 0),
            implies(all_of(bus.beat, in_record), extract(63, self._word, address) == wires["next_address"]),
        ]
        if not self._divides:
            # Each record has the maximum size, and begins at a multiple of it.
            size = self._config.max_record_bytes.bit_length() - 1
            last = wires["write__beat__payload.last"] == 1
            terms += [
                implies(all_of(bus.beat, not_(in_record)), extract(size - 1, 0, address) == 0),
                implies(bus.beat, last == (wires["position"] == self._longest - 1)),
            ]
        if self._config.outstanding > 1:
            outstanding = any_of(wires["records"] != 0, in_record, bus.beat)
            terms.append((wires["write__discard"] == 1) == all_of(wires["discards"] == 1, outstanding))
        return all_of(*terms)

    def assumption(self, now: Wires, then: Wires) -> Boolean:
        return self.contract(now)

    def discards(self, wires: Wires) -> Boolean:
        return wires["discards"] == 1 if self._config.outstanding > 1 else boolean(False)

    def drops(self, wires: Wires) -> Boolean:
        return any_of(self.failed(wires), self.discards(wires))

    def failed(self, wires: Wires) -> Boolean:
        return wires["responses.failed"] == 1 if self._config.external_aborts else boolean(False)

    def open(self, wires: Wires) -> BitVector:
        # With one open burst, the count is the flag.
        return wide(wires["responses.full" if self._config.outstanding == 1 else "responses.open_bursts"])

    # Invariants.

    def bursts(self, wires: Wires) -> Boolean:
        """Return the invariant of the bursts: if none is open, every word of every burst has been sent.

        This is proved of the burst number `burst`, if it is the newest one, and therefore of every newest one.
        """
        stored, bus = StoredWords(self._config, wires), Bus(wires)
        open_, started, answered = self.open(wires), wires["started"], wires["answered"]
        skid = wires["addresses.skid.stalled"] == 1
        newest = started == wires["burst"] + 1
        return all_of(
            implies(skid, bus.aw),
            open_ == started - answered,
            started == wires["addressed"] + number(bus.aw) + number(skid),
            *(ule(count, max_open_bursts(self._config)) for count in (open_, wires["addressed"] - answered)),
            ule(stored.waiting, queue_depth(self._config)),
            ule(stored.level, queue_depth(self._config)),
            wide(wires["words.level"]) == stored.level,
            implies(newest, wires["burst_end"] == stored.released),
            implies(newest, self._all_sent(wires)),
        )

    def _all_sent(self, wires: Wires) -> Boolean:
        """Return whether no word of a burst waits if no burst is open."""
        waits = any_of(StoredWords(self._config, wires).waiting != 0, Bus(wires).w)
        return implies(waits, self.open(wires) != 0)

    def order(self, wires: Wires) -> Boolean:
        """Return the invariant of the words.

        The addresses that wait to be sent belong to the words up to the last one that has been released. The further
        words that are stored belong to the burst that is being collected.
        """
        stored, bus = StoredWords(self._config, wires), Bus(wires)
        complete, in_burst, skid = (
            wires[name] == 1 for name in ("collector.complete", "collector.in_burst", "addresses.skid.stalled")
        )
        after_skid = wires["addressed_words"] + if_else(bus.aw, bus.length, 0)
        after_skid += if_else(skid, wide(wires["addresses.skid.skid.more"]) + 1, 0)
        collected = if_else(any_of(complete, in_burst), wide(wires["collector.burst__payload.more"]) + 1, 0)
        return all_of(
            after_skid == stored.released,
            not_(all_of(complete, in_burst)),
            implies(not_(self.failed(wires)), stored.unreleased == collected),
            # Nothing is in flight or stored while records are discarded.
            implies(self.discards(wires), all_of(not_(self.failed(wires)), self.open(wires) == 0, collected == 0)),
        )

    # The collector, and the target.

    def collector(self, wires: Wires) -> Boolean:
        """Return the invariant of the burst that is being collected, and of the pages of all bursts."""
        complete, in_burst, in_record = (
            wires[f"collector.{name}"] == 1 for name in ("complete", "in_burst", "in_record")
        )
        burst = "collector.burst__payload"
        more, position = wide(wires[f"{burst}.more"]), wires["position"]
        terms = [
            in_record == (position != 0),
            implies(in_burst, in_record),
            implies(any_of(in_record, complete), self.state(wires, burst) == wires["state"]),
            ult(position, self._longest),
            implies(in_record, ult(wires["records"], self._config.outstanding)),
            implies(in_burst, wires[f"{burst}.address"] + widened(more, 64 - self._word) + 1 == wires["next_address"]),
            implies(complete, self._within_page(wires, burst, 0)),
            implies(in_burst, self._within_page(wires, burst, 1)),
            implies(wires["addresses.skid.stalled"] == 1, self._within_page(wires, "addresses.skid.skid", 0)),
            implies(wires["addresses.o__valid"] == 1, self._within_page(wires, "addresses.o__payload", 0)),
        ]
        if self._divides:
            terms += [
                wide(wires["collector.count"]) == position,
                implies(in_burst, position == wide(wires[f"{burst}.first"]) + more + 1),
                implies(complete, (wires[f"{burst}.last"] == 0) == in_record),
            ]
        else:
            terms += [in_burst == in_record, implies(in_burst, position == more + 1)]
            size = self._longest.bit_length() - 1
            next_index = extract(size - 1, 0, wires["next_address"])
            terms += [implies(in_record, next_index == extract(size - 1, 0, position))] if size else []
        return all_of(*terms)

    def _within_page(self, wires: Wires, burst: str, extra: int) -> Boolean:
        """Return whether the burst and `extra` further words are on one page. This bounds its length as well."""
        first = widened(extract(11 - self._word, 0, wires[f"{burst}.address"]), 16)
        return ult(first + widened(wires[f"{burst}.more"], 16) + extra, PAGE >> self._word)

    def state(self, wires: Wires, burst: str) -> BitVector:
        return concat(wires[f"{burst}.nse"], wires[f"{burst}.ns"]) if self._config.rme else wires[f"{burst}.ns"]

    # Answers.

    def answers(self, wires: Wires) -> Boolean:
        """Return the invariant of the answers: each complete record has one last burst that has no response."""
        open_, drop = self.open(wires), self.drops(wires)
        failed, in_record = self.failed(wires), wires["collector.in_record"] == 1
        complete = wires["collector.complete"] == 1
        waits, newest = number(complete), boolean(True)
        ends_of_records = open_
        if self._divides:
            last = wires["collector.burst__payload.last"] == 1
            waits = number(all_of(complete, last))
            depth = max(max_open_bursts(self._config), 2)
            lasts = []
            for entry in range(depth):
                word = wires[f"responses.bursts[{entry}]"]
                answered = wires["responses.answered"]
                distance = wide(constant(entry, answered.width) - answered)
                lasts.append(all_of(ult(distance, open_), ends(word)))
                newest = all_of(newest, implies(distance == open_ - 1, any_of(ends(word), in_record, waits == 1)))
            ends_of_records = reduce(add, map(number, lasts))
        terms = [
            ule(wires["records"], self._config.outstanding),
            implies(not_(drop), wires["records"] == ends_of_records + waits),
            implies(all_of(not_(drop), open_ != 0), newest),
            implies(failed, any_of(wires["records"] != 0, in_record)),
        ]
        if self._config.external_aborts:
            terms.append(wide(wires["responses.unanswered"]) == wires["records"])
        else:
            terms.append(not_(self.discards(wires)))
        return all_of(*terms)

    def relation(self, wires: Wires) -> Boolean:
        """Return the conjunction of the invariants that `prove_relation` proves."""
        return all_of(self.order(wires), self.collector(wires), self.answers(wires))

    def all_bursts(self, wires: Wires) -> Boolean:
        """Return what `prove_bursts` proves: the invariant, and of every newest burst that its words are sent."""
        return all_of(self.bursts(wires), self._all_sent(wires))
