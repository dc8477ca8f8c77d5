"""AXI4 port of a shell: the rules of AXI4 for a manager; no word is lost, repeated, or written after an error."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache, reduce
from operator import add

from configurations import FEATURES
from spurtle.config import CONFIGS, SPUConfig
from spurtle.shell.axi4 import AXI4Writer
from spurtle.shell.bursts import can_divide, longest_record
from spurtle.shell.responses import max_open_bursts
from spurtle.shell.words import queue_depth

from ..engine.cover import reach_all
from ..engine.induction import Invariant, always, inductive
from ..engine.proof import Proof, Result, Verdict
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
from ..engine.transition import Transition, Wires, transition
from .history import Bus, Stored, ends, number, watched_writer, wide

__all__ = ["AXI", "proofs", "prove_stable"]

PAGE = 4096

SENT = 64
"""Upper bound of the words that are sent after a burst until its response. A greater difference is negative."""


class AXI:
    """Proofs of an `AXI4Writer`. `system` is the result of `watched_writer`.

    They follow one arbitrary word, number `target`. What is proved of it holds for every word.
    """

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

    def _contract(self, now: Wires, then: Wires) -> Boolean:
        return self.contract(now)

    def _discards(self, wires: Wires) -> Boolean:
        return wires["discards"] == 1 if self._config.outstanding > 1 else boolean(False)

    def _drops(self, wires: Wires) -> Boolean:
        return any_of(self._failed(wires), self._discards(wires))

    def _failed(self, wires: Wires) -> Boolean:
        return wires["responses.failed"] == 1 if self._config.external_aborts else boolean(False)

    def _open(self, wires: Wires) -> BitVector:
        # With one open burst, the count is the flag.
        return wide(wires["responses.full" if self._config.outstanding == 1 else "responses.open_bursts"])

    # Invariants.

    def bursts(self, wires: Wires) -> Boolean:
        """Return the invariant of the bursts: if none is open, every word of every burst has been sent.

        This is proved of the burst number `burst`, if it is the newest one, and therefore of every newest one.
        """
        stored, bus = Stored(self._config, wires), Bus(wires)
        open_, begun, answered = self._open(wires), wires["begun"], wires["answered"]
        skid = wires["addresses.skid_valid"] == 1
        newest = begun == wires["burst"] + 1
        return all_of(
            implies(skid, bus.aw),
            open_ == begun - answered,
            begun == wires["addressed"] + number(bus.aw) + number(skid),
            *(ule(count, max_open_bursts(self._config)) for count in (open_, wires["addressed"] - answered)),
            ule(stored.waiting, queue_depth(self._config)),
            ule(stored.level, queue_depth(self._config)),
            wide(wires["words.level"]) == stored.level,
            implies(newest, wires["burst_end"] == stored.released),
            implies(newest, self._all_sent(wires)),
        )

    def _all_sent(self, wires: Wires) -> Boolean:
        """Return whether no word of a burst waits if no burst is open."""
        waits = any_of(Stored(self._config, wires).waiting != 0, Bus(wires).w)
        return implies(waits, self._open(wires) != 0)

    def prove_bursts(self, system: Transition) -> Verdict:
        """Prove the invariant `bursts`."""
        return inductive(system, self.bursts, contract=self._contract)

    def order(self, wires: Wires) -> Boolean:
        """Return the invariant of the words.

        The addresses that wait to be sent belong to the words up to the last one that has been released. The further
        words that are stored belong to the burst that is being collected.
        """
        stored, bus = Stored(self._config, wires), Bus(wires)
        complete, in_burst, skid = (
            wires[name] == 1 for name in ("collector.complete", "collector.in_burst", "addresses.skid_valid")
        )
        after_skid = wires["addressed_words"] + if_else(bus.aw, bus.length, 0)
        after_skid += if_else(skid, wide(wires["addresses.skid.more"]) + 1, 0)
        collected = if_else(any_of(complete, in_burst), wide(wires["collector.burst__payload.more"]) + 1, 0)
        return all_of(
            after_skid == stored.released,
            not_(all_of(complete, in_burst)),
            implies(not_(self._failed(wires)), stored.unreleased == collected),
            # Nothing is in flight or stored while records are discarded.
            implies(self._discards(wires), all_of(not_(self._failed(wires)), self._open(wires) == 0, collected == 0)),
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
            implies(any_of(in_record, complete), self._state(wires, burst) == wires["state"]),
            ult(position, self._longest),
            implies(in_record, ult(wires["records"], self._config.outstanding)),
            implies(in_burst, wires[f"{burst}.address"] + widened(more, 64 - self._word) + 1 == wires["next_address"]),
            implies(complete, self._within_page(wires, burst, 0)),
            implies(in_burst, self._within_page(wires, burst, 1)),
            implies(wires["addresses.skid_valid"] == 1, self._within_page(wires, "addresses.skid", 0)),
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

    def _state(self, wires: Wires, burst: str) -> BitVector:
        return concat(wires[f"{burst}.nse"], wires[f"{burst}.ns"]) if self._config.rme else wires[f"{burst}.ns"]

    def target_word(self, wires: Wires) -> Boolean:
        """Return the invariant of the target: it is in the FIFO and on the bus as it was stored."""
        stored, bus, target = Stored(self._config, wires), Bus(wires), wires["target"]
        word, width = wires["target_word"], wires["target_word"].width
        data, strobe = self._fields(word)
        on_bus = all_of(
            wires["axi__wdata"] == data,
            any_of(wires["axi__wstrb"] == strobe, all_of(wires["words.masked"] == 1, wires["axi__wstrb"] == 0)),
            wires["axi__wlast"] == extract(width - 1, width - 1, word),
        )
        terms = [implies(all_of(bus.w, target == stored.sent), on_bus)]
        for entry in stored.entries:
            held = all_of(ult(entry.distance, stored.level), stored.loaded + entry.distance == target)
            terms.append(implies(held, entry.word == word))
        return all_of(*terms)

    def target_burst(self, wires: Wires) -> tuple[Boolean, ...]:
        """Return the invariants of the target's burst, where it can be: it has the target's address and state."""
        stored, bus = Stored(self._config, wires), Bus(wires)
        complete, in_burst = wires["collector.complete"] == 1, wires["collector.in_burst"] == 1
        skid = wires["addresses.skid_valid"] == 1
        second = wires["addressed_words"] + if_else(bus.aw, bus.length, 0)
        collected = all_of(any_of(complete, in_burst), not_(self._drops(wires)))
        return (
            implies(bus.aw, self._contains(wires, "addresses.o__payload", wires["addressed_words"])),
            implies(skid, self._contains(wires, "addresses.skid", second)),
            implies(collected, self._contains(wires, "collector.burst__payload", stored.released)),
        )

    def _fields(self, word: BitVector) -> tuple[BitVector, BitVector]:
        bits = 8 * self._config.bus_bytes
        return extract(bits - 1, 0, word), extract(bits + self._config.bus_bytes - 1, bits, word)

    def _contains(self, wires: Wires, burst: str, start: BitVector) -> Boolean:
        """Return whether the burst has the target's address and state, if the target is in it."""
        more, offset = wide(wires[f"{burst}.more"]), wires["target"] - start
        collecting = all_of(boolean(burst.startswith("collector")), wires["collector.in_burst"] == 1)
        terms = [
            wires["target_address"] == wires[f"{burst}.address"] + widened(offset, 64 - self._word),
            wires["target_state"] == self._state(wires, burst),
            ends(wires["target_word"]) == all_of(offset == more, not_(collecting)),
        ]
        if self._divides and burst.startswith("collector"):
            terms.append(wires["target_position"] == wide(wires[f"{burst}.first"]) + offset)
        return implies(ule(offset, more), all_of(*terms))

    # Answers.

    def answers(self, wires: Wires) -> Boolean:
        """Return the invariant of the answers: each complete record has one last burst that has no response."""
        open_, drop = self._open(wires), self._drops(wires)
        failed, in_record = self._failed(wires), wires["collector.in_record"] == 1
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
            terms.append(not_(self._discards(wires)))
        return all_of(*terms)

    def relation(self, wires: Wires) -> Boolean:
        """Return the conjunction of the invariants that `prove_relation` proves."""
        return all_of(self.order(wires), self.collector(wires), self.answers(wires))

    def prove_relation(self, system: Transition) -> Verdict:
        """Prove the invariants of words, collected bursts and answers, with those that `prove_bursts` proves."""

        def assumed(now: Wires, then: Wires) -> Boolean:
            return all_of(self._contract(now, then), self._bursts(now), self._bursts(then))

        return inductive(system, self.relation, contract=assumed)

    def _bursts(self, wires: Wires) -> Boolean:
        """Return what `prove_bursts` proves: the invariant, and of every newest burst that its words are sent."""
        return all_of(self.bursts(wires), self._all_sent(wires))

    def prove_words(self, system: Transition) -> Verdict:
        """Prove the invariant `target_word`."""

        def assumed(now: Wires, then: Wires) -> Boolean:
            return all_of(self._contract(now, then), self.bursts(now))

        return inductive(system, self.target_word, contract=assumed)

    def prove_addresses(self, system: Transition) -> Verdict:
        """Prove the invariants `target_burst`, one after the other, which takes less time."""

        def assumed(now: Wires, then: Wires) -> Boolean:
            parts = (self._bursts, self.order, self.collector)
            return all_of(self._contract(now, then), *(part(now) for part in parts), *self.target_burst(now))

        verdict = Verdict(Result.PASS, 1)
        for part in range(3):
            if verdict.result is Result.PASS:
                verdict = inductive(system, lambda wires, part=part: self.target_burst(wires)[part], contract=assumed)
        return verdict

    # Properties.

    def prove_rules(self, system: Transition) -> Verdict:
        """Prove the rules of a cycle.

        No record is answered twice, and each one that is complete waits for a burst. Nothing is in flight when a fault
        is reported, and nothing begins until every record that was outstanding has its answer.
        """

        def correct(now: Wires, then: Wires) -> Boolean:
            bus, stored = Bus(now), Stored(self._config, now)
            open_, failed, discards = self._open(now), self._failed(now), self._discards(now)
            nothing = all_of(open_ == 0, not_(bus.aw), not_(bus.w), stored.waiting == 0)
            masks = all_of(any_of(failed, self._fails(now)), now["rst"] == 0)
            stalls = all_of(bus.w, not_(bus.w_taken))
            return all_of(
                now["axi__bready"] == 1,
                now["axi__awid"] == 0,
                implies(bus.done, now["records"] != 0),
                implies(any_of(bus.faults, discards), nothing),
                implies(any_of(failed, discards), now["responses.begin"] == 0),
                implies(now["responses.begin"] == 1, ult(open_, max_open_bursts(self._config))),
                implies(
                    all_of(nothing, now["collector.complete"] == 0, not_(failed), not_(discards)), now["records"] == 0
                ),
                implies(all_of(failed, open_ == 0, now["records"] == 0), now["collector.in_record"] == 1),
                # A word that becomes valid after an error response has no strobes.
                implies(all_of(masks, Bus(then).w, not_(stalls)), then["axi__wstrb"] == 0),
                implies(all_of(masks, any_of(not_(failed), not_(bus.done))), self._failed(then)),
            )

        def assumed(wires: Wires) -> Boolean:
            return all_of(self._bursts(wires), self.relation(wires), self.contract(wires))

        return always(system, correct, assuming=assumed)

    def _fails(self, wires: Wires) -> Boolean:
        return wires["responses.fails"] == 1 if self._config.external_aborts else boolean(False)

    def cover(self, system: Transition) -> Verdict:
        """Reach every goal."""
        several, aborts = self._config.outstanding > 1, self._config.external_aborts

        def goals() -> Iterator[tuple[str, Invariant, Invariant]]:
            def assumed(wires: Wires) -> Boolean:
                return all_of(self.contract(wires), wires["rst"] == 0)

            def masked(wires: Wires) -> Boolean:
                return all_of(Bus(wires).w, wires["words.masked"] == 1, wires["target_word"] != 0)

            yield (
                "two open bursts" if several else "an open burst",
                lambda wires: self._open(wires) == 1 + several,
                assumed,
            )
            if self._divides:
                yield "a second burst", lambda wires: wires["axi__awaddr"] == PAGE << 20, assumed
            if aborts:
                yield "an error in the second burst", lambda wires: wires["write__fault.word"] == 1, assumed
            if aborts and several:
                yield "a word is masked", masked, assumed
                yield (
                    "an abandoned record is answered",
                    lambda wires: all_of(wires["discards"] == 1, wires["write__done"] == 1),
                    assumed,
                )

        return reach_all(system, goals(), cycles=24)


def prove_stable(system: Transition) -> Verdict:
    """Prove that a stalled address or word is stable."""

    def all_stable(now: Wires, then: Wires) -> Boolean:
        def stalled(channel: str) -> Boolean:
            return all_of(now[f"{channel}valid"] == 1, now[f"{channel}ready"] == 0, now["rst"] == 0)

        def unchanged(channel: str) -> Boolean:
            return all_of(*(then[name] == now[name] for name in system.outputs if name.startswith(channel)))

        return all_of(*(implies(stalled(channel), unchanged(channel)) for channel in ("axi__aw", "axi__w")))

    return always(system, all_stable)


@cache
def _writer(config: SPUConfig) -> Transition:
    return watched_writer(config, transition(AXI4Writer(config)))


def proofs() -> Iterator[Proof]:
    """Yield the proofs: for records that start at any byte, and for a configuration without External aborts."""
    packed = FEATURES["minimal_packed"]
    for config in (packed, replace(packed, name="minimal_packed_four", outstanding=4), CONFIGS["v1p4"]):
        axi = AXI(config)
        for name, method, prove in (
            ("a stalled transfer is stable", "one cycle", prove_stable),
            ("the words of each burst are sent before its response", "induction", axi.prove_bursts),
            (
                "bursts consist of complete words of one 4 KB page",
                "induction",
                axi.prove_relation,
            ),
            ("each stored word is sent once, in order", "induction", axi.prove_words),
            (
                "a burst has the addresses of its AWLEN + 1 words, and WLAST marks the last",
                "induction",
                axi.prove_addresses,
            ),
            ("no record is answered twice, and nothing is written after an error", "any cycle", axi.prove_rules),
            ("cover: several open bursts, an error response, a record that is discarded", "bounded search", axi.cover),
        ):
            yield Proof(name, "writer", config.name, method, lambda prove=prove, config=config: prove(_writer(config)))
