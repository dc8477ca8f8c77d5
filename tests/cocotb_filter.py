"""Decisions of the filter in generated Verilog, at random, each beside the reference's.

test_cocotb_filter.py runs it inside of a simulator; SPURTLE_CONFIG, SPURTLE_DECISIONS and SPURTLE_SEED say what.
"""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from random import Random
from types import SimpleNamespace
from typing import Any

import cocotb
from cocotb.triggers import Timer
from gateware import VARIANTS, random_registers, random_sample

from spurtle.arch import PMSFCR_EL1
from spurtle.config import SPUConfig, UnpredictableFilter
from spurtle_sim.ports import sample_bits
from spurtle_sim.reference import filtering
from spurtle_sim.reference.records import Sample
from spurtle_sim.reference.registers import Registers

__all__ = ["COPIES", "REGISTERS"]

COPIES = 16
"""Of the filter, side by side."""

SAMPLES = 4 * COPIES
SETTINGS = 128
"""So many samples and so many settings of the registers are crossed at once."""

REGISTERS = ("PMSFCR_EL1", "PMSEVFR_EL1", "PMSNEVFR_EL1", "PMSLATFR_EL1", "PMSDSFR_EL1")
"""In the order of their 64 bits at the port, the first in bit 0."""


class Memory:
    """Has the reference's filter remember what depends on a sample alone, or on the registers alone: they are crossed,
    and a million decisions are many. The filters themselves are computed each time.
    """

    def __init__(self) -> None:
        self._tables = [self._remember(name) for name in ("events", "flags", "has_data_source", "_types")]
        filtering.PMSFCR_EL1 = SimpleNamespace(unpack=cache(PMSFCR_EL1.unpack))

    def _remember(self, name: str) -> dict[tuple[int, str], Any]:
        function = getattr(filtering, name)
        table: dict[tuple[int, str], Any] = {}

        def remembered(config: SPUConfig, source: object, suffix: str = "") -> Any:
            try:
                return table[id(source), suffix]
            except KeyError:
                table[id(source), suffix] = result = function(config, source, *([suffix] if suffix else []))
                return result

        setattr(filtering, name, remembered)
        return table

    def forget(self) -> None:
        """Before the samples and registers go, whose identities will be others'."""
        for table in self._tables:
            table.clear()


class Decisions:
    """Copies of the filter, the reference, and what has been met."""

    def __init__(self, dut: Any, config: SPUConfig):
        self.dut = dut
        self.config = config
        self.met = Counter[str]()
        self.feed_events = config.feed_events
        self.width = 1 + len(self.feed_events)
        self.every = sum(1 << self.width * index for index in range(SAMPLES))

    async def answers(self, samples: Sequence[Sample], settings: Sequence[Registers]) -> list[int]:
        """What the copies say of all samples, the first one lowest, under each setting."""
        config = self.config
        width = len(self.dut.samples) // COPIES
        ports = [sum(getattr(one, name) << 64 * place for place, name in enumerate(REGISTERS)) for one in settings]
        answers = [0] * len(settings)
        for first in range(0, SAMPLES, COPIES):
            group = samples[first : first + COPIES]
            self.dut.samples.value = sum(sample_bits(config, one) << width * copy for copy, one in enumerate(group))
            for index, port in enumerate(ports):
                self.dut.registers.value = port
                await Timer(1, "ns")
                answers[index] |= int(self.dut.answers.value) << self.width * first
        return answers

    def check(self, samples: Sequence[Sample], registers: Registers, answers: int) -> None:
        """The answers of one setting are the reference's."""
        expected = 0
        for index, sample in enumerate(samples):
            told = filtering.feed(self.config, registers, sample)
            answer = int(filtering.collect(self.config, registers, sample))
            for bit, event in enumerate(self.feed_events, 1):
                answer |= told[event] << bit
            expected |= answer << self.width * index
        for index, sample in enumerate(samples if answers != expected else ()):
            got, wanted = (value >> self.width * index & (1 << self.width) - 1 for value in (answers, expected))
            outputs = ", ".join(["verdict", *self.feed_events])
            assert got == wanted, f"{got:#b} is not {wanted:#b} ({outputs}; from bit 0): {sample} with {registers}"
        self._count(registers, expected)

    def _count(self, registers: Registers, answers: int) -> None:
        ones = [(answers >> bit & self.every).bit_count() for bit in range(self.width)]
        enabled = [name for name in self.config.filters if registers.PMSFCR_EL1 & PMSFCR_EL1.fields[name].mask]
        for what in ("+".join(enabled) or "none", *_unpredictable(self.config, registers, enabled)):
            self.met[f"{what} keeps"] += ones[0]
            self.met[f"{what} discards"] += SAMPLES - ones[0]
        for event, count in zip(self.feed_events, ones[1:], strict=True):
            self.met[f"{event} 1"] += count
            self.met[f"{event} 0"] += SAMPLES - count


def _unpredictable(config: SPUConfig, registers: Registers, enabled: list[str]) -> Iterator[str]:
    """Which settings of enabled filters are CONSTRAINED UNPREDICTABLE."""
    empty = {
        "FE": registers.PMSEVFR_EL1 == 0,
        "FnE": registers.PMSNEVFR_EL1 == 0,
        "FL": registers.PMSLATFR_EL1 == 0,
        "FT": registers.PMSFCR_EL1 & sum(PMSFCR_EL1.fields[name].mask for name in config.filter_types) == 0,
    }
    for name in _selecting(config):
        if name in enabled and empty[name]:
            yield f"{name} of nothing"
    if "FE" in enabled and "FnE" in enabled and registers.PMSEVFR_EL1 & registers.PMSNEVFR_EL1:
        yield "overlap"


def _selecting(config: SPUConfig) -> list[str]:
    """Filters that may not select nothing."""
    return [name for name in config.filters if name != "FDS" and not (name == "FT" and config.eft)]


def to_be_met(config: SPUConfig) -> Iterator[str]:
    """What a long run must have met."""
    sets = [[]]
    for name in config.filters:
        sets += [[*names, name] for names in sets]
    for names in sets:
        yield f"{'+'.join(names) or 'none'} keeps"
        if names:
            yield f"{'+'.join(names)} discards"
    for what in (*(f"{name} of nothing" for name in _selecting(config)), *(["overlap"] if config.fne else [])):
        yield f"{what} discards"
        if config.unpredictable_filter is UnpredictableFilter.NO_EFFECT:
            yield f"{what} keeps"
    for event in config.feed_events:
        yield from (f"{event} 0", f"{event} 1")


@cocotb.test()
async def random_decisions(dut: Any) -> None:
    config = VARIANTS[os.environ["SPURTLE_CONFIG"]]
    random = Random(os.environ["SPURTLE_SEED"])
    decisions = Decisions(dut, config)
    memory = Memory()
    total = int(os.environ["SPURTLE_DECISIONS"])
    for _ in range(-(-total // (SAMPLES * SETTINGS))):
        samples = [random_sample(random, config) for _ in range(SAMPLES)]
        settings = [random_registers(random, config, random.choice(samples)) for _ in range(SETTINGS)]
        for registers, answers in zip(settings, await decisions.answers(samples, settings), strict=True):
            decisions.check(samples, registers, answers)
        memory.forget()

    dut._log.info("%s", dict(sorted(decisions.met.items())))
    if total >= 1_000_000:  # short runs may miss something
        rare = [what for what in to_be_met(config) if decisions.met[what] < 50]
        assert not rare, f"seldom met: {rare}"
