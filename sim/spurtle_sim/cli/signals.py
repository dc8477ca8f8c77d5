"""Signals that end a command: it removes its unfinished files before it ends."""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from signal import SIG_DFL, SIG_IGN, Signals, getsignal, signal
from types import FrameType

__all__ = ["Terminated", "removing_files"]

_SIGNALS = (Signals.SIGTERM, Signals.SIGHUP)
"""Signals that end a process at once unless it handles them. Python handles SIGINT."""


class Terminated(KeyboardInterrupt):
    """Interrupt by a signal.

    Parameters
    ----------
    number : Signals
    """

    def __init__(self, number: Signals) -> None:
        super().__init__()
        self.number = number


@contextmanager
def removing_files() -> Generator[None]:
    """Raise `Terminated` on the first SIGTERM or SIGHUP, so that files are closed and removed."""
    if threading.current_thread() is not threading.main_thread():
        yield  # Python runs signal handlers only in the main thread
        return
    numbers = [number for number in _SIGNALS if getsignal(number) is SIG_DFL]

    def handle(number: int, _: FrameType | None) -> None:
        for each in numbers:
            signal(each, SIG_IGN)  # a second one must not stop the removal
        raise Terminated(Signals(number))

    for number in numbers:
        signal(number, handle)
    try:
        yield
    finally:
        for number in numbers:
            signal(number, SIG_DFL)
