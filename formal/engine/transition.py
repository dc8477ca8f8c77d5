"""A component as a transition relation: what Yosys says that it does in one cycle, as terms."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

from amaranth.back import rtlil
from amaranth.lib import wiring

from .terms import BitVector, Boolean, Model, all_of, as_bits, parse, substitute, variable
from .tools import yosys

__all__ = ["PREPARE", "WRITE", "Transition", "Wires", "from_smt2", "remembering", "transition"]

PREPARE = "prep -top top -flatten; memory_map; dffunmap; opt_clean; setundef -undriven -zero"
WRITE = "write_smt2 -stbv -wires"
"""Yosys commands: `from_smt2` reads what the second writes of a design that went through the first. Each word of a
memory is a register, `memory[word]`. Bits that nobody reads have lost what drove them, and are zero."""

_WIRE = re.compile(r"^; yosys-smt2-(input|output|register|wire) (\S+) (\d+)$", re.MULTILINE)


Wires = Mapping[str, BitVector]
"""Wires of one cycle, by name."""


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
    _wires: dict[str, BitVector]
    _initial: Boolean
    _step: Boolean
    _state: BitVector
    _next: BitVector

    def state(self, n: int) -> BitVector:
        """All registers and inputs in state `n`."""
        return variable(f"{self._name}@{n}", self._state.width)

    def initial(self, n: int = 0) -> Boolean:
        """State `n` is as after power-up."""
        return substitute(self._initial, (self._state, self.state(n)))

    def step(self, n: int) -> Boolean:
        """State `n + 1` follows state `n`."""
        return substitute(self._step, (self._state, self.state(n)), (self._next, self.state(n + 1)))

    def wires(self, n: int) -> dict[str, BitVector]:
        """Every named wire in state `n`, unsigned, by name."""
        return {name: substitute(wire, (self._state, self.state(n))) for name, wire in self._wires.items()}

    def describe(self, model: Model, cycles: Sequence[Wires]) -> str:
        """Return the registers and the inputs of successive cycles, with the values that a model has for them."""

        def values(names: Iterable[str], wires: Wires) -> str:
            return ", ".join(f"{name} = {model.value(wires[name]):#x}" for name in names)

        inputs = [name for name in self.inputs if name != "clk"]
        return "\n  then\n".join(
            f"  state   {values(self.registers, wires)}\n  inputs  {values(inputs, wires)}" for wires in cycles
        )


@dataclass(frozen=True)
class _Remembering(Transition):
    _widths: Mapping[str, int]
    _follow: Callable[[Wires], Wires]
    _initially: Mapping[str, int]

    def _remembered(self, n: int) -> dict[str, BitVector]:
        return {name: variable(f"{self._name}.{name}@{n}", width) for name, width in self._widths.items()}

    def initial(self, n: int = 0) -> Boolean:
        remembered = self._remembered(n)
        return all_of(super().initial(n), *(remembered[name] == value for name, value in self._initially.items()))

    def step(self, n: int) -> Boolean:
        then = self._remembered(n + 1)
        followed = self._follow(self.wires(n)).items()
        return all_of(super().step(n), *(then[name] == value for name, value in followed))

    def wires(self, n: int) -> dict[str, BitVector]:
        return super().wires(n) | self._remembered(n)


def remembering(
    system: Transition,
    widths: Mapping[str, int],
    follow: Callable[[Wires], Wires],
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
    initial, step, *equalities = parse("\n".join([text, states, *probes]))
    sort = re.search(r"^\(define-sort \|top_s\| \(\) \(_ BitVec (\d+)\)\)$", text, re.MULTILINE)
    assert sort is not None
    return Transition(
        inputs=tuple(kinds["input"]),
        outputs=tuple(kinds["output"]),
        registers=tuple(kinds["register"]),
        _name=name,
        _wires={wire: as_bits(equality.children[1]) for wire, equality in zip(wires, equalities, strict=True)},
        _initial=initial,
        _step=step,
        _state=variable("s", int(sort[1])),
        _next=variable("s1", int(sort[1])),
    )
