"""Properties of one cycle, proved for every state and every input, and therefore for all time."""

from collections.abc import Callable, Sequence

from .proof import Result, Verdict
from .terms import Boolean, Solver, all_of, any_of, as_bits, boolean, not_
from .transition import Transition, Wires

__all__ = ["Contract", "Invariant", "always", "anything", "independent", "inductive", "resets"]

Invariant = Callable[[Wires], Boolean]
"""A relation between the registers, over the wires of one cycle by name."""

Contract = Callable[[Wires, Wires], Boolean]
"""A relation between the wires of a cycle and those of the next."""


def anything(wires: Wires) -> Boolean:
    """Any cycle: nothing is assumed of it."""
    return boolean(True)


def _any(now: Wires, then: Wires) -> Boolean:
    return boolean(True)


def inductive(system: Transition, invariant: Invariant, *, contract: Contract = _any) -> Verdict:
    """`invariant` holds after power-up, and each cycle keeps it, whatever the inputs (`rst` is one of them).

    Parameters
    ----------
    contract : Contract
        What may be assumed of the inputs of a cycle and the next, because those who drive them promise it.
    """
    now, then = system.wires(0), system.wires(1)
    base = Solver(system.initial(), not_(invariant(now)))
    if base.possible():
        shown = system.describe(base.model(), [now])
        return Verdict(Result.FAIL, 0, "it does not hold after power-up:\n" + shown)
    step = Solver(invariant(now), system.step(0), contract(now, then), not_(invariant(then)))
    if step.possible():
        return Verdict(Result.FAIL, 1, "a cycle breaks it:\n" + system.describe(step.model(), [now, then]))
    return Verdict(Result.PASS, 1)


def resets(system: Transition, *, kept: Sequence[str] = ()) -> Verdict:
    """One cycle of `rst` leads from every state to the one after power-up, but for the registers that are `kept`."""
    now, then = system.wires(0), system.wires(1)
    # Of a conjunction of one equation for each register, leave out some.
    initial = {as_bits(equation.children[0]).number: equation for equation in system.initial(1).conjuncts}
    for name in kept:
        del initial[then[name].number]
    step = Solver(system.step(0), now["rst"] == 1, not_(all_of(*initial.values())))
    if step.possible():
        return Verdict(Result.FAIL, 1, "a register survives a reset:\n" + system.describe(step.model(), [now, then]))
    return Verdict(Result.PASS, 1)


def always(
    system: Transition, relation: Callable[..., Boolean], *, cycles: int = 2, assuming: Invariant = anything
) -> Verdict:
    """`relation` is between the wires of so many successive cycles, whatever the state.

    Parameters
    ----------
    assuming : Invariant
        Of the first cycle: what `inductive` proves.
    """
    wires = [system.wires(n) for n in range(cycles)]
    assumptions = [assuming(wires[0]), *(system.step(n) for n in range(cycles - 1))]
    if not Solver(*assumptions).possible():
        return Verdict(Result.FAIL, cycles - 1, "the assumptions contradict each other, so that nothing is proved")
    question = Solver(*assumptions, not_(relation(*wires)))
    if question.possible():
        return Verdict(Result.FAIL, cycles - 1, "a cycle breaks it:\n" + system.describe(question.model(), wires))
    return Verdict(Result.PASS, cycles - 1)


def independent(system: Transition, outputs: Sequence[str], of: Sequence[str]) -> Verdict:
    """The outputs are in each cycle what they are, whatever the inputs `of` are in it."""
    one, other = system.wires(0), system.wires(1)
    alike = (one[name] == other[name] for name in (*system.registers, *system.inputs) if name not in of)
    question = Solver(*alike, any_of(*(one[name] != other[name] for name in outputs)))
    if question.possible():
        shown = system.describe(question.model(), [one, other])
        return Verdict(Result.FAIL, 0, "they differ between the one and the other:\n" + shown)
    return Verdict(Result.PASS, 0)
