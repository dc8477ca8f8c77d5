"""Cover checks: searches for states that must be reachable, so that no proof holds vacuously."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from .induction import Invariant, unconstrained
from .proof import Result, Verdict
from .terms import Boolean, Solver
from .transition import Transition

__all__ = ["reach", "reach_all", "satisfiable"]


def reach(system: Transition, goal: Invariant, *, cycles: int, assuming: Invariant = unconstrained) -> Verdict:
    """Search for inputs that lead from power-up to `goal` within `cycles` cycles.

    Parameters
    ----------
    cycles : int
        Upper bound of the search. A goal that takes more cycles fails.
    assuming : Invariant
        Assumed in each cycle of the trace, up to and including the goal. It restricts how the goal is reached.
    """
    solver = Solver(system.initial())
    for cycle in range(cycles + 1):
        wires = system.wires(cycle)
        solver.add(assuming(wires))
        if solver.possible(goal(wires)):
            return Verdict(Result.PASS, cycle)
        solver.add(system.step(cycle))
    return Verdict(Result.FAIL, cycles, f"no inputs reach it within {cycles} cycles")


def satisfiable(system: Transition, relation: Callable[..., Boolean], *, cycles: int = 2) -> Verdict:
    """Search for a state and inputs from which `relation` holds between the wires of `cycles` successive cycles.

    The state may be unreachable if the system has registers that the relation depends on.
    """
    wires = [system.wires(n) for n in range(cycles)]
    if Solver(*(system.step(n) for n in range(cycles - 1)), relation(*wires)).possible():
        return Verdict(Result.PASS, cycles - 1)
    return Verdict(Result.FAIL, cycles - 1, "no state and inputs satisfy it")


def reach_all(system: Transition, goals: Iterable[tuple[str, Invariant, Invariant]], *, cycles: int) -> Verdict:
    """Reach each of several goals.

    Parameters
    ----------
    goals : iterable of (str, Invariant, Invariant)
        Name, goal, and assumption for each cycle of the trace.

    Returns
    -------
    Verdict
        The first failure; otherwise PASS, with the depth of the goal that takes the most cycles.
    """
    depth = 0
    for name, goal, assuming in goals:
        verdict = reach(system, goal, cycles=cycles, assuming=assuming)
        if verdict.result is not Result.PASS:
            return replace(verdict, evidence=f"{name}: {verdict.evidence}")
        depth = max(depth, verdict.depth)
    return Verdict(Result.PASS, depth)
