"""AXI4 port of a shell: the rules of AXI4 for a manager, and no word is lost or repeated."""

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

__all__ = ["AXI", "proofs", "prove_stable", "watched_writer"]

PAGE = 4096

WIDTH = 16
"""Width of the counts in the proofs. No count reaches it."""


def _wide(value: BitVector) -> BitVector:
    return widened(value, WIDTH)


def _number(condition: Boolean) -> BitVector:
    return as_bits(condition, WIDTH)


class _Bus:
    """Transfers on the bus in a cycle, with the history registers of `watched_writer`.

    queue : bursts whose address has been offered, in this cycle or before, with words that are not sent; at most two
    head, next : AWLEN of these bursts
    """

    def __init__(self, wires: Wires):
        def one(name: str) -> Boolean:
            return wires[name] == 1

        self.aw, self.w, self.b = one("axi__awvalid"), one("axi__wvalid"), one("axi__bvalid")
        self.aw_taken = all_of(self.aw, one("axi__awready"))
        self.w_taken = all_of(self.w, one("axi__wready"))
        self.ends = all_of(self.w_taken, one("axi__wlast"))
        self.new_address = all_of(self.aw, not_(one("aw_stalled")))
        length = wires["axi__awlen"]
        self.queue = wires["queue"] + _number(self.new_address)
        self.head = if_else(all_of(self.new_address, wires["queue"] == 0), length, wires["head"])
        self.next = if_else(all_of(self.new_address, wires["queue"] == 1), length, wires["next"])


def watched_writer(system: Transition) -> Transition:
    """Return `system`, an `AXI4Writer`, with history registers of the bus.

    aw_stalled : an address was offered in the previous cycle and not accepted
    queue, head, next, sent : bursts whose words are not all sent, AWLEN of the first two, words sent of the first
    addressed, written : bursts whose address, or last word, has been accepted, and that have no response yet
    """

    def follow(wires: Wires) -> Mapping[str, BitVector]:
        bus = _Bus(wires)
        followed = {
            "aw_stalled": extract(0, 0, _number(all_of(bus.aw, not_(bus.aw_taken)))),
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
    widths = {"aw_stalled": 1, "head": 8, "next": 8, **wide}
    return with_history(system, widths, follow, dict.fromkeys(widths, 0))


class AXI:
    """Proofs of an `AXI4Writer` with at most `outstanding` open bursts. `system` is the result of `watched_writer`."""

    def __init__(self, config: SPUConfig, outstanding: int):
        self._config, self._outstanding = config, outstanding
        self._longest = config.max_record_bytes // config.bus_bytes + (config.layout.align < config.bus_bytes)
        self._depth = 1 << ((1 + (outstanding > 1)) * self._longest - 1).bit_length()

    def contract(self, wires: Wires) -> Boolean:
        """Return the contract of the inputs.

        A response follows the address and the last word of its burst. No record exceeds the maximum size.
        """
        answered = all_of(wires["addressed"] != 0, wires["written"] != 0)
        beat = all_of(wires["write__beat__valid"] == 1, wires["started"] == 1)
        return all_of(
            implies(wires["axi__bvalid"] == 1, answered),
            implies(beat, ult(_wide(wires["incoming.more"]), self._longest - 1)),
        )

    def _contract(self, now: Wires, then: Wires) -> Boolean:
        return self.contract(now)

    def burst(self, wires: Wires) -> Boolean:
        """Return whether a burst consists of complete words within a page, which bounds its length as well."""
        word = self._config.bus_bytes.bit_length() - 1
        first = _wide(extract(11, word, wires["axi__awaddr"]))
        return all_of(
            extract(word - 1, 0, wires["axi__awaddr"]) == 0,
            ult(first + _wide(wires["axi__awlen"]), PAGE >> word),
        )

    def relation(self, wires: Wires) -> Boolean:
        """Return the invariant.

        Each stored word belongs to the incoming record, to the outgoing record, or to the burst that is being sent.
        The words of that burst on the bus and those that remain add up to its length.
        """
        bus, state = _Bus(wires), wires["writer_state"]
        has_outgoing, sending, started = (wires[name] == 1 for name in ("remaining", "sending", "started"))
        zero = constant(0, WIDTH)
        incoming = if_else(any_of(started, state == WriterState.COMPLETE), _wide(wires["incoming.more"]) + 1, zero)
        outgoing = if_else(has_outgoing, _wide(wires["outgoing.more"]) + 1, zero)
        in_burst = if_else(sending, _wide(wires["beats_left"]) + 1, zero)
        stored = _wide(wires["stored"] - wires["loaded"])
        open_ = _wide(wires["open_bursts"])
        beats_left, count, ends = _wide(wires["beats_left"]), wires["sent"], wires["axi__wlast"] == 1
        head, following = _wide(bus.head), _wide(bus.next)
        terms = [
            ule(incoming, self._longest),
            ule(outgoing + in_burst, self._longest),
            (incoming + outgoing + in_burst) & (self._depth - 1) == stored,
            # WLAST is asserted with the last word of a burst, also if the words of the next one follow.
            implies(all_of(not_(bus.w), not_(sending)), bus.queue == 0),
            implies(all_of(not_(bus.w), sending), all_of(bus.queue == 1, head == count + beats_left)),
            implies(all_of(bus.w, not_(sending)), all_of(bus.queue == 1, ends, head == count)),
            implies(all_of(bus.w, sending, ends), all_of(bus.queue == 2, head == count, following == beats_left)),
            implies(all_of(bus.w, sending, not_(ends)), all_of(bus.queue == 1, head == count + 1 + beats_left)),
            ule(bus.queue, 2),
            implies(bus.queue == 0, count == 0),
            implies(bus.queue != 0, ule(count, head)),
            implies(wires["aw_stalled"] == 1, bus.aw),
            # A burst is open from its address to its response.
            ule(open_, self._outstanding),
            ule(wires["addressed"], self._outstanding),
            ule(wires["written"], self._outstanding),
            open_ == wires["addressed"] + _number(bus.aw),
            open_ == wires["written"] + bus.queue,
            implies(started, state == WriterState.COLLECT),
        ]
        if self._outstanding == 1:
            # Nothing is sent while a record is stored.
            idle = all_of(not_(has_outgoing), not_(sending), open_ == 0)
            terms += [
                implies(state != WriterState.RESPONSE, idle),
                implies(state == WriterState.RESPONSE, any_of(has_outgoing, open_ == 1)),
                implies(state == WriterState.COLLECT, wires["loaded"] == 0),
                ule(state, WriterState.RESPONSE),
            ]
        return all_of(*terms)

    def prove_burst(self, system: Transition) -> Verdict:
        """Prove the invariant `burst`."""
        return inductive(system, self.burst)

    def prove_relation(self, system: Transition) -> Verdict:
        """Prove the invariant `relation`."""
        return inductive(system, self.relation, contract=self._contract)

    def prove_words(self, system: Transition) -> Verdict:
        """Prove the rules of the bus.

        A burst has AWLEN + 1 words, none before its address, and WLAST marks the last one. At most `outstanding` bursts
        are open, and `busy` is asserted while one is. Without posted writes, `write.done` waits for the last response.
        With posted writes, it waits for space for another record.
        """

        def correct(wires: Wires) -> Boolean:
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
                # Another record can be stored.
                has_space = ule(_wide(wires["stored"] - wires["loaded"]), self._depth - self._longest)
                terms.append(implies(done, has_space))
            return implies(self.contract(wires), all_of(*terms))

        return always(system, correct, cycles=1, assuming=self.relation)

    def cover(self, system: Transition) -> Verdict:
        """Reach every goal."""

        def two(wires: Wires) -> Boolean:
            return all_of(wires["write__done"] == 1, wires["axi__awaddr"] == PAGE << 20)

        def goals() -> Iterator[tuple[str, Invariant, Invariant]]:
            def assumed(wires: Wires) -> Boolean:
                return all_of(self.contract(wires), wires["rst"] == 0)

            if self._outstanding > 1:
                yield "maximum number of open bursts", lambda wires: wires["open_bursts"] == self._outstanding, assumed
                yield "an External abort is reported", lambda wires: wires["write__abort"] == 1, assumed
            else:
                yield "a second burst", two, lambda wires: all_of(assumed(wires), wires["axi__bresp"] == 0)
                if self._config.external_aborts:
                    yield "an error in the second burst", lambda wires: wires["write__fault.word"] == 1, assumed

        return reach_all(system, goals(), cycles=16)


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
def _writer(config: SPUConfig, outstanding: int) -> Transition:
    return watched_writer(transition(AXI4Writer(config, outstanding=outstanding)))


def _writer_proofs(block: str, config: SPUConfig, outstanding: int) -> Iterator[Proof]:
    axi = AXI(config, outstanding)
    for name, method, prove in (
        ("a stalled transfer is stable", "one cycle", prove_stable),
        ("a burst consists of complete words of one 4 KB page", "induction", axi.prove_burst),
        ("accepted words that are not sent belong to the pending bursts", "induction", axi.prove_relation),
        ("a burst has AWLEN + 1 words, and its response is awaited", "any cycle", axi.prove_words),
        ("cover: the maximum number of open bursts, an error response", "bounded search", axi.cover),
    ):
        yield Proof(name, block, config.name, method, lambda prove=prove: prove(_writer(config, outstanding)))


def proofs() -> Iterator[Proof]:
    """Yield the proofs, for records that can start at any byte, and for a configuration without External aborts."""
    yield from _writer_proofs("writer", FEATURES["minimal_packed"], 1)
    yield from _writer_proofs("writer", CONFIGS["v1p4"], 1)
    yield from _writer_proofs("posting_writer", FEATURES["minimal_packed"], 3)
