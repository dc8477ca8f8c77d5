"""Start state of a slot: it is the PE's state of the cycle in which its operation passed the sampling point."""

from functools import reduce

from spurtle.config import SPUConfig
from spurtle.gateware.sample import StartLayout

from ..engine.induction import always, inductive
from ..engine.proof import Result, Verdict
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
)
from ..engine.transition import Transition, Wires, with_history
from .start_states import passed, start, words, words_are_kept

__all__ = ["passing_states", "prove_captures"]


def _subtracted(config: SPUConfig, wires: Wires) -> BitVector:
    """Return the offset that is subtracted from the system counter in this cycle."""
    zero = constant(0, 64)
    return if_else(wires["subtract_offset"] == 1, wires["offset"], zero) if config.el2 else zero


def _state(config: SPUConfig, wires: Wires) -> BitVector:
    """Return the state of the PE in this cycle, as a `StartLayout`."""
    state = {
        "el": wires["pe__el"],
        "ns": wires["pe__ns"],
        **({"nse": wires["pe__nse"]} if config.rme else {}),
        "contextidr_el1": wires["pe__contextidr_el1"],
        "contextidr_el2": wires["pe__contextidr_el2"] if config.el2 else constant(0, 32),
        "timestamp": wires["pe__physical_count"] - _subtracted(config, wires),
        "collect": wires["collect"],
    }
    return concat(*(state[name] for name, _ in reversed(list(StartLayout(config)))))


def passing_states(config: SPUConfig, system: Transition) -> Transition:
    """Return `system`, an `InFlight`, with history registers of the cycles whose operations have not been answered.

    `state_n` is the state of the PE n + 1 cycles before, and `stopped_n` whether the buffer did not run in one of the
    last n cycles. They are valid if `valid_n` is set: there was no reset since, and the buffer ran in that cycle.
    """
    ages = range(config.answer_latency)

    def follow(wires: Wires) -> dict[str, BitVector]:
        running, no_reset = wires["running"] == 1, wires["rst"] == 0
        following = {
            "state_0": _state(config, wires),
            "valid_0": as_bits(all_of(running, no_reset)),
        }
        for age in ages[1:]:
            following |= {
                f"state_{age}": wires[f"state_{age - 1}"],
                f"valid_{age}": as_bits(all_of(wires[f"valid_{age - 1}"] == 1, no_reset)),
                f"stopped_{age}": as_bits(_stopped(wires, age)),
            }
        return following

    registers = {f"state_{age}": StartLayout(config).size for age in ages}
    registers |= {f"valid_{age}": 1 for age in ages} | {f"stopped_{age}": 1 for age in ages[1:]}
    return with_history(system, registers, follow, {f"valid_{age}": 0 for age in ages})


def _stopped(wires: Wires, age: int) -> Boolean:
    """Return whether the buffer did not run in one of the last `age` cycles, this one included."""
    stops = wires["running"] == 0
    return any_of(wires[f"stopped_{age - 1}"] == 1, stops) if age > 1 else stops


def _stored(config: SPUConfig, wires: Wires, age: int) -> BitVector:
    """Return the stored state of the operations that passed `age + 1` cycles before."""
    if age == 0:
        return wires["incoming"]
    if config.slots == 1:
        return wires[f"start_{age}"]
    word, values = wires[passed(age)], [wires[name] for name in words(config)]
    return reduce(lambda found, n: if_else(extract(n, n, word) == 1, values[n], found), range(len(values)), values[0])


def prove_captures(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that a slot captures the PE's state of the cycle in which its operation passed.

    That cycle is `answer_latency` cycles before the slot is granted. While the buffer does not run, `SPU` counts no
    operations, so the proof assumes that it runs in that cycle. `system` is an `InFlight`.
    """
    last = config.answer_latency - 1

    def stored(wires: Wires) -> Boolean:
        terms = [words_are_kept(config)(wires)]
        for age in range(config.answer_latency):
            same = [_stored(config, wires, age) == wires[f"state_{age}"]]
            if age > 0:
                same.append(wires[f"was_stopped_{age}"] == wires[f"stopped_{age}"])
            terms.append(implies(wires[f"valid_{age}"] == 1, all_of(*same)))
        return all_of(*terms)

    def captured(now: Wires, then: Wires) -> Boolean:
        stopped = _stopped(now, config.answer_latency)
        answered = all_of(now["rst"] == 0, now[f"valid_{last}"] == 1)
        return all_of(
            *(
                implies(
                    all_of(answered, extract(slot, slot, now["allocation.allocate"]) == 1),
                    all_of(
                        start(config, then, slot) == now[f"state_{last}"],
                        (then[f"slot_{slot}.drop"] == 1) == stopped,
                    ),
                )
                for slot in range(config.slots)
            )
        )

    remembered = passing_states(config, system)
    verdict = inductive(remembered, stored, together=1)
    if verdict.result is not Result.PASS:
        return verdict
    return always(remembered, captured, assuming=stored)
