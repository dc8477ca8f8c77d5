"""Filter: verdict and PMU events match `model.filtering`, for every sample and every value of the registers."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache

from configurations import FEATURES, distinct
from spurtle.arch import PMSFCR_EL1
from spurtle.config import CONFIGS, SPUConfig, UnpredictableFilter
from spurtle_sim.model import filtering, records
from spurtle_sim.model.operation import Sample
from spurtle_sim.model.registers import Registers

from ..engine.cover import reach_all, satisfiable
from ..engine.induction import Invariant, always
from ..engine.proof import Proof, ProvedBlock, Verdict
from ..engine.reference import follows
from ..engine.terms import Boolean, all_of, implies, not_
from ..engine.transition import Transition, Wires, transition
from .filter_verdict import FILTER_REGISTERS, FilterVerdict
from .sample import WIDEST, Samples, equivalent, unimplemented_facts

__all__ = [
    "cover",
    "cover_exception",
    "proofs",
    "prove",
    "prove_feed",
    "prove_monotone",
    "registers",
]

_FILTERS = {"FT": "op", "FE": "event", "FnE": "event", "FL": "lat", "FDS": "ds"}
"""Enable bit of each filter, and the PMU event that counts the samples which it accepts when enabled alone."""


def registers(config: SPUConfig) -> Invariant:
    """Return the contract of the registers: bits that `config` lacks are zero, as is proved for the SPU."""

    def holds(wires: Wires) -> Boolean:
        return all_of(*(wires[name] & ~config.writable(register) == 0 for name, register in FILTER_REGISTERS.items()))

    return holds


def _follows(
    config: SPUConfig, system: Transition, reference: Callable[[Registers, records.Sample], Mapping[str, int]]
) -> Verdict:
    """Prove that the outputs match `reference`, a function of the registers and the sample of the model."""
    samples = Samples(config)

    def outputs(
        pmsfcr: int, pmsevfr: int, pmsnevfr: int, pmslatfr: int, pmsdsfr: int, sample: int
    ) -> Mapping[str, int]:
        settings = Registers(
            PMSFCR_EL1=pmsfcr,
            PMSEVFR_EL1=pmsevfr,
            PMSNEVFR_EL1=pmsnevfr,
            PMSLATFR_EL1=pmslatfr,
            PMSDSFR_EL1=pmsdsfr,
        )
        return reference(settings, samples(sample))

    return follows(system, outputs, assuming=registers(config), latency=0)


def prove(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that the verdict matches the reference. `system` is a `FilterVerdict` of `config`."""
    return _follows(config, system, lambda settings, sample: {"collect": filtering.collect(config, settings, sample)})


def prove_feed(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that each PMU event matches the reference. `system` is a `FilterVerdict` of `config`."""

    def events(settings: Registers, sample: Sample) -> Mapping[str, int]:
        return {f"feed_{event}": value for event, value in filtering.feed(config, settings, sample).items()}

    return _follows(config, system, events)


def prove_ignored(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that facts of unimplemented features have no effect. `system` is a `FilterVerdict` of `config`."""

    def ignored(one: Wires, other: Wires) -> Boolean:
        # The block is combinational, so two cycles are any two samples.
        same_registers = (one[name] == other[name] for name in FILTER_REGISTERS)
        same_outputs = (one[name] == other[name] for name in system.outputs)
        return implies(
            all_of(equivalent(config, one["sample"], other["sample"]), *same_registers), all_of(*same_outputs)
        )

    return always(system, ignored)


# Monotonicity: with more filters enabled, fewer samples are accepted.


def _enabled(wires: Wires, name: str) -> Boolean:
    return wires["pmsfcr"] & PMSFCR_EL1.fields[name].mask != 0


def _overlap(wires: Wires) -> Boolean:
    """Return whether FE and FnE are enabled and select a common event."""
    both = all_of(_enabled(wires, "FE"), _enabled(wires, "FnE"))
    return all_of(both, wires["pmsevfr"] & wires["pmsnevfr"] != 0)


def _narrower(config: SPUConfig, one: Wires, other: Wires) -> Boolean:
    """Return whether `other` has the same sample and settings as `one`, and at least the same filters enabled."""
    enables = sum(PMSFCR_EL1.fields[name].mask for name in _FILTERS)
    return all_of(
        registers(config)(one),
        registers(config)(other),
        *(one[name] == other[name] for name in ("sample", *FILTER_REGISTERS) if name != "pmsfcr"),
        one["pmsfcr"] & ~enables == other["pmsfcr"] & ~enables,
        one["pmsfcr"] & ~other["pmsfcr"] == 0,
    )


def prove_monotone(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that a rejected sample stays rejected when another filter is enabled.

    The exception is an overlap of FE and FnE: if the configuration gives CONSTRAINED UNPREDICTABLE filters no effect,
    both are disabled while they select a common event.
    """

    def rejects(one: Wires, other: Wires) -> Boolean:
        assumed = _narrower(config, one, other)
        if config.unpredictable_filter is UnpredictableFilter.NO_EFFECT:
            assumed = all_of(assumed, not_(_overlap(other)))
        return implies(all_of(assumed, one["collect"] == 0), other["collect"] == 0)

    return always(system, rejects)


def cover_exception(config: SPUConfig, system: Transition) -> Verdict:
    """Find a sample that FE or FnE alone rejects and both together accept."""

    def passes(one: Wires, other: Wires) -> Boolean:
        return all_of(_narrower(config, one, other), one["collect"] == 0, other["collect"] == 1)

    return satisfiable(system, passes)


# Each filter has an effect.


def _covers(config: SPUConfig) -> Iterator[tuple[str, Invariant, Invariant]]:
    """Yield name, goal and assumption: each filter alone rejects a sample and accepts one."""
    for name, event in _FILTERS.items():
        if not config.writable(PMSFCR_EL1) & PMSFCR_EL1.fields[name].mask:
            continue

        def alone(wires: Wires, name: str = name) -> Boolean:
            others = (not_(_enabled(wires, other)) for other in _FILTERS if other != name)
            return all_of(registers(config)(wires), _enabled(wires, name), *others, _selective(config, wires))

        yield f"{name} alone rejects", lambda wires: wires["collect"] == 0, alone
        yield (
            f"{name} alone accepts",
            lambda wires, event=event: all_of(wires["collect"] == 1, wires[f"feed_{event}"] == 1),
            alone,
        )


def _selective(config: SPUConfig, wires: Wires) -> Boolean:
    """Return whether no filter has settings with CONSTRAINED UNPREDICTABLE behavior."""
    types = sum(PMSFCR_EL1.fields[name].mask for name in config.filter_types)
    implemented = [name for name, register in FILTER_REGISTERS.items() if register in config.registers]
    return all_of(wires["pmsfcr"] & types != 0, *(wires[name] != 0 for name in implemented))


def cover(config: SPUConfig, system: Transition) -> Verdict:
    """Reach every goal."""
    return reach_all(system, _covers(config), cycles=0)


@cache
def _system(config: SPUConfig) -> Transition:
    return transition(FilterVerdict(config))


_CHANGING = (
    "eft fne fds events events_bytes counter_bits data_source_bytes mops gcs sve sme spe_sme unpredictable_filter"
)
"""Members of a configuration that change the verdict or the PMU events."""


def proofs() -> Iterator[Proof]:
    """Yield the proofs, for each configuration, each feature alone that changes filtering, and all features at once."""
    discarding = replace(WIDEST, name=f"{WIDEST.name}_discard", unpredictable_filter=UnpredictableFilter.DISCARD)
    for config in distinct((*CONFIGS.values(), *FEATURES.values(), WIDEST, discarding), _CHANGING):
        proof = ProvedBlock("filter", config, _system).proof
        yield proof("the verdict matches the reference", "reference", prove)
        yield proof("the PMU events match the reference", "reference", prove_feed)
        if unimplemented_facts(config):
            yield proof("facts of unimplemented features have no effect", "any two cycles", prove_ignored)
        yield proof("a rejected sample stays rejected when another filter is enabled", "any two cycles", prove_monotone)
        yield proof("cover: each filter alone rejects and accepts", "any cycle", cover)
        if config.fne and config.unpredictable_filter is UnpredictableFilter.NO_EFFECT:
            yield proof("cover: FE and FnE disable each other", "any two cycles", cover_exception)
