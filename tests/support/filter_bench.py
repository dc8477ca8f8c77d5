"""The record filter in simulation, each decision compared with the reference's."""

from collections.abc import Iterable
from typing import Any

from spurtle.config import SPUConfig
from spurtle.gateware.filter import Filter
from spurtle_sim.cosim.pack import sample_bits
from spurtle_sim.model import filtering, records
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
    def __init__(self, config: SPUConfig):
        self.config = config
        self.dut = Filter(config)
        super().__init__(self.dut, clocked=False)

    def check(self, decisions: Iterable[tuple[Registers, Sample]]) -> list[bool]:
        """The verdicts, which are the reference's, as is what is fed to the PMU."""
        dut, config = self.dut, self.config
        ports = [(getattr(dut, port).as_value(), name) for port, name in _PORTS.items() if hasattr(dut, port)]

        async def scenario(ctx: Any) -> list[bool]:
            verdicts = []
            there = None
            for registers, sample in decisions:
                if sample is not there:
                    there = sample
                    ctx.set(dut.sample.as_value(), sample_bits(config, sample))
                    ctx.set(dut.events, records.events(config, sample))
                for port, name in ports:
                    ctx.set(port, getattr(registers, name))
                verdicts.append(ctx.get(dut.rejected.as_value()) == 0)
                assert verdicts[-1] == filtering.collect(config, registers, sample), (registers, sample)
                fed = ctx.get(dut.feed.as_value())
                told = filtering.feed(config, registers, sample)
                assert fed == sum(told[event] << bit for bit, event in enumerate(config.feed_events)), (told, sample)
            return verdicts

        return self.run(scenario)
