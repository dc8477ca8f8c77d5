"""Complete SPU: reset, connections (`wiring`), disabled profiling, PMU events, registers, and a change of owner."""

from collections.abc import Iterator, Mapping
from functools import cache, partial

from spurtle.arch import IMP_PMSRNDR_EL1, PMSCR_EL2
from spurtle.config import CONFIGS, SPUConfig
from spurtle.gateware.spu import SPU
from spurtle.interface.sysreg import ACCESS_LATENCY, AccessOutcome
from spurtle_sim.model import control
from spurtle_sim.model.registers import Registers

from ..buffer.relation import limit_is_stable
from ..engine.induction import always, inductive, resets
from ..engine.proof import Proof, ProvedBlock, Verdict
from ..engine.reference import follows
from ..engine.terms import Boolean, all_of, any_of, implies, not_, ult
from ..engine.transition import Transition, Wires, transition
from ..inflight.start_states import words
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
    "spu_transition",
]


def memories(config: SPUConfig) -> list[str]:
    """Return the memory words, which are not reset.

    Only the words of finished slots are read, and the finish or the allocation wrote them, as is proved in `inflight`.
    """
    if config.slots == 1:
        return []
    names = [*(f"operations[{slot}]" for slot in range(config.slots)), *words(config)]
    return [f"inflight.{name}" for name in names]


def prove_reset(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that one cycle of `rst` restores the initial state, except for the memories. `system` is an `SPU`."""
    return resets(system, retained=memories(config))


def prove_disabled(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that operations are not counted while profiling is disabled (D17.3.5).

    PMSICR_EL1 and the random numbers of the intervals change only if software writes them. `system` is an `SPU`.
    """

    def counters_stable(*cycles: Wires) -> Boolean:
        passing, counting, after = cycles[0], cycles[-2], cycles[-1]
        no_reset = all_of(*(wires["rst"] == 0 for wires in cycles[:-1]))
        counters = {"interval_counter.pmsicr": "registers.pmsicr_write", "lfsr.state": "registers.pmsrndr_write"}
        return implies(
            all_of(no_reset, passing["control.enabled"] == 0),
            all_of(
                *(
                    implies(counting[write] == 0, after[register] == counting[register])
                    for register, write in counters.items()
                ),
            ),
        )

    return always(system, counters_stable, cycles=config.count_delay + 2)


def prove_undrawn(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that no access is selected for operations that pass while profiling is disabled. `system` is an `SPU`.

    The random numbers of the access selection change only if software writes them.
    """

    def state_stable(*cycles: Wires) -> Boolean:
        passing, answering, after = cycles[0], cycles[-2], cycles[-1]
        no_reset = all_of(*(wires["rst"] == 0 for wires in cycles[:-1]))
        return implies(
            all_of(no_reset, passing["control.enabled"] == 0, answering["registers.pmsrndr_write"] == 0),
            after["access_lfsr.state"] == answering["access_lfsr.state"],
        )

    return always(system, state_stable, cycles=config.answer_latency + 2)


def prove_fed(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that SAMPLE_FEED_* and SAMPLE_FILTRATE occur only with SAMPLE_FEED.

    `system` is an `SPU`.
    """

    def follow_feed(*cycles: Wires) -> Boolean:
        *_, now = cycles
        variants = (now[f"pmu__sample_feed_{event}"] == 1 for event in config.feed_events)
        return implies(any_of(now["pmu__sample_filtrate"] == 1, *variants), now["pmu__sample_feed"] == 1)

    return always(system, follow_feed, cycles=2)


def prove_limit(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that PMBLIMITR_EL1 changes only if `pmblimitr_write` of the buffer is asserted, as the buffer assumes.

    `system` is an `SPU`.
    """

    def limit_stable(now: Wires, then: Wires) -> Boolean:
        wires = [{name: one[f"buffer.{name}"] for name in ("pmblimitr", "pmblimitr_write")} for one in (now, then)]
        return limit_is_stable({"rst": now["rst"], **wires[0]}, wires[1])

    return always(system, limit_stable)


def prove_freeze(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that the freezing of the PMU's event counters matches the reference (D13.5 R_HSGZX).

    `freeze` is one cycle later than the state of the reference. `system` is an `SPU`.
    """

    def frozen(wires: Mapping[str, int]) -> Mapping[str, int]:
        registers = Registers(PMBLIMITR_EL1=wires["registers.pmblimitr"], PMBSR_EL1=wires["buffer.pmbsr"])
        return {"pmu__freeze": 1 if wires["rst"] == 0 and control.counters_frozen(registers) else 0}

    return follows(system, frozen, arguments=("rst", "registers.pmblimitr", "buffer.pmbsr"))


def prove_implemented(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that unimplemented bits of System registers are zero, as `control` assumes. `system` is an `SPU`."""
    names = {register.name: f"registers.{register.name.lower().removesuffix('_el1')}" for register in config.registers}
    unimplemented = [
        (names[register.name], ~config.writable(register))
        for register in config.registers
        if not register.read_only and register is not IMP_PMSRNDR_EL1
    ]
    return inductive(system, lambda wires: all_of(*(wires[name] & bits == 0 for name, bits in unimplemented)))


def prove_pmscr_el2(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that EL0 and EL1 can neither read nor write PMSCR_EL2. `system` is an `SPU`."""

    def hidden(*cycles: Wires) -> Boolean:
        request, *_, access, response = cycles
        lower = ult(request["pe__el"], 2)
        accessed = all_of(request["sysreg__valid"] == 1, request["sysreg__op1"] == PMSCR_EL2.op1)
        written = all_of(request["sysreg__valid"] == 1, request["sysreg__write"] == 1)
        undefined = all_of(response["sysreg__outcome"] == AccessOutcome.UNDEFINED.value, response["sysreg__rdata"] == 0)
        unchanged = response["registers.pmscr_el2"] == access["registers.pmscr_el2"]
        return implies(
            all_of(*(wires["rst"] == 0 for wires in cycles[:-1])),
            all_of(implies(all_of(lower, accessed), undefined), implies(any_of(lower, not_(written)), unchanged)),
        )

    return always(system, hidden, cycles=ACCESS_LATENCY + 1)


def prove_new_owner(config: SPUConfig, system: Transition) -> Verdict:
    """Prove the cycles after a change of the owning translation regime. `system` is an `SPU`.

    The permissions of the previous owner apply until the cycle in which the owner changes. In the next cycle `running`
    is 0, so that operations with either permissions are dropped, and no operation is profiled. In the cycle after that
    the previous branch target is invalid. The proofs of `inflight` and `buffer` cover operations in flight and records.
    """

    def stopped(changing: Wires, after: Wires, later: Wires) -> Boolean:
        terms = [after["control.new_owner"] == 1]
        terms += [after[f"{block}.running"] == 0 for block in ("buffer", "inflight")]
        terms += [
            after["control.enabled"] == 0,
            *(after[name] == 0 for name in after if name == "control.branch_enabled"),
        ]
        if config.pbt:
            terms.append(later["previous_target.previous.valid"] == 0)
        changes = changing["control.previous_owner"] != after["control.previous_owner"]
        return implies(all_of(changing["rst"] == 0, after["rst"] == 0, changes), all_of(*terms))

    return always(system, stopped, cycles=3)


@cache
def spu_transition(config: SPUConfig) -> Transition:
    """Return the transition relation of the SPU of a configuration. It is shared by all proofs of the complete SPU."""
    return transition(SPU(config))


def proofs() -> Iterator[Proof]:
    """Yield the proofs, for each named configuration."""
    for config in CONFIGS.values():
        proof = partial(ProvedBlock("spu", config, spu_transition).proof, method="induction")
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
