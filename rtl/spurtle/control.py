"""Whether profiling is enabled now, and what may be collected of an operation sampled now (D17.6.9)."""

# Ref: DDI0487 M.a, D17.6.9; facts of StatisticalProfilingEnabled() for a buffer that Non-secure EL1 owns, without EL2.

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from . import arch
from .pe import PEState

__all__ = ["Collect", "Control"]


class Collect(data.Struct):
    """What of an operation may be recorded besides what every record holds. LSB first."""

    context_el1: 1
    context_el2: 1
    timestamp: 1
    pa: 1


class Control(wiring.Component):
    """Combinational: permissions from the registers and the state of the PE in this cycle.

    Non-secure EL1 owns the Profiling Buffer and EL2 is not implemented: CONTEXTIDR_EL2 is never collected, and
    physical and virtual time are the same.

    Members
    -------
    pe : In(PEState)
    pmscr : In(PMSCR_EL1)
    running : In(1)
        The Profiling Buffer is enabled and not stopped.
    enabled : Out(1)
        Profiling is enabled for the operation that passes the sampling point in this cycle.
    collect : Out(Collect)
    """

    def __init__(self):
        super().__init__(
            {
                "pe": In(PEState()),
                "pmscr": In(arch.PMSCR_EL1.layout()),
                "running": In(1),
                "enabled": Out(1),
                "collect": Out(Collect),
            }
        )

    def elaborate(self, platform):
        m = Module()

        at_el0 = self.pe.el == 0
        at_el1 = self.pe.el == 1
        m.d.comb += [
            self.enabled.eq(
                self.running
                & self.pe.ns
                & ~self.pe.debug
                & ~self.pe.aarch32
                & ((at_el0 & self.pmscr.E0SPE) | (at_el1 & self.pmscr.E1SPE))
            ),
            self.collect.context_el1.eq(self.pmscr.CX & (at_el0 | at_el1)),
            self.collect.timestamp.eq(self.pmscr.TS),
            self.collect.pa.eq(self.pmscr.PA),
        ]

        return m
