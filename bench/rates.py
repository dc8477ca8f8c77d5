"""Rates of the simulators, in CPU seconds of this process: what they are measured on, and how."""

import contextlib
import io
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spurtle.config import CONFIGS, SPUConfig
from spurtle_sim.cosim.spu import CompiledSPU
from spurtle_sim.emulator.program import Program
from spurtle_sim.profile.driver import Driver
from spurtle_sim.profile.run import run_profile
from spurtle_sim.timing.model import TimingModel
from spurtle_sim.timing.parameters import Parameters

from . import stimulus
from .cxxrtl import Player

__all__ = ["REFERENCE", "Measure", "MeasureError", "measures", "rates"]

ROUNDS = 5
WORKLOADS = {
    name: Path(__file__).resolve().parents[1] / f"sim/workloads/{name}.elf" for name in ("sort", "chase", "simd")
}
PROFILED = CONFIGS["neoverse_n1"]
"""Configuration of `spurtle profile`, and of the CXXRTL model."""
COMPILED = (CONFIGS["neoverse_n1"], CONFIGS["v1p4"])
CYCLES = 1 << 19
"""Of a compiled SPU."""
BATCH = 1 << 16
"""Operations in a batch, as `Program.run` gives them."""
CXXRTL_CYCLES = 1 << 18
COMPARED_CYCLES = 20_000
"""Cycles after which the CXXRTL model and the compiled SPU must have written the same records."""


class MeasureError(Exception):
    """A simulator did not do what its rate is of: one sentence."""


@dataclass(frozen=True)
class Measure:
    """A simulator and its load.

    Parameters
    ----------
    stage, subject : str
        Which simulator, and what it simulates.
    unit : str
        `operations` or `cycles`.
    prepare : function
        Prepares a run. It returns the function that is timed, which returns how many units it has simulated.
    """

    stage: str
    subject: str
    unit: str
    prepare: Callable[[], Callable[[], int]]

    @property
    def title(self) -> str:
        """Its name in a sentence."""
        return f"{self.stage} ({self.subject})"


def rates(measured: Sequence[Measure], rounds: int, note: Callable[[str], None]) -> dict[Measure, float]:
    """Return units per CPU second, the best of the rounds: other processes can only take time away. Each round runs
    all measures, so that a slow phase of the machine does not fall on one alone. `note` receives what is measured.

    Raises MeasureError if a measure does not simulate the same number of units in each round, or none.
    """
    best: dict[Measure, float] = {}
    units: dict[Measure, int] = {}
    for number in range(1, rounds + 1):
        for measure in measured:
            note(f"round {number} of {rounds}: {measure.title}")
            run = measure.prepare()
            start = time.process_time()
            count = run()
            seconds = time.process_time() - start
            first = units.setdefault(measure, count)
            if not count or count != first:
                raise MeasureError(
                    f"{measure.title} simulated {count:,} {measure.unit}, and {first:,} in the first round"
                )
            best[measure] = max(best.get(measure, 0.0), count / seconds)
    return best


def measures(folder: Path) -> list[Measure]:
    """Return all measures, `REFERENCE` first. What `spurtle profile` writes goes to `folder`.

    Raises MeasureError if the CXXRTL model and the compiled SPU do not write the same records.
    """
    listed = [cxxrtl()]
    listed += [compiled(config) for config in COMPILED]
    listed += [driven(config) for config in COMPILED]
    for name, path in WORKLOADS.items():
        program = Program(path)
        operations = [batch.copy() for batch in program.run()]
        listed += [
            emulator(name, path),
            timing(name, program, operations),
            whole(name, path, folder, sum(map(len, operations))),
        ]
    return sorted(listed, key=lambda measure: _STAGES.index(measure.stage))


_STAGES = ("CXXRTL model", "compiled SPU", "compiled SPU from Python", "emulator", "timing model", "whole path")
REFERENCE = _STAGES[0]
"""The stage that others are compared with."""


def emulator(name: str, path: Path) -> Measure:
    """`Program.run` alone."""

    def prepare() -> Callable[[], int]:
        program = Program(path)

        def run() -> int:
            count = sum(len(batch) for batch in program.run())
            if program.exit_status != 0:
                raise MeasureError(f"{path.name} must exit with status 0, not {program.exit_status}")
            return count

        return run

    return Measure("emulator", name, "operations", prepare)


def timing(name: str, program: Program, operations: Sequence[NDArray[np.void]]) -> Measure:
    """`TimingModel.run` alone, of operations that the program has made before."""

    def prepare() -> Callable[[], int]:
        timing_model = TimingModel(program.instructions, Parameters(ops_per_cycle=PROFILED.ops_per_cycle))
        return lambda: sum(len(timing_model.run(batch)) for batch in operations)

    return Measure("timing model", name, "operations", prepare)


def whole(name: str, path: Path, folder: Path, operations: int) -> Measure:
    """`spurtle profile --check` of a program with so many operations."""

    def prepare() -> Callable[[], int]:
        output = str(folder / f"{name}.data")

        def run() -> int:
            said = io.StringIO()
            with contextlib.redirect_stderr(said):
                status = run_profile(PROFILED, path, sampling=stimulus.SAMPLING, output=output, check=True)
            if status != 0:
                raise MeasureError(f"spurtle profile --check {path.name} failed: {said.getvalue().strip()}")
            return operations

        return run

    return Measure("whole path", name, "operations", prepare)


def compiled(config: SPUConfig) -> Measure:
    """`CompiledSPU.play` of one batch: a loop in C++."""

    def prepare() -> Callable[[], int]:
        engine = _engine(config)
        rows = stimulus.program(config, CYCLES)

        def run() -> int:
            engine.play(rows, settle=True)
            engine.drain()
            return _cycles(config, engine.counts(), len(rows))

        return run

    return Measure("compiled SPU", config.name, "cycles", prepare)


def driven(config: SPUConfig) -> Measure:
    """`Driver.run` of many batches, with the interrupts of a small Profiling Buffer."""

    def prepare() -> Callable[[], int]:
        driver = Driver(config, stimulus.SAMPLING, context=0, check=False)
        rows = stimulus.program(config, CYCLES)

        def run() -> int:
            for first in range(0, len(rows), BATCH):
                driver.run(rows[first : first + BATCH])
            driver.stop()
            return _cycles(config, driver.counts(), len(rows))

        return run

    return Measure("compiled SPU from Python", config.name, "cycles", prepare)


def _cycles(config: SPUConfig, counts: dict[str, int], rows: int) -> int:
    """Return the cycles that were simulated. Raise MeasureError if operations or records are missing."""
    found = counts["pop"], counts["records"]
    expected = rows, rows // (stimulus.SAMPLING.interval + 1)
    if found != expected:
        raise MeasureError(f"{config.name} must count and record {expected} operations, not {found}")
    return counts["cycles"]


def cxxrtl() -> Measure:
    """The CXXRTL model in a loop in C++. Raise MeasureError if it writes other records than the compiled SPU."""
    player, engine = Player(PROFILED), _engine(PROFILED)
    player.play(COMPARED_CYCLES)
    engine.play(stimulus.program(PROFILED, COMPARED_CYCLES))
    if not player.records or player.memory != engine.memory.tobytes():
        raise MeasureError(f"the CXXRTL model of {PROFILED.name} does not write the records of the compiled SPU")

    def run() -> int:
        player.play(CXXRTL_CYCLES)
        return CXXRTL_CYCLES

    return Measure(REFERENCE, PROFILED.name, "cycles", lambda: run)


def _engine(config: SPUConfig) -> CompiledSPU:
    engine = CompiledSPU(config)
    engine.set_buffer(stimulus.BASE, stimulus.SIZE)
    for register, value in stimulus.writes(config):
        engine.write(register, value)
    return engine
