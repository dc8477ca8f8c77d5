"""Command `python -m boards.host PORT`: profiles the program of a board, as `spurtle profile` profiles a program."""

import argparse
import signal
import sys
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from spurtle.config import CONFIGS
from spurtle.support.errors import UserError
from spurtle.support.numerals import counted, decimal
from spurtle_sim.perf.events import process_events
from spurtle_sim.perf.writer import Recording
from spurtle_sim.profile import outputs
from spurtle_sim.profile.options import add_sampling_arguments, parse_sampling

from ..board import BOARDS, Board
from ..source import board_process
from .driver import BoardDriver
from .link import Link, LinkError, open_port

__all__ = ["main"]

_POLL = 0.002
"""Seconds between two checks for an interrupt."""

_COUNT_EVERY = 10.0
"""Seconds between two reads of the counters, which wrap after 40 seconds at 100 MHz."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Returns
    -------
    int
        Exit status: 0 if all records are in the file, 1 if some are lost or the board does not answer, 2 if an
        argument is invalid, 130 after a Ctrl-C that took effect immediately.
    """
    parser = argparse.ArgumentParser(
        prog="python -m boards.host", description="Profile the program of a board, and write perf.data for Linux perf."
    )
    parser.add_argument("port", metavar="PORT", help="serial port, or the port that `python -m boards.simulate` prints")
    parser.add_argument("--baud", metavar="N", default="1000000", help="baud rate of the serial port; default: 1000000")
    parser.add_argument("--records", metavar="N", default="1000", help="stop after this many records; default: 1000")
    parser.add_argument("--button", action="store_true", help="wait until the button of the board is pressed")
    parser.add_argument(
        "--keep-running",
        action="store_true",
        help="do not stop the program while the buffer is full: operations that pass then are counted, but not sampled",
    )
    add_sampling_arguments(parser)
    options = parser.parse_args(arguments)
    try:
        return _profile(options)
    except (UserError, LinkError) as error:
        print(f"boards.host: {error}", file=sys.stderr)
        return 2 if isinstance(error, UserError) else 1
    except KeyboardInterrupt:
        return 130


def _profile(options: argparse.Namespace) -> int:
    for name in ("baud", "records"):
        if not decimal(getattr(options, name)):
            raise UserError(f"--{name} must be a number of at least 1, not {getattr(options, name)}")
    outputs.check_output(options.output)
    link = Link(open_port(options.port, int(options.baud)))
    board = _board(link.board)
    config = CONFIGS[board.config]
    if options.button and not board.has_button:
        raise UserError(f"--button must not be used with {board.name}, which has no button")
    sampling = parse_sampling(config, options)
    if sampling.filters.discard:
        raise UserError("--filter must not contain discard: the records are the only output of a board")
    driver = BoardDriver(board, link, sampling, keep_running=options.keep_running)
    print(f"{board.name}: {board.title}, {config.name}", file=sys.stderr)
    failure = None
    with _stop_on_signals() as stop:
        _start(driver, board, options.button, stop)
        start = time.monotonic()
        try:
            _run(driver, int(options.records) * config.max_record_bytes, stop)
        except LinkError as error:
            failure = error  # the records received before the error are written
        seconds = time.monotonic() - start
    owner = board_process(board)
    recording = Recording(
        argv=owner.argv,
        events=process_events(owner, [outputs.aux_event(owner.pid, bytes(driver.data), driver.losses)]),
        midr=outputs.midr(config.name),
        settings=sampling.settings(),
    )
    outputs.save(options.output, recording)
    if failure:
        raise failure
    return _summary(options, driver, link, seconds, config.max_record_bytes)


@contextmanager
def _stop_on_signals() -> Generator[threading.Event]:
    """Provide an event that SIGINT (Ctrl-C) and SIGTERM set.

    The first signal takes effect between two exchanges with the board, the second one immediately.
    """
    stop = threading.Event()
    before: dict[signal.Signals, Any] = {}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def interrupt(*_: object) -> None:
        stop.set()
        restore()

    for number in signal.SIGINT, signal.SIGTERM:
        before[number] = signal.signal(number, interrupt)
    try:
        yield stop
    finally:
        restore()


def _start(driver: BoardDriver, board: Board, button: bool, stop: threading.Event) -> None:
    if not button:
        driver.start()
        return
    driver.arm()
    print(f"{board.name}: press the button", file=sys.stderr)
    while not driver.started and not stop.wait(_POLL):
        pass


def _board(number: int) -> Board:
    for board in BOARDS.values():
        if board.number == number:
            return board
    *others, last = (f"{board.number} ({board.name})" for board in BOARDS.values())
    raise LinkError(f"the number of the board must be {', '.join(others)} or {last}, not {number}")


def _run(driver: BoardDriver, size: int, stop: threading.Event) -> None:
    """Serve interrupts until `size` bytes are received or `stop` is set; then stop the program."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    due = time.monotonic()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("bytes of records", total=size)
        while len(driver.data) < size and not stop.is_set():
            if time.monotonic() >= due:
                driver.counts()
                due += _COUNT_EVERY
                if not driver.started:
                    raise LinkError("the program has stopped: the board has been reset")
            if driver.serve():
                progress.update(task, completed=len(driver.data))
            else:
                stop.wait(_POLL)
    driver.stop()


def _summary(options: argparse.Namespace, driver: BoardDriver, link: Link, seconds: float, record_bytes: int) -> int:
    counts = driver.counts()
    records = len(driver.data) // record_bytes
    unobserved = counts["operations"] - counts["pop"]
    operations, interrupts = counted(counts["operations"], "operation"), counted(driver.interrupts, "interrupt")
    lines = [
        f"{operations}, {unobserved:,} of them while the buffer was full or profiling was off",
        f"{counts['feed']:,} sampled, {counts['collision']:,} collided, {counts['filtrate']:,} passed the filter",
        f"{counted(records, 'record')} in {seconds:.1f} s, {records / seconds:,.0f} a second, {interrupts}",
    ]
    if link.damaged or link.resent or link.lost:
        lines.append(
            f"damaged frames: {link.damaged:,}; commands that were sent again: {link.resent:,}; bytes of the buffer "
            f"that are lost, and zero in the file: {link.lost:,}"
        )
    lines.append(outputs.reader_commands(options.output))
    print("\n".join(lines), file=sys.stderr)
    return 1 if link.lost else 0


if __name__ == "__main__":
    sys.exit(main())
