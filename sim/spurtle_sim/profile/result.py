"""Outcome of a run: the files of the profile, the summary, and mismatches."""

from collections.abc import Iterable
from pathlib import Path

from spurtle.config import SPUConfig
from spurtle.support.errors import UserError
from spurtle.support.numerals import counted
from spurtle.support.streams import print_stderr

from ..perf.events import TimedEvent, process_events
from ..perf.process import Process
from ..perf.writer import Recording
from ..report.reading import read_profile
from ..report.summary import build_highlights
from ..report.terminal import highlights
from . import outputs
from .driver import Driver
from .extra import OpenFiles
from .options import Sampling

__all__ = ["ProfileResult"]


class ProfileResult:
    """Outcome of a run on the compiled SPU.

    Parameters
    ----------
    config : SPUConfig
    sampling : Sampling
    driver : Driver
    process : Process
    output : str
        Name of the perf.data file.
    """

    def __init__(self, config: SPUConfig, sampling: Sampling, driver: Driver, process: Process, output: str) -> None:
        self._config = config
        self._sampling = sampling
        self._driver = driver
        self._process = process
        self._output = output
        self._events: list[TimedEvent] = []

    @property
    def _discard(self) -> bool:
        return self._sampling.filters.discard

    def collect(self, events: Iterable[TimedEvent]) -> None:
        """Let a run play, then stop the driver.

        `events` plays the operations, and yields each event after the operations before it have passed the SPU.
        """
        self._events.extend(events)
        self._driver.stop()

    def save(self, files: OpenFiles) -> None:
        """Write the profile, which has no file in Discard mode, and `files`. Raises UserError if this fails."""
        process, driver = self._process, self._driver
        if not self._discard:
            recording = Recording(
                argv=process.argv,
                events=process_events(process, driver.aux, later=self._events, end=driver.time),
                midr=outputs.midr(self._config.name),
                settings=self._sampling.settings(),
            )
            outputs.save(self._output, recording, driver.exact)
        files.save(process, driver.sampled)

    def print_summary(self, seconds: float) -> None:
        """Print the summary of a run that took `seconds`."""
        driver = self._driver
        counts = driver.counts()
        passed, records, rate = counts["filtrate"], counts["records"], counts["pop"] / seconds / 1e6
        played = f"{counted(counts['pop'], 'operation')} in {counted(counts['time'], 'cycle')}"
        interrupts = counted(driver.interrupts, "interrupt")
        checked = ""
        if driver.checker:
            correct = ", all checked" if self._discard else ", each one checked"
            checked = ", with mismatches" if driver.checker.count else correct
        if self._discard:
            events = self._config.feed_events
            feeds = ", ".join(f"SAMPLE_FEED_{name.upper()} {counts[f'feed_{name}']:,}" for name in events)
            result = f"no records and no file in Discard mode{checked}: {feeds}"
        else:
            size = sum(len(aux.data) for aux in driver.aux)
            result = f"""\
{counted(records, "record")}, {counted(size, "byte")}{checked}: {outputs.raw_path(self._output)}
{outputs.reader_commands(self._output)}"""
        print_stderr(f"""\
{played}, {seconds:.1f} s: {rate:.2f} million operations/s
{driver.sampled:,} sampled, {driver.collided:,} collided, {passed:,} passed the filter, {interrupts}
{result}""")
        if not self._discard:
            self._print_highlights()

    def _print_highlights(self) -> None:
        """Print the most important lines of the report, if there are records."""
        try:
            contents = build_highlights(read_profile(self._output, Path(self._output).read_bytes(), None))
        except (OSError, UserError):  # no sample passed the filter, or another program has removed the file
            return
        for line in highlights(contents):
            print_stderr(line)

    def print_mismatches(self) -> bool:
        """Print the mismatches between RTL and reference model. Return whether there are some."""
        checker = self._driver.checker
        if not checker or not checker.count:
            return False
        for mismatch in checker.mismatches:
            print_stderr(f"spurtle: {mismatch}")
        print_stderr(f"spurtle: mismatches between RTL and reference: {checker.count}")
        return True
