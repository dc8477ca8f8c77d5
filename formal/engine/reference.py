"""Equivalence of a component and a reference in plain Python, for every state and every input."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from .induction import Invariant, unconstrained
from .integer import Integer, Octets, equal
from .paths import Path, explore
from .proof import Result, Verdict
from .terms import BitVector, Boolean, Model, Solver, all_of, any_of, not_
from .transition import Transition

__all__ = ["Reference", "follows"]

Number = Integer | int | Octets

PATHS_OF_A_QUERY = 64
"""Number of paths that one query compares. Fewer paths need more queries; more paths delay a counterexample."""

Reference = Callable[..., Mapping[str, Number]]
"""Expected behavior of one cycle, in plain Python. The parameters name wires of this cycle; the result maps names of
wires, in the cycle in which they are valid, to their values."""


def follows(
    system: Transition,
    reference: Reference,
    *,
    arguments: Sequence[str] | None = None,
    assuming: Invariant = unconstrained,
    latency: int | Mapping[str, int] = 1,
    argument_latency: Mapping[str, int] | None = None,
    assuming_between: Invariant = unconstrained,
    stable_inputs: Sequence[str] = (),
    wire_names: Mapping[str, str] | None = None,
    split: Mapping[str, str] | None = None,
) -> Verdict:
    """Prove that each cycle of the RTL matches `reference`, from each state and for all inputs that satisfy `assuming`.

    Parameters
    ----------
    reference : Reference
        The reference. It is run once for each of its paths.
    arguments : sequence of str
        Wires that the reference receives as one mapping, by name. Replaces the parameters of the reference if not
        every configuration has the same wires.
    assuming : Invariant
        Assumption on the first cycle: an invariant that `inductive` proves, or the contract of the block's inputs.
    latency : int, or mapping of str to int
        Cycles until the results are valid, or until each of them is, by name; 0 for a combinational result.
    argument_latency : mapping of str to int
        Number of cycles from the first one to that in which an argument is sampled, by name. The default is 0.
    assuming_between : Invariant
        Assumption on each cycle after the first and before the last result.
    stable_inputs : sequence of str
        Inputs that keep their value until the last result.
    wire_names : mapping of str to str
        Names of the wires that have another name in the reference, such as those of submodules.
    split : mapping of str to str
        Argument of the reference by which the proof of a result is split: each of its values is a separate query.
    """
    cycles = _Cycles(system, latency, argument_latency or {}, wire_names or {})
    first, *others = cycles.wires
    assumptions = Solver(
        assuming(first),
        *(system.step(n) for n in range(max(cycles.depth, 1))),
        *(assuming_between(wires) for wires in others[:-1]),
        *(wires[name] == first[name] for name in stable_inputs for wires in others),
    )
    inputs = {name: cycles.argument(name) for name in arguments or inspect.signature(reference).parameters}

    def run(*values: Number) -> Mapping[str, Number]:
        return reference(*values) if arguments is None else reference(dict(zip(inputs, values, strict=True)))

    cases = {name: _each_value(inputs[argument]) for name, argument in (split or {}).items()}
    return _compare(cycles, explore(run, *inputs.values(), solver=assumptions), assumptions, cases)


class _Cycles:
    """The cycles from the first one, which the reference describes, to that of its last result.

    Attributes
    ----------
    depth : int
        Number of cycles after the first one.
    wires : list of Wires
        Wires of each cycle.
    """

    def __init__(
        self,
        system: Transition,
        latency: int | Mapping[str, int],
        argument_latency: Mapping[str, int],
        wire_names: Mapping[str, str],
    ):
        self.system = system
        self._latencies = latency if isinstance(latency, Mapping) else {}
        self.depth = max(latency.values()) if isinstance(latency, Mapping) else latency
        self.wires = [system.wires(n) for n in range(self.depth + 1)]
        self._argument_latency = argument_latency
        self._wire_names = wire_names

    def argument(self, name: str) -> BitVector:
        """Return the wire that is an argument of the reference."""
        return self.wires[self._argument_latency.get(name, 0)][self._wire_names.get(name, name)]

    def result(self, name: str) -> BitVector:
        """Return the wire that is a result of the reference."""
        return self.wires[self._latencies.get(name, self.depth)][self._wire_names.get(name, name)]


def _each_value(wire: BitVector) -> list[Boolean]:
    return [wire == value for value in range(1 << wire.width)]


def _compare(
    cycles: _Cycles,
    paths: Iterable[Path[Mapping[str, Number]]],
    assumptions: Solver,
    cases: Mapping[str, Sequence[Boolean]],
) -> Verdict:
    """Prove that the results of each path equal their wires, a split one in each of its cases."""
    depth = cycles.depth
    conditions: list[Boolean] = []

    def failure(paths: Sequence[_PathOfReference], *query: Boolean) -> Verdict | None:
        # Each query has a separate solver: a reused solver keeps the earlier queries and is 30 times slower.
        question = Solver(*assumptions.assertions, *query)
        if not question.possible():
            return None
        model = question.model()
        number, path = next((number, path) for number, path in paths if model.holds(path.condition))
        shown = _disagreement(cycles, model, path.result)
        return Verdict(Result.FAIL, depth, f"path {number} of the reference:\n" + shown)

    # One query for several paths: it contains the circuit once.
    for group in _groups(enumerate(paths, 1), PATHS_OF_A_QUERY):
        wrong: list[Boolean] = []
        for number, path in group:
            conditions.append(path.condition)
            different = {name: not_(equal(value, cycles.result(name))) for name, value in path.result.items()}
            others = any_of(*(condition for name, condition in different.items() if name not in cases))
            wrong.append(all_of(path.condition, others))
            for name in cases:
                for case in cases[name] if name in different else ():
                    if verdict := failure([(number, path)], path.condition, case, different[name]):
                        return verdict
        if verdict := failure(group, any_of(*wrong)):
            return verdict
    if not conditions:
        return Verdict(Result.FAIL, depth, "the assumptions contradict each other, so nothing is proved")
    if assumptions.possible(not_(any_of(*conditions))):
        return Verdict(Result.ERROR, depth, "the paths do not cover every input")
    return Verdict(Result.PASS, depth, method=f"reference, all {len(conditions)} paths")


_PathOfReference = tuple[int, Path[Mapping[str, Number]]]
"""A path, and its number."""


def _groups(paths: Iterable[_PathOfReference], size: int) -> Iterator[list[_PathOfReference]]:
    """Yield the paths in groups of this size. The last group may be smaller."""
    iterator = iter(paths)
    while group := list(islice(iterator, size)):
        yield group


def _disagreement(cycles: _Cycles, model: Model, expected: Mapping[str, Number]) -> str:
    def known(value: Number) -> int:
        if isinstance(value, Octets):
            return sum(known(byte) << 8 * index for index, byte in enumerate(value))
        if isinstance(value, Integer):
            return model.signed(value.bits)
        return value

    values = ", ".join(f"{name} = {known(value):#x}" for name, value in expected.items())
    actual = ", ".join(f"{name} = {model.value(cycles.result(name)):#x}" for name in expected)
    return f"{cycles.system.describe(model, [0])}\n  expected  {values}\n  got       {actual}"
