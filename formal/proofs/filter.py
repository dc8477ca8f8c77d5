"""The filter's verdict is `reference.filtering.collect`'s, for every sample and every value of the registers."""

from collections.abc import Iterator, Mapping

import z3
from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from spurtle import arch
from spurtle.config import CONFIGS, SPUConfig
from spurtle.filter import Filter
from spurtle.inflight import Sample
from spurtle.record import Record
from spurtle_sim.reference import filtering
from spurtle_sim.reference import registers as reference

from ..induction import Wires, follows
from ..proof import Proof, Verdict
from ..transition import Transition, transition
from .sample import sample_of

__all__ = ["Judged", "proofs", "prove"]

REGISTERS = {"pmsfcr": arch.PMSFCR_EL1, "pmsevfr": arch.PMSEVFR_EL1, "pmslatfr": arch.PMSLATFR_EL1}


class Judged(wiring.Component):
    """The filter, fed with the events that go into the record, as `SPU` wires them. Combinational."""

    def __init__(self, config: SPUConfig):
        self._config = config
        super().__init__(
            {
                "sample": In(Sample(config)),
                **{name: In(register.layout()) for name, register in REGISTERS.items()},
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
            self.collect.eq(judge.collect),
        ]
        return m


def prove(config: SPUConfig, system: Transition) -> Verdict:
    """`system` is a `Judged` of `config`. Register bits that `config` lacks are zero, as `Registers` keeps them."""

    def verdict(sample: int, pmsfcr: int, pmsevfr: int, pmslatfr: int) -> Mapping[str, int]:
        registers = reference.Registers(PMSFCR_EL1=pmsfcr, PMSEVFR_EL1=pmsevfr, PMSLATFR_EL1=pmslatfr)
        return {"collect": filtering.collect(config, registers, sample_of(config, sample))}

    def contract(wires: Wires) -> z3.BoolRef:
        return z3.And(*(wires[name] & ~config.writable(register) == 0 for name, register in REGISTERS.items()))

    return follows(system, verdict, assuming=contract, latency=0)


def proofs() -> Iterator[Proof]:
    """The same for each configuration."""
    for config in CONFIGS.values():
        yield Proof(
            "the verdict is the reference's", "filter", config.name, "reference",
            lambda config=config: prove(config, transition(Judged(config))),
        )  # fmt: skip
