"""Steps of a component compared with a reference in plain Python, for every state and every input."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence

from .induction import Invariant, anything
from .integer import Integer, Octets, equal
from .paths import Path, explore
from .proof import Result, Verdict
from .terms import BitVector, Boolean, Model, Solver, any_of, boolean, not_
from .transition import Transition

__all__ = ["Reference", "follows"]

Number = Integer | int | Octets

Reference = Callable[..., Mapping[str, Number]]
"""What one cycle is to do, in plain Python: its parameters name wires of this cycle, its result names wires of the
cycle that answers and says their values."""


def follows(
    system: Transition,
    reference: Reference,
    *,
    arguments: Sequence[str] | None = None,
    assuming: Invariant = anything,
    latency: int | Mapping[str, int] = 1,
    taken: Mapping[str, int] | None = None,
    meanwhile: Invariant = anything,
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
    cycles = _Cycles(system, latency, taken or {}, inside or {})
    first, *others = cycles.wires
    assumptions = Solver(
        assuming(first),
        *(system.step(n) for n in range(max(cycles.depth, 1))),
        *(meanwhile(wires) for wires in others[:-1]),
        *(wires[name] == first[name] for name in held for wires in others),
    )
    given = {name: cycles.argument(name) for name in arguments or inspect.signature(reference).parameters}

    def run(*values: Number) -> Mapping[str, Number]:
        return reference(*values) if arguments is None else reference(dict(zip(given, values, strict=True)))

    cases = {name: _each_value(given[argument]) for name, argument in (split or {}).items()}
    return _compared(cycles, explore(run, *given.values(), solver=assumptions), assumptions, cases)


class _Cycles:
    """The cycles from the one that a reference describes to its last answer.

    Attributes
    ----------
    depth : int
        How many cycles after the first one the last is.
    wires : list of Wires
    """

    def __init__(
        self,
        system: Transition,
        latency: int | Mapping[str, int],
        taken: Mapping[str, int],
        inside: Mapping[str, str],
    ):
        self.system = system
        self._latencies = latency if isinstance(latency, Mapping) else {}
        self.depth = max(latency.values()) if isinstance(latency, Mapping) else latency
        self.wires = [system.wires(n) for n in range(self.depth + 1)]
        self._taken = taken
        self._inside = inside

    def argument(self, name: str) -> BitVector:
        """Return the wire that is an argument of the reference."""
        return self.wires[self._taken.get(name, 0)][self._inside.get(name, name)]

    def answer(self, name: str) -> BitVector:
        """Return the wire that is a result of the reference."""
        return self.wires[self._latencies.get(name, self.depth)][self._inside.get(name, name)]


def _each_value(wire: BitVector) -> list[Boolean]:
    return [wire == value for value in range(1 << wire.width)]


def _compared(
    cycles: _Cycles,
    paths: Iterable[Path[Mapping[str, Number]]],
    assumptions: Solver,
    cases: Mapping[str, Sequence[Boolean]],
) -> Verdict:
    """Ask about each result of each path whether it may differ from the answer, in each case if there are several."""
    depth = cycles.depth
    conditions: list[Boolean] = []
    for path in paths:
        conditions.append(path.condition)
        # A solver for each question: one that has seen the others carries them along, and is thirty times slower.
        for name, value in path.result.items():
            different = not_(equal(value, cycles.answer(name)))
            for case in cases.get(name, [boolean(True)]):
                question = Solver(*assumptions.assertions, path.condition, case, different)
                if question.possible():
                    shown = _disagreement(cycles, question.model(), path.result)
                    return Verdict(Result.FAIL, depth, f"path {len(conditions)} of the reference:\n" + shown)
    if not conditions:
        return Verdict(Result.FAIL, depth, "the assumptions contradict each other, so that nothing is proved")
    if assumptions.possible(not_(any_of(*conditions))):
        return Verdict(Result.ERROR, depth, "the paths do not cover every input")
    return Verdict(Result.PASS, depth, method=f"reference, all {len(conditions)} paths")


def _disagreement(cycles: _Cycles, model: Model, expected: Mapping[str, Number]) -> str:
    def known(value: Number) -> int:
        if isinstance(value, Octets):
            return sum(known(byte) << 8 * index for index, byte in enumerate(value))
        if isinstance(value, Integer):
            return model.signed(value.bits)
        return value

    wanted = ", ".join(f"{name} = {known(value):#x}" for name, value in expected.items())
    got = ", ".join(f"{name} = {model.value(cycles.answer(name)):#x}" for name in expected)
    return f"{cycles.system.describe(model, cycles.wires[:1])}\n  expected  {wanted}\n  got       {got}"
