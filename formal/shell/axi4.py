"""AXI4 port of a shell: the rules of AXI4 for a manager; no word is lost, repeated, or written after an error."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from configurations import FEATURES
from spurtle.config import CONFIGS, SPUConfig
from spurtle.shell.axi4 import AXI4Writer
from spurtle.shell.responses import max_open_bursts

from ..engine.cover import reach_all
from ..engine.induction import Invariant, always, inductive
from ..engine.proof import Proof, Verdict
from ..engine.terms import (
    BitVector,
    Boolean,
    all_of,
    any_of,
    boolean,
    extract,
    if_else,
    implies,
    not_,
    ule,
    ult,
    widened,
)
from ..engine.transition import Transition, Wires, transition
from .history import Bus, StoredWords, ends, watched_writer, wide
from .relation import PAGE, Relation

__all__ = ["AXI", "proofs", "prove_stable"]


class AXI(Relation):
    """Proofs of an `AXI4Writer`. `system` is the result of `watched_writer`.

    They follow one arbitrary word, number `target`. What is proved of it holds for every word.
    """

    def prove_bursts(self, system: Transition) -> Verdict:
        """Prove the invariant `bursts`."""
        return inductive(system, self.bursts, contract=self.assumption)

    def prove_relation(self, system: Transition) -> Verdict:
        """Prove the invariants of words, collected bursts and answers, with those that `prove_bursts` proves."""

        def assumed(now: Wires, then: Wires) -> Boolean:
            return all_of(self.assumption(now, then), self.all_bursts(now), self.all_bursts(then))

        return inductive(system, self.relation, contract=assumed, together=8)

    def target_word(self, wires: Wires) -> Boolean:
        """Return the invariant of the target: it is in the FIFO and on the bus as it was stored."""
        stored, bus, target = StoredWords(self._config, wires), Bus(wires), wires["target"]
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

    def target_burst(self, wires: Wires) -> Boolean:
        """Return the invariant of the target's burst: in each stage it has the target's address and state."""
        stored, bus = StoredWords(self._config, wires), Bus(wires)
        complete, in_burst = wires["collector.complete"] == 1, wires["collector.in_burst"] == 1
        skid = wires["addresses.skid.stalled"] == 1
        second = wires["addressed_words"] + if_else(bus.aw, bus.length, 0)
        collected = all_of(any_of(complete, in_burst), not_(self.drops(wires)))
        return all_of(
            implies(bus.aw, self._contains(wires, "addresses.o__payload", wires["addressed_words"])),
            implies(skid, self._contains(wires, "addresses.skid.skid", second)),
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
            wires["target_state"] == self.state(wires, burst),
            ends(wires["target_word"]) == all_of(offset == more, not_(collecting)),
        ]
        if self._divides and burst.startswith("collector"):
            terms.append(wires["target_position"] == wide(wires[f"{burst}.first"]) + offset)
        return implies(ule(offset, more), all_of(*terms))

    def prove_words(self, system: Transition) -> Verdict:
        """Prove the invariant `target_word`."""

        def assumed(now: Wires, then: Wires) -> Boolean:
            return all_of(self.assumption(now, then), self.bursts(now))

        return inductive(system, self.target_word, contract=assumed, together=1)

    def prove_addresses(self, system: Transition) -> Verdict:
        """Prove the invariant `target_burst`."""

        def assumed(now: Wires, then: Wires) -> Boolean:
            parts = (self.all_bursts, self.order, self.collector)
            return all_of(self.assumption(now, then), *(part(now) for part in parts))

        return inductive(system, self.target_burst, contract=assumed, together=1)

    # Properties.

    def prove_rules(self, system: Transition) -> Verdict:
        """Prove the rules of a cycle.

        No record is answered twice, and each one that is complete waits for a burst. Nothing is in flight when a fault
        is reported, and nothing begins until every record that was outstanding has its answer.
        """

        def correct(now: Wires, then: Wires) -> Boolean:
            bus, stored = Bus(now), StoredWords(self._config, now)
            open_, failed, discards = self.open(now), self.failed(now), self.discards(now)
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
                implies(all_of(masks, any_of(not_(failed), not_(bus.done))), self.failed(then)),
            )

        def assumed(wires: Wires) -> Boolean:
            return all_of(self.all_bursts(wires), self.relation(wires), self.contract(wires))

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
                lambda wires: self.open(wires) == 1 + several,
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
        slow = (axi.prove_words, axi.prove_addresses) if config.layout.packed and config.outstanding > 1 else ()
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
            yield Proof(
                name, "writer", config.name, method, lambda prove=prove, config=config: prove(_writer(config)),
                slow=prove in slow,
            )  # fmt: skip
