"""The APB4 port of a shell: what APB4 demands of a completer, and that each transfer makes its accesses once."""

from collections.abc import Iterator, Mapping
from functools import cache

from spurtle.interface.sysreg import AccessOutcome
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
"""Bits of the numbers that a proof counts with: more than anything here counts to."""


def _number(condition: Boolean) -> BitVector:
    return as_bits(condition, WIDTH)


_TRANSFER = tuple(f"apb__{name}" for name in ("paddr", "pwrite", "pwdata", "pstrb"))


def watched_completer(system: Transition) -> Transition:
    """An `APB4Completer`, and beside it the accesses of this transfer: how many reads and writes of registers, and what
    the last of them came to, which the register port says two cycles later.
    """

    def follow(wires: Wires) -> Mapping[str, BitVector]:
        made = wires["sysreg__valid"] == 1
        write = wires["sysreg__write"] == 1
        over = any_of(wires["apb__pready"] == 1, wires["rst"] == 1)
        zero = constant(0, WIDTH)
        return {
            "reads": if_else(over, zero, wires["reads"] + _number(all_of(made, not_(write)))),
            "writes": if_else(over, zero, wires["writes"] + _number(all_of(made, write))),
            "setup": wires["apb__psel"] & ~wires["apb__penable"],
        }

    return with_history(system, {"reads": WIDTH, "writes": WIDTH, "setup": 1}, follow, {"reads": 0, "writes": 0})


class APB:
    """Each proof is of a `watched_completer`."""

    @staticmethod
    def contract(now: Wires, then: Wires) -> Boolean:
        """A requester keeps a transfer until it is ready. A reset ends it on both sides."""
        waits = all_of(now["apb__psel"] == 1, now["apb__penable"] == 1, now["apb__pready"] == 0, now["rst"] == 0)
        kept = all_of(then["apb__psel"] == 1, then["apb__penable"] == 1, *(then[n] == now[n] for n in _TRANSFER))
        return implies(waits, kept)

    @staticmethod
    def relation(wires: Wires) -> Boolean:
        """A transfer is there as long as it is not ready, and has made the accesses that it has to make so far."""
        state, reads, writes = (wires[name] for name in ("completer_state", "reads", "writes"))
        upper = extract(2, 2, wires["apb__paddr"]) == 1
        write, merging = wires["apb__pwrite"] == 1, wires["merging"] == 1
        whole = all_of(wires["low_strobe"] == 15, wires["apb__pstrb"] == 15)
        reading = any_of(not_(write), merging)
        return all_of(
            ule(state, CompleterState.RESPONSE),
            implies(state == CompleterState.IDLE, all_of(reads == 0, writes == 0)),
            implies(
                state != CompleterState.IDLE,
                all_of(
                    wires["apb__psel"] == 1,
                    wires["apb__penable"] == 1,
                    upper == write,
                    implies(merging, all_of(write, not_(whole))),
                    reads == _number(any_of(not_(write), not_(whole))),
                    writes == _number(not_(reading)),
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

        def told(wires: Wires) -> Boolean:
            access = all_of(wires["apb__psel"] == 1, wires["apb__penable"] == 1)
            ready, error = wires["apb__pready"] == 1, wires["apb__pslverr"] == 1
            made, writes_now = wires["sysreg__valid"] == 1, wires["sysreg__write"] == 1
            upper = extract(2, 2, wires["apb__paddr"]) == 1
            write = wires["apb__pwrite"] == 1
            whole = all_of(wires["low_strobe"] == 15, wires["apb__pstrb"] == 15)
            reads, writes = wires["reads"], wires["writes"]
            succeeded = wires["sysreg__outcome"] == AccessOutcome.VALUE.value
            encoding = concat(*(wires[f"sysreg__{name}"] for name in ("op1", "crn", "crm", "op2")))
            return all_of(
                implies(any_of(ready, made), access),
                implies(error, ready),
                not_(all_of(ready, made)),
                implies(made, encoding == extract(16, 3, wires["apb__paddr"])),
                # A read is the first access, and a write the last.
                implies(all_of(made, not_(writes_now)), all_of(reads == 0, writes == 0)),
                implies(all_of(made, writes_now), all_of(write, upper, writes == 0, (reads == 0) == whole)),
                implies(
                    ready,
                    if_else(
                        upper == write,
                        if_else(
                            write,
                            all_of(reads == _number(not_(whole)), any_of(writes == 1, all_of(reads == 1, error))),
                            all_of(reads == 1, writes == 0),
                        ),
                        all_of(reads == 0, writes == 0, not_(error)),
                    ),
                ),
                implies(all_of(ready, upper == write), error == not_(succeeded)),
            )

        return always(system, told, cycles=1, assuming=APB.relation)

    @staticmethod
    def cover(system: Transition) -> Verdict:
        def free(wires: Wires) -> Boolean:
            kept = implies(
                wires["completer_state"] != CompleterState.IDLE, wires["apb__psel"] & wires["apb__penable"] == 1
            )
            return all_of(wires["rst"] == 0, kept, wires["apb__pwrite"] == 1)

        def goals() -> Iterator[tuple[str, Invariant, Invariant]]:
            ready = "apb__pready"
            yield "merged", lambda wires: all_of(wires[ready] == 1, wires["reads"] == 1, wires["writes"] == 1), free
            yield "an error", lambda wires: all_of(wires["apb__pslverr"] == 1, wires["writes"] == 1), free

        return reach_all(system, goals(), cycles=8)


@cache
def _completer() -> Transition:
    return watched_completer(transition(APB4Completer()))


def proofs() -> Iterator[Proof]:
    """The completer is the same in all configurations."""
    for name, method, prove in (
        ("state and accesses of a transfer are consistent", "induction", APB.prove_relation),
        ("a transfer makes each access once, in its access phase", "any cycle", APB.prove_transfers),
        ("cover: a read-modify-write, an error", "bounded search", APB.cover),
    ):
        yield Proof(name, "completer", "-", method, lambda prove=prove: prove(_completer()))
