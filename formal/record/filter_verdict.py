"""The filter with one output for its verdict, and with the same ports in each configuration."""

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from spurtle.arch import PMSDSFR_EL1, PMSEVFR_EL1, PMSFCR_EL1, PMSLATFR_EL1, PMSNEVFR_EL1
from spurtle.config import SPUConfig
from spurtle.gateware.filter import Filter
from spurtle.gateware.sample import SampleLayout
from spurtle.interface.register_layout import register_layout

__all__ = ["FILTER_REGISTERS", "FilterVerdict"]

FILTER_REGISTERS = {
    "pmsfcr": PMSFCR_EL1,
    "pmsevfr": PMSEVFR_EL1,
    "pmsnevfr": PMSNEVFR_EL1,
    "pmslatfr": PMSLATFR_EL1,
    "pmsdsfr": PMSDSFR_EL1,
}


class FilterVerdict(wiring.Component):
    """Combinational filter.

    Members
    -------
    sample : In(SampleLayout)
        The sample.
    pmsfcr, pmsevfr, pmsnevfr, pmslatfr, pmsdsfr : In
        Filter registers. Those that the configuration lacks are ports as well, and are not connected.
    collect : Out(1)
        No filter rejects the sample.
    feed_* : Out(1)
        PMU event SAMPLE_FEED_*, for each of `feed_events`.
    """

    def __init__(self, config: SPUConfig):
        self._config = config
        super().__init__(
            {
                "sample": In(SampleLayout(config)),
                **{name: In(register_layout(register)) for name, register in FILTER_REGISTERS.items()},
                "collect": Out(1),
                **{f"feed_{event}": Out(1) for event in config.feed_events},
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.filter = filter_ = Filter(self._config)
        m.d.comb += [
            filter_.sample.eq(self.sample),
            *(getattr(filter_, name).eq(getattr(self, name)) for name in FILTER_REGISTERS if hasattr(filter_, name)),
            self.collect.eq(~filter_.rejected.as_value().any()),
            *(getattr(self, f"feed_{event}").eq(filter_.feed[event]) for event in self._config.feed_events),
        ]
        return m
