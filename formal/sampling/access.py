"""Access selection: the access and the element that are sampled of each selected operation match `model.spu`."""

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
    """Return a configuration with this feature, number of lanes and FEAT_SPE_ERnd.

    The selection depends on nothing else in a configuration.
    """
    name = f"{feature}_{lanes}{'_ernd' * ernd}"
    return replace(FEATURES[f"minimal_{feature}"], name=name, ops_per_cycle=lanes, ernd=ernd)


def cycle(config: SPUConfig) -> Reference:
    """Return the reference: one random number and one choice for each selection, in program order.

    The outputs of lanes that are not selected are unspecified: the reference copies them from the circuit.
    """

    def choose(wires: Mapping[str, int]) -> Mapping[str, int]:
        spu = ReferenceSPU(config)
        outputs = {name: wires[name] for name in _outputs(config)}
        draw = 0
        for index in range(config.selections_per_cycle):
            selected = wires[f"selected__{index}"]
            if selected != 0:
                draw = draw + 1
                state = wires[f"random__{index}"] << IMP_PMSRNDR_EL1.fields["ACCESS"].lsb
                store, element = spu.choose_access(Registers(PMSFCR_EL1=wires["pmsfcr"], IMP_PMSRNDR_EL1=state))
                if config.two_accesses:
                    outputs["destination"] = outputs["destination"] & ~selected | selected * store
                if config.scalable:
                    for lane in range(config.ops_per_cycle):
                        if selected == 1 << lane:
                            outputs[f"element__{lane}"] = element
        return {"draw": draw, **outputs}

    return choose


def _outputs(config: SPUConfig) -> list[str]:
    """Return the names of the outputs to the core: destination access of all lanes, element of each lane."""
    elements = [f"element__{lane}" for lane in range(config.ops_per_cycle)] if config.scalable else []
    return [*(["destination"] if config.two_accesses else []), *elements]


def prove(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that the outputs and the draws match the reference. `system` is an `AccessChoice` of `config`."""
    pairs = [f"{name}__{index}" for index in range(config.selections_per_cycle) for name in ("selected", "random")]
    return follows(
        system,
        cycle(config),
        arguments=["pmsfcr", *pairs, *_outputs(config)],
        assuming=selections(config),
        latency=0,
    )


def _covers(config: SPUConfig) -> Iterator[tuple[str, Invariant, Invariant]]:
    """Yield name, goal and assumption.

    For each selection: each access, by filter and at random, and the first and last element of a vector.
    """

    def settings(types: str) -> int:
        return sum(PMSFCR_EL1.fields[name].mask for name in types.split())

    chosen = {"source by filter": (0, "FT LD"), "destination by filter": (1, "FT ST")}
    chosen |= {f"{name} at random": (store, "FT LD ST") for store, name in enumerate(("source", "destination"))}
    for index in range(config.selections_per_cycle):
        for name, (store, types) in chosen.items() if config.two_accesses else ():

            def goal(wires: Wires, index: int = index, store: int = store, types: str = types) -> Boolean:
                selected = wires[f"selected__{index}"]
                access = wires["destination"] & selected == (selected if store else 0)
                return all_of(selected != 0, wires["pmsfcr"] == settings(types), access)

            yield f"selection {index}, {name}", goal, selections(config)
        for element in (0, (1 << ELEMENT_BITS) - 1) if config.scalable else ():

            def end(wires: Wires, index: int = index, element: int = element) -> Boolean:
                lane = config.ops_per_cycle - 1
                return all_of(wires[f"selected__{index}"] == 1 << lane, wires[f"element__{lane}"] == element)

            yield f"selection {index}, element {element}", end, selections(config)


def cover(config: SPUConfig, system: Transition) -> Verdict:
    """Reach every goal."""
    return reach_all(system, _covers(config), cycles=0)


@cache
def _system(config: SPUConfig) -> Transition:
    return transition(AccessChoice(config))


def proofs() -> Iterator[Proof]:
    """Yield the proofs.

    They cover one lane, two lanes, and eight lanes of which two can be selected in a cycle; a choice of two accesses,
    of elements, and of both.
    """
    alone = [configured(feature, lanes, ernd=lanes == 8) for feature in ("mops", "sve") for lanes in (1, 2, 8)]
    for config in (*alone, CONFIGS["v1p4"]):
        proof = ProvedBlock("access", config, _system).proof
        yield proof("access and draws match the reference", "reference", prove)
        yield proof("cover: each access, selected by filter and at random", "any cycle", cover)
