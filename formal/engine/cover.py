"""Searches for what has to happen: a proof about something that never does would say nothing."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from .induction import Invariant, anything
from .proof import Result, Verdict
from .terms import Boolean, Solver
from .transition import Transition

__all__ = ["happens", "reach", "reach_all"]


def reach(system: Transition, goal: Invariant, *, cycles: int, given: Invariant = anything) -> Verdict:
    """Some inputs lead from power-up to `goal` within `cycles`: what a proof speaks of does happen.

    Parameters
    ----------
    given : Invariant
        What holds in every cycle on the way: a goal can be reached in this way as well.
    """
    solver = Solver(system.initial())
    for cycle in range(cycles + 1):
        wires = system.wires(cycle)
        solver.add(given(wires))
        if solver.possible(goal(wires)):
            return Verdict(Result.PASS, cycle)
        solver.add(system.step(cycle))
    return Verdict(Result.FAIL, cycles, f"no inputs lead there within {cycles} cycles")


def happens(system: Transition, relation: Callable[..., Boolean], *, cycles: int = 2) -> Verdict:
    """`relation` is between the wires of so many successive cycles, from some state: one that may never be reached, if
    the system has registers that matter to it.
    """
    wires = [system.wires(n) for n in range(cycles)]
    if Solver(*(system.step(n) for n in range(cycles - 1)), relation(*wires)).possible():
        return Verdict(Result.PASS, cycles - 1)
    return Verdict(Result.FAIL, cycles - 1, "no state and inputs lead there")


def reach_all(system: Transition, goals: Iterable[tuple[str, Invariant, Invariant]], *, cycles: int) -> Verdict:
    """Each of several goals can be reached: name, goal, what holds on the way. The depth is that of the farthest."""
    depth = 0
    for name, goal, given in goals:
        verdict = reach(system, goal, cycles=cycles, given=given)
        if verdict.result is not Result.PASS:
            return replace(verdict, evidence=f"{name}: {verdict.evidence}")
        depth = max(depth, verdict.depth)
    return Verdict(Result.PASS, depth)
