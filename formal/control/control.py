"""Profiling control: its outputs match `model.control`, and the previous branch target matches `model.spu`.

The reference of a cycle has the System registers of the previous cycle, and the state of the operation and of the
buffer of this cycle.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import Any

from configurations import FEATURES, distinct
from spurtle.arch import PMSCR_EL1, PMSCR_EL2
from spurtle.config import CONFIGS, SPUConfig
from spurtle.gateware.control import ProfilingControl
from spurtle.gateware.previous_target import PreviousTarget
from spurtle.interface.pe_state import PROFILING_CONTROLS, PEStateSignature
from spurtle_sim.model import control, pe
from spurtle_sim.model.pe import PEState
from spurtle_sim.model.registers import PMBLIMITR_E, Registers
from spurtle_sim.model.spu import ReferenceSPU

from ..engine.cover import reach_all
from ..engine.induction import Invariant
from ..engine.proof import Proof, ProvedBlock, Verdict
from ..engine.reference import Reference, follows
from ..engine.terms import Boolean, all_of, boolean
from ..engine.transition import Transition, Wires, transition

__all__ = [
    "PERMISSIONS",
    "cover",
    "input_contract",
    "proofs",
    "prove_branches",
    "prove_new_owner",
    "prove_permission",
    "prove_previous",
    "prove_time",
]

Permission = Callable[[SPUConfig, Registers, PEState], int]

PERMISSIONS: Mapping[str, Permission] = {
    # The functions are looked up at each call, so that a test can replace them.
    "enabled": lambda *inputs: control.profiling_enabled(*inputs),
    "programmable": lambda config, _, state: pe.programmable(config, state),
    "collect.context_el1": lambda *inputs: control.collect_contextidr_el1(*inputs),
    "collect.context_el2": lambda *inputs: control.collect_contextidr_el2(*inputs),
    "collect.pa": lambda *inputs: control.collect_physical_address(*inputs),
    "collect.nv2_va": lambda *inputs: control.collect_nv2_va(*inputs),
}
"""Reference of each output of `ProfilingControl`, except for the timestamp."""

_REGISTERS = ("pmscr", "pmscr_el2", *(f"pe__{name}" for name in PROFILING_CONTROLS))
"""Wires that take effect one cycle later."""


def _state(config: SPUConfig) -> list[str]:
    """Return the names of the wires of the PE's state."""
    return [f"pe__{name}" for name in PEStateSignature(config).members]


def _programmed(config: SPUConfig) -> list[str]:
    """Return the names of the wires that software controls."""
    return ["running", "pmscr", *(["pmscr_el2"] if config.el2 else [])]


def _pe(config: SPUConfig, wires: Mapping[str, int], prefix: str = "") -> PEState:
    return PEState(**{name: wires[f"{prefix}pe__{name}"] for name in PEStateSignature(config).members})


def _registers(running: int, pmscr: int, pmscr_el2: int = 0) -> Registers:
    """Return the registers of the reference. `running`: the buffer is enabled and not stopped."""
    return Registers(PMBLIMITR_EL1=running * PMBLIMITR_E, PMSCR_EL1=pmscr, PMSCR_EL2=pmscr_el2)


def _inputs(config: SPUConfig, wires: Mapping[str, int]) -> tuple[SPUConfig, Registers, PEState]:
    running, *programmed = (wires[name] for name in _programmed(config))
    # Operations in the cycle after a change of the owner are not profiled.
    if config.several_owners and wires["new_owner"] == 1:
        running = 0
    return config, _registers(running, *programmed), _pe(config, wires)


def input_contract(config: SPUConfig) -> Invariant:
    """Return the contract of the inputs.

    Register bits that are not implemented are zero, as is proved for the SPU. There is no reset, which would clear the
    permissions.
    """

    def holds(wires: Wires) -> Boolean:
        terms = [wires["rst"] == 0, wires["pmscr"] & ~config.writable(PMSCR_EL1) == 0]
        if config.el2:
            terms.append(wires["pmscr_el2"] & ~config.writable(PMSCR_EL2) == 0)
        return all_of(*terms)

    return holds


def _follows(config: SPUConfig, system: Transition, reference: Reference, *more: str) -> Verdict:
    arguments = [*_programmed(config), *_state(config), *(["new_owner"] if config.several_owners else []), *more]
    return follows(
        system,
        reference,
        arguments=arguments,
        assuming=input_contract(config),
        argument_latency={name: 1 for name in arguments if name not in _REGISTERS},
    )


def _profiled(config: SPUConfig, wires: Mapping[str, int]) -> bool:
    """Return whether profiling is enabled, so that the permissions to collect are used."""
    return bool(control.profiling_enabled(*_inputs(config, wires)))


def prove_permission(output: str, config: SPUConfig, system: Transition) -> Verdict:
    """Prove that an output in PERMISSIONS matches the reference. `system` is a `ProfilingControl` of `config`."""

    def permitted(wires: Mapping[str, int]) -> Mapping[str, int]:
        # At EL0 the registers are UNDEFINED and `programmable` is not used.
        if output == "programmable" and wires["pe__el"] == 0:
            return {}
        if output.startswith("collect") and not _profiled(config, wires):
            return {}
        return {output: PERMISSIONS[output](*_inputs(config, wires))}

    return _follows(config, system, permitted)


def prove_time(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that the timestamp matches the reference. `system` is a `ProfilingControl` of `config`.

    The outputs are the permission to collect it, and the offset that is subtracted from the system counter.
    """

    def collected(wires: Mapping[str, int]) -> Mapping[str, int]:
        if not _profiled(config, wires):
            return {}
        time = control.timestamp(*_inputs(config, wires))
        if time is None:
            return {"collect.timestamp": 0}
        count = wires["pe__physical_count"]
        if not config.el2:
            return {"collect.timestamp": 1, "pe__physical_count": time}
        offset = count - time & (1 << 64) - 1
        if wires["subtract_offset"]:
            return {"collect.timestamp": 1, "offset": offset}
        return {"collect.timestamp": 1, "subtract_offset": 1 if offset != 0 else 0}

    return _follows(config, system, collected, *(["subtract_offset"] if config.el2 else []))


def prove_branches(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that `branch_enabled` matches the reference. `system` is a `ProfilingControl` of `config`."""
    where = ["el", "ns", *(["nse"] if config.rme else []), "aarch32"]

    def profiled(wires: Mapping[str, int]) -> Mapping[str, int]:
        executed = {"nse": 0} | {name: wires[f"branch__{name}"] for name in where}
        return {"branch_enabled": control.branch_profiled(*_inputs(config, wires), **executed)}

    branch = (f"branch__{name}" for name in where)
    return _follows(config, system, profiled, *branch)


def prove_new_owner(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that `new_owner` reports a change of the owning translation regime in the next cycle.

    In three cycles, the last one reports whether the owner changed from the first to the second. `system` is a
    `ProfilingControl` of `config`.
    """

    def reported(wires: Mapping[str, int]) -> Mapping[str, int]:
        spu = ReferenceSPU(config)
        spu.update_owner(_pe(config, wires, "before__"))
        return {"new_owner": spu.update_owner(_pe(config, wires))}

    def runs(wires: Wires) -> Boolean:
        return wires["rst"] == 0

    now = _state(config)
    before = {f"before__{name}": name for name in now}
    return follows(
        system,
        reported,
        arguments=[*before, *now],
        assuming=runs,
        assuming_between=runs,
        latency=2,
        argument_latency=dict.fromkeys(now, 1),
        wire_names=before,
    )


def previous_target(config: SPUConfig) -> Reference:
    """Return the reference of one cycle of the previous branch target. An invalid target is not compared."""

    def cycle(
        rst: int, branch__valid: int, branch__target: Any, enabled: int, new_owner: int, valid: int, target: Any
    ) -> Mapping[str, Any]:
        if rst:
            return {"valid": 0}
        spu = ReferenceSPU(config)
        state = PEState()
        spu.update_owner(state)
        # With these registers, profiling is enabled where the branch was executed exactly if the buffer is enabled.
        spu.registers = _registers(enabled, PMSCR_EL1.fields["E0SPE"].mask)
        # The reference passes a target on unchanged, so it may be symbolic.
        spu.previous_target = target if valid else None
        if branch__valid:
            spu.take_branch(branch__target, pe=state, el=0, ns=1)
        if new_owner:
            spu.update_owner(_others(config))
        following = spu.previous_target
        return {"valid": 0} if following is None else {"valid": 1, "target": following}

    return cycle


def _others(config: SPUConfig) -> PEState:
    """Return a state in which Non-secure EL1 does not own the Profiling Buffer."""
    return PEState(mdcr_el3_nspb=0) if config.el3 else PEState(mdcr_el2_e2pb=0)


def prove_previous(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that the previous branch target matches the reference. `system` is a `PreviousTarget` of `config`.

    Without EL2 and EL3 the buffer has one owner, so `new_owner` is never asserted.
    """

    def owned(wires: Wires) -> Boolean:
        return boolean(True) if config.several_owners else wires["new_owner"] == 0

    wire_names = {"valid": "previous.valid", "target": "previous.target"}
    return follows(system, previous_target(config), assuming=owned, wire_names=wire_names)


def _output_covers(config: SPUConfig) -> Iterator[tuple[str, Invariant]]:
    """Yield name and goal: both values of each output, while it is used."""
    outputs = {
        "enabled": True,
        "programmable": config.several_owners,
        "collect.context_el1": True,
        "collect.context_el2": config.el2,
        "collect.timestamp": True,
        "collect.pa": True,
        "collect.nv2_va": config.nv2,
        "branch_enabled": config.pbt,
    }
    for output in (output for output, present in outputs.items() if present):
        for value in (0, 1):

            def driven(wires: Wires, output: str = output, value: int = value) -> Boolean:
                used = wires["enabled"] == 1 if output.startswith("collect") else boolean(True)
                return all_of(used, wires[output] == value)

            yield f"{output} is {value}", driven


def _state_covers(config: SPUConfig) -> Iterator[tuple[str, Invariant]]:
    """Yield name and goal: each profiled state, and profiling by a register of the previous cycle."""
    levels = PMSCR_EL1.fields["E0SPE"].mask | PMSCR_EL1.fields["E1SPE"].mask
    for value, name in ((1, "enabled after PMSCR_EL1 changes"), (0, "disabled after PMSCR_EL1 changes")):

        def late(wires: Wires, value: int = value) -> Boolean:
            below_el2 = all_of(wires["running"] == 1, wires["pe__el"] == 1)
            return all_of(below_el2, wires["enabled"] == value, wires["pmscr"] == (0 if value else levels))

        yield name, late

    states = {"Non-secure": {"ns": 1}, "Secure": {"ns": 0}}
    if config.rme:
        states = {"Non-secure": {"ns": 1, "nse": 0}, "Secure": {"ns": 0, "nse": 0}, "Realm": {"ns": 1, "nse": 1}}
    for name, state in states.items():
        for el in range(3 if config.el2 and (name != "Secure" or config.sel2) else 2):

            def profiled(wires: Wires, state: Mapping[str, int] = state, el: int = el) -> Boolean:
                return all_of(
                    *(wires[f"pe__{part}"] == value for part, value in {"el": el, **state}.items()),
                    wires["enabled"] == 1,
                )

            yield f"{name} EL{el} is profiled", profiled


def _time_covers(config: SPUConfig) -> Iterator[tuple[str, Invariant]]:
    """Yield name and goal: each kind of timestamp."""
    offsets = {"cntvoff_el2": config.el2, "cntpoff_el2": config.ecv_poff}
    for name in (name for name, present in offsets.items() if present):
        yield (
            f"{name} is subtracted",
            lambda wires, name=name: all_of(
                wires["enabled"] == 1,
                wires["collect.timestamp"] == 1,
                wires["subtract_offset"] == 1,
                wires["offset"] == wires[f"pe__{name}"],
                *(wires["offset"] != wires[f"pe__{other}"] for other in offsets if other != name and offsets[other]),
            ),
        )
    if config.el2:
        yield (
            "no offset is subtracted",
            lambda wires: all_of(wires["enabled"] == 1, wires["collect.timestamp"] == 1, wires["subtract_offset"] == 0),
        )


def _covers(config: SPUConfig) -> Iterator[tuple[str, Invariant]]:
    """Yield name and goal: both values of each output, each profiled state, each kind of timestamp."""
    yield from _output_covers(config)
    yield from _state_covers(config)
    yield from _time_covers(config)
    if config.several_owners:
        yield "a change of owner", lambda wires: wires["new_owner"] == 1


def cover(config: SPUConfig, system: Transition) -> Verdict:
    """Reach every goal."""
    return reach_all(system, ((name, goal, input_contract(config)) for name, goal in _covers(config)), cycles=2)


@cache
def _system(config: SPUConfig) -> Transition:
    return transition(ProfilingControl(config))


_CHANGING = "el2 el3 sel2 ecv ecv_poff rme nv2 pbt"
"""Members of a configuration that change the profiling control."""


def proofs() -> Iterator[Proof]:
    """Yield the proofs, for each configuration with a different profiling control."""
    for config in distinct((*CONFIGS.values(), *FEATURES.values()), _CHANGING):
        proof = ProvedBlock("control", config, _system).proof
        for output in PERMISSIONS:
            if output == "programmable" and not config.several_owners:
                continue
            yield proof(f"{output} matches the reference", "reference", partial(prove_permission, output))
        yield proof("the timestamp matches the reference", "reference", prove_time)
        if config.several_owners:
            yield proof("a new owner is reported in the next cycle", "reference", prove_new_owner)
        if config.pbt:
            yield proof("branch_enabled matches the reference", "reference", prove_branches)
            previous = ProvedBlock("control", config, lambda config: transition(PreviousTarget(config)))
            yield previous.proof("the previous branch target matches the reference", "reference", prove_previous)
        yield proof("cover: each output, each profiled state, each timestamp offset", "bounded search", cover)
