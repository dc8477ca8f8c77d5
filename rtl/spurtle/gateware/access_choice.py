"""Choice of the sampled access of an operation with several accesses (D17.6.4, D17.6.6).

Ref: DDI0487 M.a, D17.6.4.3 (Memory Copy), D17.6.4.5 (GCSSS2), D17.6.6 R_MYPFF (non-contiguous SVE accesses).
"""

from amaranth import *
from amaranth.lib.wiring import In, Out

from .. import arch
from ..config import SPUConfig, check_config
from ..interface.register_layout import register_layout
from ..interface.sampling import SamplingPointSignature
from .component import ConfiguredComponent

__all__ = ["AccessChoice"]


class AccessChoice(ConfiguredComponent):
    """Choice of the access that is sampled. Combinational.

    For an operation that loads from one address and stores to another, the filter by type decides if it selects loads
    but not stores, or stores but not loads; otherwise the choice is random. For an access to the elements of a vector,
    a random element is sampled.

    The kind of an operation is not known when it is selected. Each selected operation therefore gets a choice, and a
    random number of its own. Bit 0 of the number selects one of two accesses, if operations with two accesses are
    implemented. All other bits select an element.

    Members
    -------
    selected : In(ops_per_cycle) for each of selections_per_cycle
        See `slots.Allocation`.
    pmsfcr : In(PMSFCR_EL1)
    random : In(access_bits) for each of selections_per_cycle
    draw : Out(range(selections_per_cycle + 1))
        Count of random numbers used in this cycle.
    destination, element : Out
        See `SamplingPointSignature`.
    """

    def __init__(self, config: SPUConfig):
        check_config(config)
        if not config.access_bits:
            raise ValueError(f"mops, gcs, sve or sme must be True to choose an access, not False in {config.name}")
        point = SamplingPointSignature(config).flip().members
        super().__init__(
            config,
            {
                "selected": In(config.ops_per_cycle).array(config.selections_per_cycle),
                "pmsfcr": In(register_layout(arch.PMSFCR_EL1)),
                "random": In(config.access_bits).array(config.selections_per_cycle),
                "draw": Out(range(config.selections_per_cycle + 1)),
                **{name: point[name] for name in ("destination", "element") if name in point},
            },
        )

    def elaborate(self, platform):
        m = Module()

        m.d.comb += self.draw.eq(sum(selected.any() for selected in self.selected))
        numbers = list(self.random)
        if self._config.two_accesses:
            control = self.pmsfcr
            # Only the controls LD and ST select the access, not their masks of FEAT_SPE_EFT (D17.6.4.3).
            decided = control.FT & (control.ST ^ control.LD)
            stores = [Mux(decided, control.ST, number[0]) for number in numbers]
            numbers = [number[1:] for number in numbers]
            self._route(m, self.destination, stores)
        if self._config.scalable:
            self._route(m, self.element, numbers)

        return m

    def _route(self, m, lanes, numbers):
        """Route each number to the lane of its selection."""
        # Lanes without a selection are not read: the first selection needs no condition.
        for lane, number in enumerate(lanes):
            m.d.comb += number.eq(Mux(self.selected[-1][lane], numbers[-1], numbers[0]))
