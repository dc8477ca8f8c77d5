"""Properties of one cycle, proved for every state and every input, and therefore for all time."""

import inspect
from collections.abc import Callable, Mapping, Sequence

import z3

from .proof import Result, Verdict
from .symbolic import Integer, Octets, equal, explore, possible
from .transition import Transition

__all__ = ["Invariant", "Reference", "Wires", "always", "follows", "inductive", "reach", "resets"]

SECONDS = 300
"""What the solver may take for one question."""

Wires = Mapping[str, z3.BitVecRef]
Invariant = Callable[[Wires], z3.BoolRef]
"""A relation between the registers, over the wires of one cycle by name."""

Number = Integer | int | Octets

Reference = Callable[..., Mapping[str, Number]]
"""What one cycle is to do, in plain Python: its parameters name wires of this cycle, its result names wires of the
cycle that answers and says their values."""


def _always(wires: Wires) -> z3.BoolRef:
    return z3.BoolVal(True)


def _solver(*assertions: z3.BoolRef) -> z3.Solver:
    solver = z3.SolverFor("QF_BV")
    solver.set("timeout", 1000 * SECONDS)
    solver.add(*assertions)
    return solver


def inductive(system: Transition, invariant: Invariant) -> Verdict:
    """`invariant` holds after power-up, and each cycle keeps it, whatever the inputs (`rst` is one of them)."""
    now, then = system.wires(0), system.wires(1)
    base = _solver(system.initial(), z3.Not(invariant(now)))
    if possible(base):
        return Verdict(Result.FAIL, 0, "it does not hold after power-up:\n" + _describe(system, base.model(), now))
    step = _solver(invariant(now), system.step(0), z3.Not(invariant(then)))
    if possible(step):
        shown = _describe(system, step.model(), now) + "\n  then    " + _values(step.model(), system.registers, then)
        return Verdict(Result.FAIL, 1, "a cycle breaks it:\n" + shown)
    return Verdict(Result.PASS, 1)


def resets(system: Transition) -> Verdict:
    """One cycle of `rst` leads from every state to the one after power-up."""
    now, then = system.wires(0), system.wires(1)
    step = _solver(system.step(0), now["rst"] == 1, z3.Not(system.initial(1)))
    if possible(step):
        shown = _describe(system, step.model(), now) + "\n  then    " + _values(step.model(), system.registers, then)
        return Verdict(Result.FAIL, 1, "a register survives a reset:\n" + shown)
    return Verdict(Result.PASS, 1)


def always(system: Transition, relation: Callable[[Wires, Wires], z3.BoolRef]) -> Verdict:
    """`relation` is between the wires of every cycle and those of the next, whatever the state."""
    now, then = system.wires(0), system.wires(1)
    step = _solver(system.step(0), z3.Not(relation(now, then)))
    if possible(step):
        shown = _describe(system, step.model(), now) + "\n  then    " + _values(step.model(), system.registers, then)
        return Verdict(Result.FAIL, 1, "a cycle breaks it:\n" + shown)
    return Verdict(Result.PASS, 1)


def follows(
    system: Transition,
    reference: Reference,
    *,
    assuming: Invariant = _always,
    latency: int = 1,
    held: Sequence[str] = (),
) -> Verdict:
    """Each cycle of the RTL does what `reference` says, from each state and for all inputs that meet `assuming`.

    Parameters
    ----------
    reference : Reference
        Run once for each path that it can take.
    assuming : Invariant
        An invariant that `inductive` proves, or what the block's contract says of its inputs.
    latency : int
        Cycles until the answer: 1, or 0 where the answer is combinational.
    held : sequence of str
        Inputs that are the same in the cycle of the answer.
    """
    now, answer = system.wires(0), system.wires(latency)
    assumptions = _solver(assuming(now), system.step(0), *(answer[name] == now[name] for name in held))
    names = tuple(inspect.signature(reference).parameters)
    conditions: list[z3.BoolRef] = []
    for path in explore(reference, *(now[name] for name in names), solver=assumptions):
        conditions.append(path.condition)
        agreed = z3.And(*(equal(value, answer[name]) for name, value in path.result.items()))
        # A solver of its own: one that has seen the other paths carries them along, and is thirty times slower.
        question = _solver(*assumptions.assertions(), path.condition, z3.Not(agreed))
        if possible(question):
            shown = _disagreement(system, question.model(), now, answer, path.result)
            return Verdict(Result.FAIL, latency, f"path {len(conditions)} of the reference:\n" + shown)
    if not conditions:
        return Verdict(Result.FAIL, latency, "the assumptions contradict each other, so that nothing is proved")
    if possible(assumptions, z3.Not(z3.Or(*conditions))):
        return Verdict(Result.ERROR, latency, "the paths do not cover every input")
    return Verdict(Result.PASS, latency, method=f"reference, all {len(conditions)} paths")


def reach(system: Transition, goal: Invariant, *, cycles: int) -> Verdict:
    """Some inputs lead from power-up to `goal` within `cycles`: what a proof speaks of does happen."""
    solver = _solver(system.initial())
    for cycle in range(cycles + 1):
        if possible(solver, goal(system.wires(cycle))):
            return Verdict(Result.PASS, cycle)
        solver.add(system.step(cycle))
    return Verdict(Result.FAIL, cycles, f"no inputs lead there within {cycles} cycles")


def _value(model: z3.ModelRef, wire: z3.BitVecRef) -> int:
    value = model.eval(wire, model_completion=True)
    assert isinstance(value, z3.BitVecNumRef)
    return value.as_long()


def _values(model: z3.ModelRef, names: tuple[str, ...], wires: Wires) -> str:
    return ", ".join(f"{name} = {_value(model, wires[name]):#x}" for name in names)


def _describe(system: Transition, model: z3.ModelRef, wires: Wires) -> str:
    inputs = tuple(name for name in system.inputs if name != "clk")
    return f"  state   {_values(model, system.registers, wires)}\n  inputs  {_values(model, inputs, wires)}"


def _disagreement(
    system: Transition, model: z3.ModelRef, now: Wires, answer: Wires, expected: Mapping[str, Number]
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
    return (
        f"{_describe(system, model, now)}\n  expected  {wanted}\n  got       {_values(model, tuple(expected), answer)}"
    )
