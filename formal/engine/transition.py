"""Transition relations of components: one cycle, computed by Yosys, as terms."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from amaranth.back import rtlil
from amaranth.lib import wiring

from .signals import SignalNames, signal_names
from .terms import AnyTerm, BitVector, Boolean, Model, all_of, as_bits, extract, parse, substitute, variable
from .tools import yosys

__all__ = ["PREPARE", "WRITE", "Transition", "Wires", "from_smt2", "transition", "with_history"]

PREPARE = "prep -top top -flatten; memory_map; dffunmap; opt_clean; setundef -undriven -zero"
WRITE = "write_smt2 -stbv -wires"
"""Yosys commands: `PREPARE` makes a design ready for `WRITE`, whose output `from_smt2` reads. Each word of a memory
becomes a register, `memory[word]`. Yosys removes the drivers of bits that are not read; these bits are zero."""

_WIRE = re.compile(r"^; yosys-smt2-(input|output|register|wire) (\S+) (\d+)$", re.MULTILINE)


Wires = Mapping[str, BitVector]
"""Wires of one cycle, by name."""


class _NamedWires(Mapping[str, BitVector]):
    """Wires of one cycle that a proof can name. Raises UnlistedSignal for other names."""

    def __init__(self, wires: Wires, names: SignalNames):
        self._wires, self._names = wires, names

    def __getitem__(self, name: str) -> BitVector:
        self._names.check(name)
        return self._wires[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._wires)

    def __len__(self) -> int:
        return len(self._wires)


@dataclass(frozen=True)
class Transition:
    """Transition relation of a component, from state `n` to state `n + 1`. A state includes the inputs of its cycle.

    Members
    -------
    inputs, outputs, registers : tuple of str
        Names of the wires of each kind, in the order of Yosys. Wires of a submodule are named `submodule.name`.
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
    _names: SignalNames | None

    def state(self, n: int) -> BitVector:
        """Return all registers and inputs in state `n`, as one bit vector."""
        return variable(f"{self._name}@{n}", self._state.width)

    def initial(self, n: int = 0) -> Boolean:
        """Return the condition that state `n` is the state after power-up."""
        return substitute(self._initial, (self._state, self.state(n)))

    def step(self, n: int) -> Boolean:
        """Return the condition that state `n + 1` follows state `n`."""
        return substitute(self._step, (self._state, self.state(n)), (self._next, self.state(n + 1)))

    def wires(self, n: int) -> Wires:
        """Return the wires in state `n`, unsigned, by name.

        If the relation is that of a component, a name must be a port, a signal that the component or a submodule lists
        as `proof_signals`, or a history register. Another name raises UnlistedSignal.
        """
        every = self.every_wire(n)
        return every if self._names is None else _NamedWires(every, self._names)

    def every_wire(self, n: int) -> Wires:
        """Return every wire in state `n`, unsigned, by name, for what does not depend on the names."""
        return {name: substitute(wire, (self._state, self.state(n))) for name, wire in self._wires.items()}

    def extended(
        self, widths: Mapping[str, int], follow: Callable[[Wires], Wires], initially: Mapping[str, int]
    ) -> "Transition":
        """Return the relation with history registers, which are further bits of the state. See `with_history`."""
        width = self._state.width + sum(widths.values())
        state, then = variable("s", width), variable("s1", width)

        def within(term: AnyTerm) -> AnyTerm:
            lower = (extract(self._state.width - 1, 0, one) for one in (state, then))
            return substitute(term, *zip((self._state, self._next), lower, strict=True))

        ends = [*accumulate(widths.values(), initial=self._state.width)]
        history = dict(zip(widths, pairwise(ends), strict=True))
        now, later = (
            {name: extract(end - 1, low, one) for name, (low, end) in history.items()} for one in (state, then)
        )
        names = self._names and self._names.with_history(widths)
        wires = {name: within(wire) for name, wire in self._wires.items()} | now
        followed = follow(wires if names is None else _NamedWires(wires, names))
        return replace(
            self,
            registers=(*self.registers, *widths),
            _wires=wires,
            _initial=all_of(within(self._initial), *(now[name] == value for name, value in initially.items())),
            # Noninterference reads the conjuncts: one equation for each register.
            _step=all_of(*within(self._step).conjuncts, *(followed[name] == later[name] for name in widths)),
            _state=state,
            _next=then,
            _names=names,
        )

    def describe(self, model: Model, states: Iterable[int]) -> str:
        """Return a text with the values of the registers and inputs in successive states of a model."""

        def values(names: Iterable[str], wires: Wires) -> str:
            return ", ".join(f"{name} = {model.value(wires[name]):#x}" for name in names)

        inputs = [name for name in self.inputs if name != "clk"]
        return "\n  then\n".join(
            f"  state   {values(self.registers, wires)}\n  inputs  {values(inputs, wires)}"
            for wires in map(self.every_wire, states)
        )


def with_history(
    system: Transition,
    widths: Mapping[str, int],
    follow: Callable[[Wires], Wires],
    initially: Mapping[str, int],
) -> Transition:
    """Return `system` with history registers, which record its past for a proof and have no effect on it.

    Parameters
    ----------
    widths : mapping of str to int
        Width of each history register in bits.
    follow : callable
        Return the next value of each history register, from the wires of a cycle, history registers included.
    initially : mapping of str to int
        Values after power-up. A register that is not named has an arbitrary value.
    """
    return system.extended(widths, follow, initially)


def transition(component: wiring.Component) -> Transition:
    """Compute the transition relation of `component` with Yosys.

    All inputs are unconstrained, `rst` included. Proofs read ports and the signals that components list as
    `proof_signals`.

    Raises
    ------
    ToolError
        If Yosys fails.
    UserError
        If Yosys is not installed.
    """
    design = rtlil.convert(component, name="top", emit_src=False)
    return replace(from_smt2(yosys(design, f"{PREPARE}; {WRITE} {{output}}")), _names=signal_names(component))


def from_smt2(text: str, name: str = "state") -> Transition:
    """Return the transition relation that Yosys wrote, in which every wire can be read.

    Relations with different names can be used in one query.
    """
    wires: dict[str, int] = {}
    kinds: dict[str, list[str]] = {"input": [], "output": [], "register": [], "wire": []}
    for kind, wire, width in _WIRE.findall(text):
        wires[wire] = int(width)
        kinds[kind].append(wire)

    # One assertion for each needed term: parsing expands Yosys's definitions in it.
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
        _names=None,
    )
