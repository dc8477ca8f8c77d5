"""Which access is sampled of an operation is `model.spu`'s choice, for each selected operation."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache

from configurations import FEATURES
from spurtle.arch import IMP_PMSRNDR_EL1, PMSFCR_EL1
from spurtle.config import CONFIGS, ELEMENT_BITS, SPUConfig
from spurtle.gateware.access_choice import AccessChoice
from spurtle_sim.model.registers import Registers
from spurtle_sim.model.spu import ReferenceSPU

from ..engine.cover import reach_all
from ..engine.induction import Invariant
from ..engine.proof import Proof, ProvedBlock, Verdict
from ..engine.reference import Reference, follows
from ..engine.terms import Boolean, all_of
from ..engine.transition import Transition, Wires, transition
from ..inflight.inflight import selections

__all__ = ["configured", "cover", "proofs", "prove"]


def configured(feature: str, lanes: int, *, ernd: bool) -> SPUConfig:
    """So many lanes, with FEAT_SPE_ERnd or without, and what the feature brings: nothing else of a configuration
    matters to the choice.
    """
    name = f"{feature}_{lanes}{'_ernd' * ernd}"
    return replace(FEATURES[f"minimal_{feature}"], name=name, ops_per_cycle=lanes, ernd=ernd)


def cycle(config: SPUConfig) -> Reference:
    """One random number and one choice for each selection, in program order. What is told of other lanes is of no
    account: it is taken as it comes.
    """

    def choose(wires: Mapping[str, int]) -> Mapping[str, int]:
        spu = ReferenceSPU(config)
        told = {name: wires[name] for name in _told(config)}
        draw = 0
        for index in range(config.selections_per_cycle):
            selected = wires[f"selected__{index}"]
            if selected != 0:
                draw = draw + 1
                state = wires[f"random__{index}"] << IMP_PMSRNDR_EL1.fields["ACCESS"].lsb
                store, element = spu.choose_access(Registers(PMSFCR_EL1=wires["pmsfcr"], IMP_PMSRNDR_EL1=state))
                if config.two_accesses:
                    told["destination"] = told["destination"] & ~selected | selected * store
                if config.scalable:
                    for lane in range(config.ops_per_cycle):
                        if selected == 1 << lane:
                            told[f"element__{lane}"] = element
        return {"draw": draw, **told}

    return choose


def _told(config: SPUConfig) -> list[str]:
    """What the core is told, and the lanes of each."""
    elements = [f"element__{lane}" for lane in range(config.ops_per_cycle)] if config.scalable else []
    return [*(["destination"] if config.two_accesses else []), *elements]


def prove(config: SPUConfig, system: Transition) -> Verdict:
    """`system` is an `AccessChoice` of `config`."""
    pairs = [f"{name}__{index}" for index in range(config.selections_per_cycle) for name in ("selected", "random")]
    return follows(
        system,
        cycle(config),
        arguments=["pmsfcr", *pairs, *_told(config)],
        assuming=selections(config),
        latency=0,
    )


def _covers(config: SPUConfig) -> Iterator[tuple[str, Invariant, Invariant]]:
    """Each access by filter and by chance, and either end of a vector, of each selection: name, goal, what is
    assumed.
    """

    def settings(types: str) -> int:
        return sum(PMSFCR_EL1.fields[name].mask for name in types.split())

    chosen = {"source by filter": (0, "FT LD"), "destination by filter": (1, "FT ST")}
    chosen |= {f"{name} by chance": (store, "FT LD ST") for store, name in enumerate(("source", "destination"))}
    for index in range(config.selections_per_cycle):
        for name, (store, types) in chosen.items() if config.two_accesses else ():

            def goal(wires: Wires, index: int = index, store: int = store, types: str = types) -> Boolean:
                selected = wires[f"selected__{index}"]
                told = wires["destination"] & selected == (selected if store else 0)
                return all_of(selected != 0, wires["pmsfcr"] == settings(types), told)

            yield f"selection {index}, {name}", goal, selections(config)
        for element in (0, (1 << ELEMENT_BITS) - 1) if config.scalable else ():

            def end(wires: Wires, index: int = index, element: int = element) -> Boolean:
                lane = config.ops_per_cycle - 1
                return all_of(wires[f"selected__{index}"] == 1 << lane, wires[f"element__{lane}"] == element)

            yield f"selection {index}, element {element}", end, selections(config)


def cover(config: SPUConfig, system: Transition) -> Verdict:
    """Every goal."""
    return reach_all(system, _covers(config), cycles=0)


@cache
def _system(config: SPUConfig) -> Transition:
    return transition(AccessChoice(config))


def proofs() -> Iterator[Proof]:
    """For one lane, for two, and for eight of which two can be selected in a cycle; for two accesses, for elements, and
    for both.
    """
    alone = [configured(feature, lanes, ernd=lanes == 8) for feature in ("mops", "sve") for lanes in (1, 2, 8)]
    for config in (*alone, CONFIGS["v1p4"]):
        proof = ProvedBlock("access", config, _system).proof
        yield proof("access and draws match the reference", "reference", prove)
        yield proof("cover: each access, selected by filter and at random", "any cycle", cover)
