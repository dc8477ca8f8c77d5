"""Random decisions of the compiled Verilog of record and filter, compared with the reference."""

import ctypes
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray

from configurations import FOR_BLOCKS
from formal.record.filter_verdict import FilterVerdict
from spurtle.arch import PMSFCR_EL1
from spurtle.config import SPUConfig, UnpredictableFilter
from spurtle.export import verilog
from spurtle_sim.cosim.compiled import load_model
from spurtle_sim.cosim.pack import sample_bits
from spurtle_sim.model import filtering
from spurtle_sim.model.operation import Sample
from spurtle_sim.model.registers import Registers
from spurtle_sim.native.header import constants
from tests.support.gateware import random_registers, random_sample
from tests.support.seeds import SEED
from tests.support.tiers import tiers

SAMPLES = 64
SETTINGS = 128
"""Register settings of a batch, which combines each setting with each sample."""

REGISTERS = ("PMSFCR_EL1", "PMSEVFR_EL1", "PMSNEVFR_EL1", "PMSLATFR_EL1", "PMSDSFR_EL1")
"""Registers of a setting, 64 bits each, the first one at bit 0."""


class Filter:
    """The compiled filter of a configuration."""

    def __init__(self, config: SPUConfig):
        self.config = config
        design = verilog.generate(FilterVerdict(config), "filter_verdict")
        (width,) = (port.width for port in design.ports if port.name == "sample")
        self._sample_words = -(-width // 32)
        sizes = {"SAMPLE_WORDS": self._sample_words, "SETTING_WORDS": 2 * len(REGISTERS)}
        self._library = load_model(
            "decisions",
            design.text + _decisions(config, design, width),
            Path(__file__).with_name("decisions.cpp"),
            [constants("", "unsigned", sizes)],
            ("--top-module", "decisions"),
        )

    def answers(self, samples: Sequence[Sample], settings: Sequence[Registers]) -> NDArray[np.uint32]:
        """Return an answer for each setting (row) and sample (column): the verdict in bit 0, then the PMU events."""
        config = self.config
        sample_words = _words([sample_bits(config, sample) for sample in samples], self._sample_words)
        setting_words = _words(
            [sum(getattr(one, name) << 64 * index for index, name in enumerate(REGISTERS)) for one in settings],
            2 * len(REGISTERS),
        )
        answers = np.zeros((len(settings), len(samples)), np.uint32)
        self._library.decide(
            sample_words.ctypes.data_as(ctypes.c_void_p),
            ctypes.c_uint64(len(samples)),
            setting_words.ctypes.data_as(ctypes.c_void_p),
            ctypes.c_uint64(len(settings)),
            answers.ctypes.data_as(ctypes.c_void_p),
        )
        return answers


def _decisions(config: SPUConfig, design: verilog.Verilog, width: int) -> str:
    """Return Verilog around `filter_verdict`, with one port for all registers and one for all outputs."""
    outputs = ["collect", *(f"feed_{event}" for event in config.feed_events)]
    ports = [name.lower().removesuffix("_el1") for name in REGISTERS]
    connections = [
        *(f".{name}(registers[{64 * index} +: 64])" for index, name in enumerate(ports)),
        ".sample(sample)",
        *(f".{name}(answer[{bit}])" for bit, name in enumerate(outputs)),
        *(f".{port.name}(1'b0)" for port in design.ports if port.name in ("clk", "rst")),
    ]
    return f"""
module decisions(
  input [{64 * len(REGISTERS) - 1}:0] registers,
  input [{width - 1}:0] sample,
  output [{len(outputs) - 1}:0] answer
);
  filter_verdict filter({", ".join(connections)});
endmodule
"""


def _words(numbers: Sequence[int], words: int) -> NDArray[np.uint32]:
    return np.frombuffer(b"".join(number.to_bytes(4 * words, "little") for number in numbers), np.uint32)


def expected(config: SPUConfig, samples: Sequence[Sample], settings: Sequence[Registers]) -> NDArray[np.uint32]:
    """Return the answers of the reference, in the form of `Filter.answers`."""

    def answer(registers: Registers, sample: Sample) -> int:
        bits = int(filtering.collect(config, registers, sample))
        events = filtering.feed(config, registers, sample)
        return bits | sum(int(events[event]) << bit for bit, event in enumerate(config.feed_events, 1))

    return np.array([[answer(registers, sample) for sample in samples] for registers in settings], np.uint32)


def count(config: SPUConfig, registers: Registers, answers: NDArray[np.uint32], counts: Counter[str]) -> None:
    """Count which filters kept and discarded samples, and each value of each PMU event."""
    ones = [int((answers >> bit & 1).sum()) for bit in range(1 + len(config.feed_events))]
    enabled = [name for name in config.filters if registers.PMSFCR_EL1 & PMSFCR_EL1.fields[name].mask]
    for filters in ("+".join(enabled) or "none", *_unpredictable(config, registers, enabled)):
        counts[f"{filters} keeps"] += ones[0]
        counts[f"{filters} discards"] += answers.size - ones[0]
    for event, number in zip(config.feed_events, ones[1:], strict=True):
        counts[f"{event} 1"] += number
        counts[f"{event} 0"] += answers.size - number


def _unpredictable(config: SPUConfig, registers: Registers, enabled: list[str]) -> Iterator[str]:
    """Yield the settings of enabled filters that are CONSTRAINED UNPREDICTABLE."""
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
    """Return the filters that must select something."""
    return [name for name in config.filters if name != "FDS" and not (name == "FT" and config.eft)]


def coverage_goals(config: SPUConfig) -> Iterator[str]:
    """Yield the outcomes that a run of a million decisions must have."""
    sets = [[]]
    for name in config.filters:
        sets += [[*names, name] for names in sets]
    for names in sets:
        yield f"{'+'.join(names) or 'none'} keeps"
        if names:
            yield f"{'+'.join(names)} discards"
    for setting in (*(f"{name} of nothing" for name in _selecting(config)), *(["overlap"] if config.fne else [])):
        yield f"{setting} discards"
        if config.unpredictable_filter is UnpredictableFilter.NO_EFFECT:
            yield f"{setting} keeps"
    for event in config.feed_events:
        yield from (f"{event} 0", f"{event} 1")


@pytest.mark.parametrize(
    ("name", "decisions"),
    tiers(
        fast=[("unnamed", 16_000)],
        full=[("minimal", 250_000), ("neoverse_n1", 64_000), ("v1p4", 64_000), ("unnamed_packed", 64_000)],
        long=[(name, 1_000_000) for name in FOR_BLOCKS],
    ),
)
def test_filter(name: str, decisions: int, record_property: Callable[[str, object], None]) -> None:
    config = FOR_BLOCKS[name]
    compiled_filter = Filter(config)
    random = Random(f"{SEED} {name}")
    counts = Counter[str]()
    for _ in range(-(-decisions // (SAMPLES * SETTINGS))):
        samples = [random_sample(random, config) for _ in range(SAMPLES)]
        settings = [random_registers(random, config, random.choice(samples)) for _ in range(SETTINGS)]
        answers, expected_answers = compiled_filter.answers(samples, settings), expected(config, samples, settings)
        for setting, sample in np.argwhere(answers != expected_answers)[:1]:
            actual, correct = answers[setting, sample], expected_answers[setting, sample]
            outputs = ", ".join(["verdict", *config.feed_events])
            pytest.fail(
                f"{actual:#b} is not {correct:#b} ({outputs}; from bit 0): {samples[sample]}, {settings[setting]}"
            )
        for registers, row in zip(settings, answers, strict=True):
            count(config, registers, row, counts)
    if decisions >= 1_000_000:  # shorter runs may miss an outcome
        rare = [name for name in coverage_goals(config) if counts[name] < 50]
        assert not rare, f"fewer than 50 of each of: {rare}"
    record_property("decisions", decisions)
