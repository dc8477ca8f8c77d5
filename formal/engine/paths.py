"""Every path that a function of plain Python can take over unknown integers, with its condition and its result.

At each fork the solver says which answers are possible, and each of them is followed.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Generic, TypeVar

from .integer import Integer, equal, signed_constant, unasked
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

__all__ = ["Path", "explore", "folded", "merged"]

Result = TypeVar("Result")


@dataclass(frozen=True)
class Path(Generic[Result]):
    """One way through the function: it is taken exactly if all of `decided` hold, in which case it has `result`."""

    decided: tuple[Boolean, ...]
    result: Result

    @property
    def condition(self) -> Boolean:
        """That it is taken."""
        return all_of(*self.decided)


@dataclass
class _Choice:
    taken: bool
    other_possible: bool


class _Walk:
    """One run of the function: first it repeats decisions, then it takes the first possible one each time.

    `simplified` is what earlier runs found of the conditions that they met, by their numbers.
    """

    def __init__(self, solver: Solver, repeated: Sequence[_Choice], simplified: dict[int, tuple[Boolean, Boolean]]):
        self._solver = solver
        self._repeated = list(repeated)
        self._simplified = simplified
        self.choices: list[_Choice] = []
        self.conditions: list[Boolean] = []
        self._decided: dict[int, bool] = {}

    def decide(self, condition: Boolean) -> bool:
        # The condition is kept beside what it became: another term may get its number when it is gone.
        number = condition.number
        if number not in self._simplified:
            self._simplified[number] = condition, simplify(condition)
        condition = self._simplified[number][1]
        if condition.value is not None:
            return condition.value
        if condition.number in self._decided:
            return self._decided[condition.number]
        if len(self.choices) < len(self._repeated):
            choice = self._repeated[len(self.choices)]
        else:
            taken = self._solver.possible(condition)
            choice = _Choice(taken=taken, other_possible=taken and self._solver.possible(not_(condition)))
        self.choices.append(choice)
        self._decided[condition.number] = choice.taken
        self.conditions.append(condition if choice.taken else not_(condition))
        self._solver.add(self.conditions[-1])
        return choice.taken


def explore(
    function: Callable[..., Result], *arguments: BitVector, solver: Solver | None = None
) -> Iterator[Path[Result]]:
    """Every path of `function` over every value of `arguments`, depth first.

    The conditions exclude each other, together they cover all that the solver's assertions allow, and each of them is
    possible: where the assertions contradict each other there is no path.

    Parameters
    ----------
    function : callable
        Pure: what it does depends on its arguments alone. It must return on each path.
    arguments : BitVector
        Unsigned; each is handed to the function as an `Integer`, on each path the same one.
    solver : Solver
        What may be assumed. It is as before when the walk is over.

    Raises
    ------
    Undecided
        If the solver gives up at a condition.
    """
    solver = solver or Solver()
    if not solver.possible():
        return
    repeated: list[_Choice] = []
    simplified: dict[int, tuple[Boolean, Boolean]] = {}
    walk = _Walk(solver, repeated, simplified)
    integers = [Integer(zero_extend(1, argument), lambda condition: walk.decide(condition)) for argument in arguments]
    while True:
        walk = _Walk(solver, repeated, simplified)
        with solver.restored():
            result = function(*integers)
        yield Path(tuple(walk.conditions), result)
        repeated = walk.choices
        while repeated and not repeated[-1].other_possible:
            repeated.pop()
        if not repeated:
            return
        repeated[-1] = _Choice(taken=False, other_possible=False)


def folded(paths: Sequence[Path[Result]], values: Callable[[Result], Sequence[BitVector]]) -> Sequence[BitVector]:
    """What `values` says of the result, as terms that choose between the paths.

    Parameters
    ----------
    paths : sequence of Path
        All of `explore`, in its order.
    values : callable
        So many terms of each result, of the same widths.
    """
    # Equal terms are one object: most of the choices are between two of them, and none.
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
        if other == end:
            return taken
        return [choice(condition, *pair) for pair in zip(taken, between(other, end, depth + 1), strict=True)]

    return between(0, len(paths), 0)


def merged(
    function: Callable[..., Sequence[Integer | int]], arguments: Sequence[int], results: Sequence[int]
) -> Callable[..., tuple[Any, ...]]:
    """`function` without its forks: all of its paths in one, each result a choice between what the paths say.

    Functions that call each other a few times have too many paths to follow each of them. The merged one can be called
    any number of times, once for each of several lanes for instance, and forks none.

    Parameters
    ----------
    function : callable
        As `explore` wants it. It is run here, over every value of its arguments.
    arguments, results : sequence of int
        How many bits each has, unsigned.

    Raises
    ------
    ValueError
        If a result may need more bits; when it is called, if an argument may.
    """
    holes = [variable(f"argument {index}", width) for index, width in enumerate(arguments)]
    paths = list(explore(function, *holes))
    solver = Solver()
    terms: list[BitVector] = []
    for index, width in enumerate(results):
        choices: list[tuple[Boolean, BitVector]] = []
        for path in paths:
            value = path.result[index]
            bits = value.bits if isinstance(value, Integer) else signed_constant(value)
            low = extract(width - 1, 0, sign_extend(max(width - bits.width, 0), bits))
            if solver.possible(path.condition, not_(equal(Integer(bits, unasked), low))):
                raise ValueError(f"result {index} of {function.__name__} may need more than {width} bits")
            choices.append((path.condition, low))
        # Of the paths exactly one is taken: nothing is asked about the last.
        terms.append(reduce(lambda term, choice: if_else(*choice, term), choices[:-1], choices[-1][1]))

    def apply(*values: Integer | int) -> tuple[Integer, ...]:
        decide = next(value.decide for value in values if isinstance(value, Integer))
        known = [(hole, _unsigned(value, hole.width)) for hole, value in zip(holes, values, strict=True)]
        return tuple(Integer(zero_extend(1, substitute(term, *known)), decide) for term in terms)

    return apply


def _unsigned(value: Integer | int, width: int) -> BitVector:
    """The value in so many bits. Raises ValueError unless it is plain that it fits."""
    bits = value.bits if isinstance(value, Integer) else signed_constant(value)
    bits = sign_extend(max(width + 1 - bits.width, 0), bits)
    above = simplify(extract(bits.width - 1, width, bits))
    if above.value != 0:
        raise ValueError(f"{value!r} may need more than {width} bits")
    return extract(width - 1, 0, bits)
