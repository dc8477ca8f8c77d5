"""Profile of timed operations from a file, which another simulator or a core can have recorded."""

from collections.abc import Iterator, Sequence
from contextlib import closing

import numpy as np
from numpy.typing import NDArray

from spurtle.config import SPUConfig
from spurtle.support.errors import PROFILE_FAILED

from ..perf.events import Fork, TimedEvent, mmap_event
from ..perf.process import PID, Mapping, Process
from ..trace.file import OperationsFile, check_order
from . import outputs
from .driver import Driver
from .extra import ExtraFiles, OpenFiles
from .options import Sampling
from .progress import Progress
from .result import ProfileResult
from .saved import saved_process, saved_threads
from .window import Window

__all__ = ["replay"]

_NO_FILES = ExtraFiles()


def replay(
    config: SPUConfig,
    operations: str,
    *,
    sampling: Sampling,
    window: Window,
    output: str,
    extra: ExtraFiles = _NO_FILES,
    check: bool = False,
    fast_forward: bool = False,
) -> int:
    """Play the operations of a file on the SPU and write their profile.

    Parameters
    ----------
    config : SPUConfig
    operations : str
        Name of the file.
    sampling : Sampling
    window : Window
    output : str
        Name of the perf.data file.
    extra : ExtraFiles
        File for waveforms. The default is none.
    check : bool
        Compare all results with the reference model.
    fast_forward : bool
        Simulate only the cycles around each sample. The result is the same. Not with waveforms.

    Returns
    -------
    int
        0, or PROFILE_FAILED if a comparison failed.

    Raises
    ------
    ValueError
        If `fast_forward` comes with waveforms.
    UserError
        If the file cannot be read, it is not valid, or the output cannot be written.
    """
    extra.check(fast_forward=fast_forward)
    outputs.check_output(output, operations, also=extra.names)
    file = OperationsFile(operations)
    process, later = saved_process(operations, file.description)
    changes = _changes(later, saved_threads(operations, file.description))
    with closing(OpenFiles(output, extra)) as files:
        driver = Driver(
            config, sampling, context=process.pid, check=check, spool=files.spool, waves=files.waves,
            fast_forward=fast_forward,
        )  # fmt: skip
        progress = Progress(driver, min(file.count, window.end))
        result = ProfileResult(config, sampling, driver, process, output)
        with progress.shown():
            played = _play(operations, file, changes, driver, window, progress, config.ops_per_cycle)
            result.collect(_events(process, driver, played))
        seconds = progress.seconds
        result.save(files)
        result.print_summary(seconds)
    return PROFILE_FAILED if result.print_mismatches() else 0


def _changes(
    mappings: Sequence[tuple[int, Mapping]], threads: Sequence[tuple[int, int]]
) -> list[tuple[int, Mapping | int]]:
    """Return mappings and numbers of threads in the order of the numbers of operations before them.

    A mapping after the same operations is made by the thread before the change.
    """
    return sorted([*mappings, *threads], key=lambda change: (change[0], isinstance(change[1], int)))


def _events(process: Process, driver: Driver, played: Iterator[Mapping | int]) -> Iterator[TimedEvent]:
    """Yield the events for perf. A thread starts before its first operation, with the name of the process."""
    known = {process.pid}
    for change in played:
        if isinstance(change, Mapping):
            yield mmap_event(process, driver.time, change)
        elif change not in known:
            known.add(change)
            pid = process.pid
            yield Fork(time=driver.time, pid=pid, tid=change, parent_pid=pid, parent_tid=pid)


def _play(
    name: str,
    file: OperationsFile,
    changes: Sequence[tuple[int, Mapping | int]],
    driver: Driver,
    window: Window,
    progress: Progress,
    lanes: int,
) -> Iterator[Mapping | int]:
    """Play the operations. Yield each mapping and each change of the thread after the operations before it."""
    yielded, before, thread = 0, np.zeros(0, np.uint64), PID

    def run(rows: NDArray[np.void], first: int) -> None:
        profiled = window.split(rows, first)[1]
        if len(profiled):
            driver.switch(thread)
            driver.run(profiled)

    for rows in file.rows():
        check_order(name, rows, progress.operations, before, lanes)
        before = np.concatenate((before, rows["dispatch"]))[-lanes:]
        passed, end = progress.operations, progress.operations + len(rows)
        while yielded < len(changes) and changes[yielded][0] <= end:
            count, change = changes[yielded]
            yielded += 1
            run(rows[: count - passed], passed)
            rows, passed = rows[count - passed :], count
            yield change
            thread = change if isinstance(change, int) else thread
        run(rows, passed)
        progress.operations = end
        if end >= window.end:
            return
