"""The record filter: combinational, no state (D17.5)."""

# Ref: DDI0487 M.a, D17.5.1 to D17.5.3 and the Armv8.3-A page of PMSFCR_EL1; CONSTRAINED UNPREDICTABLE cases in
# docs/choices.md.

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from . import arch
from .config import SPUConfig
from .inflight import Sample

__all__ = ["Filter"]


class Filter(wiring.Component):
    """Whether a sample is collected: the logical AND of the enabled filters.

    A filter that selects nothing (FT without a type, FE without an event, FL with MINLAT = 0) has no effect.

    Members
    -------
    sample : In(Sample)
    events : In(8 * events_bytes)
        The Events packet of that sample.
    pmsfcr, pmsevfr, pmslatfr : In
        Registers, bits that this configuration lacks zero.
    collect : Out(1)
    """

    def __init__(self, config: SPUConfig):
        super().__init__(
            {
                "sample": In(Sample(config)),
                "events": In(8 * config.events_bytes),
                "pmsfcr": In(arch.PMSFCR_EL1.layout()),
                "pmsevfr": In(arch.PMSEVFR_EL1.layout()),
                "pmslatfr": In(arch.PMSLATFR_EL1.layout()),
                "collect": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()

        facts = self.sample.operation.facts
        types = Cat(facts.branch & ~facts.exception, facts.load, facts.store)
        wanted_types = Cat(self.pmsfcr.B, self.pmsfcr.LD, self.pmsfcr.ST)
        wanted_events = self.pmsevfr.E[: len(self.events)]

        m.d.comb += self.collect.eq(
            ~(
                (self.pmsfcr.FT & wanted_types.any() & ~(types & wanted_types).any())
                | (self.pmsfcr.FE & (wanted_events & ~self.events).any())
                | (self.pmsfcr.FL & (self.sample.total < self.pmslatfr.MINLAT))
            )
        )

        return m
