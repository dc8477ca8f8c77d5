"""Two copies of a component side by side: what they show is the same for ever, whatever the secrets of each are.

An induction over one cycle. Two states are alike if every register is the same in both but for the secrets, and each
of those is where it is shown. From any two states that are alike, with inputs that are alike, what is seen is the same,
and the next states are alike again.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import z3
from amaranth.hdl import Shape, ShapeLike
from amaranth.lib import data

from .induction import Invariant, Wires, fresh_solver
from .proof import Result, Verdict
from .symbolic import possible
from .transition import Transition

__all__ = ["Both", "Observed", "Part", "Secret", "coexist", "noninterference"]

Observed = Callable[[Wires], Mapping[str, z3.BitVecRef]]
"""What is seen of a cycle, over its wires."""

Both = Callable[[Wires, Wires], z3.BoolRef]
"""A relation between a cycle of the one copy and the same cycle of the other."""


@dataclass(frozen=True)
class Part:
    """Bits of a wire: `part["field"]` is a field of them, `part(wires)` their value."""

    wire: str
    shape: ShapeLike
    lsb: int = 0

    @property
    def width(self) -> int:
        """In bits."""
        return Shape.cast(self.shape).width

    def _layout(self) -> data.Layout:
        return data.Layout.cast(self.shape)

    def __getitem__(self, name: str) -> "Part":
        field = self._layout()[name]
        return Part(self.wire, field.shape, self.lsb + field.offset)

    def fields(self) -> dict[str, "Part"]:
        """Its fields, by name."""
        return {str(name): self[str(name)] for name, _ in self._layout()}

    def __call__(self, wires: Wires) -> z3.BitVecRef:
        return z3.Extract(self.lsb + self.width - 1, self.lsb, wires[self.wire])


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


class _Elsewhere(Mapping[str, z3.BitVecRef]):
    """The same wires, of another state. Each is worked out when it is asked for."""

    def __init__(self, wires: Wires, state: z3.BitVecRef, other: z3.BitVecRef):
        self._wires, self._state, self._other = wires, state, other
        self._known: dict[str, z3.BitVecRef] = {}

    def __getitem__(self, name: str) -> z3.BitVecRef:
        if name not in self._known:
            self._known[name] = _put(self._wires[name], self._state, self._other)
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._wires)

    def __len__(self) -> int:
        return len(self._wires)


def _put(term: z3.ExprRef, state: z3.BitVecRef, other: z3.BitVecRef):
    return z3.simplify(z3.substitute(term, (state, other)))


def _bits(term: z3.BitVecRef, low: int, end: int) -> z3.BitVecRef:
    return z3.Extract(end - 1, low, term)


def _joined(pieces: Iterable[z3.BitVecRef]) -> z3.BitVecRef:
    """The lowest first."""
    *rest, lowest = reversed([*pieces])
    return z3.simplify(z3.Concat(*rest, lowest) if rest else lowest)


def _origin(term: z3.ExprRef) -> list[int | None]:
    """Which bits of the state a wire's are, the lowest first. None for one that is worked out, or constant."""
    match term.decl().kind():
        case z3.Z3_OP_EXTRACT if z3.is_const(term.arg(0)):
            high, low = term.params()
            return [*range(low, high + 1)]
        case z3.Z3_OP_CONCAT:
            return [bit for piece in reversed(term.children()) for bit in _origin(piece)]
        case _:
            assert isinstance(term, z3.BitVecRef)
            return [None] * term.size()


class _Copies:
    """Two copies of a component in a cycle. What is the same in both is one term in both.

    Attributes
    ----------
    one, other : Wires
    alike : list of z3.BoolRef
        What is assumed of them.
    one_then, other_then : Wires
        In the next cycle, where the inputs are any.
    """

    def __init__(self, system: Transition, secrets: Iterable[Secret], invariant: Invariant):
        self._system = system
        self.one = system.wires(0)
        # Where in the state each register is, and what it becomes.
        self._steps = {
            place.params()[1]: (place.params()[0] + 1, term)
            for term, place in (equation.children() for equation in system.step(0).children())
        }
        then = system.step(0).arg(0).arg(1).arg(0)
        self._size = then.size()
        self._state = z3.BitVec(str(then).removesuffix("@1") + "@0", self._size)

        # Of a register that the circuit does not have, or works out from others, nothing is said.
        shown: list[tuple[Invariant, ...]] = [()] * self._size
        for secret in secrets:
            part = secret.part
            if part.wire in self.one or "." not in part.wire:
                for bit in _origin(z3.simplify(self.one[part.wire]))[part.lsb : part.lsb + part.width]:
                    if bit is not None:
                        shown[bit] += (secret.shown,)
        borders = {0, self._size, *(bit for bit in range(1, self._size) if shown[bit] != shown[bit - 1])}
        self._runs = [(low, end, shown[low]) for low, end in pairwise(sorted(borders))]
        hidden = z3.BitVec("hidden", self._size)
        self._other = _joined(
            z3.If(_any(conditions, self.one), _bits(self._state, low, end), _bits(hidden, low, end))
            if conditions
            else _bits(self._state, low, end)
            for low, end, conditions in self._runs
        )
        self.other = _Elsewhere(self.one, self._state, self._other)
        self.alike = [invariant(self.one), invariant(self.other)]
        for low, end, conditions in self._runs:
            if conditions:
                same = _bits(self._state, low, end) == _bits(self._other, low, end)
                self.alike.append(z3.simplify(z3.Implies(_any(conditions, self.other), same)))
        self._next = self._follow("one", self._state), self._follow("other", self._other)
        self.one_then, self.other_then = (_Elsewhere(self.one, self._state, state) for state in self._next)

    def next_differences(self) -> Iterator[tuple[str, z3.BoolRef]]:
        """How the next states can fail to be alike: in which register, and what the difference is."""
        for low, end, conditions in self._runs:
            for first, (behind, _) in sorted(self._steps.items()):
                piece = max(low, first), min(end, behind)
                if piece[0] < piece[1]:
                    a, b = (z3.simplify(_bits(after, *piece)) for after in self._next)
                    if not a.eq(b):
                        asked = (_any(conditions, wires) for wires in (self.one_then, self.other_then))
                        known = z3.Or(*asked) if conditions else z3.BoolVal(True)
                        yield self._name(piece[0]), z3.And(known, a != b)

    def describe(self, model: z3.ModelRef, first: Wires, second: Wires) -> str:
        """The registers and inputs that are not the same in the two, and what they are."""
        lines = []
        for name in (*self._system.registers, *self._system.inputs):
            values = [model.eval(wires[name], model_completion=True) for wires in (first, second)]
            if not values[0].eq(values[1]):
                lines.append(f"  {name}: {', '.join(hex(value.as_long()) for value in values)}")
        return "\n".join(lines)

    def _name(self, bit: int) -> str:
        """The register that a bit of the state is of."""
        return next(name for name in self._system.registers if bit in _origin(z3.simplify(self.one[name])))

    def _follow(self, name: str, state: z3.BitVecRef) -> z3.BitVecRef:
        """What follows `state`. Inputs are free in it."""
        pieces, low = [], 0
        for first, (end, term) in sorted(self._steps.items()):
            if first > low:
                pieces.append(z3.BitVec(f"{name}'s inputs {low}", first - low))
            pieces.append(_put(term, self._state, state))
            low = end
        if low < self._size:
            pieces.append(z3.BitVec(f"{name}'s inputs {low}", self._size - low))
        return _joined(pieces)


def _any(conditions: Iterable[Invariant], wires: Wires) -> z3.BoolRef:
    return z3.simplify(z3.Or(*(condition(wires) for condition in conditions)))


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
    start = fresh_solver(system.initial(), z3.Not(invariant(system.wires(0))))
    if possible(start):
        return Verdict(Result.FAIL, 0, "the invariant does not hold after power-up")
    copies = _Copies(system, secrets, invariant)
    if not possible(fresh_solver(*copies.alike)):
        return Verdict(Result.FAIL, 1, "the assumptions contradict each other, so that nothing is proved")
    one, other = observed(copies.one), observed(copies.other)
    differences = [*((name, one[name] != other[name]) for name in one), *copies.next_differences()]
    question = fresh_solver(*copies.alike, z3.Or(*(difference for _, difference in differences)))
    if possible(question):
        model = question.model()
        seen = [name for name, difference in differences if z3.is_true(model.eval(difference, model_completion=True))]
        differs = copies.describe(model, copies.one, copies.other)
        return Verdict(Result.FAIL, 1, f"{', '.join(seen)}: the one and the other differ in\n{differs}")
    step = fresh_solver(invariant(copies.one), z3.Not(invariant(copies.one_then)))
    if possible(step):
        changes = copies.describe(step.model(), copies.one, copies.one_then)
        return Verdict(Result.FAIL, 1, f"a cycle breaks the invariant, in which there change\n{changes}")
    return Verdict(Result.PASS, 1)


def coexist(system: Transition, secrets: Iterable[Secret], goal: Both, *, invariant: Invariant) -> Verdict:
    """Some two states that are alike meet `goal`: what may differ does."""
    copies = _Copies(system, secrets, invariant)
    if possible(fresh_solver(*copies.alike, goal(copies.one, copies.other))):
        return Verdict(Result.PASS, 0)
    return Verdict(Result.FAIL, 0, "no such states")
