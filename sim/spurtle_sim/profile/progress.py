"""Progress of a run: a line on standard error, with a bar if the number of operations is known."""

import time
from collections.abc import Generator
from contextlib import contextmanager

from rich.columns import Columns
from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner

from spurtle.support.numerals import counted

from .driver import Driver

__all__ = ["Progress"]

_DELAY = 2.0  # seconds before a run shows its progress
_WIDTH = 30  # columns of the bar


class Progress:
    """Progress of a run.

    Parameters
    ----------
    driver : Driver
    total : int or None
        Number of operations of the run, if it is known.

    Attributes
    ----------
    operations : int
        Number of operations that have been executed.
    """

    def __init__(self, driver: Driver, total: int | None) -> None:
        self._driver = driver
        self._total = total
        self._start = time.monotonic()
        self._spinner = Spinner("dots")
        self.operations = 0

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._start

    @contextmanager
    def shown(self) -> Generator[None]:
        """Show the progress, after two seconds and only on a terminal."""
        console = Console(stderr=True)
        if not console.is_terminal:
            yield
            return
        with Live(
            console=console, get_renderable=self._shown, transient=True, redirect_stdout=False, redirect_stderr=False
        ):
            yield

    def _shown(self) -> RenderableType:
        return self.line(self.seconds) if self.seconds >= _DELAY else ""

    def line(self, seconds: float) -> RenderableType:
        """Return the line after some seconds."""
        begin = "" if self._total is None else f"{self.operations:,} of "
        operations = counted(self.operations if self._total is None else self._total, "operation")
        text = (
            f"{begin}{operations}, {self.operations / seconds / 1e6:.2f} million/s, "
            f"{counted(self._driver.sampled, 'sample')}, {seconds:.0f} s"
        )
        if self._total is None:
            self._spinner.update(text=text)
            return self._spinner
        return Columns([ProgressBar(self._total, self.operations, width=_WIDTH), text])
