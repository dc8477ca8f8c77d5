"""Profiling of a program: its operations are timed and played on the RTL, and its records written as perf.data."""

import os
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from signal import SIG_IGN, Signals, getsignal, signal
from types import FrameType
from typing import Any

from rich.console import Console, RenderableType
from rich.live import Live
from rich.spinner import Spinner

from spurtle.config import SPUConfig, check_config
from spurtle.support.arguments import check_type
from spurtle.support.errors import PROFILE_FAILED, UserError
from spurtle.support.files import STANDARD_INPUT
from spurtle.support.streams import print_stderr

from ..cosim import spu
from ..emulator import hooks
from ..emulator.program import Program
from ..native.library import load
from ..perf.events import Mmap, mmap_event, process_events
from ..perf.process import PID, Mapping, Process
from ..perf.spool import Spool
from ..perf.writer import Recording
from ..timing import model
from ..timing.model import TimingModel
from ..timing.parameters import Parameters
from . import outputs
from .driver import Driver
from .options import Sampling

__all__ = ["process_of", "run_profile"]

_DEFAULT = Sampling()
_PROGRESS_DELAY = 2.0  # seconds before a run shows its progress


def run_profile(
    config: SPUConfig,
    program: str | Path,
    arguments: Sequence[str] = (),
    *,
    sampling: Sampling = _DEFAULT,
    output: str = "perf.data",
    check: bool = False,
) -> int:
    """Run a program and write its profile.

    SIGINT and SIGTERM end the program. The records until then are written, as they are after a crash.

    Parameters
    ----------
    config : SPUConfig
    program : str or Path
        A static AArch64 Linux executable.
    arguments : sequence of str
    sampling : Sampling
        Interval, filters and random numbers. The default is an interval of 768 operations without filters.
    output : str
        Name of the perf.data file. The raw buffer is written to the same name with `.spe` appended, the exact counts
        with `.exact.json` appended. In Discard mode no file is written.
    check : bool
        Compare all results with the reference model.

    Returns
    -------
    int
        The program's exit status as a shell shows it, or PROFILE_FAILED if a comparison failed.

    Raises
    ------
    TypeError
        If an argument is of another type.
    ValueError
        If the configuration does not have one of the filters.
    UserError
        If the program cannot be run, or the output cannot be written.
    """
    check_config(config)
    check_type("sampling", sampling, Sampling)
    sampling.check(config)
    if isinstance(arguments, str):
        raise TypeError(f"arguments must be a sequence of strings, not the string {arguments!r}")
    outputs.check_output(output, str(program), STANDARD_INPUT)
    with closing(Spool(Path(os.path.realpath(output)).parent)) as spool:
        return _run(config, Program(program, arguments), sampling, output, spool, check=check)


def _run(config: SPUConfig, program: Program, sampling: Sampling, output: str, spool: Spool, *, check: bool) -> int:
    # Compiling takes seconds for each library that is not in the cache, so they are compiled in parallel.
    load([spu.library(config), model.library(), hooks.library()])
    process = process_of(program)
    timing_model = TimingModel(program.instructions, Parameters(ops_per_cycle=config.ops_per_cycle))
    driver = Driver(config, sampling, context=process.pid, check=check, spool=spool)

    start = time.monotonic()
    mappings: list[Mmap] = []
    with _ended_by_signals(program) as received:
        with _progress(driver, start):
            mappings.extend(
                mmap_event(process, driver.time, mapping) for mapping in _play(program, timing_model, driver)
            )
            driver.stop()
        seconds = time.monotonic() - start
        if not sampling.filters.discard:
            recording = Recording(
                argv=process.argv,
                events=process_events(process, driver.aux, later=mappings, end=driver.time),
                midr=outputs.midr(config.name),
                settings=sampling.settings(),
            )
            outputs.save(output, recording, driver.exact)
    discarded = config.feed_events if sampling.filters.discard else None
    _summary(driver, seconds, output, discarded)
    if discarded is None:
        _highlights(output)
    if program.failure:
        print_stderr(f"spurtle: {program.failure}")
    elif received:
        print_stderr(f"spurtle: {received[0].name} ended {program.path.name}")
    if driver.checker and driver.checker.count:
        for mismatch in driver.checker.mismatches:
            print_stderr(f"spurtle: {mismatch}")
        print_stderr(f"spurtle: mismatches between RTL and reference: {driver.checker.count}")
        return PROFILE_FAILED
    return program.exit_status or 0


@contextmanager
def _ended_by_signals(program: Program) -> Generator[Sequence[Signals]]:
    """End the program on SIGINT and SIGTERM, and yield the signals received.

    After the program has ended the signals have no effect, so that its profile is written: `timeout` sends them twice.
    """
    received: list[Signals] = []

    def handle(number: int, _: FrameType | None) -> None:
        if program.exit_status is None:
            received.append(Signals(number))
        program.kill(Signals(number))

    if threading.current_thread() is not threading.main_thread():
        yield received  # Python runs signal handlers only in the main thread
        return
    numbers = [number for number in (Signals.SIGINT, Signals.SIGTERM) if getsignal(number) is not SIG_IGN]
    before = {number: signal(number, handle) for number in numbers}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal(number, handler)


def process_of(program: Program) -> Process:
    """Return the process that executes the program."""
    image = program.image
    return Process(program.path, program.argv, PID, image.mappings, image.build_id)


def _play(program: Program, timing_model: TimingModel, driver: Driver) -> Iterator[Mapping]:
    """Run the program on the SPU. Yield each mapping that it makes, after the operations before it have passed."""
    passed, yielded = 0, 0
    for operations in program.run():
        timed = timing_model.run(operations)
        for retired, mapping in program.runtime_mappings[yielded:]:
            yielded += 1
            driver.run(timed[: retired - passed])
            timed = timed[retired - passed :]
            passed = retired
            yield mapping
        driver.run(timed)
        passed += len(timed)


@contextmanager
def _progress(driver: Driver, start: float) -> Generator[None]:
    """Show the progress of a run in a line on standard error, after `_PROGRESS_DELAY` and only on a terminal."""

    class Line:
        def __init__(self) -> None:
            self._spinner = Spinner("dots")

        def __rich__(self) -> RenderableType:
            seconds = time.monotonic() - start
            if seconds < _PROGRESS_DELAY:
                return ""
            operations = driver.counts()["pop"]
            self._spinner.update(text=f"{operations:,} operations, {driver.sampled:,} samples, {seconds:.0f} s")
            return self._spinner

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    line: Any = Line()
    with Live(line, console=console, transient=True, redirect_stdout=False, redirect_stderr=False):
        yield


def _highlights(output: str) -> None:
    """Print the most important lines of the report, if there are records."""
    from ..report.reading import read_profile
    from ..report.summary import build_highlights
    from ..report.terminal import highlights

    try:
        contents = build_highlights(read_profile(output, Path(output).read_bytes(), None))
    except (OSError, UserError):  # no sample passed the filter, or another program has removed the file
        return
    for line in highlights(contents):
        print_stderr(line)


def _summary(driver: Driver, seconds: float, output: str, discarded: Sequence[str] | None) -> None:
    """Print the summary of a run.

    `discarded` has the events whose counts are the only result in Discard mode. It is None if records were written.
    """
    counts = driver.counts()
    operations, passed, rate = counts["pop"], counts["filtrate"], counts["pop"] / seconds / 1e6
    records = counts["records"]
    checked = ""
    if driver.checker:
        correct = ", all checked" if discarded is not None else ", each one checked"
        checked = ", with mismatches" if driver.checker.count else correct
    if discarded is not None:
        counted = ", ".join(f"SAMPLE_FEED_{name.upper()} {counts[f'feed_{name}']:,}" for name in discarded)
        result = f"no records and no file in Discard mode{checked}: {counted}"
    else:
        result = f"""\
{records:,} records, {sum(len(aux.data) for aux in driver.aux):,} bytes{checked}: {outputs.raw_path(output)}
{outputs.reader_commands(output)}"""
    summary = f"""\
{operations:,} operations in {counts["time"]:,} cycles, {seconds:.1f} s: {rate:.2f} million operations/s
{driver.sampled:,} sampled, {driver.collided:,} collided, {passed:,} passed the filter, {driver.interrupts:,} interrupts
{result}"""
    print_stderr(summary)
