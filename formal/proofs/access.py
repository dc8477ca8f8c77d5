"""Which of two accesses is sampled is `reference.filtering.sampled_access`'s choice, for each selected operation."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache

import z3

from spurtle.access import AccessChoice
from spurtle.arch import PMSFCR_EL1
from spurtle.config import SPUConfig
from spurtle_sim.reference import filtering
from spurtle_sim.reference.registers import Registers

from ..features import FEATURES
from ..induction import Invariant, Reference, Wires, follows, reach_all
from ..proof import Proof, Verdict
from ..transition import Transition, transition
from .inflight import selections

__all__ = ["configured", "cover", "proofs", "prove"]


def configured(lanes: int, *, ernd: bool) -> SPUConfig:
    """So many lanes, with FEAT_SPE_ERnd or without: nothing else of a configuration matters to the choice."""
    return replace(FEATURES["minimal_mops"], name=f"lanes_{lanes}{'_ernd' * ernd}", ops_per_cycle=lanes, ernd=ernd)


def cycle(config: SPUConfig) -> Reference:
    """One random bit and one choice for each selection, in program order. What is told of other lanes is of no account:
    it is taken as it comes.
    """

    def choose(pmsfcr: int, destination: int, *pairs: int) -> Mapping[str, int]:
        registers = Registers(PMSFCR_EL1=pmsfcr)
        draw = 0
        for selected, random in zip(pairs[::2], pairs[1::2], strict=True):
            if selected != 0:
                draw = draw + 1
                store = filtering.sampled_access(registers, random)
                destination = destination & ~selected | selected * store
        return {"draw": draw, "destination": destination}

    if config.selections_per_cycle == 1:
        return lambda pmsfcr, destination, selected__0, random__0: choose(pmsfcr, destination, selected__0, random__0)
    return lambda pmsfcr, destination, selected__0, random__0, selected__1, random__1: choose(
        pmsfcr, destination, selected__0, random__0, selected__1, random__1
    )


def prove(config: SPUConfig, system: Transition) -> Verdict:
    """`system` is an `AccessChoice` of `config`."""
    return follows(system, cycle(config), assuming=selections(config), latency=0)


def _covers(config: SPUConfig) -> Iterator[tuple[str, Invariant, Invariant]]:
    """Each access by filter and by chance, of each selection: name, goal, what is assumed."""

    def settings(types: str) -> int:
        return sum(PMSFCR_EL1.fields[name].mask for name in types.split())

    chosen = {"source by filter": (0, "FT LD"), "destination by filter": (1, "FT ST")}
    chosen |= {f"{name} by chance": (store, "FT LD ST") for store, name in enumerate(("source", "destination"))}
    for index in range(config.selections_per_cycle):
        for name, (store, types) in chosen.items():

            def goal(wires: Wires, index: int = index, store: int = store, types: str = types) -> z3.BoolRef:
                selected = wires[f"selected__{index}"]
                told = wires["destination"] & selected == (selected if store else 0)
                return z3.And(selected != 0, wires["pmsfcr"] == settings(types), told)

            yield f"selection {index}, {name}", goal, selections(config)


def cover(config: SPUConfig, system: Transition) -> Verdict:
    """Every goal."""
    return reach_all(system, _covers(config), cycles=0)


@cache
def _system(config: SPUConfig) -> Transition:
    return transition(AccessChoice(config))


def proofs() -> Iterator[Proof]:
    """For one lane, for two, and for eight of which two can be selected in a cycle."""
    for lanes, ernd in ((1, False), (2, False), (8, True)):
        config = configured(lanes, ernd=ernd)

        def proof(name, method, prove, config=config):
            return Proof(name, "access", config.name, method, lambda: prove(config, _system(config)))

        yield proof("access and draws are the reference's", "reference", prove)
        yield proof("cover: each access by filter and by chance", "any cycle", cover)
