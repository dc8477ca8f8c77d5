"""Whether profiling is enabled now, and what may be collected of an operation sampled now (D17.6.9)."""

# Ref: DDI0487 M.a, D17.6.9; facts of StatisticalProfilingEnabled() for a buffer that Non-secure EL1 owns, without EL2.

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from . import arch
from .config import SPUConfig
from .pe import PEState, TakenBranch

__all__ = ["Collect", "Control"]


class Collect(data.Struct):
    """What of an operation may be recorded besides what every record holds. LSB first. `nv2_va` is the virtual address
    of an access that FEAT_NV2 made of MRS or MSR.
    """

    context_el1: 1
    context_el2: 1
    timestamp: 1
    pa: 1
    nv2_va: 1


class Control(wiring.Component):
    """Combinational: permissions from the registers and the state of the PE in this cycle.

    Non-secure EL1 owns the Profiling Buffer and EL2 is not implemented: CONTEXTIDR_EL2 and the virtual address of an
    access of FEAT_NV2 are never collected, and physical and virtual time are the same.

    Members
    -------
    pe : In(PEState)
    pmscr : In(PMSCR_EL1)
    running : In(1)
        The Profiling Buffer is enabled and not stopped.
    enabled : Out(1)
        Profiling is enabled for the operation that passes the sampling point in this cycle.
    collect : Out(Collect)
    branch : In(TakenBranch)
    branch_enabled : Out(1)
        Profiling is enabled in the state that the branch was executed in. These two only with FEAT_SPE_PBT.
    """

    def __init__(self, config: SPUConfig):
        self._config = config
        super().__init__(
            {
                "pe": In(PEState(config)),
                "pmscr": In(arch.PMSCR_EL1.layout()),
                "running": In(1),
                "enabled": Out(1),
                "collect": Out(Collect),
                **({"branch": In(TakenBranch(config)), "branch_enabled": Out(1)} if config.pbt else {}),
            }
        )

    def elaborate(self, platform):
        m = Module()

        m.d.comb += self.enabled.eq(self._enabled(self.pe) & ~self.pe.debug)
        if self._config.pbt:
            m.d.comb += self.branch_enabled.eq(self._enabled(self.branch))
        at_el1_or_el0 = self.pe.el < 2
        m.d.comb += [
            self.collect.context_el1.eq(self.pmscr.CX & at_el1_or_el0),
            self.collect.timestamp.eq(self.pmscr.TS),
            self.collect.pa.eq(self.pmscr.PA),
        ]

        return m

    def _enabled(self, state):
        """Profiling is enabled in this state of the PE, outside of Debug state."""
        nonsecure = state.ns & ~state.nse if self._config.rme else state.ns
        enabled_at = Cat(self.pmscr.E0SPE, self.pmscr.E1SPE, C(0, 2))
        return self.running & nonsecure & ~state.aarch32 & enabled_at.bit_select(state.el, 1)
