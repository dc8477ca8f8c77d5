"""Properties of one cycle, proved for every state and every input, and therefore for all time."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import z3

from .proof import Result, Verdict
from .symbolic import Integer, Octets, equal, explore, possible
from .transition import Transition, bit_vector

__all__ = [
    "Contract",
    "Invariant",
    "Reference",
    "Wires",
    "always",
    "follows",
    "fresh_solver",
    "happens",
    "independent",
    "inductive",
    "reach",
    "reach_all",
    "resets",
]

SECONDS = 300
"""What the solver may take for one question."""

Wires = Mapping[str, z3.BitVecRef]
Invariant = Callable[[Wires], z3.BoolRef]
"""A relation between the registers, over the wires of one cycle by name."""

Contract = Callable[[Wires, Wires], z3.BoolRef]
"""A relation between the wires of a cycle and those of the next."""

Number = Integer | int | Octets

Reference = Callable[..., Mapping[str, Number]]
"""What one cycle is to do, in plain Python: its parameters name wires of this cycle, its result names wires of the
cycle that answers and says their values."""


def _always(wires: Wires) -> z3.BoolRef:
    return z3.BoolVal(True)


def _any(now: Wires, then: Wires) -> z3.BoolRef:
    return z3.BoolVal(True)


def fresh_solver(*assertions: z3.BoolRef) -> z3.Solver:
    """For one question, or for a few that lead on from one to the next."""
    solver = z3.SolverFor("QF_BV")
    solver.set("timeout", 1000 * SECONDS)
    solver.add(*assertions)
    return solver


def inductive(system: Transition, invariant: Invariant, *, contract: Contract = _any) -> Verdict:
    """`invariant` holds after power-up, and each cycle keeps it, whatever the inputs (`rst` is one of them).

    Parameters
    ----------
    contract : Contract
        What may be assumed of the inputs of a cycle and the next, because those who drive them promise it.
    """
    now, then = system.wires(0), system.wires(1)
    base = fresh_solver(system.initial(), z3.Not(invariant(now)))
    if possible(base):
        shown = _describe(system, base.model(), [now])
        return Verdict(Result.FAIL, 0, "it does not hold after power-up:\n" + shown)
    step = fresh_solver(invariant(now), system.step(0), contract(now, then), z3.Not(invariant(then)))
    if possible(step):
        return Verdict(Result.FAIL, 1, "a cycle breaks it:\n" + _describe(system, step.model(), [now, then]))
    return Verdict(Result.PASS, 1)


def resets(system: Transition, *, kept: Sequence[str] = ()) -> Verdict:
    """One cycle of `rst` leads from every state to the one after power-up, but for the registers that are `kept`."""
    now, then = system.wires(0), system.wires(1)
    # Of a conjunction of one equation for each register, leave out some.
    initial = {bit_vector(equation.arg(0)).get_id(): equation for equation in system.initial(1).children()}
    for name in kept:
        del initial[then[name].get_id()]
    step = fresh_solver(system.step(0), now["rst"] == 1, z3.Not(z3.And(*initial.values())))
    if possible(step):
        return Verdict(Result.FAIL, 1, "a register survives a reset:\n" + _describe(system, step.model(), [now, then]))
    return Verdict(Result.PASS, 1)


def always(
    system: Transition, relation: Callable[..., z3.BoolRef], *, cycles: int = 2, assuming: Invariant = _always
) -> Verdict:
    """`relation` is between the wires of so many successive cycles, whatever the state.

    Parameters
    ----------
    assuming : Invariant
        Of the first cycle: what `inductive` proves.
    """
    wires = [system.wires(n) for n in range(cycles)]
    assumptions = [assuming(wires[0]), *(system.step(n) for n in range(cycles - 1))]
    if not possible(fresh_solver(*assumptions)):
        return Verdict(Result.FAIL, cycles - 1, "the assumptions contradict each other, so that nothing is proved")
    question = fresh_solver(*assumptions, z3.Not(relation(*wires)))
    if possible(question):
        return Verdict(Result.FAIL, cycles - 1, "a cycle breaks it:\n" + _describe(system, question.model(), wires))
    return Verdict(Result.PASS, cycles - 1)


def independent(system: Transition, outputs: Sequence[str], of: Sequence[str]) -> Verdict:
    """The outputs are in each cycle what they are, whatever the inputs `of` are in it."""
    one, other = system.wires(0), system.wires(1)
    alike = (one[name] == other[name] for name in (*system.registers, *system.inputs) if name not in of)
    question = fresh_solver(*alike, z3.Or(*(one[name] != other[name] for name in outputs)))
    if possible(question):
        shown = _describe(system, question.model(), [one, other])
        return Verdict(Result.FAIL, 0, "they differ between the one and the other:\n" + shown)
    return Verdict(Result.PASS, 0)


def follows(
    system: Transition,
    reference: Reference,
    *,
    arguments: Sequence[str] | None = None,
    assuming: Invariant = _always,
    latency: int | Mapping[str, int] = 1,
    taken: Mapping[str, int] | None = None,
    meanwhile: Invariant = _always,
    held: Sequence[str] = (),
    inside: Mapping[str, str] | None = None,
    split: Mapping[str, str] | None = None,
) -> Verdict:
    """Each cycle of the RTL does what `reference` says, from each state and for all inputs that meet `assuming`.

    Parameters
    ----------
    reference : Reference
        Run once for each path that it can take.
    arguments : sequence of str
        Wires that the reference takes as one mapping, by name: instead of parameters, where not every configuration has
        them.
    assuming : Invariant
        An invariant that `inductive` proves, or what the block's contract says of its inputs.
    latency : int, or mapping of str to int
        Cycles until the answer, or until each of the answers, by name: 0 where it is combinational.
    taken : mapping of str to int
        Cycles until an argument of the reference is looked at, by name, if it is not in the first.
    meanwhile : Invariant
        What is assumed of each cycle between the first and that of the last answer.
    held : sequence of str
        Inputs that are the same until the last answer.
    inside : mapping of str to str
        Wires for which the reference has another name: those of submodules.
    split : mapping of str to str
        Of an answer that is hard to prove: an argument of the reference. Each of its values is a question of its own.
    """
    latencies = dict(latency) if isinstance(latency, Mapping) else {}
    depth = max(latencies.values()) if isinstance(latency, Mapping) else latency
    cycles = [system.wires(n) for n in range(depth + 1)]
    now = cycles[0]
    assumptions = fresh_solver(
        assuming(now),
        *(system.step(n) for n in range(max(depth, 1))),
        *(meanwhile(wires) for wires in cycles[1:-1]),
        *(wires[name] == now[name] for name in held for wires in cycles[1:]),
    )
    named = inside or {}

    def answers(result: Mapping[str, Number]) -> dict[str, z3.BitVecRef]:
        return {name: cycles[latencies.get(name, depth)][named.get(name, name)] for name in result}

    given = {
        name: cycles[(taken or {}).get(name, 0)][named.get(name, name)]
        for name in arguments or inspect.signature(reference).parameters
    }

    def run(*values: Number) -> Mapping[str, Number]:
        return reference(*values) if arguments is None else reference(dict(zip(given, values, strict=True)))

    def cases(name: str) -> list[z3.BoolRef]:
        if split is None or name not in split:
            return [z3.BoolVal(True)]
        wire = given[split[name]]
        return [wire == value for value in range(1 << wire.size())]

    conditions: list[z3.BoolRef] = []
    for path in explore(run, *given.values(), solver=assumptions):
        conditions.append(path.condition)
        wires = answers(path.result)
        # A solver for each question: one that has seen the others carries them along, and is thirty times slower.
        for name, value in path.result.items():
            for case in cases(name):
                question = fresh_solver(
                    *assumptions.assertions(), path.condition, case, z3.Not(equal(value, wires[name]))
                )
                if possible(question):
                    shown = _disagreement(system, question.model(), now, wires, path.result)
                    return Verdict(Result.FAIL, depth, f"path {len(conditions)} of the reference:\n" + shown)
    if not conditions:
        return Verdict(Result.FAIL, depth, "the assumptions contradict each other, so that nothing is proved")
    if possible(assumptions, z3.Not(z3.Or(*conditions))):
        return Verdict(Result.ERROR, depth, "the paths do not cover every input")
    return Verdict(Result.PASS, depth, method=f"reference, all {len(conditions)} paths")


def reach(system: Transition, goal: Invariant, *, cycles: int, given: Invariant = _always) -> Verdict:
    """Some inputs lead from power-up to `goal` within `cycles`: what a proof speaks of does happen.

    Parameters
    ----------
    given : Invariant
        What holds in every cycle on the way: a goal can be reached in this way as well.
    """
    solver = fresh_solver(system.initial())
    for cycle in range(cycles + 1):
        wires = system.wires(cycle)
        solver.add(given(wires))
        if possible(solver, goal(wires)):
            return Verdict(Result.PASS, cycle)
        solver.add(system.step(cycle))
    return Verdict(Result.FAIL, cycles, f"no inputs lead there within {cycles} cycles")


def happens(system: Transition, relation: Callable[..., z3.BoolRef], *, cycles: int = 2) -> Verdict:
    """`relation` is between the wires of so many successive cycles, from some state: one that may never be reached, if
    the system has registers that matter to it.
    """
    wires = [system.wires(n) for n in range(cycles)]
    if possible(fresh_solver(*(system.step(n) for n in range(cycles - 1)), relation(*wires))):
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


def _value(model: z3.ModelRef, wire: z3.BitVecRef) -> int:
    value = model.eval(wire, model_completion=True)
    assert isinstance(value, z3.BitVecNumRef)
    return value.as_long()


def _values(model: z3.ModelRef, names: tuple[str, ...], wires: Wires) -> str:
    return ", ".join(f"{name} = {_value(model, wires[name]):#x}" for name in names)


def _describe(system: Transition, model: z3.ModelRef, cycles: Sequence[Wires]) -> str:
    inputs = tuple(name for name in system.inputs if name != "clk")
    return "\n  then\n".join(
        f"  state   {_values(model, system.registers, wires)}\n  inputs  {_values(model, inputs, wires)}"
        for wires in cycles
    )


def _disagreement(
    system: Transition, model: z3.ModelRef, now: Wires, answers: Wires, expected: Mapping[str, Number]
) -> str:
    def known(value: Number) -> int:
        if isinstance(value, Octets):
            return sum(known(byte) << 8 * index for index, byte in enumerate(value))
        if isinstance(value, Integer):
            number = model.eval(value.bits, model_completion=True)
            assert isinstance(number, z3.BitVecNumRef)
            return number.as_signed_long()
        return value

    wanted = ", ".join(f"{name} = {known(value):#x}" for name, value in expected.items())
    got = _values(model, tuple(expected), answers)
    return f"{_describe(system, model, [now])}\n  expected  {wanted}\n  got       {got}"
