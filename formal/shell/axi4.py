"""The AXI4 port of a shell: what AXI4 demands of a manager, and that no word is lost or made twice on the way."""

from collections.abc import Iterator, Mapping
from functools import cache

from configurations import FEATURES
from spurtle.config import CONFIGS, SPUConfig
from spurtle.shell.axi4 import AXI4Writer, WriterState

from ..engine.cover import reach_all
from ..engine.induction import Invariant, always, inductive
from ..engine.proof import Proof, Verdict
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
    ule,
    ult,
    widened,
)
from ..engine.transition import Transition, Wires, transition, with_history

__all__ = ["AXI", "proofs", "prove_steady", "watched_writer"]

PAGE = 4096

WIDTH = 16
"""Bits of the numbers that a proof counts with: more than anything here counts to."""


def _wide(value: BitVector) -> BitVector:
    return widened(value, WIDTH)


def _number(condition: Boolean) -> BitVector:
    return as_bits(condition, WIDTH)


class _Bus:
    """What is on the bus in a cycle, and what a manager that is watched has made of it before.

    queue : how many bursts have been offered, this cycle's included, and have words to come: two at most
    head, next : words but one of each
    """

    def __init__(self, wires: Wires):
        def one(name: str) -> Boolean:
            return wires[name] == 1

        self.aw, self.w, self.b = one("axi__awvalid"), one("axi__wvalid"), one("axi__bvalid")
        self.aw_taken = all_of(self.aw, one("axi__awready"))
        self.w_taken = all_of(self.w, one("axi__wready"))
        self.ends = all_of(self.w_taken, one("axi__wlast"))
        self.fresh = all_of(self.aw, not_(one("refused")))
        length = wires["axi__awlen"]
        self.queue = wires["queue"] + _number(self.fresh)
        self.head = if_else(all_of(self.fresh, wires["queue"] == 0), length, wires["head"])
        self.next = if_else(all_of(self.fresh, wires["queue"] == 1), length, wires["next"])


def watched_writer(system: Transition) -> Transition:
    """An `AXI4Writer`, and beside it what the bus has seen.

    refused : an address was offered in the cycle before, and not taken
    queue, head, next, sent : bursts whose words are to come, words but one of the first two, words of the first that
        have come
    addressed, written : bursts of which the address, or the last word, has been taken, and that are not answered
    """

    def follow(wires: Wires) -> Mapping[str, BitVector]:
        bus = _Bus(wires)
        followed = {
            "refused": extract(0, 0, _number(all_of(bus.aw, not_(bus.aw_taken)))),
            "queue": bus.queue - _number(bus.ends),
            "head": if_else(bus.ends, bus.next, bus.head),
            "next": bus.next,
            "sent": if_else(bus.ends, 0, wires["sent"] + _number(bus.w_taken)),
            "addressed": wires["addressed"] + _number(bus.aw_taken) - _number(bus.b),
            "written": wires["written"] + _number(bus.ends) - _number(bus.b),
        }
        reset = wires["rst"] == 1
        return {name: if_else(reset, constant(0, value.width), value) for name, value in followed.items()}

    wide = dict.fromkeys(("queue", "sent", "addressed", "written"), WIDTH)
    widths = {"refused": 1, "head": 8, "next": 8, **wide}
    return with_history(system, widths, follow, dict.fromkeys(widths, 0))


class AXI:
    """An `AXI4Writer` of a configuration, with so many bursts open at most. Each proof is of a `watched_writer`."""

    def __init__(self, config: SPUConfig, outstanding: int):
        self._config, self._outstanding = config, outstanding
        self._longest = config.max_record_bytes // config.bus_bytes + (config.layout.align < config.bus_bytes)
        self._depth = 1 << ((1 + (outstanding > 1)) * self._longest - 1).bit_length()

    def promised(self, wires: Wires) -> Boolean:
        """A burst is answered when all of it has been taken, and not before; no record is longer than it may be."""
        answered = all_of(wires["addressed"] != 0, wires["written"] != 0)
        beat = all_of(wires["write__beat__valid"] == 1, wires["started"] == 1)
        return all_of(
            implies(wires["axi__bvalid"] == 1, answered),
            implies(beat, ult(_wide(wires["incoming.more"]), self._longest - 1)),
        )

    def _contract(self, now: Wires, then: Wires) -> Boolean:
        return self.promised(now)

    def burst(self, wires: Wires) -> Boolean:
        """A burst is of whole words, within a page. So it is no longer than a burst can be."""
        word = self._config.bus_bytes.bit_length() - 1
        first = _wide(extract(11, word, wires["axi__awaddr"]))
        return all_of(
            extract(word - 1, 0, wires["axi__awaddr"]) == 0,
            ult(first + _wide(wires["axi__awlen"]), PAGE >> word),
        )

    def relation(self, wires: Wires) -> Boolean:
        """Words that have come and have not left are those of the record that comes, of the one that goes, and of the
        burst that is being sent. What the bus has seen of the latter is what there is no more of here.
        """
        bus, state = _Bus(wires), wires["writer_state"]
        left, sending, begun = (wires[name] == 1 for name in ("remaining", "sending", "started"))
        zero = constant(0, WIDTH)
        coming = if_else(any_of(begun, state == WriterState.COMPLETE), _wide(wires["incoming.more"]) + 1, zero)
        going = if_else(left, _wide(wires["outgoing.more"]) + 1, zero)
        sent = if_else(sending, _wide(wires["beats_left"]) + 1, zero)
        stored = _wide(wires["stored"] - wires["loaded"])
        open_ = _wide(wires["open_bursts"])
        rest, count, ends = _wide(wires["beats_left"]), wires["sent"], wires["axi__wlast"] == 1
        head, following = _wide(bus.head), _wide(bus.next)
        terms = [
            ule(coming, self._longest),
            ule(going + sent, self._longest),
            (coming + going + sent) & (self._depth - 1) == stored,
            # The word that is offered is the last of the burst only if none is to come of it.
            implies(all_of(not_(bus.w), not_(sending)), bus.queue == 0),
            implies(all_of(not_(bus.w), sending), all_of(bus.queue == 1, head == count + rest)),
            implies(all_of(bus.w, not_(sending)), all_of(bus.queue == 1, ends, head == count)),
            implies(all_of(bus.w, sending, ends), all_of(bus.queue == 2, head == count, following == rest)),
            implies(all_of(bus.w, sending, not_(ends)), all_of(bus.queue == 1, head == count + 1 + rest)),
            ule(bus.queue, 2),
            implies(bus.queue == 0, count == 0),
            implies(bus.queue != 0, ule(count, head)),
            implies(wires["refused"] == 1, bus.aw),
            # A burst is open from its address to its answer.
            ule(open_, self._outstanding),
            ule(wires["addressed"], self._outstanding),
            ule(wires["written"], self._outstanding),
            open_ == wires["addressed"] + _number(bus.aw),
            open_ == wires["written"] + bus.queue,
            implies(begun, state == WriterState.COLLECT),
        ]
        if self._outstanding == 1:
            # Nothing goes while a record comes.
            gone = all_of(not_(left), not_(sending), open_ == 0)
            terms += [
                implies(state != WriterState.RESPONSE, gone),
                implies(state == WriterState.RESPONSE, any_of(left, open_ == 1)),
                implies(state == WriterState.COLLECT, wires["loaded"] == 0),
                ule(state, WriterState.RESPONSE),
            ]
        return all_of(*terms)

    def prove_burst(self, system: Transition) -> Verdict:
        return inductive(system, self.burst)

    def prove_relation(self, system: Transition) -> Verdict:
        return inductive(system, self.relation, contract=self._contract)

    def prove_words(self, system: Transition) -> Verdict:
        """On the bus alone: a burst has as many words as its address said, none comes before that, and the last is
        marked; so many are open at most, and each is waited for.
        """

        def told(wires: Wires) -> Boolean:
            bus = _Bus(wires)
            open_ = wires["addressed"] + _number(bus.aw)
            idle = all_of(wires["busy"] == 0, wires["started"] == 0)
            done = wires["write__done"] == 1
            terms = [
                implies(bus.w, bus.queue != 0),
                implies(bus.w, (wires["axi__wlast"] == 1) == (wires["sent"] == _wide(bus.head))),
                ule(open_, self._outstanding),
                wires["axi__bready"] == 1,
                implies(
                    idle,
                    all_of(open_ == 0, not_(bus.w), wires["written"] == 0, wires["stored"] == wires["loaded"]),
                ),
                (wires["write__beat__ready"] == 1) == (wires["writer_state"] == WriterState.COLLECT),
                implies(done, wires["write__beat__ready"] == 0),
            ]
            if self._outstanding == 1:
                terms.append(implies(done, open_ == _number(bus.b)))
            else:
                # There is room for another record.
                room = ule(_wide(wires["stored"] - wires["loaded"]), self._depth - self._longest)
                terms.append(implies(done, room))
            return implies(self.promised(wires), all_of(*terms))

        return always(system, told, cycles=1, assuming=self.relation)

    def cover(self, system: Transition) -> Verdict:
        def two(wires: Wires) -> Boolean:
            return all_of(wires["write__done"] == 1, wires["axi__awaddr"] == PAGE << 20)

        def goals() -> Iterator[tuple[str, Invariant, Invariant]]:
            def given(wires: Wires) -> Boolean:
                return all_of(self.promised(wires), wires["rst"] == 0)

            if self._outstanding > 1:
                yield "as many open as may be", lambda wires: wires["open_bursts"] == self._outstanding, given
                yield "an error is told of", lambda wires: wires["write__abort"] == 1, given
            else:
                yield "a second burst", two, lambda wires: all_of(given(wires), wires["axi__bresp"] == 0)
                if self._config.external_aborts:
                    yield "an error in it", lambda wires: wires["write__fault.word"] == 1, given

        return reach_all(system, goals(), cycles=16)


def prove_steady(system: Transition) -> Verdict:
    """What is offered and not taken is offered again."""

    def keeps(now: Wires, then: Wires) -> Boolean:
        def refused(channel: str) -> Boolean:
            return all_of(now[f"{channel}valid"] == 1, now[f"{channel}ready"] == 0, now["rst"] == 0)

        def again(channel: str) -> Boolean:
            return all_of(*(then[name] == now[name] for name in system.outputs if name.startswith(channel)))

        return all_of(*(implies(refused(channel), again(channel)) for channel in ("axi__aw", "axi__w")))

    return always(system, keeps)


@cache
def _writer(config: SPUConfig, outstanding: int) -> Transition:
    return watched_writer(transition(AXI4Writer(config, outstanding=outstanding)))


def _writer_proofs(block: str, config: SPUConfig, outstanding: int) -> Iterator[Proof]:
    axi = AXI(config, outstanding)
    for name, method, prove in (
        ("a stalled transfer is stable", "one cycle", prove_steady),
        ("a burst consists of complete words of one 4 KiB page", "induction", axi.prove_burst),
        ("accepted words that are not sent belong to the pending bursts", "induction", axi.prove_relation),
        ("a burst has AWLEN + 1 words, and its response is awaited", "any cycle", axi.prove_words),
        ("cover: the maximum number of open bursts, an error response", "bounded search", axi.cover),
    ):
        yield Proof(name, block, config.name, method, lambda prove=prove: prove(_writer(config, outstanding)))


def proofs() -> Iterator[Proof]:
    """Of records that may begin anywhere, and of records whose errors are ignored."""
    yield from _writer_proofs("writer", FEATURES["minimal_packed"], 1)
    yield from _writer_proofs("writer", CONFIGS["v1p4"], 1)
    yield from _writer_proofs("posting_writer", FEATURES["minimal_packed"], 3)
