"""Seeded faults: circuits with one changed bit, which the proofs must reject."""

import itertools
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from amaranth.back import rtlil
from amaranth.lib import wiring

from .induction import Invariant
from .terms import BitVector, Solver, Term, any_of
from .tools import YOSYS, require, run
from .transition import PREPARE, WRITE, Transition, from_smt2

__all__ = ["differs", "faulty"]


def faulty(
    build: Callable[[], wiring.Component], *, count: int, seed: int, differs: Callable[[Transition], bool]
) -> list[tuple[str, Transition]]:
    """Return `count` faulty circuits, each with the Yosys command that made it.

    Each circuit differs from the one that `build` makes in one bit of one cell's port.

    Parameters
    ----------
    differs : callable
        Return whether a circuit behaves differently. A changed bit may have no effect; circuits for which this is
        false are dropped.
    """
    found: list[tuple[str, Transition]] = []
    # About a quarter of the mutations have no effect, so one draw of twice as many is usually enough.
    several = 2 * count
    for draw in itertools.count(seed):
        drawn = ((fault, system) for fault, system in _mutated(build(), several, draw) if differs(system))
        found += itertools.islice(drawn, count - len(found))
        if len(found) == count:
            return found
    raise AssertionError


def _mutated(component: wiring.Component, count: int, seed: int) -> Iterator[tuple[str, Transition]]:
    """Yield the circuits that Yosys's `mutate` command makes from a component."""
    require(YOSYS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "design.il").write_text(rtlil.convert(component, name="top", emit_src=False))
        prepare = ["read_rtlil design.il", PREPARE]
        chosen = "; ".join([*prepare, f"mutate -list {count} -seed {seed % (1 << 31)} -o mutations"])
        run([YOSYS, "-q", "-p", chosen], folder=folder, seconds=60)
        mutations = (folder / "mutations").read_text().splitlines()
        script = [*prepare, "design -save right"]
        for number, mutation in enumerate(mutations):
            script += ["design -load right", mutation, f"{WRITE} {number}.smt2"]
        (folder / "faults.ys").write_text("\n".join(script) + "\n")
        run([YOSYS, "-q", "faults.ys"], folder=folder, seconds=300)
        for number, mutation in enumerate(mutations):
            yield mutation, from_smt2((folder / f"{number}.smt2").read_text(), "faulty")


def differs(
    right: Transition,
    wrong: Transition,
    *,
    assuming: Invariant,
    relevant: Callable[[str, BitVector], Term] = lambda _, value: value,
) -> bool:
    """Return whether `wrong` behaves differently from `right`.

    It does if, from some state that satisfies `assuming`, an output or the next state differs, or if the state after
    power-up differs.

    Parameters
    ----------
    relevant : callable
        Return the relevant part of a register's value, from its name and its value. By default all of it.
    """
    now, then = right.every_wire(0), right.every_wire(1)
    wrong_now, wrong_then = wrong.every_wire(0), wrong.every_wire(1)
    solver = Solver(assuming(right.wires(0)), right.step(0), wrong.step(0))
    solver.add(*(now[name] == wrong_now[name] for name in (*right.inputs, *right.registers)))
    outputs = (now[name] != wrong_now[name] for name in right.outputs)
    registers = (relevant(name, then[name]) != relevant(name, wrong_then[name]) for name in right.registers)
    return solver.possible(any_of(*outputs, *registers, right.initial() != wrong.initial()))
