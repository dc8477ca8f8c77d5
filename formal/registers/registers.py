"""System register accesses: outcome and accessed register match `model.registers`."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache, partial

from configurations import FEATURES, distinct
from spurtle.arch import PMSCR_EL1, PMSCR_EL2, PMSCR_EL12, REGISTERS, PMSVer, Register
from spurtle.config import CONFIGS, SPUConfig
from spurtle.gateware.registers import RegisterAccess
from spurtle.interface.pe_state import FineGrainedTrapsLayout, PEStateSignature
from spurtle_sim.model import registers
from spurtle_sim.model.pe import PEState
from spurtle_sim.model.registers import Outcome

from ..engine.cover import reach_all
from ..engine.induction import Invariant
from ..engine.proof import Proof, ProvedBlock, Verdict
from ..engine.reference import follows
from ..engine.terms import Boolean, all_of
from ..engine.transition import Transition, Wires, transition

__all__ = ["WITHOUT_EL3", "WITHOUT_FGT2", "cover", "fine_grained_register", "proofs", "prove"]

_BITS = {register.fine_grained.name: register.fine_grained.bit for register in REGISTERS if register.fine_grained}


def fine_grained_register(layout: FineGrainedTrapsLayout, fields: int) -> int:
    """Return the fine-grained trap register with these fields. Other fields are zero."""
    register = 0
    for name, field in layout:
        register = register | ((fields >> field.offset) & 1) << _BITS[name]
    return register


def _pe(config: SPUConfig, wires: Mapping[str, int]) -> PEState:
    members = PEStateSignature(config).members
    state = {name: wires[f"pe__{name}"] for name in members}
    for name, member in members.items():
        if isinstance(member.shape, FineGrainedTrapsLayout):
            state[name] = fine_grained_register(member.shape, state[name])
    return PEState(**state)


_ENCODING = ("op1", "crn", "crm", "op2")


def _target(config: SPUConfig, register: Register | None) -> int:
    return 1 << config.registers.index(register) if register else 0


def prove(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that outcome and target match the reference. `system` is a `RegisterAccess` of `config`."""

    def access(wires: Mapping[str, int]) -> Mapping[str, int]:
        for register in config.accessors:
            if all(wires[part] == getattr(register, part) for part in _ENCODING):
                # The function is looked up at each call, so that a test can replace it.
                outcome, accessed = registers.access(config, register, wires["write"], _pe(config, wires))
                return {"outcome": outcome, "target": _target(config, accessed)}
        return {"outcome": Outcome.UNDEFINED, "target": 0}

    state = (f"pe__{name}" for name in PEStateSignature(config).members)
    return follows(system, access, arguments=["write", *_ENCODING, *state], latency=0)


def _covers(config: SPUConfig) -> Iterator[tuple[str, Invariant, Invariant]]:
    """Yield name, goal and assumption: each register that an accessor can access, and each outcome of each accessor."""
    accesses = [(register, register) for register in config.registers]
    if config.el2:
        accesses += [(PMSCR_EL1, PMSCR_EL2), (PMSCR_EL12, PMSCR_EL1)]
    for name, register in accesses:
        for write in range(1 if register.read_only else 2):
            yield (
                f"{'MSR' if write else 'MRS'} {name.name} accesses {register.name}",
                lambda wires, write=write, register=register: all_of(
                    wires["write"] == write, wires["target"] == _target(config, register)
                ),
                partial(_named, name),
            )
    for register in config.accessors:
        trapped = config.el2 and (register.trap or (config.fgt and register.fine_grained))
        outcomes = {
            Outcome.UNDEFINED: True,
            Outcome.TRAP_EL2: trapped,
            Outcome.TRAP_EL3: config.el3 and (register.owned or register.enable),
        }
        for outcome in (outcome for outcome, possible in outcomes.items() if possible):
            yield (
                f"{register.name}: {outcome.name}",
                lambda wires, outcome=outcome: wires["outcome"] == outcome,
                partial(_named, register),
            )


def _named(register: Register, wires: Wires) -> Boolean:
    return all_of(*(wires[part] == getattr(register, part) for part in _ENCODING))


def cover(config: SPUConfig, system: Transition) -> Verdict:
    """Reach every goal."""
    return reach_all(system, _covers(config), cycles=0)


@cache
def _system(config: SPUConfig) -> Transition:
    return transition(RegisterAccess(config))


WITHOUT_FGT2 = replace(CONFIGS["neoverse_n1"], name="neoverse_n1_fgt", fgt=True)
WITHOUT_EL3 = replace(
    WITHOUT_FGT2, name="neoverse_n1_fgt2", version=PMSVer.SPE_V1P3, fne=True, fds=True, el3=False, fgt2=True
)
_DECIDING = "fne fds el2 el3 sel2 rme fgt fgt2"
"""Members of a configuration that change the outcome of accesses."""


def proofs() -> Iterator[Proof]:
    """Yield the proofs, for each configuration with different registers or traps."""
    configs = (*CONFIGS.values(), *FEATURES.values(), WITHOUT_FGT2, WITHOUT_EL3)
    for config in distinct(configs, _DECIDING):
        proof = ProvedBlock("registers", config, _system).proof
        yield proof("the outcome of an access matches the reference", "reference", prove)
        yield proof("cover: each outcome of each register", "any cycle", cover)
