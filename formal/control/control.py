"""What is permitted is `model.control`'s, and the previous branch target is that of `model.spu`."""

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import Any

from configurations import FEATURES, distinct
from spurtle.arch import PMSCR_EL1, PMSCR_EL2
from spurtle.config import CONFIGS, SPUConfig
from spurtle.gateware.control import ProfilingControl
from spurtle.gateware.previous_target import PreviousTarget
from spurtle.interface.pe_state import PEStateSignature
from spurtle_sim.model import control, pe
from spurtle_sim.model.pe import PEState
from spurtle_sim.model.registers import PMBLIMITR_E, Registers
from spurtle_sim.model.spu import ReferenceSPU

from ..engine.cover import reach_all
from ..engine.induction import Invariant
from ..engine.proof import Proof, ProvedBlock, Verdict
from ..engine.reference import Reference, follows
from ..engine.terms import Boolean, all_of, any_of, boolean
from ..engine.transition import Transition, Wires, transition

__all__ = [
    "ANSWERS",
    "cover",
    "promised",
    "proofs",
    "prove_branches",
    "prove_new_owner",
    "prove_permission",
    "prove_previous",
    "prove_time",
]

Permission = Callable[[SPUConfig, Registers, PEState], int]

ANSWERS: Mapping[str, Permission] = {
    # Looked up as it is asked, so that a test can put another in its place.
    "enabled": lambda *asked: control.profiling_enabled(*asked),
    "programmable": lambda config, _, state: pe.programmable(config, state),
    "collect.context_el1": lambda *asked: control.collect_contextidr_el1(*asked),
    "collect.context_el2": lambda *asked: control.collect_contextidr_el2(*asked),
    "collect.pa": lambda *asked: control.collect_physical_address(*asked),
    "collect.nv2_va": lambda *asked: control.collect_nv2_va(*asked),
}
"""What the reference says of each answer of `ProfilingControl`, but for the timestamp."""


def _state(config: SPUConfig) -> list[str]:
    """The PE's state, by wire."""
    return [f"pe__{name}" for name in PEStateSignature(config).members]


def _programmed(config: SPUConfig) -> list[str]:
    """What software controls, by wire."""
    return ["running", "pmscr", *(["pmscr_el2"] if config.el2 else [])]


def _pe(config: SPUConfig, wires: Mapping[str, int], prefix: str = "") -> PEState:
    return PEState(**{name: wires[f"{prefix}pe__{name}"] for name in PEStateSignature(config).members})


def _registers(running: int, pmscr: int, pmscr_el2: int = 0) -> Registers:
    """The buffer is enabled and not stopped, or it is not."""
    return Registers(PMBLIMITR_EL1=running * PMBLIMITR_E, PMSCR_EL1=pmscr, PMSCR_EL2=pmscr_el2)


def _asked(config: SPUConfig, wires: Mapping[str, int]) -> tuple[SPUConfig, Registers, PEState]:
    return config, _registers(*(wires[name] for name in _programmed(config))), _pe(config, wires)


def promised(config: SPUConfig) -> Invariant:
    """Bits of registers that are not implemented are zero: proved of the SPU. Without EL3 there is one Security state
    (`interface.pe_state.PEStateSignature`), so that a branch is of it, too.
    """

    def holds(wires: Wires) -> Boolean:
        terms = [wires["pmscr"] & ~config.writable(PMSCR_EL1) == 0]
        if config.el2:
            terms.append(wires["pmscr_el2"] & ~config.writable(PMSCR_EL2) == 0)
        if config.pbt and not config.el3:
            terms.append(wires["branch__ns"] == wires["pe__ns"])
        return all_of(*terms)

    return holds


def _answers(config: SPUConfig, system: Transition, reference: Reference, *more: str, assuming: Invariant) -> Verdict:
    arguments = [*_programmed(config), *_state(config), *more]
    return follows(system, reference, arguments=arguments, assuming=assuming, latency=0)


def prove_permission(answer: str, config: SPUConfig, system: Transition) -> Verdict:
    """One of ANSWERS. `system` is a `ProfilingControl` of `config`."""

    def asked(wires: Wires) -> Boolean:
        # At EL0 the registers are UNDEFINED: nobody asks.
        return all_of(promised(config)(wires), any_of(answer != "programmable", wires["pe__el"] != 0))

    return _answers(config, system, lambda wires: {answer: ANSWERS[answer](*_asked(config, wires))}, assuming=asked)


def prove_time(config: SPUConfig, system: Transition) -> Verdict:
    """Whether the timestamp may be collected, and what is taken off the system counter if it is. `system` is a
    `ProfilingControl` of `config`.
    """

    def collected(wires: Mapping[str, int]) -> Mapping[str, int]:
        time = control.timestamp(*_asked(config, wires))
        if time is None:
            return {"collect.timestamp": 0}
        count = wires["pe__physical_count"]
        told = {"offset": count - time & (1 << 64) - 1} if config.el2 else {"pe__physical_count": time}
        return {"collect.timestamp": 1, **told}

    return _answers(config, system, collected, assuming=promised(config))


def prove_branches(config: SPUConfig, system: Transition) -> Verdict:
    """Whether profiling is enabled where a branch was executed. `system` is a `ProfilingControl` of `config`."""
    where = ["el", "ns", *(["nse"] if config.rme else []), "aarch32"]

    def profiled(wires: Mapping[str, int]) -> Mapping[str, int]:
        executed = {"nse": 0} | {name: wires[f"branch__{name}"] for name in where}
        return {"branch_enabled": control.branch_profiled(*_asked(config, wires), **executed)}

    branch = (f"branch__{name}" for name in where)
    return _answers(config, system, profiled, *branch, assuming=promised(config))


def prove_new_owner(config: SPUConfig, system: Transition) -> Verdict:
    """Of three cycles, the last one tells whether the Profiling Buffer went to another owner from the first to the
    second. `system` is a `ProfilingControl` of `config`.
    """

    def told(wires: Mapping[str, int]) -> Mapping[str, int]:
        spu = ReferenceSPU(config)
        spu.own(_pe(config, wires, "before__"))
        return {"new_owner": spu.own(_pe(config, wires))}

    def runs(wires: Wires) -> Boolean:
        return wires["rst"] == 0

    now = _state(config)
    before = {f"before__{name}": name for name in now}
    return follows(
        system,
        told,
        arguments=[*before, *now],
        assuming=runs,
        assuming_between=runs,
        latency=2,
        argument_latency=dict.fromkeys(now, 1),
        wire_names=before,
    )


def previous_target(config: SPUConfig) -> Reference:
    """What a cycle does to the previous branch target: nothing is asked about a target that is none."""

    def cycle(
        rst: int, branch__valid: int, branch__target: Any, enabled: int, new_owner: int, valid: int, target: Any
    ) -> Mapping[str, Any]:
        if rst:
            return {"valid": 0}
        spu = ReferenceSPU(config)
        state = PEState()
        spu.own(state)
        # Where the branch was executed profiling is enabled if the buffer is.
        spu.registers = _registers(enabled, PMSCR_EL1.fields["E0SPE"].mask)
        # A target is handed on as it is.
        spu.previous_target = target if valid else None
        if branch__valid:
            spu.take_branch(branch__target, pe=state, el=0, ns=1)
        if new_owner:
            spu.own(_others(config))
        told = spu.previous_target
        return {"valid": 0} if told is None else {"valid": 1, "target": told}

    return cycle


def _others(config: SPUConfig) -> PEState:
    """A state in which Non-secure EL1 does not own the Profiling Buffer."""
    return PEState(mdcr_el3_nspb=0) if config.el3 else PEState(mdcr_el2_e2pb=0)


def prove_previous(config: SPUConfig, system: Transition) -> Verdict:
    """`system` is a `PreviousTarget` of `config`. Without EL2 and EL3 the buffer has one owner."""

    def owned(wires: Wires) -> Boolean:
        return boolean(True) if config.several_owners else wires["new_owner"] == 0

    wire_names = {"valid": "previous.valid", "target": "previous.target"}
    return follows(system, previous_target(config), assuming=owned, wire_names=wire_names)


def _covers(config: SPUConfig) -> Iterator[tuple[str, Invariant]]:
    """Each answer both ways, each state that is profiled, each kind of time: name, goal."""
    answers = {
        "enabled": True,
        "programmable": config.several_owners,
        "collect.context_el1": True,
        "collect.context_el2": config.el2,
        "collect.timestamp": True,
        "collect.pa": True,
        "collect.nv2_va": config.nv2,
        "branch_enabled": config.pbt,
    }
    for answer in (answer for answer, there in answers.items() if there):
        for value in (0, 1):
            yield f"{answer} is {value}", lambda wires, answer=answer, value=value: wires[answer] == value

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

    offsets = {"cntvoff_el2": config.el2, "cntpoff_el2": config.ecv_poff}
    for name in (name for name, there in offsets.items() if there):
        yield (
            f"{name} is taken off",
            lambda wires, name=name: all_of(wires["collect.timestamp"] == 1, wires["offset"] == wires[f"pe__{name}"]),
        )
    if config.several_owners:
        yield "another owner", lambda wires: wires["new_owner"] == 1


def cover(config: SPUConfig, system: Transition) -> Verdict:
    """Every goal."""
    return reach_all(system, ((name, goal, promised(config)) for name, goal in _covers(config)), cycles=2)


@cache
def _system(config: SPUConfig) -> Transition:
    return transition(ProfilingControl(config))


_CHANGING = "el2 el3 sel2 ecv ecv_poff rme nv2 pbt"
"""What of a configuration changes what is permitted."""


def proofs() -> Iterator[Proof]:
    """For each configuration that has other permissions."""
    for config in distinct((*CONFIGS.values(), *FEATURES.values()), _CHANGING):
        proof = ProvedBlock("control", config, _system).proof
        for answer in ANSWERS:
            if answer == "programmable" and not config.several_owners:
                continue
            yield proof(f"{answer} matches the reference", "reference", partial(prove_permission, answer))
        yield proof("the timestamp matches the reference", "reference", prove_time)
        if config.several_owners:
            yield proof("a new owner is reported in the next cycle", "reference", prove_new_owner)
        if config.pbt:
            yield proof("branch_enabled matches the reference", "reference", prove_branches)
            previous = ProvedBlock("control", config, lambda config: transition(PreviousTarget(config)))
            yield previous.proof("the previous branch target matches the reference", "reference", prove_previous)
        yield proof("cover: each output, each profiled state, each timestamp offset", "bounded search", cover)
