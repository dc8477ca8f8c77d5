"""APB4 port of a shell: the rules of APB4 for a completer, and each transfer makes its register accesses once."""

from collections.abc import Iterator, Mapping
from functools import cache

from spurtle.interface.sysreg import ACCESS_LATENCY, AccessOutcome
from spurtle.shell.apb4 import APB4Completer, CompleterState

from ..engine.cover import reach_all
from ..engine.induction import Invariant, always, inductive
from ..engine.proof import Proof, Verdict
from ..engine.terms import (
    BitVector,
    Boolean,
    all_of,
    any_of,
    as_bits,
    concat,
    constant,
    extract,
    if_else,
    implies,
    not_,
    ule,
)
from ..engine.transition import Transition, Wires, transition, with_history

__all__ = ["APB", "proofs", "watched_completer"]

WIDTH = 16
"""Width of the counts in the proofs. No count reaches it."""


def _number(condition: Boolean) -> BitVector:
    return as_bits(condition, WIDTH)


_TRANSFER = tuple(f"apb__{name}" for name in ("paddr", "pwrite", "pwdata", "pstrb"))


def watched_completer(system: Transition) -> Transition:
    """Return `system`, an `APB4Completer`, with history registers of a transfer.

    reads, writes : register reads and writes of the transfer
    """

    def follow(wires: Wires) -> Mapping[str, BitVector]:
        accesses = wires["sysreg__valid"] == 1
        write = wires["sysreg__write"] == 1
        ends = any_of(wires["apb__pready"] == 1, wires["rst"] == 1)
        zero = constant(0, WIDTH)
        return {
            "reads": if_else(ends, zero, wires["reads"] + _number(all_of(accesses, not_(write)))),
            "writes": if_else(ends, zero, wires["writes"] + _number(all_of(accesses, write))),
        }

    return with_history(system, {"reads": WIDTH, "writes": WIDTH}, follow, {"reads": 0, "writes": 0})


class APB:
    """Proofs of an `APB4Completer`. `system` is the result of `watched_completer`."""

    @staticmethod
    def contract(now: Wires, then: Wires) -> Boolean:
        """Return the contract of the requester: it keeps a transfer until PREADY, or until a reset of both sides."""
        waits = all_of(now["apb__psel"] == 1, now["apb__penable"] == 1, now["apb__pready"] == 0, now["rst"] == 0)
        unchanged = all_of(then["apb__psel"] == 1, then["apb__penable"] == 1, *(then[n] == now[n] for n in _TRANSFER))
        return implies(waits, unchanged)

    @staticmethod
    def relation(wires: Wires) -> Boolean:
        """Return the invariant: in each state a transfer is in progress, with the accesses that the state requires."""
        state, reads, writes = (wires[name] for name in ("completer_state", "reads", "writes"))
        upper = extract(2, 2, wires["apb__paddr"]) == 1
        write, merging = wires["apb__pwrite"] == 1, wires["merging"] == 1
        all_bytes = all_of(wires["low_strobe"] == 15, wires["apb__pstrb"] == 15)
        reading = any_of(not_(write), merging)
        waiting = wires["waiting"]
        return all_of(
            ule(state, CompleterState.ACCESS),
            implies(state == CompleterState.IDLE, all_of(reads == 0, writes == 0, waiting == 0)),
            implies(
                state != CompleterState.IDLE,
                all_of(
                    any_of(*(waiting == 1 << age for age in range(ACCESS_LATENCY))),
                    wires["apb__psel"] == 1,
                    wires["apb__penable"] == 1,
                    upper == write,
                    implies(merging, all_of(write, not_(all_bytes))),
                    reads == _number(any_of(not_(write), not_(all_bytes))),
                    writes == _number(not_(reading)),
                ),
            ),
        )

    @staticmethod
    def prove_relation(system: Transition) -> Verdict:
        """Prove the invariant `relation`."""
        return inductive(system, APB.relation, contract=APB.contract)

    @staticmethod
    def prove_transfers(system: Transition) -> Verdict:
        """Prove the register accesses of each transfer.

        A read of a low half makes one read, a write of a high half one write. If not all bytes are strobed, a read
        precedes the write. Other transfers make no access. There are no accesses outside the access phase.
        """

        def correct(wires: Wires) -> Boolean:
            access_phase = all_of(wires["apb__psel"] == 1, wires["apb__penable"] == 1)
            ready, error = wires["apb__pready"] == 1, wires["apb__pslverr"] == 1
            accesses, is_write = wires["sysreg__valid"] == 1, wires["sysreg__write"] == 1
            upper = extract(2, 2, wires["apb__paddr"]) == 1
            write = wires["apb__pwrite"] == 1
            all_bytes = all_of(wires["low_strobe"] == 15, wires["apb__pstrb"] == 15)
            reads, writes = wires["reads"], wires["writes"]
            succeeded = wires["sysreg__outcome"] == AccessOutcome.VALUE.value
            encoding = concat(*(wires[f"sysreg__{name}"] for name in ("op1", "crn", "crm", "op2")))
            return all_of(
                implies(any_of(ready, accesses), access_phase),
                implies(error, ready),
                not_(all_of(ready, accesses)),
                implies(accesses, encoding == extract(16, 3, wires["apb__paddr"])),
                # A read is the first access, and a write the last.
                implies(all_of(accesses, not_(is_write)), all_of(reads == 0, writes == 0)),
                implies(all_of(accesses, is_write), all_of(write, upper, writes == 0, (reads == 0) == all_bytes)),
                implies(
                    ready,
                    if_else(
                        upper == write,
                        if_else(
                            write,
                            all_of(reads == _number(not_(all_bytes)), any_of(writes == 1, all_of(reads == 1, error))),
                            all_of(reads == 1, writes == 0),
                        ),
                        all_of(reads == 0, writes == 0, not_(error)),
                    ),
                ),
                implies(all_of(ready, upper == write), error == not_(succeeded)),
            )

        return always(system, correct, cycles=1, assuming=APB.relation)

    @staticmethod
    def prove_answer(system: Transition) -> Verdict:
        """Prove that the result of an access is taken `ACCESS_LATENCY` cycles after the access, and not before.

        In that cycle the transfer is complete, or the read of a read-modify-write is followed by its write.
        """

        def taken(*cycles: Wires) -> Boolean:
            access, *waits, answer = cycles
            ready, accesses = ([wires[name] == 1 for wires in cycles] for name in ("apb__pready", "sysreg__valid"))
            return implies(
                all_of(*(wires["rst"] == 0 for wires in (access, *waits)), accesses[0]),
                all_of(
                    not_(any_of(*ready[:-1], *accesses[1:-1])),
                    any_of(ready[-1], all_of(accesses[-1], answer["sysreg__write"] == 1)),
                ),
            )

        return always(system, taken, cycles=ACCESS_LATENCY + 1, assuming=APB.relation)

    @staticmethod
    def cover(system: Transition) -> Verdict:
        """Reach every goal."""

        def assumed(wires: Wires) -> Boolean:
            in_transfer = implies(
                wires["completer_state"] != CompleterState.IDLE, wires["apb__psel"] & wires["apb__penable"] == 1
            )
            return all_of(wires["rst"] == 0, in_transfer, wires["apb__pwrite"] == 1)

        def goals() -> Iterator[tuple[str, Invariant, Invariant]]:
            ready = "apb__pready"
            yield (
                "a read-modify-write",
                lambda wires: all_of(wires[ready] == 1, wires["reads"] == 1, wires["writes"] == 1),
                assumed,
            )
            yield "an error", lambda wires: all_of(wires["apb__pslverr"] == 1, wires["writes"] == 1), assumed

        return reach_all(system, goals(), cycles=2 * ACCESS_LATENCY)


@cache
def _completer() -> Transition:
    return watched_completer(transition(APB4Completer()))


def proofs() -> Iterator[Proof]:
    """Yield the proofs. The completer is the same in all configurations."""
    for name, method, prove in (
        ("state and accesses of a transfer are consistent", "induction", APB.prove_relation),
        ("a transfer makes each access once, in its access phase", "any cycle", APB.prove_transfers),
        ("a transfer takes the result of its access in the cycle in which it is valid", "any cycle", APB.prove_answer),
        ("cover: a read-modify-write, an error", "bounded search", APB.cover),
    ):
        yield Proof(name, "completer", "-", method, lambda prove=prove: prove(_completer()))
