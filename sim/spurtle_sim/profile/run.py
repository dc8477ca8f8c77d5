"""Profiling of a program: its operations are timed and played on the RTL, and its records written as perf.data."""

import os
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from signal import SIG_IGN, Signals, getsignal, signal
from types import FrameType
from typing import Any

from rich.console import Console, RenderableType
from rich.live import Live
from rich.spinner import Spinner

from spurtle.config import SPUConfig, check_config
from spurtle.support.arguments import check_type
from spurtle.support.errors import PROFILE_FAILED
from spurtle.support.files import STANDARD_INPUT
from spurtle.support.streams import print_stderr

from ..cosim import spu
from ..emulator.front_end import SIGNAL_STATUS, FrontEnd
from ..native.library import load
from ..perf.events import TimedEvent, process_events
from ..perf.spool import Spool
from ..perf.writer import Recording
from ..timing import model
from ..timing.model import TimingModel
from ..timing.parameters import Parameters
from . import outputs
from .driver import Driver
from .emulation import Emulation
from .options import Sampling

__all__ = ["run_profile"]

_DEFAULT = Sampling()
_DEFAULT_EMULATION = Emulation()
_PROGRESS_DELAY = 2.0  # seconds before a run shows its progress


def run_profile(
    config: SPUConfig,
    program: str | Path,
    arguments: Sequence[str] = (),
    *,
    sampling: Sampling = _DEFAULT,
    output: str = "perf.data",
    check: bool = False,
    emulation: Emulation = _DEFAULT_EMULATION,
) -> int:
    """Run a program and write its profile.

    SIGINT and SIGTERM end the program. The records until then are written, as they are after a crash.

    Parameters
    ----------
    config : SPUConfig
    program : str or Path
        An AArch64 Linux executable. Without QEMU it must be static.
    arguments : sequence of str
    sampling : Sampling
        Interval, filters and random numbers. The default is an interval of 768 operations without filters.
    output : str
        Name of the perf.data file. The raw buffer is written to the same name with `.spe` appended. In Discard mode no
        file is written.
    check : bool
        Compare all results with the reference model.
    emulation : Emulation
        Emulator that executes the program, and its options.

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
    check_type("emulation", emulation, Emulation)
    sampling.check(config)
    if isinstance(arguments, str):
        raise TypeError(f"arguments must be a sequence of strings, not the string {arguments!r}")
    outputs.check_output(output, str(program), STANDARD_INPUT)
    with closing(Spool(Path(os.path.realpath(output)).parent)) as spool:
        return _run(config, emulation.program(program, arguments), sampling, output, spool, check=check)


def _run(config: SPUConfig, program: FrontEnd, sampling: Sampling, output: str, spool: Spool, *, check: bool) -> int:
    # Compiling takes seconds for each library that is not in the cache, so they are compiled in parallel.
    load([spu.library(config), model.library(), *program.libraries()])
    print_stderr(program.grade)
    process = program.process
    timing_model = TimingModel(program.instructions, Parameters(ops_per_cycle=config.ops_per_cycle))
    driver = Driver(config, sampling, context=process.pid, check=check, spool=spool)

    start = time.monotonic()
    events: list[TimedEvent] = []
    with _ended_by_signals(program) as received:
        with _progress(driver, start):
            events.extend(_play(program, timing_model, driver))
            driver.stop()
        seconds = time.monotonic() - start
        if not sampling.filters.discard:
            recording = Recording(
                argv=process.argv,
                events=process_events(process, driver.aux, later=events, end=driver.time),
                midr=outputs.midr(config.name),
                settings=sampling.settings(),
            )
            outputs.save(output, recording)
    discarded = config.feed_events if sampling.filters.discard else None
    _summary(driver, seconds, output, discarded)
    if program.hint:
        print_stderr(f"spurtle: {program.hint}")
    if program.failure:
        print_stderr(f"spurtle: {program.failure}")
    elif received and program.exit_status == SIGNAL_STATUS + received[0]:
        print_stderr(f"spurtle: {received[0].name} ended {program.path.name}")
    if driver.checker and driver.checker.count:
        for mismatch in driver.checker.mismatches:
            print_stderr(f"spurtle: {mismatch}")
        print_stderr(f"spurtle: mismatches between RTL and reference: {driver.checker.count}")
        return PROFILE_FAILED
    return program.exit_status or 0


@contextmanager
def _ended_by_signals(program: FrontEnd) -> Generator[Sequence[Signals]]:
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


def _play(program: FrontEnd, timing_model: TimingModel, driver: Driver) -> Iterator[TimedEvent]:
    """Run the program on the SPU. Yield each of its events, after the operations before it have passed."""
    for batch in program.batches():
        if batch.changed:
            timing_model.redefine(batch.changed)
        if len(batch.operations):
            driver.switch(batch.thread)
            driver.run(timing_model.run(batch.operations))
        yield from (replace(event, time=driver.time) for event in batch.events)


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
