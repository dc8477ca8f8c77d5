"""What is sampled of an operation that accesses more than one place (D17.6.4, D17.6.6)."""

# Ref: DDI0487 M.a, D17.6.4.3 (Memory Copy), D17.6.4.5 (GCSSS2), D17.6.6 R_MYPFF (non-contiguous SVE accesses).

from amaranth import *
from amaranth.lib.wiring import In, Out

from .. import arch
from ..config import SPUConfig, check_config
from ..interface.register_layout import register_layout
from ..interface.sampling import SamplingPointSignature
from .component import ConfiguredComponent

__all__ = ["AccessChoice"]


class AccessChoice(ConfiguredComponent):
    """Of a load from one address and a store to another the one that the filter by type selects, if it selects one of
    load and store alone; else either, at random. Of the elements of a vector any, at random.

    Combinational. What an operation will do is not known when it is selected, so each selected one has its choice, and
    a random number of its own: its bit 0 chooses one of two accesses, if there are operations that make two, and the
    others an element.

    Members
    -------
    selected : In(ops_per_cycle) for each of selections_per_cycle
        See `inflight.Allocation`.
    pmsfcr : In(PMSFCR_EL1)
    random : In(access_bits) for each of selections_per_cycle
    draw : Out(range(selections_per_cycle + 1))
        So many random numbers are used in this cycle.
    destination, element : Out
        See `SamplingPointSignature`.
    """

    def __init__(self, config: SPUConfig):
        check_config(config)
        if not config.access_bits:
            raise ValueError(
                f"mops, gcs, sve or sme must be True to choose an access, not False in {config.name}"
            )
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
            decided = control.FT & (control.ST ^ control.LD)
            stores = [Mux(decided, control.ST, number[0]) for number in numbers]
            numbers = [number[1:] for number in numbers]
            self._hand_out(m, self.destination, stores)
        if self._config.scalable:
            self._hand_out(m, self.element, numbers)

        return m

    def _hand_out(self, m, lanes, numbers):
        """To each lane that of its selection."""
        for lane, number in enumerate(lanes):
            m.d.comb += number.eq(Mux(self.selected[-1][lane], numbers[-1], numbers[0]))
