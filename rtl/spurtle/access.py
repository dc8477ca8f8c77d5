"""Which access is sampled of an operation that makes two: a load from one address, a store to another (D17.6.4)."""

# Ref: DDI0487 M.a, D17.6.4.3 (Memory Copy), D17.6.4.5 (GCSSS2).

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from . import arch
from .config import SPUConfig

__all__ = ["AccessChoice"]


class AccessChoice(wiring.Component):
    """The one that the filter by type selects, if it selects one of load and store alone; else either, at random.

    Combinational. What an operation will do is not known when it is selected, so each selected one has its choice, and
    a random bit of its own.

    Members
    -------
    selected : In(ops_per_cycle) for each of selections_per_cycle
        See `inflight.Allocation`.
    pmsfcr : In(PMSFCR_EL1)
    random : In(1) for each of selections_per_cycle
    draw : Out(range(selections_per_cycle + 1))
        So many random bits are used in this cycle.
    destination : Out(ops_per_cycle)
        See `pe.SamplingPoint`.
    """

    def __init__(self, config: SPUConfig):
        super().__init__(
            {
                "selected": In(config.ops_per_cycle).array(config.selections_per_cycle),
                "pmsfcr": In(arch.PMSFCR_EL1.layout()),
                "random": In(1).array(config.selections_per_cycle),
                "draw": Out(range(config.selections_per_cycle + 1)),
                "destination": Out(config.ops_per_cycle),
            }
        )

    def elaborate(self, platform):
        m = Module()

        control = self.pmsfcr
        decided = control.FT & (control.ST ^ control.LD)
        stores = [Mux(decided, control.ST, bit) for bit in self.random]
        m.d.comb += [
            self.draw.eq(sum(selected.any() for selected in self.selected)),
            *(
                self.destination[lane].eq(Mux(self.selected[-1][lane], stores[-1], stores[0]))
                for lane in range(len(self.destination))
            ),
        ]

        return m
