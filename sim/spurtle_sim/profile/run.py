"""Profiling of a program: its operations are timed and played on the RTL, and its records written as perf.data."""

import threading
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from signal import SIG_IGN, Signals, getsignal, signal
from types import FrameType

from spurtle.config import SPUConfig, check_config
from spurtle.support.arguments import check_type
from spurtle.support.errors import PROFILE_FAILED, SIGNAL_STATUS
from spurtle.support.files import STANDARD_INPUT
from spurtle.support.streams import print_stderr

from ..cosim import spu
from ..emulator.front_end import FrontEnd
from ..native.library import load
from ..perf.events import TimedEvent
from ..timing import model
from ..timing.core import DEFAULT_CORE, NAMED_CORES, read_core
from ..timing.model import TimingModel
from . import executed, outputs
from .driver import Driver
from .emulation import Emulation
from .extra import ExtraFiles, OpenFiles
from .options import Sampling
from .player import Player
from .progress import Progress
from .result import ProfileResult
from .saved import OperationsSaver
from .window import Window

__all__ = ["run_profile"]

_ENDING = (Signals.SIGINT, Signals.SIGTERM, Signals.SIGHUP)
_DEFAULT = Sampling()
_COMPLETE = Window()
_NO_FILES = ExtraFiles()
_DEFAULT_EMULATION = Emulation()


def run_profile(
    config: SPUConfig,
    program: str | Path,
    arguments: Sequence[str] = (),
    *,
    sampling: Sampling = _DEFAULT,
    core: str = DEFAULT_CORE,
    window: Window = _COMPLETE,
    output: str = "perf.data",
    extra: ExtraFiles = _NO_FILES,
    check: bool = False,
    fast_forward: bool = False,
    emulation: Emulation = _DEFAULT_EMULATION,
) -> int:
    """Run a program and write its profile.

    SIGINT, SIGTERM and SIGHUP end the program. The records until then are written, as after a crash.

    Parameters
    ----------
    config : SPUConfig
    program : str or Path
        An AArch64 Linux executable. Without QEMU it must be static.
    arguments : sequence of str
    sampling : Sampling
        Interval, filters and random numbers. The default is an interval of 768 operations without filters.
    core : str
        Core whose operations are sampled: the name of a core of `timing.core`, or a core file.
    window : Window
        Part that is profiled, and end of the run. The default is the complete run.
    output : str
        Name of the perf.data file. `{output}.spe` and `{output}.exact.json` are written too; no file in Discard mode.
    extra : ExtraFiles
        Files for timed operations and waveforms. The default is none.
    check : bool
        Compare all results with the reference model.
    fast_forward : bool
        Simulate only the cycles around each sample. The result is the same. Not with waveforms.
    emulation : Emulation
        Emulator that executes the program, and its options.

    Returns
    -------
    int
        The program's exit status as a shell shows it, or PROFILE_FAILED if a comparison failed.

    Raises
    ------
    TypeError, ValueError
        If an argument is of another type; if the configuration has not all filters; if waveforms are fast-forwarded.
    UserError
        If the program cannot be run, the core cannot be read, or the output cannot be written.
    """
    _check_types(config, sampling, window, emulation, arguments)
    sampling.check(config)
    extra.check(fast_forward=fast_forward)
    outputs.check_output(output, *_inputs(program, core, emulation), also=extra.names)
    with closing(OpenFiles(output, extra)) as files:
        run = emulation.program(program, arguments)
        return _run(config, run, core, sampling, window, output, files, check=check, fast_forward=fast_forward)


def _check_types(config: object, sampling: object, window: object, emulation: object, arguments: object) -> None:
    check_config(config)
    check_type("sampling", sampling, Sampling)
    check_type("window", window, Window)
    check_type("emulation", emulation, Emulation)
    if isinstance(arguments, str):
        raise TypeError(f"arguments must be a sequence of strings, not the string {arguments!r}")


def _inputs(program: str | Path, core: str, emulation: Emulation) -> list[str]:
    """Return the files that a run reads, which no output must replace."""
    return [str(program), STANDARD_INPUT, *([] if core in NAMED_CORES else [core]), *emulation.inputs]


def _run(
    config: SPUConfig,
    program: FrontEnd,
    core: str,
    sampling: Sampling,
    window: Window,
    output: str,
    files: OpenFiles,
    *,
    check: bool,
    fast_forward: bool,
) -> int:
    parameters = read_core(core).for_lanes(config.ops_per_cycle)
    # Compiling takes seconds for each library that is not in the cache, so they are compiled in parallel.
    load([spu.library(config, files.waves), model.library(), executed.library(), *program.libraries()])
    print_stderr(program.grade)
    process = program.process
    timing_model = TimingModel(program.instructions, parameters)
    driver = Driver(
        config, sampling, context=process.pid, check=check, spool=files.spool, waves=files.waves,
        fast_forward=fast_forward,
    )  # fmt: skip

    progress = Progress(driver, window.total)
    result = ProfileResult(config, sampling, driver, process, output)
    with _ended_by_signals(program) as received:
        with progress.shown():
            result.collect(_play(program, timing_model, driver, window, progress, files.saver))
        seconds = progress.seconds
        result.save(files)
    result.print_summary(seconds)
    if program.hint:
        print_stderr(f"spurtle: {program.hint}")
    if program.failure:
        print_stderr(f"spurtle: {program.failure}")
    elif received and program.exit_status == SIGNAL_STATUS + received[0]:
        print_stderr(f"spurtle: {received[0].name} ended {program.path.name}")
    if result.print_mismatches():
        return PROFILE_FAILED
    return program.exit_status or 0


@contextmanager
def _ended_by_signals(program: FrontEnd) -> Generator[Sequence[Signals]]:
    """End the program on SIGINT, SIGTERM and SIGHUP, and yield the signals received.

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
    numbers = [number for number in _ENDING if getsignal(number) is not SIG_IGN]
    before = {number: signal(number, handle) for number in numbers}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal(number, handler)


def _play(
    program: FrontEnd,
    timing_model: TimingModel,
    driver: Driver,
    window: Window,
    progress: Progress,
    saver: OperationsSaver | None,
) -> list[TimedEvent]:
    """Run the program on the SPU. Return its events, with the times at which the operations before them have passed."""
    with closing(window.batches(program.batches())) as batches, Player(driver, saver) as player:
        for batch in batches:
            if batch.changed:
                timing_model.redefine(batch.changed)
            before, profiled = window.split(batch.operations, progress.operations)
            if len(before):
                timing_model.run(before)
            if len(profiled):
                player.play(timing_model.run(profiled), batch.thread)
            progress.operations += len(batch.operations)
            player.add(batch.events)
    return player.events
