"""Benchmarks of the simulators, and their rates for each CPU second."""

import contextlib
import io
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spurtle.config import CONFIGS, SPUConfig
from spurtle_sim.emulator.program import Program
from spurtle_sim.profile.driver import Driver
from spurtle_sim.profile.emulation import Emulation
from spurtle_sim.profile.run import run_profile
from spurtle_sim.qemu.find import find_qemu
from spurtle_sim.timing.core import read_core
from spurtle_sim.timing.model import TimingModel

from . import stimulus
from .cxxrtl import CXXRTLPlayer

__all__ = ["REFERENCE", "Benchmark", "BenchmarkError", "benchmarks", "cpu_seconds", "rates"]

ROUNDS = 5
"""Rounds of a measurement."""
WORKLOADS = {
    name: Path(__file__).resolve().parents[1] / f"sim/workloads/{name}.elf" for name in ("sort", "chase", "simd")
}
"""Executables of the profiled programs, by name."""
PROFILED = CONFIGS["neoverse_n1"]
"""Configuration of `spurtle profile` and of the CXXRTL model."""
COMPILED = (CONFIGS["neoverse_n1"], CONFIGS["v1p4"])
"""Configurations of the compiled SPU."""
CYCLES = 1 << 19
"""Simulated cycles of a compiled SPU."""
BATCH = 1 << 16
"""Operations in a batch, as in the batches of `Program.run`."""
CXXRTL_CYCLES = 1 << 18
"""Simulated cycles of the CXXRTL model."""
COMPARED_CYCLES = 20_000
"""Cycles after which the CXXRTL model and the compiled SPU must have written the same records."""


class BenchmarkError(Exception):
    """Wrong result of a simulator, which invalidates its rate. The message is a sentence."""


@dataclass(frozen=True)
class Benchmark:
    """A simulator with its load.

    Parameters
    ----------
    stage : str
        Name of the simulator.
    subject : str
        Name of the simulated configuration or program.
    unit : str
        `operations` or `cycles`.
    prepare : function
        Prepares a run, and returns the function to be timed, which returns the number of simulated units.
    """

    stage: str
    subject: str
    unit: str
    prepare: Callable[[], Callable[[], int]]

    @property
    def title(self) -> str:
        """Simulator and subject, for messages."""
        return f"{self.stage} ({self.subject})"


def rates(measured: Sequence[Benchmark], rounds: int, note: Callable[[str], None]) -> dict[Benchmark, float]:
    """Return the rate of each benchmark in units per CPU second: the best of the rounds.

    The best counts because other processes can only slow a run down. Each round runs all benchmarks, so that a slow
    phase of the machine does not affect a single one.

    Parameters
    ----------
    measured : sequence of Benchmark
    rounds : int
    note : function
        Receives a description of each run before it starts.

    Raises
    ------
    BenchmarkError
        If a benchmark simulates nothing, or not the same number of units in each round.
    """
    best: dict[Benchmark, float] = {}
    units: dict[Benchmark, int] = {}
    for number in range(1, rounds + 1):
        for benchmark in measured:
            note(f"round {number} of {rounds}: {benchmark.title}")
            run = benchmark.prepare()
            start = cpu_seconds()
            count = run()
            seconds = cpu_seconds() - start
            first = units.setdefault(benchmark, count)
            if not count or count != first:
                raise BenchmarkError(
                    f"{benchmark.title} simulated {count:,} {benchmark.unit}, and {first:,} in the first round"
                )
            best[benchmark] = max(best.get(benchmark, 0.0), count / seconds)
    return best


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of its child processes that have ended."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def benchmarks(folder: Path) -> list[Benchmark]:
    """Return all benchmarks, `REFERENCE` first. `spurtle profile` writes its output to `folder`.

    Raises
    ------
    BenchmarkError
        If the CXXRTL model and the compiled SPU do not write the same records.
    """
    listed = [cxxrtl_model()]
    listed += [compiled_spu(config) for config in COMPILED]
    listed += [compiled_spu_from_python(config) for config in COMPILED]
    for name, path in WORKLOADS.items():
        program = Program(path)
        operations = [batch.copy() for batch in program.run()]
        count = sum(map(len, operations))
        listed += [emulator(name, path), timing_model(name, program, operations)]
        listed += [
            complete_profile(stage, name, path, folder, count)
            for stage, (emulation, _) in _PROFILES.items()
            if emulation.emulator == "unicorn" or find_qemu()
        ]
    return sorted(listed, key=lambda benchmark: _STAGES.index(benchmark.stage))


_PROFILES = {
    "complete profile": (Emulation(emulator="unicorn"), False),
    "fast-forward": (Emulation(emulator="unicorn"), True),
    "QEMU, fast-forward": (Emulation(emulator="qemu"), True),
}
"""Emulator of each stage that profiles a program, and whether it is fast-forwarded. The others are checked."""

_STAGES = ("CXXRTL model", "compiled SPU", "compiled SPU from Python", "emulator", "timing model", *_PROFILES)
REFERENCE = _STAGES[0]
"""Stage with which the others are compared."""


def emulator(name: str, path: Path) -> Benchmark:
    """Return the benchmark of `Program.run` alone."""

    def prepare() -> Callable[[], int]:
        program = Program(path)

        def run() -> int:
            count = sum(len(batch) for batch in program.run())
            if program.exit_status != 0:
                raise BenchmarkError(f"{path.name} must exit with status 0, not {program.exit_status}")
            return count

        return run

    return Benchmark("emulator", name, "operations", prepare)


def timing_model(name: str, program: Program, operations: Sequence[NDArray[np.void]]) -> Benchmark:
    """Return the benchmark of `TimingModel.run` alone, on the operations of a program."""

    def prepare() -> Callable[[], int]:
        model = TimingModel(program.instructions, read_core().for_lanes(PROFILED.ops_per_cycle))
        return lambda: sum(len(model.run(batch)) for batch in operations)

    return Benchmark("timing model", name, "operations", prepare)


def complete_profile(stage: str, name: str, path: Path, folder: Path, operations: int) -> Benchmark:
    """Return the benchmark of `spurtle profile` on a program that executes `operations` operations.

    `stage` is a key of `_PROFILES`.
    """
    emulation, fast_forward = _PROFILES[stage]

    def prepare() -> Callable[[], int]:
        output = str(folder / f"{name}.data")

        def run() -> int:
            messages = io.StringIO()
            with contextlib.redirect_stderr(messages):
                status = run_profile(
                    PROFILED, path, sampling=stimulus.SAMPLING, output=output, check=not fast_forward,
                    fast_forward=fast_forward, emulation=emulation,
                )  # fmt: skip
            if status != 0:
                raise BenchmarkError(f"spurtle profile of {path.name} failed: {messages.getvalue().strip()}")
            return operations

        return run

    return Benchmark(stage, name, "operations", prepare)


def compiled_spu(config: SPUConfig) -> Benchmark:
    """Return the benchmark of `CompiledSPU.play` on one batch, which is a loop in C++."""

    def prepare() -> Callable[[], int]:
        spu = stimulus.prepared_spu(config)
        rows = stimulus.program(config, CYCLES)

        def run() -> int:
            spu.play(rows, settle=True)
            spu.drain()
            return _cycles(config, spu.counts(), len(rows))

        return run

    return Benchmark("compiled SPU", config.name, "cycles", prepare)


def compiled_spu_from_python(config: SPUConfig) -> Benchmark:
    """Return the benchmark of `Driver.run` on many batches, with the interrupts of a small Profiling Buffer."""

    def prepare() -> Callable[[], int]:
        driver = Driver(config, stimulus.SAMPLING, context=0, check=False)
        rows = stimulus.program(config, CYCLES)

        def run() -> int:
            for first in range(0, len(rows), BATCH):
                driver.run(rows[first : first + BATCH])
            driver.stop()
            return _cycles(config, driver.counts(), len(rows))

        return run

    return Benchmark("compiled SPU from Python", config.name, "cycles", prepare)


def _cycles(config: SPUConfig, counts: dict[str, int], rows: int) -> int:
    """Return the number of simulated cycles.

    Raises
    ------
    BenchmarkError
        If operations or records are missing.
    """
    found = counts["pop"], counts["records"]
    expected = rows, rows // (stimulus.SAMPLING.interval + 1)
    if found != expected:
        raise BenchmarkError(f"{config.name} must count and record {expected} operations, not {found}")
    return counts["cycles"]


def cxxrtl_model() -> Benchmark:
    """Return the benchmark of the CXXRTL model in a loop in C++.

    Raises
    ------
    BenchmarkError
        If the model does not write the records of the compiled SPU.
    """
    player, spu = CXXRTLPlayer(PROFILED), stimulus.prepared_spu(PROFILED)
    player.play(COMPARED_CYCLES)
    spu.play(stimulus.program(PROFILED, COMPARED_CYCLES))
    if not player.records or player.memory != spu.memory.tobytes():
        raise BenchmarkError(f"the CXXRTL model of {PROFILED.name} does not write the records of the compiled SPU")

    def run() -> int:
        player.play(CXXRTL_CYCLES)
        return CXXRTL_CYCLES

    return Benchmark(REFERENCE, PROFILED.name, "cycles", lambda: run)
