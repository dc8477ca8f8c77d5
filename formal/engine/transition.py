"""A component as a transition relation: what Yosys says that it does in one cycle, as z3 terms."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields

import z3
from amaranth.back import rtlil
from amaranth.lib import wiring

from .tools import yosys

__all__ = ["PREPARE", "WRITE", "Transition", "bit_vector", "from_smt2", "remembering", "transition"]

PREPARE = "prep -top top -flatten; memory_map; dffunmap; opt_clean; setundef -undriven -zero"
WRITE = "write_smt2 -stbv -wires"
"""Yosys commands: `from_smt2` reads what the second writes of a design that went through the first. Each word of a
memory is a register, `memory[word]`. Bits that nobody reads have lost what drove them, and are zero."""

_WIRE = re.compile(r"^; yosys-smt2-(input|output|register|wire) (\S+) (\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class Transition:
    """One cycle of a component, from state `n` to state `n + 1`. A state includes the inputs applied in it.

    Members
    -------
    inputs, outputs, registers : tuple of str
        Names of the wires of each kind, in Yosys's order. A submodule's are `submodule.name`.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    registers: tuple[str, ...]
    _name: str
    _wires: dict[str, z3.BitVecRef]
    _initial: z3.BoolRef
    _step: z3.BoolRef
    _state: z3.BitVecRef
    _next: z3.BitVecRef

    def _at(self, n: int) -> z3.BitVecRef:
        return z3.BitVec(f"{self._name}@{n}", self._state.size())

    def initial(self, n: int = 0) -> z3.BoolRef:
        """State `n` is as after power-up."""
        return z3.substitute(self._initial, (self._state, self._at(n)))

    def step(self, n: int) -> z3.BoolRef:
        """State `n + 1` follows state `n`."""
        return z3.substitute(self._step, (self._state, self._at(n)), (self._next, self._at(n + 1)))

    def wires(self, n: int) -> dict[str, z3.BitVecRef]:
        """Every named wire in state `n`, unsigned, by name."""
        return {name: z3.substitute(wire, (self._state, self._at(n))) for name, wire in self._wires.items()}


@dataclass(frozen=True)
class _Remembering(Transition):
    _widths: Mapping[str, int]
    _follow: Callable[[Mapping[str, z3.BitVecRef]], Mapping[str, z3.BitVecRef]]
    _initially: Mapping[str, int]

    def _remembered(self, n: int) -> dict[str, z3.BitVecRef]:
        return {name: z3.BitVec(f"{self._name}.{name}@{n}", width) for name, width in self._widths.items()}

    def initial(self, n: int = 0) -> z3.BoolRef:
        remembered = self._remembered(n)
        return z3.And(super().initial(n), *(remembered[name] == value for name, value in self._initially.items()))

    def step(self, n: int) -> z3.BoolRef:
        then = self._remembered(n + 1)
        followed = self._follow(self.wires(n)).items()
        return z3.And(super().step(n), *(then[name] == value for name, value in followed))

    def wires(self, n: int) -> dict[str, z3.BitVecRef]:
        return super().wires(n) | self._remembered(n)


def remembering(
    system: Transition,
    widths: Mapping[str, int],
    follow: Callable[[Mapping[str, z3.BitVecRef]], Mapping[str, z3.BitVecRef]],
    initially: Mapping[str, int],
) -> Transition:
    """`system` and registers beside it that a proof speaks of: they see everything and change nothing.

    Parameters
    ----------
    widths : mapping of str to int
        Bits of each of them.
    follow : callable
        From the wires of a cycle, theirs among them, what they are in the next.
    initially : mapping of str to int
        After power-up; one that is not named is anything.
    """
    parts = {field.name: getattr(system, field.name) for field in fields(Transition)}
    parts["registers"] = (*system.registers, *widths)
    return _Remembering(**parts, _widths=widths, _follow=follow, _initially=initially)


def bit_vector(term: z3.ExprRef) -> z3.BitVecRef:
    """Yosys makes wires of one bit Boolean."""
    return z3.If(term, z3.BitVecVal(1, 1), z3.BitVecVal(0, 1)) if z3.is_bool(term) else term


def transition(component: wiring.Component) -> Transition:
    """Have Yosys compute the transition relation of `component`: every named wire; every input free, `rst` among them.

    Raises
    ------
    ToolError
        If Yosys fails.
    UserError
        If it is not there.
    """
    design = rtlil.convert(component, name="top", emit_src=False)
    return from_smt2(yosys(design, f"{PREPARE}; {WRITE} {{output}}"))


def from_smt2(text: str, name: str = "state") -> Transition:
    """The transition relation that Yosys wrote. Relations whose names differ can meet in one question."""
    wires: dict[str, int] = {}
    kinds: dict[str, list[str]] = {"input": [], "output": [], "register": [], "wire": []}
    for kind, wire, width in _WIRE.findall(text):
        wires[wire] = int(width)
        kinds[kind].append(wire)

    # One assertion for each term that is wanted: parsing expands Yosys's definitions into it.
    probes = ["(assert (|top_i| s))", "(assert (|top_t| s s1))"]
    for wire, width in wires.items():
        sort = "Bool" if width == 1 else f"(_ BitVec {width})"
        probes.append(f"(declare-const |wire {wire}| {sort}) (assert (= |wire {wire}| (|top_n {wire}| s)))")
    states = "(declare-const s |top_s|) (declare-const s1 |top_s|)"
    initial, step, *equalities = z3.parse_smt2_string("\n".join([text, states, *probes]))
    sort = re.search(r"^\(define-sort \|top_s\| \(\) \(_ BitVec (\d+)\)\)$", text, re.MULTILINE)
    assert sort is not None
    return Transition(
        inputs=tuple(kinds["input"]),
        outputs=tuple(kinds["output"]),
        registers=tuple(kinds["register"]),
        _name=name,
        _wires={wire: bit_vector(equality.arg(1)) for wire, equality in zip(wires, equalities, strict=True)},
        _initial=initial,
        _step=step,
        _state=z3.BitVec("s", int(sort[1])),
        _next=z3.BitVec("s1", int(sort[1])),
    )
