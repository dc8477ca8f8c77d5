"""Thread that plays timed operations on the compiled SPU, while the main thread executes and times the next ones.

The program is executed in the main thread, in which Python handles signals.
"""

import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ..perf.events import Mmap, TimedEvent
from ..trace.dtypes import TIMED_OPERATION
from .driver import Driver
from .saved import OperationsSaver

__all__ = ["Player"]

_ROWS = 1 << 14
"""Operations that are passed to the thread together. A program begins with short batches, one for each new block."""

_PENDING = 4
"""Maximum number of tasks that wait for the thread, which limits memory."""


class Player:
    """Player of the operations and events of a run. The context manager starts the thread, and waits for its end.

    If the thread fails, the next call of a method, or the end of the context, raises its exception.

    Parameters
    ----------
    driver : Driver
    saver : OperationsSaver or None
        Writer of a file of operations.

    Attributes
    ----------
    events : list of TimedEvent
        Events with the times at which the operations before them have passed the SPU. Complete after the context.
    """

    def __init__(self, driver: Driver, saver: OperationsSaver | None) -> None:
        self._driver = driver
        self._saver = saver
        self.events: list[TimedEvent] = []
        self._rows: list[NDArray[np.void]] = []
        self._count = 0
        self._context = 0
        self._tasks: queue.Queue[Callable[[], None] | None] = queue.Queue(_PENDING)
        self._failure: BaseException | None = None
        self._abandoned = False
        self._thread = threading.Thread(target=self._work, name="player", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._flush()
            else:
                self._abandoned = True
        finally:
            self._tasks.put(None)
            self._thread.join()
        if error is None:
            self._raise()

    def play(self, rows: NDArray[np.void], context: int) -> None:
        """Play rows of `TIMED_OPERATION` of the thread `context` of the program."""
        if context != self._context:
            self._flush()
        self._context = context
        self._rows.append(rows)
        self._count += len(rows)
        if self._count >= _ROWS:
            self._flush()

    def add(self, events: Sequence[TimedEvent]) -> None:
        """Add events that follow the operations so far. Their times are not set."""
        if events:
            self._flush()
            self._submit(partial(self._add, events))

    def _flush(self) -> None:
        rows, self._rows, self._count = self._rows, [], 0
        if rows:
            self._submit(partial(self._play, rows, self._context))

    def _submit(self, task: Callable[[], None]) -> None:
        self._raise()
        self._tasks.put(task)

    def _raise(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _work(self) -> None:
        """Execute the tasks. After a failure they are discarded, so that the main thread does not wait forever."""
        while (task := self._tasks.get()) is not None:
            if self._failure is None and not self._abandoned:
                try:
                    task()
                except BaseException as error:  # the main thread raises it
                    self._failure = error

    def _play(self, rows: list[NDArray[np.void]], context: int) -> None:
        # As bytes, because numpy copies structs one by one.
        operations = np.concatenate([each.view(np.uint8) for each in rows]).view(TIMED_OPERATION)
        self._driver.switch(context)
        self._driver.run(operations)
        if self._saver:
            self._saver.append(operations, context)

    def _add(self, events: Sequence[TimedEvent]) -> None:
        for event in events:
            if self._saver and isinstance(event, Mmap):
                self._saver.map(event.mapping)
            self.events.append(replace(event, time=self._driver.time))
