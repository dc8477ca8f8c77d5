"""Permissions of the reference model for a cycle of the SPU, as conditions on its wires."""

from collections.abc import Callable, Mapping
from functools import cache

from spurtle.config import SPUConfig
from spurtle.interface.pe_state import PEStateSignature
from spurtle.interface.sampling import TakenBranchSignature
from spurtle_sim.model import control
from spurtle_sim.model.pe import PEState
from spurtle_sim.model.registers import Registers

from ..engine.induction import Invariant
from ..engine.integer import Integer
from ..engine.parts import Part
from ..engine.paths import Path, explore
from ..engine.terms import BitVector, Term, any_of, substitute, variable

__all__ = ["branch_profiled", "contextidr_collected", "executed", "profiling_enabled", "state", "timestamp_depends_on"]

_PROGRAMMED = {
    "PMSCR_EL1": "registers.pmscr",
    "PMSCR_EL2": "registers.pmscr_el2",
    "PMBLIMITR_EL1": "registers.pmblimitr",
    "PMBSR_EL1": "buffer.pmbsr",
}

Query = Callable[[SPUConfig, Registers, PEState, Mapping[str, int]], object]
"""A query of the reference. The last argument is the state in which the reported branch was executed."""


def state(config: SPUConfig) -> list[Part]:
    """Return the inputs with the state of the PE."""
    return [Part(f"pe__{name}", member.shape) for name, member in PEStateSignature(config).members.items()]


def executed(config: SPUConfig) -> list[Part]:
    """Return the inputs with the state in which the reported branch was executed."""
    names = ("el", "ns", *(["nse"] if config.rme else []), "aarch32")
    members = TakenBranchSignature(config).members
    return [Part(f"branch__{name}", members[name].shape) for name in names] if config.pbt else []


@cache
def _unknown(config: SPUConfig) -> Mapping[str, BitVector]:
    """Return a variable for each wire that the reference reads."""
    widths = {wire: 64 for name, wire in _PROGRAMMED.items() if config.el2 or name != "PMSCR_EL2"}
    widths |= {part.wire: part.width for part in (*state(config), *executed(config))}
    return {wire: variable(wire, width) for wire, width in widths.items()}


@cache
def _paths(config: SPUConfig, query: Query) -> list[Path[object]]:
    """Return the paths of a query."""

    def run(*values: int) -> object:
        wires = dict(zip(_unknown(config), values, strict=True))
        registers = Registers(**{name: wires[wire] for name, wire in _PROGRAMMED.items() if wire in wires})
        pe = PEState(**{part.wire.removeprefix("pe__"): wires[part.wire] for part in state(config)})
        branch = {part.wire.removeprefix("branch__"): wires[part.wire] for part in executed(config)}
        return query(config, registers, pe, {"nse": 0} | branch)

    return list(explore(run, *_unknown(config).values()))


def _where(config: SPUConfig, query: Query, accepted: Callable[[object], bool] = bool) -> Invariant:
    """Return the condition under which the result of a query is `accepted`."""
    condition = any_of(*(path.condition for path in _paths(config, query) if accepted(path.result)))
    return lambda wires: substitute(condition, *((one, wires[wire]) for wire, one in _unknown(config).items()))


def _enabled(config: SPUConfig, registers: Registers, pe: PEState, _) -> object:
    return bool(control.profiling_enabled(config, registers, pe))


def _branch(config: SPUConfig, registers: Registers, pe: PEState, branch: Mapping[str, int]) -> object:
    return bool(control.branch_profiled(config, registers, pe, **branch))


def _el1(config: SPUConfig, registers: Registers, pe: PEState, _) -> object:
    return bool(control.collect_contextidr_el1(config, registers, pe))


def _el2(config: SPUConfig, registers: Registers, pe: PEState, _) -> object:
    return bool(control.collect_contextidr_el2(config, registers, pe))


def _time(config: SPUConfig, registers: Registers, pe: PEState, _) -> object:
    return control.timestamp(config, registers, pe)


def profiling_enabled(config: SPUConfig) -> Invariant:
    """Return the condition that profiling is enabled, so that operations are members of the sample population."""
    return _where(config, _enabled)


def branch_profiled(config: SPUConfig) -> Invariant:
    """Return the condition that profiling is enabled where the reported branch was executed."""
    return _where(config, _branch)


def contextidr_collected(config: SPUConfig, level: int) -> Invariant:
    """Return the condition that CONTEXTIDR_EL1 (`level` 1) or CONTEXTIDR_EL2 (`level` 2) may be collected."""
    return _where(config, {1: _el1, 2: _el2}[level])


def timestamp_depends_on(config: SPUConfig, wire: str) -> Invariant:
    """Return the condition that a timestamp is collected and depends on this input."""
    unknown = _unknown(config)[wire]
    return _where(config, _time, lambda time: isinstance(time, Integer) and _mentions(time.bits, unknown))


def _mentions(term: Term, unknown: Term) -> bool:
    return term.same(unknown) or any(_mentions(child, unknown) for child in term.children)
