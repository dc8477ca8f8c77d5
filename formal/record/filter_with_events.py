"""The filter and the events that it reads, without what stands between them in time."""

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from spurtle.arch import PMSDSFR_EL1, PMSEVFR_EL1, PMSFCR_EL1, PMSLATFR_EL1, PMSNEVFR_EL1
from spurtle.config import SPUConfig
from spurtle.gateware.filter import Filter
from spurtle.gateware.record import RecordBuilder
from spurtle.gateware.sample import SampleLayout
from spurtle.interface.register_layout import register_layout

__all__ = ["FILTER_REGISTERS", "FilterWithEvents"]

FILTER_REGISTERS = {
    "pmsfcr": PMSFCR_EL1,
    "pmsevfr": PMSEVFR_EL1,
    "pmsnevfr": PMSNEVFR_EL1,
    "pmslatfr": PMSLATFR_EL1,
    "pmsdsfr": PMSDSFR_EL1,
}


class FilterWithEvents(wiring.Component):
    """The filter, fed with the events that go into the record, as `SPU` wires them. Combinational. Registers that the
    configuration lacks are ports as well, and drive nothing.
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
        m.submodules.record = record = RecordBuilder(self._config)
        m.submodules.filter = judge = Filter(self._config)
        m.d.comb += [
            record.sample.eq(self.sample),
            judge.sample.eq(self.sample),
            judge.events.eq(record.events),
            *(getattr(judge, name).eq(getattr(self, name)) for name in FILTER_REGISTERS if hasattr(judge, name)),
            self.collect.eq(~judge.rejected.as_value().any()),
            *(getattr(self, f"feed_{event}").eq(judge.feed[event]) for event in self._config.feed_events),
        ]
        return m
