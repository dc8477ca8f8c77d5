"""The filter: verdict and PMU events are `model.filtering`'s, for every sample and every value of the registers."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache

import z3
from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from spurtle.arch import PMSDSFR_EL1, PMSEVFR_EL1, PMSFCR_EL1, PMSLATFR_EL1, PMSNEVFR_EL1
from spurtle.config import CONFIGS, SPUConfig, UnpredictableFilter
from spurtle.gateware.filter import Filter
from spurtle.gateware.record import RecordBuilder
from spurtle.gateware.sample import SampleLayout
from spurtle.interface.register_layout import register_layout
from spurtle_sim.model import filtering, records
from spurtle_sim.model.registers import Registers

from ..engine.features import FEATURES, distinct
from ..engine.induction import Invariant, Wires, always, follows, happens, reach_all
from ..engine.proof import Proof, Verdict
from ..engine.transition import Transition, transition
from .sample import WIDEST, Samples, alike, meaningless

__all__ = [
    "Judged",
    "cover",
    "cover_exception",
    "proofs",
    "prove",
    "prove_feed",
    "prove_monotone",
    "registers",
]

_REGISTERS = {
    "pmsfcr": PMSFCR_EL1,
    "pmsevfr": PMSEVFR_EL1,
    "pmsnevfr": PMSNEVFR_EL1,
    "pmslatfr": PMSLATFR_EL1,
    "pmsdsfr": PMSDSFR_EL1,
}

_FILTERS = {"FT": "op", "FE": "event", "FnE": "event", "FL": "lat", "FDS": "ds"}
"""What enables each filter, and the PMU event that tells what it lets pass when it is enabled alone."""

Answer = Callable[[Registers, records.Sample], Mapping[str, int]]


class Judged(wiring.Component):
    """The filter, fed with the events that go into the record, as `SPU` wires them. Combinational. Registers that the
    configuration lacks are ports as well, and drive nothing.
    """

    def __init__(self, config: SPUConfig):
        self._config = config
        super().__init__(
            {
                "sample": In(SampleLayout(config)),
                **{name: In(register_layout(register)) for name, register in _REGISTERS.items()},
                "collect": Out(1),
                **{f"feed_{event}": Out(1) for event in config.feed_events},
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.record = record = RecordBuilder(self._config)
        m.submodules.filter = judge = Filter(self._config)
        m.d.comb += [
            record.sample.eq(self.sample),
            judge.sample.eq(self.sample),
            judge.events.eq(record.events),
            *(getattr(judge, name).eq(getattr(self, name)) for name in _REGISTERS if hasattr(judge, name)),
            self.collect.eq(~judge.rejected.as_value().any()),
            *(getattr(self, f"feed_{event}").eq(judge.feed[event]) for event in self._config.feed_events),
        ]
        return m


def registers(config: SPUConfig) -> Invariant:
    """Register bits that `config` lacks are zero, as `Registers` keeps them."""

    def holds(wires: Wires) -> z3.BoolRef:
        return z3.And(*(wires[name] & ~config.writable(register) == 0 for name, register in _REGISTERS.items()))

    return holds


def _follows(
    config: SPUConfig, system: Transition, answer: Callable[[Registers, object], Mapping[str, int]]
) -> Verdict:
    """`answer` says the outputs, from what registers and sample are to the reference."""

    samples = Samples(config)

    def judged(pmsfcr: int, pmsevfr: int, pmsnevfr: int, pmslatfr: int, pmsdsfr: int, sample: int) -> Mapping[str, int]:
        settings = Registers(
            PMSFCR_EL1=pmsfcr,
            PMSEVFR_EL1=pmsevfr,
            PMSNEVFR_EL1=pmsnevfr,
            PMSLATFR_EL1=pmslatfr,
            PMSDSFR_EL1=pmsdsfr,
        )
        return answer(settings, samples(sample))

    return follows(system, judged, assuming=registers(config), latency=0)


def prove(config: SPUConfig, system: Transition) -> Verdict:
    """`system` is a `Judged` of `config`."""
    return _follows(config, system, lambda settings, sample: {"collect": filtering.collect(config, settings, sample)})


def prove_feed(config: SPUConfig, system: Transition) -> Verdict:
    """Each of the PMU events. `system` is a `Judged` of `config`."""

    def told(settings: Registers, sample: records.Sample) -> Mapping[str, int]:
        return {f"feed_{event}": value for event, value in filtering.feed(config, settings, sample).items()}

    return _follows(config, system, told)


def prove_ignored(config: SPUConfig, system: Transition) -> Verdict:
    """Facts for which there is no feature change nothing. `system` is a `Judged` of `config`."""

    def ignored(one: Wires, other: Wires) -> z3.BoolRef:
        # Of a combinational block two cycles are two samples.
        same = (one[name] == other[name] for name in _REGISTERS)
        told = (one[name] == other[name] for name in system.outputs)
        return z3.Implies(z3.And(alike(config, one["sample"], other["sample"]), *same), z3.And(*told))

    return always(system, ignored)


# Monotone: more filters keep less.


def _enabled(wires: Wires, name: str) -> z3.BoolRef:
    return wires["pmsfcr"] & PMSFCR_EL1.fields[name].mask != 0


def _overlap(wires: Wires) -> z3.BoolRef:
    """FE and FnE select an event both."""
    both = z3.And(_enabled(wires, "FE"), _enabled(wires, "FnE"))
    return z3.And(both, wires["pmsevfr"] & wires["pmsnevfr"] != 0)


def _narrower(config: SPUConfig, one: Wires, other: Wires) -> z3.BoolRef:
    """The same sample and settings, and what is enabled in the one is enabled in the other too."""
    enables = sum(PMSFCR_EL1.fields[name].mask for name in _FILTERS)
    return z3.And(
        registers(config)(one),
        registers(config)(other),
        *(one[name] == other[name] for name in ("sample", *_REGISTERS) if name != "pmsfcr"),
        one["pmsfcr"] & ~enables == other["pmsfcr"] & ~enables,
        one["pmsfcr"] & ~other["pmsfcr"] == 0,
    )


def prove_monotone(config: SPUConfig, system: Transition) -> Verdict:
    """What is rejected stays rejected when another filter is enabled, but where that switches two off: FE and FnE that
    select an event both have no effect, if that is what CONSTRAINED UNPREDICTABLE filters are to have.
    """

    def rejects(one: Wires, other: Wires) -> z3.BoolRef:
        assumed = _narrower(config, one, other)
        if config.unpredictable_filter is UnpredictableFilter.NO_EFFECT:
            assumed = z3.And(assumed, z3.Not(_overlap(other)))
        return z3.Implies(z3.And(assumed, one["collect"] == 0), other["collect"] == 0)

    return always(system, rejects)


def cover_exception(config: SPUConfig, system: Transition) -> Verdict:
    """FE or FnE alone rejects what both together let pass."""

    def passes(one: Wires, other: Wires) -> z3.BoolRef:
        return z3.And(_narrower(config, one, other), one["collect"] == 0, other["collect"] == 1)

    return happens(system, passes)


# Each filter does something.


def _covers(config: SPUConfig) -> Iterator[tuple[str, Invariant, Invariant]]:
    """Of each filter alone, by what it selects: name, goal, what is assumed."""
    for name, event in _FILTERS.items():
        if not config.writable(PMSFCR_EL1) & PMSFCR_EL1.fields[name].mask:
            continue

        def alone(wires: Wires, name: str = name) -> z3.BoolRef:
            others = (z3.Not(_enabled(wires, other)) for other in _FILTERS if other != name)
            return z3.And(registers(config)(wires), _enabled(wires, name), *others, _selective(config, wires))

        yield f"{name} alone rejects", lambda wires: wires["collect"] == 0, alone
        yield (
            f"{name} alone lets pass",
            lambda wires, event=event: z3.And(wires["collect"] == 1, wires[f"feed_{event}"] == 1),
            alone,
        )


def _selective(config: SPUConfig, wires: Wires) -> z3.BoolRef:
    """No filter is set so that what it does is CONSTRAINED UNPREDICTABLE."""
    types = sum(PMSFCR_EL1.fields[name].mask for name in config.filter_types)
    there = [name for name, register in _REGISTERS.items() if register in config.registers]
    return z3.And(wires["pmsfcr"] & types != 0, *(wires[name] != 0 for name in there))


def cover(config: SPUConfig, system: Transition) -> Verdict:
    """Every goal."""
    return reach_all(system, _covers(config), cycles=0)


@cache
def _system(config: SPUConfig) -> Transition:
    return transition(Judged(config))


_CHANGING = (
    "eft fne fds events events_bytes counter_bits data_source_bytes mops gcs sve sme spe_sme unpredictable_filter"
)
"""What of a configuration changes verdicts or events."""


def proofs() -> Iterator[Proof]:
    """For each configuration, for each feature alone that filters in another way, and for all at once with the widest
    events.
    """
    discarding = replace(WIDEST, name=f"{WIDEST.name}_discard", unpredictable_filter=UnpredictableFilter.DISCARD)
    for config in distinct((*CONFIGS.values(), *FEATURES.values(), WIDEST, discarding), _CHANGING):

        def proof(
            name: str, method: str, prove: Callable[[SPUConfig, Transition], Verdict], config: SPUConfig = config
        ) -> Proof:
            return Proof(name, "filter", config.name, method, lambda: prove(config, _system(config)))

        yield proof("the verdict is the reference's", "reference", prove)
        yield proof("the PMU events are the reference's", "reference", prove_feed)
        if meaningless(config):
            yield proof("facts of no feature change nothing", "any two cycles", prove_ignored)
        yield proof("what is rejected stays so when another filter is enabled", "any two cycles", prove_monotone)
        yield proof("cover: each filter alone rejects and lets pass", "any cycle", cover)
        if config.fne and config.unpredictable_filter is UnpredictableFilter.NO_EFFECT:
            yield proof("cover: FE and FnE switch each other off", "any two cycles", cover_exception)
