"""Plain Python run over unknown integers: every path that a function can take, with its condition and its result.

The functions are `spurtle_sim.model`'s own. They are written for `int` and know nothing of this: an `Integer`
computes as `int` does, and wherever Python asks whether one is true (`if`, `while`, `and`, `min` ...) the solver says
which answers are possible, and each of them is followed.
"""

import importlib.util
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from types import ModuleType
from typing import Any, Generic, Literal, TypeVar

import z3

__all__ = ["Integer", "Octets", "Path", "Undecided", "equal", "explore", "folded", "merged", "possible", "rebuilt"]

Result = TypeVar("Result")


class Undecided(Exception):
    """The solver gave up within its time."""


def possible(solver: z3.Solver, *conditions: z3.BoolRef) -> bool:
    """Some value meets the conditions and all that the solver assumes. Raises Undecided if it cannot say."""
    answer = solver.check(*conditions)
    if answer == z3.unknown:
        raise Undecided(solver.reason_unknown())
    return answer == z3.sat


def _constant(value: int) -> z3.BitVecRef:
    return z3.BitVecVal(value, value.bit_length() + 1)


def _align(a: z3.BitVecRef, b: z3.BitVecRef, extra: int = 0) -> tuple[z3.BitVecRef, z3.BitVecRef]:
    """Both at one width, `extra` bits above the wider."""
    sizes = a.size(), b.size()
    above = [max(sizes) + extra - size for size in sizes]
    # Most are as wide as they have to be, and z3 takes its time for nothing as well.
    return z3.SignExt(above[0], a) if above[0] else a, z3.SignExt(above[1], b) if above[1] else b


class Integer:
    """An integer that may be any of several. Exact, as Python's: two's complement that widens before it could wrap.

    What would need its one value (`int()`, `range()`, an index, how far to shift left, a dictionary's key) raises
    TypeError.

    Parameters
    ----------
    bits : z3.BitVecRef
        Its two's complement.
    decide : callable
        Says which way the path of the moment goes at a condition.
    """

    __slots__ = ("_decide", "bits")

    def __init__(self, bits: z3.BitVecRef, decide: Callable[[z3.BoolRef], bool]):
        self.bits = bits
        self._decide = decide

    def __bool__(self) -> bool:
        return self._decide(self.bits != 0)

    # `int` is hashable and Integer is not: two of them may or may not be equal.
    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __index__(self) -> int:
        raise TypeError("the value of a symbolic integer is not known")

    def __format__(self, spec: str) -> str:
        raise TypeError("the value of a symbolic integer is not known")

    def __repr__(self) -> str:
        return f"Integer({z3.simplify(self.bits)})"

    def _make(self, bits: z3.BitVecRef) -> "Integer":
        return Integer(bits, self._decide)

    def _binary(
        self, other: object, apply: Callable[[z3.BitVecRef, z3.BitVecRef], z3.BitVecRef], extra: int, swap: bool = False
    ) -> "Integer":
        if not isinstance(other, Integer | int):
            return NotImplemented
        operands = (self.bits, other.bits if isinstance(other, Integer) else _constant(other))
        return self._make(apply(*_align(*(reversed(operands) if swap else operands), extra=extra)))

    def __add__(self, other: object) -> "Integer":
        return self._binary(other, lambda a, b: a + b, 1)

    def __sub__(self, other: object) -> "Integer":
        return self._binary(other, lambda a, b: a - b, 1)

    def __rsub__(self, other: object) -> "Integer":
        return self._binary(other, lambda a, b: a - b, 1, swap=True)

    def __neg__(self) -> "Integer":
        return 0 - self

    def __mul__(self, other: object) -> "Integer":
        if not isinstance(other, Integer | int):
            return NotImplemented
        factor = other.bits if isinstance(other, Integer) else _constant(other)
        width = self.bits.size() + factor.size()
        return self._make(z3.SignExt(factor.size(), self.bits) * z3.SignExt(width - factor.size(), factor))

    def __and__(self, other: object) -> "Integer":
        result = self._binary(other, lambda a, b: a & b, 0)
        if isinstance(other, int) and other >= 0:
            # A mask bounds what it lets through: without this, masking would never make a value narrower again.
            return self._make(z3.Extract(other.bit_length(), 0, result.bits))
        return result

    def __or__(self, other: object) -> "Integer":
        return self._binary(other, lambda a, b: a | b, 0)

    def __xor__(self, other: object) -> "Integer":
        return self._binary(other, lambda a, b: a ^ b, 0)

    def __invert__(self) -> "Integer":
        return self._make(~self.bits)

    __radd__, __rmul__, __rand__, __ror__, __rxor__ = __add__, __mul__, __and__, __or__, __xor__

    def __lshift__(self, distance: int) -> "Integer":
        distance = operator.index(distance)
        return self._make(z3.Concat(self.bits, z3.BitVecVal(0, distance))) if distance else self

    def __rshift__(self, distance: "Integer | int") -> "Integer":
        if isinstance(distance, Integer):
            if distance < 0:
                raise ValueError("negative shift count")
            return self._binary(distance, lambda a, b: a >> b, 0)
        top = self.bits.size() - 1
        return self._make(z3.Extract(top, min(operator.index(distance), top), self.bits))

    def to_bytes(self, length: int = 1, byteorder: Literal["little"] = "little") -> "Octets":
        """As `int.to_bytes`, but the bytes are integers that are not known either."""
        if byteorder != "little":
            raise ValueError(f"byteorder must be 'little', not {byteorder!r}")
        if self < 0 or self >= 1 << 8 * length:
            raise OverflowError(f"{self!r} does not fit into {length} bytes")
        return Octets((self >> 8 * index) & 0xFF for index in range(length))

    def _compare(self, other: object, holds: Callable[[z3.BitVecRef, z3.BitVecRef], z3.BoolRef]) -> "Integer":
        # 0 or 1, as a `bool` is in Python.
        return self._binary(other, lambda a, b: z3.If(holds(a, b), z3.BitVecVal(1, 2), z3.BitVecVal(0, 2)), 0)

    def __eq__(self, other: object) -> "Integer":  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._compare(other, lambda a, b: a == b)

    def __ne__(self, other: object) -> "Integer":  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._compare(other, lambda a, b: a != b)

    def __lt__(self, other: object) -> "Integer":
        return self._compare(other, lambda a, b: a < b)

    def __le__(self, other: object) -> "Integer":
        return self._compare(other, lambda a, b: a <= b)

    def __gt__(self, other: object) -> "Integer":
        return self._compare(other, lambda a, b: a > b)

    def __ge__(self, other: object) -> "Integer":
        return self._compare(other, lambda a, b: a >= b)


class Octets(list["Integer | int"]):
    """What stands for `bytes` and `bytearray` where bytes may be `Integer`s: made from a length or from numbers."""

    def __init__(self, source: Iterable[Integer | int] | int = ()):
        super().__init__([0] * source if isinstance(source, int) else source)

    def __add__(self, other: Iterable[Integer | int]) -> "Octets":  # pyright: ignore[reportIncompatibleMethodOverride]
        return Octets([*self, *other])


def rebuilt(module: ModuleType) -> Any:
    """A second instance of `module`, of the same source, in which `bytes` and `bytearray` are `Octets`."""
    assert module.__spec__ is not None and module.__spec__.loader is not None
    twin = importlib.util.module_from_spec(module.__spec__)
    vars(twin).update(bytes=Octets, bytearray=Octets)
    module.__spec__.loader.exec_module(twin)
    return twin


def equal(value: Integer | int | Octets, wire: z3.BitVecRef) -> z3.BoolRef:
    """The value is the unsigned number on the wire: a negative or too large one never is. Byte 0 is in bits [7:0]."""
    if isinstance(value, Octets):
        assert wire.size() == 8 * len(value)
        return z3.And(*(equal(byte, z3.Extract(8 * i + 7, 8 * i, wire)) for i, byte in enumerate(value)))
    a, b = _align(value.bits if isinstance(value, Integer) else _constant(value), z3.ZeroExt(1, wire))
    return a == b


@dataclass(frozen=True)
class Path(Generic[Result]):
    """One way through the function: it is taken exactly if all of `decided` hold, in which case it has `result`."""

    decided: tuple[z3.BoolRef, ...]
    result: Result

    @property
    def condition(self) -> z3.BoolRef:
        """That it is taken."""
        return z3.And(*self.decided) if self.decided else z3.BoolVal(True)


@dataclass
class _Choice:
    taken: bool
    other_possible: bool


class _Walk:
    """One run of the function: first it repeats decisions, then it takes the first possible one each time.

    `simplified` is what earlier runs found of the conditions that they met, by their z3 numbers.
    """

    def __init__(
        self, solver: z3.Solver, repeated: Sequence[_Choice], simplified: dict[int, tuple[z3.BoolRef, z3.BoolRef]]
    ):
        self._solver = solver
        self._repeated = list(repeated)
        self._simplified = simplified
        self.choices: list[_Choice] = []
        self.conditions: list[z3.BoolRef] = []
        self._decided: dict[z3.BoolRef, bool] = {}

    def decide(self, condition: z3.BoolRef) -> bool:
        # The condition is kept beside what it became: z3 gives its number away when it is gone.
        number = condition.get_id()
        if number not in self._simplified:
            self._simplified[number] = condition, z3.simplify(condition)
        condition = self._simplified[number][1]
        if z3.is_true(condition) or z3.is_false(condition):
            return z3.is_true(condition)
        if condition in self._decided:
            return self._decided[condition]
        if len(self.choices) < len(self._repeated):
            choice = self._repeated[len(self.choices)]
        else:
            taken = possible(self._solver, condition)
            choice = _Choice(taken=taken, other_possible=taken and possible(self._solver, z3.Not(condition)))
        self.choices.append(choice)
        self._decided[condition] = choice.taken
        self.conditions.append(condition if choice.taken else z3.Not(condition))
        self._solver.add(self.conditions[-1])
        return choice.taken


def explore(
    function: Callable[..., Result], *arguments: z3.BitVecRef, solver: z3.Solver | None = None
) -> Iterator[Path[Result]]:
    """Every path of `function` over every value of `arguments`, depth first.

    The conditions exclude each other, together they cover all that the solver's assertions allow, and each of them is
    possible: where the assertions contradict each other there is no path.

    Parameters
    ----------
    function : callable
        Pure: what it does depends on its arguments alone. It must return on each path.
    arguments : z3.BitVecRef
        Unsigned; each is handed to the function as an `Integer`, on each path the same one.
    solver : z3.Solver
        What may be assumed. It is as before when the walk is over.

    Raises
    ------
    Undecided
        If the solver gives up at a condition.
    """
    solver = solver or z3.Solver()
    if not possible(solver):
        return
    repeated: list[_Choice] = []
    simplified: dict[int, tuple[z3.BoolRef, z3.BoolRef]] = {}
    walk = _Walk(solver, repeated, simplified)
    integers = [Integer(z3.ZeroExt(1, argument), lambda condition: walk.decide(condition)) for argument in arguments]
    while True:
        walk = _Walk(solver, repeated, simplified)
        solver.push()
        try:
            result = function(*integers)
        finally:
            solver.pop()
        yield Path(tuple(walk.conditions), result)
        repeated = walk.choices
        while repeated and not repeated[-1].other_possible:
            repeated.pop()
        if not repeated:
            return
        repeated[-1] = _Choice(taken=False, other_possible=False)


def folded(paths: Sequence[Path[Result]], values: Callable[[Result], Sequence[z3.BitVecRef]]) -> Sequence[z3.BitVecRef]:
    """What `values` says of the result, as terms that choose between the paths.

    Parameters
    ----------
    paths : sequence of Path
        All of `explore`, in its order.
    values : callable
        So many terms of each result, of the same widths.
    """
    # Equal terms are one object: most of the choices are between two of them, and none.
    terms: dict[object, z3.BitVecRef] = {}

    def choice(condition: z3.BoolRef, one: z3.BitVecRef, other: z3.BitVecRef) -> z3.BitVecRef:
        if one is other:
            return one
        key = condition.get_id(), id(one), id(other)
        if key not in terms:
            terms[key] = z3.If(condition, one, other)
        return terms[key]

    def between(first: int, end: int, depth: int) -> Sequence[z3.BitVecRef]:
        if end - first == 1:
            return [terms.setdefault(term.get_id(), term) for term in values(paths[first].result)]
        condition = paths[first].decided[depth]
        other = next((n for n in range(first, end) if not paths[n].decided[depth].eq(condition)), end)
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
    holes = [z3.BitVec(f"argument {index}", width) for index, width in enumerate(arguments)]
    paths = list(explore(function, *holes))
    solver = z3.Solver()
    terms: list[z3.BitVecRef] = []
    for index, width in enumerate(results):
        choices: list[tuple[z3.BoolRef, z3.BitVecRef]] = []
        for path in paths:
            value = path.result[index]
            bits = value.bits if isinstance(value, Integer) else _constant(value)
            low = z3.Extract(width - 1, 0, z3.SignExt(max(width - bits.size(), 0), bits))
            if possible(solver, path.condition, z3.Not(equal(Integer(bits, _closed), low))):
                raise ValueError(f"result {index} of {function.__name__} may need more than {width} bits")
            choices.append((path.condition, low))
        # Of the paths exactly one is taken: nothing is asked about the last.
        terms.append(reduce(lambda term, choice: z3.If(*choice, term), choices[:-1], choices[-1][1]))

    def apply(*values: Integer | int) -> tuple[Integer, ...]:
        decide = next(value._decide for value in values if isinstance(value, Integer))
        known = [(hole, _unsigned(value, hole.size())) for hole, value in zip(holes, values, strict=True)]
        return tuple(Integer(z3.ZeroExt(1, z3.substitute(term, *known)), decide) for term in terms)

    return apply


def _closed(condition: z3.BoolRef) -> bool:
    raise AssertionError("nothing is asked about it")


def _unsigned(value: Integer | int, width: int) -> z3.BitVecRef:
    """The value in so many bits. Raises ValueError unless it is plain that it fits."""
    bits = value.bits if isinstance(value, Integer) else _constant(value)
    bits = z3.SignExt(max(width + 1 - bits.size(), 0), bits)
    above = z3.simplify(z3.Extract(bits.size() - 1, width, bits))
    if not (isinstance(above, z3.BitVecNumRef) and above.as_long() == 0):
        raise ValueError(f"{value!r} may need more than {width} bits")
    return z3.Extract(width - 1, 0, bits)
