"""The shells' ports: what AXI4 and APB4 demand of a manager and of a completer, and that nothing is lost or made twice
between them and the SPU.
"""

from collections.abc import Iterator, Mapping
from functools import cache

import z3

from spurtle.config import CONFIGS, SPUConfig
from spurtle.interface.sysreg import AccessOutcome
from spurtle.shell.apb4 import APB4Completer, CompleterState
from spurtle.shell.axi4 import AXI4Writer, WriterState

from ..engine.features import FEATURES
from ..engine.induction import Invariant, Wires, always, inductive, reach_all
from ..engine.proof import Proof, Verdict
from ..engine.transition import Transition, remembering, transition

__all__ = ["APB", "AXI", "prove_steady", "watched_completer", "watched_writer"]

PAGE = 4096

WIDTH = 16
"""Bits of the numbers that a proof counts with: more than anything here counts to."""


def _wide(value: z3.BitVecRef) -> z3.BitVecRef:
    return z3.ZeroExt(WIDTH - value.size(), value)


def _number(condition: z3.BoolRef) -> z3.BitVecRef:
    return z3.If(condition, z3.BitVecVal(1, WIDTH), z3.BitVecVal(0, WIDTH))


# AXI4.


class _Bus:
    """What is on the bus in a cycle, and what a manager that is watched has made of it before.

    queue : how many bursts have been offered, this cycle's included, and have words to come: two at most
    head, next : words but one of each
    """

    def __init__(self, wires: Wires):
        def one(name: str) -> z3.BoolRef:
            return wires[name] == 1

        self.aw, self.w, self.b = one("axi__awvalid"), one("axi__wvalid"), one("axi__bvalid")
        self.aw_taken = z3.And(self.aw, one("axi__awready"))
        self.w_taken = z3.And(self.w, one("axi__wready"))
        self.ends = z3.And(self.w_taken, one("axi__wlast"))
        self.fresh = z3.And(self.aw, z3.Not(one("refused")))
        length = wires["axi__awlen"]
        self.queue = wires["queue"] + _number(self.fresh)
        self.head = z3.If(z3.And(self.fresh, wires["queue"] == 0), length, wires["head"])
        self.next = z3.If(z3.And(self.fresh, wires["queue"] == 1), length, wires["next"])


def watched_writer(system: Transition) -> Transition:
    """An `AXI4Writer`, and beside it what the bus has seen.

    refused : an address was offered in the cycle before, and not taken
    queue, head, next, sent : bursts whose words are to come, words but one of the first two, words of the first that
        have come
    addressed, written : bursts of which the address, or the last word, has been taken, and that are not answered
    """

    def follow(wires: Wires) -> Mapping[str, z3.BitVecRef]:
        bus = _Bus(wires)
        followed = {
            "refused": z3.Extract(0, 0, _number(z3.And(bus.aw, z3.Not(bus.aw_taken)))),
            "queue": bus.queue - _number(bus.ends),
            "head": z3.If(bus.ends, bus.next, bus.head),
            "next": bus.next,
            "sent": z3.If(bus.ends, 0, wires["sent"] + _number(bus.w_taken)),
            "addressed": wires["addressed"] + _number(bus.aw_taken) - _number(bus.b),
            "written": wires["written"] + _number(bus.ends) - _number(bus.b),
        }
        reset = wires["rst"] == 1
        return {name: z3.If(reset, z3.BitVecVal(0, value.size()), value) for name, value in followed.items()}

    wide = dict.fromkeys(("queue", "sent", "addressed", "written"), WIDTH)
    widths = {"refused": 1, "head": 8, "next": 8, **wide}
    return remembering(system, widths, follow, dict.fromkeys(widths, 0))


class AXI:
    """An `AXI4Writer` of a configuration, with so many bursts open at most. Each proof is of a `watched_writer`."""

    def __init__(self, config: SPUConfig, outstanding: int):
        self._config, self._outstanding = config, outstanding
        self._longest = config.max_record_bytes // config.bus_bytes + (config.layout.align < config.bus_bytes)
        self._depth = 1 << ((1 + (outstanding > 1)) * self._longest - 1).bit_length()

    def promised(self, wires: Wires) -> z3.BoolRef:
        """A burst is answered when all of it has been taken, and not before; no record is longer than it may be."""
        answered = z3.And(wires["addressed"] != 0, wires["written"] != 0)
        beat = z3.And(wires["write__beat__valid"] == 1, wires["begun"] == 1)
        return z3.And(
            z3.Implies(wires["axi__bvalid"] == 1, answered),
            z3.Implies(beat, _wide(wires["coming.more"]) < self._longest - 1),
        )

    def _contract(self, now: Wires, then: Wires) -> z3.BoolRef:
        return self.promised(now)

    def burst(self, wires: Wires) -> z3.BoolRef:
        """A burst is of whole words, within a page. So it is no longer than a burst can be."""
        word = self._config.bus_bytes.bit_length() - 1
        first = _wide(z3.Extract(11, word, wires["axi__awaddr"]))
        return z3.And(
            z3.Extract(word - 1, 0, wires["axi__awaddr"]) == 0,
            z3.ULT(first + _wide(wires["axi__awlen"]), PAGE >> word),
        )

    def relation(self, wires: Wires) -> z3.BoolRef:
        """Words that have come and have not left are those of the record that comes, of the one that goes, and of the
        burst that is being sent. What the bus has seen of the latter is what there is no more of here.
        """
        bus, state = _Bus(wires), wires["writer_state"]
        left, sending, begun = (wires[name] == 1 for name in ("left", "sending", "begun"))
        zero = z3.BitVecVal(0, WIDTH)
        coming = z3.If(z3.Or(begun, state == WriterState.WHOLE), _wide(wires["coming.more"]) + 1, zero)
        going = z3.If(left, _wide(wires["going.more"]) + 1, zero)
        sent = z3.If(sending, _wide(wires["rest"]) + 1, zero)
        stored = _wide(wires["stored"] - wires["loaded"])
        open_ = _wide(wires["open_"])
        rest, count, ends = _wide(wires["rest"]), wires["sent"], wires["axi__wlast"] == 1
        head, following = _wide(bus.head), _wide(bus.next)
        terms = [
            z3.ULE(coming, self._longest),
            z3.ULE(going + sent, self._longest),
            (coming + going + sent) & (self._depth - 1) == stored,
            # The word that is offered is the last of the burst only if none is to come of it.
            z3.Implies(z3.And(z3.Not(bus.w), z3.Not(sending)), bus.queue == 0),
            z3.Implies(z3.And(z3.Not(bus.w), sending), z3.And(bus.queue == 1, head == count + rest)),
            z3.Implies(z3.And(bus.w, z3.Not(sending)), z3.And(bus.queue == 1, ends, head == count)),
            z3.Implies(z3.And(bus.w, sending, ends), z3.And(bus.queue == 2, head == count, following == rest)),
            z3.Implies(z3.And(bus.w, sending, z3.Not(ends)), z3.And(bus.queue == 1, head == count + 1 + rest)),
            z3.ULE(bus.queue, 2),
            z3.Implies(bus.queue == 0, count == 0),
            z3.Implies(bus.queue != 0, z3.ULE(count, head)),
            z3.Implies(wires["refused"] == 1, bus.aw),
            # A burst is open from its address to its answer.
            z3.ULE(open_, self._outstanding),
            z3.ULE(wires["addressed"], self._outstanding),
            z3.ULE(wires["written"], self._outstanding),
            open_ == wires["addressed"] + _number(bus.aw),
            open_ == wires["written"] + bus.queue,
            z3.Implies(begun, state == WriterState.COLLECT),
        ]
        if self._outstanding == 1:
            # Nothing goes while a record comes.
            gone = z3.And(z3.Not(left), z3.Not(sending), open_ == 0)
            terms += [
                z3.Implies(state != WriterState.RESPONSE, gone),
                z3.Implies(state == WriterState.RESPONSE, z3.Or(left, open_ == 1)),
                z3.Implies(state == WriterState.COLLECT, wires["loaded"] == 0),
                z3.ULE(state, WriterState.RESPONSE),
            ]
        return z3.And(*terms)

    def prove_burst(self, system: Transition) -> Verdict:
        return inductive(system, self.burst)

    def prove_relation(self, system: Transition) -> Verdict:
        return inductive(system, self.relation, contract=self._contract)

    def prove_words(self, system: Transition) -> Verdict:
        """On the bus alone: a burst has as many words as its address said, none comes before that, and the last is
        marked; so many are open at most, and each is waited for.
        """

        def told(wires: Wires) -> z3.BoolRef:
            bus = _Bus(wires)
            open_ = wires["addressed"] + _number(bus.aw)
            idle = z3.And(wires["busy"] == 0, wires["begun"] == 0)
            done = wires["write__done"] == 1
            terms = [
                z3.Implies(bus.w, bus.queue != 0),
                z3.Implies(bus.w, (wires["axi__wlast"] == 1) == (wires["sent"] == _wide(bus.head))),
                z3.ULE(open_, self._outstanding),
                wires["axi__bready"] == 1,
                z3.Implies(
                    idle,
                    z3.And(open_ == 0, z3.Not(bus.w), wires["written"] == 0, wires["stored"] == wires["loaded"]),
                ),
                (wires["write__beat__ready"] == 1) == (wires["writer_state"] == WriterState.COLLECT),
                z3.Implies(done, wires["write__beat__ready"] == 0),
            ]
            if self._outstanding == 1:
                terms.append(z3.Implies(done, open_ == _number(bus.b)))
            else:
                # There is room for another record.
                room = z3.ULE(_wide(wires["stored"] - wires["loaded"]), self._depth - self._longest)
                terms.append(z3.Implies(done, room))
            return z3.Implies(self.promised(wires), z3.And(*terms))

        return always(system, told, cycles=1, assuming=self.relation)

    def cover(self, system: Transition) -> Verdict:
        def two(wires: Wires) -> z3.BoolRef:
            return z3.And(wires["write__done"] == 1, wires["axi__awaddr"] == PAGE << 20)

        def goals() -> Iterator[tuple[str, Invariant, Invariant]]:
            def given(wires: Wires) -> z3.BoolRef:
                return z3.And(self.promised(wires), wires["rst"] == 0)

            if self._outstanding > 1:
                yield "as many open as may be", lambda wires: wires["open_"] == self._outstanding, given
                yield "an error is told of", lambda wires: wires["write__abort"] == 1, given
            else:
                yield "a second burst", two, lambda wires: z3.And(given(wires), wires["axi__bresp"] == 0)
                if self._config.external_aborts:
                    yield "an error in it", lambda wires: wires["write__fault.word"] == 1, given

        return reach_all(system, goals(), cycles=16)


def prove_steady(system: Transition) -> Verdict:
    """What is offered and not taken is offered again."""

    def keeps(now: Wires, then: Wires) -> z3.BoolRef:
        def refused(channel: str) -> z3.BoolRef:
            return z3.And(now[f"{channel}valid"] == 1, now[f"{channel}ready"] == 0, now["rst"] == 0)

        def again(channel: str) -> z3.BoolRef:
            return z3.And(*(then[name] == now[name] for name in system.outputs if name.startswith(channel)))

        return z3.And(*(z3.Implies(refused(channel), again(channel)) for channel in ("axi__aw", "axi__w")))

    return always(system, keeps)


# APB4.

_TRANSFER = tuple(f"apb__{name}" for name in ("paddr", "pwrite", "pwdata", "pstrb"))


def watched_completer(system: Transition) -> Transition:
    """An `APB4Completer`, and beside it the accesses of this transfer: how many reads and writes of registers, and what
    the last of them came to, which the register port says two cycles later.
    """

    def follow(wires: Wires) -> Mapping[str, z3.BitVecRef]:
        made = wires["sysreg__valid"] == 1
        write = wires["sysreg__write"] == 1
        over = z3.Or(wires["apb__pready"] == 1, wires["rst"] == 1)
        zero = z3.BitVecVal(0, WIDTH)
        return {
            "reads": z3.If(over, zero, wires["reads"] + _number(z3.And(made, z3.Not(write)))),
            "writes": z3.If(over, zero, wires["writes"] + _number(z3.And(made, write))),
            "setup": wires["apb__psel"] & ~wires["apb__penable"],
        }

    return remembering(system, {"reads": WIDTH, "writes": WIDTH, "setup": 1}, follow, {"reads": 0, "writes": 0})


class APB:
    """Each proof is of a `watched_completer`."""

    @staticmethod
    def contract(now: Wires, then: Wires) -> z3.BoolRef:
        """A requester keeps a transfer until it is ready. A reset ends it on both sides."""
        waits = z3.And(now["apb__psel"] == 1, now["apb__penable"] == 1, now["apb__pready"] == 0, now["rst"] == 0)
        kept = z3.And(then["apb__psel"] == 1, then["apb__penable"] == 1, *(then[n] == now[n] for n in _TRANSFER))
        return z3.Implies(waits, kept)

    @staticmethod
    def relation(wires: Wires) -> z3.BoolRef:
        """A transfer is there as long as it is not ready, and has made the accesses that it has to make so far."""
        state, reads, writes = (wires[name] for name in ("completer_state", "reads", "writes"))
        upper = z3.Extract(2, 2, wires["apb__paddr"]) == 1
        write, merging = wires["apb__pwrite"] == 1, wires["merging"] == 1
        whole = z3.And(wires["low_strobe"] == 15, wires["apb__pstrb"] == 15)
        reading = z3.Or(z3.Not(write), merging)
        return z3.And(
            z3.ULE(state, CompleterState.ANSWER),
            z3.Implies(state == CompleterState.IDLE, z3.And(reads == 0, writes == 0)),
            z3.Implies(
                state != CompleterState.IDLE,
                z3.And(
                    wires["apb__psel"] == 1,
                    wires["apb__penable"] == 1,
                    upper == write,
                    z3.Implies(merging, z3.And(write, z3.Not(whole))),
                    reads == _number(z3.Or(z3.Not(write), z3.Not(whole))),
                    writes == _number(z3.Not(reading)),
                ),
            ),
        )

    @staticmethod
    def prove_relation(system: Transition) -> Verdict:
        return inductive(system, APB.relation, contract=APB.contract)

    @staticmethod
    def prove_transfers(system: Transition) -> Verdict:
        """A low half is read, a high half written, by one access; both only if not all is strobed, and then the read is
        first. Nothing else accesses anything, and nothing happens outside of the access phase.
        """

        def told(wires: Wires) -> z3.BoolRef:
            access = z3.And(wires["apb__psel"] == 1, wires["apb__penable"] == 1)
            ready, error = wires["apb__pready"] == 1, wires["apb__pslverr"] == 1
            made, writes_now = wires["sysreg__valid"] == 1, wires["sysreg__write"] == 1
            upper = z3.Extract(2, 2, wires["apb__paddr"]) == 1
            write = wires["apb__pwrite"] == 1
            whole = z3.And(wires["low_strobe"] == 15, wires["apb__pstrb"] == 15)
            reads, writes = wires["reads"], wires["writes"]
            succeeded = wires["sysreg__outcome"] == AccessOutcome.VALUE.value
            encoding = z3.Concat(*(wires[f"sysreg__{name}"] for name in ("op1", "crn", "crm", "op2")))
            return z3.And(
                z3.Implies(z3.Or(ready, made), access),
                z3.Implies(error, ready),
                z3.Not(z3.And(ready, made)),
                z3.Implies(made, encoding == z3.Extract(16, 3, wires["apb__paddr"])),
                # A read is the first access, and a write the last.
                z3.Implies(z3.And(made, z3.Not(writes_now)), z3.And(reads == 0, writes == 0)),
                z3.Implies(z3.And(made, writes_now), z3.And(write, upper, writes == 0, (reads == 0) == whole)),
                z3.Implies(
                    ready,
                    z3.If(
                        upper == write,
                        z3.If(
                            write,
                            z3.And(reads == _number(z3.Not(whole)), z3.Or(writes == 1, z3.And(reads == 1, error))),
                            z3.And(reads == 1, writes == 0),
                        ),
                        z3.And(reads == 0, writes == 0, z3.Not(error)),
                    ),
                ),
                z3.Implies(z3.And(ready, upper == write), error == z3.Not(succeeded)),
            )

        return always(system, told, cycles=1, assuming=APB.relation)

    @staticmethod
    def cover(system: Transition) -> Verdict:
        def free(wires: Wires) -> z3.BoolRef:
            kept = z3.Implies(
                wires["completer_state"] != CompleterState.IDLE, wires["apb__psel"] & wires["apb__penable"] == 1
            )
            return z3.And(wires["rst"] == 0, kept, wires["apb__pwrite"] == 1)

        def goals() -> Iterator[tuple[str, Invariant, Invariant]]:
            ready = "apb__pready"
            yield "merged", lambda wires: z3.And(wires[ready] == 1, wires["reads"] == 1, wires["writes"] == 1), free
            yield "an error", lambda wires: z3.And(wires["apb__pslverr"] == 1, wires["writes"] == 1), free

        return reach_all(system, goals(), cycles=8)


@cache
def _writer(config: SPUConfig, outstanding: int) -> Transition:
    return watched_writer(transition(AXI4Writer(config, outstanding=outstanding)))


@cache
def _completer() -> Transition:
    return watched_completer(transition(APB4Completer()))


def _writer_proofs(block: str, config: SPUConfig, outstanding: int) -> Iterator[Proof]:
    axi = AXI(config, outstanding)
    for name, method, prove in (
        ("what is refused is offered again", "one cycle", prove_steady),
        ("a burst is whole words of one page", "induction", axi.prove_burst),
        ("what has come and not left is in the bursts to come", "induction", axi.prove_relation),
        ("a burst is as long as it says, and waited for", "any cycle", axi.prove_words),
        ("cover: as many bursts as there can be", "bounded search", axi.cover),
    ):
        yield Proof(name, block, config.name, method, lambda prove=prove: prove(_writer(config, outstanding)))


def proofs() -> Iterator[Proof]:
    """Of records that may begin anywhere, and of records whose errors are ignored. The completer is always the same."""
    yield from _writer_proofs("writer", FEATURES["minimal_packed"], 1)
    yield from _writer_proofs("writer", CONFIGS["v1p4"], 1)
    yield from _writer_proofs("posting_writer", FEATURES["minimal_packed"], 3)
    for name, method, prove in (
        ("a transfer makes its accesses one after the other", "induction", APB.prove_relation),
        ("one access a transfer, in its access phase", "any cycle", APB.prove_transfers),
        ("cover: a merged write, an error", "bounded search", APB.cover),
    ):
        yield Proof(name, "completer", "-", method, lambda prove=prove: prove(_completer()))
