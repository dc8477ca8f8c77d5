"""Command `python -m campaign.long`: runs the long tier of the tests for a given time, each test with a fresh seed."""

import argparse
import re
import signal
import sys
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from spurtle.support.errors import UserError
from spurtle.support.files import write_file
from spurtle.support.numerals import counted

from .processes import Run, collect, command_of
from .results import RunResult, append, load, next_tests, with_results

__all__ = ["main"]

ROOT = Path(__file__).resolve().parents[1]
WORKERS = 2
"""Number of tests that run in parallel."""
_UNITS = {"s": 1, "m": 60, "h": 3600}
_POLL = 0.1  # seconds between two checks of the running tests


@dataclass
class LongSession:
    """A run of the campaign. Each result is appended to `file` immediately.

    Parameters
    ----------
    file : Path
    queue : deque of str
        Tests, the next one first.
    deadline : float
        End of the session, in seconds of the clock `monotonic`.

    Attributes
    ----------
    running : list of Run
        Tests that run.
    results : list of RunResult
        Results of this session, the oldest first.
    """

    file: Path
    queue: deque[str]
    deadline: float
    running: list[Run] = field(default_factory=list[Run])
    results: list[RunResult] = field(default_factory=list[RunResult])

    def run(self) -> None:
        """Run tests until the deadline.

        A test that still runs at the deadline is terminated. It has no result, and is therefore the first test of the
        next session.
        """
        start = monotonic()
        try:
            with _status() as status:
                while (self.queue or self.running) and (now := monotonic()) < self.deadline:
                    self._start()
                    self._collect_results()
                    status.update(text=Text(self._progress(now - start, self.deadline - start)))
                    sleep(_POLL)
        finally:
            for run in self.running:
                run.end()

    def _start(self) -> None:
        while self.queue and len(self.running) < WORKERS:
            self.running.append(Run(ROOT, self.file.parent, self.queue.popleft()))

    def _collect_results(self) -> None:
        for run in [run for run in self.running if run.done]:
            result = run.result()
            append(self.file, result)
            self.running.remove(run)
            self.results.append(result)
            print(_line(result), flush=True)
            # A failed test would fail again without a change of the code, and a skipped one lacks a tool.
            if result.outcome == "passed":
                self.queue.append(run.test)

    def _progress(self, seconds: float, limit: float) -> str:
        names = ", ".join(f"{run.test.partition('::')[2]} ({run.seconds:.0f} s)" for run in self.running)
        return f"{seconds:.0f} of {limit:.0f} s, {_counts(self.results)}; running: {names}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Returns
    -------
    int
        Exit status: 0 if no test failed, 1 if a test failed, 2 if no test could be run, 130 after an interrupt.
    """
    try:
        options = _parse(arguments)
        limit = _seconds(options.time)
        file = ROOT / "build" / "long" / "results.jsonl"
        before = load(file)
        with _status() as status:
            status.update(text="collecting the tests")
            tests = collect(ROOT)
        print(f"{counted(len(tests), 'test')} of the long tier, {WORKERS} at a time, for {options.time}", flush=True)
        session = LongSession(file, deque(next_tests(tests, before)), monotonic() + limit)
        interrupted = _run(session)
        if not (session.results or interrupted):
            raise UserError(f"TIME must be long enough for a test, not {options.time}")
        if options.publish:
            page = ROOT / "docs" / "verification.md"
            write_file(page, with_results(page.read_text(), tests, [*before, *session.results]).encode())
        failed = _print_summary(session)
    except UserError as error:
        print(f"long: {error}", file=sys.stderr)
        return 2
    return 130 if interrupted else int(failed)


@contextmanager
def _status() -> Generator[Spinner]:
    """Show a line of progress on a terminal."""
    spinner = Spinner("dots")
    console = Console(stderr=True)
    # On a terminal, lines of results appear above the line of progress.
    with Live(
        spinner if console.is_terminal else "", console=console, transient=True, redirect_stdout=sys.stdout.isatty()
    ):
        yield spinner


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m campaign.long", description="Run the long tier of the tests.")
    parser.add_argument("--time", default="60m", metavar="T", help="duration, such as 90s, 60m or 2h; default: 60m")
    parser.add_argument("--publish", action="store_true", help="write the last results into docs/verification.md")
    return parser.parse_args(arguments)


def _seconds(text: str) -> int:
    found = re.fullmatch(r"([1-9][0-9]*)([smh])", text, re.ASCII)
    if not found:
        raise UserError(f"TIME must be a number and s, m or h, such as 90s, 60m or 2h, not {text!r}")
    return int(found[1]) * _UNITS[found[2]]


def _run(session: LongSession) -> bool:
    """Run the session, and return whether it was interrupted. Results before the interrupt are kept."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        session.run()
    except KeyboardInterrupt:
        print("long: interrupted", file=sys.stderr)
        return True
    finally:
        signal.signal(signal.SIGTERM, before)
    return False


def _print_summary(session: LongSession) -> bool:
    """Print the failures and the counts, and return whether a test failed."""
    failed = [result for result in session.results if result.outcome == "failed"]
    for result in failed:
        print(f"failed: {result.test}: {result.detail}\n  repeat: {command_of(result)}")
    print(f"{_counts(session.results)}; results: {session.file.relative_to(ROOT)}")
    return bool(failed)


def _line(result: RunResult) -> str:
    figures = "".join(f", {name} {value}" for name, value in result.figures.items())
    reason = f": {result.detail}" if result.detail else ""
    return f"{result.outcome}: {result.test}, SPURTLE_SEED={result.seed}, {result.seconds:.0f} s{figures}{reason}"


def _counts(results: Sequence[RunResult]) -> str:
    outcomes = [result.outcome for result in results]
    return ", ".join(f"{outcomes.count(outcome)} {outcome}" for outcome in ("passed", "failed", "skipped"))


if __name__ == "__main__":
    sys.exit(main())
