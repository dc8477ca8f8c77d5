"""System register accesses: outcome, accessed register, values and effects match `model.registers`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

from configurations import FEATURES, distinct
from spurtle.arch import PMBIDR_EL1, PMSCR_EL1, PMSCR_EL2, PMSCR_EL12, REGISTERS, PMSVer, Register
from spurtle.config import CONFIGS, SPUConfig
from spurtle.gateware.register_access import ACCESS_INPUTS, RegisterAccess, port_name
from spurtle.gateware.registers import RegisterFile
from spurtle.interface.pe_state import FineGrainedTrapsLayout, PEStateSignature
from spurtle.interface.sysreg import ACCESS_LATENCY
from spurtle_sim.model import registers
from spurtle_sim.model.pe import PEState
from spurtle_sim.model.registers import Outcome, Registers

from ..engine.cover import satisfiable
from ..engine.proof import Proof, ProvedBlock, Result, Verdict
from ..engine.reference import follows
from ..engine.terms import Boolean, all_of, any_of
from ..engine.transition import Transition, Wires, transition

__all__ = [
    "WITHOUT_EL3",
    "WITHOUT_FGT2",
    "cover",
    "cover_performed",
    "fine_grained_register",
    "proofs",
    "prove",
    "prove_performed",
]

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


def _writable(config: SPUConfig) -> list[Register]:
    return [register for register in config.registers if not register.read_only]


def _one_hot(registers: Sequence[Register], register: Register | None) -> int:
    return 1 << registers.index(register) if register in registers else 0


def _targets(config: SPUConfig, register: Register | None, write: int) -> dict[str, int]:
    """Return `reads` and `writes` of an access to `register`."""
    # Products, not conditions: with a condition on `write` the reference would have more paths.
    return {
        "reads": (1 - write) * _one_hot(config.registers, register),
        "writes": write * _one_hot(_writable(config), register),
    }


def _no_reset(wires: Wires) -> Boolean:
    return wires["rst"] == 0


def prove(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that the outcome and the register that is read or written match the reference.

    `system` is a `RegisterAccess` of `config`.
    """

    def access(wires: Mapping[str, int]) -> Mapping[str, int]:
        if wires["valid"] == 1:
            for register in config.accessors:
                if all(wires[part] == getattr(register, part) for part in _ENCODING):
                    # The function is looked up at each call, so that a test can replace it.
                    outcome, accessed = registers.access(config, register, wires["write"], _pe(config, wires))
                    return {"outcome": outcome, **_targets(config, accessed, wires["write"])}
        return {"outcome": Outcome.UNDEFINED, **_targets(config, None, 0)}

    state = (f"pe__{name}" for name in PEStateSignature(config).members)
    return follows(
        system,
        access,
        arguments=["valid", "write", *_ENCODING, *state],
        assuming=_no_reset,
        assuming_between=_no_reset,
        latency=ACCESS_LATENCY - 1,
    )


def prove_performed(config: SPUConfig, system: Transition) -> Verdict:
    """Prove read data, written registers and strobes of an access that has been checked. `system` is a `RegisterFile`.

    `RegisterAccess` receives the access, and `prove` covers its results. All bits of a value that is read are those of
    one cycle, in which the register shows each earlier write. Registers do not change without a write.
    """
    performed = ACCESS_LATENCY - 1
    ports = {register.name: port_name(register) for register in _writable(config)}
    stored = {name: port for name, port in ports.items() if port not in system.inputs}
    strobes = [port for port in ports.values() if f"{port}_write" in system.outputs]
    state = [f"pe__{name}" for name in PEStateSignature(config).members]
    sources = {f"access.{name}": f"port__{name}" for name in ACCESS_INPUTS}
    # Yosys removes the members of `pe` that no access depends on.
    sources |= {f"access.{name}": name for name in state if f"access.{name}" in system.wires(0)}

    def perform(wires: Mapping[str, int]) -> Mapping[str, int]:
        values = Registers(**{name: wires[port] for name, port in ports.items()})
        rdata, written = 0, None
        for register in config.registers:
            if wires["access.reads"] == _one_hot(config.registers, register):
                rdata = values.read(config, register, PEState(el=3))  # a state in which PMBIDR_EL1.P is zero
                if register is PMBIDR_EL1 and config.several_owners and wires["programmable"] == 0:
                    rdata |= PMBIDR_EL1.fields["P"].mask
        for register in _writable(config):
            if wires["access.writes"] == _one_hot(_writable(config), register):
                written = port_name(register)
                values.write(config, register, wires["port__wdata"])
        return {
            "port__outcome": wires["access.outcome"],
            "port__rdata": rdata,
            "wdata": wires["port__wdata"],
            **{port: getattr(values, name) for name, port in stored.items()},
            **{f"{port}_write": 1 if port == written else 0 for port in strobes},
            **{name: wires[source] for name, source in sources.items()},
        }

    now = ["port__wdata", *sources.values(), *(["programmable"] if config.several_owners else [])]
    later = [*ports.values(), "access.outcome", "access.reads", "access.writes"]
    return follows(
        system,
        perform,
        arguments=[*now, *later],
        argument_latency=dict.fromkeys(later, performed),
        assuming=_no_reset,
        assuming_between=partial(_consistent, config),
        latency={
            **dict.fromkeys(("port__outcome", "port__rdata", *stored.values()), ACCESS_LATENCY),
            **dict.fromkeys(("wdata", *(f"{port}_write" for port in strobes)), performed),
            **dict.fromkeys(sources, 0),
        },
    )


def _consistent(config: SPUConfig, wires: Wires) -> Boolean:
    """Return whether an access reads or writes at most one register, as `prove` covers."""
    reads = [wires["access.reads"] == _one_hot(config.registers, register) for register in (None, *config.registers)]
    writes = [wires["access.writes"] == _one_hot(_writable(config), one) for one in (None, *_writable(config))]
    return all_of(_no_reset(wires), any_of(*reads), any_of(*writes), any_of(reads[0], writes[0]))


def _covers(config: SPUConfig) -> Iterator[tuple[str, Register, Mapping[str, int]]]:
    """Yield name, accessor, and results of an access: each register that it can access, and each outcome."""
    accesses = [(register, register) for register in config.registers]
    if config.el2:
        accesses += [(PMSCR_EL1, PMSCR_EL2), (PMSCR_EL12, PMSCR_EL1)]
    for name, register in accesses:
        for write in range(1 if register.read_only else 2):
            access = f"{'MSR' if write else 'MRS'} {name.name} accesses {register.name}"
            yield access, name, _targets(config, register, write)
    for register in config.accessors:
        trapped = config.el2 and (register.trap or (config.fgt and register.fine_grained))
        outcomes = {
            Outcome.UNDEFINED: True,
            Outcome.TRAP_EL2: trapped,
            Outcome.TRAP_EL3: config.el3 and (register.owned or register.enable),
        }
        for outcome in (outcome for outcome, possible in outcomes.items() if possible):
            yield f"{register.name}: {outcome.name}", register, {"outcome": outcome}


def cover(config: SPUConfig, system: Transition) -> Verdict:
    """Reach each register and each outcome through each accessor. `system` is a `RegisterAccess` of `config`.

    From any state: the results depend only on the inputs of the cycle of the access.
    """

    def reached(register: Register, results: Mapping[str, int], *cycles: Wires) -> Boolean:
        access, *_, performed = cycles
        return all_of(
            *map(_no_reset, cycles),
            access["valid"] == 1,
            *(access[part] == getattr(register, part) for part in _ENCODING),
            *(performed[name] == value for name, value in results.items()),
        )

    return _satisfiable(system, {name: partial(reached, *rest) for name, *rest in _covers(config)}, ACCESS_LATENCY)


def cover_performed(config: SPUConfig, system: Transition) -> Verdict:
    """Read all implemented bits of each register as one, after a write in the cycle before if it is writable.

    `system` is a `RegisterFile` of `config`.
    """

    def reads(register: Register, *cycles: Wires) -> Boolean:
        written, read, result = cycles
        terms = [read["access.reads"] == _one_hot(config.registers, register), *map(_no_reset, cycles)]
        if register.read_only:
            return all_of(*terms, result["port__rdata"] != 0)
        ones = config.writable(register)
        write = written["access.writes"] == _one_hot(_writable(config), register)
        return all_of(*terms, write, written["wdata"] & ones == ones, result["port__rdata"] & ones == ones)

    return _satisfiable(system, {register.name: partial(reads, register) for register in config.registers}, 3)


def _satisfiable(system: Transition, relations: Mapping[str, Callable[..., Boolean]], cycles: int) -> Verdict:
    """Return the verdict of the first relation that is not satisfiable, or PASS."""
    for name, relation in relations.items():
        verdict = satisfiable(system, relation, cycles=cycles)
        if verdict.result is not Result.PASS:
            return replace(verdict, evidence=f"{name}: {verdict.evidence}")
    return Verdict(Result.PASS, cycles - 1)


@cache
def _access(config: SPUConfig) -> Transition:
    return transition(RegisterAccess(config))


@cache
def _file(config: SPUConfig) -> Transition:
    return transition(RegisterFile(config))


WITHOUT_FGT2 = replace(CONFIGS["neoverse_n1"], name="neoverse_n1_fgt", fgt=True)
WITHOUT_EL3 = replace(
    WITHOUT_FGT2, name="neoverse_n1_fgt2", version=PMSVer.SPE_V1P3, fne=True, fds=True, el3=False, fgt2=True
)
_DECIDING = "fne fds el2 el3 sel2 rme fgt fgt2"
"""Members of a configuration that change the registers or the outcome of accesses."""


def proofs() -> Iterator[Proof]:
    """Yield the proofs, for each configuration with different registers or traps."""
    configs = (*CONFIGS.values(), *FEATURES.values(), WITHOUT_FGT2, WITHOUT_EL3)
    for config in distinct(configs, _DECIDING):
        access = ProvedBlock("registers", config, _access).proof
        yield access("the outcome of an access matches the reference", "reference", prove)
        yield access("cover: each outcome of each register", "any cycle", cover)
        file = ProvedBlock("registers", config, _file).proof
        yield file("read data and written registers match the reference", "reference", prove_performed)
        yield file("cover: each register is written and read", "any cycle", cover_performed)
