"""What is permitted is `reference.control`'s, and the previous branch target is that of `reference.spu`."""

from collections.abc import Iterator, Mapping
from functools import cache

from spurtle.arch import PMSCR_EL1
from spurtle.config import CONFIGS, SPUConfig
from spurtle.control import Collect, Control
from spurtle.previous import PreviousTarget
from spurtle_sim.reference import control
from spurtle_sim.reference.control import PEState
from spurtle_sim.reference.registers import PMBLIMITR_E, Registers
from spurtle_sim.reference.spu import SPU

from ..features import FEATURES, distinct
from ..induction import Reference, follows
from ..proof import Proof, Verdict
from ..transition import Transition, transition

__all__ = ["proofs", "prove_branches", "prove_permissions", "prove_previous"]


def _registers(running: int, pmscr: int) -> Registers:
    """The buffer is enabled and not stopped, or it is not."""
    return Registers(PMBLIMITR_EL1=running * PMBLIMITR_E, PMSCR_EL1=pmscr)


def prove_permissions(config: SPUConfig, system: Transition) -> Verdict:
    """Whether profiling is enabled, and what may be collected. `system` is a `Control` of `config`."""

    def permitted(running: int, pmscr: int, **state: int) -> Mapping[str, int]:
        registers, pe = _registers(running, pmscr), PEState(**state)
        collect = {
            "context_el1": control.collect_contextidr_el1(registers, pe),
            "timestamp": control.collect_timestamp(registers),
            "pa": control.collect_physical_address(registers),
        }
        # Without EL2 nothing else is collected.
        bits = sum(1 << field.offset for name, field in Collect.as_shape() if collect.get(str(name)))
        return {"enabled": control.profiling_enabled(registers, pe), "collect": bits}

    def without(running, pmscr, pe__el, pe__ns, pe__debug, pe__aarch32):
        return permitted(running, pmscr, el=pe__el, ns=pe__ns, debug=pe__debug, aarch32=pe__aarch32)

    def realm(running, pmscr, pe__el, pe__ns, pe__nse, pe__debug, pe__aarch32):
        return permitted(running, pmscr, el=pe__el, ns=pe__ns, nse=pe__nse, debug=pe__debug, aarch32=pe__aarch32)

    return follows(system, realm if config.rme else without, latency=0)


def prove_branches(config: SPUConfig, system: Transition) -> Verdict:
    """Whether profiling is enabled where a branch was executed. `system` is a `Control` of `config`."""

    def profiled(running: int, pmscr: int, *state: int) -> Mapping[str, int]:
        return {"branch_enabled": control.branch_profiled(_registers(running, pmscr), *state)}

    def without(running, pmscr, branch__el, branch__ns, branch__aarch32):
        return profiled(running, pmscr, branch__el, branch__ns, 0, branch__aarch32)

    def realm(running, pmscr, branch__el, branch__ns, branch__nse, branch__aarch32):
        return profiled(running, pmscr, branch__el, branch__ns, branch__nse, branch__aarch32)

    return follows(system, realm if config.rme else without, latency=0)


def previous_target(config: SPUConfig) -> Reference:
    """What a cycle does to the previous branch target: nothing is asked about a target that is none."""

    def cycle(
        rst: int, branch__valid: int, branch__target: int, enabled: int, valid: int, target: int
    ) -> Mapping[str, int]:
        if rst:
            return {"valid": 0}
        spu = SPU(config)
        # Where the branch was executed profiling is enabled if the buffer is.
        spu.registers = _registers(enabled, PMSCR_EL1.fields["E0SPE"].mask)
        # A target is handed on as it is.
        spu._previous_target = target if valid else None
        if branch__valid:
            spu.take_branch(branch__target, el=0, ns=1)
        told = spu._previous_target
        return {"valid": 0} if told is None else {"valid": 1, "target": told}

    return cycle


def prove_previous(config: SPUConfig, system: Transition) -> Verdict:
    """`system` is a `PreviousTarget` of `config`."""
    inside = {"valid": "previous.valid", "target": "previous.target"}
    return follows(system, previous_target(config), inside=inside)


@cache
def _system(config: SPUConfig) -> Transition:
    return transition(Control(config))


def proofs() -> Iterator[Proof]:
    """For each configuration that has other permissions."""
    for config in distinct((*CONFIGS.values(), *FEATURES.values()), "rme pbt"):

        def proof(name, prove, config=config):
            return Proof(name, "control", config.name, "reference", lambda: prove(config, _system(config)))

        yield proof("what is enabled and collected is the reference's", prove_permissions)
        if config.pbt:
            yield proof("where a branch is profiled is the reference's", prove_branches)
            yield Proof(
                "the previous branch target is the reference's", "control", config.name, "reference",
                lambda config=config: prove_previous(config, transition(PreviousTarget(config))),
            )  # fmt: skip
