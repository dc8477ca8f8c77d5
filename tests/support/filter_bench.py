"""A test bench of the record filter, which compares each decision with the reference."""

from collections.abc import Iterable
from typing import Any

from spurtle.config import SPUConfig
from spurtle.gateware.filter import Filter
from spurtle_sim.cosim.pack import sample_bits
from spurtle_sim.model import filtering
from spurtle_sim.model.operation import Sample
from spurtle_sim.model.registers import Registers
from tests.support.gateware import Bench

__all__ = ["FilterBench"]

_PORTS = {
    "pmsfcr": "PMSFCR_EL1",
    "pmsevfr": "PMSEVFR_EL1",
    "pmsnevfr": "PMSNEVFR_EL1",
    "pmslatfr": "PMSLATFR_EL1",
    "pmsdsfr": "PMSDSFR_EL1",
}


class FilterBench(Bench):
    """A record filter in the simulator."""

    def __init__(self, config: SPUConfig):
        self.config = config
        self.dut = Filter(config)
        super().__init__(self.dut, clocked=False)

    def check(self, decisions: Iterable[tuple[Registers, Sample]]) -> list[bool]:
        """Return the verdicts. Check that they and the PMU events of the filter agree with the reference."""
        dut, config = self.dut, self.config
        ports = [(getattr(dut, port).as_value(), name) for port, name in _PORTS.items() if hasattr(dut, port)]

        async def scenario(ctx: Any) -> list[bool]:
            verdicts = []
            current = None
            for registers, sample in decisions:
                # The simulator evaluates the design after each `set`.
                if sample is not current:
                    current = sample
                    ctx.set(dut.sample.as_value(), sample_bits(config, sample))
                for port, name in ports:
                    ctx.set(port, getattr(registers, name))
                verdicts.append(ctx.get(dut.rejected.as_value()) == 0)
                assert verdicts[-1] == filtering.collect(config, registers, sample), (registers, sample)
                fed = ctx.get(dut.feed.as_value())
                feed = filtering.feed(config, registers, sample)
                assert fed == sum(feed[event] << bit for bit, event in enumerate(config.feed_events)), (feed, sample)
            return verdicts

        return self.run(scenario)
