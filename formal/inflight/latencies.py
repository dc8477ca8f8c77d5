"""Latencies of a slot: each counts the cycles that the core reports, and none exceeds the total latency."""

from dataclasses import replace

from spurtle.config import SPUConfig
from spurtle.gateware.slots import SlotState

from ..engine.cover import reach, satisfiable
from ..engine.induction import inductive
from ..engine.proof import Result, Verdict
from ..engine.terms import BitVector, Boolean, all_of, any_of, constant, if_else, implies, not_, ule, ult
from ..engine.transition import Transition, Wires, with_history

__all__ = ["counting", "cover_counts", "prove_counts", "prove_latencies"]


def prove_latencies(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that no latency exceeds the total latency. `system` is a `Slot`."""
    largest = (1 << config.counter_bits) - 1

    def bounded(wires: Wires) -> Boolean:
        total, executing, waiting = wires["total"], wires["executing"] == 1, wires["waiting"] == 1
        terms = [implies(waiting, all_of(executing, wires["issue"] == total))]
        # The total latency is one cycle ahead of the reports: it includes the cycle in which the operation passed.
        terms.append(implies(executing, any_of(ult(wires["translation"], total), total == largest)))
        terms += [ule(wires[name], total) for name in config.latencies]
        used = any_of(wires["slot_state"] == SlotState.IN_FLIGHT, wires["slot_state"] == SlotState.FINISHED)
        return all_of(ule(wires["slot_state"], SlotState.FINISHED), implies(used, all_of(*terms)))

    return inductive(system, bounded)


def counting(config: SPUConfig, system: Transition) -> Transition:
    """Return `system`, a `Slot`, with history registers that count the reported cycles (D18.2.3, docs/choices.md).

    Counting starts one cycle before the slot is granted, when the operation passed. The total latency ends when the
    operation completes, the issue latency when it is issued or completes, and all of them when it finishes. Each stops
    at all ones.
    """
    bits = config.counter_bits
    largest, zero, one = ((constant(value, bits)) for value in ((1 << bits) - 1, 0, 1))

    def follow(wires: Wires) -> dict[str, BitVector]:
        starts = wires["slot_state"] == SlotState.FREE
        ended = any_of(wires["finish"] == 1, wires["vanish"] == 1, wires["slot_state"] == SlotState.FINISHED)
        completed = wires["completed"] | if_else(starts, constant(0, 1), wires["has_completed"])
        issued = wires["issued"] | wires["completed"] | if_else(starts, constant(0, 1), wires["was_issued"])
        counted = {
            "total": (one, completed == 0),
            "issue": (one, issued == 0),
            "translation": (zero, all_of(wires["translating"] == 1, completed == 0)),
        }
        if config.altclk:
            counted["alternate_issue"] = (zero, all_of(wires["alternate_tick"] == 1, issued == 0))
        following = {"has_completed": completed, "was_issued": issued}
        for name, (first, counts) in counted.items():
            before = if_else(starts, first, wires[f"reported_{name}"])
            after = if_else(all_of(counts, before != largest), before + 1, before)
            following[f"reported_{name}"] = if_else(all_of(not_(starts), ended), before, after)
        return following

    widths = {"has_completed": 1, "was_issued": 1, **{f"reported_{name}": bits for name in config.latencies}}
    return with_history(system, widths, follow, {})


def prove_counts(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that each latency equals its history register of `counting`. `system` is a `Slot`."""

    def equal(wires: Wires) -> Boolean:
        # Yosys removes flags that are not read.
        history = {"executing": "has_completed", "waiting": "was_issued"}
        flags = [(wires[flag] == 1) == (wires[past] == 0) for flag, past in history.items() if flag in wires]
        counted = [wires[name] == wires[f"reported_{name}"] for name in config.latencies]
        # The issue latency has no adder of its own.
        waits = all_of(wires["has_completed"] == 0, wires["reported_issue"] == wires["reported_total"])
        in_flight, finished = wires["slot_state"] == SlotState.IN_FLIGHT, wires["slot_state"] == SlotState.FINISHED
        return all_of(
            ule(wires["slot_state"], SlotState.FINISHED),
            implies(in_flight, all_of(*flags, any_of(wires["was_issued"] == 1, waits))),
            implies(any_of(in_flight, finished), all_of(*counted)),
        )

    return inductive(counting(config, system), equal)


def cover_counts(config: SPUConfig, system: Transition) -> Verdict:
    """Find states in which each latency differs from the others, or is saturated. `system` is a `Slot`."""
    largest = (1 << config.counter_bits) - 1
    for name in config.latencies:

        def alone(wires: Wires, name: str = name) -> Boolean:
            others = (wires["total"] != wires[other] for other in config.latencies if other not in ("total", name))
            return all_of(wires["slot_state"] == SlotState.FINISHED, wires[name] == 3, *others)

        def saturated(now: Wires, then: Wires, name: str = name) -> Boolean:
            counts = (now[wire] == 1 for wire in ("executing", "waiting", "translating"))
            ticks = (now[wire] == 1 for wire in now if wire == "alternate_tick")
            reported = (now[wire] == 0 for wire in ("issued", "completed", "finish", "vanish", "rst"))
            stays = (wires[name] == largest for wires in (now, then))
            return all_of(now["slot_state"] == SlotState.IN_FLIGHT, *counts, *ticks, *reported, *stays)

        for verdict in (reach(system, alone, cycles=6), satisfiable(system, saturated)):
            if verdict.result is not Result.PASS:
                return replace(verdict, evidence=f"{name}: {verdict.evidence}")
    return Verdict(Result.PASS, 6)
