"""The whole SPU: its blocks are connected as they have to be (`wiring`), it comes out of reset the same, stands still
while profiling is disabled, counts its samples, and has nothing for another owner of the Profiling Buffer that it has
of the one before.
"""

from collections.abc import Iterator, Mapping
from functools import cache, partial

from spurtle.arch import IMP_PMSRNDR_EL1, PMSCR_EL2
from spurtle.config import CONFIGS, SPUConfig
from spurtle.gateware.spu import SPU
from spurtle.interface.sysreg import AccessOutcome
from spurtle_sim.model import control
from spurtle_sim.model.registers import Registers

from ..buffer.relation import limit_is_stable
from ..engine.induction import always, inductive, resets
from ..engine.proof import Proof, ProvedBlock, Verdict
from ..engine.reference import follows
from ..engine.terms import Boolean, all_of, any_of, implies, not_, ult
from ..engine.transition import Transition, Wires, transition
from .wiring import prove_register_bits, prove_wiring

__all__ = [
    "memories",
    "proofs",
    "prove_disabled",
    "prove_fed",
    "prove_freeze",
    "prove_implemented",
    "prove_limit",
    "prove_new_owner",
    "prove_pmscr_el2",
    "prove_reset",
    "prove_undrawn",
    "whole",
]


def memories(config: SPUConfig) -> list[str]:
    """Words that no reset reaches. They are read only of a finished slot, whose finish wrote them: see `inflight`."""
    if config.slots == 1:
        return []
    return [f"inflight.{memory}[{slot}]" for memory in ("operations", "order.storage") for slot in range(config.slots)]


def prove_reset(config: SPUConfig, system: Transition) -> Verdict:
    """`system` is an `SPU`."""
    return resets(system, retained=memories(config))


def prove_disabled(config: SPUConfig, system: Transition) -> Verdict:
    """What passes while profiling is disabled is not counted: unless they are written, the counters stand (D17.3.5)."""

    def stands(*cycles: Wires) -> Boolean:
        passing, counting, after = cycles[0], cycles[-2], cycles[-1]
        no_reset = all_of(*(wires["rst"] == 0 for wires in cycles[:-1]))
        still = {"interval_counter.pmsicr": "registers.pmsicr_write", "lfsr.state": "registers.pmsrndr_write"}
        return implies(
            all_of(no_reset, passing["control.enabled"] == 0),
            all_of(
                *(
                    implies(counting[write] == 0, after[register] == counting[register])
                    for register, write in still.items()
                ),
            ),
        )

    return always(system, stands, cycles=config.count_delay + 2)


def prove_undrawn(config: SPUConfig, system: Transition) -> Verdict:
    """For what passes while profiling is disabled nothing is chosen: unless they are written, the random numbers by
    which it is chosen stand.
    """

    def stands(*cycles: Wires) -> Boolean:
        passing, answering, after = cycles[0], cycles[-2], cycles[-1]
        no_reset = all_of(*(wires["rst"] == 0 for wires in cycles[:-1]))
        return implies(
            all_of(no_reset, passing["control.enabled"] == 0, answering["registers.pmsrndr_write"] == 0),
            after["access_lfsr.state"] == answering["access_lfsr.state"],
        )

    return always(system, stands, cycles=config.answer_latency + 2)


def prove_fed(config: SPUConfig, system: Transition) -> Verdict:
    """Variants of PMU event SAMPLE_FEED come with it, and SAMPLE_FILTRATE in the cycle after it."""

    def told(*cycles: Wires) -> Boolean:
        before, now = cycles[-2:]
        variants = (now[f"pmu__sample_feed_{event}"] == 1 for event in config.feed_events)
        return all_of(
            implies(any_of(*variants), now["pmu__sample_feed"] == 1),
            implies(now["pmu__sample_filtrate"] == 1, before["pmu__sample_feed"] == 1),
        )

    return always(system, told, cycles=3)


def prove_limit(config: SPUConfig, system: Transition) -> Verdict:
    """PMBLIMITR_EL1 stands unless the buffer is told that software writes it: see `buffer`."""

    def stands(now: Wires, then: Wires) -> Boolean:
        wires = [{name: one[f"buffer.{name}"] for name in ("pmblimitr", "pmblimitr_write")} for one in (now, then)]
        return limit_is_stable({"rst": now["rst"], **wires[0]}, wires[1])

    return always(system, stands)


def prove_freeze(config: SPUConfig, system: Transition) -> Verdict:
    """The PMU's event counters are frozen exactly if the reference says so, a cycle later (D13.5 R_HSGZX)."""

    def frozen(wires: Mapping[str, int]) -> Mapping[str, int]:
        registers = Registers(PMBLIMITR_EL1=wires["registers.pmblimitr"], PMBSR_EL1=wires["buffer.pmbsr"])
        return {"pmu__freeze": 1 if wires["rst"] == 0 and control.counters_frozen(registers) else 0}

    return follows(system, frozen, arguments=("rst", "registers.pmblimitr", "buffer.pmbsr"))


def prove_implemented(config: SPUConfig, system: Transition) -> Verdict:
    """Bits of the System registers that are not implemented are zero: see `control`."""
    names = {register.name: f"registers.{register.name.lower().removesuffix('_el1')}" for register in config.registers}
    unknown = [
        (names[register.name], ~config.writable(register))
        for register in config.registers
        if not register.read_only and register is not IMP_PMSRNDR_EL1
    ]
    return inductive(system, lambda wires: all_of(*(wires[name] & bits == 0 for name, bits in unknown)))


def prove_pmscr_el2(config: SPUConfig, system: Transition) -> Verdict:
    """PMSCR_EL2 is nothing to EL0 and EL1, and what EL2 forbids they cannot permit."""

    def hidden(came: Wires, made: Wires, answered: Wires) -> Boolean:
        lower = ult(came["pe__el"], 2)
        accessed = all_of(came["sysreg__valid"] == 1, came["sysreg__op1"] == PMSCR_EL2.op1)
        written = all_of(came["sysreg__valid"] == 1, came["sysreg__write"] == 1)
        told = all_of(answered["sysreg__outcome"] == AccessOutcome.UNDEFINED.value, answered["sysreg__rdata"] == 0)
        stands = answered["registers.pmscr_el2"] == made["registers.pmscr_el2"]
        return implies(
            all_of(came["rst"] == 0, made["rst"] == 0),
            all_of(implies(all_of(lower, accessed), told), implies(any_of(lower, not_(written)), stands)),
        )

    return always(system, hidden, cycles=3)


def prove_new_owner(config: SPUConfig, system: Transition) -> Verdict:
    """In the cycle after the Profiling Buffer went to another owner it does not run, for anybody, and then there is no
    previous branch target. What becomes of what is in flight or unwritten `inflight` and `buffer` say.
    """

    def passed(*cycles: Wires) -> Boolean:
        before, now, after, later = cycles
        told = [after["control.new_owner"] == 1]
        told += [after[f"{room}.running"] == 0 for room in ("buffer", "control", "inflight")]
        told += [
            after["control.enabled"] == 0,
            *(after[name] == 0 for name in after if name == "control.branch_enabled"),
        ]
        if config.pbt:
            told.append(later["previous_target.previous.valid"] == 0)
        return implies(
            all_of(*(wires["rst"] == 0 for wires in cycles), before["control.owner"] != now["control.owner"]),
            all_of(*told),
        )

    return always(system, passed, cycles=4)


@cache
def whole(config: SPUConfig) -> Transition:
    """The SPU of a configuration, for whoever proves something of all of it."""
    return transition(SPU(config))


def proofs() -> Iterator[Proof]:
    """The same for each configuration."""
    for config in CONFIGS.values():
        proof = partial(ProvedBlock("spu", config, whole).proof, method="induction")
        yield proof("one cycle of reset restores the initial state", prove=prove_reset)
        yield proof("each input of each block is connected to its source, in all bits", prove=prove_wiring)
        yield proof("cover: each register bit can be one where it is read", prove=prove_register_bits)
        yield proof("PMSICR_EL1 and the random numbers are stable while profiling is disabled", prove=prove_disabled)
        if config.access_bits:
            yield proof("IMP_PMSRNDR_EL1.ACCESS is stable while profiling is disabled", prove=prove_undrawn)
        yield proof("SAMPLE_FEED_* and SAMPLE_FILTRATE count only samples of SAMPLE_FEED", prove=prove_fed)
        yield proof("PMBLIMITR_EL1 changes only when software writes it", prove=prove_limit)
        if config.discard_mode:
            yield proof("the freezing of the PMU counters matches the reference", prove=prove_freeze)
        yield proof("unimplemented register bits are zero", prove=prove_implemented)
        if config.el2:
            yield proof("PMSCR_EL2 is UNDEFINED below EL2, and not writable there", prove=prove_pmscr_el2)
        if config.several_owners:
            yield proof(
                "after a change of owner the buffer does not run, and no previous branch target is valid",
                prove=prove_new_owner,
            )
