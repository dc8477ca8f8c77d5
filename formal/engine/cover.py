"""Cover checks: searches for states that must be reachable, so that no proof holds vacuously."""

from collections.abc import Callable, Iterable, Iterator
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
    ((_, verdict),) = _search(system, [("goal", goal)], cycles, assuming)
    return verdict


def _search(
    system: Transition, goals: Iterable[tuple[str, Invariant]], cycles: int, assuming: Invariant
) -> Iterator[tuple[str, Verdict]]:
    """Yield each goal with its verdict, in the order in which they are reached. The goals share the trace."""
    remaining = dict(goals)
    solver = Solver(system.initial())
    for cycle in range(cycles + 1):
        wires = system.wires(cycle)
        solver.add(assuming(wires))
        for name in [name for name, goal in remaining.items() if solver.possible(goal(wires))]:
            del remaining[name]
            yield name, Verdict(Result.PASS, cycle)
        if not remaining:
            return
        solver.add(system.step(cycle))
    for name in remaining:
        yield name, Verdict(Result.FAIL, cycles, f"no inputs reach it within {cycles} cycles")


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
        Name, goal, and assumption for each cycle of the trace. Goals with the same assumption share one search.

    Returns
    -------
    Verdict
        The first failure; otherwise PASS, with the depth of the goal that takes the most cycles.
    """
    groups: dict[int, tuple[Invariant, list[tuple[str, Invariant]]]] = {}
    for name, goal, assuming in goals:
        groups.setdefault(id(assuming), (assuming, []))[1].append((name, goal))
    depth = 0
    for assuming, group in groups.values():
        for name, verdict in _search(system, group, cycles, assuming):
            if verdict.result is not Result.PASS:
                return replace(verdict, evidence=f"{name}: {verdict.evidence}")
            depth = max(depth, verdict.depth)
    return Verdict(Result.PASS, depth)
