"""Permissions of the reference model for a cycle of the SPU, as conditions on its wires.

The System registers that control profiling take effect one cycle later. History registers hold their values of the
previous cycle, so that the reference of a cycle is a condition on the wires of that cycle.
"""

from collections.abc import Callable, Mapping
from functools import cache
from itertools import product

from spurtle.arch import PMBLIMITR_EL1
from spurtle.config import SPUConfig
from spurtle.gateware.control import BufferOwner, PermissionsLayout
from spurtle.interface.pe_state import PROFILING_CONTROLS, PEStateSignature
from spurtle.interface.sampling import TakenBranchSignature
from spurtle_sim.model import control
from spurtle_sim.model.pe import PEState, owns
from spurtle_sim.model.registers import Registers

from ..engine.induction import Invariant
from ..engine.integer import Integer
from ..engine.parts import Part
from ..engine.paths import Path, explore
from ..engine.terms import (
    BitVector,
    Boolean,
    Term,
    all_of,
    any_of,
    boolean,
    constant,
    extract,
    if_else,
    implies,
    substitute,
    variable,
)
from ..engine.transition import Transition, Wires, with_history

__all__ = [
    "branch_profiled",
    "contextidr_collected",
    "executed",
    "offset_subtracted",
    "offset_used",
    "permissions_match",
    "profiling_enabled",
    "remembered",
    "state",
    "timestamp_collected",
]

_PROGRAMMED = {
    "PMSCR_EL1": "registers.pmscr",
    "PMSCR_EL2": "registers.pmscr_el2",
    "PMBLIMITR_EL1": "registers.pmblimitr",
    "PMBSR_EL1": "buffer.pmbsr",
}

_PREVIOUS = "previous."
"""Prefix of the names of the history registers."""

_OPERATION = {"debug": 0, "aarch32": 0, "count_enabled": 1}
"""State of an operation in which nothing but the registers prohibits profiling and timestamps."""

_RUNNING = {"registers.pmblimitr": PMBLIMITR_EL1.pack(E=1), "buffer.pmbsr": 0}
"""Values of registers with which the buffer runs."""

Query = Callable[[SPUConfig, Registers, PEState, Mapping[str, int]], object]
"""A query of the reference. The last argument is the state in which the reported branch was executed."""

Values = Callable[[Wires, str], BitVector]
"""Return the value with which the reference replaces a wire, from the wires of a cycle."""


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


# History registers.


def _late(config: SPUConfig) -> list[str]:
    """Return the wires of the registers that take effect one cycle later, except for the offsets."""
    controls = {f"pe__{name}" for name in PROFILING_CONTROLS if not name.startswith(("cntvoff", "cntpoff"))}
    return [wire for wire in _unknown(config) if wire in controls or wire.startswith("registers.pmscr")]


def _reset_value(wire: str) -> int:
    """Return the value before the first cycle, with which Secure EL1 owns the buffer and nothing is permitted."""
    return 0b11 if wire == "pe__mdcr_el2_e2pb" else 0


def remembered(config: SPUConfig, system: Transition) -> Transition:
    """Return `system`, an `SPU`, with history registers: the control registers of the previous cycle."""
    late = {f"{_PREVIOUS}{wire}": wire for wire in _late(config)}

    def follow(wires: Wires) -> Mapping[str, BitVector]:
        return {
            name: if_else(wires["rst"] == 1, constant(_reset_value(wire), wires[wire].width), wires[wire])
            for name, wire in late.items()
        }

    widths = {name: _unknown(config)[wire].width for name, wire in late.items()}
    return with_history(system, widths, follow, {name: _reset_value(wire) for name, wire in late.items()})


# Queries of the reference.


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


@cache
def _condition(config: SPUConfig, query: Query, accepted: Callable[[object], bool]) -> Boolean:
    """Return the condition on the variables under which the result of a query is `accepted`."""
    return any_of(*(path.condition for path in _paths(config, query) if accepted(path.result)))


def _where(
    config: SPUConfig, query: Query, values: Values | None = None, accepted: Callable[[object], bool] = bool
) -> Invariant:
    """Return the condition under which the result of a query is `accepted`.

    By default the query is about the operations of this cycle.
    """
    condition = _condition(config, query, accepted)
    read = values or _previous(config)
    return lambda wires: substitute(condition, *((one, read(wires, wire)) for wire, one in _unknown(config).items()))


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


def _owned_time(config: SPUConfig, registers: Registers, pe: PEState, _) -> object:
    owned = owns(config, control.owner(config, pe), pe.ns, pe.nse)
    return control.timestamp(config, registers, pe) if owned else None


def profiling_enabled(config: SPUConfig) -> Invariant:
    """Return the condition that profiling is enabled, so that operations are members of the sample population."""
    return _where(config, _enabled)


def branch_profiled(config: SPUConfig) -> Invariant:
    """Return the condition that profiling is enabled where the reported branch was executed."""
    return _where(config, _branch)


def contextidr_collected(config: SPUConfig, level: int) -> Invariant:
    """Return the condition that CONTEXTIDR_EL1 (`level` 1) or CONTEXTIDR_EL2 (`level` 2) may be collected."""
    return _where(config, {1: _el1, 2: _el2}[level])


def timestamp_collected(config: SPUConfig) -> Invariant:
    """Return the condition that a timestamp is collected."""
    return _where(config, _time, accepted=lambda time: time is not None)


def offset_used(config: SPUConfig, wire: str) -> Invariant:
    """Return the condition that this offset is used for a timestamp by the operations of the next cycle.

    The control registers of this cycle permit it, for an operation of the owner at some Exception level.
    """
    used = _mentions_one_of(config, wire)
    found = [
        _where(config, _owned_time, _assigned(_current, el=el, ns=ns, nse=nse), used)
        for el, (ns, nse) in product(range(3), _security_states(config))
    ]
    return lambda wires: any_of(*(condition(wires) for condition in found))


def offset_subtracted(config: SPUConfig) -> Invariant:
    """Return the condition that an offset is subtracted for the timestamp of an operation of this cycle."""
    enabled = profiling_enabled(config)
    subtracted = _where(config, _time, accepted=_mentions_one_of(config, *_OFFSETS))
    return lambda wires: all_of(enabled(wires), subtracted(wires))


_OFFSETS = ("pe__cntvoff_el2", "pe__cntpoff_el2")
"""Offsets of the system counter."""


@cache
def _mentions_one_of(config: SPUConfig, *wires: str) -> Callable[[object], bool]:
    """Return the predicate that a timestamp depends on one of these wires."""
    unknown = [one for wire, one in _unknown(config).items() if wire in wires]
    return lambda time: isinstance(time, Integer) and any(_mentions(time.bits, one) for one in unknown)


def _mentions(term: Term, unknown: Term) -> bool:
    return term.same(unknown) or any(_mentions(child, unknown) for child in term.children)


def _security_states(config: SPUConfig) -> list[tuple[int, int]]:
    """Return the Security states, as `ns` and `nse`. Without EL3 there is one."""
    return [(0, 0), (1, 0), *([(1, 1)] if config.rme else [])] if config.el3 else [(1, 0)]


def _current(wires: Wires, wire: str) -> BitVector:
    """Return a wire of this cycle."""
    return wires[wire]


def _previous(config: SPUConfig) -> Values:
    """Return the values for this cycle, with the control registers of the previous one."""
    late = _late(config)
    return lambda wires, wire: wires[f"{_PREVIOUS}{wire}" if wire in late else wire]


def _assigned(values: Values, **pe: int) -> Values:
    """Return the values for an operation in this state of the PE while the buffer runs."""
    fixed = _RUNNING | {f"pe__{name}": value for name, value in {**_OPERATION, **pe}.items()}
    return lambda wires, wire: constant(fixed[wire], wires[wire].width) if wire in fixed else values(wires, wire)


# Permissions of the SPU.


def permissions_match(config: SPUConfig) -> Invariant:
    """Return the invariant that the registers of `ProfilingControl` permit no more than the reference does.

    The reference has the control registers of the previous cycle. Each permission is compared for an operation at each
    Exception level to which it applies, in the Security state that owns the buffer.
    """
    part = Part("control.permissions", PermissionsLayout(config))
    offset = _mentions_one_of(config, *_OFFSETS)
    permissions = [
        *((part["profiled"], el, _enabled, bool) for el in range(part["profiled"].width)),
        *((part["context_el1"], el, _el1, bool) for el in range(2)),
        *((part["context_el2"], el, _el2, bool) for el in range(3) if config.el2),
        *((part["timestamp"], el, _time, _given) for el in range(2)),
        *((part["subtract_offset"], el, _time, offset) for el in range(3) if config.el2),
    ]
    terms = [
        (
            one,
            el,
            state,
            _where(config, query, _assigned(_previous(config), el=el, ns=state[0], nse=state[1]), accepted),
        )
        for one, el, query, accepted in permissions
        for state in _security_states(config)
    ]

    def permits(wires: Wires, one: Part, el: int) -> Boolean:
        bit = el if one.width > 1 else 0
        # The offset is used only with a timestamp.
        timed = part["timestamp"](wires) == 1 if config.el2 and one == part["subtract_offset"] else boolean(True)
        return all_of(timed, extract(bit, bit, one(wires)) == 1)

    def holds(wires: Wires) -> Boolean:
        return all_of(
            any_of(*(_owned_by(config, wires, *state) for state in _security_states(config))),
            *(
                implies(all_of(_owned_by(config, wires, *state), permits(wires, one, el)), permitted(wires))
                for one, el, state, permitted in terms
            ),
        )

    return holds


def _given(time: object) -> bool:
    return time is not None


def _owned_by(config: SPUConfig, wires: Wires, ns: int, nse: int) -> Boolean:
    """Return whether the registers name this Security state as the owner of the buffer."""
    if not config.el3:
        return boolean(True)
    owner = Part("control.previous_owner", BufferOwner)
    return all_of(owner["ns"](wires) == ns, *([owner["nse"](wires) == nse] if config.rme else []))
