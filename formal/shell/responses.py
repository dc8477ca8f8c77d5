"""Answers to records: the order of the open bursts, and what is reported of the one that failed."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache

from configurations import FEATURES
from spurtle.config import SPUConfig
from spurtle.shell.responses import BurstResponses, max_open_bursts

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
    if_else,
    implies,
    ule,
    ult,
)
from ..engine.transition import Transition, Wires, transition, with_history
from .history import WIDTH, number, wide

__all__ = ["Responses", "proofs", "watched_responses"]


def watched_responses(system: Transition) -> Transition:
    """Return `system`, a `BurstResponses`, with history registers.

    started, answered_bursts : bursts that started, that have a response
    burst_number, first, last : number of an arbitrary burst, which never changes; its first word, and whether it is
        the last one of its record
    is_reported : it is the burst whose failure is reported next
    """
    width = system.every_wire(0)["burst.first"].width

    def follow(wires: Wires) -> Mapping[str, BitVector]:
        begins, answers = wires["begin"] == 1, wires["valid"] == 1
        seen = all_of(begins, wires["started"] == wires["burst_number"])
        fails = wires["fails"] == 1
        counted = {
            "started": wires["started"] + number(begins),
            "answered": wires["answered_bursts"] + number(answers),
            "reported": as_bits(wires["answered_bursts"] == wires["burst_number"]),
        }
        counted["reported"] = if_else(fails, counted["reported"], wires["is_reported"])
        reset = wires["rst"] == 1
        counted = {name: if_else(reset, constant(0, value.width), value) for name, value in counted.items()}
        return {
            "burst_number": wires["burst_number"],
            "started": counted["started"],
            "answered_bursts": counted["answered"],
            "is_reported": counted["reported"],
            "first": if_else(seen, wires["burst.first"], wires["first"]),
            "last": if_else(seen, wires["burst.last"], wires["last"]),
        }

    widths = {"burst_number": WIDTH, "started": WIDTH, "answered_bursts": WIDTH}
    return with_history(
        system,
        {**widths, "is_reported": 1, "first": width, "last": 1},
        follow,
        {"started": 0, "answered_bursts": 0, "is_reported": 0},
    )


class Responses:
    """Proofs of a `BurstResponses` whose records can be sent in several bursts. `system` is `watched_responses`."""

    def __init__(self, config: SPUConfig):
        self._maximum = max_open_bursts(config)

    def contract(self, wires: Wires) -> Boolean:
        """Return the contract of the inputs: no burst begins while `full` or `failed`, and open ones are answered."""
        return all_of(
            implies(wires["begin"] == 1, all_of(wires["full"] == 0, wires["failed"] == 0)),
            implies(wires["valid"] == 1, wires["started"] != wires["answered_bursts"]),
        )

    def _contract(self, now: Wires, then: Wires) -> Boolean:
        return self.contract(now)

    def _open(self, wires: Wires) -> BitVector:
        # With one open burst, the count is the flag.
        return wide(wires["full" if self._maximum == 1 else "open_bursts"])

    def order(self, wires: Wires) -> Boolean:
        """Return the invariant: the open bursts are in the FIFO in the order in which they began."""
        open_, answered = self._open(wires), wires["answered"]
        position = wires["burst_number"] - wires["answered_bursts"]
        seen = concat(wires["last"], wires["first"])
        entries = (
            implies(
                all_of(ult(position, open_), wide(constant(entry, answered.width) - answered) == position),
                wires[f"bursts[{entry}]"] == seen,
            )
            for entry in range(max(self._maximum, 2))
        )
        reported = all_of(wires["failed"] == 1, wires["is_reported"] == 1)
        return all_of(
            open_ == wires["started"] - wires["answered_bursts"],
            ule(open_, self._maximum),
            *entries,
            # No burst begins before the report, so that none of the following ones has its number.
            implies(reported, all_of(self._has_started(wires), wide(wires["word"]) == wide(wires["first"]))),
        )

    def _has_started(self, wires: Wires) -> Boolean:
        return all_of(wires["started"] != wires["burst_number"], ule(wires["started"] - wires["burst_number"], 128))

    def prove_order(self, system: Transition) -> Verdict:
        """Prove the invariant `order`."""
        return inductive(system, self.order, contract=self._contract)

    def prove_answers(self, system: Transition) -> Verdict:
        """Prove that the response to the last burst of a record answers it, or its first error is reported."""

        def correct(wires: Wires) -> Boolean:
            answers = all_of(wires["valid"] == 1, wires["answered_bursts"] == wires["burst_number"])
            normal = all_of(answers, wires["failed"] == 0, wires["discard"] == 0)
            faults = all_of(wires["done"] == 1, wires["fault.kind"] != 0)
            return all_of(
                implies(normal, (wires["done"] == 1) == all_of(wires["last"] == 1, wires["error"] == 0)),
                implies(all_of(normal, wires["error"] == 1), wires["fails"] == 1),
                implies(all_of(wires["valid"] == 0, wires["failed"] == 0, wires["discard"] == 0), wires["done"] == 0),
                faults == all_of(wires["done"] == 1, wires["failed"] == 1),
                implies(wires["failed"] == 1, any_of(wires["done"] == 0, self._open(wires) == 0)),
                implies(all_of(faults, wires["is_reported"] == 1), wide(wires["fault.word"]) == wide(wires["first"])),
            )

        return always(system, correct, cycles=1, assuming=lambda wires: all_of(self.order(wires), self.contract(wires)))

    def cover(self, system: Transition) -> Verdict:
        """Reach the maximum number of open bursts, and the report of the error of one that is not the first."""

        def assumed(wires: Wires) -> Boolean:
            return all_of(self.contract(wires), wires["rst"] == 0)

        def reported(wires: Wires) -> Boolean:
            third = all_of(wires["is_reported"] == 1, wires["burst_number"] == 2)
            return all_of(third, wires["done"] == 1, wires["fault.word"] == 3)

        def goals() -> Iterator[tuple[str, Invariant, Invariant]]:
            yield "the maximum number of open bursts", lambda wires: self._open(wires) == self._maximum, assumed
            yield "the error of the third burst is reported", reported, assumed

        return reach_all(system, goals(), cycles=16)


@cache
def _responses(config: SPUConfig) -> Transition:
    return watched_responses(transition(BurstResponses(config)))


def proofs() -> Iterator[Proof]:
    """Yield the proofs, for one open burst and for several."""
    packed = FEATURES["minimal_packed"]
    for config in (packed, replace(packed, name="minimal_packed_four", outstanding=4)):
        responses = Responses(config)
        for name, method, prove in (
            ("open bursts are answered in order", "induction", responses.prove_order),
            ("a record has one answer, with the burst that failed", "any cycle", responses.prove_answers),
            ("cover: the maximum number of open bursts, the report of an error", "bounded search", responses.cover),
        ):
            yield Proof(
                name, "responses", config.name, method, lambda prove=prove, config=config: prove(_responses(config))
            )
