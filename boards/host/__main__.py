"""`python -m boards.host PORT`: profile what a board runs, as `spurtle profile` does with a program."""

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
from spurtle.support.numerals import decimal
from spurtle_sim.perf.events import process_events
from spurtle_sim.perf.writer import Recording
from spurtle_sim.profile import outputs
from spurtle_sim.profile.options import add_sampling_arguments, parse_sampling

from ..board import BOARDS, Board
from ..source import process
from .driver import BoardDriver
from .link import Link, LinkError, open_port

__all__ = ["main"]

_POLL = 0.002
"""Seconds between two looks for an interrupt."""

_COUNT_EVERY = 10.0
"""Seconds between two looks at the counters, which wrap after 40 seconds of a clock of 100 MHz."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0: all records are in the file; 1: some are lost, or the board does not answer; 2: the arguments
    cannot be used.
    """
    parser = argparse.ArgumentParser(
        prog="python -m boards.host", description="Profile what a board runs, and write it for Linux perf."
    )
    parser.add_argument("port", metavar="PORT", help="the serial port, or what `python -m boards.simulate` says")
    parser.add_argument("--baud", metavar="N", default="1000000", help="of the serial port; default: 1000000")
    parser.add_argument("--records", metavar="N", default="1000", help="stop when so many have come; default: 1000")
    parser.add_argument("--button", action="store_true", help="wait until somebody presses the board's button")
    parser.add_argument(
        "--keep-running",
        action="store_true",
        help="the program does not wait when the buffer is full: what passes then is counted and not sampled",
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
            raise UserError(f"--{name} must be a number from 1 on, not {getattr(options, name)}")
    outputs.check_output(options.output)
    link = Link(open_port(options.port, int(options.baud)))
    board = _board(link.board)
    config = CONFIGS[board.config]
    if options.button and not board.has_button:
        raise UserError(f"--button must not come with {board.name}, which has none")
    sampling = parse_sampling(config, options)
    if sampling.filters.discard:
        raise UserError("--filter must not have discard: a board has nothing else to show than records")
    driver = BoardDriver(board, link, sampling, keep_running=options.keep_running)
    print(f"{board.name}: {board.title}, {config.name}", file=sys.stderr)
    failure = None
    with _until_interrupted() as stop:
        _begin(driver, board, options.button, stop)
        start = time.monotonic()
        try:
            _run(driver, int(options.records) * config.max_record_bytes, stop)
        except LinkError as error:
            failure = error  # what has come is kept
        seconds = time.monotonic() - start
    owner = process(board)
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
def _until_interrupted() -> Generator[threading.Event]:
    """An event that SIGINT (Ctrl-C) and SIGTERM set: they take effect between two exchanges with the board, and not in
    one. The second one takes effect at once.
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


def _begin(driver: BoardDriver, board: Board, button: bool, stop: threading.Event) -> None:
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
    known = ", ".join(f"{board.number} ({board.name})" for board in BOARDS.values())
    raise LinkError(f"the board says that it is number {number}; known are {known}")


def _run(driver: BoardDriver, wanted: int, stop: threading.Event) -> None:
    """Until so many bytes have come, or `stop`."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    due = time.monotonic()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("bytes of records", total=wanted)
        while len(driver.data) < wanted and not stop.is_set():
            if time.monotonic() >= due:
                driver.counts()
                due += _COUNT_EVERY
                if not driver.started:
                    raise LinkError("the program does not run any more: the board has been reset")
            if driver.serve():
                progress.update(task, completed=len(driver.data))
            else:
                stop.wait(_POLL)
    driver.stop()


def _summary(options: argparse.Namespace, driver: BoardDriver, link: Link, seconds: float, record_bytes: int) -> int:
    counts = driver.counts()
    records = len(driver.data) // record_bytes
    unobserved = counts["operations"] - counts["pop"]
    lines = [
        f"{counts['operations']:,} operations, {unobserved:,} of them while the buffer was full or profiling was off",
        f"{counts['feed']:,} sampled, {counts['collision']:,} collided, {counts['filtrate']:,} passed the filter",
        f"{records:,} records in {seconds:.1f} s, {records / seconds:,.0f} a second, {driver.interrupts:,} interrupts",
    ]
    if link.broken or link.repeated or link.lost:
        lines.append(
            f"{link.broken:,} frames came broken, {link.repeated:,} commands were sent again, "
            f"{link.lost:,} bytes of the buffer are lost and zero in the file"
        )
    lines.append(outputs.reader_commands(options.output))
    print("\n".join(lines), file=sys.stderr)
    return 1 if link.lost else 0


if __name__ == "__main__":
    sys.exit(main())
