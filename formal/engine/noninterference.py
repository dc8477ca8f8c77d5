"""Noninterference: two copies of a component have the same observable behavior, for all values of their secrets.

The proof is an induction over one cycle. Two states are equivalent if all registers are equal, except for secrets in
states where they are not visible. From any two equivalent states, with equivalent inputs, the observed signals must be
equal and the next states must be equivalent again.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
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

__all__ = ["Observed", "PairRelation", "Secret", "noninterference", "pair_exists"]

Observed = Callable[[Wires], Mapping[str, BitVector]]
"""Observable signals of a cycle, by name, as terms over its wires."""

PairRelation = Callable[[Wires, Wires], Boolean]
"""A relation between a cycle of one copy and the same cycle of the other."""


@dataclass(frozen=True)
class Secret:
    """An input or a register, or a part of one, that may differ between the copies.

    Members
    -------
    part : Part
    visible : Invariant
        Condition under which the part must be equal: it is equal in both copies if this holds in either of them.
    """

    part: Part
    visible: Invariant


class _WiresOf(Mapping[str, BitVector]):
    """Wires of another state, each computed on first use."""

    def __init__(self, wires: Wires, state: BitVector, other: BitVector):
        self._wires, self._state, self._other = wires, state, other
        self._known: dict[str, BitVector] = {}

    def __getitem__(self, name: str) -> BitVector:
        if name not in self._known:
            self._known[name] = _replace_state(self._wires[name], self._state, self._other)
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._wires)

    def __len__(self) -> int:
        return len(self._wires)


def _replace_state(term: BitVector, state: BitVector, other: BitVector) -> BitVector:
    return simplify(substitute(term, (state, other)))


def _bits(term: BitVector, low: int, end: int) -> BitVector:
    return extract(end - 1, low, term)


def _joined(pieces: Iterable[BitVector]) -> BitVector:
    """Return the concatenation of terms, the least significant first."""
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
    """Return the bits of the state that the bits of a wire are, the least significant first.

    The entry of a computed or constant bit is None.
    """
    if term.extracted is not None and _operands(term)[0].is_variable:
        high, low = term.extracted
        return [*range(low, high + 1)]
    if term.is_concatenation:
        return [bit for piece in reversed(_operands(term)) for bit in _origin(piece)]
    return [None] * term.width


class _Copies:
    """Two copies of a component in one cycle. Bits that are equal in both are the same term in both.

    Attributes
    ----------
    one, other : Wires
        Wires of the two copies.
    equivalence : list of Boolean
        Conditions under which the states of the copies are equivalent, and the invariant of each.
    one_then, other_then : Wires
        Wires of the two copies in the next cycle, with unconstrained inputs.
    """

    def __init__(self, system: Transition, secrets: Iterable[Secret], invariant: Invariant):
        self._system = system
        self.one = system.wires(0)
        self._every = system.every_wire(0)
        # Position of each register in the state, and its next value.
        self._steps = {low: (high + 1, term) for high, low, term in _registers(system)}
        self._state = system.state(0)
        self._size = self._state.width

        # Registers that the circuit lacks, or computes from others, are skipped.
        visible: list[tuple[Invariant, ...]] = [()] * self._size
        for secret in secrets:
            part = secret.part
            if part.wire in self.one or "." not in part.wire:
                for bit in _origin(simplify(self.one[part.wire]))[part.lsb : part.lsb + part.width]:
                    if bit is not None:
                        visible[bit] += (secret.visible,)
        borders = {0, self._size, *(bit for bit in range(1, self._size) if visible[bit] != visible[bit - 1])}
        self._runs = [(low, end, visible[low]) for low, end in pairwise(sorted(borders))]
        hidden = variable("hidden", self._size)
        self._other = _joined(
            if_else(_any(conditions, self.one), _bits(self._state, low, end), _bits(hidden, low, end))
            if conditions
            else _bits(self._state, low, end)
            for low, end, conditions in self._runs
        )
        self.other = _WiresOf(self.one, self._state, self._other)
        self.equivalence = [invariant(self.one), invariant(self.other)]
        for low, end, conditions in self._runs:
            if conditions:
                same = _bits(self._state, low, end) == _bits(self._other, low, end)
                self.equivalence.append(simplify(implies(_any(conditions, self.other), same)))
        self._next = self._successor("one", self._state), self._successor("other", self._other)
        self.one_then, self.other_then = (_WiresOf(self.one, self._state, state) for state in self._next)

    def next_differences(self) -> Iterator[tuple[str, Boolean]]:
        """Yield the register and the condition of each way in which the next states may not be equivalent."""
        for low, end, conditions in self._runs:
            for first, (register_end, _) in sorted(self._steps.items()):
                piece = max(low, first), min(end, register_end)
                if piece[0] < piece[1]:
                    a, b = (simplify(_bits(after, *piece)) for after in self._next)
                    if not a.same(b):
                        visible = (_any(conditions, wires) for wires in (self.one_then, self.other_then))
                        either = any_of(*visible) if conditions else boolean(True)
                        yield self._name(piece[0]), all_of(either, a != b)

    def describe_copies(self, model: Model) -> str:
        """Return the registers and inputs that differ between the copies, with both values."""
        return self._describe(model, self._other)

    def describe_step(self, model: Model) -> str:
        """Return the registers and inputs of one copy that change in the next cycle, with both values."""
        return self._describe(model, self._next[0])

    def _describe(self, model: Model, other: BitVector) -> str:
        every = _WiresOf(self._every, self._state, other)
        lines = []
        for name in (*self._system.registers, *self._system.inputs):
            values = [model.value(wires[name]) for wires in (self._every, every)]
            if values[0] != values[1]:
                lines.append(f"  {name}: {', '.join(map(hex, values))}")
        return "\n".join(lines)

    def _name(self, bit: int) -> str:
        """Return the name of the register that contains a bit of the state."""
        return self._names[bit]

    @cached_property
    def _names(self) -> Mapping[int, str]:
        """Name of the register that contains each bit of the state, the first of several names."""
        names: dict[int, str] = {}
        for name in self._system.registers:
            for bit in _origin(simplify(self._every[name])):
                if bit is not None:
                    names.setdefault(bit, name)
        return names

    def _successor(self, name: str, state: BitVector) -> BitVector:
        """Return the state that follows `state`, with unconstrained inputs."""
        pieces, low = [], 0
        for first, (end, term) in sorted(self._steps.items()):
            if first > low:
                pieces.append(variable(f"{name}'s inputs {low}", first - low))
            pieces.append(_replace_state(term, self._state, state))
            low = end
        if low < self._size:
            pieces.append(variable(f"{name}'s inputs {low}", self._size - low))
        return _joined(pieces)


def _any(conditions: Iterable[Invariant], wires: Wires) -> Boolean:
    return simplify(any_of(*(condition(wires) for condition in conditions)))


def noninterference(
    system: Transition, secrets: Iterable[Secret], observed: Observed, *, invariant: Invariant
) -> Verdict:
    """Prove that the observed signals of two copies are equal in every cycle, from power-up or any equivalent states.

    Parameters
    ----------
    secrets : iterable of Secret
        All parts that may differ. The conditions of registers are also evaluated in the next cycle, where the inputs
        are unconstrained.
    invariant : Invariant
        Invariant on the registers of each copy. It is proved as well.
    """
    start = Solver(system.initial(), not_(invariant(system.wires(0))))
    if start.possible():
        return Verdict(Result.FAIL, 0, "the invariant does not hold after power-up")
    copies = _Copies(system, secrets, invariant)
    if not Solver(*copies.equivalence).possible():
        return Verdict(Result.FAIL, 1, "the assumptions contradict each other, so nothing is proved")
    one, other = observed(copies.one), observed(copies.other)
    differences = [*((name, one[name] != other[name]) for name in one), *copies.next_differences()]
    question = Solver(*copies.equivalence, any_of(*(difference for _, difference in differences)))
    if question.possible():
        model = question.model()
        names = [name for name, difference in differences if model.holds(difference)]
        differs = copies.describe_copies(model)
        return Verdict(Result.FAIL, 1, f"{', '.join(names)}: the two copies differ in\n{differs}")
    step = Solver(invariant(copies.one), not_(invariant(copies.one_then)))
    if step.possible():
        changes = copies.describe_step(step.model())
        return Verdict(Result.FAIL, 1, f"a cycle violates the invariant, by changing\n{changes}")
    return Verdict(Result.PASS, 1)


def pair_exists(system: Transition, secrets: Iterable[Secret], goal: PairRelation, *, invariant: Invariant) -> Verdict:
    """Search for two equivalent states that satisfy `goal`, so that `noninterference` does not hold vacuously."""
    copies = _Copies(system, secrets, invariant)
    if Solver(*copies.equivalence, goal(copies.one, copies.other)).possible():
        return Verdict(Result.PASS, 0)
    return Verdict(Result.FAIL, 0, "no two states satisfy it")
