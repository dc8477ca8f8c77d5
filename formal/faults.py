"""Seeded faults: a proof that never fails says nothing, so each proof is shown circuits that are wrong."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import z3
from amaranth.back import rtlil
from amaranth.lib import wiring

from .induction import Invariant, fresh_solver
from .symbolic import possible
from .tools import YOSYS, require, run
from .transition import PREPARE, WRITE, Transition, from_smt2

__all__ = ["differs", "faulty"]


def faulty(component: wiring.Component, *, count: int, seed: int) -> Iterator[tuple[str, Transition]]:
    """Circuits that differ from `component` in one bit of one cell's port: Yosys's `mutate` command and what it makes.

    Some of them behave as `component` does: a bit may be changed where it does not matter, and the relation of one
    cycle to the next does not speak of the clock itself.
    """
    require(YOSYS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "design.il").write_text(rtlil.convert(component, name="top", emit_src=False))
        prepare = ["read_rtlil design.il", PREPARE]
        chosen = "; ".join([*prepare, f"mutate -list {count} -seed {seed} -o mutations"])
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
    matters: Callable[[str, z3.BitVecRef], z3.ExprRef] = lambda _, value: value,
) -> bool:
    """Return whether `wrong` shows another output or goes to another state from a state that meets `assuming`, or is in
    another state after power-up: whether it is a fault.

    Parameters
    ----------
    matters : callable
        What of a register's value says which state it is, where that is not all: from its name and its value.
    """
    now, then, wrong_now, wrong_then = right.wires(0), right.wires(1), wrong.wires(0), wrong.wires(1)
    solver = fresh_solver(assuming(now), right.step(0), wrong.step(0))
    solver.add(*(now[name] == wrong_now[name] for name in (*right.inputs, *right.registers)))
    outputs = (now[name] != wrong_now[name] for name in right.outputs)
    registers = (matters(name, then[name]) != matters(name, wrong_then[name]) for name in right.registers)
    return possible(solver, z3.Or(*outputs, *registers, right.initial() != wrong.initial()))
