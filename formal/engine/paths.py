"""Symbolic execution of Python functions: each path over symbolic integers, with its condition and its result.

At each branch the solver reports which outcomes are possible, and each of them is explored.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Generic, TypeVar

from .integer import Integer, equal, no_decision, signed_constant
from .terms import (
    BitVector,
    Boolean,
    Solver,
    all_of,
    extract,
    if_else,
    not_,
    sign_extend,
    simplify,
    substitute,
    variable,
    zero_extend,
)

__all__ = ["Path", "explore", "fold", "merge"]

Result = TypeVar("Result")


@dataclass(frozen=True)
class Path(Generic[Result]):
    """Path through a function: it is taken if and only if all of `decided` hold, and then returns `result`."""

    decided: tuple[Boolean, ...]
    result: Result

    @property
    def condition(self) -> Boolean:
        """Condition under which the path is taken."""
        return all_of(*self.decided)


@dataclass
class _Choice:
    taken: bool
    other_possible: bool


@dataclass(frozen=True)
class _Condition:
    """Condition of a branch, simplified, with its negation and, if it is constant, its value.

    `original` exists as long as this does: once it is freed, another term may get its number.
    """

    original: Boolean
    holds: Boolean
    fails: Boolean
    value: bool | None
    number: int

    @classmethod
    def of(cls, original: Boolean) -> "_Condition":
        holds = simplify(original)
        return cls(original, holds, not_(holds), holds.value, holds.number)


class _Walk:
    """One run of the function. It repeats the decisions in `repeated`, then takes the first possible outcome each time.

    `known` maps the number of each condition of this run and earlier ones to the condition. The solver has one scope
    for each decision. The scopes of repeated decisions remain, except for the last one.
    """

    def __init__(self, solver: Solver, repeated: Sequence[_Choice], known: dict[int, _Condition]):
        self._solver = solver
        self._repeated = list(repeated)
        self._kept = max(len(repeated) - 1, 0)
        self._known = known
        self.choices: list[_Choice] = []
        self.conditions: list[Boolean] = []
        self._decided: dict[int, bool] = {}
        solver.leave(self._kept)

    def decide(self, original: Boolean) -> bool:
        number = original.number
        condition = self._known.get(number)
        if condition is None:
            self._known[number] = condition = _Condition.of(original)
        if condition.value is not None:
            return condition.value
        if condition.number in self._decided:
            return self._decided[condition.number]
        if len(self.choices) < len(self._repeated):
            choice = self._repeated[len(self.choices)]
        else:
            taken = self._solver.possible(condition.holds)
            other_possible = taken and self._solver.possible(condition.fails)
            choice = _Choice(taken=taken, other_possible=other_possible)
        self.choices.append(choice)
        self._decided[condition.number] = choice.taken
        self.conditions.append(condition.holds if choice.taken else condition.fails)
        if len(self.choices) > self._kept:
            self._solver.enter(self.conditions[-1])
        return choice.taken


def explore(
    function: Callable[..., Result], *arguments: BitVector, solver: Solver | None = None
) -> Iterator[Path[Result]]:
    """Yield every path of `function` over all values of `arguments`, depth first.

    The conditions of the paths are mutually exclusive and together cover everything that the assertions of the solver
    allow. Each condition is possible: if the assertions contradict each other, there is no path.

    Parameters
    ----------
    function : callable
        A pure function: it depends on its arguments alone. It must return on each path.
    arguments : BitVector
        Unsigned arguments. Each is passed to the function as an `Integer`, the same object on each path.
    solver : Solver
        Solver with the assumptions.

    Raises
    ------
    Undecided
        If the solver gives up on a condition.
    """
    solver = Solver(*(solver.assertions if solver else ()))
    if not solver.possible():
        return
    repeated: list[_Choice] = []
    known: dict[int, _Condition] = {}
    walk = _Walk(solver, repeated, known)
    computed: dict[Any, Any] = {}
    integers = [
        Integer(zero_extend(1, argument), lambda condition: walk.decide(condition), computed) for argument in arguments
    ]
    while True:
        walk = _Walk(solver, repeated, known)
        result = function(*integers)
        yield Path(tuple(walk.conditions), result)
        repeated = walk.choices
        while repeated and not repeated[-1].other_possible:
            repeated.pop()
        if not repeated:
            return
        repeated[-1] = _Choice(taken=False, other_possible=False)


def fold(paths: Sequence[Path[Result]], values: Callable[[Result], Sequence[BitVector]]) -> Sequence[BitVector]:
    """Return `values` of the results as terms that select between the paths.

    Parameters
    ----------
    paths : sequence of Path
        All paths of `explore`, in its order.
    values : callable
        Return the terms of a result. Their number and widths are the same for each result.
    """
    # Equal terms are one object: most selections are between two equal terms and need no term of their own.
    terms: dict[object, BitVector] = {}

    def choice(condition: Boolean, one: BitVector, other: BitVector) -> BitVector:
        if one is other:
            return one
        key = condition.number, id(one), id(other)
        if key not in terms:
            terms[key] = if_else(condition, one, other)
        return terms[key]

    def between(first: int, end: int, depth: int) -> Sequence[BitVector]:
        if end - first == 1:
            return [terms.setdefault(term.number, term) for term in values(paths[first].result)]
        condition = paths[first].decided[depth]
        other = next((n for n in range(first, end) if not paths[n].decided[depth].same(condition)), end)
        taken = between(first, other, depth + 1)
        # The condition has one possible outcome under the decisions before it.
        if other == end:
            return taken
        return [choice(condition, *pair) for pair in zip(taken, between(other, end, depth + 1), strict=True)]

    return between(0, len(paths), 0)


def merge(
    function: Callable[..., Sequence[Integer | int]], arguments: Sequence[int], results: Sequence[int]
) -> Callable[..., tuple[Any, ...]]:
    """Return `function` without branches: a single path, whose results select between the original ones.

    A function that is called several times in sequence, once for each lane for example, has too many paths to explore.
    The merged function can be called any number of times and adds no branches.

    Parameters
    ----------
    function : callable
        A function that `explore` accepts. It is explored here, over all values of its arguments.
    arguments, results : sequence of int
        Width of each argument and of each result in bits, unsigned.

    Raises
    ------
    ValueError
        If a result may need more bits. The merged function raises it if an argument may.
    """
    symbols = [variable(f"argument {index}", width) for index, width in enumerate(arguments)]
    paths = list(explore(function, *symbols))
    solver = Solver()
    terms: list[BitVector] = []
    for index, width in enumerate(results):
        choices: list[tuple[Boolean, BitVector]] = []
        for path in paths:
            value = path.result[index]
            bits = value.bits if isinstance(value, Integer) else signed_constant(value)
            low = extract(width - 1, 0, sign_extend(max(width - bits.width, 0), bits))
            if solver.possible(path.condition, not_(equal(Integer(bits, no_decision), low))):
                raise ValueError(f"result {index} of {function.__name__} may need more than {width} bits")
            choices.append((path.condition, low))
        # Exactly one path is taken, so the last one needs no condition.
        terms.append(reduce(lambda term, choice: if_else(*choice, term), choices[:-1], choices[-1][1]))

    def apply(*values: Integer | int) -> tuple[Integer, ...]:
        decide = next(value.decide for value in values if isinstance(value, Integer))
        known = [(symbol, _unsigned(value, symbol.width)) for symbol, value in zip(symbols, values, strict=True)]
        return tuple(Integer(zero_extend(1, substitute(term, *known)), decide) for term in terms)

    return apply


def _unsigned(value: Integer | int, width: int) -> BitVector:
    """Return the value in `width` bits. Raise ValueError unless simplification alone shows that it fits."""
    bits = value.bits if isinstance(value, Integer) else signed_constant(value)
    bits = sign_extend(max(width + 1 - bits.width, 0), bits)
    above = simplify(extract(bits.width - 1, width, bits))
    if above.value != 0:
        raise ValueError(f"{value!r} may need more than {width} bits")
    return extract(width - 1, 0, bits)
