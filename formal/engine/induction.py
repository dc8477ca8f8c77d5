"""Properties of one cycle or a few, proved for every state and every input, and therefore for all time."""

from collections.abc import Callable, Iterator, Sequence

from .proof import Result, Verdict
from .terms import Boolean, Solver, all_of, any_of, as_bits, boolean, not_
from .transition import Transition, Wires

__all__ = ["Contract", "Invariant", "always", "independent", "inductive", "resets", "unconstrained"]

Invariant = Callable[[Wires], Boolean]
"""A condition on the wires of one cycle, by name."""

Contract = Callable[[Wires, Wires], Boolean]
"""A relation between the wires of a cycle and of the next one."""


def unconstrained(wires: Wires) -> Boolean:
    """Return the condition that is always true."""
    return boolean(True)


def _no_contract(now: Wires, then: Wires) -> Boolean:
    return boolean(True)


def inductive(
    system: Transition, invariant: Invariant, *, contract: Contract = _no_contract, together: int | None = None
) -> Verdict:
    """Prove that `invariant` holds after power-up and that each cycle preserves it, for all inputs, `rst` included.

    Parameters
    ----------
    contract : Contract
        Assumption on the inputs of a cycle and the next one, which the components that drive them guarantee.
    together : int, optional
        Number of conjuncts of the invariant that are one query; default: all. The proof is the same; for an invariant
        of many independent conjuncts several queries take less time.
    """
    now, then = system.wires(0), system.wires(1)
    base = Solver(system.initial(), not_(invariant(now)))
    if base.possible():
        shown = system.describe(base.model(), [0])
        return Verdict(Result.FAIL, 0, "it does not hold after power-up:\n" + shown)
    assumed = (invariant(now), system.step(0), contract(now, then))
    claims = [*_conjuncts(invariant(then))]
    for first in range(0, len(claims), together or len(claims)):
        # Each query has a separate solver, which simplifies the assumptions for its claims.
        step = Solver(*assumed, not_(all_of(*claims[first:][:together])))
        if step.possible():
            return Verdict(Result.FAIL, 1, "a cycle violates it:\n" + system.describe(step.model(), [0, 1]))
    return Verdict(Result.PASS, 1)


def _conjuncts(condition: Boolean) -> Iterator[Boolean]:
    """Yield the operands of a conjunction, and of those that are conjunctions themselves."""
    for part in condition.conjuncts:
        if part.same(condition):
            yield part
        else:
            yield from _conjuncts(part)


def resets(system: Transition, *, retained: Sequence[str] = ()) -> Verdict:
    """Prove that one cycle of `rst` leads from every state to the state after power-up.

    Parameters
    ----------
    retained : sequence of str
        Registers that are not reset.
    """
    now, then = system.wires(0), system.wires(1)
    # The initial state is a conjunction of one equation for each register. Drop the retained registers.
    initial = {as_bits(equation.children[0]).number: equation for equation in system.initial(1).conjuncts}
    for name in retained:
        del initial[then[name].number]
    step = Solver(system.step(0), now["rst"] == 1, not_(all_of(*initial.values())))
    if step.possible():
        return Verdict(Result.FAIL, 1, "a register is not reset:\n" + system.describe(step.model(), [0, 1]))
    return Verdict(Result.PASS, 1)


def always(
    system: Transition, relation: Callable[..., Boolean], *, cycles: int = 2, assuming: Invariant = unconstrained
) -> Verdict:
    """Prove that `relation` holds between the wires of `cycles` successive cycles, from every state.

    Parameters
    ----------
    assuming : Invariant
        Assumption on the first cycle, usually an invariant that `inductive` proves.
    """
    wires = [system.wires(n) for n in range(cycles)]
    assumptions = [assuming(wires[0]), *(system.step(n) for n in range(cycles - 1))]
    if not Solver(*assumptions).possible():
        return Verdict(Result.FAIL, cycles - 1, "the assumptions contradict each other, so nothing is proved")
    question = Solver(*assumptions, not_(relation(*wires)))
    if question.possible():
        shown = system.describe(question.model(), range(cycles))
        return Verdict(Result.FAIL, cycles - 1, "a cycle violates it:\n" + shown)
    return Verdict(Result.PASS, cycles - 1)


def independent(system: Transition, outputs: Sequence[str], inputs: Sequence[str]) -> Verdict:
    """Prove that the outputs do not depend combinationally on the inputs."""
    # Two unrelated states of the system stand for the same cycle with different `inputs`.
    one, other = system.wires(0), system.wires(1)
    state, other_state = system.every_wire(0), system.every_wire(1)
    equal = (state[name] == other_state[name] for name in (*system.registers, *system.inputs) if name not in inputs)
    question = Solver(*equal, any_of(*(one[name] != other[name] for name in outputs)))
    if question.possible():
        shown = system.describe(question.model(), [0, 1])
        return Verdict(Result.FAIL, 0, "the outputs differ between these two:\n" + shown)
    return Verdict(Result.PASS, 0)
