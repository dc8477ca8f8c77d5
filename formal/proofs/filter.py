"""The events of a sample and the filter's verdict are the reference's, for every sample and all registers."""

from collections.abc import Iterator, Mapping
from functools import cache

import z3
from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from spurtle import arch
from spurtle.config import CONFIGS, SPUConfig
from spurtle.filter import Filter
from spurtle.inflight import Sample
from spurtle.record import Record
from spurtle_sim.reference import filtering, records
from spurtle_sim.reference.registers import Registers

from ..induction import Reference, Wires, follows
from ..proof import Proof
from ..transition import Transition, transition
from .sample import sample_of

__all__ = ["proofs"]

REGISTERS = {"pmsfcr": arch.PMSFCR_EL1, "pmsevfr": arch.PMSEVFR_EL1, "pmslatfr": arch.PMSLATFR_EL1}


class Judged(wiring.Component):
    """The filter, fed with the events that go into the record, as `SPU` wires them. Combinational."""

    def __init__(self, config: SPUConfig):
        self._config = config
        super().__init__(
            {
                "sample": In(Sample(config)),
                **{name: In(register.layout()) for name, register in REGISTERS.items()},
                "events": Out(8 * config.events_bytes),
                "collect": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.record = record = Record(self._config)
        m.submodules.filter = judge = Filter(self._config)
        m.d.comb += [
            record.sample.eq(self.sample),
            judge.sample.eq(self.sample),
            judge.events.eq(record.events),
            *(getattr(judge, name).eq(getattr(self, name)) for name in REGISTERS),
            self.events.eq(record.events),
            self.collect.eq(judge.collect),
        ]
        return m


@cache
def _system(config: SPUConfig) -> Transition:
    return transition(Judged(config))


def _events(config: SPUConfig) -> Reference:
    def events(sample: int) -> Mapping[str, int]:
        return {"events": records.events(config, sample_of(config, sample))}

    return events


def _collect(config: SPUConfig) -> Reference:
    def collect(sample: int, pmsfcr: int, pmsevfr: int, pmslatfr: int) -> Mapping[str, int]:
        registers = Registers(PMSFCR_EL1=pmsfcr, PMSEVFR_EL1=pmsevfr, PMSLATFR_EL1=pmslatfr)
        return {"collect": filtering.collect(config, registers, sample_of(config, sample))}

    return collect


def _contract(config: SPUConfig):
    """Register bits that `config` lacks are zero, as `SystemRegisters` keeps them."""

    def holds(wires: Wires) -> z3.BoolRef:
        return z3.And(*(wires[name] & ~config.writable(register) == 0 for name, register in REGISTERS.items()))

    return holds


def proofs() -> Iterator[Proof]:
    """The same for each configuration."""
    for config in CONFIGS.values():
        yield Proof(
            "the Events packet is the reference's", "filter", config.name, "reference",
            lambda config=config: follows(_system(config), _events(config), latency=0),
        )  # fmt: skip
        yield Proof(
            "the verdict is the reference's", "filter", config.name, "reference",
            lambda config=config: follows(_system(config), _collect(config), assuming=_contract(config), latency=0),
        )  # fmt: skip
