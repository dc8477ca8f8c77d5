"""Two copies of a component side by side: what they show is the same for ever, whatever the secrets of each are.

An induction over one cycle. Two states are alike if every register is the same in both but for the secrets, and each
of those is where it is shown. From any two states that are alike, with inputs that are alike, what is seen is the same,
and the next states are alike again.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from .induction import Invariant
from .parts import Part
from .proof import Result, Verdict
from .terms import (
    BitVector,
    Boolean,
    Model,
    Solver,
    all_of,
    any_of,
    boolean,
    concat,
    extract,
    if_else,
    implies,
    not_,
    simplify,
    substitute,
    variable,
)
from .transition import Transition, Wires

__all__ = ["Both", "Observed", "Secret", "coexist", "noninterference"]

Observed = Callable[[Wires], Mapping[str, BitVector]]
"""What is seen of a cycle, over its wires."""

Both = Callable[[Wires, Wires], Boolean]
"""A relation between a cycle of the one copy and the same cycle of the other."""


@dataclass(frozen=True)
class Secret:
    """An input or a register, or a part of one, that may differ from copy to copy.

    Members
    -------
    part : Part
    shown : Invariant
        Where this holds in either copy, it is the same in both.
    """

    part: Part
    shown: Invariant


class _Elsewhere(Mapping[str, BitVector]):
    """The same wires, of another state. Each is worked out when it is asked for."""

    def __init__(self, wires: Wires, state: BitVector, other: BitVector):
        self._wires, self._state, self._other = wires, state, other
        self._known: dict[str, BitVector] = {}

    def __getitem__(self, name: str) -> BitVector:
        if name not in self._known:
            self._known[name] = _put(self._wires[name], self._state, self._other)
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._wires)

    def __len__(self) -> int:
        return len(self._wires)


def _put(term: BitVector, state: BitVector, other: BitVector) -> BitVector:
    return simplify(substitute(term, (state, other)))


def _bits(term: BitVector, low: int, end: int) -> BitVector:
    return extract(end - 1, low, term)


def _joined(pieces: Iterable[BitVector]) -> BitVector:
    """The lowest first."""
    *rest, lowest = reversed([*pieces])
    return simplify(concat(*rest, lowest))


def _operands(term: Boolean | BitVector) -> list[BitVector]:
    return [operand for operand in term.children if isinstance(operand, BitVector)]


def _registers(system: Transition) -> Iterator[tuple[int, int, BitVector]]:
    """Yield the highest and lowest bit of each register in the state, and its value in the next state."""
    for equation in system.step(0).conjuncts:
        term, register = _operands(equation)
        assert register.extracted is not None
        yield *register.extracted, term


def _origin(term: BitVector) -> list[int | None]:
    """Which bits of the state a wire's are, the lowest first. None for one that is worked out, or constant."""
    if term.extracted is not None and _operands(term)[0].is_variable:
        high, low = term.extracted
        return [*range(low, high + 1)]
    if term.is_concatenation:
        return [bit for piece in reversed(_operands(term)) for bit in _origin(piece)]
    return [None] * term.width


class _Copies:
    """Two copies of a component in a cycle. What is the same in both is one term in both.

    Attributes
    ----------
    one, other : Wires
    alike : list of Boolean
        What is assumed of them.
    one_then, other_then : Wires
        In the next cycle, where the inputs are any.
    """

    def __init__(self, system: Transition, secrets: Iterable[Secret], invariant: Invariant):
        self._system = system
        self.one = system.wires(0)
        # Where in the state each register is, and what it becomes.
        self._steps = {low: (high + 1, term) for high, low, term in _registers(system)}
        self._state = system.state(0)
        self._size = self._state.width

        # Of a register that the circuit does not have, or works out from others, nothing is said.
        shown: list[tuple[Invariant, ...]] = [()] * self._size
        for secret in secrets:
            part = secret.part
            if part.wire in self.one or "." not in part.wire:
                for bit in _origin(simplify(self.one[part.wire]))[part.lsb : part.lsb + part.width]:
                    if bit is not None:
                        shown[bit] += (secret.shown,)
        borders = {0, self._size, *(bit for bit in range(1, self._size) if shown[bit] != shown[bit - 1])}
        self._runs = [(low, end, shown[low]) for low, end in pairwise(sorted(borders))]
        hidden = variable("hidden", self._size)
        self._other = _joined(
            if_else(_any(conditions, self.one), _bits(self._state, low, end), _bits(hidden, low, end))
            if conditions
            else _bits(self._state, low, end)
            for low, end, conditions in self._runs
        )
        self.other = _Elsewhere(self.one, self._state, self._other)
        self.alike = [invariant(self.one), invariant(self.other)]
        for low, end, conditions in self._runs:
            if conditions:
                same = _bits(self._state, low, end) == _bits(self._other, low, end)
                self.alike.append(simplify(implies(_any(conditions, self.other), same)))
        self._next = self._follow("one", self._state), self._follow("other", self._other)
        self.one_then, self.other_then = (_Elsewhere(self.one, self._state, state) for state in self._next)

    def next_differences(self) -> Iterator[tuple[str, Boolean]]:
        """How the next states can fail to be alike: in which register, and what the difference is."""
        for low, end, conditions in self._runs:
            for first, (behind, _) in sorted(self._steps.items()):
                piece = max(low, first), min(end, behind)
                if piece[0] < piece[1]:
                    a, b = (simplify(_bits(after, *piece)) for after in self._next)
                    if not a.same(b):
                        asked = (_any(conditions, wires) for wires in (self.one_then, self.other_then))
                        known = any_of(*asked) if conditions else boolean(True)
                        yield self._name(piece[0]), all_of(known, a != b)

    def describe(self, model: Model, first: Wires, second: Wires) -> str:
        """The registers and inputs that are not the same in the two, and what they are."""
        lines = []
        for name in (*self._system.registers, *self._system.inputs):
            values = [model.value(wires[name]) for wires in (first, second)]
            if values[0] != values[1]:
                lines.append(f"  {name}: {', '.join(map(hex, values))}")
        return "\n".join(lines)

    def _name(self, bit: int) -> str:
        """The register that a bit of the state is of."""
        return next(name for name in self._system.registers if bit in _origin(simplify(self.one[name])))

    def _follow(self, name: str, state: BitVector) -> BitVector:
        """What follows `state`. Inputs are free in it."""
        pieces, low = [], 0
        for first, (end, term) in sorted(self._steps.items()):
            if first > low:
                pieces.append(variable(f"{name}'s inputs {low}", first - low))
            pieces.append(_put(term, self._state, state))
            low = end
        if low < self._size:
            pieces.append(variable(f"{name}'s inputs {low}", self._size - low))
        return _joined(pieces)


def _any(conditions: Iterable[Invariant], wires: Wires) -> Boolean:
    return simplify(any_of(*(condition(wires) for condition in conditions)))


def noninterference(
    system: Transition, secrets: Iterable[Secret], observed: Observed, *, invariant: Invariant
) -> Verdict:
    """What is `observed` is the same of two copies for ever, from power-up or any states that are alike.

    Parameters
    ----------
    secrets : iterable of Secret
        All that may differ. What is said of registers is asked in the next cycle as well, where the inputs are any.
    invariant : Invariant
        Of the registers of each copy. That it is one is proved along with the rest.
    """
    start = Solver(system.initial(), not_(invariant(system.wires(0))))
    if start.possible():
        return Verdict(Result.FAIL, 0, "the invariant does not hold after power-up")
    copies = _Copies(system, secrets, invariant)
    if not Solver(*copies.alike).possible():
        return Verdict(Result.FAIL, 1, "the assumptions contradict each other, so that nothing is proved")
    one, other = observed(copies.one), observed(copies.other)
    differences = [*((name, one[name] != other[name]) for name in one), *copies.next_differences()]
    question = Solver(*copies.alike, any_of(*(difference for _, difference in differences)))
    if question.possible():
        model = question.model()
        seen = [name for name, difference in differences if model.holds(difference)]
        differs = copies.describe(model, copies.one, copies.other)
        return Verdict(Result.FAIL, 1, f"{', '.join(seen)}: the one and the other differ in\n{differs}")
    step = Solver(invariant(copies.one), not_(invariant(copies.one_then)))
    if step.possible():
        changes = copies.describe(step.model(), copies.one, copies.one_then)
        return Verdict(Result.FAIL, 1, f"a cycle breaks the invariant, in which there change\n{changes}")
    return Verdict(Result.PASS, 1)


def coexist(system: Transition, secrets: Iterable[Secret], goal: Both, *, invariant: Invariant) -> Verdict:
    """Some two states that are alike meet `goal`: what may differ does."""
    copies = _Copies(system, secrets, invariant)
    if Solver(*copies.alike, goal(copies.one, copies.other)).possible():
        return Verdict(Result.PASS, 0)
    return Verdict(Result.FAIL, 0, "no such states")
